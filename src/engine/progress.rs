//! One line of text for whoever shows what a run does while it works (docs/http.md). It is made only while somebody listens for
//! it, and stored nowhere; the last one is kept in memory for who comes later.

use std::cell::{Cell, RefCell};

use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::{Either, LocalBoxFuture, select};
use serde_json::Value;

use crate::engine::call::Call;
use crate::engine::features::Activity;
use crate::error::Result;
use crate::host::{Frame, Place};
use crate::json;
use crate::limits;
use crate::sdk::scope::Scope;
use crate::spec::budget::Unit;
use crate::store::messages::Shared;
use crate::store::runs::Run;
use crate::store::runs::ledger::BudgetScope;
use crate::store::side::Side;
use crate::store::state::State;
use crate::store::waits::{Wait, WaitKind};

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A request leaves for a model.
    ProviderCall,
    /// Calls begin.
    ToolExecution,
    /// A tool is at work for long.
    ToolHeartbeat,
    /// A memory is searched.
    MemorySearch,
    /// A summary begins.
    RollingSummary,
    /// The run is parked.
    Waiting,
    /// A pause before the next attempt.
    Retry,
    /// What code has to say.
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

/// What one life of the object knows of it.
#[derive(Default)]
pub(crate) struct Progress {
    /// The last frame, while its run goes on and somebody listened.
    last: RefCell<Option<Value>>,
    /// Seq of the reply whose calls were named together.
    named: Cell<i64>,
    /// When code may say something again.
    quiet_until_us: Cell<i64>,
    /// Tools at work that nobody listens to; told when somebody comes.
    unheard: RefCell<Vec<oneshot::Sender<()>>>,
}

/// A line that is about to be told.
#[derive(Default)]
pub(crate) struct Line {
    pub(crate) text: String,
    /// Calls around what it is about.
    pub(crate) depth: u32,
    pub(crate) tools: Vec<String>,
    pub(crate) elapsed_s: Option<i64>,
}

/// A tool at work.
#[derive(Clone, Copy)]
pub(crate) struct AtWork<'a> {
    pub(crate) name: &'a str,
    pub(crate) scope: &'a Scope,
}

