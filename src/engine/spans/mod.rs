//! Spans of a run, as tracing systems show it. They are derived from existing rows: those of the run, the log
//! and the receipts. Nothing is recorded for them. Names and attributes follow OpenTelemetry's conventions
//! for generative AI (docs/observability.md).
//!
//! * This file: a span. `facts`: the rows. `build`: the spans of a run; `attributes`: their attributes;
//!   `content`: texts, if the deployment exports them. `detached`: the span of detached work. `otlp`: the JSON
//!   format, and `protobuf` the same in bytes. `metrics`: sums over spans.

pub(super) mod attributes;
pub(super) mod build;
mod content;
pub(super) mod detached;
pub(super) mod facts;
pub(super) mod metrics;
pub(super) mod otlp;
pub(super) mod protobuf;

use crate::trace::Trace;

/// The conventions that names and attributes follow.
const CONVENTIONS: &str = "https://opentelemetry.io/schemas/1.41.0";

/// Whether something happened within the runtime or elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpanKind {
    Internal = 1,
    Server = 2,
    Client = 3,
}

/// The subject of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Run,
    Step,
    Attempt,
    Search,
    Call,
    /// A request to an MCP server.
    Mcp,
    Wait,
    /// Detached work.
    DetachedWork,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
enum AttributeValue {
    Text(String),
    Number(i64),
    Real(f64),
    Truth(bool),
    Texts(Vec<String>),
}

/// A name and a value.
type Attribute = (&'static str, AttributeValue);

/// An event at a time within a span.
#[derive(Clone, Debug, PartialEq)]
struct SpanEvent {
    at_us: i64,
    name: &'static str,
    attributes: Vec<Attribute>,
}

/// A link of a span to another trace.
#[derive(Clone, Debug, PartialEq)]
struct SpanLink {
    /// The linked span, with its trace.
    trace: Trace,
    /// The number of the run, if it is one.
    run: Option<i64>,
}

/// A span that has ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Span {
    of: Subject,
    /// 16 hexadecimal digits.
    id: String,
    parent: Option<String>,
    name: String,
    kind: SpanKind,
    pub(super) start_us: i64,
    end_us: i64,
    attributes: Vec<Attribute>,
    events: Vec<SpanEvent>,
    links: Vec<SpanLink>,
    /// The error, if it failed; may be empty.
    error: Option<String>,
    /// Seq of the step that it belongs to. The run's own is greater than all.
    pub(super) block: i64,
    /// Whether its step is complete, so that it can be exported once.
    pub(super) settled: bool,
    pub(super) place: RunRelation,
}

/// The relation of a span to its run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum RunRelation {
    /// Part of the run's steps.
    #[default]
    Within,
    /// In parallel with the run, within its time.
    Beside,
    /// Ended after the run; exported by itself.
    After,
}

impl Span {
    /// A span with these times and no attributes. Its end is never before its start, even if the clocks of
    /// two machines differ.
    fn new(of: Subject, id: String, name: String, start_us: i64, end_us: i64) -> Span {
        Span {
            of,
            id,
            parent: None,
            name,
            kind: SpanKind::Internal,
            start_us,
            end_us: end_us.max(start_us),
            attributes: Vec::new(),
            events: Vec::new(),
            links: Vec::new(),
            error: None,
            block: i64::MAX,
            settled: true,
            place: RunRelation::Within,
        }
    }

    fn number(&mut self, name: &'static str, value: Option<i64>) {
        self.attributes.extend(value.map(|value| (name, AttributeValue::Number(value))));
    }

    fn real(&mut self, name: &'static str, value: Option<f64>) {
        self.attributes.extend(value.map(|value| (name, AttributeValue::Real(value))));
    }

    fn truth(&mut self, name: &'static str, value: Option<bool>) {
        self.attributes.extend(value.map(|value| (name, AttributeValue::Truth(value))));
    }

    fn text(&mut self, name: &'static str, value: Option<impl Into<String>>) {
        self.attributes.extend(value.map(|value| (name, AttributeValue::Text(value.into()))));
    }

    /// Marks the span as failed, with a code and a text.
    fn fails(&mut self, code: &str, message: Option<&str>) {
        self.text("error.type", Some(code));
        self.error = Some(message.unwrap_or_default().to_owned());
        let mut attributes = vec![("exception.type", AttributeValue::Text(code.to_owned()))];
        attributes.extend(message.map(|text| ("exception.message", AttributeValue::Text(text.to_owned()))));
        self.events.push(SpanEvent { at_us: self.end_us, name: "exception", attributes });
    }

    /// Adds an event at this time.
    fn event(&mut self, at_us: i64, name: &'static str, attributes: Vec<Attribute>) {
        let at_us = at_us.clamp(self.start_us, self.end_us);
        self.events.push(SpanEvent { at_us, name, attributes });
    }

    /// The number of an attribute.
    fn number_of(&self, name: &str) -> Option<i64> {
        self.attributes.iter().find_map(|(n, value)| match value {
            AttributeValue::Number(value) if *n == name => Some(*value),
            _ => None,
        })
    }

    /// The text of an attribute.
    fn text_of(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find_map(|(n, value)| match value {
            AttributeValue::Text(value) if *n == name => Some(value.as_str()),
            _ => None,
        })
    }

    /// A floating-point number or an integer of an attribute.
    fn real_of(&self, name: &str) -> Option<f64> {
        self.attributes.iter().find_map(|(n, value)| match value {
            AttributeValue::Real(value) if *n == name => Some(*value),
            _ => None,
        })
    }
}
