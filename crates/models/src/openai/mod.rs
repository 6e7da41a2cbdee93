//! Chat completions (`POST {base}/chat/completions`), as defined by OpenAI and offered by vLLM, llama.cpp,
//! OpenRouter, Azure and many others.
//!
//! * `request`: a [`ChatRequest`](crate::ChatRequest) as bytes; `messages`: the history in it.
//!   `guard`: models that refuse a part of it.
//! * `decoder`: the response, streamed or whole, as deltas. `chunk`: its JSON. `calls`: the tool call of each
//!   piece. `details` and `thought`: reasoning that is sent back.

pub mod calls;
pub mod chunk;
pub mod decoder;
pub mod details;
pub mod guard;
pub mod messages;
pub mod request;
pub mod thought;

pub use crate::openai::decoder::Decoder;
pub use crate::openai::guard::{RefusedFeature, adjusted};
pub use crate::openai::request::{DEFAULT_BASE_URL, request};
pub use crate::openai::request::{bytes, effort};
