//! OTLP as protobuf: converts the JSON of `otlp` by the field numbers of the official definitions
//! (opentelemetry-proto 1.x), and parses the two messages of a response. JSON is made first, because secrets
//! are removed from JSON.

use serde_json::Value;

/// The encoding of a field's value. The comments describe the JSON form.
#[derive(Clone, Copy)]
enum Kind {
    /// Bytes; hexadecimal digits.
    Hex,
    Text,
    /// A varint; a number, or a decimal text.
    Number,
    Truth,
    /// Eight bytes; a decimal text.
    Fixed64,
    /// Four bytes; a number.
    Fixed32,
    Double,
    /// A list of them, packed.
    Fixed64s,
    Doubles,
    /// One, or a list of them.
    Message(&'static [Field]),
}

/// A field: its name in JSON, its number, and its kind.
struct Field(&'static str, u32, Kind);

/// The request that carries spans.
pub(crate) static TRACES: Message =
    Message(&[Field("resourceSpans", 1, Kind::Message(&[RESOURCE, SCOPE_SPANS, SCHEMA]))]);

/// The request that carries metrics.
pub(crate) static METRICS: Message =
    Message(&[Field("resourceMetrics", 1, Kind::Message(&[RESOURCE, SCOPE_METRICS, SCHEMA]))]);

/// A message by its fields.
pub(crate) struct Message(&'static [Field]);

const RESOURCE: Field = Field("resource", 1, Kind::Message(&[attributes(1)]));
const SCHEMA: Field = Field("schemaUrl", 3, Kind::Text);
const SCOPE: Field =
    Field("scope", 1, Kind::Message(&[Field("name", 1, Kind::Text), Field("version", 2, Kind::Text)]));
const SCOPE_SPANS: Field = Field("scopeSpans", 2, Kind::Message(&[SCOPE, SPANS, SCHEMA]));
const SCOPE_METRICS: Field = Field("scopeMetrics", 2, Kind::Message(&[SCOPE, METRIC, SCHEMA]));

const SPANS: Field = Field(
    "spans",
    2,
    Kind::Message(&[
        Field("traceId", 1, Kind::Hex),
        Field("spanId", 2, Kind::Hex),
        Field("traceState", 3, Kind::Text),
        Field("parentSpanId", 4, Kind::Hex),
        Field("name", 5, Kind::Text),
        Field("kind", 6, Kind::Number),
        Field("startTimeUnixNano", 7, Kind::Fixed64),
        Field("endTimeUnixNano", 8, Kind::Fixed64),
        attributes(9),
        Field(
            "events",
            11,
            Kind::Message(&[
                Field("timeUnixNano", 1, Kind::Fixed64),
                Field("name", 2, Kind::Text),
                attributes(3),
            ]),
        ),
        Field(
            "links",
            13,
            Kind::Message(&[
                Field("traceId", 1, Kind::Hex),
                Field("spanId", 2, Kind::Hex),
                Field("traceState", 3, Kind::Text),
                attributes(4),
                Field("flags", 6, Kind::Fixed32),
            ]),
        ),
        Field(
            "status",
            15,
            Kind::Message(&[Field("message", 2, Kind::Text), Field("code", 3, Kind::Number)]),
        ),
        Field("flags", 16, Kind::Fixed32),
    ]),
);

const METRIC: Field = Field(
    "metrics",
    2,
    Kind::Message(&[
        Field("name", 1, Kind::Text),
        Field("unit", 3, Kind::Text),
        Field(
            "sum",
            7,
            Kind::Message(&[
                Field(
                    "dataPoints",
                    1,
                    Kind::Message(&[FROM, AT, Field("asDouble", 4, Kind::Double), attributes(7)]),
                ),
                Field("aggregationTemporality", 2, Kind::Number),
                Field("isMonotonic", 3, Kind::Truth),
            ]),
        ),
        Field(
            "histogram",
            9,
            Kind::Message(&[
                Field(
                    "dataPoints",
                    1,
                    Kind::Message(&[
                        FROM,
                        AT,
                        Field("count", 4, Kind::Fixed64),
                        Field("sum", 5, Kind::Double),
                        Field("bucketCounts", 6, Kind::Fixed64s),
                        Field("explicitBounds", 7, Kind::Doubles),
                        attributes(9),
                    ]),
                ),
                Field("aggregationTemporality", 2, Kind::Number),
            ]),
        ),
    ]),
);

const FROM: Field = Field("startTimeUnixNano", 2, Kind::Fixed64);
const AT: Field = Field("timeUnixNano", 3, Kind::Fixed64);

const fn attributes(number: u32) -> Field {
    Field("attributes", number, Kind::Message(&KEY_VALUE))
}

static KEY_VALUE: [Field; 2] = [Field("key", 1, Kind::Text), Field("value", 2, Kind::Message(&ANY_VALUE))];
static ANY_VALUE: [Field; 5] = [
    Field("stringValue", 1, Kind::Text),
    Field("boolValue", 2, Kind::Truth),
    Field("intValue", 3, Kind::Number),
    Field("doubleValue", 4, Kind::Double),
    Field("arrayValue", 5, Kind::Message(&ARRAY_VALUE)),
];
static ARRAY_VALUE: [Field; 1] = [Field("values", 1, Kind::Message(&ANY_VALUE))];

/// Wire types.
const VARINT: u32 = 0;
const EIGHT_BYTES: u32 = 1;
const LENGTH: u32 = 2;
const FOUR_BYTES: u32 = 5;

/// A request as protobuf.
pub(crate) fn encoded(request: &Value, message: &Message) -> Vec<u8> {
    let mut out = Vec::new();
    write(request, message.0, &mut out);
    out
}

fn write(value: &Value, fields: &[Field], out: &mut Vec<u8>) {
    for Field(name, number, kind) in fields {
        let Some(value) = value.get(name) else { continue };
        let tag = |wire: u32, out: &mut Vec<u8>| varint(u64::from(number << 3 | wire), out);
        match kind {
            Kind::Number | Kind::Truth => {
                tag(VARINT, out);
                varint(whole(value), out);
            }
            Kind::Fixed64 => {
                tag(EIGHT_BYTES, out);
                out.extend(whole(value).to_le_bytes());
            }
            Kind::Double => {
                tag(EIGHT_BYTES, out);
                out.extend(value.as_f64().unwrap_or_default().to_le_bytes());
            }
            Kind::Fixed32 => {
                tag(FOUR_BYTES, out);
                out.extend(u32::try_from(whole(value)).unwrap_or_default().to_le_bytes());
            }
            Kind::Text => {
                tag(LENGTH, out);
                sized(value.as_str().unwrap_or_default().as_bytes(), out);
            }
            Kind::Hex => {
                tag(LENGTH, out);
                sized(&bytes(value.as_str().unwrap_or_default()), out);
            }
            Kind::Fixed64s => {
                tag(LENGTH, out);
                sized(&list(value).flat_map(|one| whole(one).to_le_bytes()).collect::<Vec<_>>(), out);
            }
            Kind::Doubles => {
                let doubles = list(value).map(|one| one.as_f64().unwrap_or_default());
                tag(LENGTH, out);
                sized(&doubles.flat_map(f64::to_le_bytes).collect::<Vec<_>>(), out);
            }
            Kind::Message(fields) => {
                let one = if value.is_array() { None } else { Some(value) };
                for value in one.into_iter().chain(list(value)) {
                    let mut inner = Vec::new();
                    write(value, fields, &mut inner);
                    tag(LENGTH, out);
                    sized(&inner, out);
                }
            }
        }
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// An integer or a boolean, in two's complement.
fn whole(value: &Value) -> u64 {
    match value {
        Value::String(text) => {
            text.parse::<i64>().map_or_else(|_| text.parse().unwrap_or_default(), i64::cast_unsigned)
        }
        Value::Bool(truth) => u64::from(*truth),
        _ => value.as_i64().map_or_else(|| value.as_u64().unwrap_or_default(), i64::cast_unsigned),
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2).filter_map(|pair| std::str::from_utf8(pair).ok());
    pairs.filter_map(|pair| u8::from_str_radix(pair, 16).ok()).collect()
}

fn sized(bytes: &[u8], out: &mut Vec<u8>) {
    varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The rejected part of a request: `partial_success` of the collector's response.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PartialSuccess {
    /// Spans or data points.
    pub(crate) count: i64,
    pub(crate) message: String,
}

/// Parses a response. Invalid bytes count as nothing rejected.
pub(crate) fn rejected(answer: &[u8]) -> PartialSuccess {
    let mut rejected = PartialSuccess::default();
    if let Some((_, Part::Bytes(partial))) = Parts(answer).find(|(number, _)| *number == 1) {
        for part in Parts(partial) {
            match part {
                (1, Part::Number(count)) => rejected.count = count.cast_signed(),
                (2, Part::Bytes(text)) => rejected.message = String::from_utf8_lossy(text).into_owned(),
                _ => {}
            }
        }
    }
    rejected
}

/// The text of the `Status` in the body of a refusal.
pub(crate) fn status_text(answer: &[u8]) -> String {
    let texts = Parts(answer).filter_map(|part| match part {
        (2, Part::Bytes(text)) => Some(String::from_utf8_lossy(text).into_owned()),
        _ => None,
    });
    texts.last().unwrap_or_default()
}

enum Part<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Fixed,
}

/// The fields of a message, by their numbers, as far as they can be read.
struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn bytes(&mut self, count: u64) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = rest;
        Some(bytes)
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = (u64, Part<'a>);

    fn next(&mut self) -> Option<(u64, Part<'a>)> {
        let tag = self.number()?;
        let part = match u32::try_from(tag & 7).ok()? {
            VARINT => Part::Number(self.number()?),
            EIGHT_BYTES => self.bytes(8).map(|_| Part::Fixed)?,
            FOUR_BYTES => self.bytes(4).map(|_| Part::Fixed)?,
            LENGTH => {
                let count = self.number()?;
                Part::Bytes(self.bytes(count)?)
            }
            _ => return None,
        };
        Some((tag >> 3, part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::spans::{AttributeValue, Span, SpanLink, Subject, metrics, otlp};
    use crate::json;
    use crate::trace::Trace;

    /// The inverse of [`write`]: every field of the JSON must be read back, otherwise the table lacks it.
    fn read(bytes: &[u8], fields: &[Field]) -> Value {
        let mut object = serde_json::Map::new();
        let mut parts = Parts(bytes);
        while let Some(tag) = parts.number() {
            let Field(name, _, kind) =
                fields.iter().find(|Field(_, number, _)| u64::from(*number) == tag >> 3).unwrap();
            let eight = |parts: &mut Parts<'_>| <[u8; 8]>::try_from(parts.bytes(8).unwrap()).unwrap();
            let value = match kind {
                Kind::Number => {
                    let number = parts.number().unwrap().cast_signed();
                    if *name == "intValue" { json!(number.to_string()) } else { json!(number) }
                }
                Kind::Truth => json!(parts.number().unwrap() == 1),
                Kind::Fixed64 => json!(u64::from_le_bytes(eight(&mut parts)).to_string()),
                Kind::Double => json!(f64::from_le_bytes(eight(&mut parts))),
                Kind::Fixed32 => json!(u32::from_le_bytes(parts.bytes(4).unwrap().try_into().unwrap())),
                Kind::Text | Kind::Hex | Kind::Fixed64s | Kind::Doubles | Kind::Message(_) => {
                    let length = parts.number().unwrap();
                    let inner = parts.bytes(length).unwrap();
                    let eights = || inner.chunks(8).map(|eight| <[u8; 8]>::try_from(eight).unwrap());
                    match kind {
                        Kind::Hex => json!(inner.iter().map(|b| format!("{b:02x}")).collect::<String>()),
                        Kind::Fixed64s => {
                            eights().map(|e| json!(u64::from_le_bytes(e).to_string())).collect()
                        }
                        Kind::Doubles => eights().map(|e| json!(f64::from_le_bytes(e))).collect(),
                        Kind::Message(fields) => read(inner, fields),
                        _ => json!(std::str::from_utf8(inner).unwrap()),
                    }
                }
            };
            const SINGLE: [&str; 7] =
                ["resource", "scope", "value", "arrayValue", "status", "sum", "histogram"];
            if matches!(kind, Kind::Message(_)) && !SINGLE.contains(name) {
                let list = object.entry(*name).or_insert_with(|| json!([]));
                list.as_array_mut().unwrap().push(value);
            } else {
                object.insert((*name).to_owned(), value);
            }
        }
        Value::Object(object)
    }

    /// Protobuf does not distinguish an empty list from a missing one.
    fn without_empty_lists(value: Value) -> Value {
        match value {
            Value::Object(fields) => {
                let fields = fields.into_iter().filter(|(_, value)| *value != json!([]));
                fields.map(|(name, value)| (name, without_empty_lists(value))).collect()
            }
            Value::Array(items) => items.into_iter().map(without_empty_lists).collect(),
            other => other,
        }
    }

    fn spans() -> (Trace, Vec<Span>) {
        let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let trace = Trace::of_headers(Some(header), Some("a=1")).unwrap();
        let mut span = Span::new(Subject::Call, "00000000000000aa".into(), "nä".into(), 10, 5_000_000);
        span.parent = trace.parent().map(str::to_owned);
        span.number("n", Some(-7));
        span.real("r", Some(0.5));
        span.truth("b", Some(true));
        span.text("gen_ai.tool.name", Some("lookup"));
        span.attributes.push(("t", AttributeValue::Texts(vec!["x".into(), String::new()])));
        span.links.push(SpanLink { trace: trace.clone(), run: Some(3) });
        span.fails("late", Some("too late"));
        let mut run = Span::new(Subject::Run, "00000000000000ab".into(), "r".into(), 0, 300_000_000);
        run.number("bobbin.recovery", Some(2));
        (trace, vec![span, run])
    }

    #[test]
    fn nothing_that_json_has_is_left_out() {
        let (trace, spans) = spans();
        let json = otlp::traces("s", spans.iter().map(|span| otlp::span(&trace, span)).collect());
        assert_eq!(read(&encoded(&json, &TRACES), TRACES.0), json);
        let json = otlp::metrics("s", metrics::metrics(&spans));
        assert_eq!(json["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap().len(), 3);
        assert_eq!(read(&encoded(&json, &METRICS), METRICS.0), without_empty_lists(json));
    }

    #[test]
    fn a_span_has_the_bytes_that_the_official_library_writes() {
        let json = json!({ "resourceSpans": [{ "scopeSpans": [{ "spans": [
            { "traceId": "4bf9", "name": "n", "kind": 3, "startTimeUnixNano": "1", "flags": 1,
              "attributes": [{ "key": "k", "value": { "intValue": "-1" } }] },
        ] }] }] });
        // Encoded with opentelemetry-proto 1.38.0 of PyPI.
        let official = "0a2e122c122a0a024bf92a016e30033901000000000000004a100a016b120b18ffffffffffffffffff01850101000000";
        let bytes: String = encoded(&json, &TRACES).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(bytes, official);
    }

    #[test]
    fn what_a_collector_did_not_take_is_read_and_anything_else_says_nothing() {
        let answer = b"\x0a\x08\x08\x02\x12\x04full";
        assert_eq!(rejected(answer), PartialSuccess { count: 2, message: "full".into() });
        assert_eq!(status_text(&[0x08, 0x03, 0x12, 0x02, b'n', b'o']), "no");
        for bytes in [&b""[..], b"<!doctype html>", &[0x0a, 0xff], &[0xff; 12]] {
            assert_eq!(rejected(bytes), PartialSuccess::default());
        }
    }
}
