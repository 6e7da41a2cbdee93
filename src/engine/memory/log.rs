//! What the log has of memories: each request for vectors, and each search that a run has waited for.

use serde_json::{Map, Value, json};

use crate::engine::budget::estimate;
use crate::engine::definitions::Definitions;
use crate::engine::thread::Thread;
use crate::error::Result;
use crate::memory::Book;
use crate::memory::embed::{VectorRequest, VectorsEnd};
use crate::memory::search::Found;
use crate::models::{ProviderError, Silence};
use crate::spec::model::{Model, Usage};
use crate::store::log::{Attempt, Event, Worst};
use crate::store::runs::Step;

/// What the rows of requests for vectors are marked with.
pub(crate) const PURPOSE: &str = "embedding";

/// What a run looks something up for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SearchedBy {
    /// To put it before a turn.
    Turn,
    /// A call of its model; with its receipt.
    Call(Option<i64>),
}

impl SearchedBy {
    const fn as_str(self) -> &'static str {
        match self {
            SearchedBy::Turn => "turn",
            SearchedBy::Call(_) => "call",
        }
    }

    const fn call(self) -> Option<i64> {
        match self {
            SearchedBy::Turn => None,
            SearchedBy::Call(receipt) => receipt,
        }
    }
}

/// A search that is over.
pub(crate) struct Searched<'a> {
    pub(crate) by: SearchedBy,
    pub(crate) started_us: i64,
    /// What was found, or why nothing was.
    pub(crate) found: Result<&'a Found, &'a str>,
}

/// The row of a request for vectors.
pub(crate) fn row_of(model: &Model, prompt: &str, request: &VectorRequest, now: i64) -> Attempt {
    let mut attempt = Attempt::of(0, Step::own(0), request.attempt, model, prompt, request.started_us);
    attempt.purpose = Some(PURPOSE);
    attempt.retry_source = request.retry_source;
    attempt.asked = Map::from_iter([
        ("memory".to_owned(), Value::from(request.memory.as_str())),
        ("texts".to_owned(), Value::from(request.texts)),
    ]);
    let lost = || VectorsEnd { at_us: now, tokens: Err(ProviderError::timeout(Silence::Attempt)) };
    let end = request.end.clone().unwrap_or_else(lost);
    match end.tokens {
        Err(error) => attempt.fail(&error, end.at_us),
        Ok(tokens) => {
            let usage = Usage { input_tokens: tokens.unwrap_or(0), ..Usage::default() };
            (attempt.ended_us, attempt.first_us) = (end.at_us, Some(end.at_us));
            attempt.reported = tokens.map(|_| usage);
            attempt.end = Some(json!({
                "status": "completed", "usage_reported": tokens.is_some(), "input_tokens": usage.input_tokens,
                "cost_total": model.cost(&usage),
            }));
        }
    }
    attempt
}

impl Thread {
    /// Writes what a search of the active run has asked for and found. What its requests took is booked on the run.
    pub(crate) fn log_search(
        &self,
        definitions: &Definitions<'_>,
        book: &Book<'_>,
        searched: &Searched<'_>,
    ) -> Result<()> {
        let now = self.host.now_us();
        let asked = book.asked.take();
        let call = searched.by.call();
        self.transition(|state, sql| {
            let run = state.active().map(|run| run.id);
            for request in &asked {
                let Some(model) = book.model else { continue };
                let mut attempt = row_of(model, &definitions.prompt.name, request, now);
                (attempt.run, attempt.step.call) = (run.unwrap_or(0), call);
                if let Some(ledger) = state.run.as_mut().and_then(|run| run.ledger.as_mut()) {
                    attempt.worst = Some(Worst { input: estimate::of_bytes(request.bytes), output: 0 });
                    let failed = request.end.as_ref().and_then(|end| end.tokens.as_ref().err());
                    attempt.reckon(model, failed);
                    ledger.book_logged(&attempt);
                }
                attempt.insert(sql)?;
                state.used(&attempt);
            }
            let mut data = json!({
                "memory": book.memory.name, "by": searched.by.as_str(), "ended_at": now,
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
}
