//! Values for the code that works in a thread (spec §11.3). Reading one may ask the directories, so it is awaited.

use futures::future::LocalBoxFuture;

use crate::error::Result;
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
pub(crate) trait EnvApi {
    fn env(&self, name: String) -> LocalBoxFuture<'static, Result<String>>;
    fn env_type(&self, name: String) -> LocalBoxFuture<'static, Result<VariableKind>>;
    fn set_env(&self, name: &str, value: &str, kind: Option<VariableKind>) -> Result<()>;
    fn instance_env(&self, name: String) -> LocalBoxFuture<'static, Result<Option<String>>>;
}
