//! The records of a thread for clients and code, in pages: messages in this file, the log in `logs`.

mod logs;

use serde_json::Value;

use crate::engine::features::Records;
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::limits;
use crate::page::Page;
use crate::protocols::responses::messages::MessagePage;
use crate::request::{Query, Reply};
use crate::store::messages as rows;
use crate::store::messages::page::{PageRequest, VisibilityFilter};
use crate::store::messages::{Row, message_seq, not_found, page as list};
use crate::store::state::State;

impl Records<'_> {
    /// `GET …/messages` (spec §14.3, §27.2): always in the order of the conversation; `order` selects the end
    /// from which a page is taken.
    pub(crate) fn list_messages(&self, query: &Query) -> Result<Reply> {
        Ok(Reply::json(200, &self.messages(query)?))
    }

    /// A page of messages.
    pub(super) fn messages(&self, query: &Query) -> Result<MessagePage> {
        let limit = query.number("limit", limits::PAGE_DEFAULT, limits::PAGE_MAX)?;
        let offset = query.number("offset", 0, u32::MAX)?;
        let silent = query.flag("includeSilent")?;
        let depth = query.number("depth", 0, u32::MAX)?;
        let newest_first = match query.get("order") {
            None | Some("" | "desc") => true,
            Some("asc") => false,
            Some(other) => {
                return Err(Error::field("order", format!("`order` is asc or desc, not “{other}”.")));
            }
        };
        self.read_mut(|state, sql| {
            let thread = state.meta.stem.clone();
            let cursor = |name: &str| match query.get(name) {
                None | Some("") => Ok(None),
                Some(id) => message_seq(&thread, id).map(Some).map_err(|_| {
                    Error::new(Code::BadCursor, format!("`{name}` is no message of this thread: “{id}”."))
                        .at(name)
                }),
            };
            let (before, after) =
                (cursor("before")?.unwrap_or(i64::MAX >> 11), cursor("after")?.unwrap_or(0));
            if let Some(ids) = query.get("ids") {
                return by_ids(state, sql, ids);
            }
            let wanted = PageRequest {
                shown: VisibilityFilter { depth, silent },
                after,
                before,
                newest_first,
                limit: i64::from(limit) + 1,
                offset,
            };
            let mut page = Page::new(limit);
            list::page(sql, &wanted, &mut |row| page.add(|| shown(state, &row)))?;
            let total =
                if depth == 0 && !silent { visible(state, sql)? } else { list::count(sql, wanted.shown)? };
            let has_more = page.has_more();
            let mut messages = page.into_rows();
            if newest_first {
                messages.reverse();
            }
            messages
                .iter_mut()
                .try_for_each(|message| crate::engine::subagents::shown::project(state, sql, message))?;
            Ok(MessagePage { messages, total, has_more })
        })
    }

    /// `GET …/messages/:id`.
    pub(crate) fn get_message(&self, id: &str) -> Result<Reply> {
        Ok(Reply::json(200, &self.message(id)?))
    }

    /// A message in the format of the API.
    pub(super) fn message(&self, id: &str) -> Result<Value> {
        self.read(|state, sql| {
            let thread = &state.meta.stem;
            let row = rows::find(sql, message_seq(thread, id)?)?.ok_or_else(|| not_found(id))?;
            crate::engine::subagents::shown::message(state, sql, &row)
        })
    }
}

/// Top-level messages that are not silent; counted once while the object lives.
pub(crate) fn visible(state: &mut State, sql: &dyn Sql) -> Result<i64> {
    if let Some(visible) = state.visible {
        return Ok(visible);
    }
    let counted = list::count_visible(sql)?;
    state.visible = counted;
    Ok(counted.unwrap_or(0))
}

fn shown(state: &State, row: &Row) -> Result<Value> {
    Ok(row.to_json(&state.meta.stem, state.is_queued(row)))
}

/// The messages with these ids. Ids of other threads and of deleted messages are skipped, as in the
/// reference.
fn by_ids(state: &State, sql: &dyn Sql, ids: &str) -> Result<MessagePage> {
    let ids = ids.split(',').map(str::trim).filter(|id| !id.is_empty());
    let mut seqs: Vec<i64> =
        ids.filter_map(|id| message_seq(&state.meta.stem, id).ok()).take(limits::PAGE_MAX as usize).collect();
    seqs.sort_unstable();
    seqs.dedup();
    let mut page = Page::new(limits::PAGE_MAX);
    for seq in seqs {
        if let Some(row) = rows::find(sql, seq)?
            && page.add(|| shown(state, &row))?.is_break()
        {
            break;
        }
    }
    let (total, has_more) = (page.len() as i64, page.has_more());
    let mut messages = page.into_rows();
    messages
        .iter_mut()
        .try_for_each(|message| crate::engine::subagents::shown::project(state, sql, message))?;
    Ok(MessagePage { messages, total, has_more })
}
