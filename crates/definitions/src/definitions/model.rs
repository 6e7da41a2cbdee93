//! Models: where a prompt's requests go, what they cost, and what to try when they fail (spec §3).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::definitions::retry::Policy;
use crate::definitions::template;
use crate::definitions::variable::{is_default, is_true, yes};
use crate::limits;
use crate::sorted::SortedMap;

/// A model that prompts refer to by name (spec §3.1).
///
/// Its address and key come from the deployment alone (Worker variables and secrets), never from a thread, agent or
/// prompt: otherwise whoever creates a thread could send the deployment's key elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Model {
    /// Its name in prompts and fallbacks; the file's name unless given.
    #[serde(default)]
    pub name: String,
    /// What answers its requests: `openai` (responses or chat completions, at any address that speaks one of them),
    /// `anthropic` (its messages), `workers-ai` (models of Cloudflare's, by the binding `AI`, without a key), `demo` (built-in
    /// and deterministic, needs no network), or what a crate of your own registers.
    pub provider: Provider,
    /// Of `openai`: which of its two APIs is spoken. Unless given, responses at OpenAI itself and chat completions at every
    /// other address.
    #[serde(default, skip_serializing_if = "is_default")]
    pub api: Api,
    /// The provider's id of the model.
    pub model: String,
    /// Where the provider's API is, such as `https://api.example.com/v1`. May hold `{{env NAME}}`, resolved from the
    /// deployment. While a name in it is unset the model is not used, with one exception: where `baseUrl` is
    /// `{{env OPENAI_BASE_URL}}` and the key that of `OPENAI_API_KEY` (or both of `ANTHROPIC_…`), the provider's own
    /// address is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Name of the deployment's secret that holds the API key; the provider's usual name (`OPENAI_API_KEY`,
    /// `ANTHROPIC_API_KEY`) unless
    /// given. With a `baseUrl` there is no usual name: a key goes to another address only where this says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// What it gives: answers unless this says otherwise.
    #[serde(default, skip_serializing_if = "is_default")]
    pub kind: ModelKind,
    /// Of an embedding model: numbers of a vector, where it can give several lengths. 256 of `demo`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimensions: Option<usize>,
    /// Of an embedding model: what stands before a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query_prefix: Option<String>,
    /// Of an embedding model: what stands before a text in which answers are looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_prefix: Option<String>,
    /// Of an embedding model: texts of one request; 64 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    /// USD for a million input tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_price: Option<f64>,
    /// USD for a million output tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_price: Option<f64>,
    /// USD for a million input tokens that came from the provider's cache; the input price unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_price: Option<f64>,
    /// What it can do.
    #[serde(default, skip_serializing_if = "is_default")]
    pub capabilities: Capabilities,
    /// Names of the models to try, in this order, once this one has failed or cannot be used (no key). Their own
    /// fallbacks are not followed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<String>,
    /// How a request that failed is made again, where neither the run, the prompt nor the folder says.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retry: Policy,
    /// How long it may be silent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub timeouts: Timeouts,
    /// Merged into the body of every request, such as `{"temperature": 0.2}`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub provider_options: Map<String, Value>,
}

/// What a model gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ModelKind {
    /// Answers, for prompts.
    #[default]
    Chat,
    /// Vectors of texts, for memories.
    Embedding,
}

/// How long a model may be silent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Timeouts {
    /// Milliseconds until its answer begins; 120,000 unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_chunk_ms: Option<u64>,
    /// Milliseconds of silence in the middle of its answer; 45,000 unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stall_ms: Option<u64>,
}

impl Timeouts {
    /// Microseconds until its answer begins.
    pub fn first_chunk_us(&self) -> i64 {
        us(self.first_chunk_ms, limits::FIRST_CHUNK_US)
    }

    /// Microseconds of silence in the middle of its answer.
    pub fn stall_us(&self) -> i64 {
        us(self.stall_ms, limits::STALL_US)
    }
}

fn us(ms: Option<u64>, usual_us: i64) -> i64 {
    ms.and_then(|ms| i64::try_from(ms).ok()?.checked_mul(1000)).unwrap_or(usual_us)
}

/// Which API of OpenAI's is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Api {
    /// What the server at the model's address is known to want.
    #[default]
    Auto,
    /// Chat completions.
    Chat,
    /// Responses.
    Responses,
}

