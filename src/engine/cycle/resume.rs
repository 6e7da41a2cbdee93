//! The snapshot of definitions with which a run begins, and its comparison when the run is resumed
//! (docs/agents.md).

use std::rc::Rc;

use serde_json::{Map, Value};

use crate::definitions::{ResumeCheck, Snapshot};
use crate::engine::notes::Note;
use crate::engine::thread::Thread;
use crate::error::Result;
use crate::host::Sql;
use crate::store::log_record::Event;
use crate::store::parent::Parent;
use crate::store::runs::diagnostics::Kind;
use crate::store::runs::{Run, Step};
use crate::store::state::State;
use crate::store::{logs, meta};

impl Thread {
    /// The current snapshot for an agent in a thread with this parent; computed once in the life of the
    /// object.
    fn snapshot_today(&self, agent: &str, parent: Option<&Parent>) -> Option<Rc<Snapshot>> {
        if let Some(known) = self.ephemeral.snapshots.by_agent.borrow().get(agent) {
            return Some(known.clone());
        }
        // Tools listed by servers at run time are no change of the definitions.
        let mut today = Snapshot::of(self.catalog.compiled(), agent)?;
        if let Some(tools) = parent.and_then(|parent| parent.tools.as_ref()) {
            today = today.narrowed(tools);
        }
        let today = Rc::new(today);
        self.ephemeral.snapshots.by_agent.borrow_mut().insert(agent.to_owned(), today.clone());
        Some(today)
    }

    /// The hash of the snapshot. A new thread stores it without a statement of its own.
    pub(crate) fn snapshot_hash(&self, agent: &str, parent: Option<&Parent>) -> Option<String> {
        self.snapshot_today(agent, parent).map(|today| today.hash.clone())
    }

    /// The snapshot of the thread's first run, if its row is to be written with the next attempt's. This
    /// saves a new thread one statement.
    pub(in crate::engine) fn first_snapshot(&self, step: Step, stream: u32) -> Result<Option<Rc<Snapshot>>> {
        let begun = self.read(|state, sql| {
            let first = state.active().filter(|run| run.id == 1 && run.step == 1 && step.call.is_none());
            let Some(run) = first.filter(|_| !self.ephemeral.snapshots.logged.get()) else { return Ok(None) };
            // A lost or failed attempt may have written it.
            let is_logged = stream > 1 && logs::last_of(sql, "snapshot")?.is_some();
            let hash = run.snapshot.clone();
            Ok((!is_logged).then(|| (state.meta.agent.clone(), state.meta.parent.clone(), hash)))
        })?;
        let Some((agent, parent, hash)) = begun else { return Ok(None) };
        Ok(self.snapshot_today(&agent, parent.as_ref()).filter(|today| Some(&today.hash) == hash.as_ref()))
    }

    /// Adds the snapshot to a new run. A run that continues an earlier one keeps the earlier snapshot, so
    /// that it is compared when the run is resumed.
    pub(in crate::engine) fn with_snapshot(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        run: Run,
        now: i64,
    ) -> Result<Run> {
        if run.snapshot.is_some() {
            return Ok(run);
        }
        let today = self.snapshot_today(&state.meta.agent, state.meta.parent.as_ref());
        let Some(today) = today else { return Ok(run) };
        self.log_snapshot(state, sql, run.id, &today, now)?;
        Ok(Run { snapshot: Some(today.hash.clone()), ..run })
    }

    /// Compares the run's snapshot with the current definitions. Returns why the run must not continue, if it
    /// must not.
    pub(in crate::engine) fn check_definitions(&self) -> Result<Option<&'static str>> {
        let known = self.read(|state, _| {
            let meta = &state.meta;
            Ok(state.active().map(|run| {
                let today = self.snapshot_today(&meta.agent, meta.parent.as_ref());
                (today, run.snapshot.clone(), run.step > 0)
            }))
        })?;
        let Some((Some(today), Some(before), begun)) = known else { return Ok(None) };
        if today.hash == before {
            return Ok(None);
        }
        let check = self.catalog.settings.resume_check;
        // A run without a step has not used the old definitions yet.
        if check == ResumeCheck::Fail && begun {
            self.transition(|state, sql| self.note_difference(state, sql, &before, &today))?;
            let text = "The definitions have changed since this run began, and `resumeCheck` says that it must not go on.";
            return Ok(Some(text));
        }
        let now = self.host.now_us();
        self.transition(|state, sql| {
            if check != ResumeCheck::Off {
                self.note_difference(state, sql, &before, &today)?;
            }
            let id = state.active_mut()?.id;
            self.log_snapshot(state, sql, id, &today, now)?;
            let run = state.active_mut()?;
            run.snapshot = Some(today.hash.clone());
            run.update(sql)
        })?;
        Ok(None)
    }

    /// Notes the differences from the run's snapshot.
    fn note_difference(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        before: &str,
        today: &Snapshot,
    ) -> Result<()> {
        let earlier = logs::last_of(sql, "snapshot")?;
        let earlier = earlier.and_then(|text| crate::json::from_str::<Map<String, Value>>(&text).ok());
        let earlier = earlier.filter(|fields| fields.get("hash").and_then(Value::as_str) == Some(before));
        let difference = today.since(before, earlier.as_ref());
        if let Some(data) = &difference.others {
            let message = "The definitions are not those that this run began with.";
            self.note_found(
                state,
                sql,
                &Note { kind: Kind::Resume, code: "resume.changed", about: "definitions", message, data },
            )?;
        }
        if let Some(data) = &difference.skills {
            let message = "The skills are not those that this run began with.";
            self.note_found(
                state,
                sql,
                &Note { kind: Kind::Resume, code: "resume.skills", about: "definitions", message, data },
            )?;
        }
        Ok(())
    }

    /// Logs the snapshot of a run, unless the last logged one is the same.
    fn log_snapshot(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        run: i64,
        today: &Snapshot,
        now: i64,
    ) -> Result<()> {
        if state.meta.snapshot.as_deref() == Some(&*today.hash) {
            return Ok(());
        }
        meta::set_snapshot(sql, &today.hash)?;
        state.meta.snapshot = Some(today.hash.clone());
        self.ephemeral.snapshots.logged.set(true);
        Event::snapshot(run, Value::Object(today.fields.clone())).insert(sql, now)
    }
}
