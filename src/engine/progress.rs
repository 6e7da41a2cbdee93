//! Progress lines: one line of text about the current activity of a run (docs/streams.md). A line is built only
//! while a client listens for it, and is not stored. The last one is kept in memory for clients that connect
//! later.

use std::cell::{Cell, RefCell};

use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::{Either, LocalBoxFuture, select};
use serde_json::Value;

use crate::definitions::budget::Unit;
use crate::engine::calls::call::Call;
use crate::engine::features::Activity;
use crate::error::Result;
use crate::host::{Frame, FramePosition};
use crate::json;
use crate::limits;
use crate::protocols::responses::frames::{ProgressBudget, ProgressFrame};
use crate::sdk::scope::Scope;
use crate::store::messages::SharedRow;
use crate::store::runs::Run;
use crate::store::runs::ledger::BudgetScope;
use crate::store::side::Side;
use crate::store::state::State;
use crate::store::waits::{Wait, WaitKind};

/// The subject of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A request to a model starts.
    ProviderCall,
    /// Calls start.
    ToolExecution,
    /// A tool has been running for a while.
    ToolHeartbeat,
    /// A memory is searched.
    MemorySearch,
    /// A summary starts.
    RollingSummary,
    /// The run is parked.
    Waiting,
    /// A pause before the next attempt.
    Retry,
    /// A text from code.
    Note,
}

impl Kind {
    const fn as_str(self) -> &'static str {
        match self {
            Kind::ProviderCall => "provider_call",
            Kind::ToolExecution => "tool_execution",
            Kind::ToolHeartbeat => "tool_heartbeat",
            Kind::MemorySearch => "memory_search",
            Kind::RollingSummary => "rolling_summary",
            Kind::Waiting => "waiting",
            Kind::Retry => "retry",
            Kind::Note => "note",
        }
    }

    /// Whether a line begins with the step.
    const fn is_numbered(self) -> bool {
        matches!(self, Kind::ProviderCall | Kind::ToolExecution | Kind::ToolHeartbeat)
    }
}

/// The progress known to one life of the object.
#[derive(Default)]
pub(super) struct Progress {
    /// The last frame, while its run is active and a client listened.
    last: RefCell<Option<Value>>,
    /// Seq of the reply whose calls were listed together.
    named: Cell<i64>,
    /// The time from which code may send another line.
    quiet_until_us: Cell<i64>,
    /// Running tools without listeners; notified when a client connects.
    unheard: RefCell<Vec<oneshot::Sender<()>>>,
}

/// A line to send.
#[derive(Default)]
pub(super) struct Line {
    pub(super) text: String,
    /// The depth of calls around its subject.
    pub(super) depth: u32,
    pub(super) tools: Vec<String>,
    pub(super) elapsed_s: Option<i64>,
}

/// A running tool.
#[derive(Clone, Copy)]
pub(super) struct RunningTool<'a> {
    pub(super) name: &'a str,
    pub(super) scope: &'a Scope,
}

