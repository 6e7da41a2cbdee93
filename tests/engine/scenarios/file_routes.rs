//! Conditions of writes, uploads that nobody completes, and searches that cost too much.

use bobbin::limits;
use bobbin::request::StreamRoute;
use serde_json::{Value, json};

use super::files::{bytes, grep, holds, nothing_left, put};
use super::story;
use crate::files::{Got, Sent};
use crate::host::SECOND_US;
use crate::sim::Sim;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![emptied()]
}

fn emptied() -> Scenario {
    story("a directory with all that is in it").drive(|sim| async move {
        for (path, content) in [
            ("d/a.txt", b"needle".to_vec()),
            ("d/e/large", bytes(3, 2_500_000)),
            ("d/e/f/x", b"x".to_vec()),
            ("dz", b"needle".to_vec()),
            ("d0", b"x".to_vec()),
        ] {
            put(&sim, path, if path.ends_with("large") { "a/b" } else { "text/plain" }, &content).await;
        }
        let whole = Sent::new(StreamRoute::DeleteFile("d".into()));
        assert_eq!(sim.serve(whole.clone()).await.status, 409);
        let gone = sim.serve(whole.query("recursive", "true")).await;
        assert!(matches!(gone.status, 204 | 404), "{gone:?}");
        let left: Vec<String> =
            sim.world.database.ask("SELECT name FROM files WHERE parent IS NOT NULL ORDER BY name");
        assert_eq!(left, ["d0", "dz"]);
        assert_eq!(grep(&sim, "needle").await, ["/dz"]);
        // What a crash has left goes with the next writes.
        for _ in [1, 2, 3] {
            put(&sim, "last", "text/plain", b"bye").await;
        }
        nothing_left(&sim);
    })
}

#[test]
fn a_directory_goes_with_all_that_is_in_it_or_stays_as_it_was() {
    emptied().sweep();
}

#[test]
fn a_large_tree_goes_at_once_and_its_content_bit_by_bit() {
    story("a large tree")
        .drive(|sim| async move {
            put(&sim, "t/first", "text/plain", b"x").await;
            sim.world.database.alter(
                "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 9000)
                 INSERT INTO files (parent, name, kind, mime, size, chunks, metadata, created_us, updated_us, search)
                 SELECT '/t/' || (n % 9), 'f' || n, 1, 'a/b', 0, 0, '{}', 1, 1, 0 FROM n",
            );
            sim.evict().await;
            let gone = Sent::new(StreamRoute::DeleteFile("t".into())).query("recursive", "true");
            assert_eq!(sim.serve(gone).await.status, 204);
            let left = || sim.world.database.ask::<i64>("SELECT count(*) FROM files")[0];
            assert!(left() > 8_000, "{} rows are left: it was not bit by bit", left());
            sim.world.pause(10 * SECOND_US).await;
            assert_eq!(left(), 0);
            put(&sim, "t/again", "text/plain", b"x").await;
        })
        .long()
        .calm();
}

/// The request that writes to a path.
type Route = fn(&str) -> Sent;

