//! What a run finds wrong and goes on with: a row of the log each.

use serde_json::Value;

use crate::engine::thread::Thread;
use crate::error::Result;
use crate::host::Sql;
use crate::store::log::Event;
use crate::store::state::State;

impl Thread {
    /// Notes something in the log of the active run.
    pub(crate) fn note(
        &self,
        state: &State,
        sql: &dyn Sql,
        code: &str,
        message: &str,
        data: &Value,
    ) -> Result<()> {
        let run = state.active().map(|run| run.id);
        Event::note(run, code, message, data).insert(sql, self.host.now_us())
    }

    /// The same in a transition of its own, once in a run for a code and what it is about.
    pub(crate) fn note_once(
        &self,
        code: &'static str,
        about: &str,
        message: &str,
        data: &Value,
    ) -> Result<()> {
        let run = self.read(|state, _| Ok(state.active().map_or(0, |run| run.id)))?;
        {
            let mut noted = self.ephemeral.noted.borrow_mut();
            noted.retain(|(of, _, _)| *of == run);
            if !noted.insert((run, code, about.to_owned())) {
                return Ok(());
            }
        }
        self.transition(|state, sql| self.note(state, sql, code, message, data))
    }
}
