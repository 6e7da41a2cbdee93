//! The spans of a run, for people without a collector.

use serde_json::Value;

use crate::api::Api;
use crate::error::{Code, Error, Result};
use crate::limits;
use crate::request::Reply;

impl Api<'_> {
    /// `GET …/runs/:run/spans`: the ended spans of a run, as a collector receives them.
    pub(super) fn get_spans(&self, run: &str) -> Result<Reply> {
        let missing = || Error::new(Code::NotFound, format!("This thread has no run “{run}”."));
        let number = run.strip_prefix("r_").and_then(|number| number.parse().ok()).ok_or_else(missing)?;
        let (facts, mut spans) = self.read(|state, sql| {
            let facts = self.telemetry().facts_of(state, sql, number)?.ok_or_else(missing)?;
            let spans = self.telemetry().spans(sql, &facts)?;
            Ok((facts, spans))
        })?;
        let cut = spans.len() > limits::SPANS_SHOWN;
        spans.truncate(limits::SPANS_SHOWN);
        let mut body = self.telemetry().spans_as_sent(&facts, &spans);
        if cut && let Some(fields) = body.as_object_mut() {
            fields.insert("truncated".into(), Value::Bool(true));
        }
        Ok(Reply::json(200, &body))
    }
}
