//! Anthropic's messages (`POST {base}/v1/messages`).
//!
//! * `request`: a [`ChatRequest`](super::ChatRequest) as bytes; `thinking`: whether and how much the model should think;
//!   `messages`: the history in it.
//! * `decoder`: the answer, streamed or whole, as deltas. `event` is its shape on the wire.

mod decoder;
mod event;
mod messages;
mod request;
mod thinking;

pub use decoder::Decoder;
pub use request::{DEFAULT_BASE_URL, VERSION, request};
