//! The AI SDK's streams of UI messages.
//!
//! * `stream`: the stream; `tools`: calls in it; `message`: messages, derived from the stream; `request`:
//!   requests of pages; `answers`: their answers to waits.

pub mod answers;
pub mod message;
pub mod request;
pub mod stream;
mod tools;

#[cfg(test)]
mod tests;
