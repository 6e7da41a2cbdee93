//! What threads of a family do to each other besides talking: files that are copied, trees that are read and deleted,
//! code that reaches into another thread.

use bobbin::definitions::message::ToolResult;
use bobbin::engine::{FileOptions, MessageUpdate, NewAttachment, NewMessage};
use bobbin::request::ThreadRoute;
use bobbin::{Code, limits};
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::files::{bytes, get, nothing_left, put};
use crate::contract::History;
use crate::host::outside::ModelRequest;
use crate::host::{Native, SECOND_US, Say};
use crate::sim::{Sim, THREAD, native};
use crate::sweep::Scenario;

const CHUNK: usize = limits::FILE_CHUNK_BYTES;
/// Three pixels wide, two high.
const GIF: &[u8] =
    b"GIF89a\x03\x00\x02\x00\x00\x00\x00\x2c\x00\x00\x00\x00\x03\x00\x02\x00\x00\x02\x01\x4c\x00;";

pub fn all() -> Vec<Scenario> {
    vec![files_down(), files_up(), deleted(), child_deleted()]
}

/// An agent of two sides that says one thing and is done; its side A may use these tools.
fn agent(catalog: &mut Value, name: &str, tools: &Value) {
    let schema = json!({ "type": "object", "properties": { "q": { "type": "string" },
        "files": { "type": "array", "items": { "type": "string" } } }, "required": ["q"] });
    for (prompt, tools) in [(name.to_owned(), tools), (format!("{name}_other"), &json!([]))] {
        catalog["prompts"][&prompt] = json!({ "toolDescription": "Asks.", "prompt": format!("You are {prompt}."),
            "model": "m", "includeChat": true, "includePastTools": true, "tools": tools, "requiredSchema": schema });
    }
    catalog["agents"][name] = json!({ "type": "dual_ai", "exposeAsTool": true, "toolDescription": "Works.",
        "maxSessionTurns": 1, "sideA": { "prompt": name }, "sideB": { "prompt": format!("{name}_other") } });
}

fn entry(name: &str) -> Value {
    json!({ "name": name, "initUserMessageProperty": "q", "initAttachmentsProperty": "files" })
}

/// A model that calls what its last user message says: a list of names and arguments, one in each step.
fn steps(request: &ModelRequest) -> Say {
    let done = request.results().len();
    let Ok(calls) = serde_json::from_str::<Vec<(String, Value)>>(request.last_user()) else {
        return Say::text(format!("re: {}", request.last_user()));
    };
    match calls.get(done) {
        Some((name, args)) => Say::call(name, args),
        None => Say::text(format!("did {done}")),
    }
}

/// The thread calls `helper`'s child `research`, whose child is `leaf`.
pub(super) fn story(name: &'static str) -> Scenario {
    let mut nap = native(true);
    nap["run"]["native"] = "nap".into();
    let tools = json!({ "work": native(true), "nap": nap, "finish": { "description": "Ends.",
        "run": { "native": "finish" }, "idempotent": true, "args": { "type": "object", "properties": {
        "summary": { "type": "string" }, "files": { "type": "array", "items": { "type": "string" } } } } } });
    Scenario::new(name, &tools)
        .define(|catalog| {
            agent(catalog, "leaf", &json!(["work", "nap", "finish"]));
            agent(catalog, "research", &json!([entry("leaf"), "work", "nap", "finish"]));
            catalog["prompts"]["p"]["tools"] = json!([entry("research"), "work"]);
        })
        .says(steps)
        .setup(|sim| {
            sim.world.outside.native("finish", |_, _| Native::Gives(0, ToolResult::success("ended")));
            sim.world.outside.native("work", |_, _| Native::Gives(0, ToolResult::success("worked")));
            sim.world
                .outside
                .native("nap", |_, _| Native::Gives(60 * SECOND_US, ToolResult::success("rested")));
        })
        .terms(|terms| terms.one_answer = false)
}

pub(super) fn calls(calls: Value) -> String {
    calls.to_string()
}

fn settled(sim: &Sim) -> bool {
    let none = |sim: &Sim, question: &str| sim.member.database.ask::<i64>(question) == [0];
    sim.family().iter().all(|thread| {
        none(thread, "SELECT count(*) FROM runs WHERE phase != 'ended'")
            && none(thread, "SELECT count(*) FROM outbox WHERE target LIKE 't:%'")
    })
}

