//! Builds spans from a run's rows: the run, its steps, the requests to models and calls of each step, and the
//! work of each call. They are in the order of the steps, so that a part can be exported and the rest later.

use std::collections::BTreeMap;

use crate::engine::spans::attributes::Annotator;
use crate::engine::spans::facts::{Facts, LogEntry};
use crate::engine::spans::{AttributeValue, RunRelation, Span, Subject};
use crate::memory::log::PURPOSE as EMBEDDING;
use crate::store::receipts::{Kind, Receipt};
use crate::store::runs::Run;
use crate::store::waits::Wait;
use crate::trace::span_id;

/// The parent of a span.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ParentSpan {
    Step(i64),
    Call(i64),
    Run,
}

/// Parents of requests and calls.
struct ParentSpans {
    /// By the seq of a reply: the step, or the call whose prompt wrote it.
    replies: BTreeMap<i64, ParentSpan>,
    /// Steps, with their start times.
    steps: Vec<(i64, i64)>,
    /// By receipt: its parent, and its step.
    calls: BTreeMap<i64, (ParentSpan, i64)>,
}

impl ParentSpans {
    fn of(facts: &Facts) -> ParentSpans {
        let mut places = ParentSpans { replies: BTreeMap::new(), steps: Vec::new(), calls: BTreeMap::new() };
        for attempt in &facts.attempts {
            let Some(reply) = attempt.reply else { continue };
            let below = attempt.inside().map_or(ParentSpan::Step(reply), ParentSpan::Call);
            if places.replies.insert(reply, below).is_none() && below == ParentSpan::Step(reply) {
                places.steps.push((reply, attempt.at_us));
            }
        }
        places.steps.sort_unstable();
        for call in &facts.calls {
            let below = match call.reply {
                reply if reply < 0 => ParentSpan::Call(-reply),
                // For a tool that code has queued, the step in which it was called.
                reply => places.replies.get(&reply).copied().unwrap_or_else(|| places.at(call.started_us)),
            };
            let block = places.block(below);
            places.calls.insert(call.id, (below, block));
        }
        places
    }

    /// The step that was open at this time.
    fn at(&self, us: i64) -> ParentSpan {
        let begun = self.steps.iter().rev().find(|(_, start)| *start <= us);
        begun.map_or(ParentSpan::Run, |(block, _)| ParentSpan::Step(*block))
    }

    /// The step of a span with this parent.
    fn block(&self, below: ParentSpan) -> i64 {
        match below {
            ParentSpan::Step(block) => block,
            ParentSpan::Call(call) => self.calls.get(&call).map_or(0, |(_, block)| *block),
            ParentSpan::Run => 0,
        }
    }

    /// A request for a call is below the call. A request before a step is below the step.
    fn below(&self, row: &LogEntry) -> ParentSpan {
        match row.inside() {
            Some(call) => ParentSpan::Call(call),
            None => self.next(row.at_us).map_or(ParentSpan::Run, ParentSpan::Step),
        }
    }

    /// The step that begins next.
    fn next(&self, us: i64) -> Option<i64> {
        self.steps.iter().find(|(_, start)| *start >= us).map(|(block, _)| *block)
    }

    /// The step with which a span is exported. A span directly below the run belongs to the next step.
    fn block_of(&self, facts: &Facts, below: ParentSpan, row: &LogEntry) -> i64 {
        match below {
            ParentSpan::Run => self.next(row.at_us).unwrap_or(facts.run.block),
            below => self.block(below),
        }
    }

    fn parent(&self, facts: &Facts, below: ParentSpan) -> String {
        match below {
            ParentSpan::Step(block) => span_id(&facts.stem, "step", block),
            ParentSpan::Call(call) => span_id(&facts.stem, "call", call),
            ParentSpan::Run => span_id(&facts.stem, "run", facts.run.id),
        }
    }
}

/// Whether a step is complete.
fn is_closed(run: &Run, block: i64) -> bool {
    run.end.is_some() || block < run.block
}

