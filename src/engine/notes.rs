//! Notes: problems that a run finds and that do not end it. Each is a diagnostic of the run, and a row of the
//! log with the details.

use serde_json::Value;

use crate::engine::thread::Thread;
use crate::error::Result;
use crate::host::Sql;
use crate::store::log_record::Event;
use crate::store::runs::diagnostics::{Diagnostic, Kind};
use crate::store::state::State;

/// A problem.
pub(super) struct Note<'a> {
    pub(super) kind: Kind,
    pub(super) code: &'static str,
    /// Its subject.
    pub(super) about: &'a str,
    /// The text for people.
    pub(super) message: &'a str,
    pub(super) data: &'a Value,
}

impl Thread {
    /// Adds a note to the active run, whose row is written afterwards.
    pub(super) fn note_found(&self, state: &mut State, sql: &dyn Sql, note: &Note<'_>) -> Result<()> {
        let now = self.host.now_us();
        let run = match state.active_mut() {
            Ok(run) => {
                let about = ("about", note.about);
                run.diagnostics.add(Diagnostic::warning(note.kind, note.code, about, note.message, now));
                Some(run.id)
            }
            Err(_) => None,
        };
        Event::note(run, note.code, note.message, note.data).insert(sql, now)
    }

    /// Notes a violated contract in its own transition, once in a run for each code and subject.
    pub(super) fn note_once(
        &self,
        code: &'static str,
        about: &str,
        message: &str,
        data: &Value,
    ) -> Result<()> {
        let note = Note { kind: Kind::Contract, code, about, message, data };
        let run = self.read(|state, _| Ok(state.active().map_or(0, |run| run.id)))?;
        {
            let mut noted = self.ephemeral.reported.notes.borrow_mut();
            noted.retain(|(of, _, _)| *of == run);
            if !noted.insert((run, note.code, note.about.to_owned())) {
                return Ok(());
            }
        }
        self.transition(|state, sql| {
            self.note_found(state, sql, &note)?;
            match state.active_mut() {
                Ok(run) => run.update(sql),
                Err(_) => Ok(()),
            }
        })
    }
}
