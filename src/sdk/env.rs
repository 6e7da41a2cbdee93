//! Variables for the code that works in a thread (spec §11.3). Reading one may need the directories, so it is
//! asynchronous.

use futures::future::LocalBoxFuture;

use crate::definitions::VariableKind;
use crate::error::Result;
use crate::sdk::ThreadState;

impl ThreadState {
    /// The value of a variable from the thread, the account, the instance, the agent or the prompt (spec
    /// §11.2).
    ///
    /// # Errors
    /// `missing_variables` when it has no value; `encryption_unavailable` when its key is missing.
    pub async fn env(&self, name: &str) -> Result<String> {
        self.door().env(name.to_owned()).await
    }

    /// Whether a variable's value may be shown; `secret` by default.
    pub async fn env_type(&self, name: &str) -> Result<VariableKind> {
        self.door().env_type(name.to_owned()).await
    }

    /// Sets a variable of the thread. Without a type it keeps its type, and a new one is a secret. An empty
    /// text is a valid value.
    ///
    /// # Errors
    /// `invalid_field` for an invalid or reserved name, such as a model's key; `too_large`;
    /// `encryption_unavailable`.
    pub fn set_env(&self, name: &str, value: &str, kind: Option<VariableKind>) -> Result<()> {
        self.door().set_env(name, value, kind)
    }

    /// The deployment's value: a Worker variable, or a variable of the instance.
    ///
    /// # Errors
    /// `encryption_unavailable` when its key is missing.
    pub async fn instance_env(&self, name: &str) -> Result<Option<String>> {
        self.door().instance_env(name.to_owned()).await
    }
}

/// The thread's side of variables, for any host.
pub(crate) trait EnvApi {
    fn env(&self, name: String) -> LocalBoxFuture<'static, Result<String>>;
    fn env_type(&self, name: String) -> LocalBoxFuture<'static, Result<VariableKind>>;
    fn set_env(&self, name: &str, value: &str, kind: Option<VariableKind>) -> Result<()>;
    fn instance_env(&self, name: String) -> LocalBoxFuture<'static, Result<Option<String>>>;
}
