//! What a thread remembers between two events: a cache over its tables that may be dropped at any moment, and is
//! dropped whenever a transaction rolls back.

use std::cell::Cell as Known;
use std::ops::ControlFlow;

use serde_json::{Map, Value};

use crate::env::Set;
use crate::error::{Code, Error, Result};
use crate::host::{Cell, Param, Sql};
use crate::store::children::Child;
use crate::store::effects::Tally;
use crate::store::messages::{Inbound, Row, Shared};
use crate::store::parent::Parent;
use crate::store::runs::{Phase, Run};
use crate::store::side::Side;
use crate::store::window::Window;
use crate::store::{messages as rows, receipts, schema};

/// The row of `meta`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Meta {
    pub(crate) thread_id: String,
    pub(crate) agent: String,
    pub(crate) origin_agent: String,
    pub(crate) owner: Option<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) properties: Map<String, Value>,
    pub(crate) created_us: i64,
    pub(crate) terminated_us: Option<i64>,
    /// Stopped by a user: queued messages wait for the next send or `continue`.
    pub(crate) stopped: bool,
    /// Grows with every change to a stored message, so that a resuming stream knows to start over.
    pub(crate) edits: i64,
    /// Seqs up to this one were given out, also if their rows are gone.
    pub(crate) seq_floor: i64,
    /// History before this seq is not sent.
    pub(crate) window_cut: i64,
    /// Bytes of history that are sent at most, once a provider found a request too long.
    pub(crate) window_bytes: Option<usize>,
    /// Grows with every change that the directory must learn.
    pub(crate) version: i64,
    /// How many values of variables the thread has.
    pub(crate) env: i64,
    /// What it knows of its parent, when it is a subagent.
    pub(crate) parent: Option<Parent>,
    /// How many children it has that are not terminated.
    pub(crate) children: i64,
    /// The sides whose prompts are still to become active and begin subagents then (`subagents/immediate`).
    pub(crate) activates: i64,
    /// Receipts of calls apart from any run that have a lower id are closed; 0 while all are (`apart`).
    pub(crate) apart: i64,
}

