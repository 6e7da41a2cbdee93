//! The table `file_texts`: a trigram index over the texts of the files. It is created with the first text.
//! rowid: the file's.

use crate::error::Result;
use crate::host::{Param, Sql, integer};
use crate::store::table::Table;

/// Stores only the trigrams, without the text and positions: searches read the candidates anyway.
pub(super) const TABLE: Table = Table {
    create: &[
        "CREATE VIRTUAL TABLE IF NOT EXISTS file_texts USING fts5(text, content='', contentless_delete=1,
            detail=none, tokenize='trigram case_sensitive 1')",
    ],
    drop: "DROP TABLE IF EXISTS file_texts",
};

/// Whether the index exists.
pub(crate) fn is_there(sql: &dyn Sql) -> bool {
    let statement = "SELECT 1 FROM sqlite_schema WHERE name = 'file_texts'";
    matches!(integer(sql, statement, &[]), Ok(Some(_)))
}

/// Creates the index if it is missing. Never call it in a transaction: if SQLite rolls back the creation of
/// an FTS5 table, the surrounding commit fails.
pub(crate) fn make(sql: &dyn Sql) -> Result<()> {
    TABLE.create.iter().try_for_each(|statement| sql.run(statement, &[]))
}

/// The text as the index stores it: a NUL would end it.
pub(crate) fn indexed(folded: &str) -> String {
    folded.replace('\0', "\u{1}")
}

/// Adds a text to the index, which must exist.
pub(crate) fn enter(sql: &dyn Sql, id: i64, folded: &str) -> Result<()> {
    sql.run(
        "INSERT INTO file_texts (rowid, text) VALUES (?, ?)",
        &[Param::Int(id), Param::Text(&indexed(folded))],
    )
}

/// Removes a text from the index.
pub(crate) fn forget(sql: &dyn Sql, id: i64) -> Result<()> {
    sql.run("DELETE FROM file_texts WHERE rowid = ?", &[Param::Int(id)])
}
