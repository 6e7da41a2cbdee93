//! Requests for vectors: each is remembered for the log, and those for a question's vector that fail are made again at once.

use crate::error::Result;
use crate::host::Sql;
use crate::limits;
use crate::memory::Book;
use crate::models::backoff::backoff_us;
use crate::models::embedding::{Embedder, Of};
use crate::models::{ProviderError, Silence};
use crate::spec::model::Model;
use crate::spec::retry::RetrySource;
use crate::store::jobs::pause_us;
use crate::work::timeout::Watch;

/// A request for vectors, as the log tells of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct VectorRequest {
    pub(crate) memory: String,
    pub(crate) texts: usize,
    /// Of all texts.
    pub(crate) bytes: usize,
    /// From 1.
    pub(crate) attempt: u32,
    pub(crate) started_us: i64,
    pub(crate) retry_source: RetrySource,
    /// `None` while nothing came: what gave it up tells why.
    pub(crate) end: Option<VectorsEnd>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct VectorsEnd {
    pub(crate) at_us: i64,
    /// Tokens, where the provider tells; or why there are no vectors.
    pub(crate) tokens: Result<Option<u64>, ProviderError>,
}

impl Book<'_> {
    /// Vectors of texts, asked for once, in the time that the model has.
    pub(crate) async fn embed(
        &self,
        model: &Model,
        of: Of,
        texts: &[&str],
        attempt: u32,
    ) -> Result<Vec<Vec<f32>>, ProviderError> {
        let host = self.keeper.host();
        let started_us = host.now_us();
        self.asked.borrow_mut().push(VectorRequest {
            memory: self.memory.name.clone(),
            texts: texts.len(),
            bytes: texts.iter().map(|text| text.len()).sum(),
            attempt,
            started_us,
            retry_source: self.retry.source,
            end: None,
        });
        let deployment = |name: &str| self.keeper.deployment(name);
        let embedder = Embedder { host, model, deployment: &deployment };
        let most = model.timeouts.first_chunk_us();
        let (limit, silence) = match self.retry.timeout_us.filter(|us| *us < most) {
            Some(us) => (us, Silence::Attempt),
            None => (most, Silence::FirstChunk),
        };
        let mut watch = Watch::new(host, started_us + limit);
        let given = watch.within(embedder.embed(of, texts)).await;
        let given = given.unwrap_or_else(|| Err(ProviderError::timeout(silence)));
        let given = given.map_err(|error| error.told(|text| self.keeper.clean(text)));
        let tokens = match &given {
            Ok(vectors) => Ok(vectors.tokens),
            Err(error) => Err(error.clone()),
        };
        if let Some(request) = self.asked.borrow_mut().last_mut() {
            request.end = Some(VectorsEnd { at_us: host.now_us(), tokens });
        }
        given.map(|given| given.vectors)
    }

    /// The vector of a question. What may pass is tried again as the policy says, unless the pause is longer than a search.
    pub(crate) async fn embed_question(
        &self,
        model: &Model,
        question: &str,
    ) -> Result<Vec<Vec<f32>>, ProviderError> {
        let host = self.keeper.host();
        let mut attempt = 1;
        loop {
            let error = match self.embed(model, Of::Query, &[question], attempt).await {
                Ok(vectors) => return Ok(vectors),
                Err(error) => error,
            };
            let pause = backoff_us(&self.retry, attempt, host.random(), error.retry_after_ms);
            let in_time = u64::try_from(pause).is_ok_and(|us| us < limits::MEMORY_SEARCH_MS * 1000);
            if !in_time || !self.tries_again(&error, attempt) {
                return Err(error);
            }
            host.sleep_until(host.now_us() + pause).await;
            attempt += 1;
        }
    }

    /// Whether the policy has another attempt for a failure.
    pub(crate) fn tries_again(&self, error: &ProviderError, attempt: u32) -> bool {
        attempt < self.retry.max_attempts && self.retry.retries(error.may_pass(), error.retryable())
    }

    /// How long a model that failed so often in a row is left alone: as the policy says, and then longer and longer.
    pub(crate) fn pause_after(&self, error: &ProviderError, failures: u32) -> i64 {
        let wished = error.retry_after_ms.and_then(|ms| i64::try_from(ms).ok()).unwrap_or(0);
        let random = self.keeper.host().random();
        let pause = match self.tries_again(error, failures) {
            true => backoff_us(&self.retry, failures, random, None),
            false => pause_us(failures, random),
        };
        pause.max(wished.saturating_mul(1000))
    }

    /// Writes the requests that were made since, where the keeper has a log. Inside a transaction.
    pub(crate) fn log_requests(&self, sql: &dyn Sql) -> Result<()> {
        let Some(model) = self.model else { return Ok(()) };
        self.asked.take().iter().try_for_each(|request| self.keeper.log_request(sql, model, request))
    }
}
