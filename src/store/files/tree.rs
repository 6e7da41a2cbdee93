//! Queries over the tree of files: directories, counts, candidates of a search.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::host::{Cell, Param, Sql, integer};
use crate::store::file_path::{FilePath, SubtreeRange};
use crate::store::file_record::FileStats;
use crate::store::files::{Kind, Row, columns, read};

/// Passes the entries of a directory after a position to `each` until it breaks: directories first, then by
/// name.
pub(crate) fn entries(
    sql: &dyn Sql,
    path: &FilePath,
    (kind, name): (i64, &str),
    limit: i64,
    each: &mut dyn FnMut(Row) -> Result<ControlFlow<()>>,
) -> Result<()> {
    sql.each(
        concat!(
            "SELECT ",
            columns!(),
            " FROM files WHERE parent = ? AND (kind > ? OR (kind = ? AND name > ?)) ORDER BY kind, name LIMIT ?"
        ),
        &[
            Param::Text(path.as_str()),
            Param::Int(kind),
            Param::Int(kind),
            Param::Text(name),
            Param::Int(limit),
        ],
        &mut |cells| each(Row::read(cells)?),
    )
}

/// Counts and total size.
pub(crate) fn stats(sql: &dyn Sql) -> Result<FileStats> {
    let mut stats = FileStats::default();
    let statement = "SELECT kind, count(*), sum(size) FROM files WHERE parent IS NOT NULL GROUP BY kind";
    sql.each(statement, &[], &mut |cells| {
        let number = |at: usize| cells.get(at).and_then(Cell::int).unwrap_or_default().unsigned_abs();
        if number(0) == Kind::Directory as u64 {
            stats.directory_count = number(1);
        } else {
            (stats.file_count, stats.total_size) = (number(1), number(2));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(stats)
}

/// Number of files and directories.
pub(crate) fn count(sql: &dyn Sql) -> Result<i64> {
    Ok(integer(sql, "SELECT count(*) FROM files WHERE parent IS NOT NULL", &[])?.unwrap_or(0))
}

/// Removes everything below a directory from the tree. The rows of files remain outside the tree, and later
/// writes delete their contents piece by piece, because they may be gigabytes.
pub(crate) fn discard(sql: &dyn Sql, below: &SubtreeRange) -> Result<()> {
    let below = below.params();
    sql.run("DELETE FROM files WHERE kind = 0 AND (parent = ? OR (parent >= ? AND parent < ?))", &below)?;
    sql.run(
        "UPDATE files SET parent = NULL, kind = 4 WHERE parent = ? OR (parent >= ? AND parent < ?)",
        &below,
    )
}

/// Length in bytes of the longest path below a directory; `None` if it is empty.
pub(crate) fn longest(sql: &dyn Sql, below: &SubtreeRange) -> Result<Option<i64>> {
    integer(
        sql,
        "SELECT max(length(CAST(parent AS BLOB)) + 1 + length(CAST(name AS BLOB))) FROM files
         WHERE parent = ? OR (parent >= ? AND parent < ?)",
        &below.params(),
    )
}

/// Moves everything below a directory to another one.
pub(crate) fn shift(sql: &dyn Sql, below: &SubtreeRange, to: &FilePath) -> Result<()> {
    let [a, b, c] = below.params();
    let rest = Param::Int(below.directory().chars().count() as i64 + 1);
    sql.run(
        "UPDATE files SET parent = ? || substr(parent, ?) WHERE parent = ? OR (parent >= ? AND parent < ?)",
        &[Param::Text(to.as_str()), rest, a, b, c],
    )
}

/// Rows in the tree with an id greater than this, by id.
pub(crate) fn after(sql: &dyn Sql, id: i64, limit: i64) -> Result<Vec<Row>> {
    let statement = concat!(
        "SELECT ",
        columns!(),
        " FROM files WHERE id > ? AND +parent IS NOT NULL ORDER BY id LIMIT ?"
    );
    read(sql, statement, &[Param::Int(id), Param::Int(limit)])
}

/// Passes ids and paths in the tree to `look`, by id, until it breaks. Reads no other columns, because they
/// may be large.
pub(crate) fn each_path(
    sql: &dyn Sql,
    after: i64,
    mut look: impl FnMut(i64, &FilePath) -> ControlFlow<()>,
) -> Result<()> {
    let statement = "SELECT id, parent, name FROM files WHERE id > ? AND +parent IS NOT NULL ORDER BY id";
    sql.each(statement, &[Param::Int(after)], &mut |cells| {
        let [id, parent, name] = cells else {
            return Err(Error::internal("a row of files has the wrong number of columns"));
        };
        let path = FilePath::of(parent.text().unwrap_or_default(), name.text().unwrap_or_default());
        Ok(look(id.int().unwrap_or_default(), &path))
    })
}

/// Path, id and size of the text files that may contain a text. With a `question`, the index selects the
/// indexed files that have its trigrams; without one, all text files are returned.
pub(crate) fn texts(sql: &dyn Sql, question: Option<&str>) -> Result<Vec<(String, i64, u64)>> {
    let mut found = Vec::new();
    let mut note = |cells: &[Cell]| {
        let [id, parent, name, size] = cells else {
            return Err(Error::internal("a row of files has the wrong number of columns"));
        };
        let path = FilePath::of(parent.text().unwrap_or_default(), name.text().unwrap_or_default());
        let size = size.int().unwrap_or_default().unsigned_abs();
        found.push((path.to_string(), id.int().unwrap_or_default(), size));
        Ok(ControlFlow::Continue(()))
    };
    match question {
        None => {
            sql.each(
                "SELECT id, parent, name, size FROM files WHERE search > 0 AND +parent IS NOT NULL",
                &[],
                &mut note,
            )?;
        }
        Some(question) => sql.each(
            "SELECT id, parent, name, size FROM files
             WHERE (search = 1 OR id IN (SELECT rowid FROM file_texts WHERE file_texts MATCH ?))
                AND +parent IS NOT NULL",
            &[Param::Text(question)],
            &mut note,
        )?,
    }
    Ok(found)
}
