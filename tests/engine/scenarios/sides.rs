//! Two models that talk to each other: who sees what, whose turn it is, and how a session ends.

use bobbin::definitions::message::ToolResult;
use bobbin::engine::Side;
use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::{INDETERMINATE, work};
use crate::contract::History;
use crate::host::outside::ModelRequest;
use crate::host::{Native, Say};
use crate::sim::{Sim, model, native};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![debate(), forced()]
}

/// Agent `helper` with two sides: A is the model `ma`, B is `mb`; both remember everything.
fn two_sides(name: &'static str, edit: impl FnOnce(&mut Value)) -> Scenario {
    let closing = json!({ "description": "Ends it.", "run": { "native": "end" }, "idempotent": true,
        "args": { "type": "object", "properties": {
            "summary": { "type": "string" }, "files": { "type": "array", "items": { "type": "string" } } } } });
    let tools = json!({ "work": native(false), "finish": closing, "give_up": closing, "ask": native(true) });
    Scenario::new(name, &tools)
        .define(|catalog| {
            catalog["models"] = json!({ "ma": model("ma"), "mb": model("mb") });
            let mut prompt = catalog["prompts"]["p"].clone();
            for (name, model) in [("pa", "ma"), ("pb", "mb")] {
                prompt["model"] = model.into();
                catalog["prompts"][name] = prompt.clone();
            }
            let side = |prompt: &str| {
                json!({ "prompt": prompt,
                    "sessionStop": { "name": "finish", "messageProperty": "summary", "attachmentsProperty": "files" },
                    "sessionFail": { "name": "give_up", "messageProperty": "summary" } })
            };
            catalog["agents"]["helper"] = json!({ "type": "dual_ai", "maxSessionTurns": 10,
                "sideA": side("pa"), "sideB": side("pb") });
            edit(catalog);
        })
        .setup(work)
        .setup(|sim| {
            sim.world.outside.native("end", |_, _| Native::Gives(0, ToolResult::success("ended")));
        })
        .terms(|terms| terms.one_answer = false)
}

/// Texts that the asked model has said itself. The person's message is of side B too.
fn own(request: &ModelRequest) -> usize {
    let is_own = |text: &&&str| text.starts_with(['a', 'b', 'A', 'B']);
    request.texts("assistant").iter().filter(is_own).count()
}

/// A works before it speaks; B speaks; after two rounds A ends the session.
fn debate() -> Scenario {
    two_sides("a debate", |_| {})
        .says(|request| {
            let (n, last) = (own(request), request.messages().last().unwrap());
            match (request.model.as_str(), n) {
                ("ma", 2) => Say::call("finish", &json!({ "summary": "agreed" })),
                ("ma", _) if last["role"] != "tool" => Say::call("work", &json!({ "n": n })),
                ("ma", n) => Say::text(format!("A{n}")).chunks(2),
                (_, n) => Say::text(format!("B{n}")).chunks(2),
            }
        })
        .drive(|sim| async move {
            let outcome = sim.ask("Talk.").await;
            assert_eq!(outcome["reason"], "session_stop", "{outcome}");
            assert_eq!(outcome["result"], json!({ "text": "agreed" }));
        })
        .check(|sim, history| {
            let said: Vec<&str> = history
                .messages
                .iter()
                .filter(|m| m["role"] != "tool" && m["tool_calls"].is_null())
                .filter_map(|m| m["content"].as_str())
                .collect();
            assert_eq!(said, ["Talk.", "A0", "B0", "A1", "B1"]);
            for result in &history.texts("tool")[..2] {
                assert!(
                    result.starts_with('w') || history.faults > 0 && *result == INDETERMINATE,
                    "{result}"
                );
            }
            let requests = sim.world.outside.requests.borrow();
            let told = |request: &ModelRequest| -> Vec<String> {
                let of = |m: &Value| {
                    format!("{} {}", m["role"].as_str().unwrap(), m["content"].as_str().unwrap_or("-"))
                };
                request.messages().iter().skip(1).map(of).collect()
            };
            let last_of = |model: &str| told(requests.iter().rfind(|r| r.model == model).unwrap());
            // The other side's calls and their results are its own affair.
            assert_eq!(last_of("mb"), ["assistant Talk.", "user A0", "assistant B0", "user A1"]);
            let seen = last_of("ma");
            assert_eq!(seen.iter().filter(|line| line.starts_with("tool")).count(), 2, "{seen:?}");
            let spoken: Vec<&String> =
                seen.iter().filter(|line| !line.starts_with("tool") && *line != "assistant -").collect();
            assert_eq!(spoken, ["user Talk.", "assistant A0", "user B0", "assistant A1", "user B1"]);
        })
}

#[test]
fn two_sides_take_turns_and_see_each_other_as_the_user_whatever_fails() {
    debate().sweep();
}

type Signals = std::rc::Rc<std::cell::RefCell<Vec<bobbin::engine::AbortSignal>>>;

