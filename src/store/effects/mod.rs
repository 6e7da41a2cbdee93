//! The table `effects`: scheduled and ended effects (spec §10).
//!
//! * here: the rows. `tally`: the next due time, the counts, and deletions.

pub(crate) mod tally;

use std::ops::ControlFlow;

use serde_json::Value;

use crate::error::{Code, Error, Result};
use crate::host::{Cell, Param, Sql, integer};
use crate::json;
use crate::json_text::JsonText;
use crate::limits;
use crate::page::Page;
use crate::protocols::responses::values as responses;
pub(crate) use crate::protocols::responses::values::EffectStatus as Status;
use crate::store::repeat::Repeat;
use crate::store::table::Table;

/// `open`: 0 has ended, 1 waits, 2 is running. Together with `at_us` it orders both execution and deletion.
pub(super) const TABLE: Table = Table {
    create: &[
        "CREATE TABLE effects (
        id INTEGER PRIMARY KEY, open INTEGER NOT NULL, status TEXT NOT NULL, at_us INTEGER NOT NULL,
        name TEXT NOT NULL, args TEXT NOT NULL, repeats TEXT, scheduled_us INTEGER NOT NULL,
        created_us INTEGER NOT NULL, occurrence INTEGER NOT NULL, attempts INTEGER NOT NULL, error TEXT,
        of_effect INTEGER, replay_of INTEGER)",
        "CREATE INDEX effects_at ON effects (open, at_us)",
    ],
    drop: "DROP TABLE effects",
};

/// The columns of [`Effect`], in the order of [`Effect::read`].
macro_rules! columns {
    () => {
        "id, status, at_us, name, args, repeats, scheduled_us, created_us, occurrence, attempts, error, of_effect, replay_of"
    };
}

/// The first column of the index: 0 has ended, 1 waits, 2 is running.
const fn open(status: Status) -> i64 {
    match status {
        Status::Pending => 1,
        Status::Processing => 2,
        Status::Completed | Status::Failed | Status::AgentCanceled | Status::UserCanceled => 0,
    }
}

/// A page of effects that is being filled.
type EffectRows = Page<JsonText<responses::Effect<'static>>>;

/// One effect. Times are microseconds since 1970.
#[derive(Clone, Debug)]
pub(crate) struct Effect {
    pub(crate) id: i64,
    pub(crate) status: Status,
    /// When it runs next or, if it has ended, when it ended.
    pub(crate) at_us: i64,
    pub(crate) name: String,
    /// JSON.
    pub(crate) args: String,
    /// The repetition, in the form that [`Repeat`] stores.
    pub(crate) repeats: Option<String>,
    /// The original due time of this occurrence, regardless of retries.
    pub(crate) scheduled_us: i64,
    pub(crate) created_us: i64,
    /// Number of this occurrence, from 1; 0 for an effect that does not repeat.
    pub(crate) occurrence: i64,
    /// Attempts at this occurrence, including the current one.
    pub(crate) attempts: u32,
    /// Error of the last attempt.
    pub(crate) error: Option<String>,
    /// The repeating effect of which this is one occurrence.
    pub(crate) of: Option<i64>,
    /// The effect that this one replays.
    pub(crate) replay_of: Option<i64>,
}

impl Effect {
    /// An effect that is not stored yet.
    pub(crate) fn new(name: String, args: String, at_us: i64, now: i64) -> Effect {
        Effect {
            id: 0,
            status: Status::Pending,
            at_us,
            name,
            args,
            repeats: None,
            scheduled_us: at_us,
            created_us: now,
            occurrence: 0,
            attempts: 0,
            error: None,
            of: None,
            replay_of: None,
        }
    }

    fn read(cells: &[Cell]) -> Result<Effect> {
        let [
            id,
            status,
            at,
            name,
            args,
            repeats,
            scheduled,
            created,
            occurrence,
            attempts,
            error,
            of,
            replay,
        ] = cells
        else {
            return Err(Error::internal("an effect has the wrong number of columns"));
        };
        let number = |cell: &Cell| cell.int().unwrap_or_default();
        let text = |cell: &Cell| cell.text().map(str::to_owned);
        Ok(Effect {
            id: number(id),
            status: Status::parse(status.text().unwrap_or_default()),
            at_us: number(at),
            name: text(name).unwrap_or_default(),
            args: text(args).unwrap_or_default(),
            repeats: text(repeats),
            scheduled_us: number(scheduled),
            created_us: number(created),
            occurrence: number(occurrence),
            attempts: u32::try_from(number(attempts)).unwrap_or(u32::MAX),
            error: text(error),
            of: of.int(),
            replay_of: replay.int(),
        })
    }

