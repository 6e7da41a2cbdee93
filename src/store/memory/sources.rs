//! The table `mem_sources`: what memories are still to take in by themselves, or to look at again. It says only where to look:
//! what is there then counts, so that a row may be done again and nothing depends on its order. It is made with its first row.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::host::{Cell, Param, Sql, integer};
use crate::store::state::State;
use crate::store::table::Table;

/// `kind`: one of [`Kind`]. `ref`: a message's seq, a file's path, or a directory's; '' of the others. `place`, `upto`: how far it
/// is done, and how far it may be. `data`: of `state`, the patterns of files that it is about.
pub(crate) const TABLE: Table = Table {
    create: &["CREATE TABLE IF NOT EXISTS mem_sources (
        memory TEXT NOT NULL, kind TEXT NOT NULL, ref TEXT NOT NULL, place INTEGER NOT NULL DEFAULT 0,
        upto INTEGER NOT NULL DEFAULT 0, data TEXT NOT NULL DEFAULT '', PRIMARY KEY (memory, kind, ref)) WITHOUT ROWID"],
    drop: "DROP TABLE IF EXISTS mem_sources",
};

/// What a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A file is to be looked at.
    File,
    /// Documents that are found no more are to be deleted.
    Gone,
    /// A message is to be looked at again.
    Message,
    /// How far the messages of ended runs are taken in.
    State,
    /// All below a directory is to be looked through.
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

/// A row that is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) kind: Kind,
    pub(crate) of: String,
    /// Of a directory: the last file that was looked at, and the last document.
    pub(crate) place: i64,
    pub(crate) upto: i64,
}

/// How far a memory is with the messages of a thread, and which files it is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Messages up to this seq are taken in.
    pub(crate) messages: i64,
    /// Those up to this one may be.
    pub(crate) upto: i64,
    /// The patterns of files that it was looked through for.
    pub(crate) files: String,
}

/// Whether the table is there.
pub(crate) fn is_there(state: &mut State, sql: &dyn Sql) -> bool {
    if !state.memory_sources {
        let statement = "SELECT 1 FROM sqlite_schema WHERE name = 'mem_sources'";
        state.memory_sources = matches!(integer(sql, statement, &[]), Ok(Some(_)));
    }
    state.memory_sources
}

/// Makes it, if it is not there.
pub(crate) fn make(state: &mut State, sql: &dyn Sql) -> Result<()> {
    if !state.memory_sources {
        TABLE.create.iter().try_for_each(|statement| sql.run(statement, &[]))?;
        state.memory_sources = true;
    }
    Ok(())
}

/// How far a memory is; `None` while it has taken nothing in.
pub(crate) fn taken(sql: &dyn Sql, memory: &str) -> Result<Option<Taken>> {
    let mut found = None;
    let statement =
        "SELECT place, upto, data FROM mem_sources WHERE memory = ? AND kind = 'state' AND ref = ''";
    sql.each(statement, &[Param::Text(memory)], &mut |cells| {
        if let [place, upto, data] = cells {
            found = Some(Taken {
                messages: place.int().unwrap_or_default(),
                upto: upto.int().unwrap_or_default(),
                files: data.text().unwrap_or_default().to_owned(),
            });
        }
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

/// Notes how far it is.
pub(crate) fn set_taken(sql: &dyn Sql, memory: &str, taken: &Taken) -> Result<()> {
    sql.run(
        "INSERT INTO mem_sources (memory, kind, ref, place, upto, data) VALUES (?, 'state', '', ?, ?, ?)
         ON CONFLICT DO UPDATE SET place = excluded.place, upto = excluded.upto, data = excluded.data",
        &[Param::Text(memory), Param::Int(taken.messages), Param::Int(taken.upto), Param::Text(&taken.files)],
    )
}

/// Something is to be looked at, from its beginning.
pub(crate) fn add(sql: &dyn Sql, memory: &str, kind: Kind, of: &str) -> Result<()> {
    sql.run(
        "INSERT INTO mem_sources (memory, kind, ref) VALUES (?, ?, ?)
         ON CONFLICT DO UPDATE SET place = 0, upto = 0",
        &[Param::Text(memory), Param::Text(kind.as_str()), Param::Text(of)],
    )
}

/// What is to be done first: files and messages before directories that give more of them.
pub(crate) fn next(sql: &dyn Sql, memory: &str) -> Result<Option<Pending>> {
    let mut found = None;
    let statement = "SELECT kind, ref, place, upto FROM mem_sources WHERE memory = ? AND kind != 'state'
        ORDER BY kind, ref LIMIT 1";
    sql.each(statement, &[Param::Text(memory)], &mut |cells| {
        let [kind, of, place, upto] = cells else {
            return Err(Error::internal("a source has the wrong number of columns"));
        };
        let int = |cell: &Cell| cell.int().unwrap_or_default();
        found = kind.text().and_then(Kind::parse).map(|kind| Pending {
            kind,
            of: of.text().unwrap_or_default().to_owned(),
            place: int(place),
            upto: int(upto),
        });
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

/// How far a directory is looked through.
pub(crate) fn go_on(sql: &dyn Sql, memory: &str, pending: &Pending) -> Result<()> {
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

/// It is done.
pub(crate) fn done(sql: &dyn Sql, memory: &str, kind: Kind, of: &str) -> Result<()> {
    sql.run(
        "DELETE FROM mem_sources WHERE memory = ? AND kind = ? AND ref = ?",
        &[Param::Text(memory), Param::Text(kind.as_str()), Param::Text(of)],
    )
}

/// Whether anything is left to be taken in.
pub(crate) fn any_left(sql: &dyn Sql, memory: &str) -> Result<bool> {
    let statement =
        "SELECT 1 FROM mem_sources WHERE memory = ? AND (kind != 'state' OR place < upto) LIMIT 1";
    Ok(integer(sql, statement, &[Param::Text(memory)])?.is_some())
}
