//! The table `idempotency` for repeated requests (docs/durability.md): a key is kept for a day, with a hash
//! of its request and the number of the result.

use std::ops::ControlFlow;

use sha2::{Digest, Sha256};

use crate::error::{Code, Error, Result};
use crate::host::{Param, Sql, integer};
use crate::limits;
use crate::request::ThreadRequest;
use crate::store::table::Table;

pub(super) const TABLE: Table = Table {
    create: &["CREATE TABLE idempotency (
        id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, hash TEXT NOT NULL, seq INTEGER NOT NULL,
        at_us INTEGER NOT NULL)"],
    drop: "DROP TABLE idempotency",
};

/// An `Idempotency-Key` and a hash of its request.
pub(crate) struct Key {
    key: String,
    hash: String,
}

impl Key {
    /// The request's key, bound to its route and body but not to the query: a client may repeat the request
    /// and wait.
    pub(crate) fn of(request: &ThreadRequest, route: &str) -> Result<Option<Key>> {
        let Some(key) = &request.idempotency_key else { return Ok(None) };
        if key.is_empty() || key.len() > limits::IDEMPOTENCY_KEY_BYTES {
            return Err(Error::field(
                "Idempotency-Key",
                format!("`Idempotency-Key` must have 1 to {} bytes.", limits::IDEMPOTENCY_KEY_BYTES),
            ));
        }
        Ok(Some(Key::new(key.clone(), &[route, &request.body])))
    }

    /// A key bound to these texts.
    pub(crate) fn new(key: String, bound: &[&str]) -> Key {
        let mut digest = Sha256::new();
        bound.iter().for_each(|part| digest.update(part.as_bytes()));
        let hash = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Key { key, hash }
    }

    /// The number of the result that the same key produced before.
    ///
    /// # Errors
    /// `idempotency_mismatch` if the key was sent with another request.
    pub(crate) fn replayed(&self, sql: &dyn Sql, now: i64) -> Result<Option<i64>> {
        let mut found: Option<(String, i64)> = None;
        sql.each(
            "SELECT hash, seq, at_us FROM idempotency WHERE key = ?",
            &[Param::Text(&self.key)],
            &mut |cells| {
                if let [hash, number, at_us] = cells
                    && at_us.int().unwrap_or(0) > now - limits::IDEMPOTENCY_US
                {
                    found = hash.text().map(|hash| (hash.to_owned(), number.int().unwrap_or(0)));
                }
                Ok(ControlFlow::Break(()))
            },
        )?;
        match found {
            None => Ok(None),
            Some((hash, _)) if hash != self.hash => Err(Error::new(
                Code::IdempotencyMismatch,
                "This Idempotency-Key was used with another body within the last 24 hours.",
            )),
            Some((_, number)) => Ok(Some(number)),
        }
    }

    /// Stores the key, and deletes the oldest expired ones.
    pub(crate) fn insert(&self, sql: &dyn Sql, number: i64, now: i64) -> Result<()> {
        let cutoff = now - limits::IDEMPOTENCY_US;
        let oldest = integer(
            sql,
            "SELECT id FROM (SELECT id, at_us FROM idempotency ORDER BY id LIMIT 1) WHERE at_us <= ?",
            &[Param::Int(cutoff)],
        )?;
        if let Some(oldest) = oldest {
            sql.run(
                "DELETE FROM idempotency WHERE id <= ? AND at_us <= ?",
                &[Param::Int(oldest + 100), Param::Int(cutoff)],
            )?;
        }
        sql.run(
            "INSERT OR REPLACE INTO idempotency (key, hash, seq, at_us) VALUES (?, ?, ?, ?)",
            &[Param::Text(&self.key), Param::Text(&self.hash), Param::Int(number), Param::Int(now)],
        )
    }
}
