//! OpenAI's responses (`POST {base}/responses`), which OpenRouter, vLLM, llama.cpp and others offer too.
//! Except for background responses, the server stores nothing: a request contains the whole history, with the
//! encrypted reasoning.
//!
//! * `address`: servers that use this API by default. `request`: a
//!   [`ChatRequest`](crate::models::ChatRequest) as bytes; `input`: the history in it. `background`:
//!   responses that the server continues in the background.
//! * `decoder`: the response, streamed or whole, as deltas. `event`: its JSON. `items`: the item of each
//!   event.

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
