//! Spans and metrics as OTLP's JSON: ids in hexadecimal, enums as numbers, 64-bit integers as decimal texts,
//! times in nanoseconds.

use serde_json::Value;

use crate::engine::spans::{Attribute, AttributeValue, CONVENTIONS, Span, SpanLink};
use crate::json;
use crate::protocols::responses::runs::Spans;
use crate::trace::Trace;

/// The status code of a failure.
const ERROR: u8 = 2;
/// Flags of a span: those of its trace. Whether the parent is in another process is left open.
const SAMPLED: u32 = 1;

/// One span.
pub(crate) fn span(trace: &Trace, span: &Span) -> Value {
    let mut json = json!({
        "traceId": trace.id(), "spanId": span.id, "name": span.name, "kind": span.kind as u8,
        "startTimeUnixNano": nanos(span.start_us), "endTimeUnixNano": nanos(span.end_us),
        "attributes": attributes(&span.attributes), "flags": if trace.is_sampled() { SAMPLED } else { 0 },
    });
    let Some(fields) = json.as_object_mut() else { return json };
    if let Some(parent) = &span.parent {
        fields.insert("parentSpanId".into(), parent.as_str().into());
    }
    if let Some(state) = trace.state() {
        fields.insert("traceState".into(), state.into());
    }
    if !span.events.is_empty() {
        let events = span.events.iter().map(|event| {
            json!({ "timeUnixNano": nanos(event.at_us), "name": event.name, "attributes": attributes(&event.attributes) })
        });
        fields.insert("events".into(), events.collect());
    }
    if !span.links.is_empty() {
        fields.insert("links".into(), span.links.iter().map(link).collect());
    }
    if let Some(message) = &span.error {
        fields.insert("status".into(), json!({ "code": ERROR, "message": message }));
    }
    json
}

fn link(link: &SpanLink) -> Value {
    let SpanLink { trace, run } = link;
    let run = run.map(|run| ("bobbin.run", AttributeValue::Text(format!("r_{run}"))));
    let mut json = json!({
        "traceId": trace.id(), "spanId": trace.parent(), "attributes": attributes(run.as_slice()),
        "flags": if trace.is_sampled() { SAMPLED } else { 0 },
    });
    if let (Some(fields), Some(state)) = (json.as_object_mut(), trace.state()) {
        fields.insert("traceState".into(), state.into());
    }
    json
}

/// The request that carries spans.
pub(crate) fn traces(service: &str, spans: Vec<Value>) -> Value {
    let of_service = json!({
        "resource": resource(service),
        "scopeSpans": [{ "scope": scope(), "schemaUrl": CONVENTIONS, "spans": spans }],
    });
    json!(Spans { resource_spans: vec![of_service] })
}

/// The request that carries metrics.
pub(crate) fn metrics(service: &str, metrics: Vec<Value>) -> Value {
    json!({ "resourceMetrics": [{
        "resource": resource(service),
        "scopeMetrics": [{ "scope": scope(), "schemaUrl": CONVENTIONS, "metrics": metrics }],
    }] })
}

/// Attributes, in their order.
pub(super) fn attributes(attributes: &[Attribute]) -> Value {
    attributes.iter().map(|(name, value)| json!({ "key": name, "value": any(value) })).collect()
}

fn any(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::Text(text) => json!({ "stringValue": text }),
        AttributeValue::Number(number) => json!({ "intValue": number.to_string() }),
        AttributeValue::Real(number) => json!({ "doubleValue": number }),
        AttributeValue::Truth(truth) => json!({ "boolValue": truth }),
        AttributeValue::Texts(texts) => {
            let values: Vec<Value> = texts.iter().map(|text| json!({ "stringValue": text })).collect();
            json!({ "arrayValue": { "values": values } })
        }
    }
}

fn resource(service: &str) -> Value {
    let attributes = [("service.name", AttributeValue::Text(service.to_owned()))];
    json!({ "attributes": self::attributes(&attributes) })
}

fn scope() -> Value {
    json!({ "name": "bobbin", "version": env!("CARGO_PKG_VERSION") })
}

/// Microseconds as nanoseconds.
pub(super) fn nanos(us: i64) -> String {
    (i128::from(us) * 1000).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::spans::Subject;

    #[test]
    fn a_span_is_written_as_otlp_has_it() {
        let trace =
            Trace::of_headers(Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"), Some("a=1"));
        let trace = trace.unwrap();
        let mut it = Span::new(Subject::Call, "00000000000000aa".into(), "n".into(), 10, 5);
        it.parent = trace.parent().map(str::to_owned);
        it.number("n", Some(7));
        it.real("r", Some(0.5));
        it.attributes.push(("t", AttributeValue::Texts(vec!["x".into()])));
        it.fails("late", None);
        assert_eq!(
            span(&trace, &it),
            json!({
                "traceId": "4bf92f3577b34da6a3ce929d0e0e4736", "spanId": "00000000000000aa",
                "parentSpanId": "00f067aa0ba902b7", "traceState": "a=1", "flags": 1, "name": "n", "kind": 1,
                "startTimeUnixNano": "10000", "endTimeUnixNano": "10000",
                "attributes": [
                    { "key": "n", "value": { "intValue": "7" } },
                    { "key": "r", "value": { "doubleValue": 0.5 } },
                    { "key": "t", "value": { "arrayValue": { "values": [{ "stringValue": "x" }] } } },
                    { "key": "error.type", "value": { "stringValue": "late" } },
                ],
                "events": [{ "timeUnixNano": "10000", "name": "exception", "attributes": [
                    { "key": "exception.type", "value": { "stringValue": "late" } },
                ] }],
                "status": { "code": 2, "message": "" },
            })
        );
    }
}