impl Meta {
    /// Reads it; `None` when the thread was never created.
    fn load(sql: &dyn Sql) -> Result<Option<(Meta, i64)>> {
        let mut found = None;
        let read = sql.each(
            "SELECT schema, thread_id, agent, origin_agent, owner, tags, properties, created_us, terminated_us,
                stopped, edits, seq_floor, window_cut, window_bytes, version, env, parent, children,
                activates, apart FROM meta",
            &[],
            &mut |cells| {
                found = Some(Meta::read(cells)?);
                Ok(ControlFlow::Break(()))
            },
        );
        match read {
            Ok(()) => Ok(found),
            // An object that nobody created has no tables; asking must not make any.
            Err(error) if error.message.contains("no such table") => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read(cells: &[Cell]) -> Result<(Meta, i64)> {
        let [
            schema,
            thread_id,
            agent,
            origin,
            owner,
            tags,
            properties,
            created,
            terminated,
            stopped,
            edits,
            floor,
            cut,
            window_bytes,
            version,
            env,
            parent,
            children,
            activates,
            apart,
        ] = cells
        else {
            return Err(Error::internal("the meta row has the wrong number of columns"));
        };
        let text = |cell: &Cell| cell.text().unwrap_or_default().to_owned();
        let number = |cell: &Cell| cell.int().unwrap_or_default();
        let damaged = |what: &str| Error::internal(format!("the stored {what} are not JSON"));
        let meta = Meta {
            thread_id: text(thread_id),
            agent: text(agent),
            origin_agent: text(origin),
            owner: owner.text().map(str::to_owned),
            tags: serde_json::from_str(&text(tags)).map_err(|_| damaged("tags"))?,
            properties: serde_json::from_str(&text(properties)).map_err(|_| damaged("properties"))?,
            created_us: number(created),
            terminated_us: terminated.int(),
            stopped: number(stopped) == 1,
            edits: number(edits),
            seq_floor: number(floor),
            window_cut: number(cut),
            window_bytes: window_bytes.int().and_then(|bytes| usize::try_from(bytes).ok()),
            version: number(version),
            env: number(env),
            parent: parent
                .text()
                .map(serde_json::from_str)
                .transpose()
                .map_err(|_| damaged("facts of the parent"))?,
            children: number(children),
            activates: number(activates),
            apart: number(apart),
        };
        Ok((meta, number(schema)))
    }

    /// Writes the row of a new thread.
    pub(crate) fn insert(&self, sql: &dyn Sql) -> Result<()> {
        let (tags, properties) = self.json_columns();
        let parent = self.parent_column()?;
        sql.run(
            "INSERT INTO meta (id, schema, thread_id, agent, origin_agent, owner, tags, properties, created_us, env,
                parent, activates)
             VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            &[
                Param::Int(schema::VERSION),
                Param::Text(&self.thread_id),
                Param::Text(&self.agent),
                Param::Text(&self.origin_agent),
                self.owner.as_ref().into(),
                Param::Text(&tags),
                Param::Text(&properties),
                Param::Int(self.created_us),
                Param::Int(self.env),
                parent.as_ref().into(),
                Param::Int(self.activates),
            ],
        )
    }

    /// Writes what may change.
    pub(crate) fn update(&self, sql: &dyn Sql) -> Result<()> {
        let (tags, properties) = self.json_columns();
        let parent = self.parent_column()?;
        sql.run(
            "UPDATE meta SET agent = ?, tags = ?, properties = ?, terminated_us = ?, stopped = ?, edits = ?,
                seq_floor = ?, window_cut = ?, window_bytes = ?, version = ?, parent = ?, children = ?, activates = ?
             WHERE id = 1",
            &[
                Param::Text(&self.agent),
                Param::Text(&tags),
                Param::Text(&properties),
                self.terminated_us.into(),
                Param::Int(i64::from(self.stopped)),
                Param::Int(self.edits),
                Param::Int(self.seq_floor),
                Param::Int(self.window_cut),
                self.window_bytes.and_then(|bytes| i64::try_from(bytes).ok()).into(),
                Param::Int(self.version),
                parent.as_ref().into(),
                Param::Int(self.children),
                Param::Int(self.activates),
            ],
        )
    }

    fn parent_column(&self) -> Result<Option<String>> {
        self.parent.as_ref().map(serde_json::to_string).transpose().map_err(Error::internal)
    }

    fn json_columns(&self) -> (String, String) {
        let tags: Value = self.tags.iter().map(String::as_str).collect();
        (tags.to_string(), Value::Object(self.properties.clone()).to_string())
    }
}

/// What is known of the thread.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) meta: Meta,
    /// The newest run; the active one, if any.
    pub(crate) run: Option<Run>,
    /// The highest seq of a row.
    pub(crate) max_seq: i64,
    /// Rows of the open step's block that are stored: 0 none, 1 the reply, more its results.
    pub(crate) filled: i64,
    /// Waking messages that no drain took in yet.
    pub(crate) queued: u32,
    /// The oldest row from outside that no drain took in yet.
    pub(crate) undrained: Option<i64>,
    /// The side that the oldest waking row of them makes act, if nothing runs (spec §35.6).
    pub(crate) wakes: Option<Side>,
    /// Tools that code has queued and whose step is not closed, in order; those that were called come first.
    pub(crate) queued_tools: Vec<Queued>,
    /// Receipt of the open step's newest hand-off.
    pub(crate) handoff: Option<i64>,
    /// History, while the object lives.
    pub(crate) window: Option<Window>,
    /// Top-level messages that are not silent, once they were counted.
    pub(crate) visible: Option<i64>,
    /// Values, once they were counted.
    pub(crate) values: Option<u32>,
    /// Values of variables, once they were read.
    pub(crate) env: Option<Set>,
    /// What is known of effects.
    pub(crate) effects: Known<Tally>,
    /// Files and directories, once they were counted.
    pub(crate) files: Option<u32>,
    /// Whether the index over the files' texts is known to be there.
    pub(crate) file_texts: bool,
    /// Whether hooks were told of the thread's creation, or there were none.
    pub(crate) created_told: bool,
    /// Children that are not terminated, once they were read.
    pub(crate) children: Option<Vec<Child>>,
}

