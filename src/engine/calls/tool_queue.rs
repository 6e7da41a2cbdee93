//! Tools that code has queued (spec §6.4, §35.24b). Each is a stored message of the acting side with one
//! call. These messages are the queue: ordered, durable, and each with the next seq reserved for its result.
//! During a step they are called after the calls of its reply and before the stop rules. On an idle thread
//! they begin a step without a model call. In both cases the step's calls are those of its reply and of the
//! tools called in it.

use serde_json::{Map, Value};

use crate::definitions::message::ToolCall;
use crate::definitions::schema;
use crate::definitions::subagent::{is_tool, undotted};
use crate::engine::features::Delegates;
use crate::engine::thread::Thread;
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::limits;
use crate::request::fields::shallow;
use crate::sdk::scope::EntryMode;
use crate::store::messages as rows;
use crate::store::messages::{Inbound, Row, SharedRow, queue};
use crate::store::runs::{Counters, Run};
use crate::store::side::Side;
use crate::store::state::State;

impl State {
    /// The next queued tool to call.
    pub(crate) fn next_tool(&self) -> Option<i64> {
        self.queued_tools.iter().find(|tool| !tool.done).map(|tool| tool.seq)
    }

    /// The number of messages and tools that wait for a run.
    pub(crate) fn waiting(&self) -> u32 {
        let tools = self.queued_tools.iter().filter(|tool| !tool.done).count();
        self.queued + u32::try_from(tools).unwrap_or(u32::MAX)
    }

    /// The next run. The first queued message decides which side acts, unless a side is `wanted`, and resets
    /// the counters. Without messages the last side continues its turn, and the counters continue. A turn
    /// begins with the first message that starts a run; messages stored before it are history.
    pub(in crate::engine) fn next_run(&self, wanted: Option<Side>, now: i64) -> Run {
        let last = self.run.as_ref();
        let opens = self.opens.unwrap_or(self.max_seq);
        let (side, turn_from, counters) = match (self.queued, last) {
            (0, Some(last)) => (Some(last.side), last.turn_from, Counters::Keep),
            _ => (self.wakes, opens, Counters::Reset),
        };
        let side = wanted.or(side).unwrap_or(Side::A);
        // A run for a queued tool begins with the tool's message, because the result follows it directly.
        let queued = self.next_tool().filter(|seq| self.queued == 0 && seq + 2 == self.next_seq());
        let first = queued.unwrap_or_else(|| self.next_seq());
        Run::start(last, self.meta.floor(), side, turn_from, counters, (first, now))
    }

    /// Removes the called tools after their step is closed. Those still to be called stay queued.
    pub(in crate::engine) fn settle_tools(&mut self, sql: &dyn Sql) -> Result<()> {
        let mut done = self.queued_tools.iter().filter(|tool| tool.done).map(|tool| tool.seq);
        let Some(first) = done.next() else { return Ok(()) };
        queue::settle_tools(sql, first, done.next_back().unwrap_or(first))?;
        self.queued_tools.retain(|tool| !tool.done);
        Ok(())
    }
}

impl Thread {
    /// Queues a call of an existing callable with valid arguments. Returns the id of its message.
    ///
    /// # Errors
    /// `invalid_field`, `too_large`, `queue_full`, `terminated`.
    pub(in crate::engine) fn queue_tool(
        &self,
        name: &str,
        args: Value,
        by: Map<String, Value>,
    ) -> Result<String> {
        let name = undotted(name);
        if !is_tool(name) && !self.delegates().permits(name)? {
            return Err(Error::field("name", Delegates::not_permitted(name)));
        }
        let arguments = self.variables().redact_json(self.checked_args(name, args)?).to_string();
        let now = self.host.now_us();
        let (row, started) = self.transition(|state, sql| {
            let row = self.queue_call(state, sql, name, arguments, by, now)?;
            if state.active().is_some() || state.meta.stopped {
                return Ok((row, false));
            }
            self.start_for_queue(state, sql, None, now)?;
            Ok((row, true))
        })?;
        if started {
            self.start_flow(EntryMode::First);
        }
        self.broadcast_message(&row)?;
        self.read(|state, _| Ok(row.id(&state.meta.stem)))
    }

    /// The arguments of a call that code makes, with their defaults.
    pub(crate) fn checked_args(&self, name: &str, args: Value) -> Result<Value> {
        let args = match self.catalog.callable(name) {
            Some(callable) => callable.check(args).map_err(|problems| {
                Error::field("args", format!("Invalid arguments for “{name}”: {}", schema::lines(&problems)))
            })?,
            // The call itself reports invalid arguments.
            None if is_tool(name) => args,
            None => {
                let message = format!("There is no tool, prompt or exposed agent “{name}”.");
                return Err(Error::field("name", message));
            }
        };
        shallow("args", &args)?;
        let bytes = args.to_string().len();
        if bytes > limits::QUEUED_ARGS_BYTES {
            let limit = limits::QUEUED_ARGS_BYTES;
            let message =
                format!("The arguments for “{name}” have {bytes} bytes as JSON; the limit is {limit}.");
            return Err(Error::new(Code::TooLarge, message).at("args"));
        }
        Ok(args)
    }

    /// The part of [`Thread::queue_tool`] inside a transition.
    pub(crate) fn queue_call(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        name: &str,
        arguments: String,
        mut metadata: Map<String, Value>,
        now: i64,
    ) -> Result<SharedRow> {
        state.ensure_not_terminated()?;
        crate::engine::cycle::accept::room(state)?;
        let seq = state.next_seq();
        let side = state.run.as_ref().map_or(Side::A, |run| run.side);
        metadata.insert("queuedTool".into(), true.into());
        let call =
            ToolCall { id: format!("call_{seq}_0"), name: name.to_owned(), arguments, extra_content: None };
        let row = Row {
            content: None,
            calls: vec![call],
            inbound: Inbound::QueuedTool,
            metadata: Some(Value::Object(metadata).to_string()),
            ..Row::new(seq, side.role(), "", now)
        };
        state.insert(sql, row)
    }

    /// The first message of a step without a model call.
    pub(in crate::engine) fn queued_reply(&self) -> Result<Option<SharedRow>> {
        self.read(|state, sql| match state.queued_tools.first() {
            None => Ok(None),
            Some(tool) => row(state, sql, tool.seq),
        })
    }

    /// A step's reply with the calls of the queued tools that were called in it.
    pub(in crate::engine) fn with_queued(&self, reply: SharedRow) -> Result<SharedRow> {
        self.read(|state, sql| {
            if state.queued_tools.is_empty() {
                return Ok(reply);
            }
            let mut whole = (*reply).clone();
            for tool in state.queued_tools.iter().filter(|tool| tool.done && tool.seq != whole.seq) {
                whole.calls.extend(row(state, sql, tool.seq)?.into_iter().flat_map(|row| row.calls.clone()));
            }
            Ok(SharedRow::new(whole))
        })
    }
}

/// The message of a queued tool.
pub(in crate::engine) fn row(state: &State, sql: &dyn Sql, seq: i64) -> Result<Option<SharedRow>> {
    match state.window.as_ref().and_then(|window| window.row(seq)) {
        Some(row) => Ok(Some(row.clone())),
        None => Ok(rows::find(sql, seq)?.map(SharedRow::new)),
    }
}
