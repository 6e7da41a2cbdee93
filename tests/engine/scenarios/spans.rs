//! Spans: one trace for a run and all that it causes, sent to a collector that looks at every field, whatever fails here and there.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::waits::{asking, decides, until_open, with};
use super::{clerk, story, work};
use crate::host::collector::{attribute, text};
use crate::host::outside::ModelRequest;
use crate::host::{Answer, COLLECTOR_URL, SECOND_US, Say, TOOL_URL};
use crate::sim::{Sim, native};
use crate::sweep::Scenario;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const OUTSIDE: &str = "00f067aa0ba902b7";

pub fn all() -> Vec<Scenario> {
    vec![family(), plain(), unwilling(), traced(), waited(), many_steps(), given_up()]
}

/// Exports to the collector.
pub(super) fn exports(sim: &Sim) {
    set(sim, "BOBBIN_OTLP_ENDPOINT", COLLECTOR_URL);
}

pub(super) fn set(sim: &Sim, name: &str, value: &str) {
    sim.world.vars.borrow_mut().insert(name.into(), value.into());
}

/// Whether nothing is owed to the collector any more.
pub(super) fn is_told(sim: &Sim) -> bool {
    sim.family().iter().all(|thread| thread.member.database.ask::<i64>("SELECT jobs FROM meta") == [0])
}

pub(super) async fn told(sim: &Sim) {
    sim.until("all spans are sent", is_told).await;
}

/// Spans of all runs of a thread, as the API has them.
pub(super) fn shown(sim: &Sim) -> Vec<Value> {
    let runs: Vec<i64> = sim.member.database.ask("SELECT id FROM runs");
    let mut all = Vec::new();
    for run in runs {
        let asked = sim.clone();
        let route = ThreadRoute::GetSpans(format!("r_{run}"));
        let body = sim.world.drive(async move { asked.get(route, &[]).await });
        all.extend(
            body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().cloned().unwrap_or_default(),
        );
    }
    all
}