async fn rest(sim: &Sim) {
    for _ in 0..40_000 {
        if settled(sim) {
            return;
        }
        sim.world.pause(SECOND_US / 20).await;
    }
    sim.world.fail("the family never comes to rest");
}

fn children(sim: &Sim) -> Vec<String> {
    sim.member.database.ask("SELECT reference FROM children ORDER BY created_us, reference")
}

fn files_of(sim: &Sim) -> Vec<String> {
    sim.member.database.ask("SELECT parent || '/' || name FROM files WHERE kind = 1 ORDER BY id")
}

/// Attachments of a thread's messages, in order.
async fn attached(sim: &Sim) -> Vec<Value> {
    let history = sim.history().await;
    let lists = history.iter().filter_map(|message| message["attachments"].as_array());
    lists.flatten().cloned().collect()
}

/// The content of each file that a thread's messages show is what it should be, and there is nothing else.
async fn shows(sim: &Sim, contents: &[&[u8]]) -> Vec<Value> {
    let attached = attached(sim).await;
    assert_eq!(attached.len(), contents.len(), "{attached:?}");
    for (attachment, content) in attached.iter().zip(contents) {
        let path = attachment["path"].as_str().unwrap();
        assert!(path.starts_with("/attachments/"), "{path}");
        let got = get(sim, path).await;
        assert!(got.body.as_deref() == Ok(*content), "{path} has another content");
    }
    attached
}

fn files_down() -> Scenario {
    story("files for a child")
        .drive(|sim| async move {
            let large = bytes(7, 2 * CHUNK + 11);
            put(&sim, "attachments/large.bin", "application/x-test", &large).await;
            put(&sim, "attachments/dot.gif", "image/gif", GIF).await;
            put(&sim, "attachments/empty.txt", "text/plain", b"").await;
            let args = json!({ "q": "look", "files":
                ["/attachments/large.bin", "/attachments/dot.gif", "/attachments/empty.txt"] });
            sim.send(&calls(json!([["research", args]]))).await;
            rest(&sim).await;
            let child = sim.of(&children(&sim)[0]);
            let shown = shows(&child, &[&large, GIF, b""]).await;
            assert_eq!((&shown[1]["width"], &shown[1]["height"]), (&json!(3), &json!(2)));
            assert_eq!(shown[0]["mimeType"], "application/x-test");
            assert_eq!(shown[0]["name"], "large.bin");
            assert_eq!(files_of(&child).len(), 3, "copied once: {:?}", files_of(&child));
            // What a broken-off copy has left goes with the next write.
            child.member.database.alter("UPDATE meta SET terminated_us = NULL");
            sim.world.kill();
            for _ in [1, 2] {
                put(&child, "last", "text/plain", b"bye").await;
            }
            nothing_left(&child);
            child.member.database.alter("UPDATE meta SET terminated_us = created_us");
            sim.world.kill();
        })
        .check(|_, history| {
            let results = history.texts("tool");
            assert!(results.len() == 1 && results[0].contains("re: look"), "{results:?}");
        })
}

fn files_up() -> Scenario {
    story("files of a child")
        .define(|catalog| {
            catalog["agents"]["research"]["sideA"]["sessionStop"] =
                json!({ "name": "finish", "messageProperty": "summary", "attachmentsProperty": "files" });
        })
        .setup(|sim| {
            sim.world.outside.native("work", |call, _| {
                let state = call.state.clone();
                Native::Acts(Box::new(move || {
                    let large = bytes(9, CHUNK + 3);
                    let options = FileOptions {
                        metadata: json!({ "by": "work" }).as_object().cloned(),
                        ..FileOptions::default()
                    };
                    state.write_file("/out/large.bin", &large, "application/x-test", options).unwrap();
                    state.write_file("/dot.gif", GIF, "image/gif", FileOptions::default()).unwrap();
                    ToolResult::success("wrote")
                }))
            });
        })
        .drive(|sim| async move {
            let finish = json!({ "summary": "here", "files": ["/out/large.bin", "/dot.gif"] });
            let inner = calls(json!([["work", {}], ["finish", finish]]));
            sim.send(&calls(json!([["research", { "q": inner }]]))).await;
            rest(&sim).await;
            let there = files_of(&sim);
            assert_eq!(there.len(), 2, "copied once: {there:?}");
            let history = sim.history().await;
            let result = history.iter().find(|message| message["role"] == "tool").unwrap();
            assert_eq!(result["attachments"].as_array().unwrap().len(), 2, "{result}");
            assert_eq!(
                (&result["subagent_name"], &result["subagent_blocking"]),
                (&json!("research"), &json!(true))
            );
            assert!(result["subagent_id"].is_string(), "{result}");
            let large = bytes(9, CHUNK + 3);
            for (path, content) in there.iter().zip([&large[..], GIF]) {
                let got = get(&sim, path).await;
                assert!(got.body.as_deref() == Ok(content), "{path} has another content");
            }
            for _ in [1, 2] {
                put(&sim, "last", "text/plain", b"bye").await;
            }
            nothing_left(&sim);
        })
        .check(|sim, history| {
            let results = history.texts("tool");
            assert_eq!(results.len(), 1, "{results:?}");
            let text = results[0];
            assert!(text.contains("here"), "{text}");
            assert!(files_of(sim).iter().take(2).all(|path| text.contains(path.as_str())), "{text}");
        })
}

