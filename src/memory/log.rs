//! Rows of the log about requests for vectors.

use serde_json::{Map, Value};

use crate::definitions::model::{Model, Usage};
use crate::json;
use crate::memory::embed::{VectorRequest, VectorsEnd};
use crate::models::{ProviderError, TimeoutKind};
use crate::store::log_record::{Attempt, UnfinishedReason};
use crate::store::runs::Step;

/// The purpose of the rows.
pub(crate) const PURPOSE: &str = "embedding";

/// The row of a request for vectors.
pub(crate) fn row_of(model: &Model, prompt: &str, request: &VectorRequest, now: i64) -> Attempt {
    let mut attempt = begun(model, prompt, request);
    let lost =
        || VectorsEnd { at_us: now, tokens: Err(ProviderError::timeout(TimeoutKind::Attempt)), model: None };
    let end = request.end.clone().unwrap_or_else(lost);
    attempt.response.take("", end.model.as_deref().unwrap_or_default());
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

/// The row of a request whose process crashed before a response.
pub(crate) fn row_of_lost(model: &Model, prompt: &str, request: &VectorRequest) -> Attempt {
    let (error_type, error) = UnfinishedReason::Lost.error();
    let end = json!({ "status": "failed", "error_type": error_type, "error": error });
    Attempt { end: Some(end), ..begun(model, prompt, request) }
}

fn begun(model: &Model, prompt: &str, request: &VectorRequest) -> Attempt {
    let mut attempt = Attempt::of(0, Step::own(0), request.attempt, model, prompt, request.started_us);
    attempt.purpose = Some(PURPOSE);
    attempt.retry_source = request.retry_source;
    attempt.asked = Map::from_iter([
        ("memory".to_owned(), Value::from(request.memory.as_str())),
        ("texts".to_owned(), Value::from(request.texts)),
    ]);
    attempt
}
