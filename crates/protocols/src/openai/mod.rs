//! OpenAI's APIs: chat completions, responses, conversations.
//!
//! * `chat_completions`, `completion_request`, and `completion_revision`: changes that its list makes.
//! * `responses` (with `response_items` and `response_events`) and `response_request`.
//! * `conversation_items`: conversations; `call_id`: calls that are left to clients; `item_id`: ids of items;
//!   `models`: agents as models; `errors`: the shape of errors.

pub mod call_id;
pub mod chat_completions;
pub mod completion_request;
pub mod completion_revision;
pub mod conversation_items;
pub mod errors;
pub mod item_id;
pub mod models;
mod response_events;
mod response_items;
pub mod response_request;
pub mod responses;

#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
mod tests_conversations;
#[cfg(test)]
mod tests_responses;
