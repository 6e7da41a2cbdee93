//! The thread's own values: one table, read on the first look-up and cached in plain text while the object is
//! in memory. The `meta` row counts the values, so that a thread without any reads nothing.

use serde_json::{Map, Value};

use crate::definitions::VariableKind;
use crate::engine::features::Variables;
use crate::env::{Change, KEYS_VAR, Keys, Level, StoredValue, VariableSet};
use crate::error::{Error, Result};
use crate::host::Sql;
use crate::request::fields::Body;
use crate::store::state::State;
use crate::store::{env as table, meta};

/// The validated values of a new thread, not stored yet.
pub(crate) struct NewEnv {
    change: Change,
    pub(super) set: VariableSet,
}

/// The binding of a thread's encrypted values.
fn object(thread_id: &str) -> String {
    format!("thread {thread_id}")
}

impl Variables<'_> {
    /// The deployment's keys.
    pub(crate) fn keys(&self) -> Result<Keys> {
        Keys::parse(&self.host.var(KEYS_VAR).unwrap_or_default())
    }

    /// The thread's values, read once.
    pub(crate) fn own_set<'s>(&self, state: &'s mut State, sql: &dyn Sql) -> Result<&'s mut VariableSet> {
        if state.env.is_none() {
            let object = object(&state.meta.thread_id);
            state.env = Some(match state.meta.env {
                0 => VariableSet::empty(&object),
                // Without keys every value reports that it cannot be read.
                _ => VariableSet::of(&object, table::rows(sql)?, &self.keys().unwrap_or_default()),
            });
        }
        state.env.as_mut().ok_or_else(|| Error::internal("values were read and are not there"))
    }

    /// The thread's own value of a name.
    pub(super) fn own(&self, name: &str) -> Result<Option<StoredValue>> {
        self.read_mut(|state, sql| Ok(self.own_set(state, sql)?.get(name).cloned()))
    }

    /// Parses the values in `POST /threads`: `env` (formerly `tenvs`) and `env_types`.
    #[inline(never)]
    pub(crate) fn new_env(&self, thread_id: &str, body: &mut Body) -> Result<NewEnv> {
        let (env, tenvs) = (body.take("env"), body.take("tenvs"));
        if env.is_some() && tenvs.is_some() {
            return Err(Error::field("tenvs", "`tenvs` is the old name of `env`: give one of them."));
        }
        let values = if tenvs.is_some() { ("tenvs", tenvs) } else { ("env", env) };
        let types = ("env_types", body.take("env_types"));
        let change = Change::parse(values, types, ("", None), Level::Thread, &self.catalog)?;
        let set = VariableSet::empty(&object(thread_id)).changed(&change)?;
        if !set.is_empty() {
            self.keys()?;
        }
        Ok(NewEnv { change, set })
    }

    /// Stores the values of a new thread inside the transaction that creates it.
    pub(crate) fn store_new_env(&self, state: &mut State, sql: &dyn Sql, new: &NewEnv) -> Result<()> {
        self.store_env(state, sql, &new.change)
    }

    /// Parses the changes in `PATCH /threads/:id`.
    pub(crate) fn env_change(&self, body: &mut Body) -> Result<Change> {
        let mut given = |field: &'static str| (field, body.take(field));
        let (values, types, delete) = (given("env_patch"), given("env_type_patch"), given("env_delete"));
        Change::parse(values, types, delete, Level::Thread, &self.catalog)
    }

    /// Stores a change of the thread's values inside a transition, and sends it to its children.
    pub(crate) fn store_env(&self, state: &mut State, sql: &dyn Sql, change: &Change) -> Result<()> {
        self.store_own_env(state, sql, change)?;
        self.descendants().push_env(state, sql, change)
    }

    /// Stores a change for this thread alone.
    #[inline(never)]
    pub(crate) fn store_own_env(&self, state: &mut State, sql: &dyn Sql, change: &Change) -> Result<()> {
        if change.is_empty() {
            return Ok(());
        }
        self.learn_own(state, sql)?;
        let keys = self.keys();
        let set = self.own_set(state, sql)?;
        table::store(sql, set, change, &keys, &|| self.host.random())?;
        let values = i64::try_from(set.len()).unwrap_or(i64::MAX);
        if values != state.meta.env {
            state.meta.env = values;
            meta::set_env(sql, values)?;
        }
        self.ephemeral.env.secrets.forget();
        Ok(())
    }

    /// Sets a value of the thread from code.
    pub(crate) fn set_env(&self, name: &str, value: &str, kind: Option<VariableKind>) -> Result<()> {
        let change = Change::one(name, value, kind, &self.catalog)?;
        let told = self.transition(|state, sql| {
            state.ensure_not_terminated()?;
            self.store_env(state, sql, &change)?;
            Ok(state.meta.children > 0)
        })?;
        if told {
            self.subagents().send_envelopes();
        }
        Ok(())
    }

    /// The public values: texts of type `text`, and the types of all values.
    pub(crate) fn shown_env(
        &self,
        state: &mut State,
        sql: &dyn Sql,
    ) -> Result<(Map<String, Value>, Map<String, Value>)> {
        let set = self.own_set(state, sql)?;
        let texts = set.iter().filter(|(_, held)| held.kind == VariableKind::Text);
        for error in texts.filter_map(|(_, held)| held.read().err()) {
            self.log_once(error.into_message());
        }
        Ok((set.texts(), set.types()))
    }
}
