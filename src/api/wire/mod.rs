//! The protocols of clients that people already have, made of the feed of a run ([`crate::engine::feed`]). Pure: frames in,
//! text out. The object of a thread knows none of them; the Worker's bridge calls them.
//!
//! * `sse`: server-sent events, read and written. `ui_stream`: the stream of the AI SDK. `ui_message`: its messages, made of
//!   the same stream. `ui_request`: what its pages send. `ui_answers`: what they answer, against what was asked
//!   (`asked`: waits, as answers name them).
//! * `said`: what a run says, for all that follow; `encode`: what the bridge asks of them. `chat_completions` and
//!   `completion_request` (with `completion_revision`: what its list changes of a thread), `responses` (with `response_items` and `response_events`) and `response_request`: those of OpenAI;
//!   `conversation_items`: its conversations; `call_id`: calls that are left to its clients; `item_id`: ids of items. `models`: agents as its clients list
//!   them. `openai_error`: errors as they know them.
//! * `ag_ui`: the events of AG-UI, with `ag_ui_places`: their ids; `ag_ui_state`: the thread's values; `ag_ui_parts`: what events
//!   are made of. `ag_ui_message`: its messages, made of rows. `ag_ui_request`: what its clients send; `ag_ui_answers`: what they
//!   answer, against what was asked; `ag_ui_revision`: what they mean that send a message again. `ag_ui_tanstack`: what TanStack AI
//!   wants besides.
//! * `mcp`: messages of MCP. `mcp_tools`: its tools. `mcp_offers`: its prompts and resources. `mcp_ask`: what becomes of a message; `mcp_content`: what a tool
//!   has given. `mcp_input`: what people are asked by
//!   its clients; `mcp_state`: what these give back with the answers.

pub mod ag_ui;
pub mod ag_ui_answers;
pub mod ag_ui_message;
pub mod ag_ui_parts;
pub mod ag_ui_places;
pub mod ag_ui_request;
pub mod ag_ui_revision;
mod ag_ui_state;
pub mod ag_ui_tanstack;
pub mod asked;
pub mod call_id;
pub mod chat_completions;
pub mod completion_request;
pub mod completion_revision;
pub mod conversation_items;
pub mod encode;
pub mod item_id;
pub mod mcp;
pub mod mcp_ask;
pub mod mcp_content;
pub mod mcp_input;
pub mod mcp_offers;
pub mod mcp_state;
pub mod mcp_tools;
pub mod models;
pub mod openai_error;
mod response_events;
mod response_items;
pub mod response_request;
pub mod responses;
pub mod said;
pub mod sse;
pub mod ui_answers;
pub mod ui_message;
pub mod ui_request;
pub mod ui_stream;
mod ui_tools;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_ag_ui;
#[cfg(test)]
mod tests_ag_ui_results;
#[cfg(test)]
mod tests_ag_ui_resume;
#[cfg(test)]
mod tests_conversations;
#[cfg(test)]
mod tests_openai;
#[cfg(test)]
mod tests_responses;
