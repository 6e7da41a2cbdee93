//! Anthropic's messages (`POST {base}/v1/messages`).
//!
//! * `request`: a [`ChatRequest`](crate::ChatRequest) as bytes; `thinking`: whether and how much the
//!   model thinks; `messages`: the history in it.
//! * `decoder`: the response, streamed or whole, as deltas. `event`: its JSON.

pub mod decoder;
pub mod event;
pub mod messages;
pub mod request;
pub mod thinking;

pub use crate::anthropic::decoder::Decoder;
pub use crate::anthropic::request::{DEFAULT_BASE_URL, VERSION, request};
