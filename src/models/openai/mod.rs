//! Chat completions (`POST {base}/chat/completions`), as OpenAI defined them and vLLM, llama.cpp, OpenRouter, Azure
//! and many others speak them.
//!
//! * `request`: a [`ChatRequest`](super::ChatRequest) as bytes; `messages`: the history in it.
//! * `decoder`: the answer, streamed or whole, as deltas. `chunk` is its shape on the wire, `calls` tells which tool
//!   call a piece belongs to.

mod calls;
mod chunk;
mod decoder;
mod messages;
mod request;

pub use decoder::Decoder;
pub use request::{Answer, DEFAULT_BASE_URL, request};
