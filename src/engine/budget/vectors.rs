//! Budget checks for requests for vectors. These have no answer to cap, so their maximum usage is known in
//! advance. Beyond the budget, a search uses words only, and texts wait for their vectors.

use crate::definitions::Model;
use crate::definitions::budget::Unit;
use crate::engine::budget::attempt_size::AttemptSize;
use crate::engine::budget::estimate;
use crate::engine::budget::exceeded::ExceededLimit;
use crate::engine::budget::reserve::kept_back;
use crate::engine::budget::{Reservation, ReservedAmounts};
use crate::engine::definitions::Definitions;
use crate::engine::features::Budgets;
use crate::error::Result;
use crate::memory::MemoryStore;
use crate::memory::embed::bytes_of;
use crate::memory::embedding::TextRole;
use crate::store::log_record::MaxTokens;
use crate::store::runs::ledger::{Amounts, BudgetScope, Ledger};

/// Permitted requests.
#[derive(Default)]
pub(crate) struct RequestAllowance {
    /// Their number; `None` is unlimited.
    pub(crate) requests: Option<u32>,
    /// Their reservation, until this is dropped.
    pub(crate) underway: Option<Reservation>,
}

impl Budgets<'_> {
    /// How often a question's vector may be requested, by a search of the active run or one outside runs.
    pub(crate) fn reserve_query(
        &self,
        memory_store: &MemoryStore<'_>,
        question: &str,
        run: Option<&Definitions<'_>>,
    ) -> Result<RequestAllowance> {
        let Some(model) = memory_store.model else { return Ok(RequestAllowance::default()) };
        let bytes = bytes_of(model, TextRole::Query, std::iter::once(question));
        let most = memory_store.retry.max_attempts;
        let found = match run {
            Some(definitions) => self.reserve_in_run(definitions, model, bytes, most)?,
            None => self.reserve_vectors(model, bytes, most)?,
        };
        // The run's next model request meets the same limit and reports it.
        Ok(found.unwrap_or(RequestAllowance { requests: Some(0), underway: None }))
    }

    fn reserve_in_run(
        &self,
        definitions: &Definitions<'_>,
        model: &Model,
        bytes: usize,
        most: u32,
    ) -> Result<Result<RequestAllowance, ExceededLimit>> {
        let beside = self.ephemeral.spending.beside(self.host.now_us());
        let each = size_of(model, bytes);
        let times = self.read(|state, _| {
            let Some((run, ledger)) = state.active().and_then(|run| Some((run, run.ledger.as_ref()?))) else {
                return Ok(None);
            };
            // The reserve for the last step is not available here.
            let last = definitions
                .chain
                .first()
                .map(|model| kept_back(ledger, AttemptSize { model, input: 0, full: ledger.policy.reserve }));
            let used = beside.and(&last.unwrap_or_default());
            Ok(Some(times((ledger, &BudgetScope::ALL), run.steps_done(), &used, &each, most)))
        })?;
        Ok(self.afforded(times, false, &each, most))
    }

    /// How often vectors of `bytes` bytes may be requested outside runs. The thread's limits apply, and those
    /// of the parent's grant while a run is active.
    pub(crate) fn reserve_vectors(
        &self,
        model: &Model,
        bytes: usize,
        most: u32,
    ) -> Result<Result<RequestAllowance, ExceededLimit>> {
        let beside = self.ephemeral.spending.beside(self.host.now_us());
        let each = size_of(model, bytes);
        let times = self.read(|state, sql| {
            let Some((ledger, steps)) = self.books(state, sql)? else { return Ok(None) };
            let scopes: &[BudgetScope] = match state.active() {
                Some(_) => &[BudgetScope::Thread, BudgetScope::Parent],
                None => &[BudgetScope::Thread],
            };
            Ok(Some(times((&ledger, scopes), steps, &beside, &each, most)))
        })?;
        Ok(self.afforded(times, true, &each, most))
    }

    fn afforded(
        &self,
        times: Option<Result<u32, ExceededLimit>>,
        apart: bool,
        each: &Amounts,
        most: u32,
    ) -> Result<RequestAllowance, ExceededLimit> {
        let Some(times) = times else { return Ok(RequestAllowance { requests: Some(most), underway: None }) };
        let requests = times?;
        let underway = ReservedAmounts::begins(self, apart, each.times(requests));
        Ok(RequestAllowance { requests: Some(requests), underway: Some(underway) })
    }
}

/// The maximum usage of one request.
fn size_of(model: &Model, bytes: usize) -> Amounts {
    estimate::worst(model, MaxTokens { input: estimate::of_bytes(bytes), output: 0 })
}

/// How often the budget allows an amount, up to `most` times; or the limit that forbids even one.
fn times(
    (ledger, scopes): (&Ledger, &[BudgetScope]),
    steps: u32,
    beside: &Amounts,
    each: &Amounts,
    most: u32,
) -> Result<u32, ExceededLimit> {
    let mut times = i64::from(most);
    for scope in scopes.iter().copied() {
        let used = ledger.used_of(scope, steps).and(&ledger.lent).and(beside);
        for unit in Unit::ALL {
            let Some(cap) = ledger.cap(scope, unit) else { continue };
            let (left, spent) = (cap.saturating_sub(used.get(unit)).max(0), used.get(unit));
            let needed = if unit == Unit::Time { 1 } else { each.get(unit) };
            let fits = match unit {
                Unit::Time => {
                    if left > 0 {
                        times
                    } else {
                        0
                    }
                }
                _ => left.checked_div(needed).unwrap_or(times),
            };
            if fits == 0 {
                return Err(ExceededLimit { scope, unit, limit: cap, spent, needed });
            }
            times = times.min(fits);
        }
    }
    Ok(u32::try_from(times).unwrap_or(most))
}
