//! Which images a request to a model carries: what is no image is told of in words, and the newest ones are shown.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bobbin::definitions::message::Role;
use bobbin::engine::{EndpointAnswer, FileOptions, NewAttachment, NewMessage};
use bobbin::limits;
use futures::FutureExt;
use serde_json::{Value, json};

use super::attachments::{GIF, gif, post, seeing, sent};
use super::endpoints::{acts, native, with};
use super::files::put;
use crate::sim::{Ask, Sim};

/// One pixel.
const JPEG: &[u8] = b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\
    \xff\xc0\0\x0b\x08\0\x01\0\x01\x01\x01\x11\0\xff\xda\0\x08\x01\x01\0\0\x3f\0\x12\x34\xff\xd9";

fn file(mime: &str, content: &[u8]) -> Value {
    json!({ "name": "x", "mimeType": mime, "data": STANDARD.encode(content) })
}

/// Posts a message and waits for its end, which is a success.
async fn says(sim: &Sim, text: &str, attachments: Value) {
    let seen = post(sim, text, attachments).await;
    assert_eq!(seen.status, 202, "{}", seen.body);
    let message = sim.accepted.borrow().last().cloned().unwrap();
    assert_eq!(sim.outcome(&message).await["outcome"], "completed");
}

/// The media types of the images in a request's messages of a user, and how many there are in each.
fn shown(sim: &Sim) -> Vec<Vec<String>> {
    let requests = sim.world.outside.requests.borrow();
    let messages = requests.last().unwrap().messages();
    let kinds = |content: &Value| {
        let parts = content.as_array().map(Vec::as_slice).unwrap_or_default();
        let urls = parts.iter().filter_map(|part| part["image_url"]["url"].as_str());
        urls.map(|url| url[5..url.find(';').unwrap()].to_owned()).collect()
    };
    messages
        .iter()
        .filter(|message| message["role"] == "user")
        .map(|message| kinds(&message["content"]))
        .collect()
}

#[test]
fn what_is_no_image_is_told_of_and_spoils_nothing() {
    seeing("liars")
        .drive(|sim| async move {
            let cut_off = &GIF[..GIF.len() - 3];
            let huge = [&b"GIF89a\xff\xff\x02\x00"[..], &GIF[10..]].concat();
            for (content, why) in [
                (&b"Just words."[..], "its content is no PNG"),
                (b"", "its content is no PNG"),
                (b"\xff\xd8\xff\xe0", "its content is no PNG"),
                (&JPEG[..30], "only a part of an image"),
                (cut_off, "only a part of an image"),
                (&huge, "too many pixels"),
            ] {
                says(&sim, "look", json!([file("image/png", content), gif()])).await;
                let content = sent(&sim);
                let text = content[0]["text"].as_str().unwrap();
                assert!(text.contains(why), "{text}");
                assert_eq!(shown(&sim).last().unwrap(), &["image/gif"]);
            }
            let history = sim.history().await;
            let attachments = &history[0]["attachments"];
            assert_eq!(
                (&attachments[0]["notShown"], &attachments[0]["mimeType"]),
                (&json!("no_image"), &json!("image/png"))
            );
            assert_eq!(attachments[1]["notShown"], Value::Null);
        })
        .calm();
}

#[test]
fn an_image_is_sent_as_what_its_bytes_are() {
    seeing("types")
        .drive(|sim| async move {
            for (mime, content, sent, stored) in [
                ("image/png", JPEG, "image/jpeg", "image/jpeg"),
                ("image/jpg", JPEG, "image/jpeg", "image/jpeg"),
                ("IMAGE/GIF", GIF, "image/gif", "image/gif"),
                ("image/gif; x=y", GIF, "image/gif", "image/gif"),
                ("image/bmp", GIF, "image/gif", "image/gif"),
            ] {
                says(&sim, mime, json!([file(mime, content)])).await;
                assert_eq!(shown(&sim).last().unwrap(), &[sent], "{mime}");
                let history = sim.history().await;
                let message = history.iter().find(|message| message["content"] == mime).unwrap();
                assert_eq!(message["attachments"][0]["mimeType"], stored);
            }
            // Nobody said that these are images.
            says(&sim, "svg", json!([file("image/svg+xml", b"<svg/>"), file("text/plain", GIF)])).await;
            assert!(shown(&sim).last().unwrap().is_empty());
        })
        .calm();
}

