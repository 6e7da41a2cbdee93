//! Providers of models: what a request looks like, how a stream is decoded, what a failure means. They reach the outside
//! through the call that they are given; the engine (`engine/provider_call`) supervises it and receives the reply.
//!
//! * `provider`: the registry. `call`: what a provider is given. `usable`: whether a model can be asked in this deployment.
//!   `address`: the address of an API.
//! * [`openai`]: chat completions, any base URL. [`responses`]: OpenAI's other API. [`anthropic`]: Anthropic's messages.
//!   `workers_ai`: Cloudflare's models. [`demo`]: the deterministic built-in model that needs no network. `embedding`: vectors of texts.
//! * Requests. `fit`: what every provider requires of a history. `cached_json`: parts that later requests send again.
//!   `writing`: bodies that are written as text.
//!   `size`: how many tokens they have. `reasoning`: how much a model is asked to reason. `literal`: texts that arrive in pieces and are sent back.
//! * Answers. `body`, [`sse`], `decoding`, `lenient`: an answer is taken apart. `halves`: characters that were cut are joined. `reply`: a
//!   [`Reply`] is put together. `response`: what the provider calls it.
//! * [`failure`]: what went wrong and what to do about it. `error_body`: what the body of a failing answer says. `backoff`: pauses.

pub(crate) mod address;
pub mod anthropic;
pub(crate) mod backoff;
pub(crate) mod body;
pub(crate) mod cached_json;
pub(crate) mod call;
pub(crate) mod decoding;
pub mod demo;
pub(crate) mod embedding;
pub(crate) mod error_body;
pub mod failure;
pub(crate) mod fit;
pub(crate) mod halves;
pub(crate) mod lenient;
pub(crate) mod literal;
pub mod openai;
pub(crate) mod provider;
pub(crate) mod reasoning;
pub(crate) mod reply;
pub(crate) mod response;
pub mod responses;
pub(crate) mod size;
pub mod sse;
pub(crate) mod usable;
pub(crate) mod workers_ai;
pub(crate) mod writing;

pub use crate::models::backoff::backoff_us;
pub use crate::models::cached_json::CachedJson;
pub(crate) use crate::models::call::{Chunks, ProviderCalls};
pub use crate::models::call::{Incoming, ProviderCall};
pub use crate::models::failure::Silence;
pub use crate::models::fit::{CONTINUE, fit};
pub use crate::models::provider::{Decoder, Native, providers, register, run, start};
pub use crate::models::reasoning::{Payload, Placed, Reasoning};
pub use crate::models::reply::ReplyBuilder;
pub use crate::spec::model::{Answer, Usage};
pub use crate::spec::prompt::ToolChoice;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::spec::message::{ToolCall, ToolStatus};
use crate::spec::model::{Api, Capabilities, OutputLimitParam};
use crate::spec::opaque::Opaque;
use crate::spec::prompt::ResponseFormat;
use crate::spec::schema;

/// One request to a model, in no provider's format (spec §4.2).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatRequest {
    /// The provider's id of the model.
    pub model: String,
    /// System prompt first, then history, oldest first. Calls and results are paired, and the last message is not
    /// an assistant's: the engine's `context` sees to that.
    pub messages: Vec<CachedJson<ChatMessage>>,
    /// Functions the model may call; empty sends none.
    pub tools: CachedJson<Vec<ToolDefinition>>,
    /// Whether it must, may or must not call one.
    pub tool_choice: ToolChoice,
    /// Whether one reply may carry several calls.
    pub parallel_tool_calls: bool,
    /// How much it is to reason.
    pub reasoning: Reasoning,
    /// Whether the answer's text must be JSON.
    pub json: Option<JsonMode>,
    /// Tokens of the answer at most, where the model's definition says so.
    pub max_output_tokens: Option<u64>,
    /// Which API is spoken, where the provider has two.
    pub api: Api,
    /// What that limit is called, where the provider has several names.
    pub output_limit_param: OutputLimitParam,
    /// Merged into the body last, key by key; the model's under the prompt's. `null` takes a key out of the body.
    pub options: Map<String, Value>,
    /// Stable id of the thread, for sticky routing and caching.
    pub user: Option<String>,
}

/// An answer whose text must be JSON (spec §4.2, `responseFormat`).
#[derive(Clone, Debug, PartialEq)]
pub struct JsonMode {
    /// JSON Schema of the answer, already made strict (spec §5.4); `None` for any object.
    pub schema: Option<Value>,
    /// Whether every property is required, so that the provider's strict mode may be asked for.
    pub strict: bool,
}

impl JsonMode {
    /// What a prompt asks of a model. One that cannot be held to JSON is asked for a plain answer.
    pub fn of(wanted: Option<&ResponseFormat>, capabilities: &Capabilities) -> Option<JsonMode> {
        match wanted {
            Some(ResponseFormat::Json { schema }) if capabilities.supports_json_mode => {
                let (schema, strict) = schema.as_ref().map(schema::strict).unzip();
                Some(JsonMode { schema, strict: strict.unwrap_or_default() })
            }
            _ => None,
        }
    }
}

