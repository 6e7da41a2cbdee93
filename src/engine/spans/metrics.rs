//! Metrics, summed over spans: durations and amounts. Each covers the spans of one request only, so that a
//! collector can add them up.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::engine::spans::attributes::EXCEEDED;
use crate::engine::spans::otlp::nanos;
use crate::engine::spans::{Attribute, AttributeValue};
use crate::engine::spans::{Span, Subject, otlp};
use crate::json;

/// Histogram bounds of tokens, from the conventions.
const TOKENS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
/// Histogram bounds of seconds, from the conventions.
const SECONDS: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
/// Aggregation temporality: delta since the last request.
const DELTA: u8 = 1;
/// Attributes that distinguish series.
const BY: [&str; 5] = [
    "gen_ai.operation.name",
    "gen_ai.provider.name",
    "gen_ai.request.model",
    "gen_ai.tool.name",
    "error.type",
];

/// Values with the same attributes.
#[derive(Default)]
struct DataPoint {
    count: u64,
    sum: f64,
    buckets: Vec<u64>,
}

/// A metric in progress: points by their attributes, as JSON.
struct Series {
    name: &'static str,
    unit: &'static str,
    bounds: &'static [f64],
    points: BTreeMap<String, DataPoint>,
}

impl Series {
    fn new(name: &'static str, unit: &'static str, bounds: &'static [f64]) -> Series {
        Series { name, unit, bounds, points: BTreeMap::new() }
    }

    fn add(&mut self, attributes: &[Attribute], value: f64) {
        let point = self.points.entry(otlp::attributes(attributes).to_string()).or_default();
        point.count += 1;
        point.sum += value;
        if point.buckets.is_empty() {
            point.buckets = vec![0; self.bounds.len() + 1];
        }
        let place = self.bounds.iter().position(|bound| value <= *bound).unwrap_or(self.bounds.len());
        if let Some(bucket) = point.buckets.get_mut(place) {
            *bucket += 1;
        }
    }

    fn json(self, from_us: i64, to_us: i64) -> Option<Value> {
        let (histogram, bounds) = (!self.bounds.is_empty(), self.bounds);
        let points: Vec<Value> = self
            .points
            .into_iter()
            .map(|(attributes, point)| {
                let attributes: Value = crate::json::from_str(&attributes).unwrap_or_default();
                let (from, to) = (nanos(from_us), nanos(to_us));
                match histogram {
                    true => json!({
                        "attributes": attributes, "startTimeUnixNano": from, "timeUnixNano": to,
                        "count": point.count.to_string(), "sum": point.sum, "explicitBounds": bounds,
                        "bucketCounts": point.buckets.iter().map(u64::to_string).collect::<Vec<_>>(),
                    }),
                    false => json!({
                        "attributes": attributes, "startTimeUnixNano": from, "timeUnixNano": to,
                        "asDouble": point.sum,
                    }),
                }
            })
            .collect();
        if points.is_empty() {
            return None;
        }
        let (kind, data) = match histogram {
            true => ("histogram", json!({ "aggregationTemporality": DELTA, "dataPoints": points })),
            false => {
                ("sum", json!({ "aggregationTemporality": DELTA, "isMonotonic": true, "dataPoints": points }))
            }
        };
        Some(json!({ "name": self.name, "unit": self.unit, kind: data }))
    }
}

