//! Log entries of memories: each request for vectors, and each search that a run has waited for.

use crate::definitions::MemoryScope;
use crate::definitions::model::Model;
use crate::definitions::retry::RetrySource;
use crate::engine::budget::estimate;
use crate::engine::definitions::Definitions;
use crate::engine::features::Memories;
use crate::error::Result;
use crate::host::Sql;
use crate::json;
use crate::limits;
use crate::memory::embed::{VectorRequest, bytes_of};
use crate::memory::embedding::TextRole;
use crate::memory::index::next_request;
use crate::memory::log::{row_of, row_of_lost};
use crate::memory::search::SearchResults;
use crate::memory::{MemoryStore, named};
use crate::store::jobs::Job;
use crate::store::log_record::{Attempt, Event, MaxTokens};
use crate::store::state::State;

/// The reason for which a run searches.
#[derive(Clone, Copy, Debug)]
pub(super) enum SearchOrigin {
    /// For entries before a turn.
    Turn,
    /// For a call of its model, with its receipt.
    Call(Option<i64>),
}

impl SearchOrigin {
    const fn as_str(self) -> &'static str {
        match self {
            SearchOrigin::Turn => "turn",
            SearchOrigin::Call(_) => "call",
        }
    }

    const fn call(self) -> Option<i64> {
        match self {
            SearchOrigin::Turn => None,
            SearchOrigin::Call(receipt) => receipt,
        }
    }
}

/// A search that has ended.
pub(super) struct SearchRecord<'a> {
    pub(super) by: SearchOrigin,
    pub(super) started_us: i64,
    /// The results, or the reason why there are none.
    pub(super) found: Result<&'a SearchResults, &'a str>,
}

impl Memories<'_> {
    /// Logs a search of the active run, and charges its requests to the run.
    pub(super) fn log_search(
        &self,
        definitions: &Definitions<'_>,
        memory_store: &MemoryStore<'_>,
        searched: &SearchRecord<'_>,
    ) -> Result<()> {
        let now = self.host.now_us();
        let asked = memory_store.asked.take();
        let call = searched.by.call();
        self.transition(|state, sql| {
            let run = state.active().map(|run| run.id);
            for request in &asked {
                let Some(model) = memory_store.model else { continue };
                let mut attempt = row_of(model, &definitions.prompt.name, request, now);
                (attempt.run, attempt.step.call) = (run.unwrap_or(0), call);
                let active = state.run.as_mut().filter(|run| run.end.is_none());
                if let Some(ledger) = active.and_then(|run| run.ledger.as_mut()) {
                    attempt.reckon_vectors(model, request);
                    ledger.charge_logged(&attempt);
                }
                state.log_attempt(sql, &attempt)?;
            }
            let mut data = json!({
                "memory": memory_store.memory.name, "by": searched.by.as_str(), "ended_at": now,
                "latency_ms": (now - searched.started_us) / 1000,
            });
            if let Some(fields) = data.as_object_mut() {
                match searched.found {
                    Ok(found) => {
                        fields.insert("status".to_owned(), "completed".into());
                        fields.insert("results".to_owned(), found.hits.len().into());
                        fields.insert("degraded".to_owned(), found.degraded.into());
                    }
                    Err(why) => {
                        fields.insert("status".to_owned(), "failed".into());
                        fields.insert("error".to_owned(), why.into());
                    }
                }
                fields.extend(call.map(|call| ("parent_call".to_owned(), format!("c_{call}").into())));
            }
            Event::memory(run, data).insert(sql, searched.started_us)
        })
    }

    /// Logs requests for vectors outside any run, and charges them to the thread if a budget limits it.
    pub(super) fn log_vectors(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        (model, asked): (&Model, &[VectorRequest]),
    ) -> Result<()> {
        let now = self.host.now_us();
        let keeps_books = self.budgets().has_ledger(state, sql)?;
        for request in asked {
            let mut attempt = row_of(model, "", request, now);
            if keeps_books {
                attempt.reckon_vectors(model, request);
            }
            state.log_attempt(sql, &attempt)?;
            if let Some(booked) = attempt.booked {
                self.budgets().charge_thread(state, sql, &booked)?;
            }
        }
        Ok(())
    }

    /// Logs and charges requests of the active run that were lost in a crash, before anything else is sent:
    /// this number of requests for the question's vector.
    pub(super) fn log_lost_search(
        &self,
        definitions: &Definitions<'_>,
        memory_store: &MemoryStore<'_>,
        question: &str,
        (by, times): (SearchOrigin, u32),
    ) -> Result<()> {
        let Some(model) = memory_store.model.filter(|_| times > 0) else { return Ok(()) };
        let bytes = bytes_of(model, TextRole::Query, std::iter::once(question));
        let lost = VectorRequest::lost(
            &memory_store.memory.name,
            (1, bytes),
            memory_store.retry.source,
            self.host.now_us(),
        );
        self.transition(|state, sql| {
            let Ok(run) = state.active_mut() else { return Ok(()) };
            let mut attempt = row_of_lost(model, &definitions.prompt.name, &lost);
            (attempt.run, attempt.step.call) = (run.id, by.call());
            if run.ledger.is_some() {
                attempt.reckon_vectors(model, &lost);
            }
            for _ in 0..times {
                state.log_attempt(sql, &attempt)?;
            }
            let run = state.active_mut()?;
            if let Some(ledger) = &mut run.ledger {
                for _ in 0..times {
                    ledger.charge_logged(&attempt);
                }
                if matches!(by, SearchOrigin::Turn) {
                    // The lost request was for vectors, not for a reply.
                    ledger.unseen = 0;
                }
            }
            run.update(sql)
        })
    }

    /// Logs and charges requests for vectors that a crash may have lost: as many as the next batch would
    /// make, or the maximum if the texts are gone.
    pub(crate) fn log_lost_vectors(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        job: &Job,
        now: i64,
    ) -> Result<()> {
        let Ok(memory) = named(&self.catalog, &job.subject, MemoryScope::Thread) else { return Ok(()) };
        let Some(model) = memory.embedding.as_ref().and_then(|name| self.catalog.models.get(name)) else {
            return Ok(());
        };
        let next = next_request(sql, &memory.name, model)?;
        let most = || {
            let batch = model.batch.unwrap_or(limits::EMBEDDING_BATCH);
            (batch, batch * memory.chunk.chars)
        };
        let lost = VectorRequest::lost(&memory.name, next.unwrap_or_else(most), RetrySource::BuiltIn, now);
        let mut attempt = row_of_lost(model, "", &lost);
        if self.budgets().has_ledger(state, sql)? {
            attempt.reckon_vectors(model, &lost);
        }
        if next.is_some() {
            state.log_attempt(sql, &attempt)?;
        }
        match attempt.booked {
            Some(booked) => self.budgets().charge_thread(state, sql, &booked),
            None => Ok(()),
        }
    }
}

impl Attempt {
    /// Calculates the usage of a request for vectors.
    fn reckon_vectors(&mut self, model: &Model, request: &VectorRequest) {
        self.worst = Some(MaxTokens { input: estimate::of_bytes(request.bytes), output: 0 });
        let failed = request.end.as_ref().and_then(|end| end.tokens.as_ref().err());
        self.reckon(model, failed);
    }
}