/// Everything that the threads show has reached the collector as it is shown, and nothing is wrong with it.
pub(super) fn all_sent(sim: &Sim, outside: &[&str]) {
    let collector = &sim.world.outside.collector;
    let (spans, mut wrong) = collector.distinct();
    wrong.extend(collector.orphans(outside));
    for span in sim.family().iter().flat_map(shown) {
        if spans.get(text(&span["spanId"])) != Some(&span) {
            wrong.push(format!("the collector has no {span}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

pub(super) fn named(sim: &Sim, name: &str) -> Vec<Value> {
    let (spans, _) = sim.world.outside.collector.distinct();
    spans.into_values().filter(|span| text(&span["name"]).starts_with(name)).collect()
}

/// Two tools, one of them behind a URL; a child; a call that a person approves; a model that fails for good and one that steps in.
fn family() -> Scenario {
    let http = json!({ "description": "Looks up.", "args": { "type": "object", "properties": {} },
        "run": { "http": { "url": format!("{TOOL_URL}/w") } } });
    Scenario::new("one trace for a family", &json!({ "work": native(false), "look": http }))
        .setup(work)
        .setup(exports)
        .setup(|sim| {
            sim.world.outside.server("/w", |_, _| Answer::json(&json!("found")));
        })
        .define(|catalog| {
            let words = json!({ "type": "object", "properties": { "q": { "type": "string" } }, "required": ["q"] });
            catalog["models"]["m"]["fallbacks"] = json!(["m2"]);
            catalog["models"]["m2"] = crate::sim::model("m2");
            for name in ["m", "m2"] {
                catalog["models"][name]["inputPrice"] = json!(2);
                catalog["models"][name]["outputPrice"] = json!(4);
            }
            catalog["prompts"]["research"] = json!({ "toolDescription": "Asks.", "prompt": "You are research.",
                "model": "m2", "includeChat": true, "tools": [], "requiredSchema": words });
            catalog["prompts"]["other"] = json!({ "toolDescription": "Checks.", "prompt": "You check.",
                "model": "m2", "includeChat": true, "tools": [] });
            catalog["agents"]["research"] = json!({ "type": "dual_ai", "title": "Research", "exposeAsTool": true,
                "toolDescription": "Finds out.", "maxSessionTurns": 1,
                "sideA": { "prompt": "research" }, "sideB": { "prompt": "other" } });
            catalog["prompts"]["p"]["tools"] =
                json!(["work", "look", { "name": "research", "initUserMessageProperty": "q" }, "pay"]);
            catalog["tools"]["pay"] = asking(json!("always"));
        })
        .answers(|request| match request.model.as_str() {
            "m" => Answer::status(400, r#"{"error":{"message":"not today"}}"#),
            _ => office(request).stream(request.index),
        })
        .drive(|sim| async move {
            sim.send("go").await;
            let waits = until_open(&sim, 1).await;
            decides(&sim, &waits[0], json!({ "decision": "approve" })).await;
            let ended = "SELECT count(*) FROM runs WHERE outcome IS NOT NULL";
            sim.until("the run has ended", |sim| sim.member.database.ask::<i64>(ended) == [1]).await;
            told(&sim).await;
        })
        .terms(|terms| terms.more_requests = 2)
        .check(|sim, history| {
            all_sent(sim, &[]);
            let (spans, _) = sim.world.outside.collector.distinct();
            let traces: BTreeSet<&str> = spans.values().map(|span| text(&span["traceId"])).collect();
            let roots = spans.values().filter(|span| span["parentSpanId"].is_null()).count();
            assert_eq!((traces.len(), roots), (1, 1), "{spans:#?}");
            // The child's run is below the call that made it.
            let call = &named(sim, "invoke_agent research")
                .into_iter()
                .partition::<Vec<_>, _>(|span| span["kind"] == 3);
            assert_eq!((call.0.len(), call.1.len()), (1, 1), "{call:?}");
            assert_eq!(call.1[0]["parentSpanId"], call.0[0]["spanId"]);
            for name in ["execute_tool work", "execute_tool look", "execute_tool pay", "wait approval"] {
                assert_eq!(named(sim, name).len(), 1, "{name}");
            }
            let fallbacks = named(sim, "chat m2");
            let fell = |span: &&Value| span["events"].as_array().is_some_and(|events| events[0]["name"] == "bobbin.fallback");
            assert!(fallbacks.iter().any(|span| fell(&span)), "{fallbacks:?}");
            // What it cost is what the thread says.
            let costs = |of: &str| -> f64 {
                let spans = spans.values().filter(|span| text(&span["name"]).starts_with(of));
                spans.filter_map(|span| attribute(span, "bobbin.cost_usd").as_f64()).sum()
            };
            let looking = sim.clone();
            let cost = sim.world.drive(async move { looking.get(ThreadRoute::GetCost, &[]).await });
            let total = cost["total"]["cost"].as_f64().expect("a cost");
            assert!((costs("chat") - total).abs() < 1e-9, "{} and {cost}", costs("chat"));
            assert!((costs("chat") - costs("invoke_agent")).abs() < 1e-9);
            assert!(costs("chat") > 0.0 || history.faults > 0);
        })
}

fn office(request: &ModelRequest) -> Say {
    if request.system() != "You help." {
        return Say::text("because");
    }
    match request.results().len() {
        0 => Say::call("work", &json!({}))
            .and_call("look", "{}")
            .and_call("research", r#"{"q":"why"}"#)
            .and_call("pay", "{}"),
        _ => Say::text("done"),
    }
}

#[test]
fn one_trace_holds_a_run_its_calls_and_its_children() {
    family().sweep();
}

fn plain() -> Scenario {
    story("spans of several turns")
        .setup(exports)
        .setup(|sim| set(sim, "BOBBIN_OTLP_METRICS", "1"))
        .drive(|sim| async move {
            for text in ["hello", "use work,work", "loop 2"] {
                sim.ask(text).await;
            }
            told(&sim).await;
        })
        .check(|sim, history| {
            all_sent(sim, &[]);
            assert_eq!(named(sim, "invoke_agent").len(), 3);
            for attempt in named(sim, "chat") {
                let read = attribute(&attempt, "gen_ai.usage.input_tokens");
                let fills = attribute(&attempt, "bobbin.context.utilization").as_f64();
                assert_eq!(
                    fills,
                    text(&read).parse::<f64>().ok().map(|tokens| tokens / 48_000.0),
                    "{attempt}"
                );
            }
            let collector = &sim.world.outside.collector;
            if history.faults == 0 {
                let spans = collector.spans.borrow().len();
                assert_eq!(spans, collector.distinct().0.len(), "without failures each is sent once");
                let metrics = collector.metrics.borrow();
                let sums = |name: &str| -> f64 {
                    let all = metrics.iter().flat_map(|body| {
                        body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().cloned().unwrap()
                    });
                    let of = all
                        .filter(|metric| metric["name"] == name)
                        .flat_map(|metric| metric["histogram"]["dataPoints"].as_array().cloned().unwrap());
                    of.map(|point| text(&point["count"]).parse::<f64>().unwrap()).sum()
                };
                assert_eq!(sums("gen_ai.invoke_agent.duration"), 3.0);
                assert_eq!(sums("gen_ai.execute_tool.duration"), 4.0);
                assert_eq!(sums("gen_ai.client.operation.duration"), named(sim, "chat").len() as f64);
            }
        })
}

#[test]
fn every_span_reaches_the_collector_whatever_fails() {
    plain().sweep();
}

/// Says nothing, then that it is busy, then takes them.
fn unwilling() -> Scenario {
    story("a collector that takes its time")
        .setup(exports)
        .setup(|sim| {
            sim.world.outside.collector.script(|before| match before {
                0 => Answer::silence(),
                1 => Answer::status(429, "{}").header("retry-after", "7"),
                2 => Answer::status(503, "{}"),
                _ => Answer::json(&Value::Null),
            });
        })
        .drive(|sim| async move {
            let before = sim.world.now_us();
            sim.ask("hello").await;
            // The directory hears of it while the collector says nothing.
            let ended = |call: &Value| call.to_string().contains(r#""executing":false"#);
            let heard = |sim: &Sim| sim.world.outside.siblings.borrow().iter().any(|(_, call)| ended(call));
            sim.until("the directory is told", heard).await;
            let soon = sim.world.now_us() - before < 2 * SECOND_US;
            assert!(soon || !sim.world.faults.borrow().fired.is_empty());
            sim.ask("use work").await;
            told(&sim).await;
        })
        .check(|sim, history| {
            all_sent(sim, &[]);
            let requests = sim.world.outside.collector.requests.borrow();
            if history.faults == 0 {
                assert_eq!(requests.len(), 4, "{requests:?}");
                assert!(requests[2].0 - requests[1].0 > 69 * SECOND_US / 10, "{requests:?}");
            }
        })
}

#[test]
fn a_collector_that_takes_its_time_is_told_again() {
    unwilling().sweep();
}

/// A request that is part of a trace already.
fn traced() -> Scenario {
    let http = json!({ "description": "Looks up.", "args": { "type": "object", "properties": {} },
        "run": { "http": { "url": format!("{TOOL_URL}/w") } } });
    Scenario::new("a run in the trace of its request", &json!({ "work": http }))
        .says(clerk)
        .setup(exports)
        .setup(|sim| {
            let headers: Rc<RefCell<Vec<String>>> = Rc::default();
            sim.headers.borrow_mut().extend([
                ("traceparent".to_owned(), format!("00-{TRACE}-{OUTSIDE}-01")),
                ("tracestate".to_owned(), "vendor=1".to_owned()),
            ]);
            sim.world.outside.server("/w", move |request, _| {
                let header = |name: &str| {
                    request.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.clone())
                };
                assert_eq!(header("tracestate").as_deref(), Some("vendor=1"));
                headers.borrow_mut().push(header("traceparent").unwrap());
                Answer::json(&json!(headers.borrow().last()))
            });
        })
        .drive(|sim| async move {
            sim.ask("use work").await;
            told(&sim).await;
        })
        .check(|sim, history| {
            all_sent(sim, &[OUTSIDE]);
            let runs = named(sim, "invoke_agent");
            assert_eq!((&runs[0]["traceId"], &runs[0]["parentSpanId"]), (&json!(TRACE), &json!(OUTSIDE)));
            assert_eq!(runs[0]["traceState"], "vendor=1");
            let call = &named(sim, "execute_tool")[0];
            let sent = format!("00-{TRACE}-{}-01", text(&call["spanId"]));
            let result = history.texts("tool");
            assert!(result[0] == sent || history.faults > 0, "{result:?}, not {sent}");
        })
}

#[test]
fn a_run_is_part_of_the_trace_of_its_request() {
    traced().sweep();
}

/// People are asked about two calls, and a third one is still asked about when the run is stopped.
fn waited() -> Scenario {
    story("spans of what people are asked")
        .setup(exports)
        .define(with(json!({ "pay": asking(json!("always")), "send": asking(json!("always")) })))
        .terms(|terms| {
            terms.outcomes = vec!["completed", "stopped"];
            terms.pairs = false;
        })
        .drive(|sim| async move {
            sim.send("use pay,send").await;
            let waits = until_open(&sim, 2).await;
            told(&sim).await;
            assert!(named(&sim, "wait").is_empty(), "what is open has no span");
            sim.world.pause(60 * SECOND_US).await;
            decides(&sim, &waits[0], json!({ "decision": "approve" })).await;
            decides(&sim, &waits[1], json!({ "decision": "deny", "reason": "canary" })).await;
            sim.until("the run has ended", |sim| {
                sim.member.database.ask::<i64>("SELECT count(*) FROM runs WHERE outcome IS NOT NULL") == [1]
            })
            .await;
            sim.send("use pay").await;
            until_open(&sim, 1).await;
            sim.stop().await;
            told(&sim).await;
        })
        .check(|sim, history| {
            all_sent(sim, &[]);
            let steps: BTreeSet<String> =
                named(sim, "step").iter().map(|span| text(&span["spanId"]).to_owned()).collect();
            let mut waits = named(sim, "wait approval");
            waits.sort_by_key(|span| text(&attribute(span, "bobbin.wait")).to_owned());
            let said: Vec<(Value, Value)> = waits
                .iter()
                .map(|span| (attribute(span, "bobbin.wait.state"), attribute(span, "bobbin.wait.decision")))
                .collect();
            let expected =
                [("decided", json!("approve")), ("decided", json!("deny")), ("cancelled", Value::Null)];
            let expected: Vec<(Value, Value)> =
                expected.into_iter().map(|(state, decision)| (json!(state), decision)).collect();
            assert_eq!(said, expected, "{waits:#?}");
            for wait in &waits {
                assert!(wait["kind"] == 1 && steps.contains(text(&wait["parentSpanId"])), "{wait}");
                assert_eq!(attribute(wait, "bobbin.wait.kind"), "approval");
                assert!(!wait.to_string().contains("canary"), "what was said is content: {wait}");
            }
            let lasted = |span: &Value| {
                let at = |name: &str| text(&span[name]).parse::<i64>().unwrap();
                at("endTimeUnixNano") - at("startTimeUnixNano")
            };
            assert!(lasted(&waits[0]) >= 60 * SECOND_US * 1_000 || history.faults > 0, "{:?}", waits[0]);
        })
}

#[test]
fn what_people_are_asked_has_its_spans_once_it_is_over() {
    waited().sweep();
}

fn many_steps() -> Scenario {
    story("spans of a long run")
        .setup(exports)
        .setup(|sim| {
            sim.world.outside.native("work", |_, before| {
                crate::host::Native::Acts(Box::new(move || {
                    bobbin::definitions::message::ToolResult::success(format!("w{before}"))
                }))
            });
        })
        .drive(|sim| async move {
            sim.ask("loop 110").await;
            told(&sim).await;
        })
        .sampled(20)
        .check(|sim, history| {
            all_sent(sim, &[]);
            let collector = &sim.world.outside.collector;
            assert_eq!(named(sim, "step").len(), 111);
            assert!(collector.requests.borrow().len() > 1, "it is told of before it ends");
            if history.faults == 0 {
                let (sent, distinct) = (collector.spans.borrow().len(), collector.distinct().0.len());
                assert!(sent <= distinct + 12, "{sent} were sent of {distinct}");
            }
        })
}

#[test]
fn a_long_run_is_exported_while_it_goes_on() {
    many_steps().calm();
}

/// The collector is gone for as long as a job is tried, and comes back.
fn given_up() -> Scenario {
    story("spans that are given up")
        .setup(exports)
        .setup(|sim| {
            sim.world.outside.collector.script(|before| {
                match before < bobbin::limits::JOB_ATTEMPTS as usize {
                    true => Answer::status(503, "{}"),
                    false => Answer::json(&Value::Null),
                }
            });
        })
        .drive(|sim| async move {
            for text in ["one", "two", "three"] {
                sim.ask(text).await;
                told(&sim).await;
            }
        })
        .check(|sim, _| {
            let database = &sim.member.database;
            let given_up: Vec<i64> =
                database.ask("SELECT data ->> 'dropped' FROM logs WHERE kind = 'failure' ORDER BY id");
            assert_eq!(given_up.len(), 1, "{given_up:?}");
            assert!(given_up[0] > 0, "{given_up:?}");
            // The run after it says so, and no other.
            let runs: Vec<i64> =
                database.ask("SELECT id FROM runs WHERE instr(diagnostics, 'export.dropped') ORDER BY id");
            assert_eq!(runs, [2]);
            assert_eq!(database.ask::<i64>("SELECT dropped FROM meta"), [0]);
        })
}

#[test]
fn the_next_run_tells_that_spans_were_given_up() {
    given_up().sweep();
}

#[test]
fn a_collector_that_is_gone_is_left_alone() {
    story("no collector there")
        .setup(exports)
        .setup(|sim| sim.world.outside.collector.script(|_| Answer::status(503, "{}")))
        .drive(|sim| async move {
            sim.ask("hello").await;
            told(&sim).await;
            sim.world.pause(3_600 * SECOND_US).await;
        })
        .check(|sim, _| {
            let collector = &sim.world.outside.collector;
            assert_eq!(collector.requests.borrow().len(), bobbin::limits::JOB_ATTEMPTS as usize);
            let failures: Vec<String> =
                sim.member.database.ask("SELECT data ->> 'error' FROM logs WHERE kind = 'failure'");
            assert_eq!(failures, ["the collector answered 503"]);
            let looking = sim.clone();
            let said = sim.world.drive(async move { looking.get(ThreadRoute::Diagnostics, &[]).await });
            assert_eq!(said["export"]["dropped"], 3, "{said}");
        })
        .calm();
}

#[test]
fn a_trace_that_is_not_recorded_is_not_exported() {
    for flags in ["00", "02"] {
        story("a trace that nobody records")
            .setup(exports)
            .setup(move |sim| {
                let header = ("traceparent".to_owned(), format!("00-{TRACE}-{OUTSIDE}-{flags}"));
                sim.headers.borrow_mut().push(header);
            })
            .drive(|sim| async move {
                sim.ask("hello").await;
            })
            .check(|sim, _| assert_eq!(sim.world.outside.collector.requests.borrow().len(), 0))
            .once();
    }
    story("no trace is recorded")
        .setup(exports)
        .setup(|sim| set(sim, "BOBBIN_OTLP_SAMPLE", "0"))
        .drive(|sim| async move {
            sim.ask("hello").await;
        })
        .check(|sim, _| assert_eq!(sim.world.outside.collector.requests.borrow().len(), 0))
        .once();
}

/// What was said is written as the conventions' own schemas want it (tests/fixtures/semantic-conventions).
fn follow_the_conventions(sim: &Sim) {
    let mut reasons = Vec::new();
    for (name, schema) in [
        ("gen_ai.input.messages", "gen-ai-input-messages.json"),
        ("gen_ai.output.messages", "gen-ai-output-messages.json"),
    ] {
        let path = format!("{}/fixtures/semantic-conventions/{schema}", env!("CARGO_MANIFEST_DIR"));
        let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let schema = jsonschema::draft202012::new(&schema).unwrap();
        let spans = [named(sim, "chat"), named(sim, "invoke_agent")].concat();
        let all = spans.iter().map(|span| attribute(span, name)).filter(Value::is_string);
        let all: Vec<Value> = all.map(|messages| serde_json::from_str(text(&messages)).unwrap()).collect();
        assert!(!all.is_empty(), "{name}");
        for messages in &all {
            schema.validate(messages).unwrap_or_else(|error| panic!("{name}: {error}: {messages}"));
        }
        let finished = all.iter().flat_map(|messages| messages.as_array().unwrap());
        reasons.extend(finished.filter_map(|message| message["finish_reason"].as_str().map(str::to_owned)));
    }
    assert!(reasons.contains(&"tool_call".to_owned()) && reasons.contains(&"stop".to_owned()), "{reasons:?}");
}

#[test]
fn spans_hold_what_was_said_only_where_that_is_wanted() {
    for wanted in [false, true] {
        story("what was said")
            .setup(exports)
            .setup(move |sim| {
                set(sim, "BOBBIN_OTLP_HEADERS", "Authorization=Bearer%20hush-hush-hush");
                if wanted {
                    set(sim, "BOBBIN_OTLP_CONTENT", "1");
                }
                sim.world.outside.native("work", |_, _| {
                    let result = "canary hush-hush-hush canary".to_owned();
                    crate::host::Native::Gives(0, bobbin::definitions::message::ToolResult::success(result))
                });
            })
            .drive(|sim| async move {
                sim.ask("use work").await;
                sim.ask("canary").await;
                told(&sim).await;
            })
            .check(move |sim, history| {
                let collector = &sim.world.outside.collector;
                let sent = collector.texts.borrow().concat();
                assert_eq!(sent.contains("canary"), wanted);
                assert!(!sent.contains("hush-hush"), "{sent}");
                assert!(
                    history.texts("tool")[0].contains("canary") && !history.texts("tool")[0].contains("hush")
                );
                let key = ("authorization".to_owned(), "Bearer hush-hush-hush".to_owned());
                assert!(collector.headers.borrow().contains(&key));
                if wanted {
                    let call = &named(sim, "execute_tool")[0];
                    assert!(text(&attribute(call, "gen_ai.tool.call.result")).contains("canary"), "{call}");
                    let said: Vec<Value> = named(sim, "chat")
                        .iter()
                        .map(|span| attribute(span, "gen_ai.output.messages"))
                        .collect();
                    assert!(said.iter().any(|said| text(said).contains("re: canary")), "{said:?}");
                    follow_the_conventions(sim);
                }
            })
            .once();
    }
}

#[test]
fn without_a_collector_nothing_is_owed_and_spans_are_shown_all_the_same() {
    story("no collector")
        .drive(|sim| async move {
            sim.ask("use work").await;
        })
        .check(|sim, _| {
            assert_eq!(sim.world.outside.collector.texts.borrow().len(), 0);
            assert!(!sim.member.has_table("jobs"));
            assert_eq!(
                sim.member.database.ask::<i64>("SELECT count(*) FROM runs WHERE trace IS NOT NULL"),
                [0]
            );
            let names: Vec<String> = shown(sim).iter().map(|span| text(&span["name"]).to_owned()).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            assert_eq!(
                names,
                ["chat m", "execute_tool work", "step 1", "chat m", "step 2", "invoke_agent helper"]
            );
        })
        .calm();
}

#[test]
fn models_are_told_of_the_trace_where_that_is_wanted() {
    for wanted in [false, true] {
        story("models in a trace")
            .setup(exports)
            .setup(move |sim| {
                if wanted {
                    set(sim, "BOBBIN_TRACE_MODELS", "1");
                }
            })
            .drive(|sim| async move {
                sim.ask("hello").await;
                told(&sim).await;
            })
            .check(move |sim, _| {
                let requests = sim.world.outside.requests.borrow();
                let header = requests[0].headers.iter().find(|(name, _)| name == "traceparent");
                let attempt = &named(sim, "chat")[0];
                let expected = format!("00-{}-{}-01", text(&attempt["traceId"]), text(&attempt["spanId"]));
                assert_eq!(header.map(|(_, value)| value.as_str()), wanted.then_some(expected.as_str()));
            })
            .once();
    }
}
