//! Values for the code that works in a thread (spec §11.3). Reading one may ask the directories, so it is awaited.

use std::rc::Rc;

use futures_util::future::LocalBoxFuture;

use crate::engine::Thread;
use crate::engine::env::Value;
use crate::error::Code;
use crate::error::Error;
use crate::error::Result;
use crate::sdk::Open;
use crate::sdk::ThreadState;
use crate::spec::VariableKind;

impl ThreadState {
    /// The value of a name: the thread's, the account's, the instance's, the agent's or the prompt's (spec §11.2).
    ///
    /// # Errors
    /// `missing_variables` when nothing gives one; `encryption_unavailable` when its key is gone.
    pub async fn env(&self, name: &str) -> Result<String> {
        self.door().env(name.to_owned()).await
    }

    /// Whether the value of a name may be shown; `secret` unless something says otherwise.
    pub async fn env_type(&self, name: &str) -> Result<VariableKind> {
        self.door().env_type(name.to_owned()).await
    }

    /// Sets a value of the thread. Without a type it keeps the one it has; a new one is a secret. An empty text is a
    /// value like any other.
    ///
    /// # Errors
    /// `invalid_field` for a name that is none, the runtime's or a model's key; `too_large`; `encryption_unavailable`.
    pub fn set_env(&self, name: &str, value: &str, kind: Option<VariableKind>) -> Result<()> {
        self.door().set_env(name, value, kind)
    }

    /// The value that the deployment gives: a Worker variable, or a value of the instance.
    ///
    /// # Errors
    /// `encryption_unavailable` when its key is gone.
    pub async fn instance_env(&self, name: &str) -> Result<Option<String>> {
        self.door().instance_env(name.to_owned()).await
    }
}

/// The values of a thread, whatever its host.
pub(crate) trait EnvDoor {
    fn env(&self, name: String) -> LocalBoxFuture<'static, Result<String>>;
    fn env_type(&self, name: String) -> LocalBoxFuture<'static, Result<VariableKind>>;
    fn set_env(&self, name: &str, value: &str, kind: Option<VariableKind>) -> Result<()>;
    fn instance_env(&self, name: String) -> LocalBoxFuture<'static, Result<Option<String>>>;
}

impl EnvDoor for Open {
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
            Ok(found.map_or_else(|| thread.declared().kind(&name), |value| value.kind))
        })
    }

    fn set_env(&self, name: &str, value: &str, kind: Option<VariableKind>) -> Result<()> {
        self.thread.set_env(name, value, kind)
    }

    fn instance_env(&self, name: String) -> LocalBoxFuture<'static, Result<Option<String>>> {
        let thread = self.thread.clone();
        Box::pin(async move {
            thread.refresh_env().await?;
            thread.of_deployment(&name).map(|value| value.text).transpose()
        })
    }
}

impl Thread {
    /// In a run, the active side's prompt gives values too.
    async fn value_for_code(self: &Rc<Self>, name: &str) -> Result<Option<Value>> {
        self.refresh_env().await?;
        let (agent, runs) = self.read(|state, _| Ok((state.meta.agent.clone(), state.active().is_some())))?;
        let agent = self.catalog.agents.get(&agent);
        let prompt = if runs { self.definitions()?.map(|found| &found.prompt.env) } else { None };
        let below: Vec<_> = agent.map(|agent| &agent.env).into_iter().chain(prompt).collect();
        self.resolve(name, &[], &below)
    }
}
