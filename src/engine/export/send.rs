//! One request to a collector, and what its answer means.

use bytes::Bytes;
use futures::StreamExt;
use serde_json::Value;

use crate::engine::export::config::Collector;
use crate::engine::thread::Thread;
use crate::host::http::{Reads, Request, Response};
use crate::limits;
use crate::models::backoff::retry_after_ms;
use crate::text::first_bytes;
use crate::work::timeout::Watch;

/// Bytes of an answer that are read.
const ANSWER_BYTES: usize = 64 << 10;
/// Bytes of it that the operator is told.
const TOLD_BYTES: usize = 300;

/// What came of a request.
pub(crate) enum Answered {
    /// It was taken, or never will be.
    Final,
    /// It may be taken later, no sooner than after so many microseconds.
    Later { why: String, after_us: i64 },
}

impl Thread {
    /// Sends a body once.
    pub(crate) async fn send(&self, collector: &Collector, url: &str, body: String) -> Answered {
        let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        headers.extend(collector.headers.iter().cloned());
        let body = Some(Bytes::from(body));
        let request = Request { method: "POST", url: url.to_owned(), headers, body, reads: Reads::Type };
        let host = &*self.host;
        let exchange = async {
            let mut response = host.fetch(request).await.map_err(|error| error.to_string())?;
            let text = read(&mut response).await;
            Ok::<_, String>((response, text))
        };
        let later = |why: String| Answered::Later { why, after_us: 0 };
        let (response, text) = match Watch::for_ms(host, limits::EXPORT_MS).within(exchange).await {
            None => {
                return later(format!("the collector did not answer within {} s", limits::EXPORT_MS / 1000));
            }
            Some(Err(error)) => return later(format!("the collector could not be reached: {error}")),
            Some(Ok(answer)) => answer,
        };
        match response.status {
            200..300 => {
                self.tell_rejected(&text);
                Answered::Final
            }
            429 | 502 | 503 | 504 => {
                let after = retry_after_ms(None, response.header("retry-after"), host.now_us());
                let after_us = after.and_then(|ms| i64::try_from(ms).ok()).unwrap_or(0).saturating_mul(1000);
                Answered::Later { why: format!("the collector answered {}", response.status), after_us }
            }
            status => {
                let said = first_bytes(&self.redact(text), TOLD_BYTES).to_owned();
                self.log_once(format!("the collector refused spans with {status}: {said}"));
                Answered::Final
            }
        }
    }

    /// A collector may take a part and say so.
    fn tell_rejected(&self, text: &str) {
        let Ok(answer) = crate::json::from_str::<Value>(text) else { return };
        let partial = answer.get("partialSuccess").cloned().unwrap_or_default();
        let count = |name: &str| match partial.get(name) {
            Some(Value::String(text)) => text.parse().unwrap_or(0),
            Some(number) => number.as_i64().unwrap_or(0),
            None => 0,
        };
        let rejected = count("rejectedSpans") + count("rejectedDataPoints");
        let message = partial.get("errorMessage").and_then(Value::as_str).unwrap_or_default();
        if rejected > 0 || !message.is_empty() {
            let said = first_bytes(&self.redact(message.to_owned()), TOLD_BYTES).to_owned();
            self.log_once(format!("the collector did not take {rejected} of what it was sent: {said}"));
        }
    }
}

/// The beginning of an answer; one that breaks off is as good as its status.
async fn read(response: &mut Response) -> String {
    let mut bytes = Vec::new();
    while bytes.len() < ANSWER_BYTES
        && let Some(Ok(chunk)) = response.body.next().await
    {
        bytes.extend_from_slice(&chunk);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
