//! Hooks: when each runs and on what, what becomes of its answer, and what else they do. That nothing is transformed twice
//! is in `hooks_once`, what a failure leaves in `hooks_failing`.

use std::cell::Cell;
use std::rc::Rc;

use bobbin::Code;
use bobbin::definitions::message::ToolResult;
use bobbin::engine::{HookCall, NewMessage};
use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::story;
use crate::host::outside::Asked;
use crate::host::{Answer, Native, SECOND_US, TOOL_URL};
use crate::sim::Sim;
use crate::sweep::Scenario;

/// Those that a conversation without subagents comes by.
pub const ALL: [&str; 11] = [
    "after_thread_created",
    "after_system_message",
    "filter_messages",
    "prefilter_llm_history",
    "before_create_message",
    "after_create_message",
    "before_update_message",
    "after_update_message",
    "before_store_tool_result",
    "after_tool_call_success",
    "after_tool_call_failure",
];

/// The clerk and the tool `work`, with these hooks of the agent; the id of each is its name.
pub fn hooked(name: &'static str, hooks: &'static [&'static str]) -> Scenario {
    behind(Kind::Native, name, hooks)
}

#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Native,
    Http,
}

pub fn behind(kind: Kind, name: &'static str, hooks: &'static [&'static str]) -> Scenario {
    let run = move |hook: &str| match kind {
        Kind::Native => json!({ "native": hook }),
        Kind::Http => json!({ "http": { "url": format!("{TOOL_URL}/{hook}") } }),
    };
    story(name)
        .define(move |catalog| {
            for hook in hooks {
                catalog["hooks"][hook] = json!({ "hook": hook, "run": run(hook) });
            }
            catalog["agents"]["helper"]["hooks"] = json!(hooks);
        })
        .setup(move |sim| {
            for hook in hooks {
                // Where `null` would drop the call, the result as it is.
                let drops = hook.starts_with("after_tool_call");
                react(sim, hook, move |call| Ok(if drops { call.args[1].clone() } else { Value::Null }));
            }
        })
        .terms(|terms| {
            terms.texts_repeat = true;
            terms.more_requests = 2;
        })
}

/// What a native hook gives, at once.
pub fn react(sim: &Sim, hook: &str, gives: impl Fn(&HookCall) -> Result<Value, String> + 'static) {
    sim.world.outside.hook(hook, move |call| {
        let given = gives(&call);
        Box::pin(async move { given })
    });
}

/// What hooks were asked, their names in order.
pub fn asked(sim: &Sim) -> Vec<String> {
    sim.world.outside.hooked.borrow().iter().map(|asked| asked.hook.clone()).collect()
}

pub fn asked_of(sim: &Sim, hook: &str) -> Vec<Asked> {
    sim.world.outside.hooked.borrow().iter().filter(|asked| asked.hook == hook).cloned().collect()
}

/// What the log says of failed hooks: name and error.
pub fn failures(sim: &Sim) -> Vec<(String, String)> {
    let rows: Vec<String> = sim.world.database.ask("SELECT data FROM logs WHERE kind = 'hook' ORDER BY id");
    let of = |text: &String| {
        let data: Value = serde_json::from_str(text).unwrap();
        let field = |name: &str| data[name].as_str().unwrap().to_owned();
        assert!(field("hook_call_id").ends_with(&field("hook_id")), "{data}");
        (field("hook"), field("error"))
    };
    rows.iter().map(of).collect()
}

#[test]
fn each_hook_runs_in_its_place_and_is_given_what_it_is_for() {
    hooked("the order", &ALL)
        .drive(|sim| async move {
            sim.ask("use work").await;
        })
        .check(|sim, _| {
            let request = ["after_system_message", "filter_messages", "prefilter_llm_history"];
            let message = ["before_create_message", "after_create_message"];
            let mut expected = vec!["after_thread_created"];
            expected.extend(message);
            expected.extend(request);
            expected.extend(message);
            expected.extend(["after_tool_call_success", "before_store_tool_result"]);
            expected.extend(message);
            expected.extend(request);
            expected.extend(message);
            assert_eq!(asked(sim), expected);

            let of = |hook: &str| asked_of(sim, hook);
            assert_eq!(of("after_thread_created")[0].args, [json!(null); 0]);
            assert_eq!(of("after_system_message")[0].args, [json!("You help.")]);
            let [user, reply, result, answer] = &of("before_create_message")[..] else { panic!() };
            assert_eq!(
                (&user.args[0]["role"], &user.args[0]["content"]),
                (&json!("user"), &json!("use work"))
            );
            assert_eq!(user.args[0]["silent"], false);
            assert_eq!(reply.args[0]["role"], "assistant");
            assert!(reply.args[0]["tool_calls"].as_str().unwrap().contains("\"name\":\"work\""));
            assert_eq!((&result.args[0]["role"], &result.args[0]["content"]), (&json!("tool"), &json!("w0")));
            assert_eq!(answer.args[0]["content"], "done: w0");
            let [success] = &of("after_tool_call_success")[..] else { panic!() };
            assert_eq!(success.args[0]["function"]["name"], "work");
            assert_eq!(success.args[1], json!({ "status": "success", "result": "w0" }));
            let stored = &of("filter_messages")[1].args[0];
            let roles: Vec<&str> =
                stored.as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
            assert_eq!(roles, ["user", "assistant", "tool"]);
            assert!(stored[0]["id"].as_str().unwrap().starts_with("m_"));
            let sent = &of("prefilter_llm_history")[1].args[0];
            let bare = json!({ "role": "system", "content": "You help." });
            assert_eq!((&sent[0], sent.as_array().unwrap().len()), (&bare, 4));
            assert_eq!(
                sent[3],
                json!({ "role": "tool", "tool_call_id": sent[2]["tool_calls"][0]["id"],
                "name": "work", "content": "w0" })
            );

            // Each event has an id of its own.
            let mut ids: Vec<String> =
                sim.world.outside.hooked.borrow().iter().map(|asked| asked.call_id.clone()).collect();
            let total = ids.len();
            ids.sort();
            ids.dedup();
            assert_eq!(ids.len(), total);
            assert!(ids.iter().all(|id| id.starts_with("6f0c0000-0000-4000-8000-000000000001/h")), "{ids:?}");
        })
        .calm();
}

#[test]
fn a_prompt_that_lists_hooks_replaces_the_agents_and_one_name_may_have_several() {
    hooked("lists", &["before_create_message"])
        .define(|catalog| {
            for id in ["first", "second", "other"] {
                let hook = if id == "other" { "before_create_message" } else { "after_system_message" };
                catalog["hooks"][id] = json!({ "hook": hook, "run": { "native": id } });
            }
            catalog["prompts"]["p"]["hooks"] = json!(["second", "first"]);
            catalog["prompts"]["persona"] =
                json!({ "toolDescription": "d", "prompt": "x", "model": "m", "hooks": ["other"] });
        })
        .setup(|sim| {
            for id in ["first", "second"] {
                react(sim, id, move |call| Ok(format!("{} {id}", call.args[0].as_str().unwrap()).into()));
            }
        })
        .drive(|sim| async move {
            sim.ask("hello").await;
        })
        .check(|sim, _| {
            assert_eq!(asked(sim), ["after_system_message"; 2]);
            assert_eq!(sim.world.outside.requests.borrow()[0].texts("system"), ["You help. second first"]);
        })
        .calm();
}

#[test]
fn what_hooks_make_of_a_request_is_sent_and_not_stored() {
    hooked("requests", &["after_system_message", "filter_messages", "prefilter_llm_history"])
        .setup(|sim| {
            react(sim, "after_system_message", |call| {
                Ok(format!("{} Today.", call.args[0].as_str().unwrap()).into())
            });
            // Leaves the first message out, moves results to the front, changes a text, adds one.
            react(sim, "filter_messages", |call| {
                let mut messages = call.args[0].as_array().unwrap().clone();
                messages.sort_by_key(|message| message["role"] != "tool");
                messages.retain(|message| message["content"] != "secret");
                for message in &mut messages {
                    if message["role"] == "user" {
                        message["content"] = message["content"].as_str().unwrap().replace("me", "you").into();
                    }
                }
                messages.insert(0, json!({ "role": "user", "content": "first" }));
                Ok(messages.into())
            });
            react(sim, "prefilter_llm_history", |call| {
                let mut messages = call.args[0].as_array().unwrap().clone();
                messages.insert(1, json!({ "role": "system", "content": "Be brief." }));
                // A result without its call, a call without its result, a reply at the end.
                messages.insert(2, json!({ "role": "tool", "tool_call_id": "nobody", "content": "x" }));
                let call = json!([{ "id": "lost", "type": "function",
                    "function": { "name": "work", "arguments": "{}" } }]);
                messages.push(json!({ "role": "assistant", "content": "and", "tool_calls": call }));
                messages.push(json!({ "role": "assistant", "content": "so" }));
                Ok(messages.into())
            });
        })
        .answers(|request| {
            // The hooks have hidden what was said last.
            match request.index {
                1 => crate::host::Say::call("work", &json!({})).stream(1),
                n => crate::host::Say::text(format!("re {n}")).stream(n),
            }
        })
        .drive(|sim| async move {
            sim.ask("secret").await;
            sim.ask("tell me").await;
        })
        .check(|sim, history| {
            let requests = sim.world.outside.requests.borrow();
            let last = requests.last().unwrap();
            let said: Vec<(String, String)> = last
                .messages()
                .iter()
                .map(|m| {
                    (m["role"].as_str().unwrap().into(), m["content"].as_str().unwrap_or_default().into())
                })
                .collect();
            let said: Vec<(&str, &str)> = said.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
            assert_eq!(
                said,
                [
                    ("system", "You help. Today."),
                    ("system", "Be brief."),
                    ("user", "first"),
                    ("assistant", "re 0"),
                    ("user", "tell you"),
                    ("assistant", ""),
                    ("tool", "w0"),
                    ("assistant", "and"),
                    ("tool", "Not run: the run was stopped."),
                    ("assistant", "so"),
                    ("user", "Continue."),
                ]
            );
            assert_eq!(history.texts("user"), ["secret", "tell me"]);
            assert_eq!(history.texts("tool"), ["w0"]);
            assert!(failures(sim).is_empty());
        })
        .calm();
}

#[test]
fn a_hook_may_stop_the_run_before_the_model_is_called() {
    for kind in [Kind::Native, Kind::Http] {
        behind(kind, "blocked", &["prefilter_llm_history"])
            .setup(|sim| {
                let blocked = json!({ "error": "Not here.", "block": true });
                let told = blocked.clone();
                react(sim, "prefilter_llm_history", move |_| Ok(told.clone()));
                sim.world.outside.server("/prefilter_llm_history", move |_, before| match before {
                    0 => Answer::json(&blocked),
                    _ => Answer::json(&json!({ "value": blocked })),
                });
            })
            .drive(|sim| async move {
                for text in ["hello", "again"] {
                    let outcome = sim.ask(text).await;
                    if outcome["outcome"] == "failed" {
                        assert_eq!(outcome["reason"], "hook_blocked");
                        let told = outcome["error"]["message"].as_str().unwrap();
                        assert!(told.ends_with("Not here."), "{told}");
                    }
                }
            })
            .terms(|terms| terms.outcomes = vec!["failed", "completed"])
            .check(|sim, history| {
                // A panic in the hook is its failure: then it has blocked nothing.
                let failed = failures(sim).len();
                assert!(failed <= history.faults);
                assert_eq!(sim.world.outside.requests.borrow().len(), failed);
                assert_eq!(history.statuses("run_failed").len(), 2 - failed);
            })
            .sweep();
    }
}

#[test]
fn changes_of_messages_pass_their_hooks() {
    hooked("updates", &["before_update_message", "after_update_message"])
        .setup(|sim| {
            react(sim, "before_update_message", |call| {
                let content = call.args[1]["content"].as_str().unwrap();
                Ok(json!({ "content": format!("{content}!") }))
            });
        })
        .drive(|sim| async move {
            let message = sim.send("hello").await;
            sim.outcome(&message).await;
            sim.accepted.borrow_mut().clear();
            for content in ["one", "two"] {
                let body = json!({ "content": content }).to_string();
                let seen = sim.insist(ThreadRoute::PatchMessage(message.id.clone()), &[], None, body).await;
                assert_eq!(seen.status, 200);
            }
            for (id, body, status) in [("m_6f0c0000_9", "x", 404), (message.id.as_str(), " ", 400)] {
                let body = json!({ "content": body }).to_string();
                let seen = sim.insist(ThreadRoute::PatchMessage(id.into()), &[], None, body).await;
                assert_eq!(seen.status, status);
            }
            let before = asked_of(&sim, "before_update_message");
            let after = asked_of(&sim, "after_update_message");
            assert_eq!((before.len(), after.len()), (2, 2), "nothing is asked about what is refused");
            assert_eq!(before[1].args, [json!(message.id), json!({ "content": "two" })]);
            assert_eq!(after[1].args[0]["content"], "two!");
            assert_ne!(before[0].call_id, before[1].call_id);
        })
        .check(|_, history| assert_eq!(history.texts("user"), ["two!"]))
        .terms(|terms| terms.one_answer = false)
        .calm();
}

#[test]
fn code_injects_through_hooks_and_a_failure_rejects() {
    hooked("injected", &["before_create_message", "after_create_message"])
        .setup(|sim| {
            react(sim, "before_create_message", |call| {
                let mut message = call.args[0].clone();
                match message["content"].as_str() {
                    Some("refused") => Err("not that".into()),
                    Some(text) if message["role"] == "user" => {
                        message["content"] = format!("{text}!").into();
                        Ok(message)
                    }
                    _ => Ok(Value::Null),
                }
            });
            sim.world.outside.native("work", |call, _| {
                let state = call.state.clone();
                Native::Works(Box::pin(async move {
                    let error = state.inject_message(NewMessage::user("refused")).await.unwrap_err();
                    assert_eq!(error.code, Code::HookFailed);
                    assert!(error.message.ends_with("not that."), "{error}");
                    state.inject_message(NewMessage::user("aside")).await.unwrap();
                    ToolResult::success("w0")
                }))
            });
        })
        .drive(|sim| async move {
            sim.ask("use work").await;
        })
        .says(|request| match request.index {
            0 => crate::host::Say::call("work", &json!({})),
            _ => crate::host::Say::text("done"),
        })
        .check(|sim, history| {
            assert_eq!(history.texts("user"), ["use work!", "aside!"]);
            let of_aside = |hook: &str| {
                asked_of(sim, hook)
                    .iter()
                    .filter(|asked| asked.args[0]["content"].as_str().unwrap().starts_with("aside"))
                    .count()
            };
            assert_eq!((of_aside("before_create_message"), of_aside("after_create_message")), (1, 1));
            assert_eq!(failures(sim), [("before_create_message".into(), "not that".into())]);
        })
        .calm();
}

/// A hook that greets: the creation does not wait for it, the first run does, and its message comes once.
#[test]
fn a_new_thread_is_told_of_before_anything_else_and_its_creation_does_not_wait() {
    hooked("greeting", &["after_thread_created", "before_create_message"])
        .setup(|sim| {
            sim.world.outside.hook("after_thread_created", |call| {
                Box::pin(async move {
                    (call.sleep)(20 * SECOND_US).await;
                    let greeting = NewMessage {
                        role: bobbin::definitions::message::Role::System,
                        ..NewMessage::user("Welcome.")
                    };
                    call.state.inject_message(greeting).await.map_err(|error| error.into_message())?;
                    Ok(Value::Null)
                })
            });
        })
        .drive(|sim| async move {
            assert!(sim.world.now_us() < 5 * SECOND_US + crate::host::world::START_US);
            sim.ask("hello").await;
            sim.evict().await;
            sim.ask("again").await;
        })
        .check(|sim, _| {
            assert_eq!(asked_of(sim, "after_thread_created").len(), 1);
            let requests = sim.world.outside.requests.borrow();
            assert_eq!(requests[0].texts("system"), ["You help.", "Welcome."]);
            // What a hook injects passes no hook of its own.
            assert!(
                asked_of(sim, "before_create_message").iter().all(|a| a.args[0]["content"] != "Welcome.")
            );
        })
        .calm();
}

#[test]
fn a_hook_that_ends_the_run_it_runs_in_ends_it_cleanly() {
    for hook in
        ["before_create_message", "after_system_message", "after_tool_call_success", "after_create_message"]
    {
        hooked("ends", &ALL)
            .setup(move |sim| {
                let asked = Rc::new(Cell::new(0));
                react(sim, hook, move |call| {
                    asked.set(asked.get() + 1);
                    call.state.terminate().unwrap();
                    Ok(Value::Null)
                });
            })
            .drive(|sim| async move {
                sim.ask("use work").await;
            })
            .terms(|terms| {
                terms.outcomes = vec!["stopped"];
                terms.pairs = false;
            })
            .check(move |sim, _| {
                assert_eq!(asked_of(sim, hook).len(), 1);
                assert!(sim.world.log.borrow().iter().all(|line| !line.contains("broke off")), "{hook}");
            })
            .calm();
    }
}

#[test]
fn a_thread_without_hooks_asks_nobody_and_pays_nothing() {
    let cost = |hooks: Value| {
        let spent = Rc::new(Cell::new((0, 0)));
        let place = spent.clone();
        story("cost")
            .define(move |catalog| {
                catalog["hooks"]["trim"] =
                    json!({ "hook": "filter_messages", "run": { "native": "keep_last_20" } });
                catalog["agents"]["helper"]["hooks"] = hooks;
            })
            .drive(move |sim| {
                let place = place.clone();
                async move {
                    sim.ask("hello").await;
                    sim.until("rest", |sim| sim.world.executor.waiting(false).is_empty()).await;
                    let (_, used) = sim
                        .spent(async {
                            sim.send("use work").await;
                            sim.until("rest", |sim| sim.world.executor.waiting(false).is_empty()).await;
                        })
                        .await;
                    place.set((used.statements, used.written));
                }
            })
            .once();
        spent.get()
    };
    // Hooks of requests store nothing, so they cost no statement either.
    assert_eq!(cost(json!([])), cost(json!(["trim"])));
}

#[test]
fn hooks_are_given_the_values_that_they_name() {
    for (run, value) in [("http", "k-secret-1"), ("native", "k-secret-1"), ("http", ""), ("native", "")] {
        story("values of hooks")
            .define(move |catalog| {
                let http = json!({ "http": { "url": format!("{TOOL_URL}/key"),
                    "headers": { "authorization": "Bearer {{env HOOK_KEY}}" } } });
                catalog["hooks"]["keyed"] = json!({ "hook": "after_system_message",
                    "run": if run == "http" { http } else { json!({ "native": "keyed" }) },
                    "variables": [{ "name": "HOOK_KEY", "type": "secret", "required": true }] });
                catalog["agents"]["helper"]["hooks"] = json!(["keyed"]);
                catalog["agents"]["helper"]["env"] = json!({ "HOOK_KEY": "k-secret-1" });
            })
            .setup(|sim| {
                react(sim, "keyed", |call| {
                    Ok(format!("key {}", call.env["HOOK_KEY"].as_str().unwrap()).into())
                });
                sim.world.outside.server("/key", |request, _| {
                    let key = request.headers.iter().find(|(name, _)| name == "authorization");
                    Answer::json(&json!({ "value": format!("key {}", key.unwrap().1) }))
                });
            })
            .drive(move |sim| async move {
                if value.is_empty() {
                    let mut without = crate::sim::catalog(&super::with_work());
                    without["hooks"]["keyed"] = json!({ "hook": "after_system_message",
                        "run": { "native": "keyed" },
                        "variables": [{ "name": "HOOK_KEY", "type": "secret", "required": true }] });
                    without["agents"]["helper"]["hooks"] = json!(["keyed"]);
                    sim.deploy(&without);
                }
                sim.ask("hello").await;
            })
            .check(move |sim, _| {
                let requests = sim.world.outside.requests.borrow();
                let system = requests[0].texts("system")[0].to_owned();
                match value.is_empty() {
                    // What a hook says is looked through for secrets, so the value itself is not there.
                    false => assert!(system.starts_with("key ") && asked(sim).len() == 1, "{system}"),
                    true => {
                        assert_eq!(system, "You help.");
                        let [(_, why)] = &failures(sim)[..] else { panic!("{:?}", failures(sim)) };
                        assert!(why.contains("needs a value for HOOK_KEY"), "{why}");
                    }
                }
                assert!(!system.contains("k-secret-1"), "{system}");
            })
            .calm();
    }
}

#[test]
fn an_http_hook_is_sent_the_secret_in_its_header() {
    let seen: Rc<std::cell::RefCell<Vec<String>>> = Rc::default();
    let heard = seen.clone();
    behind(Kind::Http, "a key in a header", &["after_create_message"])
        .define(|catalog| {
            catalog["hooks"]["after_create_message"]["run"]["http"]["headers"] =
                json!({ "x-key": "{{env HOOK_KEY}}" });
            catalog["agents"]["helper"]["env"] = json!({ "HOOK_KEY": "k-secret-1" });
        })
        .setup(move |sim| {
            let heard = heard.clone();
            sim.world.outside.server("/after_create_message", move |request, _| {
                let key = request.headers.iter().find(|(name, _)| name == "x-key").unwrap();
                heard.borrow_mut().push(key.1.clone());
                Answer::json(&json!({}))
            });
        })
        .drive(|sim| async move {
            sim.ask("hello").await;
        })
        .once();
    assert_eq!(*seen.borrow(), ["k-secret-1"; 2]);
}
