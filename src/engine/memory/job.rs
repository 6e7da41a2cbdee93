//! The job `index`: cuts the texts of a memory and requests their vectors, one batch at a time, in parallel
//! with other work.

use serde::{Deserialize, Serialize};

use crate::definitions::MemoryScope;
use crate::engine::budget::Reservation;
use crate::engine::features::Memories;
use crate::engine::jobs::JobEnd;
use crate::engine::memory::ingest::StepOutcome;
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::limits;
use crate::memory::MemoryStore;
use crate::memory::index::{STEPS, Step, degrade, is_left, next_request};
use crate::models::{ProviderCode, ProviderError};
use crate::store::jobs::Job;
use crate::store::memory as stores;
use crate::store::memory::sources;
use crate::store::state::State;

/// Number of failures in a row.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Failures {
    #[serde(default)]
    failures: u32,
}

impl Memories<'_> {
    /// One attempt at the job.
    pub(crate) async fn index(&self, job: &Job) -> Result<JobEnd> {
        let Some(memory) = self.catalog.memories.get(&job.subject) else {
            // The memory is no longer defined, so nothing is searched and nothing is due.
            return Ok(JobEnd::Done(Box::new(|_, _| Ok(None))));
        };
        let memory_store = MemoryStore::new(self.0, &self.catalog, memory);
        let name = memory.name.clone();
        for _ in 0..STEPS {
            match self.take_sources(&memory_store).await {
                Ok(StepOutcome::More) => {}
                Ok(StepOutcome::Nothing) if memory.scope == MemoryScope::Thread => break,
                Ok(StepOutcome::Nothing) => {
                    return Ok(JobEnd::Done(Box::new(move |state, sql| left(state, sql, &name))));
                }
                Ok(StepOutcome::Waits) => return Ok(waits(name)),
                Err(error) if error.code == Code::ThreadNotFound => return Err(error),
                Err(error) => {
                    let error = error.into_message();
                    return Ok(JobEnd::Failed { error, after_us: 0, data: job.data.clone() });
                }
            }
        }
        if memory.scope != MemoryScope::Thread {
            return Ok(JobEnd::Done(Box::new(move |state, sql| left(state, sql, &name))));
        }
        let failed = crate::json::from_str::<Failures>(&job.data).unwrap_or_default().failures;
        for n in 0..STEPS {
            // A successful step shows that the model is available again.
            let attempt = if n == 0 { failed + 1 } else { 1 };
            let reserved = match self.reserve_texts(&memory_store)? {
                Ok(reserved) => reserved,
                Err(error) => return self.without_vectors(&memory_store, attempt, error),
            };
            let step = memory_store.index(attempt).await?;
            drop(reserved);
            match step {
                Step::More => {}
                Step::Done => {
                    return Ok(JobEnd::Done(Box::new(move |state, sql| left(state, sql, &name))));
                }
                Step::Failed(error) => return self.without_vectors(&memory_store, attempt, error),
            }
        }
        Ok(JobEnd::Done(Box::new(|_, _| Ok(Some("{}".to_owned())))))
    }

    /// Charges the next request for vectors as in progress; an error if no budget covers it.
    fn reserve_texts(
        &self,
        memory_store: &MemoryStore<'_>,
    ) -> Result<Result<Option<Reservation>, ProviderError>> {
        let Some(model) = memory_store.model else { return Ok(Ok(None)) };
        let next = self.read(|state, sql| {
            if !self.budgets().has_ledger(state, sql)? {
                return Ok(None);
            }
            next_request(sql, &memory_store.memory.name, model)
        })?;
        let Some((_, bytes)) = next else { return Ok(Ok(None)) };
        let reserved = self.budgets().reserve_vectors(model, bytes, 1)?;
        Ok(reserved.map(|reserved| reserved.underway).map_err(|exceeded| {
            ProviderError::new(
                ProviderCode::Unknown,
                format!("{} Its texts get no vectors.", exceeded.text()),
            )
        }))
    }

    /// The end of an attempt without vectors. Retries follow the policy, and then become less and less
    /// frequent.
    fn without_vectors(
        &self,
        memory_store: &MemoryStore<'_>,
        failures: u32,
        error: ProviderError,
    ) -> Result<JobEnd> {
        memory_store.log_requests()?;
        let pause_us = memory_store.pause_after(&error, failures);
        let (name, message) = (memory_store.memory.name.clone(), error.message.clone());
        Ok(JobEnd::Later {
            error: error.message,
            pause_us,
            then: Box::new(move |_, sql| {
                degrade(sql, &name, &message)?;
                let again = failures < limits::EMBEDDING_ATTEMPTS;
                again
                    .then(|| serde_json::to_string(&Failures { failures }).map_err(Error::internal))
                    .transpose()
            }),
        })
    }
}

/// A shared memory has not yet received the earlier messages.
fn waits(name: String) -> JobEnd {
    JobEnd::Later {
        error: format!("{name} does not take what is sent to it"),
        pause_us: limits::JOB_PAUSE_US,
        then: Box::new(|_, _| Ok(Some("{}".to_owned()))),
    }
}

/// The remaining work of a memory, as the job's data.
fn left(state: &mut State, sql: &dyn Sql, name: &str) -> Result<Option<String>> {
    if sources::is_there(state, sql) && sources::any_left(sql, name)? {
        return Ok(Some("{}".to_owned()));
    }
    state.memories = state.memories || stores::is_there(sql);
    if !state.memories {
        return Ok(None);
    }
    let Some(store) = stores::find(sql, name)? else { return Ok(None) };
    Ok(is_left(sql, &store)?.then(|| "{}".to_owned()))
}
