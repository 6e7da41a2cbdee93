//! Every way in which a text leaves the code that knows a secret: results, errors, hooks, messages, attachments, logs,
//! events, effects, endpoints, failures of models. Whatever is cut on the way is cut after the secret has gone, so not even
//! its beginning may be anywhere.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bobbin::definitions::message::ToolResult;
use bobbin::engine::{EndpointAnswer, FileOptions, MessageUpdate, NativeCall, NewAttachment, NewMessage};
use bobbin::request::ThreadRoute;
use futures::FutureExt;
use serde_json::{Value, json};

use super::env::{TOKEN, nowhere, told, work};
use super::hooks::react;
use super::subprompts::checking;
use crate::host::{Answer, Handler, Native, SECOND_US, TOOL_URL};
use crate::sim::Ask;
use crate::sweep::Scenario;

/// What no place may hold: shorter than any part that a cut could leave.
const BEGINNING: &str = "canary";

fn known(name: &'static str) -> Scenario {
    told(name)
        .setup(|sim| *sim.born.borrow_mut() = json!({ "agent_id": "helper", "env": { "TOKEN": TOKEN } }))
        .terms(|terms| {
            terms.one_answer = false;
            terms.texts_repeat = true;
            terms.more_requests = 4;
        })
        .check(|sim, _| nowhere(sim, BEGINNING))
}

fn http(path: &str) -> Value {
    json!({ "http": { "url": format!("{TOOL_URL}/{path}"), "headers": { "x-key": "{{env TOKEN}}" } } })
}

/// An error whose text has the secret where 1 KB ends, `part` bytes of it before that.
fn long(part: usize) -> String {
    format!("{}{TOKEN} and more", "x".repeat(1024 - part))
}

#[test]
fn an_error_is_cut_after_the_secret_has_gone() {
    known("cut errors")
        .define(|catalog| {
            let secret = json!([{ "name": "TOKEN", "type": "secret" }]);
            catalog["tools"]["fails"] = json!({ "description": "d", "run": http("fails") });
            catalog["prompts"]["p"]["tools"] = json!(["work", "fails"]);
            catalog["effects"] = json!({
                "ring": { "description": "d", "run": http("fails"), "attempts": 1 },
                "call": { "description": "d", "run": { "native": "call" }, "attempts": 1, "variables": secret },
            });
            catalog["endpoints"] = json!({ "GET /far": { "run": http("fails") } });
            catalog["hooks"] = json!({ "watch": { "hook": "after_create_message", "run": http("fails") } });
            catalog["agents"]["helper"]["hooks"] = json!(["watch"]);
        })
        .setup(|sim| {
            let outside = &sim.world.outside;
            outside.server("/fails", |_, before| Answer::status(500, long(1 + before % TOKEN.len())));
            outside.effect("call", |_, _| Native::Gives(SECOND_US, ToolResult::error(long(9))));
            work(sim, |_| ToolResult::error(long(5)));
        })
        .drive(|sim| async move {
            for _ in 0..6 {
                sim.ask("use fails,work").await;
            }
            for name in ["ring", "call"] {
                let body = json!({ "name": name }).to_string();
                assert_eq!(sim.insist(ThreadRoute::PostEffect, &[], None, body).await.status, 201);
            }
            sim.world.pause(10 * SECOND_US).await;
            let effects = sim.get(ThreadRoute::ListEffects, &[]).await.to_string();
            assert!(effects.contains("xxx[redac"), "{effects}");
            let answered = sim.reach(Ask::of("GET", "/far")).await.unwrap();
            assert_eq!(answered.status, 500);
            let logs = sim.get(ThreadRoute::ListLogs, &[]).await.to_string();
            assert!(!logs.contains(BEGINNING) && logs.contains("xxx[redac"), "{logs}");
        })
        .calm();
}

#[test]
fn what_a_provider_says_is_cut_after_the_secret_has_gone() {
    known("a provider's error")
        .terms(|terms| terms.outcomes = vec!["failed"])
        .answers(|request| Answer::status(400, long(10 + request.index % 7)))
        .drive(|sim| async move {
            let answer = sim.ask("hello").await;
            assert!(answer.to_string().contains("xxx[reda"), "{answer}");
        })
        .calm();
}

