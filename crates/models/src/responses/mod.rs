//! OpenAI's responses (`POST {base}/responses`), which OpenRouter, vLLM, llama.cpp and others offer too.
//! Except for background responses, the server stores nothing: a request contains the whole history, with the
//! encrypted reasoning.
//!
//! * `address`: servers that use this API by default. `request`: a
//!   [`ChatRequest`](crate::ChatRequest) as bytes; `input`: the history in it. `background`:
//!   responses that the server continues in the background.
//! * `decoder`: the response, streamed or whole, as deltas. `event`: its JSON. `items`: the item of each
//!   event.

pub mod background;
pub mod decoder;
pub mod event;
pub mod input;
pub mod items;
pub mod request;

pub use crate::responses::background::{EarlierResponse, fetch, is_in_background, state};
pub use crate::responses::decoder::Decoder;
pub use crate::responses::request::request;
pub use bobbin_definitions::definitions::responses_api::speaks_responses;
