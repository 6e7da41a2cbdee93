//! Spans of work beside runs: each effect, request to an endpoint and job is a trace of its own, linked to the run that it has to do
//! with.

use bobbin::Error;
use bobbin::definitions::message::ToolResult;
use bobbin::engine::{EndpointAnswer, NewEffect, NewMessage};
use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::effects::{list, over, schedule, with_effects};
use super::memories::with_book;
use super::spans::{all_sent, exports, named, set, told};
use super::story;
use super::summary::{both, is_summary, said, settled, summarised};
use crate::host::collector::{attribute, text};
use crate::host::outside::ModelRequest;
use crate::host::{Answer, Handler, Native, SECOND_US, Say, TOOL_URL};
use crate::sim::{Ask, Sim};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![scheduled(), ended(), asked(), summaries(), indexed()]
}

/// The tool `work` schedules `hook`, which is behind a URL and fails at first, and `ring`.
fn schedules(sim: &Sim) {
    sim.world.outside.native("work", |call, _| {
        let state = call.state.clone();
        Native::Acts(Box::new(move || {
            for (name, delay) in [("hook", 0), ("ring", 5_000)] {
                state.schedule_effect(NewEffect::once(name, json!({}), delay)).unwrap();
            }
            ToolResult::success("scheduled")
        }))
    });
    sim.world.outside.server("/hook", |_, before| match before {
        0 => Answer::status(503, "not now"),
        _ => Answer::json(&json!({ "ok": true })),
    });
}

fn works(sim: &Sim) -> i64 {
    match sim.member.has_table("works") {
        true => sim.member.database.ask("SELECT count(*) FROM works")[0],
        false => 0,
    }
}

/// Ids, attempts and states of effects that have run.
fn ran(sim: &Sim) -> Vec<(i64, i64, String)> {
    let all = "SELECT id || ' ' || attempts || ' ' || status FROM effects WHERE open = 0 ORDER BY id";
    let rows: Vec<String> = sim.member.database.ask(all);
    let read = |row: String| {
        let mut parts = row.split(' ').map(str::to_owned);
        let mut number = || parts.next().unwrap().parse().unwrap();
        (number(), number(), parts.next().unwrap())
    };
    rows.into_iter().map(read).collect()
}

async fn all_ran(sim: &Sim, least: i64) {
    let open = "SELECT count(*) FROM effects WHERE open > 0";
    let ended = "SELECT count(*) FROM effects WHERE open = 0";
    sim.until("all effects have run", |sim| {
        sim.member.database.ask::<i64>(open) == [0] && sim.member.database.ask::<i64>(ended)[0] >= least
    })
    .await;
    told(sim).await;
}

fn scheduled() -> Scenario {
    with_effects("spans of effects")
        // The run goes on beside them.
        .terms(|terms| terms.overlap = true)
        .setup(exports)
        .setup(schedules)
        .drive(|sim| async move {
            sim.ask("use work").await;
            // What was scheduled when the process was lost may not be there.
            let faulty = !sim.world.faults.borrow().fired.is_empty();
            all_ran(&sim, if faulty { 0 } else { 2 }).await;
        })
        .check(|sim, history| {
            all_sent(sim, &[]);
            assert_eq!(works(sim), 0, "what was told of is forgotten");
            let spans = named(sim, "effect ");
            let ran = ran(sim);
            assert_eq!(spans.len(), ran.len(), "{spans:#?}");
            assert!(ran.len() == 2 || history.faults > 0);
            let runs = named(sim, "invoke_agent");
            for span in &spans {
                let id = text(&attribute(span, "bobbin.effect")).to_owned();
                let (_, attempts, status) =
                    ran.iter().find(|(n, ..)| id.ends_with(&format!("_{n}"))).expect("an effect has this id");
                assert_eq!(attribute(span, "bobbin.attempts"), json!(attempts.to_string()));
                assert_eq!(attribute(span, "bobbin.effect.status"), json!(status));
                assert!(span["kind"] == 1 && span["parentSpanId"].is_null(), "{span}");
                let [link] = &span["links"].as_array().unwrap()[..] else { panic!("{span}") };
                assert_eq!(
                    (&link["traceId"], &link["spanId"]),
                    (&runs[0]["traceId"], &runs[0]["spanId"]),
                    "{span}"
                );
                assert_eq!(attribute(link, "bobbin.run"), "r_1");
                assert_ne!(span["traceId"], runs[0]["traceId"], "a trace of its own");
            }
            let traces: std::collections::BTreeSet<&str> =
                spans.iter().map(|span| text(&span["traceId"])).collect();
            assert_eq!(traces.len(), spans.len());
            // Who is called is in the trace of the effect, in all attempts.
            let hook = spans.iter().find(|span| span["name"] == "effect hook");
            for (_, sent) in sim.world.outside.traced.borrow().iter() {
                let hook = hook.expect("what was called has a span around it");
                assert_eq!(*sent, format!("00-{}-{}-01", text(&hook["traceId"]), text(&hook["spanId"])));
            }
        })
}

