//! Lists over the threads of all owners (`user_id=*`), for administrators. Each owner's directory returns its
//! page; this module merges the pages into one.

use std::cmp::Ordering;

use serde_json::Value;

use crate::request::directory_call::{DirectoryCall, OwnerOrder, name_of};
use crate::request::{Query, thread_id};
use bobbin_definitions::error::{Error, Result};
use bobbin_definitions::json;
use bobbin_definitions::limits::{PAGE_DEFAULT, PAGE_MAX};
use bobbin_definitions::page::Page;

/// Default number of threads of a page.
pub const THREADS_DEFAULT: u32 = 50;
/// The `user_id` that means all owners.
pub const EVERY_OWNER: &str = "*";
/// Owners whose directories one list reads: those whose number of threads changed last.
pub const OWNERS: u32 = 50;
/// Directories that are queried at the same time.
pub const AT_ONCE: usize = 10;

/// The subject of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// `GET /api/threads`.
    Threads,
    /// `GET /api/waits`.
    Waits,
}

/// A list over the threads of all owners, while its pages arrive.
#[derive(Debug)]
pub struct EveryOwner {
    listing: Listing,
    query: Query,
    origin: String,
    offset: usize,
    limit: usize,
    /// The first `offset + limit` rows of the pages that have arrived, in order.
    rows: Vec<Value>,
    total: i64,
    more: bool,
    /// The last rows of pages that were cut.
    ends: Vec<Value>,
}

impl EveryOwner {
    /// The list that a query requests. `origin` is that of the request.
    ///
    /// # Errors
    /// `invalid_field` for a `limit` or an `offset` that is not a number, or beyond the rows that can be
    /// listed.
    pub fn new(listing: Listing, query: &Query, origin: &str) -> Result<EveryOwner> {
        let (limit, offset) = match listing {
            Listing::Threads => {
                (query.number("limit", THREADS_DEFAULT, PAGE_MAX)?, query.number("offset", 0, u32::MAX)?)
            }
            Listing::Waits => (query.number("limit", PAGE_DEFAULT, PAGE_MAX)?, 0),
        };
        if offset.saturating_add(limit) > PAGE_MAX {
            let text = format!("Over all owners, `offset` and `limit` together are at most {PAGE_MAX}.");
            return Err(Error::field("offset", text).hint("Name one owner with `user_id` for the others."));
        }
        Ok(EveryOwner {
            listing,
            query: query.clone(),
            origin: origin.to_owned(),
            offset: offset as usize,
            limit: limit as usize,
            rows: Vec::new(),
            total: 0,
            more: false,
            ends: Vec::new(),
        })
    }

    /// The request to the root for the owners.
    pub fn owners_call() -> DirectoryCall {
        let query = Query(vec![("limit".to_owned(), OWNERS.to_string())]);
        DirectoryCall::Owners { query, order: OwnerOrder::Changed }
    }

    /// The request to each owner's directory, by the directory's name, and the number of omitted owners.
    /// `owners` is the root's response. Threads without an owner are always included, because the root may
    /// not know of them yet.
    pub fn calls(&self, owners: &Value) -> (Vec<(String, DirectoryCall)>, i64) {
        let listed = owners.get("owners").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let known: Vec<Option<&str>> =
            listed.iter().map(|owner| owner.get("user_id").and_then(Value::as_str)).collect();
        let total = owners.get("total").and_then(Value::as_i64).unwrap_or(0);
        let ownerless = (!known.contains(&None)).then_some(None);
        let calls = ownerless.into_iter().chain(known.iter().copied());
        let calls = calls.map(|owner| (name_of(owner), self.call(owner))).collect();
        (calls, total - known.len() as i64)
    }

