//! The root: health of MCP servers as reported by threads. Reports may be late, repeated and in any order.

use std::rc::Rc;

use crate::directory::Directory;
use crate::directory::store::servers as table;
use crate::error::Result;
use crate::host::Transactions;
use crate::json;
use crate::request::Reply;
use crate::request::directory_call::McpReport;

impl Directory {
    /// Stores a thread's report about a server.
    pub(super) fn record_report(self: &Rc<Self>, report: &McpReport) -> Result<Reply> {
        self.host.transaction(|sql| table::put(sql, report))?;
        Ok(Reply::json(200, &json!({})))
    }

    /// The known servers: `{servers: [McpKnown]}`, by name.
    pub(super) fn servers_known(&self) -> Result<Reply> {
        let mut known = Vec::new();
        table::each(self.host.sql(), &mut |server| known.push(json!(server)))?;
        Ok(Reply::json(200, &json!({ "servers": known })))
    }
}