#[test]
fn each_effect_is_a_trace_of_its_own_linked_to_the_run_that_has_scheduled_it() {
    scheduled().sweep();
}

/// One that repeats and is cancelled, one that is given up, one that never begins, and one that is under way when the thread ends.
fn ended() -> Scenario {
    with_effects("spans of effects that end otherwise")
        .setup(exports)
        .setup(|sim| {
            sim.world.outside.effect("ring", |call, _| match call.args["n"].as_i64() {
                Some(1) => Native::Gives(SECOND_US, ToolResult::error("broken canary")),
                Some(2) => Native::Never,
                _ => Native::Gives(SECOND_US / 10, ToolResult::success("")),
            });
        })
        .drive(|sim| async move {
            let bad = schedule(&sim, json!({ "name": "ring", "args": { "n": 1 } })).await;
            let never = schedule(&sim, json!({ "name": "ring", "delay": 3_600_000 })).await;
            let often = schedule(&sim, json!({ "name": "ring", "every": 10_000 })).await;
            over(&sim, &bad).await;
            sim.world.pause(25 * SECOND_US).await;
            for id in [&never, &often] {
                let seen = sim.insist(ThreadRoute::CancelEffect(id.clone()), &[], None, String::new()).await;
                assert!(matches!(seen.status, 200 | 409), "{}", seen.body);
            }
            over(&sim, &often).await;
            schedule(&sim, json!({ "name": "ring", "args": { "n": 2 } })).await;
            sim.world.pause(2 * SECOND_US).await;
            sim.terminate().await;
            told(&sim).await;
        })
        .check(|sim, history| {
            all_sent(sim, &[]);
            assert_eq!(works(sim), 0);
            let spans = named(sim, "effect ring");
            assert!(spans.iter().all(|span| span["links"].is_null()), "code has scheduled none of them");
            let of = |status: &str| -> Vec<&Value> {
                spans.iter().filter(|span| attribute(span, "bobbin.effect.status") == status).collect()
            };
            let [failed] = of("failed")[..] else { panic!("{spans:#?}") };
            assert_eq!(attribute(failed, "bobbin.attempts"), "3");
            assert_eq!(
                (&failed["status"]["code"], attribute(failed, "error.type")),
                (&json!(2), json!("failed"))
            );
            let occurrences: Vec<Value> =
                of("completed").iter().map(|span| attribute(span, "bobbin.effect.occurrence")).collect();
            assert!(occurrences.len() >= 2 || history.faults > 0, "{spans:#?}");
            let rows = ran(sim).iter().filter(|(_, _, status)| status == "completed").count();
            assert_eq!(occurrences.len(), rows, "{spans:#?}");
            // What has begun ends with the thread; what has not is told of to nobody.
            assert!(of("user_canceled").len() <= 1 && history.faults > 0 || of("user_canceled").is_empty());
            assert!(of("agent_canceled").len() == 1 || history.faults > 0, "{spans:#?}");
        })
}

