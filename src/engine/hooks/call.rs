//! One call of one hook: what it is given, and how it is reached.

use std::rc::Rc;

use serde_json::{Map, Value, json};

use crate::engine::hooks::At;
use crate::engine::post::{Post, PostError};
use crate::engine::thread::Thread;
use crate::engine::timeout::Watch;
use crate::error::Result;
use crate::limits;
use crate::sdk::scope::Origin;
use crate::spec::hook::{Hook, HookName};
use crate::spec::{Http, Run};
use crate::work::native::hook_call::HookCall;

impl Thread {
    /// Calls it once, for as long as it may take.
    ///
    /// # Errors
    /// Inside: why it failed, in words for the log.
    pub(crate) async fn call_hook(
        self: &Rc<Self>,
        at: &At<'_>,
        hook: &Hook,
        args: Vec<Value>,
    ) -> Result<std::result::Result<Value, String>> {
        let thread_id = self.read(|state, _| Ok(state.meta.thread_id.clone()))?;
        let env = match self.hook_values(at, hook).await {
            Ok(env) => env,
            Err(why) => return Ok(Err(why)),
        };
        let call = HookCall {
            native: String::new(),
            id: hook.id.clone(),
            hook: hook.hook,
            args,
            hook_call_id: at.call_id(&thread_id, hook),
            thread_id,
            agent_id: at.definitions.agent.name.clone(),
            env,
            now_us: self.host.now_us(),
            random: self.host.random(),
            sleep: self.sleep(),
            state: self.state_at(at.origin.clone(), self.catalog.packages.of(&hook.id)),
        };
        let limit_ms = hook.timeout_ms.unwrap_or(limits::HOOK_MS).min(limits::HOOK_MS);
        let apart = self.work_apart(&call.state)?;
        let outcome = match &hook.run {
            Run::Native(native) => {
                let running = self.natives.hook(HookCall { native: native.clone(), ..call });
                match Watch::for_ms(&*self.host, limit_ms).within(running).await {
                    None => Err(late(limit_ms)),
                    Some(Ok(answer)) => answer,
                    Some(Err(panicked)) => {
                        // It may have come between a commit of the thread's and the frame that tells of it.
                        self.host.listeners().close("the thread had to start over");
                        Err(panicked.to_string())
                    }
                }
            }
            Run::Http(http) => self.http_hook(at, http, limit_ms, call).await,
            Run::Code(code) => {
                let running = self.code_hook(code, call);
                Watch::for_ms(&*self.host, limit_ms)
                    .within(running)
                    .await
                    .unwrap_or_else(|| Err(late(limit_ms)))
            }
        };
        self.end_apart(apart)?;
        self.goes_on(at).await?;
        Ok(outcome)
    }

    /// The values of the variables that it declares; why it cannot run without one.
    async fn hook_values(
        self: &Rc<Self>,
        at: &At<'_>,
        hook: &Hook,
    ) -> std::result::Result<Map<String, Value>, String> {
        if hook.variables.is_empty() {
            return Ok(Map::new());
        }
        self.refresh_env().await.map_err(|error| error.message)?;
        match self.hook_lacks(at.definitions, hook) {
            Some(why) => Err(why),
            None => Ok(hook
                .variables
                .iter()
                .filter_map(|variable| {
                    let value = self.hook_env(at.definitions, &variable.name)?;
                    Some((variable.name.clone(), Value::String(value)))
                })
                .collect()),
        }
    }

    async fn http_hook(
        self: &Rc<Self>,
        at: &At<'_>,
        http: &Http,
        limit_ms: u64,
        call: HookCall,
    ) -> std::result::Result<Value, String> {
        if at.origin == Origin::DetachedHook {
            self.ready_env().await.map_err(|error| error.message)?;
        }
        let body = json!({
            "threadId": call.thread_id, "agentId": call.agent_id, "hook": call.hook, "args": call.args,
            "hookCallId": call.hook_call_id,
        });
        let post = Post {
            name: &call.id,
            http,
            timeout_ms: Some(limit_ms),
            idempotency_key: &call.hook_call_id,
            random: call.random,
            now_us: call.now_us,
            body,
        };
        match self.post_signed(post, &|name| self.hook_env(at.definitions, name)).await {
            Ok(answered) => match answered.refusal(self, &call.id) {
                Some(refusal) => Err(refusal),
                None => value_of(&answered.text(), call.hook),
            },
            Err(PostError::Late(limit_ms)) => Err(late(limit_ms)),
            Err(PostError::Failed(text)) => Err(text),
        }
    }
}

/// What an http hook's answer says. Of one that observes nothing is asked but that it came.
fn value_of(text: &str, hook: HookName) -> std::result::Result<Value, String> {
    if hook.observes() {
        return Ok(Value::Null);
    }
    let Ok(Value::Object(mut fields)) = serde_json::from_str(text) else {
        return Err("its answer is no JSON object".to_owned());
    };
    if let Some(value) = fields.remove("value") {
        return Ok(value);
    }
    match fields.get("error") {
        // What blocks a request says so itself.
        Some(_) if hook == HookName::PrefilterLlmHistory => Ok(Value::Object(fields)),
        Some(Value::String(error)) => Err(error.clone()),
        _ => Err("its answer has no `value`".to_owned()),
    }
}

fn late(limit_ms: u64) -> String {
    format!("it did not end within {} s", limit_ms as f64 / 1000.0)
}
