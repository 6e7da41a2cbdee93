//! `GET /threads` (spec §27.1): filters, order, pages.

use serde_json::{Value, json};

use crate::dates::{Edge, instant};
use crate::directory::{Directory, int, int_at, text_at};
use crate::error::{Error, Result};
use crate::host::{Cell, Param, Sql};
use crate::limits::{PAGE_MAX, SECOND_US};
use crate::page::Page;
use crate::request::{Query, Reply, agents};
use crate::spec::Catalog;

/// Threads of a page when the request does not say.
const PAGE: u32 = 50;
/// Longest `search`, in bytes.
const SEARCH_BYTES: usize = 200;

/// What the rows of a list have in common. An absent filter is NULL and lets everything through.
macro_rules! matching {
    () => {
        " FROM threads WHERE agent_id IS NOT NULL AND (?1 IS NULL OR agent_id = ?1)
            AND (?2 IS NULL OR instr(lower(id || char(10) || agent_id || char(10) || tags || char(10)
                || coalesce(preview, '')), ?2) > 0)
            AND (?3 IS NULL OR created_us >= ?3) AND (?4 IS NULL OR created_us <= ?4)
            AND (?5 IS NULL OR executing = ?5) AND (?6 IS NULL OR (terminated_us IS NOT NULL) = ?6)
            AND (?7 = 1 OR parent IS NULL)"
    };
}
macro_rules! page {
    ($order:literal) => {
        concat!(
            "SELECT id, agent_id, origin_agent_id, tags, parent, terminated_us, created_us, activity_us, executing,
                preview, message_us, (SELECT owner FROM state)",
            matching!(),
            " ORDER BY ",
            $order,
            " LIMIT ?8 OFFSET ?9"
        )
    };
}

const COUNT: &str = concat!("SELECT count(*)", matching!());
const BY_ACTIVITY: &str = page!("activity_us DESC, rowid DESC");
const NEWEST: &str = page!("created_us DESC, rowid DESC");
const OLDEST: &str = page!("created_us, rowid");

struct Filter<'a> {
    agent_id: Option<&'a str>,
    search: Option<String>,
    from_us: Option<i64>,
    to_us: Option<i64>,
    executing: Option<i64>,
    terminated: Option<i64>,
    children: bool,
}

impl<'a> Filter<'a> {
    fn of(query: &'a Query) -> Result<Filter<'a>> {
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
            children: query.flag("include_children")?,
        })
    }

    fn params(&self) -> [Param<'_>; 7] {
        [
            self.agent_id.into(),
            self.search.as_deref().into(),
            self.from_us.into(),
            self.to_us.into(),
            self.executing.into(),
            self.terminated.into(),
            i64::from(self.children).into(),
        ]
    }

    /// How many threads match. Without filters the count is kept; with one it is a pass over the owner's threads.
    fn total(&self, sql: &dyn Sql) -> Result<i64> {
        let open = self.params().iter().take(6).all(|param| *param == Param::Null);
        let total = match (open, self.children) {
            (true, true) => int(sql, "SELECT threads FROM state", &[]),
            (true, false) => int(sql, "SELECT top FROM state", &[]),
            (false, _) => int(sql, COUNT, &self.params()),
        };
        Ok(total?.unwrap_or(0))
    }
}

impl Directory {
    /// `{threads, total, hasMore}`; times are seconds, as on every thread object over HTTP (spec §35.13).
    pub(crate) fn list(&self, query: &Query, origin: &str) -> Result<Reply> {
        let filter = Filter::of(query)?;
        let limit = query.number("limit", PAGE, PAGE_MAX)?;
        let offset = query.number("offset", 0, u32::MAX)?;
        let statement = match query.get("sort") {
            None | Some("" | "activity") => BY_ACTIVITY,
            Some("created") => NEWEST,
            Some("oldest") => OLDEST,
            Some(other) => {
                return Err(Error::field(
                    "sort",
                    format!("`sort` is activity, created or oldest, not “{other}”."),
                ));
            }
        };
        let sql = self.host.sql();
        let total = filter.total(sql)?;
        let mut params = filter.params().to_vec();
        params.extend([Param::Int(limit.into()), Param::Int(offset.into())]);
        let mut page = Page::new(limit);
        sql.each(statement, &params, &mut |row| page.add(|| item(row, &self.catalog, origin)))?;
        let more = i64::from(offset) + (page.len() as i64) < total;
        Ok(Reply::json(200, &json!({ "threads": page.into_rows(), "total": total, "hasMore": more })))
    }
}

fn item(row: &[Cell], catalog: &Catalog, origin: &str) -> Result<Value> {
    let seconds = |column: usize| row.get(column).and_then(Cell::int).map(|us| us / SECOND_US);
    let agent_id = text_at(row, 1).unwrap_or_default();
    let tags: Value = serde_json::from_str(text_at(row, 3).unwrap_or("[]")).map_err(Error::internal)?;
    Ok(json!({
        "id": text_at(row, 0),
        "agent_id": agent_id,
        "origin_agent_id": text_at(row, 2),
        "user_id": text_at(row, 11),
        "tags": tags,
        "parent": text_at(row, 4),
        "terminated": seconds(5),
        "created_at": seconds(6),
        "last_activity_at": seconds(7),
        "executing": int_at(row, 8)? != 0,
        "last_message_preview": text_at(row, 9),
        "last_message_at": seconds(10),
        // An agent that the catalog no longer has is null: the thread is still there to be read.
        "agent": catalog.agents.get(agent_id).map(|agent| agents::summary(agent, origin)),
    }))
}