#[test]
fn an_effect_has_its_span_however_it_ends() {
    ended().sweep();
}

#[test]
fn without_a_collector_or_where_nothing_is_recorded_nothing_is_kept() {
    for (collector, share) in [(false, "1"), (true, "0")] {
        with_effects("effects that nobody is told of")
            .terms(|terms| terms.overlap = true)
            .setup(schedules)
            .setup(move |sim| {
                if collector {
                    exports(sim);
                }
                set(sim, "BOBBIN_OTLP_SAMPLE", share);
            })
            .drive(|sim| async move {
                sim.ask("use work").await;
                all_ran(&sim, 2).await;
            })
            .check(move |sim, _| {
                assert_eq!(sim.world.outside.collector.requests.borrow().len(), 0);
                assert_eq!(works(sim), 0);
                if !collector {
                    assert!(!sim.member.has_table("works") && !sim.member.has_table("jobs"));
                }
            })
            .calm();
    }
}

#[test]
fn many_effects_are_told_of_in_several_requests() {
    with_effects("many effects")
        .setup(exports)
        .setup(|sim| {
            sim.world.outside.effect("ring", |_, _| Native::Gives(0, ToolResult::success("")));
            sim.world.outside.native("work", |call, _| {
                let state = call.state.clone();
                Native::Acts(Box::new(move || {
                    for _ in 0..600 {
                        state.schedule_effect(NewEffect::once("ring", json!({}), 10_000)).unwrap();
                    }
                    ToolResult::success("scheduled")
                }))
            });
        })
        .drive(|sim| async move {
            sim.world.outside.collector.script(|before| match before {
                0..3 => Answer::status(503, "{}"),
                _ => Answer::json(&Value::Null),
            });
            sim.ask("use work").await;
            all_ran(&sim, 600).await;
            assert_eq!(list(&sim).await["total"], 600);
        })
        .check(|sim, _| {
            all_sent(sim, &[]);
            assert_eq!(named(sim, "effect ring").len(), 600);
            assert_eq!(works(sim), 0);
        })
        .calm();
}

#[test]
fn what_a_collector_never_takes_is_dropped_and_counted() {
    with_effects("a collector that is gone")
        .setup(exports)
        .setup(|sim| sim.world.outside.collector.script(|_| Answer::status(503, "{}")))
        .drive(|sim| async move {
            let id = schedule(&sim, json!({ "name": "ring" })).await;
            over(&sim, &id).await;
            told(&sim).await;
        })
        .check(|sim, _| {
            let requests = sim.world.outside.collector.requests.borrow().len();
            assert_eq!(requests, bobbin::limits::JOB_ATTEMPTS as usize);
            assert_eq!(works(sim), 0);
            let looking = sim.clone();
            let said = sim.world.drive(async move { looking.get(ThreadRoute::Diagnostics, &[]).await });
            assert_eq!(said["export"]["dropped"], 1, "{said}");
        })
        .calm();
}