    fn call(&self, owner: Option<&str>) -> DirectoryCall {
        let kept = |(name, _): &&(String, String)| !matches!(name.as_str(), "user_id" | "limit" | "offset");
        let mut query: Vec<_> = self.query.0.iter().filter(kept).cloned().collect();
        query.push(("limit".to_owned(), (self.offset + self.limit).to_string()));
        let query = Query(query);
        match self.listing {
            Listing::Threads => {
                let only = self.query.get("key").map(|key| thread_id::of_key(owner, key));
                DirectoryCall::List { query, origin: self.origin.clone(), only }
            }
            Listing::Waits => DirectoryCall::Waits { query },
        }
    }

    /// Adds the page of one directory.
    pub fn take(&mut self, mut page: Value) {
        let Some(Value::Array(taken)) = page.get_mut(self.name()).map(Value::take) else { return };
        self.total += page.get("total").and_then(Value::as_i64).unwrap_or(0);
        let more = match self.listing {
            Listing::Threads => page.get("hasMore").and_then(Value::as_bool).unwrap_or(false),
            Listing::Waits => page.get("cursor").is_some_and(Value::is_string),
        };
        self.more |= more;
        let most = self.offset + self.limit;
        let mut rows = std::mem::take(&mut self.rows);
        if more && taken.len() < most {
            // The page was cut at its maximum size. Rows of that directory after the last one are unknown.
            self.ends.extend(taken.last().cloned());
        }
        rows.extend(taken);
        // The sort is stable: rows of the same second keep the order of their directory.
        rows.sort_by(|a, b| self.compare(a, b));
        self.more |= rows.len() > most;
        rows.truncate(most);
        self.rows = rows;
    }

    /// The merged list, in the format of one owner's list, with the number of omitted owners.
    ///
    /// # Errors
    /// None for a row of a directory.
    pub fn finish(mut self, owners_left_out: i64) -> Result<Value> {
        let rows = std::mem::take(&mut self.rows).into_iter();
        let sure = |row: &Value| self.ends.iter().all(|end| self.compare(row, end).is_le());
        let mut page = Page::new(u32::try_from(self.limit).unwrap_or(PAGE_MAX));
        for row in rows.take_while(sure).skip(self.offset) {
            if page.add(|| Ok(row))?.is_break() {
                break;
            }
        }
        let more = self.more || page.has_more();
        let rows = page.into_rows();
        Ok(match self.listing {
            Listing::Threads => {
                json!({ "threads": rows, "total": self.total, "hasMore": more, "ownersLeftOut": owners_left_out })
            }
            Listing::Waits => {
                let last = rows.last().filter(|_| more);
                let cursor = last.map(|row| format!("{}.{}", number(row, "createdAt"), text(row, "id")));
                json!({ "waits": rows, "cursor": cursor, "ownersLeftOut": owners_left_out })
            }
        })
    }

    /// The field of a response that has the rows.
    const fn name(&self) -> &'static str {
        match self.listing {
            Listing::Threads => "threads",
            Listing::Waits => "waits",
        }
    }

    fn compare(&self, a: &Value, b: &Value) -> Ordering {
        match (self.listing, self.query.get("sort")) {
            (Listing::Waits, _) => {
                (number(b, "createdAt"), text(b, "id")).cmp(&(number(a, "createdAt"), text(a, "id")))
            }
            (Listing::Threads, Some("oldest")) => number(a, "created_at").cmp(&number(b, "created_at")),
            (Listing::Threads, Some("created")) => number(b, "created_at").cmp(&number(a, "created_at")),
            (Listing::Threads, _) => number(b, "last_activity_at").cmp(&number(a, "last_activity_at")),
        }
    }
}

fn number(row: &Value, name: &str) -> i64 {
    row.get(name).and_then(Value::as_i64).unwrap_or(0)
}

