//! Whether a model can be used in this deployment.

use crate::host::ai::AI_BINDING;
use crate::models::provider::has_provider;
use crate::spec::model::{Model, Provider};
use crate::spec::template;

impl Model {
    /// Whether the deployment has everything that a request needs. The engine skips a model that is not
    /// usable while a fallback is.
    pub fn usable(&self, deployment: &dyn Fn(&str) -> Option<String>) -> bool {
        self.lacks(deployment).is_none()
    }

    /// What the deployment lacks for a request, as a text: a variable of the address, or the key. A model
    /// with its own address needs no key, because local servers accept any.
    pub fn lacks(&self, deployment: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        match &self.provider {
            Provider::Demo => return None,
            Provider::WorkersAi if deployment(AI_BINDING).is_none() => {
                return Some(format!("the binding {AI_BINDING} is not there: wrangler.toml has no `[ai]`"));
            }
            Provider::WorkersAi => return None,
            Provider::Registered(name) if !has_provider(name) => {
                return Some(format!("its provider \"{name}\" is not part of this deployment"));
            }
            _ => {}
        }
        let is_set = |name: &str| deployment(name).is_some_and(|value| !value.trim().is_empty());
        let names = self.base_url.as_deref().map(template::names).unwrap_or_default();
        if let Some(unset) = names.into_iter().find(|name| !is_set(name))
            && !self.means_default(unset)
        {
            return Some(format!(
                "its `baseUrl` needs {unset}, which is not set, and its key is not sent anywhere else"
            ));
        }
        if self.base_url(deployment).is_some() {
            return None;
        }
        match self.key_env() {
            Some(key) if is_set(key) => None,
            Some(key) => Some(format!("it has no key: {key} is not set")),
            // It may need no key, and reports a missing one itself.
            None if matches!(self.provider, Provider::Registered(_)) => None,
            None => Some("it has no key: its definition names no `apiKeyEnv`".to_owned()),
        }
    }
}
