//! Protocols of existing clients, derived from the feed of a run ([`crate::engine::feed`]). The code is pure:
//! frames in, text out. A thread's object knows none of these protocols; the Worker's bridge calls them.
//!
//! * `sse`: parser and writer of server-sent events. `said`: the events of a run that all protocols use;
//!   `encode`: the interface of encoders. `asked`: waits by the names that answers use.
//! * AI SDK: `ui_stream`: the stream; `ui_tools`: calls in it; `ui_message`: messages, derived from the
//!   stream; `ui_request`: requests of pages; `ui_answers`: their answers to waits.
//! * OpenAI: `chat_completions`, `completion_request`, and `completion_revision`: changes that its list
//!   makes; `responses` (with `response_items` and `response_events`) and `response_request`;
//!   `conversation_items`: conversations; `call_id`: calls that are left to clients; `item_id`: ids of items;
//!   `models`: agents as models; `openai_error`: errors.
//! * AG-UI: `ag_ui`: events; `ag_ui_places`: their ids; `ag_ui_state`: the thread's values; `ag_ui_parts`:
//!   parts of events; `ag_ui_message`: messages, derived from rows; `ag_ui_request`: requests;
//!   `ag_ui_answers`: answers to waits; `ag_ui_revision`: repeated messages; `ag_ui_tanstack`: extensions for
//!   TanStack AI.
//! * MCP: `mcp`: messages; `mcp_tools`: tools; `mcp_offers`: prompts and resources; `mcp_ask`: results;
//!   `mcp_content`: the outcome of a tool's call; `mcp_input`: questions to people; `mcp_state`: the signed
//!   state that clients return with the answers.

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
