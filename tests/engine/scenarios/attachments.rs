//! Attachments of messages: stored with them, shown to models that see, told of to the others, deleted with them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bobbin::definitions::message::ToolResult;
use bobbin::engine::{FileOptions, NewAttachment, NewMessage};
use bobbin::limits;
use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::{clerk, with_work, work};
use crate::host::{Native, Say};
use crate::sim::{Seen, Sim};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![kept()]
}

/// Three pixels wide, two high.
pub const GIF: &[u8] =
    b"GIF89a\x03\x00\x02\x00\x00\x00\x00\x2c\x00\x00\x00\x00\x03\x00\x02\x00\x00\x02\x01\x4c\x00;";

pub fn gif() -> Value {
    json!({ "name": "Dot.GIF", "mimeType": "image/gif", "data": STANDARD.encode(GIF), "description": "a dot" })
}

pub fn with_files(name: &'static str) -> Scenario {
    Scenario::new(name, &with_work()).says(clerk).setup(work)
}

pub fn seeing(name: &'static str) -> Scenario {
    with_files(name)
        .define(|catalog| catalog["models"]["m"]["capabilities"] = json!({ "supportsImages": true }))
}

pub async fn post(sim: &Sim, content: &str, attachments: Value) -> Seen {
    sim.post(json!({ "role": "user", "content": content, "attachments": attachments })).await
}

/// The content of the last request's last user message.
pub fn sent(sim: &Sim) -> Value {
    let requests = sim.world.outside.requests.borrow();
    let messages = requests.last().unwrap().messages();
    messages.iter().rev().find(|message| message["role"] == "user").unwrap()["content"].clone()
}

async fn stats(sim: &Sim) -> (i64, i64) {
    let ask = |statement: &str| sim.world.database.ask::<i64>(statement)[0];
    (ask("SELECT count(*) FROM files WHERE kind = 1"), ask("SELECT count(*) FROM chunks"))
}

fn kept() -> Scenario {
    seeing("attachments")
        .drive(|sim| async move {
            let seen = post(&sim, "look", json!([gif()])).await;
            assert_eq!(seen.status, 202, "{}", seen.body);
            let message = sim.accepted.borrow().last().cloned().unwrap();
            sim.outcome(&message).await;
            let history = sim.history().await;
            let attachment = &history[0]["attachments"][0];
            assert_eq!(
                (
                    &attachment["name"],
                    &attachment["type"],
                    &attachment["size"],
                    &attachment["width"],
                    &attachment["height"]
                ),
                (&json!("Dot.GIF"), &json!("file"), &json!(GIF.len()), &json!(3), &json!(2)),
                "{attachment}"
            );
            let path = attachment["path"].as_str().unwrap();
            assert!(path.starts_with("/attachments/") && path.ends_with(".gif"), "{path}");
            let url = format!("data:image/gif;base64,{}", STANDARD.encode(GIF));
            let content = sent(&sim);
            assert_eq!(content[1]["image_url"]["url"], url.as_str());
            let text = content[0]["text"].as_str().unwrap();
            assert_eq!(
                text,
                format!("look\n[attached: Dot.GIF (image/gif, 28 bytes, 3×2) at {path}: a dot]")
            );
            // Its file goes with it, and nothing else does.
            let gone = sim.insist(ThreadRoute::DeleteMessage(message.id), &[], None, String::new()).await;
            assert!(matches!(gone.status, 200 | 404), "{}", gone.body);
            assert_eq!(stats(&sim).await, (0, 0));
            sim.accepted.borrow_mut().clear();
        })
        .terms(|terms| terms.one_answer = false)
}

#[test]
fn a_message_is_stored_with_its_files_or_not_at_all() {
    kept().sweep();
}