#[test]
fn files_for_a_child_are_there_with_the_message_or_not_at_all() {
    files_down().sampled(120).sweep();
}

#[test]
fn files_of_a_child_are_there_with_its_result_or_not_at_all() {
    files_up().sampled(120).sweep();
}

#[test]
fn a_file_that_is_gone_when_it_is_copied_is_a_failure_that_says_so() {
    for delivered in [false, true] {
        story("a file that is gone")
            .drive(move |sim| async move {
                put(&sim, "attachments/a.txt", "text/plain", b"one").await;
                sim.world.cut(|_, to| to == THREAD);
                let args = json!({ "q": "look", "files": ["/attachments/a.txt"] });
                sim.send(&calls(json!([["research", args]]))).await;
                sim.until("a child", |sim| sim.family().len() == 2).await;
                let child = sim.family()[1].clone();
                if !delivered {
                    super::files::remove(&sim, "attachments/a.txt").await;
                }
                assert_eq!(children(&sim), std::slice::from_ref(&child.member.id));
                sim.world.cut(|_, _| false);
                rest(&sim).await;
            })
            .check(move |sim, history| {
                let results = history.texts("tool");
                let text = results[0];
                assert_eq!(results.len(), 1, "{results:?}");
                assert_eq!(text.contains("There is no file /attachments/a.txt"), !delivered, "{text}");
                assert_eq!(text.contains("re: look"), delivered, "{text}");
                let open: Vec<i64> = sim.member.database.ask("SELECT count(*) FROM children WHERE open = 1");
                assert_eq!(open, [0]);
                let ended: Vec<i64> =
                    sim.family()[1].member.database.ask("SELECT terminated_us IS NOT NULL FROM meta");
                assert_eq!(ended, [1]);
            })
            .sampled(60)
            .sweep();
    }
}

/// 30 MB go from one thread to another; what is held is one piece.
#[test]
fn a_large_file_is_copied_piece_by_piece() {
    story("30 MB")
        .drive(|sim| async move {
            let large = bytes(5, 30 << 20);
            put(&sim, "attachments/film", "video/mp4", &large).await;
            let args = json!({ "q": "look", "files": ["/attachments/film"] });
            sim.send(&calls(json!([["research", args]]))).await;
            rest(&sim).await;
            let child = sim.of(&children(&sim)[0]);
            shows(&child, &[&large]).await;
        })
        .once();
}

// ---- trees ----------------------------------------------------------------------------------------------------

/// Three levels, the lowest of which naps.
async fn three_levels(sim: &Sim) {
    let leaf = calls(json!([["nap", {}]]));
    let research = calls(json!([["leaf", { "q": leaf }]]));
    sim.send(&calls(json!([["research", { "q": research }]]))).await;
}

pub(super) async fn delete(sim: &Sim) -> Value {
    for _ in 0..60 {
        let seen = sim.once(ThreadRoute::Delete, &[], None, String::new()).await;
        match seen {
            Ok(seen) if seen.status < 300 => return seen.body,
            Ok(seen) if seen.status == 404 => return Value::Null,
            Ok(seen) => assert!(seen.status >= 500, "{}", seen.body),
            Err(_) => {}
        }
        sim.world.pause(SECOND_US).await;
    }
    panic!("the thread could not be deleted");
}