impl State {
    /// Reads it; `None` when the thread was never created.
    pub(crate) fn load(sql: &dyn Sql, transaction: impl Fn(i64) -> Result<()>) -> Result<Option<State>> {
        let found = match Meta::load(sql) {
            // An older version has written the row: the tables are brought up to date before it is read.
            Err(error) if error.message.contains("no such column") => {
                transaction(rows::integer(sql, "SELECT schema FROM meta", &[])?.unwrap_or(1))?;
                Meta::load(sql)?
            }
            found => found?,
        };
        let Some((meta, version)) = found else { return Ok(None) };
        if version != schema::VERSION {
            transaction(version)?;
        }
        let run = Run::last(sql)?;
        let block = run.as_ref().map_or(0, |run| run.block);
        // Receipts of calls that code made have seqs of their own.
        let max_seq = last_seq(sql)?;
        let mut state = State { run, max_seq, ..State::created(meta) };
        let mut tools = 0;
        // The first step waits for those hooks.
        if block == 0 {
            let told = rows::integer(sql, "SELECT created_told FROM meta", &[])?;
            state.created_told = told != Some(0);
        }
        if max_seq > block {
            sql.each(
                "SELECT min(seq), sum(inbound = 2),
                    min(CASE WHEN inbound = 2 THEN seq * 2 + (role = 'assistant') END) & 1, sum(inbound = 3)
                 FROM messages WHERE seq > ? AND inbound > 0",
                &[Param::Int(block)],
                &mut |cells| {
                    if let [first, waking, by_a, queued] = cells {
                        state.undrained = first.int();
                        state.queued = waking.int().and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
                        state.wakes = by_a.int().map(|by_a| if by_a == 1 { Side::B } else { Side::A });
                        tools = queued.int().unwrap_or(0);
                    }
                    Ok(ControlFlow::Break(()))
                },
            )?;
            if tools > 0 {
                state.load_queued_tools(sql, block)?;
            }
        }
        if let Some(run) = state.run.as_ref().filter(|run| run.block_open()) {
            state.filled = rows::integer(
                sql,
                // A call that a hook dropped has left no row.
                "SELECT max(seq) + 1 - ?1 FROM (
                    SELECT seq FROM messages WHERE seq >= ?1 AND seq < ?2
                    UNION ALL SELECT id FROM calls WHERE id >= ?1 AND id < ?2 AND state = 'dropped')",
                &[Param::Int(run.block), Param::Int(run.beyond_block())],
            )?
            .unwrap_or(0);
        }
        if let Some(run) = state.run.as_mut().filter(|run| run.phase == Phase::Model && state.filled > 0) {
            run.phase = Phase::Tools;
        }
        if tools > 0 || state.active().is_some_and(|run| run.phase == Phase::Tools || run.phase.is_parked()) {
            state.handoff = receipts::pending_handoff(sql, block)?;
        }
        Ok(Some(state))
    }

    /// The state of a thread that was just created.
    pub(crate) fn created(meta: Meta) -> State {
        State {
            meta,
            run: None,
            max_seq: 0,
            filled: 0,
            queued: 0,
            undrained: None,
            wakes: None,
            queued_tools: Vec::new(),
            handoff: None,
            window: None,
            visible: None,
            values: None,
            env: None,
            effects: Known::default(),
            files: None,
            file_texts: false,
            created_told: true,
            children: None,
        }
    }

    /// The seq of the next row that is not part of a step.
    pub(crate) fn next_seq(&self) -> i64 {
        let beyond = self.run.as_ref().map_or(1, Run::beyond_block);
        (self.max_seq + 1).max(self.meta.seq_floor + 1).max(beyond)
    }

    /// The highest seq below which no row can still appear.
    pub(crate) fn settled(&self) -> i64 {
        match &self.run {
            Some(run) if run.block_open() => run.block - 1 + self.filled,
            _ => self.next_tool().unwrap_or(self.max_seq),
        }
    }

    /// The active run.
    pub(crate) fn active(&self) -> Option<&Run> {
        self.run.as_ref().filter(|run| run.end.is_none())
    }

    /// The active run. An error when there is none: callers must have checked.
    pub(crate) fn active_mut(&mut self) -> Result<&mut Run> {
        self.run
            .as_mut()
            .filter(|run| run.end.is_none())
            .ok_or_else(|| Error::internal("no run is active where one must be"))
    }

    /// Stores a row and takes it into the window.
    pub(crate) fn insert(&mut self, sql: &dyn Sql, row: Row) -> Result<Shared> {
        row.insert(sql)?;
        self.max_seq = self.max_seq.max(row.seq);
        match row.inbound {
            Inbound::No => {}
            Inbound::Quiet => self.undrained = self.undrained.or(Some(row.seq)),
            Inbound::Wakes => {
                self.undrained = self.undrained.or(Some(row.seq));
                self.wakes = self.wakes.or(Some(Side::woken_by(row.role)));
                self.queued += 1;
            }
            Inbound::Tool => {
                self.undrained = self.undrained.or(Some(row.seq));
                self.queued_tools.push(Queued { seq: row.seq, done: false });
                self.max_seq = self.max_seq.max(row.seq + 1);
            }
        }
        if let Some(tool) = self.queued_tools.iter_mut().find(|tool| tool.seq + 1 == row.seq) {
            tool.done = true;
        }
        if self.run.as_ref().is_some_and(|run| run.block_open() && row.seq < run.beyond_block()) {
            self.filled = self.filled.max(row.seq + 1 - self.run.as_ref().map_or(0, |run| run.block));
        }
        if let Some(visible) = self.visible.as_mut().filter(|_| row.depth == 0 && !row.silent) {
            *visible += 1;
        }
        let row = Shared::new(row);
        if let Some(window) = &mut self.window {
            window.push(row.clone());
        }
        Ok(row)
    }

    /// Refuses work on a terminated thread (spec §30).
    pub(crate) fn must_live(&self) -> Result<()> {
        match self.meta.terminated_us {
            None => Ok(()),
            Some(_) => Err(Error::new(Code::Terminated, "This thread was terminated.")
                .hint("It stays readable. Create a new thread to go on.")),
        }
    }

    /// Whether this row waits for a drain. A run that is about to open a step takes everything in at once.
    pub(crate) fn is_queued(&self, row: &Row) -> bool {
        if row.inbound == Inbound::Tool {
            return self.queued_tools.iter().any(|tool| tool.seq == row.seq && !tool.done);
        }
        let opening = self.active().is_some_and(|run| run.phase == Phase::Start);
        row.inbound == Inbound::Wakes && !opening && row.seq > self.run.as_ref().map_or(0, |run| run.block)
    }
}

/// A queued tool whose step is not closed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Queued {
    /// Its message; the result has the next seq.
    pub(crate) seq: i64,
    /// Whether the result is stored.
    pub(crate) done: bool,
}

/// The last seq that a message or a receipt has; a queued tool keeps the next one free.
pub(crate) fn last_seq(sql: &dyn Sql) -> Result<i64> {
    let last = rows::integer(
        sql,
        "SELECT max(ifnull((SELECT seq + (inbound = 3) FROM messages ORDER BY seq DESC LIMIT 1), 0),
            ifnull((SELECT max(id) FROM calls), 0))",
        &[],
    )?;
    Ok(last.unwrap_or(0))
}
