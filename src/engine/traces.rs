//! Which trace work is part of. A run's is that of the request that started it; one that nobody's trace is around has its own,
//! which follows from the run's number and is stored nowhere. So have effects, endpoints and hooks beside runs.

use crate::engine::features::Traces;
use crate::error::Result;
use crate::sdk::scope::{Origin, Scope};
use crate::store::runs::{Run, Step};
use crate::store::state::State;
use crate::trace::{Trace, span_id};

/// Whether models are told of the trace: `1`.
const TELLS_MODELS: &str = "BOBBIN_TRACE_MODELS";
/// Which share of the traces that begin here is recorded.
const SHARE: &str = "BOBBIN_OTLP_SAMPLE";

impl Traces<'_> {
    /// That of a run.
    pub(crate) fn trace_of(&self, state: &State, run: &Run) -> Trace {
        let stored = run.trace.as_deref().and_then(Trace::parse);
        stored.unwrap_or_else(|| Trace::begun(&state.meta.stem, "run", run.id, self.share()))
    }

    /// That of a call, in the span of it: of the call with this receipt, or else of the one around it. `None` beside the run.
    pub(crate) fn trace_of_call(&self, state: &State, scope: &Scope, receipt: Option<i64>) -> Option<Trace> {
        let run = state.active().filter(|_| scope.origin.in_step())?;
        let thread = &state.meta.stem;
        let span = match receipt.or(scope.receipt) {
            Some(receipt) => span_id(thread, "call", receipt),
            None => span_around(state, run),
        };
        Some(self.trace_of(state, run).within(span))
    }

    /// The trace of what is done inside of a call.
    pub(crate) fn trace_at(&self, inside: &Scope) -> Trace {
        let of_call = self.read(|state, _| Ok(self.trace_of_call(state, inside, None)));
        let of_work = || inside.trace.as_deref().cloned();
        let alone = || self.trace_of_work("call", inside.receipt.map_or(-1, i64::abs));
        of_call.ok().flatten().or_else(of_work).unwrap_or_else(alone)
    }

    /// The trace of an attempt at a model, in its span; `None` where models are not told.
    pub(crate) fn trace_of_attempt(&self, step: Step, stream: u32) -> Option<Trace> {
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

    /// The trace of what is done in the open step and is no call.
    pub(crate) fn trace_of_step(&self) -> Trace {
        let of_step = self.read(|state, _| {
            let scope = Scope { origin: Origin::Step, ..Scope::default() };
            Ok(self.trace_of_call(state, &scope, None))
        });
        of_step.ok().flatten().unwrap_or_else(|| self.trace_of_work("step", 0))
    }

    /// The trace of what is done beside runs.
    pub(crate) fn trace_of_work(&self, kind: &str, number: impl std::fmt::Display + Copy) -> Trace {
        let thread: Result<String> = self.read(|state, _| Ok(state.meta.stem.clone()));
        let thread = thread.unwrap_or_default();
        Trace::begun(&thread, kind, number, self.share()).within(span_id(&thread, kind, number))
    }

    pub(crate) fn share(&self) -> f64 {
        let share = self.host.var(SHARE).and_then(|text| text.trim().parse::<f64>().ok());
        share.filter(|share| (0.0..=1.0).contains(share)).unwrap_or(1.0)
    }
}

/// The span of the open step, or of the run between two.
fn span_around(state: &State, run: &Run) -> String {
    match run.block_open() {
        true => span_id(&state.meta.stem, "step", run.block),
        false => span_id(&state.meta.stem, "run", run.id),
    }
}