#[test]
fn hooks_show_no_secret_to_a_model_and_store_none() {
    const HOOKS: [&str; 6] = [
        "after_system_message",
        "filter_messages",
        "prefilter_llm_history",
        "before_create_message",
        "before_store_tool_result",
        "after_tool_call_success",
    ];
    known("hooks that tell")
        .define(|catalog| {
            for hook in HOOKS {
                catalog["hooks"][hook] = json!({ "hook": hook, "run": { "native": hook } });
            }
            catalog["agents"]["helper"]["hooks"] = json!(HOOKS);
        })
        .setup(|sim| {
            react(sim, "after_system_message", |call| Ok(json!(format!("{} {TOKEN}", call.args[0].as_str().unwrap()))));
            react(sim, "filter_messages", |call| {
                let mut messages = call.args[0].as_array().unwrap().clone();
                messages.insert(0, json!({ "role": "user", "content": format!("filtered {TOKEN}") }));
                let last = messages.len() - 1;
                let text = messages[last]["content"].as_str().unwrap_or_default().to_owned();
                if messages[last]["role"] == "tool" {
                    messages[last]["content"] = json!(format!("{text} {TOKEN}"));
                }
                Ok(json!(messages))
            });
            react(sim, "prefilter_llm_history", |call| {
                let mut messages = call.args[0].as_array().unwrap().clone();
                let parts = json!([{ "type": "text", "text": format!("in a part {TOKEN}") }, { "type": "text", "text": "two" }]);
                messages.insert(1, json!({ "role": "user", "content": parts }));
                messages.insert(2, json!({ "role": "assistant", "content": format!("said {}", STANDARD.encode(TOKEN)) }));
                Ok(json!(messages))
            });
            react(sim, "before_create_message", |call| {
                let text = call.args[0]["content"].as_str().unwrap_or_default().to_owned();
                let content = if call.args[0]["role"] == "tool" { json!(format!("{text} {TOKEN}")) } else { Value::Null };
                Ok(json!({ "metadata": { "kept": [TOKEN], TOKEN: 1 }, "content": content }))
            });
            for hook in ["before_store_tool_result", "after_tool_call_success"] {
                react(sim, hook, |_| Ok(json!({ "status": "success", "result": { "hooked": TOKEN } })));
            }
        })
        .drive(|sim| async move {
            sim.ask("use work").await;
            let history = json!(sim.history().await).to_string();
            assert!(history.contains(r#""kept":["[redacted TOKEN]"]"#), "{history}");
            let requests = sim.world.outside.requests.borrow().iter().map(|sent| sent.body.to_string()).collect::<String>();
            for told in ["filtered [redacted TOKEN]", "in a part [redacted TOKEN]", "said [redacted TOKEN]"] {
                assert!(requests.contains(told), "{told}: {requests}");
            }
        })
        .calm();
}

#[test]
fn what_blocks_a_run_shows_no_secret() {
    known("a hook that blocks")
        .terms(|terms| terms.outcomes = vec!["failed"])
        .define(|catalog| {
            let run = json!({ "native": "block" });
            catalog["hooks"]["block"] = json!({ "hook": "prefilter_llm_history", "run": run });
            catalog["agents"]["helper"]["hooks"] = json!(["block"]);
        })
        .setup(|sim| {
            react(sim, "block", |_| Ok(json!({ "block": true, "error": format!("not with {TOKEN}") })))
        })
        .drive(|sim| async move {
            let answer = sim.ask("hello").await;
            assert!(answer.to_string().contains("not with [redacted TOKEN]"), "{answer}");
        })
        .calm();
}

#[test]
fn code_shows_no_secret_in_messages_attachments_and_answers() {
    known("code that tells")
        .define(|catalog| {
            let run =
                json!({ "run": { "native": "leak" }, "variables": [{ "name": "TOKEN", "type": "secret" }] });
            catalog["endpoints"] = json!({ "GET /leak": run });
        })
        .setup(|sim| {
            work(sim, |call| {
                let image = NewAttachment::Inline {
                    name: format!("{TOKEN}.txt"),
                    mime_type: "text/plain".into(),
                    data: "an image".into(),
                    options: FileOptions::default(),
                    description: Some(format!("shows {TOKEN}")),
                };
                let message =
                    NewMessage { attachments: vec![image], ..NewMessage::user(format!("look: {TOKEN}")) };
                call.state.inject_message(message).now_or_never().unwrap().unwrap();
                call.state.emit(TOKEN, json!({ TOKEN: TOKEN }));
                ToolResult {
                    error: Some(TOKEN.into()),
                    error_code: Some(TOKEN.into()),
                    error_data: json!({ TOKEN: [TOKEN] }).as_object().cloned(),
                    ..ToolResult::error("x")
                }
            });
            sim.world.outside.endpoint("leak", |_| {
                let body = [b"\xff\xfe ".as_slice(), TOKEN.as_bytes()].concat();
                let answer = EndpointAnswer::bytes(200, "application/octet-stream", body)
                    .header("x-canary-4711-\"token\"", "1")
                    .header("x-key", TOKEN);
                Handler::Acts(0, Box::new(move || Ok(answer)))
            });
        })
        .drive(|sim| async move {
            sim.ask("use work").await;
            let history = json!(sim.history().await).to_string();
            assert!(history.contains("shows [redacted TOKEN]"), "{history}");
            let answered = sim.reach(Ask::of("GET", "/leak")).await.unwrap();
            let told = format!("{:?} {}", answered.headers, String::from_utf8_lossy(&answered.body));
            assert!(!told.contains(BEGINNING) && told.contains(" [redacted TOKEN]"), "{told}");
        })
        .calm();
}

/// Everything that code does with names of files, and what it hands to prompts, agents and other threads.
async fn hands_on(call: &NativeCall) -> bobbin::Result<String> {
    let state = &call.state;
    let meta = json!({ TOKEN: TOKEN }).as_object().cloned();
    let options = FileOptions { metadata: meta.clone(), ..FileOptions::default() };
    let path = format!("/made/{TOKEN}.txt");
    state.write_file(&path, b"the bytes", &format!("text/{TOKEN}"), options.clone())?;
    assert_eq!(state.read_file(&path)?.as_deref(), Some(b"the bytes".as_slice()), "it finds what it wrote");
    state.mkdir_file(&format!("/{TOKEN}/below"))?;
    state.move_file(&path, &format!("/moved-{TOKEN}"))?;
    let shown = NewAttachment::Inline {
        name: "a.txt".into(),
        mime_type: "text/plain".into(),
        data: "x".into(),
        options,
        description: None,
    };
    state.inject_message(NewMessage { attachments: vec![shown], ..NewMessage::user("with a file") }).await?;
    state.queue_tool("check", json!({ "what": TOKEN }))?;
    let told = state.invoke_tool("check", json!({ "what": format!("this {TOKEN}") })).await?;
    state.invoke_tool("leaf", json!({ "q": format!("see {TOKEN}") })).await?;
    let child = state.children()?.remove(0).reference;
    call_until(|| async { state.get_child_thread(&child)?.unwrap().identity().await }, call).await;
    let child = state.get_child_thread(&child)?.unwrap();
    child.write_file(&format!("/{TOKEN}.txt"), b"x", "text/plain").await?;
    assert!(child.read_file(&format!("/{TOKEN}.txt")).await?.is_some());
    let id = child.queue_message(NewMessage::user(format!("and {TOKEN}"))).await?;
    child.update_message(&id, MessageUpdate { metadata: meta.clone(), ..MessageUpdate::default() }).await?;
    state.set_status(TOKEN)?;
    Ok(told.text())
}

/// Asks until there is an answer.
async fn call_until<T, F: Future<Output = bobbin::Result<T>>>(ask: impl Fn() -> F, call: &NativeCall) {
    while ask().await.is_err() {
        (call.sleep)(SECOND_US / 10).await;
    }
}

#[test]
fn names_of_files_and_what_code_hands_on_show_no_secret() {
    known("code that hands on")
        .terms(|terms| {
            terms.pairs = false;
            terms.overlap = true;
        })
        .define(|catalog| {
            checking(catalog);
            catalog["prompts"]["leaf"] = json!({ "toolDescription": "d", "prompt": "A leaf.", "model": "m",
                "requiredSchema": { "type": "object", "properties": { "q": { "type": "string" } } } });
            catalog["agents"]["leaf"] = json!({ "type": "dual_ai", "exposeAsTool": true, "toolDescription": "d",
                "maxSessionTurns": 1, "sideA": { "prompt": "leaf" }, "sideB": { "prompt": "leaf" } });
            let leaf = json!({ "name": "leaf", "blocking": false, "initUserMessageProperty": "q" });
            let check = json!({ "name": "check", "initUserMessageProperty": "what" });
            catalog["prompts"]["p"]["tools"] = json!(["work", check, leaf]);
        })
        .setup(|sim| {
            sim.world.outside.native("work", |call, _| {
                let call = call.clone();
                Native::Works(Box::pin(async move {
                    match hands_on(&call).await {
                        Ok(text) => ToolResult { subagent_id: Some(TOKEN.into()), ..ToolResult::success(text) },
                        Err(error) => panic!("{error}"),
                    }
                }))
            });
        })
        .drive(|sim| async move {
            sim.ask("use work").await;
            sim.world.pause(20 * SECOND_US).await;
            let paths: Vec<String> = sim.member.database.ask("SELECT parent || name FROM files");
            let paths = paths.join(" ");
            assert!(paths.contains("moved-[redacted TOKEN]"), "{paths}");
            let requests = sim.world.outside.requests.borrow();
            let asked: String = requests.iter().map(|sent| sent.body.to_string()).collect();
            for told in ["this [redacted TOKEN]", "see [redacted TOKEN]"] {
                assert!(asked.contains(told), "{told}: {asked}");
            }
        })
        .check(|sim, _| super::family_env::no_secrets_of(sim, &[BEGINNING]))
        // In another order the child has come to its end before all of this.
        .once();
}

#[test]
fn names_and_ids_of_calls_that_hooks_make_up_show_no_secret() {
    const HOOKS: [&str; 2] = ["filter_messages", "prefilter_llm_history"];
    known("hooks that make calls up")
        .define(|catalog| {
            for hook in HOOKS {
                catalog["hooks"][hook] = json!({ "hook": hook, "run": { "native": hook } });
            }
            catalog["agents"]["helper"]["hooks"] = json!(HOOKS);
        })
        .setup(|sim| {
            for hook in HOOKS {
                react(sim, hook, move |call| {
                    let mut messages = call.args[0].as_array().unwrap().clone();
                    let id = format!("{hook}-{TOKEN}");
                    let function = json!({ "name": format!("n-{TOKEN}"), "arguments": format!("{{\"a\":\"{TOKEN}\"}}") });
                    let made = [
                        json!({ "role": "user", "content": "made up", "name": TOKEN }),
                        json!({ "role": "assistant", "content": TOKEN,
                            "tool_calls": [{ "id": id, "type": "function", "function": function }] }),
                        json!({ "role": "tool", "tool_call_id": id, "name": TOKEN, "content": format!("gave {TOKEN}") }),
                    ];
                    let place = usize::from(hook != "filter_messages");
                    messages.splice(place..place, made);
                    Ok(json!(messages))
                });
            }
        })
        .drive(|sim| async move {
            sim.ask("hello").await;
            let requests = sim.world.outside.requests.borrow();
            let sent = requests.last().unwrap();
            assert_eq!(sent.texts("tool").iter().filter(|text| text.contains("gave [redacted TOKEN]")).count(), 2);
            let body = sent.body.to_string();
            assert!(!body.contains("Not run"), "each call still has its result: {body}");
        })
        .calm();
}

#[test]
fn no_text_is_cut_or_logged_past_the_one_place_that_does_it() {
    let mut wrong = Vec::new();
    let checkout = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut folders = vec![checkout.join("src"), checkout.join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            let cuts = text.contains("floor_char_boundary") || text.contains("is_char_boundary(end");
            let logs = text.contains("host.log(") && !name.contains("/src/directory/");
            let places = ["/engine/env/secrets.rs", "/memory/shared/values.rs"];
            if (cuts && !name.ends_with("/crates/definitions/src/text.rs"))
                || (logs && !places.iter().any(|place| name.ends_with(place)))
            {
                wrong.push(name);
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "cut with `text::first_bytes`, log with `Thread::log` or `SharedMemory::log`: {wrong:?}"
    );
}