/// A native endpoint that says something to the agent, and one behind a URL.
fn asked() -> Scenario {
    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    story("spans of endpoints")
        .terms(|terms| (terms.overlap, terms.one_answer) = (true, false))
        .setup(exports)
        .define(|catalog| {
            catalog["endpoints"] = json!({
                "POST /say/[word]": { "run": { "native": "act" } },
                "GET /far": { "run": { "http": { "url": format!("{TOOL_URL}/far") } } },
            });
        })
        .setup(|sim| {
            sim.world.outside.endpoint("act", |call| {
                let call = call.clone();
                Handler::Acts(
                    SECOND_US / 10,
                    Box::new(move || {
                        call.state.queue_message(NewMessage::user(format!("say {}", call.param("word"))))?;
                        Ok(EndpointAnswer::json(201, &Value::Null))
                    }),
                )
            });
            sim.world.outside.server("/far", |_, _| Answer::json(&json!({ "ok": true })));
        })
        .drive(|sim| async move {
            assert_eq!(sim.reach_surely(Ask::of("POST", "/say/hello")).await.status, 201);
            let headers = vec![("traceparent".to_owned(), format!("00-{TRACE}-00f067aa0ba902b7-01"))];
            assert_eq!(sim.reach_surely(Ask { headers, ..Ask::of("GET", "/far") }).await.status, 200);
            let unrecorded = vec![("traceparent".to_owned(), format!("00-{TRACE}-00f067aa0ba902b7-00"))];
            let asked = Ask { headers: unrecorded, ..Ask::of("GET", "/far") };
            assert_eq!(sim.reach_surely(asked).await.status, 200);
            let ended = "SELECT count(*) FROM runs WHERE ended_us IS NULL";
            sim.until("the runs have ended", |sim| sim.member.database.ask::<i64>(ended) == [0]).await;
            told(&sim).await;
        })
        .check(|sim, history| {
            all_sent(sim, &["00f067aa0ba902b7"]);
            assert_eq!(works(sim), 0);
            let (said, far) = (named(sim, "POST /say/[word]"), named(sim, "GET /far"));
            assert!(history.faults > 0 || (said.len(), far.len()) == (1, 1), "{said:?} {far:?}");
            let runs = named(sim, "invoke_agent");
            for span in &said {
                assert!(span["kind"] == 2 && span["parentSpanId"].is_null(), "{span}");
                assert_eq!(attribute(span, "http.route"), "/say/[word]");
                if attribute(span, "http.response.status_code") != "201" {
                    assert!(history.faults > 0, "{span}");
                    continue;
                }
                let [link] = &span["links"].as_array().unwrap()[..] else { panic!("{span}") };
                let run = runs.iter().find(|run| run["spanId"] == link["spanId"]).expect("it is a run's");
                assert_eq!(attribute(link, "bobbin.run"), attribute(run, "bobbin.run"));
            }
            for span in &far {
                assert_eq!(
                    (&span["traceId"], &span["parentSpanId"]),
                    (&json!(TRACE), &json!("00f067aa0ba902b7"))
                );
                assert!(span["links"].is_null(), "{span}");
            }
            // What is asked is in the span; where nobody is told of that, in the one around it.
            let spans: Vec<String> =
                far.iter().map(|span| format!("00-{TRACE}-{}-01", text(&span["spanId"]))).collect();
            let around = format!("00-{TRACE}-00f067aa0ba902b7-00");
            for (_, sent) in sim.world.outside.traced.borrow().iter() {
                assert!(spans.contains(sent) || *sent == around || history.faults > 0, "{sent}");
            }
        })
}

#[test]
fn a_request_to_an_endpoint_is_a_span_linked_to_the_run_that_it_begins() {
    asked().sweep();
}

#[test]
fn an_endpoint_that_fails_says_why_in_its_span() {
    story("an endpoint that fails")
        .setup(exports)
        .define(|catalog| catalog["endpoints"] = json!({ "GET /x": { "run": { "native": "act" } } }))
        .setup(|sim| {
            sim.world
                .outside
                .endpoint("act", |_| Handler::Acts(0, Box::new(|| Err(Error::internal("broken")))));
        })
        .drive(|sim| async move {
            assert_eq!(sim.reach(Ask::of("GET", "/x")).await.unwrap().status, 500);
            told(&sim).await;
        })
        .check(|sim, _| {
            let [span] = &named(sim, "GET /x")[..] else { panic!() };
            assert_eq!(
                (&span["status"]["code"], attribute(span, "error.type")),
                (&json!(2), json!("failed"))
            );
            assert!(text(&span["status"]["message"]).contains("broken"), "{span}");
            assert_eq!(attribute(span, "http.response.status_code"), "500");
        })
        .calm();
}