#[test]
fn a_file_that_became_no_image_is_not_sent_as_one() {
    seeing("overwritten")
        .drive(|sim| async move {
            put(&sim, "a.gif", "image/gif", GIF).await;
            says(&sim, "look", json!([{ "path": "/a.gif" }])).await;
            assert_eq!(shown(&sim), [["image/gif"]]);
            put(&sim, "a.gif", "text/plain", b"words").await;
            says(&sim, "again", json!([])).await;
            assert_eq!(shown(&sim), [[""; 0]; 2]);
            let requests = sim.world.outside.requests.borrow().len();
            let text = sim.world.outside.requests.borrow()[requests - 1].messages()[1]["content"].clone();
            assert!(text.as_str().unwrap().contains("[not shown: /a.gif: its content is no PNG"), "{text}");
            put(&sim, "a.gif", "image/gif", JPEG).await;
            says(&sim, "and now?", json!([])).await;
            assert_eq!(shown(&sim)[0], ["image/jpeg"]);
        })
        .calm();
}

#[test]
fn the_newest_images_are_shown_across_messages_and_within_them() {
    seeing("within messages")
        .define(|catalog| {
            let sees = json!({ "supportsImages": true, "maxContextTokens": 1_000_000 });
            catalog["models"]["m"]["capabilities"] = sees;
        })
        .drive(|sim| async move {
            let images = |n: usize| Value::Array((0..n).map(|_| gif()).collect());
            says(&sim, "one", images(15)).await;
            says(&sim, "two", images(10)).await;
            let counts: Vec<usize> = shown(&sim).iter().map(Vec::len).collect();
            assert_eq!(counts, [10, 10], "{} images are shown at most", limits::IMAGES);
            let mut large = GIF.to_vec();
            large.resize(4 << 20, 0);
            for n in 0..3 {
                put(&sim, &format!("{n}.gif"), "image/gif", &large).await;
            }
            says(&sim, "three", json!([{ "path": "/0.gif" }, { "path": "/1.gif" }, { "path": "/2.gif" }]))
                .await;
            let counts: Vec<usize> = shown(&sim).iter().map(Vec::len).collect();
            assert_eq!(counts, [0, 0, 2], "8 MB are shown at most");
        })
        .long()
        .calm();
}

#[test]
fn base64_comes_in_every_usual_form() {
    seeing("base64")
        .drive(|sim| async move {
            let text = STANDARD.encode(GIF);
            let (first, rest) = text.split_at(10);
            for data in [
                format!("{first}\r\n{rest}\n"),
                text.replace('+', "-").replace('/', "_"),
                format!("data:image/gif;base64,{text}"),
            ] {
                says(&sim, "look", json!([{ "name": "x", "mimeType": "image/gif", "data": data }])).await;
                assert_eq!(shown(&sim).last().unwrap(), &["image/gif"]);
            }
        })
        .calm();
}

/// The roles of the last request's messages, and how many images each has.
fn roles(sim: &Sim) -> Vec<(String, usize)> {
    let requests = sim.world.outside.requests.borrow();
    let images = |content: &Value| {
        let parts = content.as_array().map(Vec::as_slice).unwrap_or_default();
        parts.iter().filter(|part| part["type"] == "image_url").count()
    };
    let messages = requests.last().unwrap().messages();
    messages.iter().map(|m| (m["role"].as_str().unwrap().to_owned(), images(&m["content"]))).collect()
}

#[test]
fn images_of_a_reply_follow_it() {
    let file = |content: &'static [u8]| NewAttachment::Inline {
        name: "x.gif".into(),
        mime_type: "image/gif".into(),
        data: content.into(),
        options: FileOptions::default(),
        description: None,
    };
    with("images of replies", &[("POST /draws", native())])
        .define(|catalog| catalog["models"]["m"]["capabilities"] = json!({ "supportsImages": true }))
        .setup(acts(move |call| {
            let attachments = vec![file(GIF), file(b"words")];
            let drawn = NewMessage { role: Role::Assistant, attachments, ..NewMessage::user("Drawn.") };
            call.state.inject_message(drawn).now_or_never().unwrap()?;
            Ok(EndpointAnswer::empty(204))
        }))
        // Code speaks for the agent, too.
        .terms(|terms| terms.one_answer = false)
        .drive(|sim| async move {
            says(&sim, "draw", json!([])).await;
            assert_eq!(sim.reach(Ask::of("POST", "/draws")).await.unwrap().status, 204);
            says(&sim, "and?", json!([gif()])).await;
            let role = |role: &str, images: usize| (role.to_owned(), images);
            let expected = [
                role("system", 0),
                role("user", 0),
                role("assistant", 0),
                role("assistant", 0),
                role("user", 1),
                role("user", 1),
            ];
            assert_eq!(roles(&sim), expected);
            let requests = sim.world.outside.requests.borrow();
            let shown = &requests.last().unwrap().messages()[4]["content"];
            let text = shown[0]["text"].as_str().unwrap();
            assert_eq!(text, "[images of your message before]");
            let said = requests.last().unwrap().messages()[3]["content"].as_str().unwrap().to_owned();
            assert!(said.contains("not shown: its content is no PNG"), "what is no image is told of: {said}");
        })
        .calm();
}
