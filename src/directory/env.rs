//! Values of variables of an owner or, in the root, of the instance (docs/variables.md). Threads read them
//! here.

use std::rc::Rc;

use crate::directory::Directory;
use crate::directory::store::state;
use crate::env::{Change, KEYS_VAR, Keys, Level, VariableSet};
use crate::error::{Error, Result};
use crate::host::{Sql, Transactions};
use crate::json;
use crate::protocols::responses::variables::ShownEnv;
use crate::request::Reply;
use crate::request::directory_call::{EnvAsk, ROOT, env_object};
use crate::request::fields::Body;
use crate::store::env as table;

impl Directory {
    /// Responds to a request about values.
    #[inline(never)]
    pub(super) fn env(self: &Rc<Self>, directory: &str, ask: EnvAsk) -> Result<Reply> {
        match ask {
            EnvAsk::Rows(known) => self.env_rows(known),
            EnvAsk::Shown => Ok(shown(&self.set(directory, self.host.sql())?)),
            EnvAsk::Change(body) => self.patch_env(directory, &body),
        }
    }

    /// The stored values, unless the caller has this version.
    fn env_rows(&self, known: Option<i64>) -> Result<Reply> {
        let sql = self.host.sql();
        let version = state::env_version(sql)?;
        let body = match known == Some(version) {
            true => json!({ "version": version }),
            false => json!({ "version": version, "values": table::rows(sql)? }),
        };
        Ok(Reply::json(200, &body))
    }

    /// Changes values: `env_patch`, `env_type_patch`, `env_delete`.
    fn patch_env(self: &Rc<Self>, directory: &str, body: &str) -> Result<Reply> {
        let mut fields = Body::parse(body)?.known(&["env_patch", "env_type_patch", "env_delete"])?;
        let mut given = |field: &'static str| (field, fields.take(field));
        let (values, types, delete) = (given("env_patch"), given("env_type_patch"), given("env_delete"));
        let level = if directory == ROOT { Level::Instance } else { Level::Account };
        let change = Change::parse(values, types, delete, level, &self.catalog)?;
        if change.is_empty() {
            return Err(
                Error::missing("env_patch").hint("Give `env_patch`, `env_type_patch` or `env_delete`.")
            );
        }
        let shadowed = |name: &&str| level == Level::Instance && self.host.var(name).is_some();
        if let Some(name) = change.set().find(shadowed) {
            return Err(Error::field(
                &format!("env_patch.{name}"),
                format!("{name} is a variable of the Worker, which comes before a value of the instance."),
            )
            .hint("Change it there, or take it away first."));
        }
        let keys = Keys::parse(&self.host.var(KEYS_VAR).unwrap_or_default());
        let set = self.host.transaction(|sql| {
            let mut set = self.set(directory, sql)?;
            table::store(sql, &mut set, &change, &keys, &|| self.host.random())?;
            state::env_changed(sql)?;
            Ok(set)
        })?;
        Ok(shown(&set))
    }

    fn set(&self, directory: &str, sql: &dyn Sql) -> Result<VariableSet> {
        let rows = table::rows(sql)?;
        // Without keys, no value can be decrypted, and each reports so.
        let keys = Keys::parse(&self.host.var(KEYS_VAR).unwrap_or_default()).unwrap_or_default();
        Ok(VariableSet::of(&env_object(directory), rows, &keys))
    }
}

fn shown(set: &VariableSet) -> Reply {
    Reply::json(200, &ShownEnv { env: set.texts(), env_types: set.types() })
}
