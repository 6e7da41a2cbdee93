//! Charges for model attempts: the provider's report, or the maximum if the attempt was lost.

use crate::definitions::Model;
use crate::engine::budget::attempt_size::AttemptSize;
use crate::engine::budget::estimate;
use crate::engine::budget::reserve::affordable;
use crate::engine::features::Budgets;
use crate::models::{ChatRequest, ProviderError};
use crate::store::log_record::{Attempt, MaxTokens};
use crate::store::runs::ledger::{Amounts, Ledger};

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

impl Budgets<'_> {}

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
    ledger.charge(&estimate::lost(model, request, MaxTokens { input, output }));
    ledger.estimated = true;
}