/// Each of these jobs ended, in a trace of its own, linked to a run that was told of.
fn check_jobs(sim: &Sim, name: &str) -> Vec<Value> {
    all_sent(sim, &[]);
    assert_eq!(works(sim), 0, "what was told of is forgotten");
    let (runs, jobs) = (named(sim, "invoke_agent"), named(sim, name));
    for job in &jobs {
        assert!(job["kind"] == 1 && job["parentSpanId"].is_null(), "{job}");
        let links = job["links"].as_array().cloned().unwrap_or_default();
        assert!(!links.is_empty() && links.len() <= bobbin::limits::SPAN_LINKS, "{job}");
        for link in links {
            let run = runs.iter().find(|run| run["spanId"] == link["spanId"]).expect("it is a run's");
            assert_eq!(attribute(&link, "bobbin.run"), attribute(run, "bobbin.run"));
            assert_ne!(run["traceId"], job["traceId"]);
        }
    }
    jobs
}

fn summaries() -> Scenario {
    summarised("spans of summaries")
        .setup(exports)
        .drive(|sim| async move {
            for n in 0..16 {
                sim.ask(&said(n)).await;
                settled(&sim).await;
            }
            told(&sim).await;
        })
        .sampled(60)
        .check(|sim, history| {
            let jobs = check_jobs(sim, "job summary");
            let made: i64 = sim.member.database.ask("SELECT count(*) FROM summaries")[0];
            assert!(made > 0 && jobs.len() as i64 >= made, "{made} summaries, {jobs:#?}");
            for job in &jobs {
                assert_eq!(attribute(job, "bobbin.job"), "summary");
                assert!(attribute(job, "bobbin.job.outcome") == "ended" || history.faults > 0, "{job}");
            }
        })
}

#[test]
fn a_summary_is_a_job_with_a_span_linked_to_the_run_that_has_caused_it() {
    summaries().sweep();
}

fn indexed() -> Scenario {
    story("spans of an index")
        .setup(exports)
        .define(|catalog| {
            with_book(catalog);
            catalog["prompts"]["p"]["memory"] = json!([{ "name": "book", "tools": ["save"] }]);
        })
        .says(|request: &ModelRequest| match request.results().len() {
            0 => Say::call("memory_save", &json!({ "content": "The lighthouse is forty metres tall." })),
            _ => Say::text("done"),
        })
        .drive(|sim| async move {
            sim.ask("save").await;
            told(&sim).await;
        })
        .check(|sim, history| {
            let jobs = check_jobs(sim, "job index book");
            assert!(jobs.len() == 1 || history.faults > 0, "{jobs:#?}");
            for job in &jobs {
                let attributes = ["bobbin.job", "gen_ai.data_source.id"].map(|name| attribute(job, name));
                assert_eq!(attributes, [json!("index"), json!("book")]);
            }
        })
}

#[test]
fn an_index_is_a_job_with_a_span_linked_to_the_run_that_has_saved_something() {
    indexed().sweep();
}

#[test]
fn a_job_that_is_given_up_says_why_in_its_span() {
    summarised("a summary that fails")
        .setup(exports)
        .answers(|request| match is_summary(request) {
            true => Answer::status(400, r#"{"error":{"message":"not today"}}"#),
            false => both(request).stream(request.index),
        })
        .drive(|sim| async move {
            for n in 0..24 {
                sim.ask(&said(n)).await;
                settled(&sim).await;
            }
            told(&sim).await;
        })
        .check(|sim, _| {
            let jobs = check_jobs(sim, "job summary");
            assert!(!jobs.is_empty());
            for job in &jobs {
                assert_eq!(
                    (attribute(job, "bobbin.job.outcome"), &job["status"]["code"]),
                    (json!("failed"), &json!(2))
                );
                assert_eq!(attribute(job, "bobbin.attempts"), bobbin::limits::SUMMARY_FAILURES.to_string());
                assert!(text(&job["status"]["message"]).contains("not today"), "{job}");
            }
        })
        .once();
}
