//! Chat completions (`POST {base}/chat/completions`), as defined by OpenAI and offered by vLLM, llama.cpp, OpenRouter,
//! Azure and many others.
//!
//! * `request`: a [`ChatRequest`](super::ChatRequest) as bytes; `messages`: the history in it.
//! * `decoder`: the answer, streamed or whole, as deltas. `chunk` is its shape on the wire, `calls` finds the tool call
//!   that a piece belongs to, and `details` keeps the reasoning that is sent back.

mod calls;
pub(super) mod chunk;
mod decoder;
mod details;
pub(super) mod messages;
mod request;

pub use decoder::Decoder;
pub use request::{DEFAULT_BASE_URL, refuses_effort_with_tools, request};