/// All ended spans of a run, in the order of steps. The run itself is last.
pub(crate) fn spans(facts: &Facts, telling: &dyn Annotator) -> Vec<Span> {
    let places = ParentSpans::of(facts);
    let mut spans = Vec::new();
    let mut before: Option<&LogEntry> = None;
    for attempt in &facts.attempts {
        let Some(reply) = attempt.reply else { continue };
        let below = places.replies.get(&reply).copied().unwrap_or(ParentSpan::Run);
        let mut span = of_attempt(facts, telling, attempt, reply, before);
        span.parent = Some(places.parent(facts, below));
        span.block = places.block(below);
        spans.push(span);
        before = Some(attempt);
    }
    looked_up(facts, telling, &places, &mut spans);
    for call in &facts.calls {
        let Some(ended_us) = call.ended_us else { continue };
        let (below, block) = places.calls.get(&call.id).copied().unwrap_or((ParentSpan::Run, 0));
        let mut span = of_call(facts, telling, call, ended_us);
        span.parent = Some(places.parent(facts, below));
        span.block = block;
        spans.extend(of_mcp(facts, telling, call, &span));
        spans.push(span);
    }
    for wait in facts.waits.iter().rev() {
        let Some(closed_us) = wait.closed_us else { continue };
        let below =
            wait.batch.and_then(|reply| places.replies.get(&reply)).copied().unwrap_or(ParentSpan::Run);
        let mut span = of_wait(facts, wait, closed_us);
        span.parent = Some(places.parent(facts, below));
        span.block = places.block(below);
        spans.push(span);
    }
    for (n, (block, start_us)) in (1..).zip(&places.steps) {
        if is_closed(&facts.run, *block) {
            spans.push(of_step(facts, &spans, n, *block, *start_us));
        }
    }
    summarised(facts, telling, &places, &mut spans);
    for span in &mut spans {
        span.settled = is_closed(&facts.run, span.block);
    }
    // Spans without a step come before the first step.
    spans.sort_by_key(|span| span.block);
    if let Some(end) = &facts.run.end {
        let run = of_run(facts, telling, &spans, end.at_us);
        spans.push(run);
    }
    spans
}

/// Adds searches of memories, with their requests for vectors. Those at the beginning of a turn belong to its
/// first step.
fn looked_up(facts: &Facts, telling: &dyn Annotator, places: &ParentSpans, spans: &mut Vec<Span>) {
    for search in &facts.searches {
        let below = places.below(search);
        let id = span_id(&facts.stem, "search", search.id);
        let name = format!("search_memory {}", search.text("memory").unwrap_or_default());
        let mut span = Span::new(Subject::Search, id.clone(), name, search.at_us, search.ended_us());
        telling.search(&mut span, facts, search);
        place(&mut span, places.parent(facts, below), places.block_of(facts, below, search));
        spans.push(span);
    }
    for request in facts.attempts.iter().filter(|attempt| attempt.purpose() == Some(EMBEDDING)) {
        let below = places.below(request);
        let mut span = of_request(facts, telling, request, "embeddings");
        let holds = |search: &&LogEntry| {
            search.inside() == request.inside()
                && search.text("memory") == request.text("memory")
                && (search.at_us..=search.ended_us()).contains(&request.at_us)
        };
        let parent = match facts.searches.iter().find(holds) {
            Some(search) => span_id(&facts.stem, "search", search.id),
            None => places.parent(facts, below),
        };
        place(&mut span, parent, places.block_of(facts, below, request));
        spans.push(span);
    }
}

/// Adds summaries, which are written in parallel with the run's steps. Each is exported with the step during
/// which it ended, or by itself if it ended after the run.
fn summarised(facts: &Facts, telling: &dyn Annotator, places: &ParentSpans, spans: &mut Vec<Span>) {
    let other = |attempt: &&LogEntry| attempt.purpose().is_some_and(|purpose| purpose != EMBEDDING);
    for request in facts.attempts.iter().filter(other) {
        let mut span = of_request(facts, telling, request, "chat");
        let parent = places.parent(facts, ParentSpan::Run);
        if request.late {
            place(&mut span, parent, i64::MAX);
            span.place = RunRelation::After;
        } else {
            let block = places.block(places.at(span.end_us));
            place(&mut span, parent, block);
            span.place = RunRelation::Beside;
        }
        spans.push(span);
    }
}

fn place(span: &mut Span, parent: String, block: i64) {
    (span.parent, span.block) = (Some(parent), block);
}

/// A request that is not for a reply.
fn of_request(facts: &Facts, telling: &dyn Annotator, request: &LogEntry, operation: &str) -> Span {
    let model = request.text("model").unwrap_or("unknown");
    let id = span_id(&facts.stem, "attempt", format_args!("log.{}", request.id));
    let name = format!("{operation} {model}");
    let mut span = Span::new(Subject::Attempt, id, name, request.at_us, request.ended_us());
    telling.attempt(&mut span, facts, request);
    span
}

fn of_attempt(
    facts: &Facts,
    telling: &dyn Annotator,
    attempt: &LogEntry,
    reply: i64,
    before: Option<&LogEntry>,
) -> Span {
    let stream = attempt.number("attempt").unwrap_or(0);
    let model = attempt.text("model").unwrap_or("unknown");
    let id = span_id(&facts.stem, "attempt", format_args!("{reply}.{stream}"));
    let mut span =
        Span::new(Subject::Attempt, id, format!("chat {model}"), attempt.at_us, attempt.ended_us());
    telling.attempt(&mut span, facts, attempt);
    // A retry for the same reply.
    if let Some(before) = before.filter(|before| before.reply == attempt.reply) {
        let name = |of: &LogEntry| of.text("model_name").unwrap_or_default().to_owned();
        let same = before.text("model_name") == attempt.text("model_name");
        let event = if same { "bobbin.retry" } else { "bobbin.fallback" };
        let from = vec![("bobbin.from", AttributeValue::Text(name(before)))];
        span.event(span.start_us, event, from);
    }
    span
}

