//! The table `lives`: the remains of a deleted thread whose id is made of a key, so that the next thread with
//! this id is not mistaken for it. Created when such a thread is deleted.

use std::ops::ControlFlow;

use crate::error::Result;
use crate::host::{Cell, Param, Sql};
use crate::store::meta::Meta;
use crate::store::table::{Table, is_missing};

const TABLE: Table = Table {
    create: &["CREATE TABLE IF NOT EXISTS lives (
        id INTEGER PRIMARY KEY CHECK (id = 1), life INTEGER NOT NULL, run INTEGER NOT NULL, edits INTEGER NOT NULL)"],
    drop: "DROP TABLE IF EXISTS lives",
};

/// The last deleted thread of this object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PreviousThread {
    /// Its generation, from 1; 0 if there was none.
    pub(crate) life: i64,
    /// The number of its last run.
    pub(crate) run: i64,
    /// Its number of changes ([`Meta::edits`]).
    pub(crate) edits: i64,
}

impl PreviousThread {
    pub(crate) fn read(sql: &dyn Sql) -> Result<PreviousThread> {
        let mut past = PreviousThread::default();
        let read = sql.each("SELECT life, run, edits FROM lives", &[], &mut |cells| {
            let number = |column: usize| cells.get(column).and_then(Cell::int).unwrap_or_default();
            past = PreviousThread { life: number(0), run: number(1), edits: number(2) };
            Ok(ControlFlow::Break(()))
        });
        match read {
            Err(error) if !is_missing(&error) => Err(error),
            _ => Ok(past),
        }
    }

    pub(crate) fn write(self, sql: &dyn Sql) -> Result<()> {
        TABLE.create.iter().try_for_each(|statement| sql.run(statement, &[]))?;
        sql.run(
            "INSERT OR REPLACE INTO lives (id, life, run, edits) VALUES (1, ?, ?, ?)",
            &[Param::Int(self.life), Param::Int(self.run), Param::Int(self.edits)],
        )
    }

    /// Makes a new thread its successor: ids and numbers are not assigned twice, and clients that followed
    /// the deleted thread start over.
    pub(crate) fn precede(self, meta: &mut Meta) {
        if self.life > 0 {
            meta.lives(self.life + 1);
            meta.run_floor = self.run;
            meta.edits = self.edits + 1;
        }
    }
}
