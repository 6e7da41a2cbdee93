//! The memory of a thread between two events: a cache over its tables. It may be dropped at any moment, and
//! is dropped whenever a transaction rolls back.

use std::cell::Cell as Known;

use crate::env::VariableSet;
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::models::{CachedJson, ChatMessage};
use crate::store::changes::ContentChanges;
use crate::store::children::Child;
use crate::store::effects::tally::Tally;
use crate::store::messages::queue::QueuedTool;
use crate::store::messages::{Inbound, Row, SharedRow, queue};
use crate::store::meta::Meta;
use crate::store::runs::usage::Usage;
use crate::store::runs::{Phase, Run};
use crate::store::side::Side;
use crate::store::window::Window;
use crate::store::{children, messages, meta, receipts, schema, waits};

/// The cached state of the thread.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) meta: Meta,
    /// The newest run, which is the active one if any is.
    pub(crate) run: Option<Run>,
    /// The highest seq of a row.
    pub(crate) max_seq: i64,
    /// Rows of the open step's block that are stored: 0 none, 1 the reply, more its results.
    pub(crate) filled: i64,
    /// Waking messages that no drain has taken in.
    pub(crate) queued: u32,
    /// The oldest row from outside that no drain has taken in.
    pub(crate) undrained: Option<i64>,
    /// The oldest of these that starts a run or is a queued tool: a turn begins with it.
    pub(crate) opens: Option<i64>,
    /// The side that the oldest waking row activates if nothing runs (spec §35.6).
    pub(crate) wakes: Option<Side>,
    /// Tools that code has queued and whose step is open, in order; called ones come first.
    pub(crate) queued_tools: Vec<QueuedTool>,
    /// Receipt of the open step's newest hand-off.
    pub(crate) handoff: Option<i64>,
    /// The newest part of the history.
    pub(crate) window: Option<Window>,
    /// The message that holds the summary, and its epoch.
    pub(crate) summary: Option<(i64, CachedJson<ChatMessage>)>,
    /// Number of top-level messages that are not silent, once counted.
    pub(crate) visible: Option<i64>,
    /// Number of values, once counted.
    pub(crate) values: Option<u32>,
    /// Variables with a value, once read.
    pub(crate) env: Option<VariableSet>,
    /// Cached facts about effects.
    pub(crate) effects: Known<Tally>,
    /// Number of files and directories, once counted.
    pub(crate) files: Option<u32>,
    /// Whether the full-text index of the files is known to exist.
    pub(crate) file_texts: bool,
    /// Whether the table of jobs is known to exist.
    pub(crate) jobs_made: bool,
    /// Whether the table of detached work for a collector is known to exist.
    pub(crate) works_made: bool,
    /// Whether the tables of memories are known to exist.
    pub(crate) memories: bool,
    /// Whether the table of sources for memories is known to exist.
    pub(crate) memory_sources: bool,
    /// Whether the table of refusals by memories exists, once checked.
    pub(crate) memory_refusals: Option<bool>,
    /// Whether hooks have handled the thread's creation, or there were none.
    pub(crate) creation_handled: bool,
    /// Children that are not terminated, once read.
    pub(crate) children: Option<Vec<Child>>,
    /// Use of the newest run, if all of it happened since the state was loaded.
    pub(crate) usage: Option<Usage>,
    /// Entries that code has added to the trace of a run, once counted: the run and the number.
    pub(crate) traced: Option<(i64, u32)>,
    /// End of the first open wait, once read.
    pub(crate) wait_due: Known<Option<Option<i64>>>,
    /// Seq of a message that was just stored and makes the run that it starts strict.
    pub(crate) tightens: Option<i64>,
    /// Changes by the current transition to content that memories ingest.
    pub(crate) changed: ContentChanges,
}

