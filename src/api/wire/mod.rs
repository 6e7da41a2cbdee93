//! The protocols of clients that people already have, made of the feed of a run ([`crate::engine::feed`]). Pure: frames in,
//! text out. The object of a thread knows none of them; the Worker's bridge calls them.
//!
//! * `sse`: server-sent events, read and written. `ui_stream`: the stream of the AI SDK. `ui_message`: its messages, made of
//!   the same stream. `ui_request`: what its pages send. `ui_answers`: what they answer, against what was asked.

pub mod sse;
pub mod ui_answers;
pub mod ui_message;
pub mod ui_request;
pub mod ui_stream;
mod ui_tools;

#[cfg(test)]
mod tests;