#[test]
fn every_write_asks_what_is_stored() {
    story("conditions")
        .drive(|sim| async move {
            let routes: [(&str, Route); 6] = [
                ("put", |path| Sent::new(StreamRoute::PutFile(path.into())).body(b"new")),
                ("post", |path| {
                    Sent::new(StreamRoute::PostFile(path.into())).json(&json!({ "content": "new" }))
                }),
                ("directory", |path| {
                    Sent::new(StreamRoute::PostFile(path.into())).json(&json!({ "directory": true }))
                }),
                ("move", |path| {
                    Sent::new(StreamRoute::MoveFile(path.into())).json(&json!({ "path": "moved" }))
                }),
                ("delete", |path| Sent::new(StreamRoute::DeleteFile(path.into()))),
                ("delete a directory", |path| Sent::new(StreamRoute::DeleteFile(path.into()))),
            ];
            for (verb, sent) in routes {
                for (header, there, absent) in [
                    ("if-match: *", true, false),
                    ("if-match: tag", true, false),
                    ("if-match: \"other\"", false, false),
                    ("if-none-match: *", false, true),
                    ("if-none-match: tag", false, true),
                    ("if-none-match: \"other\"", true, true),
                ] {
                    for exists in [true, false] {
                        for left in ["f", "moved"] {
                            sim.serve(Sent::new(StreamRoute::DeleteFile(left.into()))).await;
                        }
                        let directory = verb.contains("directory");
                        if exists && directory {
                            let made = Sent::new(StreamRoute::PostFile("f".into()));
                            assert_eq!(sim.serve(made.json(&json!({ "directory": true }))).await.status, 201);
                        } else if exists {
                            put(&sim, "f", "text/plain", b"old").await;
                        }
                        let id: Vec<i64> =
                            sim.world.database.ask("SELECT id FROM files WHERE name = 'f' AND parent = '/'");
                        let tag = format!("\"f{}\"", id.first().copied().unwrap_or(1));
                        let (name, value) = header.split_once(": ").unwrap();
                        let value = if value == "tag" { &tag } else { value };
                        let got = sim.serve(sent("f").header(name, value)).await;
                        let passes = if exists { there } else { absent };
                        let missing = !exists && matches!(verb, "move" | "delete" | "delete a directory");
                        let expected = match (passes, missing) {
                            (_, true) if verb == "move" => 404,
                            (true, true) => 404,
                            (false, _) => 412,
                            (true, false) => got.status,
                        };
                        assert_eq!(
                            got.status,
                            expected,
                            "{verb} {header}, there: {exists}: {:?}",
                            got.json()
                        );
                        assert!(got.status != 412 || got.json()["error"]["field"] == name);
                        if passes && !missing {
                            assert!(
                                matches!(got.status, 200 | 201 | 204),
                                "{verb} {header}: {:?}",
                                got.json()
                            );
                        }
                    }
                }
            }
        })
        .calm();
}

async fn start(sim: &Sim, path: &str) -> Got {
    sim.serve(Sent::new(StreamRoute::StartUpload).json(&json!({ "path": path, "size": 1 }))).await
}

async fn uploads(sim: &Sim, limit: &str, cursor: &str) -> Value {
    let sent = Sent::new(StreamRoute::ListUploads).query("limit", limit).query("cursor", cursor);
    let got = sim.serve(sent).await;
    assert_eq!(got.status, 200, "{:?}", got.json());
    got.json()
}

#[test]
fn abandoned_uploads_block_nothing_and_are_listed() {
    story("abandoned uploads")
        .drive(|sim| async move {
            for n in 0..limits::UPLOADS {
                assert_eq!(start(&sim, &format!("x{n}")).await.status, 201);
            }
            let refused = start(&sim, "more").await;
            assert_eq!(refused.status, 409);
            // A write is no upload.
            put(&sim, "large", "a/b", &bytes(1, 2_500_000)).await;
            holds(&sim, "large", &bytes(1, 2_500_000)).await;
            let first = uploads(&sim, "60", "").await;
            let second = uploads(&sim, "60", first["cursor"].as_str().unwrap()).await;
            let count = |page: &Value| page["uploads"].as_array().unwrap().len();
            assert_eq!((count(&first), count(&second), &second["cursor"]), (60, 40, &Value::Null));
            assert_eq!(first["uploads"][0]["path"], "/x0");
            let bad = Sent::new(StreamRoute::ListUploads).query("cursor", "u_1");
            assert_eq!(sim.serve(bad).await.json()["error"]["code"], "bad_cursor");
            // They are over after a day: they count no more, and the next one takes them away.
            sim.world.database.alter("UPDATE files SET created_us = created_us - 90000000000 WHERE kind = 2");
            sim.evict().await;
            assert_eq!(count(&uploads(&sim, "60", "").await), 0);
            let next = start(&sim, "next").await;
            assert_eq!(next.status, 201, "{:?}", next.json());
            let left: Vec<i64> = sim.world.database.ask("SELECT count(*) FROM files WHERE kind = 2");
            assert_eq!(left, [1]);
            let route = StreamRoute::DeleteUpload(next.json()["uploadId"].as_str().unwrap().into());
            assert_eq!(sim.serve(Sent::new(route)).await.status, 204);
            nothing_left(&sim);
        })
        .calm();
}