/// The contract's last look needs a thread; what the deleted one did is in no log.
pub(super) async fn begin_anew(sim: &Sim) {
    sim.accepted.borrow_mut().clear();
    sim.world.outside.requests.borrow_mut().clear();
    sim.world.outside.executions.borrow_mut().clear();
    sim.create().await;
}

fn deleted_after(after_us: i64) -> Scenario {
    story("a tree that is deleted")
        .drive(move |sim| async move {
            three_levels(&sim).await;
            sim.world.pause(after_us).await;
            let there = sim.family().len();
            let gone = delete(&sim).await;
            if sim.world.faults.borrow().fired.is_empty() && after_us >= SECOND_US {
                assert_eq!((&gone["deletedCount"], there), (&json!(3), 3), "{gone}");
                assert_eq!(gone["deletedThreadIds"][0], THREAD);
            }
            // A child that was just being made finds that its parent is gone, and deletes itself.
            for _ in 0..4_000 {
                if sim.family().is_empty() {
                    break;
                }
                sim.world.pause(SECOND_US / 2).await;
            }
            let left: Vec<String> = sim.family().iter().map(|thread| thread.member.id.clone()).collect();
            assert!(left.is_empty(), "orphans: {left:?}");
            begin_anew(&sim).await;
        })
        .terms(|terms| {
            terms.alarm_may_stay = true;
            terms.more_requests = 3;
        })
}

fn deleted() -> Scenario {
    deleted_after(5 * SECOND_US)
}

#[test]
fn a_tree_is_deleted_whatever_fails() {
    deleted().sampled(250).sweep();
}

#[test]
fn a_tree_is_deleted_at_any_moment() {
    for after_us in [0, 1_500, 4_000, 9_000, 20_000, SECOND_US, 70 * SECOND_US] {
        deleted_after(after_us).sampled(80).sweep();
    }
}

#[test]
fn a_deletion_waits_for_a_child_that_is_being_made() {
    story("a tree that is deleted while it grows")
        .drive(|sim| async move {
            sim.world.delay_next_call(2 * SECOND_US);
            three_levels(&sim).await;
            sim.until("a child is being made", |sim| sim.world.open_calls.get() > 0).await;
            delete(&sim).await;
            for _ in 0..100 {
                assert!(sim.family().is_empty(), "a child was made of a thread that is gone");
                sim.world.pause(SECOND_US / 20).await;
            }
            begin_anew(&sim).await;
        })
        .terms(|terms| terms.alarm_may_stay = true)
        .calm();
}

/// A child alone is deleted, by a client, while its parent waits for it.
fn child_deleted() -> Scenario {
    story("a child that is deleted")
        .drive(|sim| async move {
            three_levels(&sim).await;
            sim.until("three levels", |sim| sim.family().len() == 3).await;
            sim.world.pause(SECOND_US).await;
            let child = sim.of(&children(&sim)[0]);
            delete(&child).await;
            rest(&sim).await;
            assert_eq!(sim.family().len(), 1);
        })
        .check(|sim, history| {
            let states: Vec<String> = sim.member.database.ask("SELECT state FROM children");
            assert_eq!(states, ["terminated"]);
            let results = history.texts("tool");
            assert_eq!(results.len(), 1, "{results:?}");
            assert!(!results[0].contains("did 1"), "{results:?}");
        })
}

#[test]
fn who_waits_for_a_child_that_is_deleted_is_told_whatever_fails() {
    child_deleted().sampled(200).sweep();
}

#[test]
fn a_tree_stays_while_a_part_of_it_does_not_answer() {
    story("a tree that cannot be deleted")
        .drive(|sim| async move {
            three_levels(&sim).await;
            sim.until("three levels", |sim| sim.family().len() == 3).await;
            sim.world.pause(SECOND_US).await;
            let leaf = sim.family()[2].member.id.clone();
            sim.world.cut(move |_, to| to == leaf);
            let seen = sim.once(ThreadRoute::Delete, &[], None, String::new()).await.unwrap();
            assert_eq!((seen.status, &seen.body["error"]["code"]), (503, &json!("overloaded")));
            assert!(
                seen.body["error"]["hint"].as_str().unwrap().contains("delete it again"),
                "{}",
                seen.body
            );
            assert_eq!(sim.family().len(), 3);
            let read = sim.get(ThreadRoute::Get, &[]).await;
            assert_eq!(read["thread"]["state"], "terminated");
            sim.world.cut(|_, _| false);
            let gone = delete(&sim).await;
            assert_eq!(gone["deletedCount"], 3, "{gone}");
            begin_anew(&sim).await;
        })
        .terms(|terms| terms.alarm_may_stay = true)
        .calm();
}

