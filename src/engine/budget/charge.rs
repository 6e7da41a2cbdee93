//! Charges for model attempts: the provider's report, or the maximum if the attempt was lost.

use crate::definitions::Model;
use crate::definitions::budget::Unit;
use crate::engine::budget::estimate;
use crate::engine::budget::reserve::{AttemptSize, affordable};
use crate::engine::features::Budgets;
use crate::limits;
use crate::models::{ChatRequest, ProviderError};
use crate::store::log::{Attempt, MaxTokens};
use crate::store::runs::Run;
use crate::store::runs::ledger::{Amounts, BudgetScope, Ledger};

impl Attempt {
    /// Computes the usage of a completed attempt, if anything limits the run. Without a report it is an
    /// estimate. An attempt that failed before the provider began to answer used nothing.
    pub(crate) fn reckon(&mut self, model: &Model, failed: Option<&ProviderError>) {
        let Some(MaxTokens { input, .. }) = self.worst else { return };
        let begun = failed.is_none() || self.first_us.is_some();
        self.booked =
            Some(match self.reported.filter(|usage| usage.input_tokens + usage.output_tokens > 0) {
                Some(usage) => estimate::reported(model, &usage),
                None if begun => {
                    self.is_estimated = true;
                    estimate::worst(model, MaxTokens { input, output: estimate::of_bytes(self.received) })
                }
                None => Amounts::attempt(0, 0),
            });
    }
}

impl Budgets<'_> {
    /// The maximum usage of a lost attempt of unknown size: its run ended before the step was entered again.
    pub(super) fn unknown_attempt(&self, agent: &str, run: Option<&Run>) -> Amounts {
        let definitions = run.and_then(|run| self.definitions_of(agent, run.side));
        let place = run.and_then(|run| usize::try_from(run.model).ok()).unwrap_or(0);
        let chain = definitions.as_ref().map_or(&[] as &[&Model], |definitions| &definitions.chain);
        let Some(model) = chain.get(place).or(chain.first()) else { return Amounts::attempt(0, 0) };
        let input = model.capabilities.max_context_tokens.unwrap_or(limits::WINDOW_TOKENS);
        let output = model.capabilities.max_output_tokens.unwrap_or(limits::BUDGET_FULL_OUTPUT);
        estimate::worst(model, MaxTokens { input, output })
    }
}

/// Charges an attempt that was lost: its request, and the longest answer that it allowed.
pub(super) fn charge_sized(
    ledger: &mut Ledger,
    steps: u32,
    (request, wanted): (&ChatRequest, AttemptSize<'_>),
) {
    let AttemptSize { model, input, .. } = wanted;
    let output = match affordable(ledger, steps, &Amounts::default(), wanted) {
        Ok(output) => output,
        // Children received grants since then, so more was left before.
        Err(_) if ledger.has_allocations() => wanted.full,
        // The remaining budget is unchanged, so a request that it does not allow was never sent.
        Err(_) => return,
    };
    ledger.book(&estimate::lost(model, request, MaxTokens { input, output }));
    ledger.estimated = true;
}

/// Charges lost attempts of unknown size at their maximum, but at most what was left: no attempt starts that
/// exceeds the rest of the budget.
pub(super) fn charge_unknown(ledger: &mut Ledger, steps: u32, most: &Amounts, times: u32) {
    if times == 0 {
        return;
    }
    let mut used = most.times(times);
    // Children received grants since then, so more was left before.
    let scopes = if ledger.has_allocations() { &[] } else { &BudgetScope::ALL[..] };
    for scope in scopes.iter().copied() {
        let spent = ledger.used_of(scope, steps);
        for unit in [Unit::Cost, Unit::Tokens] {
            if let Some(cap) = ledger.cap(scope, unit) {
                used.set(unit, used.get(unit).min(cap.saturating_sub(spent.get(unit)).max(0)));
            }
        }
    }
    ledger.book(&used);
    ledger.estimated = true;
}