fn of_call(facts: &Facts, telling: &dyn Annotator, call: &Receipt, ended_us: i64) -> Span {
    let id = span_id(&facts.stem, "call", call.id);
    let mut span = Span::new(Subject::Call, id, String::new(), call.started_us, ended_us);
    telling.call(&mut span, facts, call);
    span
}

/// The MCP request of a call, below the call's span.
fn of_mcp(facts: &Facts, telling: &dyn Annotator, call: &Receipt, parent: &Span) -> Option<Span> {
    if call.kind != Kind::Mcp || call.runs == 0 {
        return None;
    }
    let id = span_id(&facts.stem, "mcp", call.id);
    let mut span = Span::new(Subject::Mcp, id, String::new(), parent.start_us, parent.end_us);
    telling.mcp(&mut span, facts, call);
    place(&mut span, parent.id.clone(), parent.block);
    Some(span)
}

/// A wait, from the question to its end. Question and answer are content, and not exported here.
fn of_wait(facts: &Facts, wait: &Wait, closed_us: i64) -> Span {
    let id = span_id(&facts.stem, "wait", wait.id);
    let name = format!("wait {}", wait.kind.as_str());
    let mut span = Span::new(Subject::Wait, id, name, wait.created_us, closed_us);
    span.text("gen_ai.conversation.id", Some(facts.thread.as_str()));
    span.text("bobbin.run", Some(facts.run.public_id()));
    span.text("bobbin.wait", Some(wait.public_id(&facts.stem)));
    span.text("bobbin.wait.kind", Some(wait.kind.as_str()));
    span.text("bobbin.wait.state", Some(wait.state.as_str()));
    span.text("bobbin.wait.decision", wait.decision.as_ref().map(|decision| decision.decision.as_str()));
    span.text("gen_ai.tool.name", wait.asked.call.as_ref().map(|call| call.tool.as_str()));
    span
}

/// A step, from its first request to its last result.
fn of_step(facts: &Facts, spans: &[Span], n: i64, block: i64, start_us: i64) -> Span {
    let inside = || spans.iter().filter(|span| span.block == block && span.place == RunRelation::Within);
    let start_us = inside().map(|span| span.start_us).min().unwrap_or(start_us).min(start_us);
    let end_us = inside().map(|span| span.end_us).max().unwrap_or(start_us);
    let id = span_id(&facts.stem, "step", block);
    let mut span = Span::new(Subject::Step, id, format!("step {n}"), start_us, end_us);
    span.parent = Some(span_id(&facts.stem, "run", facts.run.id));
    span.block = block;
    span.text("gen_ai.conversation.id", Some(facts.thread.as_str()));
    span.text("bobbin.run", Some(facts.run.public_id()));
    span.number("bobbin.step", Some(n));
    let of_step = |recovery: &&LogEntry| recovery.reply == Some(block);
    for recovery in facts.recoveries.iter().filter(of_step) {
        let count =
            vec![("bobbin.recovery", AttributeValue::Number(recovery.number("recoveries").unwrap_or(0)))];
        span.event(recovery.at_us, "bobbin.recovery", count);
    }
    span
}

fn of_run(facts: &Facts, telling: &dyn Annotator, spans: &[Span], end_us: i64) -> Span {
    let Facts { run, trace, .. } = facts;
    let id = span_id(&facts.stem, "run", run.id);
    let own = || spans.iter().filter(|span| span.place != RunRelation::After);
    let last = own().map(|span| span.end_us).max().unwrap_or(end_us);
    let mut span = Span::new(Subject::Run, id, String::new(), run.started_us, end_us.max(last));
    span.parent = trace.parent().map(str::to_owned);
    telling.run(&mut span, facts);
    let attempts = || own().filter(|span| span.of == Subject::Attempt);
    for name in crate::engine::spans::attributes::TOKENS {
        span.number(name, Some(attempts().filter_map(|attempt| attempt.number_of(name)).sum()));
    }
    let costs: Vec<f64> = attempts().filter_map(|attempt| attempt.real_of("bobbin.cost_usd")).collect();
    span.real("bobbin.cost_usd", (!costs.is_empty()).then(|| costs.iter().sum()));
    for recovery in &facts.recoveries {
        let count =
            vec![("bobbin.recovery", AttributeValue::Number(recovery.number("recoveries").unwrap_or(0)))];
        span.event(recovery.at_us, "bobbin.recovery", count);
    }
    span
}
