//! A collector of spans that refuses what is no OTLP: it looks at every field of every request, and afterwards at what all of
//! them come to together.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde_json::Value;

use super::answer::Answer;

/// Where it is.
pub const COLLECTOR_URL: &str = "http://collector.test";

type Script = Box<dyn Fn(usize) -> Answer>;

/// See the module.
#[derive(Default)]
pub struct Collector {
    script: RefCell<Option<Script>>,
    /// The same for metrics.
    metrics_script: RefCell<Option<Box<dyn Fn() -> Answer>>>,
    /// Requests with spans: when each came, and how many spans it had.
    pub requests: RefCell<Vec<(i64, usize)>>,
    /// Spans that were taken, in order; some may have come twice.
    pub spans: RefCell<Vec<Value>>,
    /// Requests with metrics.
    pub metrics: RefCell<Vec<Value>>,
    /// All that it was sent, as text.
    pub texts: RefCell<Vec<String>>,
    /// Headers of the last request.
    pub headers: RefCell<Vec<(String, String)>>,
}

impl Collector {
    /// Scripts its answers; the number tells how many requests it had before.
    pub fn script(&self, script: impl Fn(usize) -> Answer + 'static) {
        *self.script.borrow_mut() = Some(Box::new(script));
    }

    /// Scripts its answers to metrics.
    pub fn script_metrics(&self, script: impl Fn() -> Answer + 'static) {
        *self.metrics_script.borrow_mut() = Some(Box::new(script));
    }

    /// Forgets the scripts.
    pub(super) fn clear(&self) {
        self.script.borrow_mut().take();
        self.metrics_script.borrow_mut().take();
    }

    /// A request arrives.
    pub(super) fn receive(
        &self,
        path: &str,
        headers: &[(String, String)],
        text: String,
        now: i64,
    ) -> (Answer, Vec<String>) {
        let body: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        self.texts.borrow_mut().push(text);
        *self.headers.borrow_mut() = headers.to_vec();
        let mut wrong = Vec::new();
        if !headers.contains(&("content-type".into(), "application/json".into())) {
            wrong.push(format!("the collector is sent {headers:?}"));
        }
        match path {
            "/v1/traces" => {
                let spans = spans_of(&body, &mut wrong);
                let n = self.requests.borrow().len();
                self.requests.borrow_mut().push((now, spans.len()));
                if spans.is_empty() || spans.len() > bobbin::limits::EXPORT_SPANS {
                    wrong.push(format!("a request has {} spans", spans.len()));
                }
                spans.iter().for_each(|span| look_at(span, &mut wrong));
                let answer = self
                    .script
                    .borrow()
                    .as_ref()
                    .map_or_else(|| Answer::json(&Value::Null), |script| script(n));
                if answer.status == Some(200) {
                    self.spans.borrow_mut().extend(spans);
                }
                (answer, wrong)
            }
            "/v1/metrics" => {
                if !body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].is_array() {
                    wrong.push(format!("these are no metrics: {body}"));
                }
                self.metrics.borrow_mut().push(body);
                let script = self.metrics_script.borrow();
                (script.as_ref().map_or_else(|| Answer::json(&Value::Null), |script| script()), wrong)
            }
            _ => (Answer::refused(), vec![format!("the collector has no {path}")]),
        }
    }

    /// Each span once, by its id. One that came twice must have been the same.
    pub fn distinct(&self) -> (BTreeMap<String, Value>, Vec<String>) {
        let (mut by_id, mut wrong) = (BTreeMap::new(), Vec::new());
        for span in self.spans.borrow().iter() {
            let before = by_id.insert(text(&span["spanId"]).to_owned(), span.clone());
            if before.as_ref().is_some_and(|before| before != span) {
                wrong.push(format!("a span came as {} and as {span}", before.unwrap_or_default()));
            }
        }
        (by_id, wrong)
    }

    /// What is wrong with all spans together: parents that nobody sent, and that lie in no trace of their own; links to what nobody
    /// sent. `outside`:
    /// spans of others.
    pub fn orphans(&self, outside: &[&str]) -> Vec<String> {
        let (spans, mut wrong) = self.distinct();
        for span in spans.values() {
            let Some(parent) = span["parentSpanId"].as_str().filter(|id| !outside.contains(id)) else {
                continue;
            };
            match spans.get(parent) {
                None => wrong.push(format!("nobody sent the parent of {span}")),
                Some(parent) if parent["traceId"] != span["traceId"] => {
                    wrong.push(format!("{span} is in another trace than {parent}"));
                }
                Some(_) => {}
            }
        }
        for span in spans.values() {
            for link in span["links"].as_array().into_iter().flatten() {
                let to = spans.get(text(&link["spanId"])).map(|to| &to["traceId"]);
                if to != Some(&link["traceId"]) && !outside.contains(&text(&link["spanId"])) {
                    wrong.push(format!("nobody sent what {span} is linked to"));
                }
            }
        }
        wrong
    }
}

