//! Secrets of variables: what is shown in their place.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bobbin::definitions::message::ToolResult;
use bobbin::engine::{EndpointAnswer, NewMessage};
use bobbin::host::Filter;
use bobbin::request::ThreadRoute;
use futures::FutureExt;
use serde_json::{Value, json};

use super::env::{TOKEN, nowhere, patch, system, told, work};
use crate::host::{Answer, Handler, Native, SECOND_US, TOOL_URL};
use crate::sim::Ask;

#[test]
fn a_part_shows_nothing_of_a_value_that_is_a_secret() {
    told("a secret city")
        .setup(|sim| *sim.born.borrow_mut() = json!({ "agent_id": "helper", "env": { "CITY": "Atlantis" } }))
        .define(|catalog| catalog["prompts"]["p"]["env"] = json!({ "CITY": "Lisbon" }))
        .drive(|sim| async move {
            sim.ask("hello").await;
            sim.ask("again").await;
            assert_eq!(system(&sim), "You help in .");
            let lines =
                sim.world.log.borrow().iter().filter(|line| line.contains("CITY is a secret")).count();
            assert_eq!(lines, 1);
            let seen = patch(&sim, json!({ "env_type_patch": { "CITY": "text" } })).await;
            assert_eq!((seen.status, &seen.body["error"]["field"]), (400, &json!("env_type_patch.CITY")));
            assert!(seen.body["error"]["message"].as_str().unwrap().contains("is a secret"), "{}", seen.body);
            let atlantis =
                json!({ "env_patch": { "CITY": "Atlantis" }, "env_type_patch": { "CITY": "text" } });
            assert_eq!(patch(&sim, atlantis).await.status, 200);
            sim.ask("hello").await;
            assert_eq!(system(&sim), "You help in Atlantis.");
        })
        .calm();
}

#[test]
fn secrets_are_taken_out_of_everything_that_is_told() {
    told("redaction")
        .define(|catalog| {
            let secret = json!([{ "name": "TOKEN", "type": "secret" }]);
            let run = |path: &str| json!({ "http": { "url": format!("{TOOL_URL}/{path}"),
                "headers": { "x-key": "{{env TOKEN}}" } } });
            catalog["tools"]["echo"] = json!({ "description": "d", "run": run("echo") });
            catalog["tools"]["fails"] = json!({ "description": "d", "run": run("fails") });
            catalog["prompts"]["p"]["tools"] = json!(["work", "echo", "fails"]);
            catalog["effects"] = json!({ "ring": { "description": "d", "run": { "native": "ring" }, "attempts": 1,
                "variables": secret } });
            catalog["endpoints"] = json!({
                "GET /leak": { "run": { "native": "leak" }, "variables": secret },
                "GET /fails": { "run": { "native": "fails" }, "variables": secret },
                "GET /refuses": { "run": { "native": "refuses" }, "variables": secret },
            });
        })
        .setup(|sim| {
            *sim.born.borrow_mut() = json!({ "agent_id": "helper", "env": { "TOKEN": TOKEN } });
            let outside = &sim.world.outside;
            work(sim, |call| {
                let token = call.env["TOKEN"].as_str().unwrap();
                call.state.emit("leak", json!({ "token": token }));
                let message = NewMessage::user(format!("mine is {token}"));
                call.state.inject_message(message).now_or_never().unwrap().unwrap();
                let basic = STANDARD.encode(format!("user:{token}"));
                ToolResult { result: Some(json!({ "token": token, "basic": basic })), ..ToolResult::success("") }
            });
            outside.server("/echo", |request, _| {
                let key = request.headers.iter().find(|(name, _)| name == "x-key").unwrap();
                assert_eq!(key.1, TOKEN);
                Answer::status(200, &key.1)
            });
            outside.server("/fails", |request, _| {
                let key = request.headers.iter().find(|(name, _)| name == "x-key").unwrap();
                Answer::status(401, format!("bad key {}", key.1))
            });
            outside.effect("ring", |call, _| {
                Native::Gives(SECOND_US, ToolResult::error(format!("no line for {}", call.env["TOKEN"].as_str().unwrap())))
            });
            for name in ["leak", "fails", "refuses"] {
                outside.endpoint(name, move |call| {
                    let token = call.env["TOKEN"].as_str().unwrap().to_owned();
                    Handler::Acts(0, Box::new(move || match name {
                        "leak" => Ok(EndpointAnswer::text(200, &token).header("x-token", &token)),
                        "refuses" => Err(bobbin::Error::field("token", format!("not {token}"))),
                        _ => Err(bobbin::Error::internal(format!("broke with {token}"))),
                    }))
                });
            }
        })
        .terms(|terms| terms.one_answer = false)
        .drive(|sim| async move {
            let listener = sim.listen(Filter { silent: true, ..Filter::default() }, None).await.unwrap();
            sim.ask("use work,echo,fails").await;
            let results: Vec<String> = sim.history().await.iter().filter(|m| m["role"] == "tool")
                .map(|m| m["content"].as_str().unwrap().to_owned()).collect();
            assert_eq!(results[0].matches("[redacted TOKEN]").count(), 2, "{}", results[0]);
            assert_eq!(results[1], "[redacted TOKEN]");
            assert_eq!(results[2], "http 401 from fails: bad key [redacted TOKEN]");
            let events: String = listener.frames.borrow().iter().map(|frame| frame.socket_text()).collect();
            assert!(events.contains(r#"{"token":"[redacted TOKEN]"}"#), "{events}");
            let seen = sim.insist(ThreadRoute::PostEffect, &[], None, json!({ "name": "ring" }).to_string()).await;
            assert_eq!(seen.status, 201);
            sim.world.pause(5 * SECOND_US).await;
            let effects = sim.get(ThreadRoute::ListEffects, &[]).await.to_string();
            assert!(effects.contains("no line for [redacted TOKEN]"), "{effects}");
            let mut answers = vec![effects];
            for path in ["/leak", "/fails", "/refuses"] {
                let answered = sim.reach(Ask::of("GET", path)).await.unwrap();
                answers.push(format!("{:?} {}", answered.headers, String::from_utf8_lossy(&answered.body)));
            }
            assert!(answers[1].contains("[redacted TOKEN]"), "{}", answers[1]);
            assert!(answers[3].contains("not [redacted TOKEN]"), "{}", answers[3]);
            answers.push(sim.get(ThreadRoute::ListLogs, &[]).await.to_string());
            assert!(answers[4].contains("broke with [redacted TOKEN]"), "{}", answers[4]);
            let escaped = Value::from(TOKEN).to_string();
            for answer in &answers {
                assert!(!answer.contains(TOKEN) && !answer.contains(&escaped[1..escaped.len() - 1]), "{answer}");
            }
            // What a person types is theirs.
            sim.ask("my pin is 1234").await;
        })
        .check(|sim, _| nowhere(sim, TOKEN))
        .calm();
}
