//! Large content in a bucket beside the database (docs/files.md). It is first written into the database
//! like any other content. Then it is copied into the bucket, and one transaction marks it as copied and
//! deletes it from the database.
//!
//! The row names each possible location (`Storage`) before content is written there. So after an interruption
//! the content is read from the location that is complete, and no object exists without a row that names it.

use std::collections::BTreeSet;

use bytes::Bytes;
use futures::channel::oneshot;
use futures::stream;
use futures::stream::LocalBoxStream;

use crate::engine::features::Files;
use crate::engine::thread::Thread;
use crate::error::{Code, Error, Result};
use crate::host::Bucket;
use crate::limits;
use crate::store::files::{Kind, Row};
use crate::store::objects::Storage;
use crate::store::{chunks, files as table, objects};

/// The size above which content is moved to the bucket, bytes: `BOBBIN_R2_ABOVE_BYTES`, but at least
/// [`limits::FILE_WHOLE_BYTES`]. So content that is read as a whole, searched or shown to a model is always
/// in the database.
pub fn spilled_above(setting: Option<&str>) -> u64 {
    let least = limits::FILE_WHOLE_BYTES as u64;
    setting.and_then(|text| text.trim().parse().ok()).unwrap_or(least).max(least)
}

impl Files<'_> {
    /// The storage of content of this size after it is installed.
    pub(super) fn storage_for(&self, size: u64) -> Storage {
        match self.host.bucket() {
            Some(bucket) if size > bucket.above() => Storage::Copying,
            _ => Storage::Local,
        }
    }

    /// The key of a content's object.
    pub(super) fn key(&self, id: i64) -> Result<String> {
        self.read(|state, _| Ok(state.meta.object(id)))
    }

    /// Moves pending content, in parallel with the caller and one at a time. A failed move waits for the next
    /// write.
    pub(super) fn tend_bucket(&self) {
        if self.host.bucket().is_none() || self.ephemeral.files.moving.get() {
            return;
        }
        match self.next_move(&BTreeSet::new()) {
            Ok(None) => {}
            Ok(Some(_)) => {
                self.ephemeral.files.moving.set(true);
                let moving = MoveGuard(self.0.clone());
                self.host.spawn(Box::pin(async move { moving.0.files().move_files().await }));
            }
            Err(error) => self.variables().log(&format!("files were not moved: {error}")),
        }
    }

    /// The next row to move, except these. `None` in a terminated thread, whose content is only deleted.
    fn next_move(&self, besides: &BTreeSet<i64>) -> Result<Option<Row>> {
        self.read(|state, sql| {
            if state.ensure_not_terminated().is_err() {
                return Ok(None);
            }
            Ok(table::moving(sql)?.into_iter().find(|row| !besides.contains(&row.id)))
        })
    }

    async fn move_files(&self) {
        let mut failed = BTreeSet::new();
        while failed.len() < limits::FAILED_MOVES {
            let row = match self.next_move(&failed) {
                Ok(Some(row)) => row,
                Ok(None) => return,
                // The thread was deleted.
                Err(error) if error.code == Code::ThreadNotFound => return,
                Err(error) => return self.variables().log(&format!("files were not moved: {error}")),
            };
            let id = row.id;
            if let Err(error) = self.move_file(row).await {
                self.variables().log(&format!("content {id} was not moved: {error}"));
                failed.insert(id);
            }
        }
    }

    async fn move_file(&self, row: Row) -> Result<()> {
        match (row.kind, row.storage) {
            (Kind::File, Storage::Copying) => self.copy(&row).await,
            (Kind::File, _) => self.drop_local_chunks(row.id),
            _ => {
                let object = self.key(row.id)?;
                self.bucket()?.delete(vec![object]).await.map_err(refused)?;
                self.transition(|_, sql| {
                    let Some(row) = table::by_id(sql, row.id)? else { return Ok(()) };
                    // From here on it is an ordinary removed row.
                    objects::forget(sql, row.id)?;
                    let row = Row { storage: Storage::Local, ..row };
                    table::delete(sql, &row, limits::PRUNED_CHUNKS + 2).map(drop)
                })
            }
        }
    }

    async fn copy(&self, row: &Row) -> Result<()> {
        let object = self.key(row.id)?;
        let put = self.bucket()?.put(object, row.size.unsigned_abs(), self.local_chunks(row)).await;
        if let Err(error) = put {
            // The failure is expected if it was replaced or removed, or the thread was terminated.
            return if self.is_wanted(row.id)? { Err(refused(error)) } else { Ok(()) };
        }
        self.drop_local_chunks(row.id)
    }

    /// Marks a content as stored in the bucket and deletes its local chunks. Up to a limit, all of them are
    /// deleted in this transition.
    fn drop_local_chunks(&self, id: i64) -> Result<()> {
        self.transition(|_, sql| {
            let Some(row) = table::by_id(sql, id)?.filter(|row| row.kind == Kind::File) else {
                return Ok(());
            };
            let deleted = chunks::empty(sql, id, limits::PRUNED_CHUNKS)?;
            let storage = if deleted < limits::PRUNED_CHUNKS { Storage::Bucket } else { Storage::Emptying };
            Row { storage, ..row }.update(sql)
        })
    }

    /// Whether a content still belongs in the bucket.
    fn is_wanted(&self, id: i64) -> Result<bool> {
        self.read(|state, sql| {
            let row = table::by_id(sql, id)?;
            Ok(state.ensure_not_terminated().is_ok() && row.is_some_and(|row| row.kind == Kind::File))
        })
    }

    /// The content of a file in the database, with each chunk read on demand. It ends with an error when the
    /// content is no longer wanted.
    fn local_chunks(&self, row: &Row) -> LocalBoxStream<'static, Result<Bytes>> {
        let (id, chunks) = (row.id, row.chunks);
        let from = Some((self.0.clone(), 0_i64));
        Box::pin(stream::unfold(from, move |state| async move {
            let (thread, index) = state.filter(|(_, index)| *index < chunks)?;
            let chunk = thread.files().is_wanted(id).and_then(|wanted| {
                let found = thread.read(|_, sql| chunks::find(sql, id, index))?;
                let lost = || Error::internal(format!("content {id} went away in chunk {index}"));
                found.filter(|_| wanted).ok_or_else(lost)
            });
            let next = chunk.is_ok().then(|| (thread, index + 1));
            Some((chunk, next))
        }))
    }

    /// Deletes all objects of a terminated thread. Idempotent.
    ///
    /// # Errors
    /// `overloaded` if the bucket refuses; `internal` if none is bound but there are objects.
    pub(crate) async fn delete_objects(&self) -> Result<()> {
        if self.ephemeral.files.moving.get() {
            // The mover stops at the next chunk. An object that it wrote after the deletion would never be
            // deleted.
            let (send, ended) = oneshot::channel();
            self.ephemeral.files.move_waiters.borrow_mut().push(send);
            let _either_way = ended.await;
        }
        let mut after = 0;
        loop {
            let ids = self.read(|_, sql| objects::after(sql, after, limits::DELETED_OBJECTS))?;
            let Some(last) = ids.last() else { return Ok(()) };
            after = *last;
            let keys = ids.into_iter().map(|id| self.key(id)).collect::<Result<_>>()?;
            self.bucket()?.delete(keys).await.map_err(|error| {
                Error::new(Code::Overloaded, format!("The thread's files could not be deleted: {error}."))
                    .hint("The thread is terminated; delete it again.")
            })?;
        }
    }

    /// The bucket, or an error if none is bound.
    pub(super) fn bucket(&self) -> Result<&dyn Bucket> {
        self.host.bucket().ok_or_else(|| {
            Error::internal("this thread has files in R2, but no bucket is bound: bind it as FILES in wrangler.toml again")
        })
    }
}

/// The error for a failed operation of the bucket.
pub(super) fn refused(error: impl std::fmt::Display) -> Error {
    Error::new(Code::Overloaded, format!("The bucket of the files failed: {error}.")).hint("Try again.")
}

/// Ends the move, also after a panic.
struct MoveGuard(Thread);

impl Drop for MoveGuard {
    fn drop(&mut self) {
        let transfers = &self.0.ephemeral.files;
        transfers.moving.set(false);
        for waiting in transfers.move_waiters.borrow_mut().drain(..) {
            let _nobody_waits = waiting.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_as_a_whole_never_leaves_the_database() {
        let least = limits::FILE_WHOLE_BYTES as u64;
        for (setting, above) in [
            (None, least),
            (Some(""), least),
            (Some("much"), least),
            (Some("0"), least),
            (Some("1000000"), least),
            (Some(" 100000000 "), 100_000_000),
        ] {
            assert_eq!(spilled_above(setting), above, "{setting:?}");
        }
    }
}