#[test]
fn an_upload_is_known_by_an_id_that_was_given_out() {
    story("ids of uploads")
        .drive(|sim| async move {
            put(&sim, "plain", "text/plain", b"never uploaded").await;
            let id = start(&sim, "f").await.json()["uploadId"].as_str().unwrap().to_owned();
            let route = StreamRoute::PutChunk { upload: id.clone(), index: "0".into() };
            assert_eq!(sim.serve(Sent::new(route).body(b"x")).await.status, 200);
            for _ in [1, 2] {
                let done = sim.serve(Sent::new(StreamRoute::CompleteUpload(id.clone()))).await;
                assert_eq!((done.status, &done.json()["file"]["path"]), (200, &json!("/f")));
            }
            assert_eq!(sim.serve(Sent::new(StreamRoute::GetUpload(id.clone()))).await.status, 200);
            let letters = id.rsplit_once('_').unwrap().1;
            for n in 0..5 {
                for made_up in
                    [format!("u_{n}"), format!("u_{n}_"), format!("u_0{n}_{letters}"), format!("{n}")]
                {
                    for route in [
                        StreamRoute::GetUpload(made_up.clone()),
                        StreamRoute::CompleteUpload(made_up.clone()),
                        StreamRoute::DeleteUpload(made_up.clone()),
                    ] {
                        assert_eq!(sim.serve(Sent::new(route)).await.status, 404, "{made_up}");
                    }
                }
            }
            let odd = Sent::new(StreamRoute::StartUpload)
                .json(&json!({ "path": "g", "size": 1, "mimetype": "a/b" }));
            let odd = sim.serve(odd).await.json();
            assert_eq!(odd["error"]["field"], "mimetype");
        })
        .calm();
}

#[test]
fn the_head_of_a_file_is_that_of_the_whole() {
    story("head")
        .drive(|sim| async move {
            put(&sim, "f", "text/plain", b"0123456789").await;
            for range in ["bytes=2-4", "bytes=99-"] {
                let head = Sent::new(StreamRoute::HeadFile("f".into())).header("range", range);
                let head = sim.serve(head).await;
                assert_eq!((head.status, head.header("content-length")), (200, Some("10")), "{range}");
                assert_eq!(head.header("content-range"), None);
            }
        })
        .calm();
}

#[test]
fn a_search_by_path_ends_whatever_is_asked() {
    story("costly find")
        .drive(|sim| async move {
            put(&sim, "first", "text/plain", b"x").await;
            let name = "a".repeat(250);
            let parent = format!("/{name}/{name}/{name}");
            sim.world.database.alter(&format!(
                "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 9000)
                 INSERT INTO files (parent, name, kind, mime, size, chunks, metadata, created_us, updated_us, search)
                 SELECT '{parent}', '{name}' || n, 1, 'a/b', 0, 0, '{{}}', 1, 1, 0 FROM n"
            ));
            sim.evict().await;
            for (pattern, truncated) in
                [("a?".repeat(490) + "x", true), ("**a".repeat(330), true), ("*a".repeat(499) + "b", true)]
            {
                let found = sim.serve(Sent::new(StreamRoute::ListFiles).query("find", &pattern)).await;
                assert_eq!(found.status, 200);
                assert_eq!(found.json()["truncated"], truncated, "{pattern}");
            }
            // Others go on meanwhile: a usual search is done in slices, too.
            let before = sim.world.now_us();
            let found = sim.serve(Sent::new(StreamRoute::ListFiles).query("find", "firs*")).await.json();
            assert_eq!((&found["files"][0]["path"], &found["truncated"]), (&json!("/first"), &json!(false)));
            assert!(sim.world.now_us() - before >= 8 * limits::FIND_PAUSE_US);
        })
        .long()
        .calm();
}
