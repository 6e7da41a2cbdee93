//! What a thread's object knows about MCP servers while it lives. All of it can be read or requested again.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::engine::mcp::sessions::KnownSession;
use crate::mcp_client::oauth::grant::KnownToken;
use crate::request::directory_call::McpReport;
use crate::store::mcp::List;

/// See the module.
#[derive(Default)]
pub(in crate::engine) struct ServerCache {
    /// Sessions, by the servers' names.
    pub(super) sessions: RefCell<BTreeMap<String, KnownSession>>,
    /// The tool lists for the thread, by the servers' names; `None` until read.
    pub(super) lists: RefCell<Option<BTreeMap<String, List>>>,
    /// The lists with which the catalog was last extended.
    pub(super) catalog_lists: RefCell<String>,
    /// Results of requests, by the subjects of envelopes, until they are reported to the deployment.
    pub(super) reports: RefCell<BTreeMap<String, McpReport>>,
    /// Tokens, by their storage keys.
    pub(super) tokens: RefCell<BTreeMap<String, KnownToken>>,
    /// Tokens that are being renewed.
    pub(super) renewing: RefCell<Vec<String>>,
}
