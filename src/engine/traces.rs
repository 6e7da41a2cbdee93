//! The traces of work. A run continues the trace of the request that started it. A run without an incoming
//! trace gets its own, derived from the run number and stored nowhere. The same applies to effects, endpoints
//! and detached hooks.

use crate::engine::features::Traces;
use crate::error::Result;
use crate::sdk::scope::{Origin, Scope};
use crate::store::runs::{Run, Step};
use crate::store::state::State;
use crate::trace::{Trace, span_id};

/// Whether models receive the trace: `1`.
const TELLS_MODELS: &str = "BOBBIN_TRACE_MODELS";
/// The share of new traces that is recorded.
const SHARE: &str = "BOBBIN_OTLP_SAMPLE";

impl Traces<'_> {
    /// The trace of a run.
    pub(super) fn trace_of(&self, state: &State, run: &Run) -> Trace {
        let stored = run.trace.as_deref().and_then(Trace::parse);
        stored.unwrap_or_else(|| Trace::begun(&state.meta.stem, "run", run.id, self.share()))
    }

    /// The trace of a call, in the call's span: by this receipt, or else of the enclosing call. `None`
    /// outside the run.
    pub(super) fn trace_of_call(&self, state: &State, scope: &Scope, receipt: Option<i64>) -> Option<Trace> {
        let run = state.active().filter(|_| scope.origin.in_step())?;
        let thread = &state.meta.stem;
        let span = match receipt.or(scope.receipt) {
            Some(receipt) => span_id(thread, "call", receipt),
            None => span_around(state, run),
        };
        Some(self.trace_of(state, run).within(span))
    }

    /// The trace of work inside a call.
    pub(crate) fn trace_at(&self, inside: &Scope) -> Trace {
        let of_call = self.read(|state, _| Ok(self.trace_of_call(state, inside, None)));
        let of_work = || inside.trace.as_deref().cloned();
        let alone = || self.trace_of_work("call", inside.receipt.map_or(-1, i64::abs));
        of_call.ok().flatten().or_else(of_work).unwrap_or_else(alone)
    }

    /// The trace of an attempt at a model, in its span; `None` if models do not receive traces.
    pub(super) fn trace_of_attempt(&self, step: Step, stream: u32) -> Option<Trace> {
        if self.host.var(TELLS_MODELS).as_deref() != Some("1") {
            return None;
        }
        let of_run = self.read(|state, _| {
            let Some(run) = state.active() else { return Ok(None) };
            let span = span_id(&state.meta.stem, "attempt", format_args!("{}.{stream}", step.block));
            Ok(Some(self.trace_of(state, run).within(span)))
        });
        of_run.ok().flatten()
    }

    /// The trace of work in the open step outside any call.
    pub(super) fn trace_of_step(&self) -> Trace {
        let of_step = self.read(|state, _| {
            let scope = Scope { origin: Origin::Step, ..Scope::default() };
            Ok(self.trace_of_call(state, &scope, None))
        });
        of_step.ok().flatten().unwrap_or_else(|| self.trace_of_work("step", 0))
    }

    /// The trace of detached work.
    pub(super) fn trace_of_work(&self, kind: &str, number: impl std::fmt::Display + Copy) -> Trace {
        let thread: Result<String> = self.read(|state, _| Ok(state.meta.stem.clone()));
        let thread = thread.unwrap_or_default();
        Trace::begun(&thread, kind, number, self.share()).within(span_id(&thread, kind, number))
    }

    pub(super) fn share(&self) -> f64 {
        let share = self.host.var(SHARE).and_then(|text| text.trim().parse::<f64>().ok());
        share.filter(|share| (0.0..=1.0).contains(share)).unwrap_or(1.0)
    }
}

/// The span of the open step, or of the run between steps.
fn span_around(state: &State, run: &Run) -> String {
    match run.block_open() {
        true => span_id(&state.meta.stem, "step", run.block),
        false => span_id(&state.meta.stem, "run", run.id),
    }
}