/// B asks for another turn of its own, and then the run is stopped by code.
fn forced() -> Scenario {
    let signals = Signals::default();
    let given = signals.clone();
    two_sides("forced turns", |_| {})
        .setup(move |sim| {
            let given = given.clone();
            sim.world.outside.native("work", move |call, before| {
                let (state, n) = (call.state.clone(), call.args["n"].as_i64());
                let given = given.clone();
                Native::Acts(Box::new(move || {
                    let execution = state.execution().unwrap().unwrap();
                    let asked = match n {
                        Some(0) => execution.force_turn(Side::A),
                        Some(1) => execution.force_turn(execution.current_side),
                        _ => execution.stop(),
                    };
                    asked.unwrap();
                    let now = state.execution().unwrap().unwrap();
                    let stopped = n != Some(0) && n != Some(1);
                    assert_eq!((now.stopped, now.stopped_by), (stopped, stopped.then_some(now.current_side)));
                    let history = now.message_history().unwrap();
                    assert_eq!(history[0]["content"], "Go.");
                    assert!(!now.abort_signal().is_aborted());
                    given.borrow_mut().push(now.abort_signal());
                    let path = execution.prompt_path.join("/");
                    ToolResult::success(format!("{path} {} {before}", execution.current_side.as_str()))
                }))
            });
        })
        .says(|request| match (request.model.as_str(), request.texts("tool").len()) {
            ("ma", 0) if own(request) == 0 => Say::text("A0"),
            // Its turn is over without a text: A was forced to act.
            ("mb", 0) => Say::call("ask", &json!({ "n": 0 })),
            ("ma", 0) => Say::call("ask", &json!({ "n": 1 })),
            ("ma", 1) => Say::call("ask", &json!({ "n": 2 })),
            (model, n) => Say::text(format!("{model} {n}?")),
        })
        .terms(|terms| terms.outcomes = vec!["stopped"])
        .drive(move |sim| {
            let signals = signals.clone();
            async move {
                let outcome = sim.ask("Go.").await;
                assert_eq!(outcome["reason"], "stopped_by_code", "{outcome}");
                assert!(
                    signals.borrow().iter().all(bobbin::engine::AbortSignal::is_aborted),
                    "the run is over"
                );
            }
        })
        .check(|sim, history| {
            let sides: Vec<&str> =
                history.texts("tool").into_iter().filter(|text| *text != INDETERMINATE).collect();
            if history.faults == 0 {
                assert_eq!(sides, ["pb b 0", "pa a 1", "pa a 2"]);
                let models: Vec<String> =
                    sim.world.outside.requests.borrow().iter().map(|r| r.model.clone()).collect();
                assert_eq!(models, ["ma", "mb", "ma", "ma"]);
            }
        })
}

#[test]
fn code_decides_who_acts_next_and_when_it_ends() {
    forced().sweep();
}

fn talker(request: &ModelRequest) -> Say {
    Say::text(format!("{}{}", &request.model[1..], own(request)))
}

#[test]
fn a_session_has_no_more_turns_than_it_may_and_the_next_one_begins_anew() {
    two_sides("session turns", |catalog| catalog["agents"]["helper"]["maxSessionTurns"] = 3.into())
        .says(talker)
        .terms(|terms| terms.outcomes = vec!["failed"])
        .drive(|sim| async move {
            for (text, turns) in [("one", "a0 b0 a1"), ("two", "a2 b1 a3")] {
                let outcome = sim.ask(text).await;
                assert_eq!(outcome["reason"], "max_session_turns", "{outcome}");
                assert!(outcome["error"]["message"].as_str().unwrap().contains("3 turns"), "{outcome}");
                let all = sim.history().await;
                let rows = all.iter().rev().filter(|m| m["metadata"]["status_kind"].is_null()).take(3);
                let mut said: Vec<&str> = rows.filter_map(|m| m["content"].as_str()).collect();
                said.reverse();
                assert_eq!(said.join(" "), turns);
            }
        })
        .calm();
}

#[test]
fn the_first_message_decides_which_side_begins() {
    two_sides("who begins", |catalog| catalog["agents"]["helper"]["maxSessionTurns"] = 1.into())
        .says(talker)
        .terms(|terms| terms.outcomes = vec!["failed"])
        .drive(|sim| async move {
            let post = |role: &str| json!({ "role": role, "content": role });
            for (role, side) in [("assistant", "mb"), ("user", "ma"), ("assistant", "mb")] {
                sim.post(post(role)).await;
                let message = sim.accepted.borrow().last().cloned().unwrap();
                sim.outcome(&message).await;
                let last = sim.world.outside.requests.borrow().last().unwrap().model.clone();
                assert_eq!(last, side);
                sim.evict().await;
            }
        })
        .calm();
}