#[test]
fn a_model_that_does_not_see_is_told_what_there_is() {
    with_files("blind")
        .drive(|sim| async move {
            let seen =
                post(&sim, "", json!([gif(), { "name": "a.txt", "mimeType": "text/plain", "data": "aGk=" }]))
                    .await;
            assert_eq!(seen.status, 202, "{}", seen.body);
            let message = sim.accepted.borrow().last().cloned().unwrap();
            sim.outcome(&message).await;
            let content = sent(&sim);
            let lines: Vec<&str> = content.as_str().unwrap().lines().collect();
            assert_eq!(lines.len(), 2, "{lines:?}");
            assert!(lines[0].starts_with("[attached: Dot.GIF (image/gif, 28 bytes, 3×2) at /attachments/"));
            assert!(lines[1].starts_with("[attached: a.txt (text/plain, 2 bytes) at /attachments/"));
        })
        .calm();
}

#[test]
fn a_file_is_attached_by_its_path_and_outlives_the_message() {
    seeing("by path")
        .says(|request| match request.last_user() {
            "use work" => clerk(request),
            _ => Say::text("seen"),
        })
        .setup(|sim| {
            sim.world.outside.native("work", |call, _| {
                let state = call.state.clone();
                Native::Acts(Box::new(move || {
                    state.write_file("/pictures/dot.gif", GIF, "image/gif", FileOptions::default()).unwrap();
                    let attach = |path: &str| NewMessage {
                        attachments: vec![NewAttachment::Path { path: path.into(), description: None }],
                        ..NewMessage::user("")
                    };
                    state.queue_message(attach("pictures//dot.gif")).unwrap();
                    for (path, says) in
                        [("/none", "no file /none"), ("/pictures", "directory"), ("/../x", "path")]
                    {
                        let error = state.queue_message(attach(path)).unwrap_err();
                        assert!(error.message.contains(says), "{error}");
                    }
                    ToolResult::success("queued")
                }))
            });
        })
        .drive(|sim| async move {
            sim.ask("use work").await;
            let history = sim.history().await;
            let message = history.iter().find(|message| message["attachments"][0].is_object()).unwrap();
            assert_eq!(message["attachments"][0]["path"], "/pictures/dot.gif");
            assert_eq!(message["attachments"][0]["width"], 3);
            assert!(sent(&sim)[1]["image_url"]["url"].as_str().unwrap().starts_with("data:image/gif"));
            let id = message["id"].as_str().unwrap().to_owned();
            let gone = sim.insist(ThreadRoute::DeleteMessage(id), &[], None, String::new()).await;
            assert_eq!((gone.status, stats(&sim).await), (200, (1, 1)));
        })
        .calm();
}

#[test]
fn an_image_that_was_removed_is_a_note() {
    seeing("removed")
        .drive(|sim| async move {
            post(&sim, "look", json!([gif()])).await;
            let message = sim.accepted.borrow().last().cloned().unwrap();
            sim.outcome(&message).await;
            sim.world.database.alter("DELETE FROM files; DELETE FROM chunks");
            sim.ask("and now?").await;
            let requests = sim.world.outside.requests.borrow();
            let content = &requests.last().unwrap().messages()[1]["content"];
            assert!(content.as_str().unwrap().contains("[attached: Dot.GIF"), "{content}");
        })
        .calm();
}

#[test]
fn only_the_newest_images_that_fit_are_shown() {
    seeing("many images")
        .drive(|sim| async move {
            let mut large = GIF.to_vec();
            large.resize(3 << 20, 0);
            let image =
                json!({ "name": "large.gif", "mimeType": "image/gif", "data": STANDARD.encode(&large) });
            for n in 0..3 {
                assert_eq!(post(&sim, &format!("{n}"), json!([image])).await.status, 202);
                let message = sim.accepted.borrow().last().cloned().unwrap();
                sim.outcome(&message).await;
            }
            let requests = sim.world.outside.requests.borrow();
            let messages = requests.last().unwrap().messages();
            let shown: Vec<bool> =
                messages.iter().filter(|m| m["role"] == "user").map(|m| m["content"].is_array()).collect();
            assert_eq!(shown, [false, true, true], "8 MB are shown at most");
        })
        .long()
        .calm();
}