impl Activity<'_> {
    /// Whether a client wants lines. Without one, the last line is outdated and is dropped.
    pub(super) fn wants_progress(&self) -> bool {
        let wanted = self.has_listeners() && self.host.listeners().want_progress();
        if !wanted {
            self.ephemeral.progress.last.take();
        }
        wanted
    }

    /// Sends a line. The caller has checked that a client wants it.
    pub(super) fn send_progress(&self, kind: Kind, line: Line) -> Result<()> {
        let now_ms = self.host.now_us() / 1_000;
        let (data, active) = self
            .read(|state, _| Ok((self.progress_data(state, kind, line, now_ms), state.active().is_some())))?;
        // A line from code outside runs must not appear in the next run.
        *self.ephemeral.progress.last.borrow_mut() = active.then(|| data.clone());
        self.host.listeners().broadcast(&progress_frame(data, self.place()));
        Ok(())
    }

    fn progress_data(&self, state: &State, kind: Kind, line: Line, now_ms: i64) -> Value {
        let place = state.active().map(|run| self.step_of(state, run));
        let message = match place.filter(|_| kind.is_numbered()) {
            Some((step, most)) => format!("[{step}/{most}] {}", line.text),
            None => line.text,
        };
        json!(ProgressFrame {
            kind: kind.as_str(),
            message: cut(message),
            step: place.map(|(step, _)| step),
            max_steps: place.map(|(_, most)| most),
            tool_names: line.tools,
            elapsed_seconds: line.elapsed_s,
            depth: line.depth,
            budget: state.active().and_then(|run| self.money_of(run)),
            timestamp: now_ms,
        })
    }

    /// The limit on cost that is nearest, with the usage, in dollars.
    fn money_of(&self, run: &Run) -> Option<ProgressBudget> {
        let ledger = run.ledger.as_ref()?;
        let beside = self.ephemeral.spending.beside(self.host.now_us());
        let of = |scope: BudgetScope| {
            let used = ledger.used_of(scope, run.steps_done()).and(&ledger.lent).and(&beside);
            Some((ledger.cap(scope, Unit::Cost)?, used.get(Unit::Cost)))
        };
        let nearest = BudgetScope::ALL.into_iter().filter_map(of).min_by_key(|(cap, used)| cap - used);
        let shown = |amount| Unit::Cost.shown(amount);
        nearest.map(|(cap, used)| ProgressBudget { cost_usd: shown(used), limit: shown(cap) })
    }

    /// The number of the step, and the smallest limit on steps.
    fn step_of(&self, state: &State, run: &Run) -> (u32, u32) {
        let agent = self.catalog.agents.get(&state.meta.agent);
        let ([a, b], left) = (run.side_steps, limits::RUN_STEPS.saturating_sub(run.steps));
        let (own, side) = match run.side {
            Side::A => (a, agent.map(|agent| &agent.side_a)),
            Side::B => (b, agent.and_then(|agent| agent.side_b.as_ref())),
        };
        let of_side = side.and_then(|side| side.max_steps).map(|most| (own, most));
        let whole = |n: i64| u32::try_from(n).unwrap_or(u32::MAX);
        let of_budget = |scope: BudgetScope| {
            let ledger = run.ledger.as_ref()?;
            let steps = whole(ledger.used_of(scope, run.steps).get(Unit::Steps));
            Some((steps, whole(ledger.cap(scope, Unit::Steps)?)))
        };
        let all = of_side
            .into_iter()
            .chain([BudgetScope::Run, BudgetScope::Thread].into_iter().filter_map(of_budget));
        let nearest = all.min_by_key(|(steps, most)| most.saturating_sub(*steps));
        nearest
            .filter(|(steps, most)| most.saturating_sub(*steps) <= left)
            .unwrap_or((run.steps, limits::RUN_STEPS))
    }

    /// Sends the line of a reply's calls. The first line of a reply lists all its remaining calls.
    pub(super) fn send_calls(&self, scope: &Scope, reply: &SharedRow, call: &Call) -> Result<()> {
        if !self.wants_progress() {
            return Ok(());
        }
        let first = self.ephemeral.progress.named.replace(reply.seq) != reply.seq;
        let calls = reply.calls.iter().skip(call.index).take(if first { usize::MAX } else { 1 });
        let tools: Vec<String> = calls.map(|call| call.name.clone()).collect();
        let text = format!("Executing tools: {}{}", listed(&tools), within(scope));
        self.send_progress(Kind::ToolExecution, Line { text, depth: scope.depth, tools, elapsed_s: None })
    }

    /// Runs a tool, and sends heartbeat lines meanwhile. The timer runs only while a client listens.
    pub(super) async fn with_heartbeats<T>(
        &self,
        tool: RunningTool<'_>,
        mut work: LocalBoxFuture<'_, T>,
    ) -> Result<T> {
        let begun = self.host.now_us();
        let mut next = begun + limits::HEARTBEAT_US;
        loop {
            let tick: LocalBoxFuture<'_, ()> = match self.host.listeners().want_progress() {
                true => self.host.sleep_until(next),
                false => self.somebody_comes(),
            };
            match select(work, tick).await {
                Either::Left((done, _)) => return Ok(done),
                Either::Right(((), rest)) => work = rest,
            }
            let now = self.host.now_us();
            if now < next {
                continue;
            }
            let elapsed_s = (now - begun) / limits::SECOND_US;
            next = now + limits::HEARTBEAT_US - (now - begun) % limits::HEARTBEAT_US;
            if self.wants_progress() {
                let RunningTool { name, scope } = tool;
                let text = format!("Still executing: {name} ({elapsed_s} s){}", within(scope));
                let tools = vec![name.to_owned()];
                let line = Line { text, depth: scope.depth, tools, elapsed_s: Some(elapsed_s) };
                self.send_progress(Kind::ToolHeartbeat, line)?;
            }
        }
    }

    fn somebody_comes(&self) -> LocalBoxFuture<'static, ()> {
        let (send, receive) = oneshot::channel();
        let mut unheard = self.ephemeral.progress.unheard.borrow_mut();
        unheard.retain(|waiting| !waiting.is_canceled());
        unheard.push(send);
        Box::pin(receive.map(|_| ()))
    }

    /// Sends the line of a pause before the next attempt.
    pub(super) fn send_retry(&self, what: &str, depth: u32, pause_us: i64) -> Result<()> {
        if !self.wants_progress() {
            return Ok(());
        }
        let seconds = (pause_us + limits::SECOND_US - 1) / limits::SECOND_US;
        let text = format!("{what}, trying again in {seconds} s");
        self.send_progress(Kind::Retry, Line { text, depth, ..Line::default() })
    }

    /// Sends the line of a search of a memory.
    pub(super) fn send_search(&self, memory: &str) -> Result<()> {
        if !self.wants_progress() {
            return Ok(());
        }
        let text = format!("Searching memory: {memory}");
        self.send_progress(Kind::MemorySearch, Line { text, ..Line::default() })
    }

    /// Sends the line of a parked run.
    pub(super) fn send_waiting(&self, text: String) -> Result<()> {
        self.send_progress(Kind::Waiting, Line { text, ..Line::default() })
    }

    /// Sends a line from code, at most once a second.
    pub(super) fn note_progress(&self, text: &str, depth: u32) -> Result<()> {
        let now = self.host.now_us();
        let Progress { quiet_until_us, .. } = &self.ephemeral.progress;
        if text.trim().is_empty() || now < quiet_until_us.get() || !self.wants_progress() {
            return Ok(());
        }
        quiet_until_us.set(now + limits::SECOND_US);
        let text = self.variables().redact(text.to_owned());
        self.send_progress(Kind::Note, Line { text, depth, ..Line::default() })
    }

    /// The line for a new listener: the last one, or the waits of a parked run.
    pub(super) fn last_progress(&self, state: &State, open: &[Wait]) -> Option<Value> {
        let Progress { last, unheard, .. } = &self.ephemeral.progress;
        for waiting in unheard.take() {
            // The tool may have ended in the meantime.
            let _over = waiting.send(());
        }
        state.active()?;
        let told = last.borrow().clone();
        told.or_else(|| {
            let text = waiting_for(open)?;
            let now_ms = self.host.now_us() / 1_000;
            Some(self.progress_data(state, Kind::Waiting, Line { text, ..Line::default() }, now_ms))
        })
    }

    /// Drops the last line at the end of a run.
    pub(super) fn forget_progress(&self) {
        self.ephemeral.progress.last.take();
    }
}

