//! The table `mem_sources`: sources that memories have to ingest, or to check again. A row names only the
//! source, whose current content is ingested. So a row may be processed twice, in any order. Created with its
//! first row.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::host::{Cell, Param, Sql, integer};
use crate::store::state::State;
use crate::store::table::Table;

/// `kind`: one of [`Kind`]. `ref`: a message's seq, the path of a file or directory, or ''. `place`, `upto`:
/// the processed position and its bound. `data`: for `state`, the file patterns that were processed.
pub(crate) const TABLE: Table = Table {
    create: &["CREATE TABLE IF NOT EXISTS mem_sources (
        memory TEXT NOT NULL, kind TEXT NOT NULL, ref TEXT NOT NULL, place INTEGER NOT NULL DEFAULT 0,
        upto INTEGER NOT NULL DEFAULT 0, data TEXT NOT NULL DEFAULT '', PRIMARY KEY (memory, kind, ref)) WITHOUT ROWID"],
    drop: "DROP TABLE IF EXISTS mem_sources",
};

/// The kind of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Check a file.
    File,
    /// Delete hidden documents.
    Gone,
    /// Check a message again.
    Message,
    /// Progress of ingesting messages of ended runs.
    State,
    /// Check everything below a directory.
    Tree,
}

impl Kind {
    const fn as_str(self) -> &'static str {
        match self {
            Kind::File => "file",
            Kind::Gone => "gone",
            Kind::Message => "message",
            Kind::State => "state",
            Kind::Tree => "tree",
        }
    }

    fn parse(text: &str) -> Option<Kind> {
        let all = [Kind::File, Kind::Gone, Kind::Message, Kind::State, Kind::Tree];
        all.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// A row to process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PendingSource {
    pub(crate) kind: Kind,
    pub(crate) of: String,
    /// For a directory: the last file that was checked, and the last document.
    pub(crate) place: i64,
    pub(crate) upto: i64,
}

/// Progress of a memory in the messages of a thread, and its file patterns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct IngestProgress {
    /// Messages up to this seq are ingested.
    pub(crate) messages: i64,
    /// Messages up to this seq may be ingested.
    pub(crate) upto: i64,
    /// The file patterns for which the tree was checked.
    pub(crate) files: String,
}

/// Whether the table exists.
pub(crate) fn is_there(state: &mut State, sql: &dyn Sql) -> bool {
    if !state.memory_sources {
        let statement = "SELECT 1 FROM sqlite_schema WHERE name = 'mem_sources'";
        state.memory_sources = matches!(integer(sql, statement, &[]), Ok(Some(_)));
    }
    state.memory_sources
}

/// Creates the table if it is missing.
pub(crate) fn make(state: &mut State, sql: &dyn Sql) -> Result<()> {
    if !state.memory_sources {
        TABLE.create.iter().try_for_each(|statement| sql.run(statement, &[]))?;
        state.memory_sources = true;
    }
    Ok(())
}

/// The progress of a memory; `None` before it has ingested anything.
pub(crate) fn taken(sql: &dyn Sql, memory: &str) -> Result<Option<IngestProgress>> {
    let mut found = None;
    let statement =
        "SELECT place, upto, data FROM mem_sources WHERE memory = ? AND kind = 'state' AND ref = ''";
    sql.each(statement, &[Param::Text(memory)], &mut |cells| {
        if let [place, upto, data] = cells {
            found = Some(IngestProgress {
                messages: place.int().unwrap_or_default(),
                upto: upto.int().unwrap_or_default(),
                files: data.text().unwrap_or_default().to_owned(),
            });
        }
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

/// Stores the progress of a memory.
pub(crate) fn set_taken(sql: &dyn Sql, memory: &str, taken: &IngestProgress) -> Result<()> {
    sql.run(
        "INSERT INTO mem_sources (memory, kind, ref, place, upto, data) VALUES (?, 'state', '', ?, ?, ?)
         ON CONFLICT DO UPDATE SET place = excluded.place, upto = excluded.upto, data = excluded.data",
        &[Param::Text(memory), Param::Int(taken.messages), Param::Int(taken.upto), Param::Text(&taken.files)],
    )
}

/// Adds a source, to be processed from its beginning.
pub(crate) fn add(sql: &dyn Sql, memory: &str, kind: Kind, of: &str) -> Result<()> {
    sql.run(
        "INSERT INTO mem_sources (memory, kind, ref) VALUES (?, ?, ?)
         ON CONFLICT DO UPDATE SET place = 0, upto = 0",
        &[Param::Text(memory), Param::Text(kind.as_str()), Param::Text(of)],
    )
}

/// The next row: files and messages before directories, which may add more of them.
pub(crate) fn next(sql: &dyn Sql, memory: &str) -> Result<Option<PendingSource>> {
    let mut found = None;
    let statement = "SELECT kind, ref, place, upto FROM mem_sources WHERE memory = ? AND kind != 'state'
        ORDER BY kind, ref LIMIT 1";
    sql.each(statement, &[Param::Text(memory)], &mut |cells| {
        let [kind, of, place, upto] = cells else {
            return Err(Error::internal("a source has the wrong number of columns"));
        };
        let int = |cell: &Cell| cell.int().unwrap_or_default();
        found = kind.text().and_then(Kind::parse).map(|kind| PendingSource {
            kind,
            of: of.text().unwrap_or_default().to_owned(),
            place: int(place),
            upto: int(upto),
        });
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

/// Stores the progress in a directory.
pub(crate) fn go_on(sql: &dyn Sql, memory: &str, pending: &PendingSource) -> Result<()> {
    sql.run(
        "UPDATE mem_sources SET place = ?, upto = ? WHERE memory = ? AND kind = ? AND ref = ?",
        &[
            Param::Int(pending.place),
            Param::Int(pending.upto),
            Param::Text(memory),
            Param::Text(pending.kind.as_str()),
            Param::Text(&pending.of),
        ],
    )
}

/// Deletes a row that is processed.
pub(crate) fn done(sql: &dyn Sql, memory: &str, kind: Kind, of: &str) -> Result<()> {
    sql.run(
        "DELETE FROM mem_sources WHERE memory = ? AND kind = ? AND ref = ?",
        &[Param::Text(memory), Param::Text(kind.as_str()), Param::Text(of)],
    )
}

/// Whether a memory has anything left to ingest.
pub(crate) fn any_left(sql: &dyn Sql, memory: &str) -> Result<bool> {
    let statement =
        "SELECT 1 FROM mem_sources WHERE memory = ? AND (kind != 'state' OR place < upto) LIMIT 1";
    Ok(integer(sql, statement, &[Param::Text(memory)])?.is_some())
}
