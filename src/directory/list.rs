//! `GET /threads` (spec §27.1): filters, order, pages.

use crate::dates::{Edge, instant};
use crate::definitions::Catalog;
use crate::directory::Directory;
use crate::directory::store::threads::{Filter, Order, ThreadEntry};
use crate::directory::store::{state, threads as table};
use crate::error::{Error, Result};
use crate::host::Sql;
use crate::json_text::JsonText;
use crate::limits::{PAGE_MAX, SECOND_US};
use crate::page::Page;
use crate::protocols::responses::threads::{ListedThread, ThreadPage};
use crate::request::every_owner::THREADS_DEFAULT;
use crate::request::{Query, Reply, agents};

/// Longest `search`, in bytes.
const SEARCH_BYTES: usize = 200;

impl Filter<'_> {
    fn of(query: &Query) -> Result<Filter<'_>> {
        let given = |name: &str| query.get(name).filter(|value| !value.is_empty());
        let date = |name: &str, edge| given(name).map(|text| instant(name, text, edge)).transpose();
        let choice = |name: &str| match given(name) {
            None => Ok(None),
            Some(_) => query.flag(name).map(|flag| Some(i64::from(flag))),
        };
        let search = given("search").map(str::to_ascii_lowercase);
        if search.as_ref().is_some_and(|text| text.len() > SEARCH_BYTES) {
            return Err(Error::field("search", format!("`search` has at most {SEARCH_BYTES} bytes.")));
        }
        Ok(Filter {
            agent_id: given("agent_id"),
            search,
            from_us: date("startDate", Edge::Start)?,
            to_us: date("endDate", Edge::End)?,
            executing: choice("executing")?,
            terminated: choice("terminated")?,
            failed: choice("failed")?,
            children: query.flag("include_children")?,
        })
    }

    /// Number of matching threads. It is stored without filters; with filters, all threads of the owner are
    /// scanned.
    fn total(&self, sql: &dyn Sql) -> Result<i64> {
        match (self.is_open(), self.children) {
            (true, true) => state::threads(sql),
            (true, false) => state::top(sql),
            (false, _) => table::count(sql, self),
        }
    }
}

impl Directory {
    /// A page of threads. Times are seconds, as in every thread object over HTTP (spec §35.13).
    /// `only` restricts the list to one thread.
    pub(super) fn list(&self, query: &Query, origin: &str, only: Option<&str>) -> Result<Reply> {
        let filter = Filter::of(query)?;
        let limit = query.number("limit", THREADS_DEFAULT, PAGE_MAX)?;
        let offset = query.number("offset", 0, u32::MAX)?;
        let order = match query.get("sort") {
            None | Some("" | "activity") => Order::Activity,
            Some("created") => Order::Newest,
            Some("oldest") => Order::Oldest,
            Some(other) => {
                return Err(Error::field(
                    "sort",
                    format!("`sort` is activity, created or oldest, not “{other}”."),
                ));
            }
        };
        let sql = self.host.sql();
        if let Some(id) = only {
            let mut page = Page::new(1);
            table::one(sql, &filter, id, &mut |row| {
                page.add_text(|| JsonText::new(&item(row, &self.catalog, origin)?))
            })?;
            let threads = page.into_rows();
            let total = threads.len() as i64;
            let page = ThreadPage { threads, total, has_more: false, owners_left_out: None };
            return Ok(Reply::json(200, &page));
        }
        let total = filter.total(sql)?;
        let mut page = Page::new(limit);
        table::page(sql, &filter, order, limit, offset, &mut |row| {
            page.add_text(|| JsonText::new(&item(row, &self.catalog, origin)?))
        })?;
        let has_more = i64::from(offset) + (page.len() as i64) < total;
        let threads = page.into_rows();
        Ok(Reply::json(200, &ThreadPage { threads, total, has_more, owners_left_out: None }))
    }
}

fn item<'a>(row: &ThreadEntry<'a>, catalog: &'a Catalog, origin: &str) -> Result<ListedThread<'a>> {
    let seconds = |us: Option<i64>| us.map(|us| us / SECOND_US);
    Ok(ListedThread {
        id: row.id,
        key: row.key,
        agent_id: row.agent_id,
        origin_agent_id: row.origin_agent_id,
        user_id: row.owner,
        tags: crate::json::from_str(row.tags).map_err(Error::internal)?,
        parent: row.parent,
        terminated: seconds(row.terminated_us),
        created_at: seconds(row.created_us),
        last_activity_at: seconds(row.activity_us),
        executing: row.executing,
        failed: row.failed,
        last_message_preview: row.preview,
        last_message_at: seconds(row.message_us),
        // Null for an agent that the catalog no longer has: the thread remains readable.
        agent: catalog.agents.get(row.agent_id).map(|agent| agents::summary(agent, origin)),
    })
}