/// The frame of a line.
pub(super) fn progress_frame(data: Value, place: FramePosition) -> Frame {
    Frame { kind: "progress", id: None, data, silent: false, depth: 0, place }
}

/// The line about the waits of a parked run. It lists all waits of the first one's kind.
pub(super) fn waiting_for(waits: &[Wait]) -> Option<String> {
    let first = waits.first()?;
    let alike = waits.iter().filter(|wait| wait.kind == first.kind);
    let tools: Vec<String> =
        alike.filter_map(|wait| wait.asked.call.as_ref().map(|call| call.tool.clone())).collect();
    let title = &first.asked.title;
    Some(match first.kind {
        WaitKind::Approval => format!("Waiting for approval: {}", listed(&tools)),
        WaitKind::ClientTool => format!("Waiting for the client: {}", listed(&tools)),
        WaitKind::Question => format!("Waiting for an answer: {title}"),
        WaitKind::Retry => format!("Waiting for the next attempt: {title}"),
        WaitKind::Budget => "Waiting for a decision on the budget".to_owned(),
        WaitKind::Children => "Waiting for subagents".to_owned(),
        WaitKind::Task => format!("Waiting for {}", listed(&tools)),
        WaitKind::Elicitation => format!("Waiting for input: {title}"),
        WaitKind::SignIn => format!("Waiting for a person: {title}"),
    })
}

/// The called prompt that a tool works for.
fn within(scope: &Scope) -> String {
    let prompt = scope.path.last().filter(|_| scope.depth > 0);
    prompt.map_or_else(String::new, |prompt| format!(" for {prompt}"))
}

/// Names, at most three of them.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 3;
    match names.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        None => names.join(", "),
        Some(more) => {
            let shown: Vec<&str> = names.iter().take(SHOWN).map(String::as_str).collect();
            format!("{} and {more} more", shown.join(", "))
        }
    }
}

/// A text cut to the maximum length of a line.
fn cut(text: String) -> String {
    if text.chars().count() <= limits::PROGRESS_CHARS {
        return text;
    }
    let shown: String = text.chars().take(limits::PROGRESS_CHARS - 1).collect();
    format!("{shown}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_three_are_counted_and_a_line_is_cut() {
        let names = |n: usize| (0..n).map(|i| format!("t{i}")).collect::<Vec<_>>();
        for (n, expected) in [
            (0, ""),
            (1, "t0"),
            (3, "t0, t1, t2"),
            (4, "t0, t1, t2 and 1 more"),
            (7, "t0, t1, t2 and 4 more"),
        ] {
            assert_eq!(listed(&names(n)), expected);
        }
        assert_eq!(cut("ü".repeat(200)), "ü".repeat(200));
        let long = cut("ü".repeat(201));
        assert!(long.chars().count() == 200 && long.ends_with('…'), "{long}");
    }
}
