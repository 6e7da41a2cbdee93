//! The trace of a run: its events in the order of time. It is derived from the rows of the run, its log and
//! its receipts. Only the entries that code adds are stored for it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde_json::Value;

use crate::definitions::subagent::dotted;
use crate::engine::cycle::outcome;
use crate::error::Result;
use crate::host::Sql;
use crate::json;
use crate::limits;
use crate::page::Page;
use crate::protocols::responses::runs::TraceEvent;
use crate::store::children::open;
use crate::store::logs::Entry;
use crate::store::messages as rows;
use crate::store::messages::{Inbound, message_id};
use crate::store::receipts::Receipt;
use crate::store::runs::Run;
use crate::store::runs::end::{Outcome, Reason};
use crate::store::state::State;
use crate::store::waits::{Wait, WaitKind, WaitState};
use crate::store::{logs, receipts, summaries, waits};
use crate::{dates, page};

/// Maximum number of entries at the end of a run.
const LAST: u32 = 3;

/// The event with the values at the start of a run.
const SNAPSHOT: &str = "agent.loop.snapshot";

/// An entry with its time.
type DatedEntry = (i64, TraceEvent);

/// The entries of a run, and whether some are left out.
pub(super) fn of_run(state: &State, sql: &dyn Sql, run: &Run) -> Result<(Vec<TraceEvent>, bool)> {
    let thread = &state.meta.stem;
    let mut between = EventCollector::new(state, sql, run);
    logs::of_run(sql, run.id, &mut |row| between.log(&row))?;
    between.snapshot()?;
    between.subagents()?;
    let before = Run::find(sql, run.id - 1)?.map_or_else(|| state.meta.copied_upto(), |run| run.block);
    let until = run.end.as_ref().map_or(i64::MAX, |end| end.at_us);
    between.waits()?;
    between.summaries(until)?;
    between.warnings();
    receipts::of_run(sql, before, (run.started_us, until), &mut |receipt| between.call(&receipt))?;
    let (mut told, cut) = (between.told, between.cut);
    told.sort_by_key(|(at, _)| *at);

    let mut trace = Page::of_bytes(limits::TRACE_ENTRIES - LAST, limits::PAGE_BYTES);
    let start = entry(
        "run.start",
        run.started_us,
        json!({ "agent": agent(state, sql, run)?, "trigger": trigger(sql, run, thread)? }),
    );
    for event in std::iter::once(start).chain(told.into_iter().map(|(_, event)| event)) {
        if trace
            .add_sized(|| {
                let bytes = page::json_bytes(&event);
                Ok((event, bytes))
            })?
            .is_break()
        {
            break;
        }
    }
    let truncated = cut || trace.has_more();
    let mut entries = trace.into_rows();
    entries.extend(ending(sql, run, thread)?);
    Ok((entries, truncated))
}

fn entry(kind: &str, at_us: i64, data: Value) -> TraceEvent {
    TraceEvent { kind: kind.to_owned(), at: dates::iso(at_us), data }
}

/// The agent at the start of the run: the current one, unless another took over since.
fn agent(state: &State, sql: &dyn Sql, run: &Run) -> Result<String> {
    let meta = &state.meta;
    if meta.agent == meta.origin_agent {
        return Ok(meta.agent.clone());
    }
    let before = Run::find(sql, run.id - 1)?.map_or(0, |run| run.block + limits::BLOCK);
    Ok(receipts::handed_before(sql, before, run.started_us)?.unwrap_or_else(|| meta.origin_agent.clone()))
}

/// The message that began the run; none if a reply did.
fn trigger(sql: &dyn Sql, run: &Run, thread: &str) -> Result<Option<String>> {
    let row = rows::find(sql, run.turn_from)?.filter(|row| row.inbound != Inbound::Step);
    Ok(row.map(|row| message_id(thread, row.seq)))
}

