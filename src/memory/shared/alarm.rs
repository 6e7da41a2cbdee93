//! The object's alarm: chunks texts and requests vectors. Each attempt is counted before it runs, and each
//! step is one transaction, so that a crash loses nothing.

use std::cell::Cell as Flag;
use std::rc::Rc;

use crate::definitions::retry::RetrySource;
use crate::definitions::{Memory, MemoryScope};
use crate::error::Result;
use crate::host::{Sql, Transactions};
use crate::limits;
use crate::memory::embed::VectorRequest;
use crate::memory::index::{STEPS, Step, degrade, is_left, next_request};
use crate::memory::log::row_of_lost;
use crate::memory::shared::{SharedMemory, keep_logged};
use crate::memory::{MemoryHost, MemoryStore, named};
use crate::models::ProviderError;
use crate::store::jobs::pause_us;
use crate::store::memory as stores;
use crate::store::memory::shared as table;
use crate::store::memory::shared::IndexingJob;
use futures::future::LocalBoxFuture;

/// Resets the flag when the alarm's handler ends, even after a panic.
struct WorkGuard<'a>(&'a Flag<bool>);

impl Drop for WorkGuard<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl SharedMemory {
    /// The platform's alarm event. Never fails: the platform abandons an alarm that throws too often.
    pub fn alarm(self: Rc<Self>) -> LocalBoxFuture<'static, ()> {
        Box::pin(async move {
            self.working.set(true);
            let working = WorkGuard(&self.working);
            let failed =
                self.attempt().await.inspect_err(|error| self.log(&format!("a memory: {error}"))).is_err();
            // No await between here and the alarm, so that no change slips in between.
            drop(working);
            let now = self.host.now_us();
            let next = self.next_due().and_then(|due| {
                // Do not retry a failure immediately.
                let least = if failed { now + limits::JOB_PAUSE_US } else { now };
                due.map_or(Ok(()), |due| self.host.set_alarm(Some(due.max(least))))
            });
            if let Err(error) = next {
                self.log(&format!("a memory: its alarm could not be set: {error}"));
            }
        })
    }

    fn next_due(&self) -> Result<Option<i64>> {
        if !self.has_tables()? {
            return Ok(None);
        }
        Ok(table::pending(self.host.sql())?.map(|job| job.due_us))
    }

    /// Runs one attempt at due work.
    async fn attempt(&self) -> Result<()> {
        if !self.has_tables()? {
            return Ok(());
        }
        let now = self.host.now_us();
        let Some(job) = table::pending(self.host.sql())?.filter(|job| job.due_us <= now) else {
            return Ok(());
        };
        let of_scope = |scope| named(&self.catalog, &job.name, scope).ok();
        let memory = [MemoryScope::Owner, MemoryScope::Instance].into_iter().find_map(of_scope);
        // The memory is no longer defined, so nothing is pending. A text that arrives after it is defined
        // again restarts work.
        let Some(memory) = memory else { return self.host.transaction(table::finish) };
        if job.attempts >= limits::JOB_ATTEMPTS {
            self.log(&format!(
                "the memory {}: the process was lost {} times while it was indexed",
                job.name, job.attempts
            ));
            return self.host.transaction(table::finish);
        }
        let lost = job.attempts > 0;
        let attempts = job.attempts + 1;
        let begun = IndexingJob { attempts, due_us: now + pause_us(attempts, self.host.random()), ..job };
        self.host.transaction(|sql| {
            if lost {
                self.log_lost(sql, memory, now)?;
            }
            table::update(sql, &begun)
        })?;
        self.ready_to_embed(memory).await?;
        let memory_store = MemoryStore::new(self, &self.catalog, memory);
        for n in 0..STEPS {
            // After a successful step, the model counts as available.
            let attempt = if n == 0 { begun.failures + 1 } else { 1 };
            match memory_store.index(attempt).await? {
                Step::More => {}
                Step::Done => break,
                Step::Failed(error) => return self.later(&memory_store, attempt, error),
            }
        }
        self.host.transaction(|sql| settle(sql, &memory.name, self.host.now_us()))
    }

    /// Logs a request that a crashed process may have made.
    fn log_lost(&self, sql: &dyn Sql, memory: &Memory, now: i64) -> Result<()> {
        let model = memory.embedding.as_ref().and_then(|name| self.catalog.models.get(name));
        let Some(model) = model else { return Ok(()) };
        let Some(size) = next_request(sql, &memory.name, model)? else { return Ok(()) };
        let lost = VectorRequest::lost(&memory.name, size, RetrySource::BuiltIn, now);
        keep_logged(sql, std::iter::once(row_of_lost(model, "", &lost)))
    }

    /// Schedules a retry after the model failed, with growing pauses.
    fn later(&self, memory_store: &MemoryStore<'_>, failures: u32, error: ProviderError) -> Result<()> {
        let name = &memory_store.memory.name;
        let now = self.host.now_us();
        let message = self.redactor().text(&error.message).into_owned();
        let pause = memory_store.pause_after(&error, failures).min(limits::JOB_PAUSE_MAX_US);
        memory_store.log_requests()?;
        self.host.transaction(|sql| {
            // If everything was deleted meanwhile, nothing is pending.
            if stores::find(sql, name)?.is_none() {
                return table::finish(sql);
            }
            degrade(sql, name, &message)?;
            let Some(job) = table::pending(sql)? else { return Ok(()) };
            if failures >= limits::EMBEDDING_ATTEMPTS {
                return table::finish(sql);
            }
            table::update(sql, &IndexingJob { due_us: now + pause, attempts: 0, failures, ..job })
        })
    }
}

/// Records the remaining work.
fn settle(sql: &dyn Sql, name: &str, now: i64) -> Result<()> {
    let left = match stores::find(sql, name)? {
        None => false,
        Some(store) => is_left(sql, &store)?,
    };
    match (left, table::pending(sql)?) {
        (true, Some(job)) => {
            table::update(sql, &IndexingJob { due_us: now, attempts: 0, failures: 0, ..job })
        }
        (true, None) => table::schedule(sql, name, now),
        (false, _) => table::finish(sql),
    }
}