    pub(crate) fn insert(&mut self, sql: &dyn Sql) -> Result<()> {
        self.id = integer(sql, "SELECT max(id) FROM effects", &[])?.unwrap_or(0) + 1;
        sql.run(
            concat!(
                "INSERT INTO effects (open, ",
                columns!(),
                ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            ),
            &[
                Param::Int(open(self.status)),
                Param::Int(self.id),
                Param::Text(self.status.as_str()),
                Param::Int(self.at_us),
                Param::Text(&self.name),
                Param::Text(&self.args),
                self.repeats.as_ref().into(),
                Param::Int(self.scheduled_us),
                Param::Int(self.created_us),
                Param::Int(self.occurrence),
                Param::Int(i64::from(self.attempts)),
                self.error.as_ref().into(),
                self.of.into(),
                self.replay_of.into(),
            ],
        )
    }

    /// Writes the columns that may change.
    pub(crate) fn update(&self, sql: &dyn Sql) -> Result<()> {
        sql.run(
            "UPDATE effects SET open = ?, status = ?, at_us = ?, repeats = ?, scheduled_us = ?, occurrence = ?,
                attempts = ?, error = ? WHERE id = ?",
            &[
                Param::Int(open(self.status)),
                Param::Text(self.status.as_str()),
                Param::Int(self.at_us),
                self.repeats.as_ref().into(),
                Param::Int(self.scheduled_us),
                Param::Int(self.occurrence),
                Param::Int(i64::from(self.attempts)),
                self.error.as_ref().into(),
                Param::Int(self.id),
            ],
        )
    }

    pub(crate) fn repeat(&self) -> Result<Option<Repeat>> {
        self.repeats.as_deref().map(Repeat::from_text).transpose()
    }

    /// A key shared by all attempts at an occurrence, unique within the thread.
    pub(crate) fn key(&self) -> String {
        match self.occurrence {
            0 => self.series_key(),
            occurrence => format!("{}.{occurrence}", self.series_key()),
        }
    }

    /// A key shared by all occurrences.
    pub(crate) fn series_key(&self) -> String {
        format!("e{}", self.of.unwrap_or(self.id))
    }

    /// A key that is unique among all threads.
    pub(crate) fn idempotency_key(&self, thread: &str) -> String {
        format!("{thread}/{}", self.key())
    }

    /// The public form.
    pub(crate) fn response(&self, thread: &str) -> responses::Effect<'_> {
        let ended = open(self.status) == 0;
        responses::Effect {
            id: effect_id(thread, self.id),
            name: &self.name,
            args: crate::json::from_str(&self.args).unwrap_or(Value::Null),
            status: self.status,
            scheduled_at: self.scheduled_us,
            due_at: (!ended).then_some(self.at_us),
            ended_at: ended.then_some(self.at_us),
            created_at: self.created_us,
            repeat: self.repeat().ok().flatten().map(Repeat::into_response),
            occurrence: (self.occurrence > 0).then_some(self.occurrence),
            attempts: self.attempts,
            error: self.error.as_deref(),
            occurrence_of: self.of.map(|id| effect_id(thread, id)),
            replayed_from: self.replay_of.map(|id| effect_id(thread, id)),
            idempotency_key: self.idempotency_key(thread),
        }
    }
}

/// Public id of an effect.
pub(crate) fn effect_id(thread: &str, id: i64) -> String {
    let short: String = thread.chars().take(8).collect();
    format!("e_{short}_{id}")
}

/// The effect with this public id.
///
/// # Errors
/// `not_found` for an id that this thread has never assigned.
pub(crate) fn find(thread: &str, sql: &dyn Sql, id: &str) -> Result<Effect> {
    let missing = || Error::new(Code::NotFound, format!("This thread has no effect “{id}”."));
    let number = id.rsplit_once('_').and_then(|(_, number)| number.parse::<i64>().ok());
    let number = number.filter(|number| effect_id(thread, *number) == id).ok_or_else(missing)?;
    by_id(sql, number)?.ok_or_else(missing)
}

pub(crate) fn by_id(sql: &dyn Sql, id: i64) -> Result<Option<Effect>> {
    let rows = read(sql, concat!("SELECT ", columns!(), " FROM effects WHERE id = ?"), &[Param::Int(id)])?;
    Ok(rows.into_iter().next())
}

