//! Requests for vectors. Each is recorded for the log. Failed requests for a query's vector are retried
//! immediately.

use serde::{Deserialize, Serialize};

use crate::definitions::model::Model;
use crate::definitions::retry::RetrySource;
use crate::error::Result;
use crate::limits;
use crate::memory::embedding::{Embedder, TextRole};
use crate::memory::{MemoryStore, PendingWork};
use crate::models::backoff::backoff_us;
use crate::models::{ProviderError, TimeoutKind};
use crate::store::jobs::pause_us;
use crate::work::timeout::Deadline;

/// A request for vectors, for the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct VectorRequest {
    pub(super) memory: String,
    pub(super) texts: usize,
    /// Bytes of all texts.
    pub(crate) bytes: usize,
    /// From 1.
    pub(super) attempt: u32,
    pub(super) started_us: i64,
    pub(super) retry_source: RetrySource,
    /// `None` while there is no response; the code that abandoned it logs the reason.
    pub(crate) end: Option<VectorsEnd>,
}

/// The end of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct VectorsEnd {
    pub(super) at_us: i64,
    /// Tokens, if the provider reports them; or the failure.
    pub(crate) tokens: Result<Option<u64>, ProviderError>,
    /// The model that made the vectors, if the provider reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
}

impl VectorRequest {
    /// A request whose end is unknown, with the approximate number of texts and bytes.
    pub(crate) fn lost(
        memory: &str,
        (texts, bytes): (usize, usize),
        retry_source: RetrySource,
        started_us: i64,
    ) -> VectorRequest {
        VectorRequest {
            memory: memory.to_owned(),
            texts,
            bytes,
            attempt: 1,
            started_us,
            retry_source,
            end: None,
        }
    }
}

/// Bytes in a request for vectors of these texts.
pub(crate) fn bytes_of<'t>(model: &Model, of: TextRole, texts: impl Iterator<Item = &'t str>) -> usize {
    let prefix = match of {
        TextRole::Query => model.query_prefix.as_deref(),
        TextRole::Document => model.document_prefix.as_deref(),
    };
    let each = prefix.map_or(0, str::len);
    texts.map(|text| text.len() + each).sum()
}

impl MemoryStore<'_> {
    /// Requests vectors of texts once, within the model's time limit.
    pub(super) async fn embed(
        &self,
        model: &Model,
        of: TextRole,
        texts: &[&str],
        attempt: u32,
    ) -> Result<Vec<Vec<f32>>, ProviderError> {
        let host = self.memory_host.host();
        let started_us = host.now_us();
        self.asked.borrow_mut().push(VectorRequest {
            memory: self.memory.name.clone(),
            texts: texts.len(),
            bytes: bytes_of(model, of, texts.iter().copied()),
            attempt,
            started_us,
            retry_source: self.retry.source,
            end: None,
        });
        let deployment = |name: &str| self.memory_host.deployment(name);
        let embedder = Embedder { host, model, deployment: &deployment };
        let most = model.timeouts.first_chunk_us();
        let (limit, silence) = match self.retry.timeout_us.filter(|us| *us < most) {
            Some(us) => (us, TimeoutKind::Attempt),
            None => (most, TimeoutKind::FirstChunk),
        };
        let mut watch = Deadline::new(host, started_us + limit);
        let given = watch.within(embedder.embed(of, texts)).await;
        let given = given.unwrap_or_else(|| Err(ProviderError::timeout(silence)));
        let given = given.map_err(|error| error.cleaned(|text| self.memory_host.clean(text)));
        let (tokens, model) = match &given {
            Ok(vectors) => (Ok(vectors.tokens), vectors.model.clone()),
            Err(error) => (Err(error.clone()), None),
        };
        if let Some(request) = self.asked.borrow_mut().last_mut() {
            request.end = Some(VectorsEnd { at_us: host.now_us(), tokens, model });
        }
        given.map(|given| given.vectors)
    }

    /// The vector of a query. Transient failures are retried as the policy says, or up to `requests` times,
    /// unless the pause is longer than a search may take.
    pub(super) async fn embed_question(
        &self,
        model: &Model,
        question: &str,
        requests: Option<u32>,
    ) -> Result<Vec<Vec<f32>>, ProviderError> {
        let most = requests.unwrap_or(self.retry.max_attempts);
        let host = self.memory_host.host();
        let mut attempt = 1;
        loop {
            let error = match self.embed(model, TextRole::Query, &[question], attempt).await {
                Ok(vectors) => return Ok(vectors),
                Err(error) => error,
            };
            let pause = backoff_us(&self.retry, attempt, host.random(), error.retry_after_ms);
            let in_time = u64::try_from(pause).is_ok_and(|us| us < limits::MEMORY_SEARCH_MS * 1000);
            if !in_time || attempt >= most || !self.may_pass(&error) {
                return Err(error);
            }
            host.sleep_until(host.now_us() + pause).await;
            attempt += 1;
        }
    }

    /// Whether the policy allows another attempt after a failure.
    fn tries_again(&self, error: &ProviderError, attempt: u32) -> bool {
        attempt < self.retry.max_attempts && self.may_pass(error)
    }

    fn may_pass(&self, error: &ProviderError) -> bool {
        self.retry.retries(error.may_pass(), error.retryable())
    }

    /// The pause after consecutive failures of a model: the policy's, then an exponential one.
    pub(crate) fn pause_after(&self, error: &ProviderError, failures: u32) -> i64 {
        let wished = error.retry_after_ms.and_then(|ms| i64::try_from(ms).ok()).unwrap_or(0);
        let random = self.memory_host.host().random();
        let pause = match self.tries_again(error, failures) {
            true => backoff_us(&self.retry, failures, random, None),
            false => pause_us(failures, random),
        };
        pause.max(wished.saturating_mul(1000))
    }

    /// Logs the requests made since the last call.
    pub(crate) fn log_requests(&self) -> Result<()> {
        if self.asked.borrow().is_empty() {
            return Ok(());
        }
        self.change_and_log(|_| Ok(((), PendingWork::Nothing)))
    }
}
