//! Models.

use serde_json::{Map, Value};

use crate::definitions::model::{Api, Capabilities, Model, Provider, Timeouts};
use crate::definitions::references::Kind;
use crate::limits::SILENCE_MAX_MS;
use crate::names::{cycles, nearest, wrong_model};
use crate::validate::{Check, Subject};

/// Model ids of the demo provider.
const DEMO_MODELS: [&str; 3] = ["demo", "demo-slow", "demo-fail"];

/// Fields of a request that only the runtime sets.
const OWN_FIELDS: [&str; 7] =
    ["model", "messages", "input", "instructions", "tools", "tool_choice", "stream"];

/// Fields of chat completions, and their names in responses.
const OPTIONS_OF_CHAT: [(&str, &str); 7] = [
    ("max_tokens", "`max_output_tokens`"),
    ("max_completion_tokens", "`max_output_tokens`"),
    ("reasoning_effort", "`effort` in `reasoning`"),
    ("verbosity", "`verbosity` in `text`"),
    ("response_format", "`format` in `text`"),
    ("stream_options", "not there: usage always comes"),
    ("stop", "not there"),
];

impl Check<'_> {
    pub(super) fn models(&mut self) {
        for (name, model) in &self.catalog.models {
            let at = Subject { kind: Kind::Model, name };
            if let Some(wrong) = wrong_model(name) {
                self.error(at, "name", wrong);
            }
            self.provider(at, model);
            self.api(at, model);
            self.known(at, model);
            self.embeds(at, model);
            self.prices(at, model);
            self.capabilities(at, &model.capabilities);
            self.fallbacks(at, model);
            self.policy(at, &model.retry);
            self.timeouts(at, model.timeouts);
            self.provider_options(at, &model.provider_options);
        }
        self.fallback_cycles();
    }

    fn provider(&mut self, at: Subject<'_>, model: &Model) {
        if let Provider::Registered(name) = &model.provider
            && let Some(wrong) = unknown_provider(name, &self.natives.providers, self.natives.complete)
        {
            self.error(at, "provider", wrong);
        }
        if model.model.trim().is_empty() {
            self.error(at, "model", "the provider's id of the model is empty");
        } else if model.provider == Provider::Demo && !DEMO_MODELS.contains(&model.model.as_str()) {
            let known = DEMO_MODELS.join(", ");
            self.error(at, "model", format!("the demo provider has no \"{}\"; it has {known}", model.model));
        }
        if let Some(url) = &model.base_url {
            self.url(at, "baseUrl", url);
        }
        if let Some(name) = &model.api_key_env {
            if name.starts_with("sk-") {
                self.error(
                    at,
                    "apiKeyEnv",
                    "this is the name of the variable that holds the key, never the key itself",
                );
            } else {
                self.env_name(at, "apiKeyEnv", name);
            }
        }
        if model.provider == Provider::Anthropic && model.provider_options.contains_key("system") {
            let own = "the runtime sets this field of the request itself";
            self.error(at, "providerOptions.system", own);
        }
        if model.provider == Provider::Demo && model.capabilities.supports_json_mode {
            self.error(at, "capabilities.supportsJsonMode", "the demo provider answers in plain text");
        }
        if model.provider == Provider::WorkersAi && (model.base_url.is_some() || model.api_key_env.is_some())
        {
            let text = "Workers AI is asked by its binding: baseUrl and apiKeyEnv have no effect";
            self.warning(at, "provider", text);
        }
        if model.provider == Provider::Demo && (model.base_url.is_some() || model.api_key_env.is_some()) {
            self.warning(
                at,
                "provider",
                "the demo provider uses no network: baseUrl and apiKeyEnv have no effect",
            );
        }
    }

    /// Checks the choice between OpenAI's APIs, and options that only one of them knows.
    fn api(&mut self, at: Subject<'_>, model: &Model) {
        if model.api != Api::Auto && model.provider != Provider::Openai {
            let text =
                format!("the provider \"{}\" has one API: this is for `openai`", model.provider.name());
            self.error(at, "api", text);
        } else if model.provider_options.get("background").is_some_and(|given| *given == true)
            && (!model.expects_responses()
                || model.provider_options.get("store").is_some_and(|given| *given == false))
        {
            let text = "only responses that the server stores are gone on with by it: `api` must be \"responses\", and `store` not false";
            self.warning(at, "providerOptions.background", text);
        } else if model.expects_responses() {
            self.options_of_chat(at, &model.provider_options, &model.name);
        }
    }

    /// Warns about options with another name in responses, which refuse unknown fields.
    pub(super) fn options_of_chat(&mut self, at: Subject<'_>, options: &Map<String, Value>, model: &str) {
        for (chat, responses) in OPTIONS_OF_CHAT {
            if options.get(chat).is_some_and(|value| !value.is_null()) {
                let text = format!(
                    "a field of chat completions, and \"{model}\" is asked by responses: it is {responses} there, or set the model's `api` to \"chat\""
                );
                self.warning(at, format!("providerOptions.{chat}"), text);
            }
        }
    }

    fn prices(&mut self, at: Subject<'_>, model: &Model) {
        let prices = [
            ("inputPrice", model.input_price),
            ("outputPrice", model.output_price),
            ("cachedPrice", model.cached_price),
        ];
        for (field, price) in prices {
            if price.is_some_and(|price| !price.is_finite() || price < 0.0) {
                self.error(at, field, "a price is USD for a million tokens, not negative");
            }
        }
    }

    fn timeouts(&mut self, at: Subject<'_>, timeouts: Timeouts) {
        for (field, ms) in [("firstChunkMs", timeouts.first_chunk_ms), ("stallMs", timeouts.stall_ms)] {
            if ms.is_some_and(|ms| ms == 0 || ms > SILENCE_MAX_MS) {
                let text = format!("must be from 1 to {SILENCE_MAX_MS} (15 minutes)");
                self.error(at, format!("timeouts.{field}"), text);
            }
        }
    }

    fn capabilities(&mut self, at: Subject<'_>, capabilities: &Capabilities) {
        let (context, output) = (capabilities.max_context_tokens, capabilities.max_output_tokens);
        for (field, tokens) in [("maxContextTokens", context), ("maxOutputTokens", output)] {
            if tokens == Some(0) {
                self.error(at, format!("capabilities.{field}"), "must be more than 0");
            }
        }
        if let (Some(context), Some(output)) = (context, output)
            && output > context
        {
            self.error(
                at,
                "capabilities.maxOutputTokens",
                format!("is more than maxContextTokens ({context})"),
            );
        }
        for level in capabilities.reasoning_levels.keys() {
            if !level.parse::<u8>().is_ok_and(|level| level <= 100) {
                let field = format!("capabilities.reasoningLevels.{level}");
                self.error(at, field, "a level is a whole number from 0 to 100");
            }
        }
    }

    fn fallbacks(&mut self, at: Subject<'_>, model: &Model) {
        for (index, fallback) in model.fallbacks.iter().enumerate() {
            let field = format!("fallbacks[{index}]");
            if fallback == at.name {
                self.error(at, field, "a model cannot be its own fallback");
            } else if model.fallbacks.iter().take(index).any(|earlier| earlier == fallback) {
                self.error(at, field, format!("\"{fallback}\" is listed twice"));
            } else {
                self.reference(at, &field, Kind::Model, fallback);
            }
        }
    }

    /// A cycle is harmless, because fallbacks of fallbacks are not followed, but it is probably not intended.
    fn fallback_cycles(&mut self) {
        let models = &self.catalog.models;
        let names: Vec<&str> = models.keys().map(String::as_str).collect();
        let next = |name: &str| {
            let fallbacks = models.get(name).into_iter().flat_map(|model| &model.fallbacks);
            fallbacks.map(String::as_str).filter(|fallback| *fallback != name).collect()
        };
        for cycle in cycles(&names, &next) {
            let Some(name) = cycle.first() else { continue };
            let at = Subject { kind: Kind::Model, name };
            let path = cycle.join(" → ");
            self.warning(
                at,
                "fallbacks",
                format!("{path}: a cycle; only the first model's own fallbacks are tried"),
            );
        }
    }

    pub(super) fn provider_options(&mut self, at: Subject<'_>, options: &Map<String, Value>) {
        for field in OWN_FIELDS.into_iter().filter(|field| options.contains_key(*field)) {
            self.error(
                at,
                format!("providerOptions.{field}"),
                "the runtime sets this field of the request itself",
            );
        }
    }
}

/// The error for the name of a provider. A crate of your own may register more than this program has.
fn unknown_provider(name: &str, known: &[&str], complete: bool) -> Option<String> {
    if !complete || known.contains(&name) {
        return None;
    }
    let near = nearest(name, known);
    let hint = match (name, near) {
        ("test", _) => "the built-in model is `demo`; ".to_owned(),
        (
            "openrouter" | "google" | "groq" | "ollama" | "deepseek" | "mistral" | "azure" | "llama.cpp"
            | "vllm",
            _,
        ) => "its API is that of `openai`, at a `baseUrl`; ".to_owned(),
        (_, Some(near)) => format!("did you mean \"{near}\"? "),
        _ => String::new(),
    };
    let mut known = known.to_vec();
    known.sort_by_key(|known| Some(*known) != near);
    let list = known.join(", ");
    Some(format!(
        "no provider \"{name}\"; {hint}there are {list}, and those that a crate of your own registers"
    ))
}
