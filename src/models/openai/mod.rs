//! Chat completions (`POST {base}/chat/completions`), as defined by OpenAI and offered by vLLM, llama.cpp,
//! OpenRouter, Azure and many others.
//!
//! * `request`: a [`ChatRequest`](crate::models::ChatRequest) as bytes; `messages`: the history in it.
//!   `guard`: models that refuse a part of it.
//! * `decoder`: the response, streamed or whole, as deltas. `chunk`: its JSON. `calls`: the tool call of each
//!   piece. `details` and `thought`: reasoning that is sent back.

pub(crate) mod calls;
pub(crate) mod chunk;
pub(crate) mod decoder;
pub(crate) mod details;
pub(crate) mod guard;
pub(crate) mod messages;
pub(crate) mod request;
pub(crate) mod thought;

pub use crate::models::openai::decoder::Decoder;
pub(crate) use crate::models::openai::guard::{Refused, adjusted};
pub use crate::models::openai::request::{DEFAULT_BASE_URL, refuses_effort_with_tools, request};
pub(crate) use crate::models::openai::request::{bytes, effort};
