//! The next due time and the counts of effects, in memory after the first use; and the deletion of old
//! effects.

use crate::error::Result;
use crate::host::{Param, Sql, integer};
use crate::limits;
use crate::store::state::State;

/// Cached facts about a thread's effects; read on first use.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    next: Option<NextDue>,
    counts: Option<Counts>,
}

/// The next due time. A running effect counts as due at its own time, which has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextDue {
    Never,
    At(i64),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    /// Waiting or running.
    pub(crate) open: u32,
    pub(crate) ended: u32,
}

impl Tally {
    /// For a new thread.
    pub(crate) fn of_none() -> Tally {
        Tally { next: Some(NextDue::Never), counts: Some(Counts { open: 0, ended: 0 }) }
    }

    /// Adds a scheduled effect.
    pub(crate) fn scheduled(self, at: i64) -> Tally {
        let next = self.next.map(|next| match next {
            NextDue::Never => NextDue::At(at),
            NextDue::At(next) => NextDue::At(next.min(at)),
        });
        let counts = self.counts.map(|counts| Counts { open: counts.open + 1, ..counts });
        Tally { next, counts }
    }

    /// Adjusts the counts by `open` and `ended`, and invalidates the next due time.
    pub(crate) fn moved(self, open: i64, ended: i64) -> Tally {
        let add = |count: u32, more: i64| u32::try_from(i64::from(count) + more).unwrap_or(0);
        let counts = self
            .counts
            .map(|counts| Counts { open: add(counts.open, open), ended: add(counts.ended, ended) });
        Tally { next: None, counts }
    }
}

/// The next due time, microseconds since 1970.
pub(crate) fn next_due(state: &State, sql: &dyn Sql) -> Result<Option<i64>> {
    Ok(match state.effects.get().next {
        Some(NextDue::Never) => None,
        Some(NextDue::At(at)) => Some(at),
        None => {
            let next = integer(
                sql,
                "SELECT min(at) FROM (SELECT min(at_us) AS at FROM effects WHERE open = 2
                 UNION ALL SELECT min(at_us) FROM effects WHERE open = 1)",
                &[],
            )?;
            let tally = Tally { next: Some(next.map_or(NextDue::Never, NextDue::At)), ..state.effects.get() };
            state.effects.set(tally);
            next
        }
    })
}

/// The counts.
pub(crate) fn counts(state: &State, sql: &dyn Sql) -> Result<Counts> {
    if let Some(counts) = state.effects.get().counts {
        return Ok(counts);
    }
    let count = |statement| -> Result<u32> {
        Ok(integer(sql, statement, &[])?.and_then(|n| u32::try_from(n).ok()).unwrap_or(0))
    };
    let counts = Counts {
        open: count("SELECT count(*) FROM effects WHERE open > 0")?,
        ended: count("SELECT count(*) FROM effects WHERE open = 0")?,
    };
    state.effects.set(Tally { counts: Some(counts), ..state.effects.get() });
    Ok(counts)
}

/// Deletes up to a hundred effects that ended long ago or exceed the limit. The newest row stays, so that no
/// id, and hence no idempotency key, is assigned twice.
pub(crate) fn prune(state: &State, sql: &dyn Sql, now: i64) -> Result<()> {
    let oldest = integer(sql, "SELECT min(at_us) FROM effects WHERE open = 0", &[])?;
    let too_many = counts(state, sql)?.ended > limits::EFFECT_HISTORY;
    let cutoff = now - limits::EFFECT_HISTORY_US;
    if !too_many && oldest.is_none_or(|oldest| oldest > cutoff) {
        return Ok(());
    }
    sql.run(
        "DELETE FROM effects WHERE id IN (SELECT id FROM effects WHERE open = 0 AND (?1 OR at_us <= ?2)
         ORDER BY at_us LIMIT 100) AND id < (SELECT max(id) FROM effects)",
        &[Param::Int(i64::from(too_many)), Param::Int(cutoff)],
    )?;
    let counts = state.effects.get().counts.filter(|_| too_many);
    let counts = counts.map(|counts| Counts { ended: counts.ended.saturating_sub(100), ..counts });
    state.effects.set(Tally { counts, ..state.effects.get() });
    Ok(())
}

/// Cancels all open effects, because the thread ends.
pub(crate) fn cancel_all(state: &State, sql: &dyn Sql, now: i64) -> Result<()> {
    if next_due(state, sql)?.is_none() {
        return Ok(());
    }
    state.effects.set(Tally { next: Some(NextDue::Never), counts: None });
    sql.run(
        "UPDATE effects SET open = 0, status = 'agent_canceled', at_us = ?, error = 'The thread was terminated.'
         WHERE open > 0",
        &[Param::Int(now)],
    )
}
