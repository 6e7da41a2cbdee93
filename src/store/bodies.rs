//! The table `bodies`: request and response bodies of attempts. They are kept only with
//! `BOBBIN_LOG_BODIES=1`, and deleted by the next write after 7 days.

use std::ops::ControlFlow;

use crate::error::Result;
use crate::host::{Param, Sql};
use crate::store::table::Table;

pub(super) const TABLE: Table = Table {
    create: &[
        "CREATE TABLE bodies (id INTEGER PRIMARY KEY, log INTEGER NOT NULL, at_us INTEGER NOT NULL, kind TEXT NOT NULL,
        text TEXT NOT NULL)",
    ],
    drop: "DROP TABLE bodies",
};

/// Deletes the bodies from before a time.
pub(crate) fn forget_before(sql: &dyn Sql, at_us: i64) -> Result<()> {
    sql.run("DELETE FROM bodies WHERE at_us < ?", &[Param::Int(at_us)])
}

/// Stores a body (`request` or `response`) of the newest row of `logs`, whose id the same statement reads.
pub(crate) fn insert(sql: &dyn Sql, at_us: i64, kind: &str, text: &str) -> Result<()> {
    sql.run(
        "INSERT INTO bodies (log, at_us, kind, text)
         SELECT max(id), ?, ?, ? FROM logs",
        &[Param::Int(at_us), Param::Text(kind), Param::Text(text)],
    )
}

/// The kinds and texts of the bodies of a row of `logs`.
pub(crate) fn of_log(sql: &dyn Sql, log: i64) -> Result<Vec<(String, Option<String>)>> {
    let mut found = Vec::new();
    sql.each("SELECT kind, text FROM bodies WHERE log = ?", &[Param::Int(log)], &mut |cells| {
        if let [kind, text] = cells {
            found.push((kind.text().unwrap_or_default().to_owned(), text.text().map(str::to_owned)));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}