/// A message of a request (spec §4.3).
#[derive(Clone, Debug, PartialEq)]
pub enum ChatMessage {
    /// The rendered prompt.
    System(String),
    /// What the person (or the other side) said.
    User(Vec<Part>),
    /// What this side said: text, calls, or both.
    Assistant {
        /// Text, empty when there was none.
        content: String,
        /// The calls, in the order received.
        tool_calls: Vec<ToolCall>,
        /// What its provider wants back with it. Only there when this provider, model and prompt wrote it.
        payload: Vec<Placed>,
    },
    /// The result of one call.
    Tool {
        /// Id of the call it answers.
        call_id: String,
        /// Name of the tool.
        name: String,
        /// The text of the result.
        content: String,
        /// Whether the tool worked.
        status: ToolStatus,
        /// Images among the files that the tool gave.
        images: Vec<Part>,
    },
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Plain text.
    Text(String),
    /// An image, base64, with its media type.
    Image {
        /// `image/png`, …
        media_type: String,
        /// Base64 without a prefix.
        data: String,
    },
}

/// A function that the model may call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDefinition {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments, already made strict (spec §5.4).
    pub parameters: Value,
    /// Whether every property is required, so that the provider's strict mode may be asked for.
    pub strict: bool,
}

/// A piece of a streamed answer (spec §4.5).
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    /// Text of the answer.
    Text(String),
    /// Text of the model's reasoning.
    Reasoning(String),
    /// A call begins; `index` is its place in the reply. Comes again for the same place when the provider tells the id
    /// or the name only later, or the name in pieces: what was empty is filled in, and a name may go on.
    CallStart {
        /// Place in the reply.
        index: usize,
        /// The provider's id, empty when it sends none.
        id: String,
        /// The tool's name, as far as it is known.
        name: String,
    },
    /// More of a call's arguments, as JSON text.
    CallArguments {
        /// Place in the reply.
        index: usize,
        /// The next piece.
        text: String,
    },
    /// What the provider wants back with a call.
    CallExtra {
        /// Place in the reply.
        index: usize,
        /// As it was sent.
        extra: Opaque,
    },
    /// What the provider wants back with the reply; it stands behind the text and the calls so far.
    Payload(Opaque),
    /// What the request cost so far; the last one counts.
    Usage(Usage),
    /// Why the model stopped.
    Finish(FinishReason),
    /// What the provider calls its answer. Comes again when one of the two is told only later; for traces and the log.
    Response {
        /// The answer's id; empty when it is not told.
        id: String,
        /// The model that answers, which may be a newer one than was asked for; empty when it is not told.
        model: String,
    },
}

impl Delta {
    /// Whether it carries part of the answer; only such a delta counts as the first chunk (spec §4.5).
    pub fn is_payload(&self) -> bool {
        !matches!(self, Delta::Usage(_) | Delta::Finish(_) | Delta::Response { .. })
    }
}

/// Why a model stopped (spec §4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// It was done.
    Stop,
    /// It called tools.
    ToolCalls,
    /// It ran into the output limit.
    Length,
    /// The provider refused the content.
    ContentFilter,
    /// Anything else.
    Other,
}

/// A whole reply, put together from its deltas.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// The text.
    pub content: String,
    /// Reasoning text, if the provider shows it.
    pub reasoning: String,
    /// The calls, in the order received. Ids may be empty or repeated: the engine replaces such.
    pub tool_calls: Vec<ToolCall>,
    /// What the provider wants back with it.
    pub payload: Payload,
    /// Why the model stopped, when it said so.
    pub finish_reason: Option<FinishReason>,
    /// Tokens, when the provider told.
    pub usage: Option<Usage>,
}

/// What kind of failure a provider reported (spec §4.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderCode {
    /// HTTP 429.
    RateLimit,
    /// 401, 403.
    AuthError,
    /// 400 and other mistakes of ours.
    InvalidRequest,
    /// 5xx, a broken connection, a stream that broke off.
    ServerError,
    /// No first chunk, or silence.
    Timeout,
    /// Content refused.
    ContentFilter,
    /// Too many tokens.
    ContextLength,
    /// Anything else.
    Unknown,
}

/// A failed request to a provider.
#[derive(Clone, Debug, PartialEq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct ProviderError {
    /// Its kind.
    pub code: ProviderCode,
    /// HTTP status of the answer, or the one that an error inside a stream names.
    pub status: Option<u16>,
    /// The provider's wish, milliseconds.
    pub retry_after_ms: Option<u64>,
    /// Whether there was no connection or it broke, so that the provider has not said what went wrong.
    pub is_network: bool,
    /// What it said, without our credentials; at most 1 KB once it is [told](ProviderError::told).
    pub message: String,
}
