//! Tokens for MCP servers (docs/mcp.md). Threads read and renew them. This object decides which thread renews
//! a token: a refresh token can often be used only once, and two concurrent uses lose it for both.

use std::rc::Rc;

use crate::directory::Directory;
use crate::directory::store::tokens as table;
use crate::error::Result;
use crate::host::Transactions;
use crate::json;
use crate::request::Reply;
use crate::request::directory_call::TokenAsk;

impl Directory {
    /// `{version, token, taken}`.
    pub(super) fn token(self: &Rc<Self>, name: &str, ask: TokenAsk) -> Result<Reply> {
        let now = self.host.now_us();
        let (row, taken) = match ask {
            TokenAsk::Read => (table::read(self.host.sql(), name)?, false),
            TokenAsk::Take { version, by, until_us } => self.host.transaction(|sql| {
                let mut row = table::read(sql, name)?;
                let busy = row.holder.as_ref().is_some_and(|holder| *holder != by) && row.until_us > now;
                let taken = row.version == version && !busy;
                if taken {
                    (row.holder, row.until_us) = (Some(by.clone()), until_us);
                    table::write(sql, name, &row)?;
                }
                Ok((row, taken))
            })?,
            TokenAsk::Put { by, token } => self.host.transaction(|sql| {
                let mut row = table::read(sql, name)?;
                let taken = by.is_none() || row.holder == by;
                if taken {
                    row = table::Row {
                        version: row.version + 1,
                        token: token.clone(),
                        ..table::Row::default()
                    };
                    table::write(sql, name, &row)?;
                }
                Ok((row, taken))
            })?,
        };
        Ok(Reply::json(200, &json!({ "version": row.version, "token": row.token, "taken": taken })))
    }
}
