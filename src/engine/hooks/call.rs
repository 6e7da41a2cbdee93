//! One call of one hook: its arguments and its transport.

use serde_json::{Map, Value};

use crate::definitions::Implementation;
use crate::definitions::hook::Hook;
use crate::engine::features::Hooks;
use crate::engine::hooks::Site;
use crate::error::Result;
use crate::sdk::ThreadState;
use crate::sdk::scope::Origin;
use crate::work::ExecutionPlan;
use crate::work::native::hook_call::HookCall;
use crate::{limits, work};

/// Gives code the thread that it works in. `handle` implements it.
pub(crate) trait CodeHandle {
    /// The thread for code of this package.
    fn state_at(&self, origin: Origin, package: Option<&str>) -> ThreadState;
}

impl Hooks<'_> {
    /// Calls a hook once, within its time limit.
    ///
    /// # Errors
    /// Inside: the reason of the failure, as text for the log.
    pub(super) async fn call_hook(
        &self,
        at: &Site<'_>,
        hook: &Hook,
        args: Vec<Value>,
    ) -> Result<Result<Value, String>> {
        let (thread_id, stem) =
            self.read(|state, _| Ok((state.meta.thread_id.clone(), state.meta.stem.clone())))?;
        let env = match self.hook_values(at, hook).await {
            Ok(env) => env,
            Err(why) => return Ok(Err(why)),
        };
        let call = HookCall {
            native: String::new(),
            id: hook.id.clone(),
            hook: hook.hook,
            args,
            hook_call_id: at.call_id(&stem, hook),
            thread_id,
            agent_id: at.definitions.agent.name.clone(),
            env,
            now_us: self.host.now_us(),
            random: self.host.random(),
            sleep: self.sleep(),
            state: self.0.state_at(at.origin.clone(), self.catalog.packages.of(&hook.id)),
        };
        let limit_ms = hook.timeout_ms.unwrap_or(limits::HOOK_MS).min(limits::HOOK_MS);
        let env = |name: &str| self.variables().hook_env(at.definitions, name);
        let trace = || match at.origin.in_step() {
            true => self.traces().trace_of_step(),
            false => self.traces().trace_of_work("hook", &at.place),
        };
        let (limit_ms, http_ms) = (Some(limit_ms), Some(limit_ms));
        let plan = ExecutionPlan { run: &hook.run, limit_ms, http_ms, env: &env, trace: &trace };
        if at.origin == Origin::DetachedHook && matches!(hook.run, Implementation::Http(_)) {
            self.variables().ready_env().await?;
        }
        let detached = self.begin_detached(&call.state)?;
        let outcome = work::run(self.work_context(), plan, call).await.map_err(|failure| failure.of("it"));
        self.end_detached(detached)?;
        self.stop_if_run_ended(at).await?;
        Ok(outcome)
    }

    /// The values of the hook's declared variables, or the reason why it cannot run without one.
    async fn hook_values(&self, at: &Site<'_>, hook: &Hook) -> Result<Map<String, Value>, String> {
        if hook.variables.is_empty() {
            return Ok(Map::new());
        }
        self.variables().refresh_env().await.map_err(|error| error.into_message())?;
        match self.variables().hook_lacks(at.definitions, hook) {
            Some(why) => Err(why),
            None => Ok(hook
                .variables
                .iter()
                .filter_map(|variable| {
                    let value = self.variables().hook_env(at.definitions, &variable.name)?;
                    Some((variable.name.clone(), Value::String(value)))
                })
                .collect()),
        }
    }
}