#[test]
fn a_stopped_session_goes_on_with_the_side_whose_turn_it_was() {
    two_sides("stop and go on", |catalog| catalog["agents"]["helper"]["maxSessionTurns"] = 4.into())
        .answers(|request| talker(request).stream(request.index).after(crate::host::SECOND_US))
        .terms(|terms| {
            terms.outcomes = vec!["stopped"];
            terms.overlap = true;
        })
        .drive(|sim| async move {
            let models = |sim: &Sim| -> Vec<String> {
                sim.world.outside.requests.borrow().iter().map(|r| r.model.clone()).collect()
            };
            sim.send("go").await;
            sim.until_requests(2).await;
            sim.stop().await;
            sim.evict().await;
            sim.go_on().await;
            sim.until_requests(3).await;
            assert_eq!(models(&sim), ["ma", "mb", "mb"]);
            sim.stop().await;
            let wrong = sim.once(ThreadRoute::Continue, &[], None, r#"{"side":"c"}"#.into()).await.unwrap();
            assert_eq!(wrong.status, 400, "{}", wrong.body);
            let seen = sim.insist(ThreadRoute::Continue, &[], None, r#"{"side":"a"}"#.into()).await;
            assert_eq!(seen.status, 202, "{}", seen.body);
            sim.until_requests(4).await;
            assert_eq!(models(&sim)[3], "ma");
            sim.stop().await;
        })
        .calm();
}

#[test]
fn a_session_tool_that_fails_or_names_missing_files_ends_nothing() {
    two_sides("a session goes on", |_| {})
        .says(|request| match request.texts("tool").last() {
            None => Say::call("finish", &json!({ "summary": "early", "files": ["/a", "/b.txt"] })),
            Some(text) if text.contains("/a, /b.txt") => Say::call("finish", &json!({ "files": 7 })),
            Some(_) => Say::call("give_up", &json!({ "summary": "cannot" })),
        })
        .terms(|terms| terms.outcomes = vec!["failed"])
        .drive(|sim| async move {
            let outcome = sim.ask("Go.").await;
            assert_eq!((&outcome["outcome"], &outcome["reason"]), (&json!("failed"), &json!("session_fail")));
            assert_eq!(outcome["error"]["message"], "cannot");
            assert_eq!(outcome["result"], json!({ "text": "cannot" }));
        })
        .check(|_, history: &History| {
            let results = history.texts("tool");
            assert!(results[0].ends_with("these files do not exist here: /a, /b.txt."), "{results:?}");
            assert_eq!(results.len(), 3);
            assert_eq!(history.statuses("run_failed").len(), 1);
        })
        .calm();
}

/// The tool that ends the session, sixty others, then one that takes its time: the rules look at all of them, also in a
/// process that has seen none, or after an edit.
fn ends_early(edited: bool) -> Scenario {
    super::story("a session that ends with the first of many calls")
        .define(|catalog| {
            catalog["tools"]["finish"] = super::native(true);
            catalog["prompts"]["p"]["tools"] = json!(["work", "finish"]);
            catalog["agents"]["helper"]["sideA"]["sessionStop"] = "finish".into();
        })
        .setup(|sim| {
            sim.world.outside.native("work", |call, _| {
                let us = if call.args["n"] == 60 { 2_000_000 } else { 0 };
                Native::Gives(us, ToolResult::success("noted"))
            });
        })
        .says(|request| match request.results().len() {
            0 => (1..=60).fold(Say::call("finish", &json!({ "n": 0 })), |say, n| {
                say.and_call("work", &json!({ "n": n }).to_string())
            }),
            _ => Say::text("the session did not end"),
        })
        .drive(move |sim| async move {
            sim.ask("hello").await;
            let message = sim.send("Do it.").await;
            if edited {
                let ran = |sim: &Sim| sim.world.outside.executions.borrow().len() == 122;
                sim.until("the last call", ran).await;
                let first = sim.history().await[0]["id"].as_str().unwrap().to_owned();
                let body = json!({ "content": "Hi." }).to_string();
                sim.insist(bobbin::request::ThreadRoute::PatchMessage(first), &[], None, body).await;
                sim.accepted.borrow_mut().clear();
            }
            let outcome = sim.outcome(&message).await;
            assert_eq!(outcome["reason"], "session_stop", "{outcome}");
        })
        .check(|_, history| assert!(!history.texts("assistant").contains(&"the session did not end")))
        .terms(|terms| terms.one_answer = false)
}

#[test]
fn a_session_ends_whatever_stands_behind_the_call_that_ends_it() {
    ends_early(true).calm();
    ends_early(false).sampled(40).sweep();
}

#[test]
fn with_a_person_each_message_has_a_session_of_its_own() {
    super::story("a cap on turns")
        .define(|catalog| catalog["agents"]["helper"]["maxSessionTurns"] = 2.into())
        .drive(|sim| async move {
            for text in ["one", "two", "three", "four"] {
                let outcome = sim.ask(text).await;
                assert_eq!(outcome["outcome"], "completed", "{outcome}");
            }
        })
        .calm();
}