/// Number of attempts that are running or were when the process crashed, and the next due time of waiting
/// effects.
pub(crate) fn outlook(sql: &dyn Sql) -> Result<(usize, Option<i64>)> {
    let mut outlook = (0, None);
    sql.each(
        "SELECT (SELECT count(*) FROM effects WHERE open = 2), (SELECT min(at_us) FROM effects WHERE open = 1)",
        &[],
        &mut |cells| {
            if let [processing, next] = cells {
                outlook = (processing.int().and_then(|n| usize::try_from(n).ok()).unwrap_or(0), next.int());
            }
            Ok(ControlFlow::Break(()))
        },
    )?;
    Ok(outlook)
}

/// Effects with an attempt that is running, or was when the process crashed.
pub(crate) fn processing(sql: &dyn Sql) -> Result<Vec<Effect>> {
    read(sql, concat!("SELECT ", columns!(), " FROM effects WHERE open = 2 ORDER BY at_us"), &[])
}

/// Passes ids and names of due effects to `look`, earliest first, until it breaks, and at most
/// [`limits::EFFECTS_LOOKED_AT`].
pub(crate) fn each_due(
    sql: &dyn Sql,
    now: i64,
    mut look: impl FnMut(i64, &str) -> ControlFlow<()>,
) -> Result<()> {
    sql.each(
        "SELECT id, name FROM effects WHERE open = 1 AND at_us <= ? ORDER BY at_us, id LIMIT ?",
        &[Param::Int(now), Param::Int(limits::EFFECTS_LOOKED_AT)],
        &mut |cells| match cells {
            [id, name] => Ok(look(id.int().unwrap_or_default(), name.text().unwrap_or_default())),
            _ => Err(Error::internal("an effect has the wrong number of columns")),
        },
    )
}

/// The next due time after now.
pub(crate) fn next_after(sql: &dyn Sql, now: i64) -> Result<Option<i64>> {
    integer(sql, "SELECT min(at_us) FROM effects WHERE open = 1 AND at_us > ?", &[Param::Int(now)])
}

/// Open effects, the next one first, after the first `offset`. Only ids are sorted, because rows may be
/// large; rows are read until the page is full.
pub(crate) fn upcoming(sql: &dyn Sql, thread: &str, page: &mut EffectRows, offset: u32) -> Result<()> {
    let statement = concat!(
        "SELECT ",
        columns!(),
        " FROM (SELECT id AS wanted FROM effects WHERE open > 0 ORDER BY open DESC, at_us, id LIMIT ? OFFSET ?)
          CROSS JOIN effects ON id = wanted"
    );
    fill(
        sql,
        statement,
        &[Param::Int(i64::from(page.room()) + 1), Param::Int(i64::from(offset))],
        &mut |effect| page.add_text(|| JsonText::new(&effect.response(thread))),
    )
}

/// Ended effects, the last one first, after the first `offset`.
pub(crate) fn ended(sql: &dyn Sql, thread: &str, page: &mut EffectRows, offset: u32) -> Result<()> {
    let statement = concat!(
        "SELECT ",
        columns!(),
        " FROM effects WHERE open = 0 ORDER BY at_us DESC, id DESC LIMIT ? OFFSET ?"
    );
    fill(
        sql,
        statement,
        &[Param::Int(i64::from(page.room()) + 1), Param::Int(i64::from(offset))],
        &mut |effect| page.add_text(|| JsonText::new(&effect.response(thread))),
    )
}

/// Open effects with one name or with any, the next one first.
pub(crate) fn scheduled(sql: &dyn Sql, thread: &str, page: &mut Page, name: Option<&str>) -> Result<()> {
    let statement = concat!(
        "SELECT ",
        columns!(),
        " FROM (SELECT id AS wanted FROM effects WHERE open > 0 AND (?1 IS NULL OR name = ?1)
             ORDER BY open DESC, at_us, id LIMIT -1)
          CROSS JOIN effects ON id = wanted"
    );
    fill(sql, statement, &[name.into()], &mut |effect| page.add(|| Ok(json!(effect.response(thread)))))
}

fn fill(
    sql: &dyn Sql,
    statement: &'static str,
    params: &[Param<'_>],
    add: &mut dyn FnMut(Effect) -> Result<ControlFlow<()>>,
) -> Result<()> {
    sql.each(statement, params, &mut |cells| add(Effect::read(cells)?))
}

fn read(sql: &dyn Sql, statement: &'static str, params: &[Param<'_>]) -> Result<Vec<Effect>> {
    let mut rows = Vec::new();
    sql.each(statement, params, &mut |cells| {
        rows.push(Effect::read(cells)?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(rows)
}
