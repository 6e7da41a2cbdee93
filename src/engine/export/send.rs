//! One request to a collector, and the interpretation of its response.

use bytes::Bytes;
use futures::StreamExt;
use serde_json::Value;

use crate::engine::export::config::{Collector, METRICS_PATH, Protocol, TRACES};
use crate::engine::features::Telemetry;
use crate::engine::spans::protobuf;
use crate::engine::spans::protobuf::PartialSuccess;
use crate::host::http::{HeaderSelection, Request, Response};
use crate::limits;
use crate::models::backoff::retry_after_ms;
use crate::text::first_bytes;
use crate::work::timeout::Deadline;

/// Maximum bytes of a response that are read.
const ANSWER_BYTES: usize = 64 << 10;
/// Maximum bytes of a response that are logged for the operator.
const TOLD_BYTES: usize = 300;

/// The content of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    Spans,
    Metrics,
}

impl Signal {
    const fn as_str(self) -> &'static str {
        match self {
            Signal::Spans => "spans",
            Signal::Metrics => "metrics",
        }
    }

    /// The path below the collector's address.
    const fn path(self) -> &'static str {
        match self {
            Signal::Spans => TRACES,
            Signal::Metrics => METRICS_PATH,
        }
    }

    fn message(self) -> &'static protobuf::Message {
        match self {
            Signal::Spans => &protobuf::TRACES,
            Signal::Metrics => &protobuf::METRICS,
        }
    }
}

/// A response, complete or up to where it broke off.
struct CollectorResponse {
    status: u16,
    is_protobuf: bool,
    retry_after_ms: Option<i64>,
    bytes: Vec<u8>,
}

/// The outcome of a request.
pub(super) enum SendOutcome {
    Taken,
    /// Refused permanently: all of it, or this number of spans or data points.
    Refused {
        count: Option<u64>,
        why: String,
    },
    /// May be accepted later, after at least this number of microseconds.
    Later {
        why: String,
        after_us: i64,
    },
}

impl Telemetry<'_> {
    /// Sends a request once, after removing secrets.
    pub(super) async fn send(&self, collector: &Collector, signal: Signal, request: Value) -> SendOutcome {
        let later = |why: String| SendOutcome::Later { why, after_us: 0 };
        let exchange = self.exchange(collector, signal, request);
        let answer = match Deadline::for_ms(&*self.host, limits::EXPORT_MS).within(exchange).await {
            None => {
                return later(format!("the collector did not answer within {} s", limits::EXPORT_MS / 1000));
            }
            Some(Err(error)) => return later(format!("the collector could not be reached: {error}")),
            Some(Ok(answer)) => answer,
        };
        match answer.status {
            200..300 => self.taken(signal, answer.rejected()),
            429 | 502 | 503 | 504 => {
                let after_us = answer.retry_after_ms.unwrap_or(0).saturating_mul(1000);
                SendOutcome::Later { why: format!("the collector answered {}", answer.status), after_us }
            }
            status => {
                let (of, path) = (signal.as_str(), signal.path());
                let mut why = format!("the collector refused {of} with {status} at {path}");
                let line = self.one_line(&answer.text());
                if !line.is_empty() {
                    why.push_str(": ");
                    why.push_str(&line);
                }
                self.log_once_in_process(&why);
                SendOutcome::Refused { count: None, why }
            }
        }
    }

    async fn exchange(
        &self,
        collector: &Collector,
        signal: Signal,
        request: Value,
    ) -> Result<CollectorResponse, String> {
        let request = self.variables().redact_json(request);
        let body = match collector.protocol {
            Protocol::Json => Bytes::from(request.to_string()),
            Protocol::Protobuf => Bytes::from(protobuf::encoded(&request, signal.message())),
        };
        let url = match (signal, &collector.metrics) {
            (Signal::Metrics, Some(url)) => url,
            _ => &collector.traces,
        };
        let mut headers = vec![("content-type".to_owned(), collector.protocol.content_type().to_owned())];
        headers.extend(collector.headers.iter().cloned());
        let request = Request {
            method: "POST",
            url: url.clone(),
            headers,
            body: Some(body),
            reads: HeaderSelection::Type,
        };
        let mut response = self.host.fetch(request).await.map_err(|error| error.to_string())?;
        let after = retry_after_ms(None, response.header("retry-after"), self.host.now_us());
        let kind = response.header("content-type").unwrap_or_default();
        Ok(CollectorResponse {
            status: response.status,
            is_protobuf: kind.contains(Protocol::Protobuf.content_type()),
            retry_after_ms: after.and_then(|ms| i64::try_from(ms).ok()),
            bytes: read(&mut response).await,
        })
    }

    /// Handles an accepted request, of which the collector may have rejected a part.
    fn taken(&self, signal: Signal, rejected: PartialSuccess) -> SendOutcome {
        let PartialSuccess { count, message } = rejected;
        if count <= 0 && message.is_empty() {
            return SendOutcome::Taken;
        }
        let (of, said) = (signal.as_str(), self.one_line(&message));
        let why = format!("the collector did not take {count} of the {of}: {said}");
        self.log_once_in_process(&why);
        match u64::try_from(count) {
            Ok(count @ 1..) => SendOutcome::Refused { count: Some(count), why },
            _ => SendOutcome::Taken,
        }
    }

    /// The first line of a text that is not blank, without secrets.
    fn one_line(&self, text: &str) -> String {
        let text = self.variables().redact(text.to_owned());
        let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        let line: String = line.chars().filter(|c| !c.is_control()).collect();
        first_bytes(&line, TOLD_BYTES).to_owned()
    }

    /// Logs a line for the operator once per process, because it concerns all threads.
    fn log_once_in_process(&self, line: &str) {
        if self.host.process().is_new(line) {
            self.variables().log(line);
        }
    }
}

impl CollectorResponse {
    /// The text of a refusal.
    fn text(&self) -> String {
        match self.is_protobuf {
            true => protobuf::status_text(&self.bytes),
            false => String::from_utf8_lossy(&self.bytes).into_owned(),
        }
    }

    /// The rejected part of an accepted request.
    fn rejected(&self) -> PartialSuccess {
        if self.is_protobuf {
            return protobuf::rejected(&self.bytes);
        }
        let answer: Value = crate::json::from_str(&String::from_utf8_lossy(&self.bytes)).unwrap_or_default();
        let partial = answer.get("partialSuccess").cloned().unwrap_or_default();
        let count = |name: &str| match partial.get(name) {
            Some(Value::String(text)) => text.parse().unwrap_or(0),
            Some(number) => number.as_i64().unwrap_or(0),
            None => 0,
        };
        let message = partial.get("errorMessage").and_then(Value::as_str).unwrap_or_default();
        PartialSuccess {
            count: count("rejectedSpans") + count("rejectedDataPoints"),
            message: message.to_owned(),
        }
    }
}

/// The beginning of a response. If it breaks off, its status is still valid.
async fn read(response: &mut Response) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < ANSWER_BYTES
        && let Some(Ok(chunk)) = response.body.next().await
    {
        bytes.extend_from_slice(&chunk);
    }
    bytes
}
