//! The table `env`: values of variables (spec §11). Threads and directories both have it. Ciphertexts are
//! bound to the object, the name and the type, so that a copied or changed row cannot be decrypted.

use std::ops::ControlFlow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::definitions::VariableKind;
use crate::env::{Change, EncryptedRow, Keys, VariableSet};
use crate::error::{Error, Result};
use crate::host::{Cell, Param, Sql};
use crate::store::table::Table;

pub(crate) const TABLE: Table = Table {
    create: &["CREATE TABLE env (
    name TEXT PRIMARY KEY, type TEXT NOT NULL, key TEXT NOT NULL, sealed BLOB NOT NULL) WITHOUT ROWID"],
    drop: "DROP TABLE env",
};

/// All rows, by name.
pub(crate) fn rows(sql: &dyn Sql) -> Result<Vec<EncryptedRow>> {
    let mut rows = Vec::new();
    sql.each("SELECT name, type, key, sealed FROM env ORDER BY name", &[], &mut |cells| {
        let [name, kind, key, Cell::Blob(sealed)] = cells else {
            return Err(Error::internal("a row of `env` is not what the schema promises"));
        };
        let text = |cell: &Cell| cell.text().unwrap_or_default().to_owned();
        rows.push(EncryptedRow {
            name: text(name),
            kind: if kind.text() == Some("text") { VariableKind::Text } else { VariableKind::Secret },
            key: text(key),
            sealed: STANDARD.encode(sealed),
        });
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(rows)
}

/// Stores a change inside the caller's transaction, and updates `set`.
///
/// # Errors
/// As [`VariableSet::written`].
pub(crate) fn store(
    sql: &dyn Sql,
    set: &mut VariableSet,
    change: &Change,
    keys: &Result<Keys>,
    random: &dyn Fn() -> [u8; 16],
) -> Result<()> {
    let written = set.written(change, keys, random)?;
    for name in &written.deleted {
        sql.run("DELETE FROM env WHERE name = ?", &[Param::Text(name)])?;
    }
    for (name, kind, sealed) in &written.sealed {
        sql.run(
            "INSERT INTO env (name, type, key, sealed) VALUES (?, ?, ?, ?)
             ON CONFLICT (name) DO UPDATE SET type = excluded.type, key = excluded.key, sealed = excluded.sealed",
            &[
                Param::Text(name),
                Param::Text(kind.as_str()),
                Param::Text(&sealed.key),
                Param::Blob(&sealed.bytes),
            ],
        )?;
    }
    *set = written.set;
    Ok(())
}
