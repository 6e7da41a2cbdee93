//! Providers of models: requests, decoding of streams, and failures. They reach the network through the
//! call that they receive. The engine (`engine/model/provider_call`) supervises them and receives the reply.
//!
//! * `provider`: providers by name. `registry`: native functions by name. `call`: the input of a provider. `usable`: whether a model can be used in
//!   this deployment. `address`: the address of an API. `http`, `ai`: requests over the network, and to
//!   Workers AI.
//! * [`openai`]: chat completions, any base URL. [`responses`]: OpenAI's other API. [`anthropic`]: Anthropic's
//!   messages. `workers_ai`: Cloudflare's models. [`demo`]: the deterministic built-in model without network.
//! * Requests. `fit`: requirements of every provider. `cached_json`: parts that later requests send
//!   again. `writing`: bodies that are written as text. `size`: number of tokens. `reasoning`: how much
//!   a model reasons. `literal`: texts that arrive in pieces and are sent back.
//! * Responses. `body`, [`sse`], `decoding`, `lenient`: parsing. `surrogates`: split characters are joined.
//!   `reply`: assembles a [`Reply`]. `response`: the provider's id of it.
//! * [`failure`]: errors and the reaction to them. `error_body`: the body of a failed response.
//!   `backoff`: pauses.

#![forbid(unsafe_code)]

pub mod address;
pub mod ai;
pub mod anthropic;
pub mod backoff;
pub mod body;
pub mod cached_json;
pub mod call;
pub mod decoding;
pub mod demo;
pub mod error_body;
pub mod failure;
pub mod fit;
pub mod http;
pub mod lenient;
pub mod literal;
pub mod openai;
pub mod provider;
pub mod reasoning;
pub mod registry;
pub mod reply;
pub mod response;
pub mod responses;
pub mod size;
pub mod sse;
pub mod surrogates;
pub mod usable;
pub mod workers_ai;
pub mod writing;

pub use crate::backoff::backoff_us;
pub use crate::cached_json::CachedJson;
pub use crate::call::{Chunks, ProviderCalls};
pub use crate::call::{ProviderCall, StreamedResponse};
pub use crate::failure::TimeoutKind;
pub use crate::fit::{CONTINUE, fit};
pub use crate::provider::{Decoder, Native, providers, register, run, start};
pub use crate::reasoning::{Payload, PositionedBlock, Reasoning};
pub use crate::reply::ReplyBuilder;
pub use crate::usable::{lacks, usable};
pub use bobbin_definitions::definitions::model::{ResponseMode, Usage};
pub use bobbin_definitions::definitions::prompt::ToolChoice;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use bobbin_definitions::definitions::message::{ToolCall, ToolStatus};
use bobbin_definitions::definitions::model::{Api, Capabilities, OutputLimitParam};
use bobbin_definitions::definitions::opaque::Opaque;
use bobbin_definitions::definitions::prompt::ResponseFormat;
use bobbin_definitions::definitions::schema;

/// One request to a model, independent of the provider's format (spec §4.2).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatRequest {
    /// The provider's id of the model.
    pub model: String,
    /// System prompt first, then history, oldest first. Calls and results are paired, and the last
    /// message is not an assistant's: the engine's `context` ensures that.
    pub messages: Vec<CachedJson<ChatMessage>>,
    /// Functions that the model may call; empty omits them.
    pub tools: CachedJson<Vec<ToolDefinition>>,
    /// Whether it must, may or must not call a tool.
    pub tool_choice: ToolChoice,
    /// Whether one reply may carry several calls.
    pub parallel_tool_calls: bool,
    /// How much the model reasons.
    pub reasoning: Reasoning,
    /// Whether the reply's text must be JSON.
    pub json: Option<JsonMode>,
    /// Maximum output tokens, if the model's definition limits them.
    pub max_output_tokens: Option<u64>,
    /// The API to use, if the provider has two.
    pub api: Api,
    /// The name of the output limit, if the provider has several.
    pub output_limit_param: OutputLimitParam,
    /// Merged into the body last, key by key; the prompt's override the model's. `null` removes a key
    /// from the body.
    pub options: Map<String, Value>,
    /// Stable id of the thread, for sticky routing and caching.
    pub user: Option<String>,
}

