//! Files that tools give: stored with their results, shown to models that see, gone with their messages.

use bobbin::definitions::message::ToolResult;
use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::attachments::{GIF, seeing, with_files};
use super::files::{get, nothing_left, put};
use crate::host::{Native, SECOND_US};
use crate::sim::Sim;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![drawn()]
}

fn draws(result: impl Fn() -> ToolResult + Clone + 'static) -> impl Fn(&Sim) {
    move |sim| {
        let result = result.clone();
        sim.world.outside.native("work", move |_, _| Native::Gives(SECOND_US, result()));
    }
}

fn picture() -> ToolResult {
    ToolResult::success("drawn").with_file("dot.gif", "image/jpg", GIF)
}

/// The tool rows of the history.
async fn results(sim: &Sim) -> Vec<Value> {
    sim.history().await.into_iter().filter(|message| message["role"] == "tool").collect()
}

fn drawn() -> Scenario {
    // The call is deleted in the end, and its execution is all that is left of it.
    seeing("files of results").setup(draws(picture)).terms(|terms| terms.pairs = false).drive(
        |sim| async move {
            sim.ask("use work").await;
            let files = || sim.world.database.ask::<i64>("SELECT count(*) FROM files WHERE kind = 1")[0];
            let rows = results(&sim).await;
            let shown: Vec<&Value> =
                rows.iter().flat_map(|row| row["attachments"].as_array().unwrap()).collect();
            assert_eq!(files(), shown.len() as i64, "as many files as results show");
            for (row, attachment) in rows.iter().zip(&shown) {
                assert_eq!(
                    (&row["content"], &attachment["mimeType"]),
                    (&json!("drawn"), &json!("image/gif"))
                );
                assert_eq!(get(&sim, attachment["path"].as_str().unwrap()).await.body.as_deref(), Ok(GIF));
            }
            let reply = sim.history().await.into_iter().find(|message| message["tool_calls"].is_string());
            let reply = reply.unwrap()["id"].as_str().unwrap().to_owned();
            let gone = sim.insist(ThreadRoute::DeleteMessage(reply), &[], None, String::new()).await;
            assert!(matches!(gone.status, 200 | 404), "{}", gone.body);
            assert_eq!(files(), 0, "they go with the call");
            nothing_left(&sim);
        },
    )
}

#[test]
fn a_result_is_stored_with_its_files_or_not_at_all() {
    drawn().sweep();
}

#[test]
fn a_model_that_sees_is_shown_the_images_of_results_after_all_results() {
    seeing("results shown")
        .setup(draws(picture))
        .drive(|sim| async move {
            sim.ask("use work,work").await;
            let requests = sim.world.outside.requests.borrow();
            let messages = requests.last().unwrap().messages();
            let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
            assert_eq!(roles, ["system", "user", "assistant", "tool", "tool", "user"]);
            assert!(
                messages[3]["content"]
                    .as_str()
                    .unwrap()
                    .starts_with("drawn\n[attached: dot.gif (image/gif, 28 bytes")
            );
            let parts = messages[5]["content"].as_array().unwrap();
            let images = parts.iter().filter(|part| part["type"] == "image_url").count();
            assert_eq!((parts.len(), images), (4, 2), "{parts:?}");
        })
        .calm();
}

#[test]
fn a_model_that_does_not_see_is_told_of_files_of_results() {
    with_files("results told")
        .setup(draws(picture))
        .drive(|sim| async move {
            sim.ask("use work").await;
            let requests = sim.world.outside.requests.borrow();
            let messages = requests.last().unwrap().messages();
            assert_eq!(messages.last().unwrap()["role"], "tool");
            assert!(messages.last().unwrap()["content"].as_str().unwrap().contains("[attached: dot.gif"));
        })
        .calm();
}

#[test]
fn what_a_result_may_hold_is_read_or_named() {
    let result = |fields: Value| {
        let mut all = json!({ "status": "success" });
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value::<ToolResult>(all).unwrap()
    };
    let gif = serde_json::to_value(picture()).unwrap()["attachments"][0]["data"].clone();
    let cases = [
        (
            json!({ "result": "r", "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }] }),
            "a\nb",
            0,
        ),
        (
            json!({ "content": [{ "type": "image", "mimeType": "image/gif", "data": gif }] }),
            "The tool finished",
            1,
        ),
        (json!({ "result": "r", "attachments": null, "content": null }), "r", 0),
        (json!({ "result": "r", "stored": [{ "path": "/there" }] }), "r", 0),
        (json!({ "content": [{ "type": "link", "url": "u" }] }), "\"url\":\"u\"", 0),
        (json!({ "result": "r", "attachments": [{ "path": "/there" }] }), "r", 1),
        (json!({ "result": "r", "attachments": [{ "path": "/none" }] }), "has run, but the files", 0),
        (json!({ "result": "r", "attachments": [{ "name": "x" }] }), "attachments[0].data", 0),
        (
            json!({ "result": "r", "attachments": [{ "path": "/there", "id": "a_1", "type": "file", "size": 1 }] }),
            "r",
            1,
        ),
    ];
    for (fields, says, files) in cases {
        let given = result(fields);
        with_files("results read")
            .setup(draws(move || given.clone()))
            .drive(move |sim| async move {
                put(&sim, "there", "text/plain", b"x").await;
                sim.ask("use work").await;
                let rows = results(&sim).await;
                let text = rows[0]["content"].as_str().unwrap();
                assert!(text.contains(says), "{text}");
                assert_eq!(rows[0]["attachments"].as_array().unwrap().len(), files, "{text}");
            })
            .calm();
    }
}

#[test]
fn where_a_tool_failed_is_in_the_log_alone() {
    let failed = || ToolResult { stack: Some("at draw (pen.ts:3)".into()), ..ToolResult::error("no ink") };
    with_files("stack")
        .setup(draws(failed))
        .drive(|sim| async move {
            sim.ask("use work").await;
            let logs = sim.get(ThreadRoute::ListLogs, &[]).await.to_string();
            assert!(logs.contains("no ink\\nat draw (pen.ts:3)"), "{logs}");
            assert!(!json!(sim.history().await).to_string().contains("pen.ts"));
        })
        .calm();
}

#[test]
fn a_hook_behind_a_url_may_give_a_result_with_files() {
    const HOOK: &str = "after_tool_call_success";
    seeing("files of a hook's result")
        .define(|catalog| {
            let run = json!({ "http": { "url": format!("{}/{HOOK}", crate::host::TOOL_URL) } });
            catalog["hooks"][HOOK] = json!({ "hook": HOOK, "run": run });
            catalog["agents"]["helper"]["hooks"] = json!([HOOK]);
        })
        .setup(|sim| {
            use base64::Engine;
            let data = base64::engine::general_purpose::STANDARD.encode(GIF);
            let file = json!({ "name": "dot.gif", "mimeType": "image/gif", "data": data });
            let value =
                json!({ "value": { "status": "success", "result": "framed", "attachments": [file] } });
            sim.world
                .outside
                .server(&format!("/{HOOK}"), move |_, _| crate::host::Answer::status(200, value.to_string()));
        })
        .drive(|sim| async move {
            sim.ask("use work").await;
            let rows = results(&sim).await;
            let [file] = &rows[0]["attachments"].as_array().unwrap()[..] else { panic!("{rows:?}") };
            assert_eq!((&rows[0]["content"], &file["mimeType"]), (&json!("framed"), &json!("image/gif")));
            assert_eq!(get(&sim, file["path"].as_str().unwrap()).await.body.as_deref(), Ok(GIF));
        })
        .calm();
}
