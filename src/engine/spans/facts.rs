//! The rows from which a run's spans are derived.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::engine::features::Telemetry;
use crate::error::Result;
use crate::host::Sql;
use crate::limits;
use crate::store::receipts::Receipt;
use crate::store::runs::{Run, traces};
use crate::store::state::State;
use crate::store::waits::Wait;
use crate::store::{logs, receipts, waits};
use crate::trace::Trace;

/// Greater than every seq. The platform supports 53 bits.
const LAST: i64 = i64::MAX >> 11;

/// A log entry of the run: a request to a model, or another event.
pub(crate) struct LogEntry {
    pub(super) id: i64,
    pub(super) at_us: i64,
    /// Seq reserved for the reply.
    pub(super) reply: Option<i64>,
    pub(super) data: Value,
    /// Whether it ended after the run.
    pub(super) late: bool,
}

impl LogEntry {
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.data.get(name).and_then(Value::as_str)
    }

    pub(super) fn number(&self, name: &str) -> Option<i64> {
        self.data.get(name).and_then(Value::as_i64)
    }

    pub(super) fn real(&self, name: &str) -> Option<f64> {
        self.data.get(name).and_then(Value::as_f64)
    }

    /// The time of its end, if known.
    pub(super) fn ended_us(&self) -> i64 {
        self.number("ended_at").unwrap_or(self.at_us).max(self.at_us)
    }

    /// Whether it is a request for something other than a reply: a summary, vectors.
    pub(super) fn purpose(&self) -> Option<&str> {
        self.text("purpose")
    }

    /// Receipt of the call that the request belongs to.
    pub(super) fn inside(&self) -> Option<i64> {
        self.text("parent_call")?.strip_prefix("c_")?.parse().ok()
    }
}

/// The rows of a run.
pub(crate) struct Facts {
    pub(super) thread: String,
    /// The part that all span ids of the thread share.
    pub(super) stem: String,
    pub(super) agent: String,
    /// Depth of the thread below its root.
    pub(super) depth: u32,
    pub(crate) trace: Trace,
    pub(crate) run: Run,
    /// Requests to models, oldest first.
    pub(super) attempts: Vec<LogEntry>,
    /// Searches of memories, oldest first.
    pub(super) searches: Vec<LogEntry>,
    /// Limits that were reached, asked about or raised, oldest first.
    pub(super) budgets: Vec<LogEntry>,
    /// Recoveries after crashes, oldest first.
    pub(super) recoveries: Vec<LogEntry>,
    /// Calls of the run, including nested ones.
    pub(super) calls: Vec<Receipt>,
    /// Waits of the run, newest first, open or not.
    pub(super) waits: Vec<Wait>,
}

impl Telemetry<'_> {
    /// The rows of a run; `None` if it does not exist.
    pub(crate) fn facts_of(&self, state: &State, sql: &dyn Sql, run: i64) -> Result<Option<Facts>> {
        let Some(run) = traces::find(sql, run)? else { return Ok(None) };
        let (mut attempts, mut recoveries, mut beyond) = (Vec::new(), Vec::new(), LAST);
        let (mut searches, mut budgets) = (Vec::new(), Vec::new());
        logs::each_of_run(sql, run.id, |entry| {
            if entry.run.is_none() {
                // A summary that the run caused and that ended after it.
                let data: Value = crate::json::from_str(&entry.data).unwrap_or_default();
                if data.get("of_run").and_then(Value::as_i64) == Some(run.id) {
                    let (id, at_us) = (entry.id, entry.at_us);
                    attempts.push(LogEntry { id, at_us, reply: None, data, late: true });
                }
                return Ok(());
            }
            if entry.run != Some(run.id) {
                // The first reply of a later run, whose calls come after it.
                beyond =
                    entry.reply.filter(|_| entry.kind == "llm_request").map_or(beyond, |seq| seq.min(beyond));
                return Ok(());
            }
            let into = match entry.kind.as_str() {
                "llm_request" => &mut attempts,
                "recovery" => &mut recoveries,
                "budget" => &mut budgets,
                logs::MEMORY => &mut searches,
                _ => return Ok(()),
            };
            let data = crate::json::from_str(&entry.data).unwrap_or_default();
            into.push(LogEntry { id: entry.id, at_us: entry.at_us, reply: entry.reply, data, late: false });
            Ok(())
        })?;
        for rows in [&mut attempts, &mut recoveries, &mut searches, &mut budgets] {
            rows.reverse();
        }
        let before = traces::block_before(sql, run.id)?.unwrap_or(0);
        let beyond = beyond.max(run.block + limits::BLOCK);
        let calls = own_calls(&run, &attempts, receipts::between(sql, before, beyond)?);
        let known: BTreeSet<i64> = calls.iter().map(|call| call.id).collect();
        // Requests of a prompt that detached code calls have the run's number but do not belong to it.
        let is_own = |row: &LogEntry| row.inside().is_none_or(|call| known.contains(&call));
        attempts.retain(is_own);
        searches.retain(is_own);
        Ok(Some(Facts {
            thread: state.meta.thread_id.clone(),
            stem: state.meta.stem.clone(),
            agent: state.meta.agent.clone(),
            depth: state.meta.parent.as_ref().map_or(0, |parent| parent.depth),
            trace: self.traces().trace_of(state, &run),
            waits: waits::of_run(state, sql, run.id)?,
            run,
            attempts,
            searches,
            budgets,
            recoveries,
            calls,
        }))
    }
}

/// The run's own calls among those in its range: of its replies, queued by its code, and nested in others of
/// these.
fn own_calls(run: &Run, attempts: &[LogEntry], calls: Vec<Receipt>) -> Vec<Receipt> {
    let replies: BTreeSet<i64> = attempts.iter().filter_map(|attempt| attempt.reply).collect();
    let end = run.end.as_ref().map_or(i64::MAX, |end| end.at_us);
    let mut own: BTreeMap<i64, Receipt> = BTreeMap::new();
    for call in calls {
        let queued = || call.started_us >= run.started_us && call.started_us <= end;
        let belongs = call.data.work.is_none()
            && match call.reply {
                0 => false,
                reply if reply < 0 => own.contains_key(&-reply),
                reply => replies.contains(&reply) || queued(),
            };
        if belongs {
            own.insert(call.id, call);
        }
    }
    own.into_values().collect()
}
