//! Chat completions (`POST {base}/chat/completions`), as OpenAI defined them and vLLM, llama.cpp, OpenRouter, Azure
//! and many others speak them.
//!
//! * `request`: a [`ChatRequest`](super::ChatRequest) as bytes; `messages`: the history in it.
//! * `decoder`: the answer, streamed or whole, as deltas. `chunk` is its shape on the wire, `calls` tells which tool
//!   call a piece belongs to; `details` keeps the reasoning that is sent back.

mod calls;
pub(super) mod chunk;
mod decoder;
mod details;
pub(super) mod messages;
mod request;

pub use decoder::Decoder;
pub use request::{DEFAULT_BASE_URL, refuses_effort_with_tools, request};
