//! Reports about servers for `GET /api/mcp`: the outcome of the latest requests to each. The root directory
//! receives them through the outbox, in the transaction that stores a call's outcome. A process repeats an
//! unchanged report once a minute.

use crate::definitions::ListedTool;
use crate::engine::features::McpClient;
use crate::engine::outbox::INLINE_US;
use crate::error::Result;
use crate::host::Sql;
use crate::host::process::ServerReport;
use crate::limits;
use crate::mcp_client::MODERN;
use crate::request::directory_call::{DirectoryCall, McpError, McpListed, McpReport, ROOT};
use crate::signing::digest;
use crate::store::state::State;
use crate::text::first_bytes;

/// The bytes of a tool's description in a report.
const ABOUT_BYTES: usize = 120;
/// The interval between unchanged reports.
const AGAIN_US: i64 = 60 * limits::SECOND_US;

impl McpClient<'_> {
    /// Records the outcome of a request to a server; `error`: error code and text. [`McpClient::post_mcp`]
    /// sends it in the transaction that stores the outcome.
    pub(super) fn record_server_result(&self, server: &str, error: Option<(&str, &str)>) {
        let now = self.host.now_us();
        let error = error.map(|(code, text)| McpError {
            code: code.to_owned(),
            message: self.variables().shown(text.to_owned()).cut(limits::MCP_TOLD_BYTES).to_string(),
        });
        let message = error.as_ref().map(|error| &error.message);
        let same = |told: &ServerReport| told.what.as_ref() == message && now - told.at_us < AGAIN_US;
        if self.host.process().told.borrow().get(server).is_some_and(same) {
            return;
        }
        // One report of each kind, so that a failure is reported even if the next attempt succeeds.
        let subject = format!("{}:{server}", if error.is_some() { "mcp_error" } else { "mcp" });
        let report = McpReport { server: server.to_owned(), at_us: now, error, listed: None };
        self.ephemeral.mcp.reports.borrow_mut().insert(subject, report);
    }

    /// Records the tools that a server has listed, a JSON array.
    pub(super) fn mcp_listed(&self, server: &str, tools: &str) {
        let known: Vec<ListedTool> = crate::json::from_str(tools).unwrap_or_default();
        let session = self.ephemeral.mcp.sessions.borrow().get(server).and_then(|known| known.version());
        let tools = known.into_iter().map(|tool| {
            let about = first_bytes(tool.description.as_deref().unwrap_or_default(), ABOUT_BYTES);
            (tool.name, about.to_owned())
        });
        let protocol = session.unwrap_or_else(|| MODERN.to_owned());
        let listed = McpListed { protocol, tools: tools.collect() };
        let (subject, now) = (format!("mcp_list:{server}"), self.host.now_us());
        let (hash, process) = (of_list(&listed), self.host.process());
        let same = |told: &ServerReport| told.what.as_ref() == Some(&hash) && now - told.at_us < AGAIN_US;
        if !process.told.borrow().get(&subject).is_some_and(same) {
            let report =
                McpReport { server: server.to_owned(), at_us: now, error: None, listed: Some(listed) };
            self.ephemeral.mcp.reports.borrow_mut().insert(subject, report);
        }
    }

    /// Sends the recorded reports, inside a transition. Without reports it runs no statement.
    pub(crate) fn post_mcp(&self, state: &State, sql: &dyn Sql) -> Result<()> {
        let reports = std::mem::take(&mut *self.ephemeral.mcp.reports.borrow_mut());
        for (subject, report) in reports {
            let (at_us, due) = (report.at_us, self.host.now_us() + INLINE_US);
            let (about, what) = match &report.listed {
                Some(listed) => (subject.clone(), Some(of_list(listed))),
                None => (report.server.clone(), report.error.as_ref().map(|error| error.message.clone())),
            };
            let call = DirectoryCall::McpTold { report };
            self.outbox().post_to(ROOT, state, sql, &subject, &call, (at_us, due))?;
            let process = self.host.process();
            let mut all = process.told.borrow_mut();
            if all.get(&about).is_none_or(|before| before.at_us <= at_us) {
                all.insert(about, ServerReport { at_us, what });
            }
        }
        Ok(())
    }
}

/// A digest of a list, for comparison.
fn of_list(listed: &McpListed) -> String {
    let parts = listed.tools.iter().flat_map(|(name, about)| [name.as_str(), about.as_str()]);
    digest(&parts.chain([listed.protocol.as_str()]).collect::<Vec<_>>())
}
