//! The choice between OpenAI's two APIs for an address.

use crate::definitions::model::{Api, Model, Provider};
use crate::definitions::template;

/// Suffix of an address of chat completions.
const CHAT: &str = "/chat/completions";
/// Suffix of an address of responses.
const RESPONSES: &str = "/responses";
/// OpenAI's host; its regional hosts end with it.
const OPENAI: &str = "api.openai.com";

/// Whether a model's address uses the responses API; an empty address means the provider's own. The model's
/// `api` decides, then the suffix of its address, then whether it is OpenAI's. Other servers (Azure, Bedrock,
/// Cloudflare, OpenRouter) have responses only for some models or addresses, so their models must set `api`.
pub fn speaks_responses(api: Api, base_url: &str) -> bool {
    match api {
        Api::Chat => return false,
        Api::Responses => return true,
        Api::Auto => {}
    }
    let base = base_url.trim();
    let base = base.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    match base {
        "" => true,
        _ if base.ends_with(CHAT) => false,
        _ if base.ends_with(RESPONSES) => true,
        _ => {
            let host = host(base);
            host == OPENAI || host.strip_suffix(OPENAI).is_some_and(|region| region.ends_with('.'))
        }
    }
}

impl Model {
    /// Whether the model will use responses, judged by its definition alone: a variable in its address is
    /// assumed to be unset when that means the provider's own address, and a foreign address otherwise.
    pub fn expects_responses(&self) -> bool {
        let base = self.base_url.as_deref().unwrap_or_default();
        let own = template::names(base).into_iter().any(|name| self.means_default(name));
        self.provider == Provider::Openai && speaks_responses(self.api, if own { "" } else { base })
    }
}

/// The host of an address, in lower case and without a port.
fn host(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    host.split(':').next().unwrap_or_default().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_for_openai_unless_a_model_says() {
        for (base, responses) in [
            ("", true),
            (" ", true),
            ("https://api.openai.com/v1", true),
            ("https://API.openai.com:443/v1/?x=1", true),
            ("https://eu.api.openai.com/v1", true),
            ("https://api.openai.com/v1/chat/completions", false),
            ("https://notapi.openai.com/v1", false),
            ("https://api.openai.com.evil.example/v1", false),
            ("https://user:api.openai.com@evil.example/v1", false),
            ("https://evil.example/api.openai.com", false),
            ("https://r.openai.azure.com/openai/v1", false),
            ("https://r.openai.azure.com/openai/v1/responses", true),
            ("https://r.openai.azure.com/openai/deployments/d?api-version=2024-10-21", false),
            ("https://bedrock-mantle.us-east-1.api.aws/v1", false),
            ("https://api.cloudflare.com/client/v4/accounts/a/ai/v1", false),
            ("http://127.0.0.1:8080/v1", false),
        ] {
            assert_eq!(speaks_responses(Api::Auto, base), responses, "{base}");
            assert!(speaks_responses(Api::Responses, base) && !speaks_responses(Api::Chat, base), "{base}");
        }
    }
}
