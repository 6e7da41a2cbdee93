//! The job `index`: texts of a memory are cut and get vectors, a batch at a time, beside whatever else goes on.

use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::engine::jobs::JobEnd;
use crate::engine::thread::Thread;
use crate::error::{Error, Result};
use crate::host::Sql;
use crate::limits;
use crate::memory::index::{STEPS, Step, degrade};
use crate::memory::{Book, named};
use crate::models::ProviderError;
use crate::spec::MemoryScope;
use crate::store::jobs;
use crate::store::jobs::{Job, Kind};
use crate::store::memory as stores;
use crate::store::memory::docs;
use crate::store::state::State;

/// How often the model has failed in a row.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Failures {
    #[serde(default)]
    failures: u32,
}

impl Thread {
    /// A memory has texts that are to be cut or to get vectors.
    pub(crate) fn owe_index(&self, state: &mut State, sql: &dyn Sql, name: &str) -> Result<()> {
        if state.meta.terminated_us.is_some() {
            return Ok(());
        }
        let now = self.host.now_us();
        jobs::owe(state, sql, Kind::Index, name, now)?;
        self.arm_at(state, sql, now, now)
    }

    /// One attempt at the job.
    pub(crate) async fn index(self: &Rc<Self>, job: &Job) -> Result<JobEnd> {
        let Ok(memory) = named(&self.catalog, &job.subject, MemoryScope::Thread) else {
            // It is defined no more: nothing is found in it, and nothing owed.
            return Ok(JobEnd::Done(Box::new(|_, _| Ok(None))));
        };
        let book = Book::new(&**self, &self.catalog, memory);
        let name = memory.name.clone();
        let failed = serde_json::from_str::<Failures>(&job.data).unwrap_or_default().failures;
        for n in 0..STEPS {
            // A step that came through says that the model is there again.
            let attempt = if n == 0 { failed + 1 } else { 1 };
            match book.index(attempt).await? {
                Step::More => {}
                Step::Done => {
                    return Ok(JobEnd::Done(Box::new(move |_, sql| left(sql, &name))));
                }
                Step::Failed(error) => return self.without_vectors(&book, attempt, error),
            }
        }
        Ok(JobEnd::Done(Box::new(|_, _| Ok(Some("{}".to_owned())))))
    }

    /// The model gave no vectors: it is asked again, as often and as soon as the policy says, and then less and less often.
    fn without_vectors(&self, book: &Book<'_>, failures: u32, error: ProviderError) -> Result<JobEnd> {
        self.transition(|_, sql| book.log_requests(sql))?;
        let pause_us = book.pause_after(&error, failures);
        let (name, message) = (book.memory.name.clone(), error.message.clone());
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

/// What is left to do of a memory, as the job's data.
fn left(sql: &dyn Sql, name: &str) -> Result<Option<String>> {
    let Some(store) = stores::find(sql, name)? else { return Ok(None) };
    Ok(docs::unfinished(sql, store.id)?.map(|_| "{}".to_owned()))
}