#[test]
fn images_are_shown_in_as_many_messages_as_the_prompt_says_and_a_long_turn_keeps_its_own() {
    seeing("recent images")
        .define(|catalog| catalog["prompts"]["p"]["recentImageThreshold"] = 3.into())
        .says(|request| match (request.last_user().starts_with("work"), request.results().len()) {
            (true, n @ 0..4) => Say::call("work", &json!({ "n": n })),
            _ => Say::text("seen"),
        })
        .drive(|sim| async move {
            for text in ["one", "two"] {
                assert_eq!(post(&sim, text, json!([gif()])).await.status, 202);
                let message = sim.accepted.borrow().last().cloned().unwrap();
                sim.outcome(&message).await;
            }
            // Calls and results are no messages here.
            assert_eq!(post(&sim, "work", json!([gif()])).await.status, 202);
            let message = sim.accepted.borrow().last().cloned().unwrap();
            sim.outcome(&message).await;
            let requests = sim.world.outside.requests.borrow();
            let shown: Vec<Vec<bool>> = requests
                .iter()
                .map(|r| {
                    r.messages()
                        .iter()
                        .filter(|m| m["role"] == "user")
                        .map(|m| m["content"].is_array())
                        .collect()
                })
                .collect();
            // The newest three: two and its answer, and the last one; in the last steps too.
            assert_eq!(shown[1], [true, true]);
            for steps in &shown[2..] {
                assert_eq!(*steps, [false, true, true]);
            }
            assert_eq!(shown.len(), 7);
        })
        .calm();
}

#[test]
fn what_cannot_be_attached_is_named() {
    with_files("refusals")
        .drive(|sim| async move {
            let many: Vec<Value> = (0..=limits::ATTACHMENTS).map(|_| gif()).collect();
            let too_long = STANDARD.encode(vec![0; limits::ATTACHMENT_BYTES + 1]);
            for (attachments, field, says) in [
                (json!({}), "attachments", "must be a list"),
                (json!([1]), "attachments[0]", "an object"),
                (json!([gif(), {}]), "attachments[1].data", "required"),
                (
                    json!([{ "data": "%", "name": "x", "mimeType": "a/b" }]),
                    "attachments[0].data",
                    "not base64",
                ),
                (json!([{ "data": "", "mimeType": "a/b" }]), "attachments[0].name", "required"),
                (json!([{ "data": "", "name": "x" }]), "attachments[0].mimeType", "required"),
                (
                    json!([gif(), { "data": "", "name": "x", "mimeType": "text" }]),
                    "attachments[1].mimeType",
                    "like `text/plain`",
                ),
                (
                    json!([{ "data": "", "name": "n".repeat(256), "mimeType": "a/b" }]),
                    "attachments[0].name",
                    "the limit is 255",
                ),
                (
                    json!([{ "data": "", "name": "x", "mimeType": format!("a/{}", "b".repeat(3_000)) }]),
                    "attachments[0].mimeType",
                    "text/plain",
                ),
                (
                    json!([{ "path": "/none", "description": "d".repeat(4_097) }]),
                    "attachments[0].description",
                    "the limit is 4096",
                ),
                (json!([{ "data": "", "path": "/none" }]), "attachments[0].path", "not both"),
                (
                    json!([{ "data": "", "name": "x", "mimeType": "a/b", "descripton": "d" }]),
                    "attachments[0].descripton",
                    "no field",
                ),
                (
                    json!([{ "data": "", "name": "x", "mimeType": "a/b", "width": -1 }]),
                    "attachments[0].width",
                    "pixels",
                ),
                (json!([{ "path": "/none" }]), "attachments[0].path", "no file"),
                (json!([{ "path": "/a/../b" }]), "attachments[0].path", ".."),
                (json!(many), "attachments", "the limit is 20"),
                (
                    json!([{ "data": too_long, "name": "x", "mimeType": "a/b" }]),
                    "attachments[0].data",
                    "8388608",
                ),
            ] {
                let seen = post(&sim, "x", attachments).await;
                let error = &seen.body["error"];
                assert!(matches!(seen.status, 400 | 413), "{} {error}", seen.status);
                let message = error["message"].as_str().unwrap();
                assert!(error["field"] == field && message.contains(says), "{field} {error}");
            }
            let system = json!({ "role": "system", "content": "x", "attachments": [gif()] });
            assert_eq!(sim.post(system).await.body["error"]["field"], "attachments");
            assert_eq!((sim.history().await.len(), stats(&sim).await), (0, (0, 0)));
        })
        .calm();
}