#[test]
fn lists_costs_and_directories_know_the_tree() {
    story("a tree that is read")
        .define(|catalog| {
            catalog["models"]["m"]["inputPrice"] = json!(1_000_000);
            catalog["models"]["m"]["outputPrice"] = json!(0);
        })
        .drive(|sim| async move {
            let research = calls(json!([["leaf", { "q": "hello" }]]));
            sim.send(&calls(json!([["research", { "q": research }]]))).await;
            rest(&sim).await;
            let child = sim.of(&children(&sim)[0]);
            let leaf = sim.of(&children(&child)[0]);
            let list = sim.get(ThreadRoute::ListSubagents, &[]).await;
            let listed = &list["subagents"][0];
            assert_eq!(list["subagents"].as_array().unwrap().len(), 1);
            assert_eq!(
                [
                    &listed["id"],
                    &listed["agent_name"],
                    &listed["status"],
                    &listed["resumable"],
                    &listed["blocking"]
                ],
                [
                    &json!(child.member.id),
                    &json!("research"),
                    &json!("terminated"),
                    &json!(false),
                    &json!(true)
                ],
                "{listed}"
            );
            // The directory is told a little later.
            sim.world.pause(SECOND_US).await;
            for (thread, parent) in [(&child, &sim), (&leaf, &child)] {
                let shown = thread.get(ThreadRoute::Get, &[]).await;
                assert_eq!(shown["thread"]["parent"], parent.member.id.as_str());
                let told = sim.world.outside.siblings.borrow();
                let row = told
                    .iter()
                    .map(|(_, call)| &call["row"])
                    .find(|row| row["id"] == thread.member.id.as_str());
                assert_eq!(row.unwrap()["parent"], parent.member.id.as_str());
            }
            let cost = sim.get(ThreadRoute::GetCost, &[]).await;
            let requests = |part: &Value| part["requests"].as_i64().unwrap();
            let all = i64::try_from(sim.world.outside.requests.borrow().len()).unwrap();
            assert_eq!(requests(&cost["total"]), all, "{cost}");
            assert_eq!(requests(&cost["own"]) + requests(&cost["descendants"]), all);
            let below = child.get(ThreadRoute::GetCost, &[]).await;
            assert_eq!(cost["children"][0]["total"], below["total"]);
            assert_eq!(cost["children"][0]["id"], child.member.id.as_str());
            assert_eq!(cost["descendants"], below["total"]);
            assert_eq!(cost["incomplete"], json!([]));
            let spent = |part: &Value| part["cost"].as_f64().unwrap();
            assert_eq!(spent(&cost["own"]) + spent(&below["total"]), spent(&cost["total"]));
            assert_eq!(spent(&cost["total"]), cost["total"]["inputTokens"].as_f64().unwrap());
            // Who does not answer is named; who was deleted is not.
            let lost = leaf.member.id.clone();
            sim.world.cut(move |_, to| to == lost);
            let cost = sim.get(ThreadRoute::GetCost, &[]).await;
            assert_eq!(cost["incomplete"], json!([leaf.member.id]));
            assert!(requests(&cost["total"]) < all);
            sim.world.cut(|_, _| false);
            delete(&leaf).await;
            let cost = sim.get(ThreadRoute::GetCost, &[]).await;
            assert_eq!((&cost["incomplete"], requests(&cost["total"]) < all), (&json!([]), true));
        })
        .calm();
}

// ---- from afar ------------------------------------------------------------------------------------------------