/// The metrics of these spans, without spans that are exported again.
pub(crate) fn metrics(spans: &[Span]) -> Vec<Value> {
    let mut tokens = Series::new("gen_ai.client.token.usage", "{token}", &TOKENS);
    let mut requests = Series::new("gen_ai.client.operation.duration", "s", &SECONDS);
    let mut runs = Series::new("gen_ai.invoke_agent.duration", "s", &SECONDS);
    let mut calls = Series::new("gen_ai.execute_tool.duration", "s", &SECONDS);
    let mut cost = Series::new("bobbin.cost_usd", "{USD}", &[]);
    let mut recoveries = Series::new("bobbin.recoveries", "{recovery}", &[]);
    let mut exceeded = Series::new("bobbin.budget.exceeded", "{limit}", &[]);
    for span in spans.iter().filter(|span| span.settled) {
        let by = metric_attributes(span);
        let seconds = (span.end_us - span.start_us) as f64 / 1_000_000.0;
        match span.of {
            Subject::Step | Subject::Mcp | Subject::Wait | Subject::Search | Subject::DetachedWork => {}
            Subject::Call => calls.add(&by, seconds),
            Subject::Run => {
                runs.add(&by, seconds);
                if let Some(count) = span.number_of("bobbin.recovery") {
                    recoveries.add(&by, count as f64);
                }
                if let Some(count) = span.number_of(EXCEEDED) {
                    exceeded.add(&by, count as f64);
                }
            }
            Subject::Attempt => {
                requests.add(&by, seconds);
                for (kind, name) in
                    [("input", "gen_ai.usage.input_tokens"), ("output", "gen_ai.usage.output_tokens")]
                {
                    let Some(used) = span.number_of(name) else { continue };
                    let mut by = by.clone();
                    by.push(("gen_ai.token.type", AttributeValue::Text(kind.to_owned())));
                    tokens.add(&by, used as f64);
                }
                if let Some(usd) = span.real_of("bobbin.cost_usd") {
                    cost.add(&by, usd);
                }
            }
        }
    }
    let from = spans.iter().map(|span| span.start_us).min().unwrap_or(0);
    let to = spans.iter().map(|span| span.end_us).max().unwrap_or(from);
    [tokens, requests, runs, calls, cost, recoveries, exceeded]
        .into_iter()
        .filter_map(|series| series.json(from, to))
        .collect()
}

fn metric_attributes(span: &Span) -> Vec<Attribute> {
    let told =
        BY.into_iter().filter_map(|name| Some((name, AttributeValue::Text(span.text_of(name)?.to_owned()))));
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(tokens: i64, ms: i64) -> Span {
        let mut span = Span::new(Subject::Attempt, "a".into(), "chat m".into(), 0, ms * 1000);
        span.text("gen_ai.request.model", Some("m"));
        span.number("gen_ai.usage.input_tokens", Some(tokens));
        span.real("bobbin.cost_usd", Some(0.25));
        span
    }

    #[test]
    fn histograms_count_every_span_once() {
        let again = Span { settled: false, ..attempt(9, 9) };
        let metrics = metrics(&[attempt(3, 15), attempt(100_000_000, 15), again]);
        let of = |name: &str| metrics.iter().find(|metric| metric["name"] == name).cloned().unwrap();
        let tokens = of("gen_ai.client.token.usage")["histogram"]["dataPoints"][0].clone();
        assert_eq!((&tokens["count"], &tokens["sum"]), (&json!("2"), &json!(100_000_003.0)));
        let buckets: Vec<&str> =
            tokens["bucketCounts"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!((buckets.len(), buckets[1], buckets[14]), (15, "1", "1"));
        assert_eq!(
            of("gen_ai.client.operation.duration")["histogram"]["dataPoints"][0]["bucketCounts"][1],
            "2"
        );
        let cost = of("bobbin.cost_usd");
        assert_eq!(
            (&cost["sum"]["isMonotonic"], &cost["sum"]["dataPoints"][0]["asDouble"]),
            (&json!(true), &json!(0.5))
        );
        assert!(metrics.iter().all(|metric| metric["name"] != "gen_ai.execute_tool.duration"));
    }

    #[test]
    fn limits_that_were_reached_are_counted() {
        let mut run = Span::new(Subject::Run, "r".into(), "invoke_agent a".into(), 0, 9);
        run.number(EXCEEDED, Some(2));
        let metrics = metrics(&[run]);
        let found = metrics.iter().find(|metric| metric["name"] == "bobbin.budget.exceeded").unwrap();
        assert_eq!(found["sum"]["dataPoints"][0]["asDouble"], 2.0);
    }
}
