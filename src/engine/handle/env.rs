//! Values of variables, for code in a thread.

use futures::future::LocalBoxFuture;

use crate::definitions::VariableKind;
use crate::engine::env::Value;
use crate::engine::handle::ThreadHandle;
use crate::engine::thread::Thread;
use crate::error::{Code, Error, Result};
use crate::sdk::env::EnvApi;

impl EnvApi for ThreadHandle {
    fn env(&self, name: String) -> LocalBoxFuture<'static, Result<String>> {
        let thread = self.thread.clone();
        Box::pin(async move {
            let none = || {
                let text = format!(
                    "{name} has no value: neither the thread, the account, the instance, the agent nor the prompt gives one."
                );
                Error::new(Code::MissingVariables, text)
            };
            thread.value_for_code(&name).await?.ok_or_else(none)?.text
        })
    }

    fn env_type(&self, name: String) -> LocalBoxFuture<'static, Result<VariableKind>> {
        let thread = self.thread.clone();
        Box::pin(async move {
            let found = thread.value_for_code(&name).await?;
            Ok(found.map_or_else(|| thread.variables().declared().kind(&name), |value| value.kind))
        })
    }

    fn set_env(&self, name: &str, value: &str, kind: Option<VariableKind>) -> Result<()> {
        self.scope.writes("set the value of a variable")?;
        self.thread.variables().set_env(name, value, kind)
    }

    fn instance_env(&self, name: String) -> LocalBoxFuture<'static, Result<Option<String>>> {
        let thread = self.thread.clone();
        Box::pin(async move {
            thread.variables().refresh_env().await?;
            thread.variables().deployment_variable(&name).map(|value| value.text).transpose()
        })
    }
}

impl Thread {
    /// The value of a variable for code. In a run, the active side's prompt provides values too.
    async fn value_for_code(&self, name: &str) -> Result<Option<Value>> {
        self.variables().refresh_env().await?;
        let (agent, runs) = self.read(|state, _| Ok((state.meta.agent.clone(), state.active().is_some())))?;
        let agent = self.catalog.agents.get(&agent);
        let prompt = if runs { self.definitions()?.map(|found| &found.prompt.env) } else { None };
        let below: Vec<_> = agent.map(|agent| &agent.env).into_iter().chain(prompt).collect();
        self.variables().resolve(name, &[], &below)
    }
}