/// Code in the parent and in the child reaches the other thread.
#[test]
fn code_reaches_into_threads_of_its_family_and_no_other() {
    story("from afar")
        .define(|catalog| {
            catalog["prompts"]["p"]["tools"] =
                json!([{ "name": "research", "initUserMessageProperty": "q", "blocking": false }, "work", "nap"]);
        })
        .setup(|sim| {
            sim.world.outside.native("work", |call, _| {
                let state = call.state.clone();
                Native::Works(Box::pin(async move {
                    let parent = state.get_parent_thread().unwrap().expect("a child has a parent");
                    assert!(state.get_child_thread(THREAD).unwrap().is_none());
                    let me = state.identity().unwrap().thread_id;
                    let identity = parent.identity().await.unwrap();
                    assert_eq!((identity.thread_id.as_str(), identity.agent_id.as_str()), (THREAD, "helper"));
                    // The values of a thread are its own (spec §18.1), and so is its run.
                    for own in ["getValue", "setValue", "env", "instanceEnv", "stop", "setContext", "runCode", "x"] {
                        let refused = parent.member(own, vec![json!("told"), json!(1)]).await.unwrap_err();
                        assert_eq!(refused.code, Code::InvalidField, "{own}");
                        assert!(refused.message.starts_with(&format!("{own}() does not reach another thread")), "{refused}");
                    }
                    let record = parent.write_file("/up.bin", &[0, 255], "x/y").await.unwrap();
                    assert_eq!(record["size"], 2);
                    let stat = parent.member("statFile", vec![json!("/up.bin")]).await.unwrap();
                    assert_eq!(stat["mimeType"], "x/y");
                    assert_eq!(parent.read_file("/up.bin").await.unwrap(), Some(Bytes::from_static(&[0, 255])));
                    parent.member("unlinkFile", vec![json!("/up.bin")]).await.unwrap();
                    let about = parent.member("about", vec![]).await.unwrap();
                    assert_eq!((&about["parent"], &about["children"][0]["reference"]), (&json!(null), &json!(me)));
                    let content = parent.read_file("/attachments/a.txt").await.unwrap();
                    assert_eq!(content, Some(Bytes::from_static(b"one")));
                    assert_eq!(parent.read_file("/none").await.unwrap(), None);
                    assert_eq!(parent.read_file("/attachments").await.unwrap_err().code, Code::Conflict);
                    let note = NewMessage { silent: true, ..NewMessage::user("noted from below") };
                    let note = parent.inject_message(note).await.unwrap();
                    let update = MessageUpdate { metadata: Some(Map::from_iter([("from".into(), me.into())])), ..MessageUpdate::default() };
                    parent.update_message(&note, update).await.unwrap();
                    let noted = parent.get_message(&note).await.unwrap().unwrap();
                    assert_eq!((&noted["content"], &noted["silent"]), (&json!("noted from below"), &json!(true)));
                    assert!(noted["metadata"]["from"].is_string());
                    assert!(parent.get_message("m_0_0").await.unwrap().is_none());
                    let missing = NewMessage {
                        attachments: vec![NewAttachment::Path { path: "/none".into(), description: None }],
                        ..NewMessage::user("x")
                    };
                    let error = parent.queue_message(missing).await.unwrap_err();
                    assert_eq!((error.code, error.field.as_deref()), (Code::InvalidField, Some("attachments[0].path")));
                    ToolResult::success("reached up")
                }))
            });
            sim.world.outside.native("nap", |call, _| {
                let state = call.state.clone();
                Native::Works(Box::pin(async move {
                    assert!(state.get_parent_thread().unwrap().is_none());
                    state.notify_parent("nobody").unwrap();
                    assert_eq!(state.notify_parent("  ").unwrap_err().code, Code::MissingField);
                    let children = state.children().unwrap();
                    assert_eq!((children.len(), children[0].name.as_str()), (1, "research"));
                    let child = state.get_child_thread(&children[0].reference).unwrap().unwrap();
                    let page = child.get_messages(&bobbin::request::Query::default()).await.unwrap();
                    assert!(page["total"].as_i64().unwrap() > 0, "{page}");
                    let error = child.write_file("/x", b"1", "text/plain").await.unwrap_err();
                    assert_eq!(error.code, Code::Terminated);
                    assert!(state.get_child_thread("6f0c0000-0000-4000-8000-00000000ffff").unwrap().is_none());
                    child.terminate().await.unwrap();
                    ToolResult::success("reached down")
                }))
            });
        })
        .drive(|sim| async move {
            put(&sim, "attachments/a.txt", "text/plain", b"one").await;
            sim.send(&calls(json!([["research", { "q": calls(json!([["work", {}]])) }]]))).await;
            rest(&sim).await;
            sim.send(&calls(json!([["nap", {}]]))).await;
            rest(&sim).await;
        })
        .check(|_, history: &History| {
            let said: Vec<&str> = history.messages.iter().filter_map(|m| m["content"].as_str()).collect();
            assert_eq!(said.iter().filter(|text| **text == "noted from below").count(), 1, "{said:?}");
            assert!(said.contains(&"reached down"), "{said:?}");
        })
        .calm();
}
