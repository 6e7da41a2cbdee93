//! Decides whether the next model attempt fits the budget, and how long its answer may be. Everything is
//! computed in memory.

use std::rc::Rc;

use serde_json::Value;

use crate::definitions::Model;
use crate::definitions::budget::{OnExceeded, Unit};
use crate::engine::budget::attempt_size::{AttemptSize, OUTPUT_OPTIONS};
use crate::engine::budget::estimate::{self, prices, whole};
use crate::engine::budget::exceeded::ExceededLimit;
use crate::engine::budget::{Reservation, ReservedAmounts, charge};
use crate::engine::features::Budgets;
use crate::error::Result;
use crate::limits;
use crate::models::ChatRequest;
use crate::store::log_record::{AttemptState, MaxTokens};
use crate::store::runs::Step;
use crate::store::runs::ledger::{Amounts, BudgetScope, FinalStep, Ledger};

/// A request that may be sent, and its maximum usage if the run has limits.
pub(super) type AdmittedRequest = (Rc<ChatRequest>, Option<MaxTokens>);

impl Budgets<'_> {
    /// Checks whether the run may make this attempt. Returns the request, its answer capped to what the
    /// budget allows, or the limit that forbids it.
    pub(crate) fn afford(
        &self,
        model: &Model,
        request: &Rc<ChatRequest>,
    ) -> Result<Result<AdmittedRequest, ExceededLimit>> {
        let free = || Ok(Ok((request.clone(), None)));
        if self.read(|state, _| Ok(state.active().is_none_or(|run| run.ledger.is_none())))? {
            return free();
        }
        let wanted = self.size_of(model, request)?;
        let now = self.host.now_us();
        self.read(|state, _| {
            let Some((run, ledger)) = state.active().and_then(|run| Some((run, run.ledger.as_ref()?))) else {
                return free();
            };
            let mut beside = self.ephemeral.spending.all();
            beside.add(&Amounts::of(Unit::Time, self.ephemeral.spending.uncharged_us(now)));
            Ok(capped_request(ledger, run.steps_done(), &beside, wanted, request))
        })
    }

    /// Charges attempts of the open step that were lost in a crash. Called before anything is sent, when
    /// their size is known.
    pub(crate) fn charge_unseen(&self, step: Step, model: &Model, request: &ChatRequest) -> Result<()> {
        let unseen = self.read(|state, sql| {
            let Some(ledger) = state.active().and_then(|run| run.ledger.as_ref()) else { return Ok(0) };
            match step.call {
                None => Ok(ledger.unseen),
                Some(_) => Ok(AttemptState::of(state, sql, step)?.unseen),
            }
        })?;
        if unseen == 0 {
            return Ok(());
        }
        let wanted = self.size_of(model, request)?;
        self.transition(|state, sql| {
            if step.call.is_some() {
                let tries = AttemptState::of(state, sql, step)?;
                AttemptState { unseen: 0, ..tries }.store(state, sql, step)?;
            }
            let run = state.active_mut()?;
            let steps = run.steps_done();
            if let Some(ledger) = &mut run.ledger {
                for _ in 0..unseen {
                    charge::charge_sized(ledger, steps, (request, wanted));
                }
                if step.call.is_none() {
                    ledger.unseen = 0;
                }
            }
            run.update(sql)
        })
    }

    /// Reserves the maximum usage of an attempt, if anything limits the run.
    pub(crate) fn begins(&self, step: Step, model: &Model, worst: Option<MaxTokens>) -> Option<Reservation> {
        self.reserve_as(step.apart, model, worst)
    }

    pub(super) fn reserve_as(
        &self,
        apart: bool,
        model: &Model,
        worst: Option<MaxTokens>,
    ) -> Option<Reservation> {
        Some(ReservedAmounts::begins(self, apart, estimate::worst(model, worst?)))
    }

    /// Microseconds for which the run may still be active; `None` without a limit.
    pub(crate) fn time_left(&self) -> Result<Option<i64>> {
        self.read(|state, _| {
            let Some((run, ledger)) = state.active().and_then(|run| Some((run, run.ledger.as_ref()?))) else {
                return Ok(None);
            };
            let unbooked = self.ephemeral.spending.uncharged_us(self.host.now_us());
            let left = BudgetScope::ALL.into_iter().filter_map(|scope| {
                let cap = ledger.cap(scope, Unit::Time)?;
                Some(cap.saturating_sub(ledger.used_of(scope, run.steps_done()).get(Unit::Time) + unbooked))
            });
            Ok(left.min().map(|left| left.max(0)))
        })
    }
}

