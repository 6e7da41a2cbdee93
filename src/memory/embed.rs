//! Requests for vectors: each is remembered for the log, and those for a question's vector that fail are made again at once.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::limits;
use crate::memory::{Book, Owes};
use crate::models::backoff::backoff_us;
use crate::models::embedding::{Embedder, Of};
use crate::models::{ProviderError, Silence};
use crate::spec::model::Model;
use crate::spec::retry::RetrySource;
use crate::store::jobs::pause_us;
use crate::work::timeout::Watch;

/// A request for vectors, as the log tells of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct VectorRequest {
    pub(crate) memory: String,
    pub(crate) texts: usize,
    /// Of all that is sent.
    pub(crate) bytes: usize,
    /// From 1.
    pub(crate) attempt: u32,
    pub(crate) started_us: i64,
    pub(crate) retry_source: RetrySource,
    /// `None` while nothing came: what gave it up tells why.
    pub(crate) end: Option<VectorsEnd>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct VectorsEnd {
    pub(crate) at_us: i64,
    /// Tokens, where the provider tells; or why there are no vectors.
    pub(crate) tokens: Result<Option<u64>, ProviderError>,
    /// The model that gave them, where the provider tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
}

impl VectorRequest {
    /// One of which nobody knows what came: about so many texts, with so many bytes.
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

/// Bytes that a request for vectors of these texts sends.
pub(crate) fn bytes_of<'t>(model: &Model, of: Of, texts: impl Iterator<Item = &'t str>) -> usize {
    let prefix = match of {
        Of::Query => model.query_prefix.as_deref(),
        Of::Document => model.document_prefix.as_deref(),
    };
    let each = prefix.map_or(0, str::len);
    texts.map(|text| text.len() + each).sum()
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
            bytes: bytes_of(model, of, texts.iter().copied()),
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
        let (tokens, model) = match &given {
            Ok(vectors) => (Ok(vectors.tokens), vectors.model.clone()),
            Err(error) => (Err(error.clone()), None),
        };
        if let Some(request) = self.asked.borrow_mut().last_mut() {
            request.end = Some(VectorsEnd { at_us: host.now_us(), tokens, model });
        }
        given.map(|given| given.vectors)
    }

    /// The vector of a question. What may pass is tried again as the policy says, or as often as is asked, unless the pause is
    /// longer than a search.
    pub(crate) async fn embed_question(
        &self,
        model: &Model,
        question: &str,
        requests: Option<u32>,
    ) -> Result<Vec<Vec<f32>>, ProviderError> {
        let most = requests.unwrap_or(self.retry.max_attempts);
        let host = self.keeper.host();
        let mut attempt = 1;
        loop {
            let error = match self.embed(model, Of::Query, &[question], attempt).await {
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

    /// Whether the policy has another attempt for a failure.
    fn tries_again(&self, error: &ProviderError, attempt: u32) -> bool {
        attempt < self.retry.max_attempts && self.may_pass(error)
    }

    fn may_pass(&self, error: &ProviderError) -> bool {
        self.retry.retries(error.may_pass(), error.retryable())
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

    /// Writes the requests that were made since.
    pub(crate) fn log_requests(&self) -> Result<()> {
        if self.asked.borrow().is_empty() {
            return Ok(());
        }
        self.change_and_log(|_| Ok(((), Owes::Nothing)))
    }
}
