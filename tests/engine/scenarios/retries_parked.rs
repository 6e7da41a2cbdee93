//! Long pauses before the next attempt: the run is parked, nothing of it is in memory, and it goes on by itself, whatever fails
//! (docs/models.md).

use bobbin::definitions::message::ToolResult;
use bobbin::host::Filter;
use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::subprompts::checking;
use super::waits::{decides, until_open};
use super::{clerk, story};
use crate::host::outside::{ModelRequest, TOOL_URL};
use crate::host::world::START_US;
use crate::host::{Answer, Native, SECOND_US};
use crate::sim::{Sim, model};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![long(), within(), of_a_tool(), stopped(), terminated(), at_once(), given_up()]
}

/// When the busy server has time again.
const FREE_US: i64 = START_US + 600 * SECOND_US;

/// A server that is busy until then, and says how long that is.
fn busy(request: &ModelRequest) -> Option<Answer> {
    let left = (FREE_US - request.at_us + SECOND_US - 1) / SECOND_US;
    (left > 0).then(|| Answer::status(429, "{}").header("retry-after", &left.to_string()))
}

fn parks(catalog: &mut Value) {
    catalog["prompts"]["p"]["retry"] = json!({ "model": { "mode": "park", "maxAttempts": 3 } });
}

/// How many requests came before the server was free, and after.
fn asked(sim: &Sim) -> (usize, usize) {
    let requests = sim.world.outside.requests.borrow();
    let early = requests.iter().filter(|request| request.at_us < FREE_US).count();
    (early, requests.len() - early)
}

/// The trace of the first run: kinds of what has to do with pauses, and their data.
async fn trace(sim: &Sim) -> Vec<(String, Value)> {
    let run = sim.get(ThreadRoute::GetRun("r_1".into()), &[("trace", "1")]).await;
    let entries = run["trace"].as_array().cloned().unwrap_or_default();
    let of_pauses = entries.into_iter().filter(|entry| {
        let kind = entry["kind"].as_str().unwrap_or_default();
        kind.starts_with("adapter.") || matches!(kind, "run.paused" | "run.resumed")
    });
    of_pauses.map(|entry| (entry["kind"].as_str().unwrap().to_owned(), entry["data"].clone())).collect()
}

fn kinds(trace: &[(String, Value)]) -> Vec<&str> {
    trace.iter().map(|(kind, _)| kind.as_str()).collect()
}

