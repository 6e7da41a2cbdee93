//! Use by all runs of a thread together, computed from stored rows, for a thread budget that is set after the
//! first run.

use crate::definitions::budget::Unit;
use crate::error::Result;
use crate::host::{Sql, integer};
use crate::store::runs::ledger::Amounts;
use crate::store::{logs, receipts};

/// Sums the use of all runs.
pub(crate) fn of_thread(sql: &dyn Sql) -> Result<Amounts> {
    let mut totals = Amounts::default();
    if let Some(sums) = logs::sums(sql)? {
        totals.set(Unit::Cost, (sums.cost * 1e6).ceil().clamp(0.0, 9e15) as i64);
        totals.set(Unit::Tokens, sums.input_tokens.saturating_add(sums.output_tokens));
        totals.set(Unit::ModelCalls, sums.requests);
    }
    totals.set(Unit::Steps, integer(sql, "SELECT ifnull(sum(step), 0) FROM runs", &[])?.unwrap_or(0));
    totals.set(Unit::ToolCalls, receipts::begun_since(sql, 0)?);
    let us = integer(sql, "SELECT ifnull(sum(ended_us - started_us), 0) FROM runs", &[])?.unwrap_or(0);
    totals.set(Unit::Time, us);
    Ok(totals)
}
