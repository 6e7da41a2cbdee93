//! Anthropic's messages (`POST {base}/v1/messages`).
//!
//! * `request`: a [`ChatRequest`](crate::models::ChatRequest) as bytes; `thinking`: whether and how much the
//!   model thinks; `messages`: the history in it.
//! * `decoder`: the response, streamed or whole, as deltas. `event`: its JSON.

pub(crate) mod decoder;
pub(crate) mod event;
pub(crate) mod messages;
pub(crate) mod request;
pub(crate) mod thinking;

pub use crate::models::anthropic::decoder::Decoder;
pub use crate::models::anthropic::request::{DEFAULT_BASE_URL, VERSION, request};
