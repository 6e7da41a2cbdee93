//! The HTTP surface of Bobbin, and the protocols of other systems. The code is pure: requests and frames in,
//! responses and text out. It opens no connection and knows no thread.
//!
//! * [`request`]: routes, parameters, requests to an object, replies. [`responses`]: the bodies of replies, as
//!   types. [`access`]: API keys, scopes, browser
//!   tokens. [`trace`]: trace contexts and ids of spans.
//! * Protocols that a deployment serves, derived from the feed of a run: [`ai_sdk`], [`openai`], [`ag_ui`],
//!   [`mcp_server`]. They share [`sse`] (server-sent events), [`encode`] (the interface of encoders),
//!   [`run_events`] (the events of a run) and [`open_waits`] (waits by the names that answers use).
//! * [`mcp_client`]: the client side of MCP.

#![forbid(unsafe_code)]

pub mod access;
pub mod ag_ui;
pub mod ai_sdk;
pub mod encode;
pub mod mcp_client;
pub mod mcp_server;
pub mod open_waits;
pub mod openai;
pub mod request;
pub mod responses;
pub mod run_events;
pub mod sse;
pub mod trace;