/// The request with its answer capped to `output` tokens.
fn capped(request: &ChatRequest, output: u64) -> ChatRequest {
    let mut capped = request.clone();
    for name in OUTPUT_OPTIONS {
        if request.options.get(name).is_some_and(Value::is_number) {
            capped.options.insert(name.to_owned(), output.into());
        }
    }
    capped.max_output_tokens = Some(output);
    capped
}

/// The request, its answer capped to what the budget allows. `beside`: the usage of attempts in progress.
pub(super) fn capped_request(
    ledger: &Ledger,
    steps: u32,
    beside: &Amounts,
    wanted: AttemptSize<'_>,
    request: &Rc<ChatRequest>,
) -> Result<AdmittedRequest, ExceededLimit> {
    let output = affordable(ledger, steps, beside, wanted)?;
    let shorter = output < wanted.full;
    let request = if shorter { Rc::new(capped(request, output)) } else { request.clone() };
    Ok((request, Some(MaxTokens { input: wanted.input, output })))
}

/// The tokens that an answer may have, after the budget has paid for the request. `beside`: the usage of
/// attempts in progress.
pub(super) fn affordable(
    ledger: &Ledger,
    steps: u32,
    beside: &Amounts,
    wanted: AttemptSize<'_>,
) -> Result<u64, ExceededLimit> {
    let least = limits::BUDGET_LEAST_OUTPUT.min(wanted.full);
    let (each_in, each_out) = prices(wanted.model);
    let input = MaxTokens { input: wanted.input, output: 0 };
    let kept = kept_back(ledger, wanted);
    let mut output = wanted.full;
    for scope in BudgetScope::ALL {
        let used = ledger.used_of(scope, steps).and(&ledger.lent).and(beside);
        for unit in Unit::ALL {
            let Some(cap) = ledger.cap(scope, unit) else { continue };
            let needs = needed(unit, estimate::worst(wanted.model, input), least, each_out)
                .saturating_add(kept.get(unit));
            let left = cap.saturating_sub(used.get(unit));
            if ledger.finishing == FinalStep::Decided
                || (ledger.finishing == FinalStep::Reserved && unit == Unit::ToolCalls)
            {
                continue;
            }
            if needs > left {
                return Err(ExceededLimit { scope, unit, limit: cap, spent: used.get(unit), needed: needs });
            }
            let left = left.saturating_sub(kept.get(unit)) as f64;
            let tokens = match unit {
                Unit::Tokens => left - wanted.input as f64,
                Unit::Cost if each_out > 0.0 => ((left - wanted.input as f64 * each_in) / each_out).floor(),
                _ => continue,
            };
            output = output.min(tokens.max(0.0) as u64);
        }
    }
    if ledger.finishing == FinalStep::Decided {
        output = output.min(ledger.policy.reserve.max(limits::BUDGET_LEAST_OUTPUT));
    }
    Ok(output.max(least).max(1))
}

/// The minimum that an attempt needs of a unit.
fn needed(unit: Unit, request: Amounts, least: u64, each_out: f64) -> i64 {
    match unit {
        Unit::Cost => request.get(unit).saturating_add(estimate::micro(least as f64 * each_out)),
        Unit::Tokens => request.get(unit).saturating_add(whole(least)),
        Unit::ModelCalls | Unit::Steps | Unit::Time => 1,
        // The result of an excess tool call was an error already.
        Unit::ToolCalls => 0,
    }
}

/// The reserve for the last step of a run that finishes by itself: a request as large as this one, and its
/// answer.
pub(super) fn kept_back(ledger: &Ledger, wanted: AttemptSize<'_>) -> Amounts {
    if ledger.policy.on_exceeded != OnExceeded::Finish || ledger.finishing != FinalStep::No {
        return Amounts::default();
    }
    let output = ledger.policy.reserve.min(wanted.full);
    let last = estimate::worst(wanted.model, MaxTokens { input: wanted.input, output });
    last.and(&Amounts::of(Unit::Steps, 1))
}