/// The result of the run, and its end.
fn ending(sql: &dyn Sql, run: &Run, thread: &str) -> Result<Vec<TraceEvent>> {
    let Some(end) = &run.end else { return Ok(Vec::new()) };
    let mut entries = Vec::new();
    if let Some(reply) = outcome::reply_of(sql, run)? {
        entries.push(entry("run.output", end.at_us, json!({ "message": reply.id(thread) })));
    }
    entries.push(match end.reason.outcome() {
        Outcome::Completed => entry("run.success", end.at_us, Value::Null),
        Outcome::Failed | Outcome::Stopped => entry("run.error", end.at_us, json!(outcome::error(end))),
    });
    let data = json!({ "status": outcome::status(run), "reason": end.reason.as_str() });
    entries.push(entry("run.end", end.at_us, data));
    Ok(entries)
}

/// The events between the start and the end.
struct EventCollector<'a> {
    state: &'a State,
    sql: &'a dyn Sql,
    run: &'a Run,
    told: Vec<DatedEntry>,
    cut: bool,
    /// The last attempt at each reply.
    attempts: BTreeMap<i64, FailedAttempt>,
    /// Log entries about children, one statement each.
    children: Vec<(i64, Value)>,
    /// Whether calls wait for a child, by its reference.
    blocking: BTreeMap<String, bool>,
    /// Children that calls wait for.
    waiting: Vec<String>,
}

/// An attempt that failed.
struct FailedAttempt {
    model: String,
    number: u64,
    ended_us: i64,
    error: Value,
}

