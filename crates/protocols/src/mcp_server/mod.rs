//! The server side of the Model Context Protocol: agents as tools.
//!
//! * `messages`: the envelope of messages, in both eras; `tools`: tools; `offers`: prompts and resources;
//!   `results`: results of calls; `content`: the outcome of a tool's call.
//! * `input`: questions to people; `state`: the signed state that clients return with the answers.

pub mod content;
pub mod input;
pub mod messages;
pub mod offers;
pub mod results;
pub mod state;
pub mod tools;