impl Activity<'_> {
    /// Whether a line is worth making. What was told before nobody listened is out of date.
    pub(crate) fn wants_progress(&self) -> bool {
        let wanted = self.has_listeners() && self.host.listeners().want_progress();
        if !wanted {
            self.ephemeral.progress.last.take();
        }
        wanted
    }

    /// Tells it, if the caller has seen that somebody wants it.
    pub(crate) fn tell_progress(&self, kind: Kind, line: Line) -> Result<()> {
        let now_ms = self.host.now_us() / 1_000;
        let (data, active) = self
            .read(|state, _| Ok((self.progress_data(state, kind, line, now_ms), state.active().is_some())))?;
        // What code says beside runs is nothing of the next one.
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
        json!({
            "type": "progress", "kind": kind.as_str(), "message": cut(message),
            "step": place.map(|(step, _)| step), "max_steps": place.map(|(_, most)| most),
            "tool_names": line.tools, "elapsed_seconds": line.elapsed_s, "depth": line.depth,
            "budget": state.active().and_then(|run| self.money_of(run)), "timestamp": now_ms,
        })
    }

    /// What was used of the limit on cost that is nearest, and that limit, in dollars.
    fn money_of(&self, run: &Run) -> Option<Value> {
        let ledger = run.ledger.as_ref()?;
        let beside = self.ephemeral.spending.beside(self.host.now_us());
        let of = |scope: BudgetScope| {
            let used = ledger.used_of(scope, run.steps_done()).and(&ledger.lent).and(&beside);
            Some((ledger.cap(scope, Unit::Cost)?, used.get(Unit::Cost)))
        };
        let nearest = BudgetScope::ALL.into_iter().filter_map(of).min_by_key(|(cap, used)| cap - used);
        let shown =
            |(cap, used)| json!({ "costUsd": Unit::Cost.shown(used), "limit": Unit::Cost.shown(cap) });
        nearest.map(shown)
    }

    /// The number of the step, and the smallest limit that holds for it.
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

    /// Calls of a reply begin: the first time those that are left are named together.
    pub(crate) fn tell_calls(&self, scope: &Scope, reply: &Shared, call: &Call) -> Result<()> {
        if !self.wants_progress() {
            return Ok(());
        }
        let first = self.ephemeral.progress.named.replace(reply.seq) != reply.seq;
        let calls = reply.calls.iter().skip(call.index).take(if first { usize::MAX } else { 1 });
        let tools: Vec<String> = calls.map(|call| call.name.clone()).collect();
        let text = format!("Executing tools: {}{}", listed(&tools), within(scope));
        self.tell_progress(Kind::ToolExecution, Line { text, depth: scope.depth, tools, elapsed_s: None })
    }

    /// Does the work of a tool, and says now and then that it goes on. The timer of that runs only while somebody listens.
    pub(crate) async fn with_heartbeats<T>(
        &self,
        tool: AtWork<'_>,
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
                let AtWork { name, scope } = tool;
                let text = format!("Still executing: {name} ({elapsed_s} s){}", within(scope));
                let tools = vec![name.to_owned()];
                let line = Line { text, depth: scope.depth, tools, elapsed_s: Some(elapsed_s) };
                self.tell_progress(Kind::ToolHeartbeat, line)?;
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

    /// A pause before the next attempt.
    pub(crate) fn tell_retry(&self, what: &str, depth: u32, pause_us: i64) -> Result<()> {
        if !self.wants_progress() {
            return Ok(());
        }
        let seconds = (pause_us + limits::SECOND_US - 1) / limits::SECOND_US;
        let text = format!("{what}, trying again in {seconds} s");
        self.tell_progress(Kind::Retry, Line { text, depth, ..Line::default() })
    }

    /// A memory is about to be searched.
    pub(crate) fn tell_search(&self, memory: &str) -> Result<()> {
        if !self.wants_progress() {
            return Ok(());
        }
        let text = format!("Searching memory: {memory}");
        self.tell_progress(Kind::MemorySearch, Line { text, ..Line::default() })
    }

    /// The run is parked.
    pub(crate) fn tell_waiting(&self, text: String) -> Result<()> {
        self.tell_progress(Kind::Waiting, Line { text, ..Line::default() })
    }

    /// What code says of what it does; not more often than once a second.
    pub(crate) fn note_progress(&self, text: &str, depth: u32) -> Result<()> {
        let now = self.host.now_us();
        let Progress { quiet_until_us, .. } = &self.ephemeral.progress;
        if text.trim().is_empty() || now < quiet_until_us.get() || !self.wants_progress() {
            return Ok(());
        }
        quiet_until_us.set(now + limits::SECOND_US);
        let text = self.variables().redact(text.to_owned());
        self.tell_progress(Kind::Note, Line { text, depth, ..Line::default() })
    }

    /// Somebody begins to listen. The last line, if there is one; of a parked run what it waits for.
    pub(crate) fn last_progress(&self, state: &State, open: &[Wait]) -> Option<Value> {
        let Progress { last, unheard, .. } = &self.ephemeral.progress;
        for waiting in unheard.take() {
            // A tool that has ended meanwhile does not mind.
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

    /// The run is over.
    pub(crate) fn forget_progress(&self) {
        self.ephemeral.progress.last.take();
    }
}

/// The frame of a line.
pub(crate) fn progress_frame(data: Value, place: Place) -> Frame {
    Frame { kind: "progress", id: None, data, silent: false, depth: 0, place }
}

/// What a parked run waits for, of several of a kind all.
pub(crate) fn waiting_for(waits: &[Wait]) -> Option<String> {
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

/// The tool that something works for: the called prompt that it is in.
fn within(scope: &Scope) -> String {
    let prompt = scope.path.last().filter(|_| scope.depth > 0);
    prompt.map_or_else(String::new, |prompt| format!(" for {prompt}"))
}

/// Names, of which three are shown.
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

/// A line that is not too long.
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
