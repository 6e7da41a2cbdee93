//! What spans say of the answers of providers, in the words of these.

use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::story;
use crate::host::collector::attribute;
use crate::host::{Answer, SECOND_US};
use crate::sim::Sim;
use crate::sweep::Scenario;

/// A whole answer of a provider.
fn whole(id: &Value, model: &Value) -> Answer {
    let choice = json!({ "index": 0, "message": { "content": "fine" }, "finish_reason": "stop" });
    Answer::json(&json!({ "id": id, "model": model, "choices": [choice] }))
}

/// Attributes of the attempts of the first run: whether they streamed, the answer's id, and its model.
fn told(sim: &Sim) -> Vec<[Value; 3]> {
    let asked = sim.clone();
    let route = ThreadRoute::GetSpans("r_1".to_owned());
    let body = sim.world.drive(async move { asked.get(route, &[]).await });
    let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().cloned().unwrap();
    let attempts = spans.into_iter().filter(|span| span["name"] == "chat m");
    let names = ["gen_ai.request.stream", "gen_ai.response.id", "gen_ai.response.model"];
    attempts.map(|span| names.map(|name| attribute(&span, name))).collect()
}

fn answered(name: &'static str, answer: impl Fn() -> Answer + Clone + 'static) -> Scenario {
    story(name).answers(move |_| answer()).drive(|sim| async move {
        sim.ask("hello").await;
    })
}

#[test]
fn attempts_say_what_providers_call_their_answers() {
    story("an answer has a name")
        .drive(|sim| async move {
            sim.ask("hello").await;
        })
        .check(|sim, _| assert_eq!(told(sim), [[json!(true), json!("chatcmpl-0"), json!("m")]]))
        .calm();
}

#[test]
fn what_is_not_told_is_left_out_and_what_is_told_is_bounded() {
    answered("an answer without a name", || whole(&Value::Null, &json!(" ")))
        .define(|catalog| catalog["models"]["m"]["capabilities"] = json!({ "supportsStreaming": false }))
        .check(|sim, _| assert_eq!(told(sim), [[json!(false), Value::Null, Value::Null]]))
        .once();
    let long = || "\u{20ac}".repeat(10_000);
    answered("an answer with a long name", move || whole(&json!(long()), &json!(["gpt", "-5"])))
        .check(move |sim, _| {
            let cut = "\u{20ac}".repeat(bobbin::limits::RESPONSE_NAME_BYTES / 3);
            assert_eq!(told(sim), [[json!(true), json!(cut), json!("gpt-5")]]);
        })
        .once();
}

#[test]
fn a_failed_attempt_says_it_too_and_never_the_key() {
    story("answers that fail")
        .define(|catalog| catalog["models"]["m"]["apiKeyEnv"] = json!("PROVIDER_KEY"))
        .setup(|sim| {
            sim.world.vars.borrow_mut().insert("PROVIDER_KEY".into(), "sk-canary".into());
        })
        .answers(|request| match request.index {
            0 => {
                let chunk = json!({ "id": "resp sk-canary", "model": "m-1", "choices": [{ "delta": { "content": "a" } }] });
                Answer { headers: Vec::new(), ..Answer::status(200, format!("data: {chunk}\n\n")) }
            }
            _ => whole(&json!("resp_2"), &json!("m-2")),
        })
        .drive(|sim| async move {
            sim.ask("hello").await;
            sim.world.pause(SECOND_US).await;
        })
        .check(|sim, _| {
            let expected = [
                [json!(true), Value::Null, json!("m-1")],
                [json!(true), json!("resp_2"), json!("m-2")],
            ];
            assert_eq!(told(sim), expected);
            let rows: Vec<String> = sim.member.database.ask("SELECT data FROM logs WHERE kind = 'llm_request'");
            assert!(!rows.concat().contains("canary"), "{rows:?}");
        })
        .once();
}
