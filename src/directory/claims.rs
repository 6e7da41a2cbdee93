//! Idempotent `POST /threads`: the key, the digest of the body and the new id are bound in one transaction before the
//! thread is created, so that a request that is repeated after a lost answer creates the same thread.

use std::ops::ControlFlow;

use serde_json::json;

use crate::directory::{Directory, int_at, text_at};
use crate::error::{Code, Error, Result};
use crate::host::{Sql, Transactions};
use crate::limits::{IDEMPOTENCY_KEY_BYTES, IDEMPOTENCY_US};
use crate::request::Reply;

impl Directory {
    /// Answers with the id that belongs to the key: the given one when the key is new, the first one's otherwise.
    pub(crate) fn claim(&self, key: &str, hash: &str, thread_id: &str) -> Result<Reply> {
        if key.is_empty() || key.len() > IDEMPOTENCY_KEY_BYTES {
            return Err(Error::field(
                "Idempotency-Key",
                format!("An idempotency key has 1 to {IDEMPOTENCY_KEY_BYTES} bytes."),
            ));
        }
        let now = self.host.now_us();
        let id = self.host.transaction(|sql| {
            if let Some(claim) = find(sql, key)?
                && claim.at_us > now - IDEMPOTENCY_US
            {
                if claim.hash != hash {
                    return Err(mismatch());
                }
                return if self.is_deleted(sql, &claim.thread_id)? {
                    Err(deleted())
                } else {
                    Ok(claim.thread_id)
                };
            }
            // Two old ones go for each that comes: no scan, and the table cannot grow past a day's keys.
            sql.run(
                "DELETE FROM claims WHERE at_us <= ?1 AND id IN (SELECT id FROM claims ORDER BY id LIMIT 2)",
                &[(now - IDEMPOTENCY_US).into()],
            )?;
            sql.run(
                "INSERT OR REPLACE INTO claims (key, hash, thread_id, at_us) VALUES (?, ?, ?, ?)",
                &[key.into(), hash.into(), thread_id.into(), now.into()],
            )?;
            Ok(thread_id.to_owned())
        })?;
        Ok(Reply::json(200, &json!({ "threadId": id })))
    }
}

impl Directory {
    fn is_deleted(&self, sql: &dyn Sql, id: &str) -> Result<bool> {
        let mut deleted = false;
        sql.each("SELECT deleted FROM threads WHERE id = ?", &[id.into()], &mut |row| {
            deleted = int_at(row, 0)? != 0;
            Ok(ControlFlow::Break(()))
        })?;
        Ok(deleted)
    }
}

struct Claim {
    hash: String,
    thread_id: String,
    at_us: i64,
}

fn find(sql: &dyn Sql, key: &str) -> Result<Option<Claim>> {
    let mut found = None;
    sql.each("SELECT hash, thread_id, at_us FROM claims WHERE key = ?", &[key.into()], &mut |row| {
        found = Some(Claim {
            hash: text_at(row, 0).unwrap_or_default().to_owned(),
            thread_id: text_at(row, 1).unwrap_or_default().to_owned(),
            at_us: int_at(row, 2)?,
        });
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

fn deleted() -> Error {
    Error::new(Code::Conflict, "The thread that this Idempotency-Key created was deleted.")
        .hint("Use a new key to create another one.")
}

fn mismatch() -> Error {
    Error::new(Code::IdempotencyMismatch, "This Idempotency-Key was used with another body.")
        .hint("Send the same body again, or use a new key.")
}
