//! Schedules the indexing of memories.

use crate::engine::features::Memories;
use crate::error::Result;
use crate::host::Sql;
use crate::store::jobs;
use crate::store::jobs::Kind;
use crate::store::runs::Run;
use crate::store::state::State;

impl Memories<'_> {
    /// Schedules the indexing of a memory that has new texts. `run`: the run that caused it, if any.
    pub(super) fn schedule_index(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        name: &str,
        run: Option<&Run>,
    ) -> Result<()> {
        if state.meta.terminated_us.is_some() {
            return Ok(());
        }
        let now = self.host.now_us();
        jobs::owe(state, sql, Kind::Index, name, now)?;
        if let Some(run) = run {
            self.telemetry().link_job(state, sql, (Kind::Index, name), run)?;
        }
        self.arm_at(state, sql, now, now)
    }
}