/// What answers requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "String"))]
pub enum Provider {
    /// Responses or chat completions ([`Api`]), at any address that speaks one of them.
    Openai,
    /// Anthropic's messages.
    Anthropic,
    /// Cloudflare's models, by a binding: no address and no key.
    WorkersAi,
    /// The built-in deterministic model; needs no network and no key.
    Demo,
    /// One that a crate registers (`bobbin::models::register`).
    Registered(String),
}

impl From<String> for Provider {
    fn from(name: String) -> Provider {
        match name.as_str() {
            "openai" => Provider::Openai,
            "anthropic" => Provider::Anthropic,
            "workers-ai" => Provider::WorkersAi,
            "demo" => Provider::Demo,
            _ => Provider::Registered(name),
        }
    }
}

impl From<Provider> for String {
    fn from(provider: Provider) -> String {
        match provider {
            Provider::Registered(name) => name,
            built_in => built_in.name().to_owned(),
        }
    }
}

impl Provider {
    /// Its name in definitions.
    pub fn name(&self) -> &str {
        match self {
            Provider::Openai => "openai",
            Provider::Anthropic => "anthropic",
            Provider::WorkersAi => "workers-ai",
            Provider::Demo => "demo",
            Provider::Registered(name) => name,
        }
    }

    /// The variable that usually holds another address of it.
    pub const fn base_url_env(&self) -> Option<&'static str> {
        match self {
            Provider::Openai => Some("OPENAI_BASE_URL"),
            Provider::Anthropic => Some("ANTHROPIC_BASE_URL"),
            Provider::WorkersAi | Provider::Demo | Provider::Registered(_) => None,
        }
    }

    /// The secret that holds its key unless a model names another.
    pub const fn key_env(&self) -> Option<&'static str> {
        match self {
            Provider::Openai => Some("OPENAI_API_KEY"),
            Provider::Anthropic => Some("ANTHROPIC_API_KEY"),
            Provider::WorkersAi | Provider::Demo | Provider::Registered(_) => None,
        }
    }
}

/// What a model can do (spec §3.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Capabilities {
    /// Tokens of prompt and answer together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_context_tokens: Option<u64>,
    /// Tokens of one answer, reasoning included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// What chat completions call the limit of an answer: `max_completion_tokens`, `max_tokens`, or `null` for servers that
    /// know neither. Unless given the former for OpenAI itself and the latter for every other server.
    #[serde(skip_serializing_if = "is_default")]
    pub output_limit_param: OutputLimitParam,
    /// Whether user messages may carry images.
    #[serde(skip_serializing_if = "is_default")]
    pub supports_images: bool,
    /// Whether it can call tools; without it no tools are sent.
    #[serde(skip_serializing_if = "is_true")]
    pub supports_tool_calls: bool,
    /// Whether its answers can be streamed.
    #[serde(skip_serializing_if = "is_true")]
    pub supports_streaming: bool,
    /// Whether an answer of which a part was shown may be begun anew, which clients are told with `message_reset`.
    /// Otherwise the run fails once a stream breaks off after its first words.
    #[serde(skip_serializing_if = "is_true")]
    pub restartable: bool,
    /// Whether it can be held to JSON.
    #[serde(skip_serializing_if = "is_default")]
    pub supports_json_mode: bool,
    /// The provider's words for efforts of reasoning, by level from `"0"` to `"100"`; `null` switches it off.
    #[serde(skip_serializing_if = "SortedMap::is_empty")]
    pub reasoning_levels: SortedMap<String, Option<String>>,
}

/// What chat completions call the limit of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Option<OutputLimitName>", into = "Option<OutputLimitName>")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "Option<OutputLimitName>"))]
pub enum OutputLimitParam {
    /// What the server at the model's address is known to take.
    #[default]
    ByAddress,
    /// This.
    Named(OutputLimitName),
    /// It knows none.
    None,
}

/// A name of the limit of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum OutputLimitName {
    /// OpenAI's name of today.
    MaxCompletionTokens,
    /// The one that most other servers know.
    MaxTokens,
}

impl From<Option<OutputLimitName>> for OutputLimitParam {
    fn from(name: Option<OutputLimitName>) -> OutputLimitParam {
        name.map_or(OutputLimitParam::None, OutputLimitParam::Named)
    }
}

impl From<OutputLimitParam> for Option<OutputLimitName> {
    fn from(param: OutputLimitParam) -> Option<OutputLimitName> {
        match param {
            OutputLimitParam::Named(name) => Some(name),
            OutputLimitParam::ByAddress | OutputLimitParam::None => None,
        }
    }
}

