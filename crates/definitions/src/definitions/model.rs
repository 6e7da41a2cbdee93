//! Models: where a prompt's requests go, what they cost, and what to try when they fail (spec §3).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::definitions::retry::Policy;
use crate::definitions::template;
use crate::definitions::variable::{is_default, is_true, yes};
use crate::limits;

/// A model that prompts refer to by name (spec §3.1).
///
/// Its address and key come only from the deployment (Worker variables and secrets), never from a thread, an
/// agent or a prompt. Otherwise a client that creates a thread could send the deployment's key elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Model {
    /// The model's name in prompts and fallbacks. Default: the name of its file.
    #[serde(default)]
    pub name: String,
    /// The provider: `openai` (responses or chat completions, at any address that supports one of them),
    /// `anthropic` (the messages API), `workers-ai` (models of Cloudflare, by the binding `AI`, without a
    /// key), `demo` (built in and deterministic, without a network), or a provider that your own crate
    /// registers.
    pub provider: Provider,
    /// For `openai`: the API to use. Default: `auto`, which means responses at OpenAI itself and chat
    /// completions at every other address, unless `baseUrl` ends with the path of one of them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub api: Api,
    /// The provider's id of the model.
    pub model: String,
    /// The address of the provider's API, such as `https://api.example.com/v1`. It may contain
    /// `{{env NAME}}`, with values of the deployment. While one of these values is unset, Bobbin does not use
    /// the model. There is one exception: if `baseUrl` is `{{env OPENAI_BASE_URL}}` and the key is
    /// `OPENAI_API_KEY` (or the same with `ANTHROPIC_…`), Bobbin uses the provider's own address. Default:
    /// the provider's own address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The name of the deployment's secret that contains the API key. Default: `OPENAI_API_KEY` or
    /// `ANTHROPIC_API_KEY`, by provider. With a `baseUrl` there is no default: set this field to send a key
    /// to another address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// The kind of model. Default: `chat`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub kind: ModelKind,
    /// For an embedding model: the length of a vector, for models that offer several lengths. Default: the
    /// model's own; 256 for `demo`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimensions: Option<usize>,
    /// For an embedding model: the text before each question. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query_prefix: Option<String>,
    /// For an embedding model: the text before each document text. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_prefix: Option<String>,
    /// For an embedding model: the number of texts in one request. Default: 64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    /// The price of a million input tokens, in USD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_price: Option<f64>,
    /// The price of a million output tokens, in USD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_price: Option<f64>,
    /// The price of a million input tokens from the provider's cache, in USD. Default: the input price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_price: Option<f64>,
    /// The model's capabilities.
    #[serde(default, skip_serializing_if = "is_default")]
    pub capabilities: Capabilities,
    /// The names of the models to try, in this order, if this one fails or cannot be used (no key). Their own
    /// fallbacks are not followed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<String>,
    /// The retry policy for failed requests. It applies if the run, the prompt and `bobbin.json` have no
    /// policy for models.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retry: Policy,
    /// The time limits for silence.
    #[serde(default, skip_serializing_if = "is_default")]
    pub timeouts: Timeouts,
    /// Options that are merged into the body of every request, such as `{"temperature": 0.2}`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub provider_options: Map<String, Value>,
}

/// The kind of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ModelKind {
    /// The model replies to messages. Prompts use it.
    #[default]
    Chat,
    /// The model computes vectors of texts. Memories use it.
    Embedding,
}

/// The time limits for the silence of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Timeouts {
    /// The longest wait for the start of the reply, in milliseconds, at most 900,000. Default: 120,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_chunk_ms: Option<u64>,
    /// The longest silence after the start of the reply, in milliseconds, at most 900,000. Default: 45,000.
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

/// One of OpenAI's APIs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Api {
    /// The API is chosen by the model's address.
    #[default]
    Auto,
    /// Chat completions.
    Chat,
    /// Responses.
    Responses,
}

/// The provider of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "String"))]
pub enum Provider {
    /// Responses or chat completions ([`Api`]), at any address that supports one of them.
    Openai,
    /// Anthropic's messages API.
    Anthropic,
    /// Cloudflare's models, by a binding. They need no address and no key.
    WorkersAi,
    /// The built-in deterministic model. It needs no network and no key.
    Demo,
    /// A provider that a crate registers (`bobbin::models::register`).
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

/// The capabilities of a model (spec §3.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Capabilities {
    /// The size of the context window, in tokens: prompt and reply together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_context_tokens: Option<u64>,
    /// The maximum length of one reply, in tokens, including reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// For chat completions: the server's name for the limit of a reply. Use `max_completion_tokens`,
    /// `max_tokens`, or `null` for a server without such a limit. Default: `max_completion_tokens` for OpenAI
    /// itself, `max_tokens` for every other server.
    #[serde(skip_serializing_if = "is_default")]
    pub output_limit_param: OutputLimitParam,
    /// If `true`, requests may contain images. Default: `false`.
    #[serde(skip_serializing_if = "is_default")]
    pub supports_images: bool,
    /// If `true`, the model can call tools. If `false`, no tools are sent. Default: `true`.
    #[serde(skip_serializing_if = "is_true")]
    pub supports_tool_calls: bool,
    /// If `true`, replies are streamed. If `false`, each reply is requested in one piece. Default: `true`.
    #[serde(skip_serializing_if = "is_true")]
    pub supports_streaming: bool,
    /// If `true`, Bobbin may request a reply again after a part of it was shown. Clients then receive
    /// `message_reset`. If `false`, the run fails when a reply breaks off after its first part. Default:
    /// `true`.
    #[serde(skip_serializing_if = "is_true")]
    pub restartable: bool,
    /// If `true`, the model can be required to reply in JSON. Default: `false`.
    #[serde(skip_serializing_if = "is_default")]
    pub supports_json_mode: bool,
    /// The provider's names for levels of reasoning effort, by level from `"0"` to `"100"`. `null` turns
    /// reasoning off.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub reasoning_levels: BTreeMap<String, Option<String>>,
}

/// The name of the reply limit in chat completions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Option<OutputLimitName>", into = "Option<OutputLimitName>")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "Option<OutputLimitName>"))]
pub enum OutputLimitParam {
    /// The name is chosen by the model's address.
    #[default]
    ByAddress,
    /// The given name.
    Named(OutputLimitName),
    /// The server has no such limit.
    None,
}

/// A name of the reply limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum OutputLimitName {
    /// OpenAI's current name.
    MaxCompletionTokens,
    /// The name that most other servers use.
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
            reasoning_levels: BTreeMap::new(),
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
