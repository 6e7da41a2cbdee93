//! The root: how MCP servers answer, as threads tell it. Reports come late, twice and in any order.

use std::rc::Rc;

use crate::directory::Directory;
use crate::directory::store::servers as table;
use crate::error::Result;
use crate::host::Transactions;
use crate::json;
use crate::request::Reply;
use crate::request::directory_call::McpReport;

impl Directory {
    /// Takes what a thread tells of a server.
    pub(crate) fn server_told(self: &Rc<Self>, report: &McpReport) -> Result<Reply> {
        self.host.transaction(|sql| table::put(sql, report))?;
        Ok(Reply::json(200, &json!({})))
    }

    /// What is known of servers: `{servers: [McpKnown]}`, by name.
    pub(crate) fn servers_known(&self) -> Result<Reply> {
        let mut known = Vec::new();
        table::each(self.host.sql(), &mut |server| known.push(json!(server)))?;
        Ok(Reply::json(200, &json!({ "servers": known })))
    }
}
