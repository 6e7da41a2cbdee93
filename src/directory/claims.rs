//! Idempotent `POST /threads`: the key, the digest of the body and the new id are bound in one transaction
//! before the thread is created, so that a request that is repeated after a lost response creates the same
//! thread.

use crate::directory::Directory;
use crate::directory::store::claims::Claim;
use crate::directory::store::{claims as table, threads};
use crate::error::{Code, Error, Result};
use crate::host::Transactions;
use crate::json;
use crate::limits::{IDEMPOTENCY_KEY_BYTES, IDEMPOTENCY_US};
use crate::request::Reply;

impl Directory {
    /// Returns the id bound to the key: the given one if the key is new, else the first one.
    pub(super) fn claim(&self, key: &str, hash: &str, thread_id: &str) -> Result<Reply> {
        if key.is_empty() || key.len() > IDEMPOTENCY_KEY_BYTES {
            return Err(Error::field(
                "Idempotency-Key",
                format!("An idempotency key has 1 to {IDEMPOTENCY_KEY_BYTES} bytes."),
            ));
        }
        let now = self.host.now_us();
        let id = self.host.transaction(|sql| {
            if let Some(claim) = table::find(sql, key)?
                && claim.at_us > now - IDEMPOTENCY_US
            {
                if claim.hash != hash {
                    return Err(mismatch());
                }
                return if threads::is_deleted(sql, &claim.thread_id)? {
                    Err(deleted())
                } else {
                    Ok(claim.thread_id)
                };
            }
            table::forget_two(sql, now - IDEMPOTENCY_US)?;
            let claim = Claim { hash: hash.to_owned(), thread_id: thread_id.to_owned(), at_us: now };
            table::put(sql, key, &claim)?;
            Ok(thread_id.to_owned())
        })?;
        Ok(Reply::json(200, &json!({ "threadId": id })))
    }
}

fn deleted() -> Error {
    Error::new(Code::Conflict, "The thread that this Idempotency-Key created was deleted.")
        .hint("Use a new key to create another one.")
}

fn mismatch() -> Error {
    Error::new(Code::IdempotencyMismatch, "This Idempotency-Key was used with another body.")
        .hint("Send the same body again, or use a new key.")
}
