//! Open waits in the threads of an owner: an inbox for the people who decide.

use std::ops::ControlFlow;
use std::rc::Rc;

use crate::directory::Directory;
use crate::directory::store::inbox as table;
use crate::error::{Code, Error, Result};
use crate::host::Transactions;
use crate::json;
use crate::json_text::JsonText;
use crate::limits::{PAGE_DEFAULT, PAGE_MAX};
use crate::page::Page;
use crate::protocols::responses::waits::{InboxPage, InboxWait, WaitState};
use crate::request::directory_call::WaitRow;
use crate::request::{Query, Reply};

impl Directory {
    /// Stores a thread's report about a wait.
    pub(super) fn wait(self: &Rc<Self>, row: &WaitRow) -> Result<Reply> {
        let now = self.host.now_us();
        self.host.transaction(|sql| {
            let known = self.known(sql, &row.thread, row.life)?;
            // The waits of a deleted thread are closed, however late a report arrives.
            let gone = known.life > row.life || (known.life == row.life && known.deleted);
            table::put(sql, &WaitRow { open: row.open && !gone, ..row.clone() }, now)
        })?;
        Ok(Reply::json(200, &json!({})))
    }

    /// `GET /api/waits`: newest first.
    pub(super) fn waits(&self, query: &Query) -> Result<Reply> {
        let limit = query.number("limit", PAGE_DEFAULT, PAGE_MAX)?;
        let kind = query.get("kind").filter(|kind| !kind.is_empty());
        let behind = query.get("cursor").filter(|cursor| !cursor.is_empty()).map(|cursor| {
            let parts = cursor.split_once('.').and_then(|(at, id)| Some((at.parse::<i64>().ok()?, id)));
            parts.ok_or_else(|| {
                Error::new(Code::BadCursor, "`cursor` is that of the page before.").at("cursor")
            })
        });
        let mut page = Page::new(limit);
        let mut last = None;
        table::open(self.host.sql(), kind, behind.transpose()?, &mut |row| {
            let cursor = format!("{}.{}", row.created_at_us, row.id);
            let flow = page.add_text(|| {
                JsonText::new(&InboxWait {
                    id: &row.id,
                    thread_id: &row.thread,
                    kind: &row.kind,
                    state: WaitState::Open,
                    title: &row.title,
                    created_at: row.created_at_us,
                    expires_at: row.expires_at_us,
                })
            })?;
            if flow == ControlFlow::Continue(()) {
                last = Some(cursor);
            }
            Ok(flow)
        })?;
        let cursor = last.filter(|_| page.has_more());
        Ok(Reply::json(200, &InboxPage { waits: page.into_rows(), cursor, owners_left_out: None }))
    }
}
