//! OpenAI's responses (`POST {base}/responses`), which OpenRouter, vLLM, llama.cpp and others offer too. Nothing is left
//! with the server: a request brings the whole history, with the reasoning that the server encrypted.
//!
//! * `address`: which servers are asked this way unless a model says. `request`: a
//!   [`ChatRequest`](crate::models::ChatRequest) as bytes; `input`: the history in it.
//!   `background`: answers that the server goes on with by itself.
//! * `decoder`: the answer, streamed or whole, as deltas. `event` is its shape on the wire, `items` finds the item that an event
//!   is about.

pub(crate) mod address;
pub(crate) mod background;
pub(crate) mod decoder;
pub(crate) mod event;
pub(crate) mod input;
pub(crate) mod items;
pub(crate) mod request;

pub use crate::models::responses::address::speaks_responses;
pub(crate) use crate::models::responses::background::{Earlier, fetch, is_in_background, state};
pub use crate::models::responses::decoder::Decoder;
pub use crate::models::responses::request::request;