impl<'a> EventCollector<'a> {
    fn new(state: &'a State, sql: &'a dyn Sql, run: &'a Run) -> EventCollector<'a> {
        EventCollector {
            state,
            sql,
            run,
            told: Vec::new(),
            cut: false,
            attempts: BTreeMap::new(),
            children: Vec::new(),
            blocking: BTreeMap::new(),
            waiting: Vec::new(),
        }
    }

    fn add(&mut self, at_us: i64, kind: &str, data: Value) {
        self.told.push((at_us, entry(kind, at_us, data)));
    }

    /// Whether more entries fit. The amount that is read of a run is bounded.
    fn next(&mut self) -> ControlFlow<()> {
        if self.told.len() + self.children.len() < limits::TRACE_ENTRIES as usize * 2 {
            return ControlFlow::Continue(());
        }
        self.cut = true;
        ControlFlow::Break(())
    }

    fn log(&mut self, row: &Entry) -> Result<ControlFlow<()>> {
        let data: Value = crate::json::from_str(&row.data).unwrap_or_default();
        let of = |names: &[&str]| -> Value {
            let named = names.iter().filter_map(|name| Some(((*name).to_owned(), data.get(*name)?.clone())));
            Value::Object(named.collect())
        };
        match row.kind.as_str() {
            logs::ATTEMPT => self.attempt(row, &data),
            logs::TRACE => {
                let kind = data.get("kind").and_then(Value::as_str).unwrap_or("app");
                self.add(row.at_us, kind, data.get("data").cloned().unwrap_or_default());
            }
            "recovery" => self.add(row.at_us, "run.recovered", of(&["phase", "step", "recoveries"])),
            "snapshot" => self.add(row.at_us, SNAPSHOT, data),
            logs::MEMORY => {
                let told = ["memory", "by", "status", "results", "degraded", "latency_ms", "error"];
                self.add(row.at_us, "memory.search", of(&told));
            }
            "budget" => {
                let event = data.get("event").and_then(Value::as_str).unwrap_or("reached");
                self.add(row.at_us, &format!("budget.{event}"), of(&["scope", "unit", "spent", "limit"]));
            }
            "hook" => self.add(row.at_us, "hook.failed", of(&["hook_id", "hook", "error"])),
            "subagent" => self.children.push((row.at_us, data)),
            _ => {}
        }
        Ok(self.next())
    }

    /// The values at its start, if an earlier run has written them.
    fn snapshot(&mut self) -> Result<()> {
        let own = self.told.iter().any(|(_, entry)| entry.kind == SNAPSHOT);
        let Some(hash) = self.run.snapshot.as_deref().filter(|_| !own) else { return Ok(()) };
        if let Some(text) = logs::snapshot_before(self.sql, self.run.id, hash)? {
            let data = crate::json::from_str(&text).unwrap_or_default();
            self.add(self.run.started_us, SNAPSHOT, data);
        }
        Ok(())
    }

    /// Summaries that were stored during the run.
    fn summaries(&mut self, until: i64) -> Result<()> {
        if self.state.meta.summary.as_ref().is_none_or(|current| current.epoch == 0) {
            return Ok(());
        }
        for made in summaries::all(self.sql)? {
            if (self.run.started_us..=until).contains(&made.created_us) {
                let upto = message_id(&self.state.meta.stem, made.upto);
                let told = json!({ "epoch": made.epoch, "upto": upto, "model": made.model });
                self.add(made.created_us, "summary.updated", told);
            }
        }
        Ok(())
    }

    /// Limits that were nearly reached, and summaries that were discarded or are paused.
    fn warnings(&mut self) {
        let kinds = [
            ("budget.warning", "budget.warning"),
            ("summary_stale", "summary.stale"),
            ("summary_paused", "summary.paused"),
        ];
        for (code, kind) in kinds {
            for (at_us, data) in self.run.diagnostics.of_code(code) {
                self.add(at_us, kind, data);
            }
        }
    }

    /// An attempt at a model, and the decision after the previous one.
    fn attempt(&mut self, row: &Entry, data: &Value) {
        let text = |name: &str| data.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (model, status) = (text("model_name"), text("status"));
        let number = data.get("attempt").and_then(Value::as_u64).unwrap_or(0);
        let ended_us = data.get("ended_at").and_then(Value::as_i64).unwrap_or(row.at_us);
        if let Some(purpose) = data.get("purpose") {
            let latency = (ended_us - row.at_us) / 1_000;
            let told = json!({ "model": model, "attempt": number, "status": status, "latencyMs": latency, "purpose": purpose });
            return self.add(row.at_us, "model.attempt", told);
        }
        let reply = row.reply.unwrap_or(0);
        if let Some(before) = self.attempts.remove(&reply) {
            if before.model == model {
                let delay = (row.at_us - before.ended_us).max(0) / 1_000;
                let told = json!({ "adapter": "model", "attempt": number, "delayMs": delay, "reason": before.error });
                self.add(before.ended_us, "adapter.retry", told);
            } else {
                self.exhausted(&before);
            }
        }
        let mut told = json!({ "model": model, "attempt": number, "status": status, "latencyMs": (ended_us - row.at_us) / 1_000 });
        if status == "failed" {
            let error = data.get("error_type").cloned().unwrap_or_default();
            if let Some(fields) = told.as_object_mut() {
                fields.insert("error".into(), error.clone());
            }
            self.attempts.insert(reply, FailedAttempt { model, number, ended_us, error });
        }
        self.add(row.at_us, "model.attempt", told);
        if reply == self.run.block
            && self.gave_up()
            && let Some(last) = self.attempts.remove(&reply)
        {
            self.exhausted(&last);
        }
    }

    fn gave_up(&self) -> bool {
        let stream = u64::from(self.run.stream);
        let last = self.attempts.get(&self.run.block).is_some_and(|last| last.number >= stream);
        last && self.run.end.as_ref().is_some_and(|end| end.reason == Reason::ModelError)
    }

    fn exhausted(&mut self, last: &FailedAttempt) {
        let told =
            json!({ "adapter": "model", "model": last.model, "attempt": last.number, "reason": last.error });
        self.add(last.ended_us, "adapter.retry.exhausted", told);
    }

    /// Requests to people or clients, and whether the run continued with their answers. A wait that is open
    /// when a run ends has no such entry, because the end follows.
    fn waits(&mut self) -> Result<()> {
        let waits = waits::of_run(self.state, self.sql, self.run.id)?;
        for wait in waits.iter().rev() {
            self.comes_later(wait);
            let id = wait.public_id(&self.state.meta.stem);
            let kind = outcome::pause_kind([wait.kind.as_str()].into_iter());
            self.add(
                wait.created_us,
                "run.paused",
                json!({ "pauseKind": kind, "wait": id, "kind": wait.kind.as_str() }),
            );
            let Some(resumed_us) = wait.resumed_us(&waits) else { continue };
            let decision = wait.decision.as_ref().map(|decision| &decision.decision);
            let mut told = json!({ "decision": decision, "wait": id });
            if let Some(fields) = told.as_object_mut().filter(|_| decision.is_none()) {
                fields.insert("state".into(), wait.state.as_str().into());
            }
            self.add(resumed_us, "run.resumed", told);
            if self.next().is_break() {
                break;
            }
        }
        Ok(())
    }

    /// A retry that has not been logged: its pause has not ended, or its response has not arrived.
    fn comes_later(&mut self, wait: &Wait) {
        let counted = wait.kind == WaitKind::Retry && wait.state != WaitState::Cancelled;
        let failed = wait.batch.filter(|_| counted).and_then(|reply| self.attempts.get(&reply));
        let Some(before) = failed.filter(|before| before.ended_us <= wait.created_us) else { return };
        let delay = (wait.expires_us - wait.created_us) / 1_000;
        let told = json!({ "adapter": "model", "attempt": before.number + 1, "delayMs": delay, "reason": before.error });
        self.add(wait.created_us, "adapter.retry", told);
    }

    /// Log entries about children.
    fn subagents(&mut self) -> Result<()> {
        for (at_us, data) in std::mem::take(&mut self.children) {
            self.subagent(at_us, &data)?;
        }
        Ok(())
    }

    /// An event of a child, and whether the run waits for the child.
    fn subagent(&mut self, at_us: i64, data: &Value) -> Result<()> {
        let text = |name: &str| data.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (event, reference) = (text("event"), text("reference"));
        let told = json!({ "subagent": reference, "agent": data.get("agent"), "status": data.get("status") });
        self.add(at_us, &format!("subagent.{event}"), told);
        match event.as_str() {
            "ask" => {
                self.add(at_us, "run.paused", json!({ "pauseKind": "external", "subagent": reference }));
                self.waiting.push(reference);
            }
            "create" | "message" if self.waits_for(&reference, &event)? => {
                self.add(at_us, "run.paused", json!({ "pauseKind": "external", "subagent": reference }));
                self.waiting.push(reference);
            }
            "return" | "failure" | "terminated" | "closed" if self.waiting.contains(&reference) => {
                self.waiting.retain(|waiting| *waiting != reference);
                self.add(at_us, "run.resumed", json!({ "subagent": reference }));
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether a call that created or messaged this child waits for its answer.
    fn waits_for(&mut self, reference: &str, event: &str) -> Result<bool> {
        if let Some(known) = self.blocking.get(reference) {
            return Ok(*known);
        }
        let child = open::find(self.state, self.sql, reference)?;
        let blocks = child.as_ref().is_some_and(|child| child.facts.blocking);
        self.blocking.insert(reference.to_owned(), blocks);
        // No call waits for a child that was created after the values that its call lacked were set.
        Ok(blocks && !(event == "create" && child.is_some_and(|child| child.facts.deferred)))
    }

    fn call(&mut self, receipt: &Receipt) -> Result<ControlFlow<()>> {
        let Receipt { id, name, kind, state, runs, started_us, ended_us, error, .. } = receipt;
        let mut told = json!({
            "call": format!("c_{id}"), "tool": dotted(name), "kind": kind.as_str(), "state": state.as_str(),
            "latencyMs": ended_us.map(|ended| (ended - started_us) / 1_000),
        });
        if let Some(fields) = told.as_object_mut() {
            if let Some(error) = error {
                fields.insert("error".into(), error.as_str().into());
            }
            if *runs > 1 {
                fields.insert("runs".into(), (*runs).into());
            }
        }
        self.add(*started_us, "tool.call", told);
        Ok(self.next())
    }
}