impl State {
    /// Reads the state; `None` if the thread was never created.
    pub(crate) fn load(sql: &dyn Sql, transaction: impl Fn(i64) -> Result<()>) -> Result<Option<State>> {
        let found = match Meta::load(sql) {
            // An older version wrote the row: migrate the tables before reading it.
            Err(error) if error.message.contains("no such column") => {
                transaction(meta::schema(sql)?.unwrap_or(1))?;
                Meta::load(sql)?
            }
            found => found?,
        };
        let Some((mut row, version)) = found else { return Ok(None) };
        if version != schema::VERSION {
            transaction(version)?;
        }
        if row.wait_next > 1 {
            let (open, last) = waits::tally(sql)?;
            (row.waits, row.wait_next) = (open, last + 1);
        }
        let run = Run::last(sql)?;
        let copied = row.copied_upto();
        let block = run.as_ref().map_or(copied, |run| run.block);
        // Receipts of calls by code have their own seqs.
        let max_seq = messages::last_seq(sql)?;
        let mut state = State { run, max_seq, ..State::created(row) };
        let mut tools = 0;
        // The first step waits for these hooks.
        if block == copied {
            state.creation_handled = meta::creation_handled(sql)?;
        }
        if max_seq > block {
            let undrained = queue::undrained(sql, block)?;
            (state.undrained, state.opens) = (undrained.first, undrained.opens);
            (state.queued, state.wakes) = (undrained.waking, undrained.wakes);
            tools = undrained.tools;
            if tools > 0 {
                state.queued_tools = queue::tools(sql, block)?;
            }
        }
        if let Some(run) = state.run.as_ref().filter(|run| run.block_open()) {
            state.filled = messages::filled(sql, run.block, run.beyond_block())?;
        }
        if let Some(run) = state.run.as_mut().filter(|run| run.end.is_none())
            && let Some(ledger) = &mut run.ledger
        {
            ledger.catch_up(sql, run.id, run.block)?;
            (ledger.lent, ledger.children) = children::lent_by(sql, run.id)?;
            ledger.grant =
                state.meta.parent.as_ref().and_then(|parent| parent.grant).unwrap_or_default().caps();
            ledger.late = state.meta.budget.as_ref().map(|budget| budget.apart()).unwrap_or_default();
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
            opens: None,
            wakes: None,
            queued_tools: Vec::new(),
            handoff: None,
            window: None,
            summary: None,
            visible: None,
            values: None,
            env: None,
            effects: Known::default(),
            files: None,
            file_texts: false,
            jobs_made: false,
            works_made: false,
            memories: false,
            memory_sources: false,
            memory_refusals: None,
            creation_handled: true,
            children: None,
            usage: None,
            traced: None,
            wait_due: Known::default(),
            tightens: None,
            changed: ContentChanges::default(),
        }
    }

    /// The seq of the next row outside a step.
    pub(crate) fn next_seq(&self) -> i64 {
        let beyond = self.run.as_ref().map_or(1, Run::beyond_block);
        (self.max_seq + 1).max(self.meta.seq_floor + 1).max(beyond)
    }

    /// The highest seq up to which no further row can appear.
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

    /// The active run; an error if there is none, because callers must have checked.
    pub(crate) fn active_mut(&mut self) -> Result<&mut Run> {
        self.run
            .as_mut()
            .filter(|run| run.end.is_none())
            .ok_or_else(|| Error::internal("no run is active where one must be"))
    }

    /// Stores a row and adds it to the window.
    pub(crate) fn insert(&mut self, sql: &dyn Sql, row: Row) -> Result<SharedRow> {
        row.insert(sql)?;
        self.max_seq = self.max_seq.max(row.seq);
        if row.inbound != Inbound::Step {
            self.undrained = self.undrained.or(Some(row.seq));
        }
        match row.inbound {
            Inbound::Step | Inbound::Stored => {}
            Inbound::Triggers => {
                self.opens = self.opens.or(Some(row.seq));
                self.wakes = self.wakes.or(Some(Side::woken_by(row.role)));
                self.queued += 1;
            }
            Inbound::QueuedTool => {
                self.opens = self.opens.or(Some(row.seq));
                self.queued_tools.push(QueuedTool { seq: row.seq, done: false });
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
        let row = SharedRow::new(row);
        if let Some(window) = &mut self.window {
            window.push(row.clone());
        }
        Ok(row)
    }

    /// Stores rows of a new thread that start nothing and have consecutive seqs.
    pub(crate) fn insert_stored(&mut self, sql: &dyn Sql, rows: &[Row]) -> Result<()> {
        queue::insert_stored(sql, rows)?;
        if let (Some(first), Some(last)) = (rows.first(), rows.last()) {
            self.undrained = self.undrained.or(Some(first.seq));
            self.max_seq = self.max_seq.max(last.seq);
        }
        Ok(())
    }

    /// Marks all waiting rows as taken in.
    pub(crate) fn drain(&mut self) {
        (self.queued, self.undrained, self.opens, self.wakes) = (0, None, None, None);
    }

    /// Counts an edit of stored messages. Invalidates resume positions and the cached history: resuming streams
    /// start over.
    pub(crate) fn record_edit(&mut self, sql: &dyn Sql) -> Result<()> {
        self.meta.edits += 1;
        self.window = None;
        self.meta.update(sql)
    }

    /// Refuses work on a terminated thread (spec §30).
    pub(crate) fn ensure_not_terminated(&self) -> Result<()> {
        match self.meta.terminated_us {
            None => Ok(()),
            Some(_) => Err(Error::new(Code::Terminated, "This thread was terminated.")
                .hint("It stays readable. Create a new thread to go on.")),
        }
    }

    /// Whether this row waits for a drain. A run that is about to open a step takes in all rows at once.
    pub(crate) fn is_queued(&self, row: &Row) -> bool {
        if row.inbound == Inbound::QueuedTool {
            return self.queued_tools.iter().any(|tool| tool.seq == row.seq && !tool.done);
        }
        let opening = self.active().is_some_and(|run| run.phase == Phase::Start);
        row.inbound == Inbound::Triggers && !opening && row.seq > self.drained()
    }

    /// The seq up to which everything is taken in.
    fn drained(&self) -> i64 {
        self.run.as_ref().map_or_else(|| self.meta.copied_upto(), |run| run.block)
    }
}
