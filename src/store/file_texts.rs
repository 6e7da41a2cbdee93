//! The table `file_texts`: the index over the texts of the files, by groups of three letters. It is made with the first
//! text, so that a thread without texts pays nothing. rowid: the file's.

use crate::error::Result;
use crate::host::{Param, Sql, integer};
use crate::store::table::Table;

/// Only the groups, neither the text nor where they are in it: candidates are read anyway.
pub(crate) const TABLE: Table = Table {
    create: &[
        "CREATE VIRTUAL TABLE IF NOT EXISTS file_texts USING fts5(text, content='', contentless_delete=1,
            detail=none, tokenize='trigram case_sensitive 1')",
    ],
    drop: "DROP TABLE IF EXISTS file_texts",
};

/// Whether the index is there.
pub(crate) fn is_there(sql: &dyn Sql) -> bool {
    let statement = "SELECT 1 FROM sqlite_schema WHERE name = 'file_texts'";
    matches!(integer(sql, statement, &[]), Ok(Some(_)))
}

/// Makes the index, if it is not there. Never in a transaction: when SQLite takes the making of an FTS5 table back, the
/// commit around it fails.
pub(crate) fn make(sql: &dyn Sql) -> Result<()> {
    TABLE.create.iter().try_for_each(|statement| sql.run(statement, &[]))
}

/// A text as the index has it: a NUL would end it there.
pub(crate) fn indexed(folded: &str) -> String {
    folded.replace('\0', "\u{1}")
}

/// Enters a text into the index, which must be there.
pub(crate) fn enter(sql: &dyn Sql, id: i64, folded: &str) -> Result<()> {
    sql.run(
        "INSERT INTO file_texts (rowid, text) VALUES (?, ?)",
        &[Param::Int(id), Param::Text(&indexed(folded))],
    )
}

/// Takes a text out of the index.
pub(crate) fn forget(sql: &dyn Sql, id: i64) -> Result<()> {
    sql.run("DELETE FROM file_texts WHERE rowid = ?", &[Param::Int(id)])
}
