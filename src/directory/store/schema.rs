//! The tables of a directory, each created by its own file. Migrations go forward only, as for a thread.

use crate::directory::store::{claims, inbox, owners, state, threads};
use crate::error::{Error, Result};
use crate::host::Sql;
use crate::store::env;
use crate::store::table::Table;

/// The current tables.
const TABLES: [Table; 6] =
    [state::TABLE, threads::TABLE, claims::TABLE, owners::TABLE, env::TABLE, inbox::TABLE];

/// The statements from each version to the next; the first entry leads from 1 to 2. The result must equal a
/// new directory's tables.
const MIGRATIONS: &[&[&str]] = &[&[threads::ADD_FAILED, owners::ADD_CHANGED, owners::BY_CHANGE]];

/// The version that this code writes.
const VERSION: i64 = 1 + MIGRATIONS.len() as i64;

/// Brings the database to [`VERSION`]. Runs inside the caller's transaction.
///
/// # Errors
/// A database newer than this code is refused: it would be written wrongly.
pub(crate) fn migrate(sql: &dyn Sql) -> Result<()> {
    let version = state::schema(sql)?;
    if version > VERSION {
        return Err(Error::internal(format!(
            "This directory has schema {version}; this version of Bobbin knows {VERSION}. Deploy the newer version again."
        )));
    }
    match usize::try_from(version - 1) {
        Err(_) => {
            let mut statements = TABLES.iter().flat_map(|table| table.create);
            statements.try_for_each(|statement| sql.run(statement, &[]))?;
        }
        Ok(passed) => {
            let mut missing = MIGRATIONS.get(passed..).unwrap_or_default().iter().copied().flatten();
            missing.try_for_each(|statement| sql.run(statement, &[]))?;
        }
    }
    if version < VERSION { state::set_schema(sql, VERSION) } else { Ok(()) }
}
