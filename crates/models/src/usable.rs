//! Whether a model can be used in this deployment.

use crate::ai::AI_BINDING;
use crate::provider::has_provider;
use bobbin_definitions::definitions::model::{Model, Provider};
use bobbin_definitions::definitions::template;

/// Whether the deployment has everything that a request needs. The engine skips a model that is not
/// usable while a fallback is.
pub fn usable(model: &Model, deployment: &dyn Fn(&str) -> Option<String>) -> bool {
    lacks(model, deployment).is_none()
}

/// What the deployment lacks for a request, as a text: a variable of the address, or the key. A model
/// with its own address needs no key, because local servers accept any.
pub fn lacks(model: &Model, deployment: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    match &model.provider {
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
    let names = model.base_url.as_deref().map(template::names).unwrap_or_default();
    if let Some(unset) = names.into_iter().find(|name| !is_set(name))
        && !model.means_default(unset)
    {
        return Some(format!(
            "its `baseUrl` needs {unset}, which is not set, and its key is not sent anywhere else"
        ));
    }
    if model.base_url(deployment).is_some() {
        return None;
    }
    match model.key_env() {
        Some(key) if is_set(key) => None,
        Some(key) => Some(format!("it has no key: {key} is not set")),
        // It may need no key, and reports a missing one itmodel.
        None if matches!(model.provider, Provider::Registered(_)) => None,
        None => Some("it has no key: its definition names no `apiKeyEnv`".to_owned()),
    }
}