fn text<'a>(row: &'a Value, name: &str) -> &'a str {
    row.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::directory_call::OWNERLESS;

    fn query(fields: &[(&str, &str)]) -> Query {
        Query(fields.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect())
    }

    fn list(listing: Listing, fields: &[(&str, &str)]) -> EveryOwner {
        EveryOwner::new(listing, &query(fields), "http://here").unwrap()
    }

    fn threads(rows: &[(&str, i64)], more: bool) -> Value {
        let rows: Vec<Value> = rows
            .iter()
            .map(|(id, at)| json!({ "id": id, "last_activity_at": at, "created_at": -at }))
            .collect();
        json!({ "threads": rows, "total": rows.len(), "hasMore": more })
    }

    fn ids(list: &Value) -> Vec<&str> {
        let rows = list.get("threads").or_else(|| list.get("waits")).and_then(Value::as_array).unwrap();
        rows.iter().map(|row| text(row, "id")).collect()
    }

    #[test]
    fn pages_of_owners_become_one_in_the_order_that_was_asked_for() {
        for (sort, expected) in [("activity", ["c", "b", "d", "a"]), ("oldest", ["c", "b", "d", "a"])] {
            let mut all = list(Listing::Threads, &[("user_id", "*"), ("sort", sort)]);
            all.take(threads(&[("b", 8), ("a", 1)], false));
            all.take(threads(&[("c", 9), ("d", 8)], false));
            let all = all.finish(3).unwrap();
            assert_eq!(ids(&all), expected, "{sort}");
            assert_eq!(
                (&all["total"], &all["hasMore"], &all["ownersLeftOut"]),
                (&json!(4), &json!(false), &json!(3))
            );
        }
    }

    #[test]
    fn a_page_is_a_part_of_the_whole_and_each_directory_is_asked_for_no_more() {
        let mut all = list(Listing::Threads, &[("offset", "1"), ("limit", "2"), ("agent_id", "clerk")]);
        let (calls, left_out) = all.calls(&json!({ "owners": [{ "user_id": "ann" }], "total": 7 }));
        assert_eq!(left_out, 6);
        let names: Vec<_> = calls.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["null", "o:ann"]);
        let DirectoryCall::List { query, only: None, .. } = &calls[1].1 else { panic!("{calls:?}") };
        assert_eq!(query.0, [("agent_id".into(), "clerk".into()), ("limit".into(), "3".into())]);
        all.take(threads(&[("a", 9), ("b", 7), ("c", 5)], true));
        all.take(threads(&[("d", 8)], false));
        let all = all.finish(left_out).unwrap();
        assert_eq!(ids(&all), ["d", "b"]);
        assert_eq!(all["hasMore"], true);
    }

    #[test]
    fn behind_the_end_of_a_page_that_was_cut_nothing_is_listed() {
        let mut all = list(Listing::Threads, &[]);
        all.take(threads(&[("a", 9), ("b", 4)], false));
        all.take(threads(&[("c", 8), ("d", 6)], true));
        all.take(threads(&[("e", 7)], true));
        let all = all.finish(0).unwrap();
        assert_eq!(ids(&all), ["a", "c", "e"]);
        assert_eq!(all["hasMore"], true);
    }

    #[test]
    fn waits_go_on_behind_their_cursor() {
        let wait = |id: &str, at: i64| json!({ "id": id, "createdAt": at });
        let mut all = list(Listing::Waits, &[("limit", "2"), ("cursor", "9.z")]);
        let (calls, _) = all.calls(&json!({ "owners": [], "total": 0 }));
        assert!(
            matches!(&calls[..], [(name, DirectoryCall::Waits { query })] if name == OWNERLESS && query.get("cursor") == Some("9.z"))
        );
        all.take(json!({ "waits": [wait("a", 3), wait("b", 2)], "cursor": null }));
        all.take(json!({ "waits": [wait("c", 3)], "cursor": null }));
        let all = all.finish(0).unwrap();
        assert_eq!(ids(&all), ["c", "a"]);
        assert_eq!(all["cursor"], "3.a");
    }

    #[test]
    fn rows_beyond_the_first_500_are_refused() {
        let of = |fields: &[(&str, &str)]| EveryOwner::new(Listing::Threads, &query(fields), "");
        assert!(of(&[("limit", "500")]).is_ok());
        let error = of(&[("limit", "100"), ("offset", "401")]).unwrap_err();
        assert_eq!(error.field.as_deref(), Some("offset"));
    }
}