/// The text of a value.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The value of an attribute of a span.
pub fn attribute(span: &Value, name: &str) -> Value {
    let all = span["attributes"].as_array().cloned().unwrap_or_default();
    let found =
        all.iter().find(|attribute| attribute["key"] == name).map(|attribute| attribute["value"].clone());
    let value = found.unwrap_or_default();
    value.as_object().and_then(|fields| fields.values().next()).cloned().unwrap_or_default()
}

fn spans_of(body: &Value, wrong: &mut Vec<String>) -> Vec<Value> {
    let mut spans = Vec::new();
    for resource in body["resourceSpans"].as_array().into_iter().flatten() {
        attributes(&resource["resource"]["attributes"], wrong);
        for scope in resource["scopeSpans"].as_array().into_iter().flatten() {
            if text(&scope["scope"]["name"]).is_empty() || !text(&scope["schemaUrl"]).starts_with("https://")
            {
                wrong.push(format!("a scope is {} {}", scope["scope"], scope["schemaUrl"]));
            }
            spans.extend(scope["spans"].as_array().cloned().unwrap_or_default());
        }
    }
    spans
}

fn look_at(span: &Value, wrong: &mut Vec<String>) {
    const KNOWN: [&str; 13] = [
        "traceId",
        "spanId",
        "parentSpanId",
        "traceState",
        "name",
        "kind",
        "startTimeUnixNano",
        "endTimeUnixNano",
        "attributes",
        "events",
        "status",
        "flags",
        "links",
    ];
    let mut complain = |what: &str| wrong.push(format!("{what}: {span}"));
    if span.as_object().is_none_or(|fields| fields.keys().any(|name| !KNOWN.contains(&name.as_str()))) {
        complain("a span has other fields");
    }
    let is_id = |value: &Value, digits: usize| {
        let id = text(value);
        id.len() == digits
            && id.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
            && id.bytes().any(|b| b != b'0')
    };
    if !is_id(&span["traceId"], 32) || !is_id(&span["spanId"], 16) {
        complain("an id is none");
    }
    if !span["parentSpanId"].is_null()
        && (!is_id(&span["parentSpanId"], 16) || span["parentSpanId"] == span["spanId"])
    {
        complain("the parent's id is none");
    }
    if text(&span["name"]).trim().is_empty() || !matches!(span["kind"].as_u64(), Some(1..=5)) {
        complain("a span has no name or kind");
    }
    let nanos = |value: &Value| value.as_str().and_then(|text| text.parse::<u64>().ok());
    let (start, end) = (nanos(&span["startTimeUnixNano"]), nanos(&span["endTimeUnixNano"]));
    if start.is_none() || end.is_none() || end < start {
        complain("its times are none");
    }
    if !span["status"].is_null() && !matches!(span["status"]["code"].as_u64(), Some(0..=2)) {
        complain("its status is none");
    }
    let links = || span["links"].as_array().into_iter().flatten();
    if links().any(|link| !is_id(&link["traceId"], 32) || !is_id(&link["spanId"], 16)) {
        complain("a link leads nowhere");
    }
    let events = || span["events"].as_array().into_iter().flatten();
    for event in events() {
        let at = nanos(&event["timeUnixNano"]);
        if at < start || at > end || text(&event["name"]).is_empty() {
            complain("an event is none, or at another time");
        }
    }
    events().chain(links()).for_each(|part| attributes(&part["attributes"], wrong));
    attributes(&span["attributes"], wrong);
}

fn attributes(list: &Value, wrong: &mut Vec<String>) {
    let mut names = Vec::new();
    for attribute in list.as_array().into_iter().flatten() {
        let name = text(&attribute["key"]);
        if name.is_empty() || names.contains(&name) {
            wrong.push(format!("an attribute has no name, or that of another: {attribute}"));
        }
        names.push(name);
        if !is_value(&attribute["value"]) {
            wrong.push(format!("an attribute has no value: {attribute}"));
        }
    }
    if !list.is_array() {
        wrong.push(format!("attributes are no list: {list}"));
    }
}

fn is_value(value: &Value) -> bool {
    let Some(fields) = value.as_object().filter(|fields| fields.len() == 1) else { return false };
    fields.iter().all(|(kind, value)| match kind.as_str() {
        "stringValue" => value.is_string(),
        "intValue" => value.as_str().is_some_and(|text| text.parse::<i64>().is_ok()),
        "doubleValue" => value.is_number(),
        "boolValue" => value.is_boolean(),
        "arrayValue" => value["values"].as_array().is_some_and(|values| values.iter().all(is_value)),
        _ => false,
    })
}