/// A reply whose text must be JSON (spec §4.2, `responseFormat`).
#[derive(Clone, Debug, PartialEq)]
pub struct JsonMode {
    /// JSON Schema of the reply, already made strict (spec §5.4); `None` for any object.
    pub schema: Option<Value>,
    /// Whether every property is required, so that the provider's strict mode can be used.
    pub strict: bool,
}

impl JsonMode {
    /// The mode for a prompt's response format. `None` when the model does not support JSON output.
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
    /// A message of the user, or of the other side.
    User(Vec<Part>),
    /// A reply of this side: text, calls, or both.
    Assistant {
        /// Text; empty when there is none.
        content: String,
        /// The calls, in the order received.
        tool_calls: Vec<ToolCall>,
        /// Data to send back to its provider. Present only when this provider, model and prompt wrote
        /// it.
        payload: Vec<PositionedBlock>,
    },
    /// The result of one call.
    Tool {
        /// Id of its call.
        call_id: String,
        /// Name of the tool.
        name: String,
        /// The text of the result.
        content: String,
        /// Whether the tool succeeded.
        status: ToolStatus,
        /// Images among the tool's files.
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
    /// Whether every property is required, so that the provider's strict mode can be used.
    pub strict: bool,
}

/// A piece of a streamed response (spec §4.5).
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    /// Text of the reply.
    Text(String),
    /// Text of the model's reasoning.
    Reasoning(String),
    /// A call begins; `index` is its position in the reply. Sent again for the same position when the
    /// provider sends the id or the name later, or the name in pieces: empty fields are filled in, and a
    /// name may be continued.
    CallStart {
        /// Position in the reply.
        index: usize,
        /// The provider's id, empty when it sends none.
        id: String,
        /// The tool's name, as far as it is known.
        name: String,
    },
    /// More of a call's arguments, as JSON text.
    CallArguments {
        /// Position in the reply.
        index: usize,
        /// The next piece.
        text: String,
    },
    /// Data of a call to send back to the provider.
    CallExtra {
        /// Position in the reply.
        index: usize,
        /// The data, unchanged.
        extra: Opaque,
    },
    /// Data of the reply to send back to the provider. It belongs after the text and the calls so far.
    Payload(Opaque),
    /// Tokens of the request so far; the last delta replaces earlier ones.
    Usage(Usage),
    /// Why the model stopped.
    Finish(FinishReason),
    /// The provider's id and model of its response, for traces and the log. Sent again when one of the
    /// two comes later.
    Response {
        /// The response's id; empty when unknown.
        id: String,
        /// The model that replies, which may be newer than the requested one; empty when unknown.
        model: String,
    },
}

impl Delta {
    /// Whether it carries part of the reply. Only such a delta counts as the first chunk (spec §4.5).
    pub fn is_payload(&self) -> bool {
        !matches!(self, Delta::Usage(_) | Delta::Finish(_) | Delta::Response { .. })
    }
}

/// Why a model stopped (spec §4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// It finished.
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

/// A whole reply, assembled from its deltas.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// The text.
    pub content: String,
    /// Reasoning text, if the provider sends it.
    pub reasoning: String,
    /// The calls, in the order received. Ids may be empty or repeated; the engine replaces those.
    pub tool_calls: Vec<ToolCall>,
    /// Data to send back to its provider.
    pub payload: Payload,
    /// Why the model stopped, if reported.
    pub finish_reason: Option<FinishReason>,
    /// Tokens, if reported.
    pub usage: Option<Usage>,
}

/// The kind of failure that a provider reported (spec §4.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderCode {
    /// HTTP 429.
    RateLimit,
    /// 401, 403.
    AuthError,
    /// 400 and other errors in our request.
    InvalidRequest,
    /// 5xx, a broken connection, or an incomplete stream.
    ServerError,
    /// No first chunk, or a stall.
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
    /// HTTP status of the response, or the one in an error inside a stream.
    pub status: Option<u16>,
    /// The pause that the provider requests, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// Whether the connection failed or broke, so that the provider's own reason is unknown.
    pub is_network: bool,
    /// The provider's message, without our credentials; at most 1 KB once [prepared for
    /// display](ProviderError::told).
    pub message: String,
}