impl Default for Capabilities {
    fn default() -> Capabilities {
        Capabilities {
            max_context_tokens: None,
            max_output_tokens: None,
            output_limit_param: OutputLimitParam::ByAddress,
            supports_images: false,
            supports_tool_calls: yes(),
            supports_streaming: yes(),
            restartable: yes(),
            supports_json_mode: false,
            reasoning_levels: SortedMap::new(),
        }
    }
}

impl Model {
    /// The address from `baseUrl`, without a slash at its end. `None`: the provider's own.
    /// `deployment` looks a name up among the deployment's variables only.
    pub fn base_url(&self, deployment: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let set = |name: &str| deployment(name).filter(|value| !value.trim().is_empty());
        let url = template::render(self.base_url.as_deref()?, &set).ok()?;
        let url = url.trim().trim_end_matches('/');
        (!url.is_empty()).then(|| url.to_owned())
    }

    /// How it is to answer.
    pub fn answer(&self) -> ResponseMode {
        if self.capabilities.supports_streaming { ResponseMode::Stream } else { ResponseMode::Whole }
    }

    /// Name of the secret that holds its API key.
    pub fn key_env(&self) -> Option<&str> {
        match (&self.api_key_env, &self.base_url) {
            (Some(name), _) => Some(name),
            (None, None) => self.provider.key_env(),
            (None, Some(_)) => None,
        }
    }

    /// Whether the provider's own address is meant while the variable that `baseUrl` consists of is unset: both it and the
    /// key's have the names that belong to that provider.
    pub fn means_default(&self, variable: &str) -> bool {
        let url = self.base_url.as_deref().map(str::trim).unwrap_or_default();
        let whole = url.starts_with("{{") && url.find("}}").is_some_and(|end| end + 2 == url.len());
        whole
            && self.provider.base_url_env() == Some(variable)
            && self.key_env().is_none_or(|key| self.provider.key_env() == Some(key))
    }

    /// USD that a request cost; input that was read from a cache or written to one apart. `None` when the model names no price.
    pub fn cost(&self, usage: &Usage) -> Option<f64> {
        if self.input_price.is_none() && self.output_price.is_none() {
            return None;
        }
        let input = self.input_price.unwrap_or(0.0);
        let cached = self.cached_price.unwrap_or(input);
        let output = self.output_price.unwrap_or(0.0);
        let cached_tokens = usage.cached_tokens.min(usage.input_tokens);
        let dollars = |tokens: u64, price: f64| tokens as f64 * price / 1e6;
        Some(
            dollars(usage.input_tokens - cached_tokens, input)
                // What is written to a cache costs a quarter more.
                + dollars(usage.written_tokens.min(usage.input_tokens - cached_tokens), input / 4.0)
                + dollars(cached_tokens, cached)
                + dollars(usage.output_tokens, output),
        )
    }
}

/// How an answer is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseMode {
    /// As server-sent events, token by token.
    Stream,
    /// As one JSON body, for models whose `supportsStreaming` is false (spec §3.2).
    Whole,
}

impl ResponseMode {
    /// What the request's `accept` says.
    pub const fn media_type(self) -> &'static str {
        match self {
            ResponseMode::Stream => "text/event-stream",
            ResponseMode::Whole => "application/json",
        }
    }
}

/// Tokens of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Prompt tokens, cached ones included.
    pub input_tokens: u64,
    /// Prompt tokens that came from the provider's cache.
    pub cached_tokens: u64,
    /// Prompt tokens that were written to the provider's cache, where that costs a quarter more (Anthropic).
    #[serde(default)]
    pub written_tokens: u64,
    /// Generated tokens, reasoning included.
    pub output_tokens: u64,
    /// Of these, spent on reasoning.
    pub reasoning_tokens: u64,
}

/// Whether a model refuses functions together with a reasoning effort in chat completions: OpenAI's from
/// gpt-5.4 on, some of which have a default effort.
pub fn refuses_effort_with_tools(model: &str) -> bool {
    let Some(version) = model.strip_prefix("gpt-") else { return false };
    let end = version.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(version.len());
    let mut numbers = version.get(..end).unwrap_or_default().split('.').map(|part| part.parse::<u32>().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(5), Some(minor)) => minor >= 4,
        // gpt-4o has a letter after its number.
        (Some(major), _) => major >= 6,
        _ => false,
    }
}