/// `Retry-After: 600`: two requests, ten minutes apart, and nothing between them.
fn long() -> Scenario {
    story("a pause of ten minutes")
        .define(parks)
        .answers(|request| busy(request).unwrap_or_else(|| clerk(request).stream(request.index)))
        .drive(|sim| async move {
            sim.listen(Filter { events: true, ..Filter::default() }, None).await.unwrap();
            let sent = sim.send("hello").await;
            let waits = until_open(&sim, 1).await;
            let wait = &waits[0];
            assert_eq!((&wait["kind"], &wait["allows"]), (&json!("retry"), &json!(["retry"])), "{wait}");
            assert_eq!((&wait["by"], &wait["onExpiry"]), (&json!("thread"), &json!("continue")), "{wait}");
            assert_eq!(wait["title"], "Ask the model “m” again");
            assert!(wait["reason"].as_str().unwrap().starts_with("rate_limit: "), "{wait}");
            let ends = wait["expiresAt"].as_i64().unwrap();
            assert!((FREE_US..FREE_US + 2 * SECOND_US).contains(&ends), "{wait}");
            let outcome = sim.outcome(&sent).await;
            assert_eq!(
                (&outcome["outcome"], &outcome["status"], &outcome["reason"], &outcome["pauseKind"]),
                (&json!("parked"), &json!("paused"), &json!("waiting_for_retry"), &json!("system")),
                "{outcome}"
            );
            assert_eq!(outcome["waits"][0]["id"], wait["id"]);
            assert!(kinds(&trace(&sim).await).ends_with(&["adapter.retry", "run.paused"]));
            let seen = sim.post(json!({ "role": "user", "content": "more" })).await;
            assert_eq!((seen.status, &seen.body["state"]), (202, &json!("parked")), "{}", seen.body);
            let looked = sim.get(ThreadRoute::Diagnostics, &[]).await;
            assert_eq!((&looked["state"], &looked["phase"]), (&json!("parked"), &json!("parked_model")));
            assert!(looked["due"].as_array().unwrap().iter().any(|due| due["what"] == "wait"), "{looked}");
            sim.evict().await;
            assert_eq!(sim.member.open_requests.get(), 0);
            if sim.world.faults.borrow().fired.is_empty() {
                // Otherwise the directory may still have to be told.
                assert_eq!(sim.member.alarm.get().due_us, Some(ends), "one alarm, for its end");
            }
        })
        .check(|sim, history| {
            assert_eq!(history.answers(), ["re: hello", "re: more"]);
            let (early, late) = asked(sim);
            assert!(early <= 1 + history.faults && late <= 2 + history.faults, "{early}, {late}");
            if history.faults > 0 {
                return;
            }
            assert_eq!((early, late), (1, 2), "the second attempt, and the message that came meanwhile");
            let requests = sim.world.outside.requests.borrow();
            let gap = requests[1].at_us - requests[0].at_us;
            assert!((599 * SECOND_US..602 * SECOND_US).contains(&gap), "{gap}");
            drop(requests);
            let looking = sim.clone();
            let told = sim.world.drive(async move { trace(&looking).await });
            assert_eq!(kinds(&told), ["adapter.retry", "run.paused", "run.resumed"]);
            let delay = told[0].1["delayMs"].as_i64().unwrap();
            assert!((599_000..602_000).contains(&delay), "{told:?}");
            assert_eq!((&told[1].1["pauseKind"], &told[1].1["kind"]), (&json!("system"), &json!("retry")));
            assert_eq!((&told[2].1["decision"], &told[2].1["state"]), (&Value::Null, &json!("expired")));
            let looking = sim.clone();
            let route = ThreadRoute::GetSpans("r_1".into());
            let spans = sim.world.drive(async move { looking.get(route, &[]).await });
            let spans =
                spans["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().cloned().unwrap_or_default();
            let named =
                |name: &str| spans.iter().find(|span| span["name"] == name).cloned().unwrap_or_default();
            let (wait, step) = (named("wait retry"), named("step 1"));
            assert!(step["spanId"].is_string() && wait["parentSpanId"] == step["spanId"], "{spans:?}");
            let frames = sim.world.frames.borrow();
            let of = |kind: &str| frames.iter().filter(|frame| frame.1.kind == kind).count();
            assert_eq!((of("wait_opened"), of("wait_closed")), (1, 1));
        })
}

#[test]
fn a_long_pause_parks_the_run_and_one_request_follows_it() {
    long().sweep();
}

/// The model of a prompt that is called: the outer call is parked with it.
fn within() -> Scenario {
    story("a pause of ten minutes within a prompt")
        .define(|catalog| {
            checking(catalog);
            catalog["models"]["n"] = model("n");
            catalog["models"]["n"]["retry"] = json!({ "mode": "park" });
            catalog["prompts"]["check"]["model"] = json!("n");
            catalog["prompts"]["check"]["tools"] = json!([]);
        })
        .answers(|request| match request.model.as_str() {
            "n" => busy(request).unwrap_or_else(|| crate::host::Say::text("checked").stream(request.index)),
            _ if request.results().is_empty() => {
                crate::host::Say::call("check", &json!({ "what": "it" })).stream(request.index)
            }
            _ => {
                crate::host::Say::text(format!("told: {}", request.results().join("|"))).stream(request.index)
            }
        })
        .drive(|sim| async move {
            sim.send("hello").await;
            let waits = until_open(&sim, 1).await;
            assert_eq!(waits[0]["kind"], "retry");
            sim.evict().await;
        })
        .check(|sim, history| {
            assert_eq!(history.answers(), ["told: checked"]);
            let requests = sim.world.outside.requests.borrow();
            let inner: Vec<i64> =
                requests.iter().filter(|request| request.model == "n").map(|request| request.at_us).collect();
            let (early, late) = inner.iter().partition::<Vec<i64>, _>(|at| **at < FREE_US);
            assert!(early.len() <= 1 + history.faults && late.len() <= 1 + history.faults, "{inner:?}");
            if history.faults == 0 {
                assert_eq!((early.len(), late.len(), requests.len()), (1, 1, 4));
            }
        })
}

#[test]
fn a_prompt_whose_model_is_busy_for_long_parks_the_call_around_it() {
    within().sweep();
}

/// A tool that may be repeated, with a policy of long pauses.
fn of_a_tool() -> Scenario {
    let policy = json!({ "mode": "park", "maxAttempts": 3, "backoffMs": 600_000, "maxBackoffMs": 600_000,
        "jitter": "none" });
    story("a tool that is called again after ten minutes")
        .define(move |catalog| {
            let run = json!({ "http": { "url": format!("{TOOL_URL}/work") } });
            catalog["tools"]["work"] =
                json!({ "description": "Works.", "run": run, "idempotent": true, "retry": policy });
        })
        .setup(|sim| {
            sim.world.outside.server("/work", |_, before| match before {
                0 => Answer::status(503, "{}"),
                _ => Answer::json(&json!({ "status": "success", "result": "at last" })),
            });
        })
        .drive(|sim| async move {
            sim.send("use work").await;
            sim.until_executions(1).await;
            sim.world.pause(SECOND_US).await;
            sim.evict().await;
        })
        .check(|sim, history| {
            let executions = sim.world.outside.executions.borrow();
            assert!(executions.len() <= 2 + history.faults && executions.len() <= 3, "{}", executions.len());
            assert!(executions.iter().all(|e| e.key == executions[0].key));
            assert_eq!(history.texts("tool"), ["at last"]);
            if history.faults == 0 {
                assert_eq!(executions.len(), 2);
                let waits: Vec<String> = sim.member.database.ask("SELECT kind || ' ' || state FROM waits");
                assert_eq!(waits, ["retry expired"]);
            }
        })
}

#[test]
fn a_tool_with_long_pauses_parks_the_run_between_its_calls() {
    of_a_tool().sweep();
}

fn stopped() -> Scenario {
    story("a stop in a long pause")
        .define(parks)
        .terms(|terms| terms.outcomes = vec!["stopped", "completed"])
        .answers(|request| busy(request).unwrap_or_else(|| clerk(request).stream(request.index)))
        .drive(|sim| async move {
            sim.send("hello").await;
            let waits = until_open(&sim, 1).await;
            sim.stop().await;
            until_open(&sim, 0).await;
            let route = ThreadRoute::GetWait(waits[0]["id"].as_str().unwrap().to_owned());
            assert_eq!(sim.get(route, &[]).await["wait"]["state"], "cancelled");
            sim.world.pause(601 * SECOND_US).await;
            sim.ask("again").await;
        })
        .check(|sim, history| {
            assert_eq!(history.answers(), ["re: again"]);
            let (early, late) = asked(sim);
            assert!(early <= 1 + history.faults && late <= 1 + history.faults, "{early}, {late}");
            let looking = sim.clone();
            let told = sim.world.drive(async move { trace(&looking).await });
            assert_eq!(kinds(&told).last(), Some(&"run.paused"), "it never went on: {told:?}");
        })
}

#[test]
fn a_stop_ends_a_long_pause_and_nothing_is_asked_any_more() {
    stopped().sweep();
}

fn terminated() -> Scenario {
    story("a termination in a long pause")
        .define(parks)
        .terms(|terms| terms.outcomes = vec!["stopped"])
        .answers(|request| busy(request).unwrap_or_else(|| clerk(request).stream(request.index)))
        .drive(|sim| async move {
            sim.send("hello").await;
            until_open(&sim, 1).await;
            sim.terminate().await;
            until_open(&sim, 0).await;
        })
        .check(|sim, history| {
            assert!(history.answers().is_empty());
            let (early, late) = asked(sim);
            assert!(early <= 1 + history.faults && late == 0, "{early}, {late}");
        })
}

#[test]
fn a_termination_ends_a_long_pause() {
    terminated().sweep();
}

/// Who watches does not want to wait: the attempt is made at once, and counted once.
fn at_once() -> Scenario {
    let free_us = START_US + 5 * SECOND_US;
    story("a pause that is cut short")
        .define(parks)
        .answers(move |request| match request.at_us < free_us {
            true => Answer::status(429, "{}").header("retry-after", "600"),
            false => clerk(request).stream(request.index),
        })
        .drive(|sim| async move {
            sim.send("hello").await;
            let waits = until_open(&sim, 1).await;
            let route = ThreadRoute::DecideWait(waits[0]["id"].as_str().unwrap().to_owned());
            for body in [
                json!({ "decision": "approve" }),
                json!({ "decision": "deny" }),
                json!({ "decision": "answer", "text": "x" }),
                json!({ "decision": "defer", "until": 1_795_300_900 }),
                json!({ "decision": "retry", "interrupt": "restart" }),
            ] {
                let refused = sim.insist(route.clone(), &[], None, body.to_string()).await;
                let field = if body["interrupt"].is_null() { "decision" } else { "interrupt" };
                assert_eq!((refused.status, &refused.body["error"]["field"]), (400, &json!(field)), "{body}");
            }
            sim.world.pause(5 * SECOND_US).await;
            decides(&sim, &waits[0], json!({ "decision": "retry", "actor": "Ann" })).await;
            sim.world.pause(20 * SECOND_US).await;
        })
        .check(|sim, history| {
            assert_eq!(history.answers(), ["re: hello"]);
            let requests = sim.world.outside.requests.borrow();
            assert!(requests.len() <= 2 + history.faults, "{}", requests.len());
            let end = requests.last().unwrap().at_us;
            assert!(end < START_US + 120 * SECOND_US, "long before the ten minutes were over");
            drop(requests);
            let looking = sim.clone();
            let told = sim.world.drive(async move { trace(&looking).await });
            let resumed: Vec<&Value> =
                told.iter().filter(|(kind, _)| kind == "run.resumed").map(|(_, data)| data).collect();
            assert_eq!(resumed.len(), 1, "{told:?}");
            assert_eq!(resumed[0]["decision"], "retry");
        })
}

#[test]
fn who_watches_a_long_pause_may_end_it_once() {
    at_once().sweep();
}

/// The attempt after the pause was the last: the fallback is asked, and the model no more.
fn given_up() -> Scenario {
    story("a pause before the last attempt")
        .define(|catalog| {
            catalog["models"]["m2"] = model("m2");
            catalog["models"]["m"]["fallbacks"] = json!(["m2"]);
            catalog["models"]["m"]["retry"] = json!({ "mode": "park", "maxAttempts": 2 });
        })
        .answers(|request| match request.model.as_str() {
            "m" => Answer::status(429, "{}").header("retry-after", "31"),
            _ => clerk(request).stream(request.index),
        })
        .drive(|sim| async move {
            sim.send("hello").await;
            sim.world.pause(100 * SECOND_US).await;
        })
        .check(|sim, history| {
            assert_eq!(history.answers(), ["re: hello"]);
            let requests = sim.world.outside.requests.borrow();
            let first = requests.iter().filter(|request| request.model == "m").count();
            assert!((2..=2 + history.faults).contains(&first), "{first}");
            let waits: Vec<String> = sim.member.database.ask("SELECT kind || ' ' || state FROM waits");
            assert_eq!(waits, ["retry expired"], "no attempt is gained, none is lost");
        })
}

#[test]
fn the_attempt_after_a_long_pause_counts() {
    given_up().sweep();
}

/// Where no run can be parked, or the pause is short, it is spent in the object.
#[test]
fn a_pause_that_cannot_be_parked_lasts_a_minute_at_most() {
    for (after, most_s, mode) in [("600", 60, "wait"), ("30", 30, "park"), ("31", 31, "park")] {
        story("short pauses")
            .define(move |catalog| {
                catalog["models"]["m"]["retry"] = json!({ "mode": mode });
            })
            .answers(move |request| match request.index {
                0 => Answer::status(429, "{}").header("retry-after", after),
                _ => clerk(request).stream(request.index),
            })
            .drive(|sim| async move {
                sim.send("hello").await;
            })
            .check(move |sim, history| {
                assert_eq!(history.answers(), ["re: hello"]);
                let requests = sim.world.outside.requests.borrow();
                let waited = (requests[1].at_us - requests[0].at_us + SECOND_US / 2) / SECOND_US;
                assert!((most_s..=most_s + 1).contains(&waited), "{after}, {mode}: {waited}");
                assert_eq!(sim.member.has_table("waits"), after == "31", "{after}, {mode}");
            })
            .calm();
    }
    story("a long pause within code")
        .define(|catalog| {
            checking(catalog);
            catalog["models"]["n"] = model("n");
            catalog["models"]["n"]["retry"] = json!({ "mode": "park" });
            catalog["prompts"]["check"]["model"] = json!("n");
            catalog["prompts"]["check"]["tools"] = json!([]);
        })
        .answers(|request| match (request.model.as_str(), request.at_us < START_US + 30 * SECOND_US) {
            ("n", true) => Answer::status(429, "{}").header("retry-after", "600"),
            ("n", false) => crate::host::Say::text("checked").stream(request.index),
            _ => clerk(request).stream(request.index),
        })
        .setup(|sim| {
            sim.world.outside.native("work", |call, _| {
                let state = call.state.clone();
                Native::Works(Box::pin(async move {
                    let asked = state.invoke_tool("check", json!({ "what": "it" })).await;
                    asked.unwrap_or_else(|error| ToolResult::error(error.into_message()))
                }))
            });
        })
        .drive(|sim| async move {
            sim.ask("use work").await;
        })
        .check(|sim, history| {
            assert_eq!(history.texts("tool"), ["checked"]);
            assert!(!sim.member.has_table("waits"), "code that waits is not lost");
        })
        .calm();
}
