//! Files: written, replaced, moved, removed, uploaded in chunks and searched, whatever fails.

use bobbin::definitions::message::ToolResult;
use bobbin::engine::{FileOptions, NativeCall};
use bobbin::request::{StreamRoute, ThreadRoute};
use bobbin::{Code, limits};
use bytes::Bytes;
use futures::{FutureExt, StreamExt};
use serde_json::{Value, json};

use super::{clerk, story, with_work};
use crate::files::{Got, Sent};
use crate::host::{DAY_US, Native, SECOND_US};
use crate::sim::Sim;
use crate::sweep::Scenario;

const CHUNK: usize = limits::FILE_CHUNK_BYTES;

pub fn all() -> Vec<Scenario> {
    vec![kept(), uploaded(), read_meanwhile(), by_tools(), deleted()]
}

/// Bytes that differ by their seed and everywhere.
pub fn bytes(seed: u8, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at.wrapping_mul(31) >> 3) as u8 ^ (at >> 11) as u8 ^ seed).collect()
}

pub async fn put(sim: &Sim, path: &str, mime: &str, body: &[u8]) -> Got {
    let sent = Sent::new(StreamRoute::PutFile(path.into())).header("content-type", mime).body(body);
    let length = body.len().to_string();
    let got = sim.serve(sent.header("content-length", &length)).await;
    // A repeated one finds what the first one wrote.
    assert!(matches!(got.status, 200 | 201), "{path}: {got:?}");
    got
}

pub async fn get(sim: &Sim, path: &str) -> Got {
    sim.serve(Sent::new(StreamRoute::GetFile(path.into()))).await
}

pub async fn holds(sim: &Sim, path: &str, content: &[u8]) {
    let got = get(sim, path).await;
    assert_eq!(got.status, 200, "{path}: {:?}", got.json());
    assert!(got.body.as_deref() == Ok(content), "{path} has another content");
}

async fn list(sim: &Sim, name: &str, value: &str) -> Value {
    let got = sim.serve(Sent::new(StreamRoute::ListFiles).query(name, value)).await;
    assert_eq!(got.status, 200, "{:?}", got.json());
    got.json()
}

/// Files in which a text was found.
pub async fn grep(sim: &Sim, pattern: &str) -> Vec<String> {
    let found = list(sim, "grep", pattern).await;
    let path = |result: &Value| result["path"].as_str().unwrap().to_owned();
    found["results"].as_array().unwrap().iter().map(path).collect()
}

pub async fn remove(sim: &Sim, path: &str) {
    let got = sim.serve(Sent::new(StreamRoute::DeleteFile(path.into()))).await;
    assert!(matches!(got.status, 204 | 404), "{path}: {got:?}");
    assert_eq!(get(sim, path).await.status, 404, "{path}");
}

/// Nothing is stored that no file has.
pub fn nothing_left(sim: &Sim) {
    let database = &sim.world.database;
    let left: Vec<String> = database.ask("SELECT kind || ' ' || name FROM files WHERE parent IS NULL");
    assert!(left.is_empty(), "left over: {left:?}");
    let strays: Vec<i64> =
        database.ask("SELECT id FROM chunks WHERE (id >> 20) NOT IN (SELECT id FROM files)");
    assert!(strays.is_empty(), "chunks of nobody: {strays:?}");
    let short: Vec<String> = database.ask(
        "SELECT parent || name FROM files WHERE kind = 1 AND id NOT IN (SELECT id FROM objects WHERE storage > 1) AND chunks !=
            (SELECT count(*) FROM chunks WHERE id >= files.id << 20 AND id < (files.id << 20) + 1048575)",
    );
    assert!(short.is_empty(), "files with other chunks than they say: {short:?}");
}

fn kept() -> Scenario {
    story("files").drive(|sim| async move {
        put(&sim, "a/b.txt", "text/plain", b"one Alpha").await;
        put(&sim, "a/b.txt", "text/plain", b"two\nBeta").await;
        holds(&sim, "/a//b.txt", b"two\nBeta").await;
        let (first, second) = (bytes(1, CHUNK + 1), bytes(2, 2 * CHUNK));
        put(&sim, "big", "image/png", &first).await;
        holds(&sim, "big", &first).await;
        put(&sim, "big", "image/png", &second).await;
        holds(&sim, "big", &second).await;
        let moved =
            sim.serve(Sent::new(StreamRoute::MoveFile("a".into())).json(&json!({ "path": "c/d" }))).await;
        assert!(matches!(moved.status, 200 | 404), "{:?}", moved.json());
        holds(&sim, "c/d/b.txt", b"two\nBeta").await;
        assert_eq!(
            (grep(&sim, "BETA").await, grep(&sim, "alpha").await),
            (vec!["/c/d/b.txt".into()], vec![])
        );
        remove(&sim, "big").await;
        let made =
            sim.serve(Sent::new(StreamRoute::PostFile("e".into())).json(&json!({ "directory": true }))).await;
        assert!(matches!(made.status, 200 | 201));
        remove(&sim, "e").await;
        remove(&sim, "c/d/b.txt").await;
        assert!(grep(&sim, "beta").await.is_empty() && grep(&sim, "be").await.is_empty());
        // A write takes away whatever a failure has left.
        put(&sim, "last", "text/plain", b"bye").await;
        put(&sim, "last", "text/plain", b"bye").await;
        nothing_left(&sim);
        assert_eq!(
            list(&sim, "stats", "1").await,
            json!({ "fileCount": 1, "directoryCount": 2, "totalSize": 3 })
        );
    })
}

#[test]
fn a_file_that_was_accepted_is_kept_whatever_fails() {
    kept().sweep();
}

fn uploaded() -> Scenario {
    story("uploads").drive(|sim| async move {
        put(&sim, "film", "video/mp4", b"old").await;
        let content = bytes(3, CHUNK + 5);
        let body = json!({ "path": "film", "size": content.len(), "mimeType": "video/mp4", "width": 640,
            "metadata": { "title": "t" }, "thumbnail": "iVBORw==" });
        let started = sim.serve(Sent::new(StreamRoute::StartUpload).json(&body)).await;
        assert_eq!((started.status, &started.json()["chunks"]), (201, &json!(2)));
        let id = started.json()["uploadId"].as_str().unwrap().to_owned();
        let complete = || sim.serve(Sent::new(StreamRoute::CompleteUpload(id.clone())));
        for index in [1, 0, 1] {
            let early = complete().await;
            if index != 1 {
                assert_eq!(early.json()["error"]["message"], "Chunks 0 are missing.");
            }
            let part = content.chunks(CHUNK).nth(index).unwrap();
            let route = StreamRoute::PutChunk { upload: id.clone(), index: index.to_string() };
            let stored = sim.serve(Sent::new(route).body(part)).await;
            // The third one may come too late, after a complete whose answer was lost.
            assert!(matches!(stored.status, 200 | 409), "{:?}", stored.json());
            if index == 1 {
                let there = sim.serve(Sent::new(StreamRoute::GetUpload(id.clone()))).await.json();
                assert!(
                    !there["file"].is_null() || there["received"].as_array().unwrap().contains(&json!(1))
                );
            }
        }
        for _ in [1, 2] {
            let done = complete().await;
            assert_eq!((done.status, &done.json()["file"]["width"]), (200, &json!(640)), "{:?}", done.json());
            assert_eq!(done.json()["file"]["metadata"]["title"], "t");
        }
        holds(&sim, "film", &content).await;
        let thumbnail = Sent::new(StreamRoute::GetFile("film".into())).query("thumbnail", "1");
        let thumbnail = sim.serve(thumbnail).await;
        assert_eq!(thumbnail.header("content-type"), Some("image/png"));
        assert_eq!(thumbnail.body.unwrap(), [0x89, b'P', b'N', b'G']);
        // An upload whose answer was lost, and one that is given up.
        let other = sim.serve(Sent::new(StreamRoute::StartUpload).json(&body)).await.json();
        let other = other["uploadId"].as_str().unwrap().to_owned();
        let deleted = sim.serve(Sent::new(StreamRoute::DeleteUpload(other.clone()))).await;
        assert!(matches!(deleted.status, 204 | 404));
        assert_eq!(sim.serve(Sent::new(StreamRoute::GetUpload(other))).await.status, 404);
        sim.world.pause(DAY_US + SECOND_US).await;
        for _ in [1, 2] {
            put(&sim, "last", "text/plain", b"bye").await;
        }
        nothing_left(&sim);
        holds(&sim, "film", &content).await;
    })
}

#[test]
fn an_upload_in_chunks_survives_whatever_fails() {
    uploaded().sweep();
}

fn read_meanwhile() -> Scenario {
    story("a file that is read while it is replaced").drive(|sim| async move {
        let versions: Vec<Vec<u8>> = (0..4).map(|seed| bytes(seed, 2 * CHUNK + usize::from(seed))).collect();
        put(&sim, "f", "video/mp4", &versions[0]).await;
        let (reader, known) = (sim.clone(), versions.clone());
        let reading = async move {
            let (mut whole, mut broken) = (0, 0);
            while whole + broken < 8 {
                match get(&reader, "f").await.body {
                    Ok(body) => {
                        assert!(known.contains(&body), "a mixture of {} bytes", body.len());
                        whole += 1;
                    }
                    Err(part) => {
                        assert!(
                            known.iter().any(|version| version.starts_with(&part)),
                            "a mixture broke off"
                        );
                        broken += 1;
                    }
                }
            }
        };
        let writing = async {
            for version in &versions[1..] {
                put(&sim, "f", "video/mp4", version).await;
            }
        };
        futures::future::join(reading, writing).await;
        holds(&sim, "f", &versions[3]).await;
    })
}

#[test]
fn a_reader_never_sees_a_mixture_whatever_fails() {
    read_meanwhile().sampled(120).sweep();
}

/// A tool that works with files.
fn keeps_house(call: &NativeCall) -> ToolResult {
    let state = &call.state;
    state.write_file("notes/a.md", "# Alpha\nbeta", "text/markdown", FileOptions::default()).unwrap();
    state.move_file("notes/a.md", "notes/b.md").unwrap();
    assert_eq!(state.read_file("notes/b.md").unwrap().as_deref(), Some(&b"# Alpha\nbeta"[..]));
    assert_eq!(state.read_file("notes/a.md").unwrap(), None);
    state.unlink_file("notes/b.md").unwrap();
    state.unlink_file("notes/b.md").unwrap();
    state.rmdir_file("notes").unwrap();
    state.write_file("done", "yes", "text/plain", FileOptions::default()).unwrap();
    ToolResult::success("kept house")
}

fn by_tools() -> Scenario {
    Scenario::new("a tool that works with files", &with_work())
        .says(clerk)
        .setup(|sim| {
            sim.world.outside.native("work", |call, _| Native::Gives(SECOND_US, keeps_house(call)));
        })
        .drive(|sim| async move {
            sim.ask("use work").await;
        })
        .check(|sim, history| {
            let done: Vec<i64> = sim.world.database.ask("SELECT count(*) FROM files WHERE name = 'done'");
            let told = history.texts("tool").contains(&"kept house");
            assert!(done == [1] || !told, "what gave a result has written");
        })
}

#[test]
fn what_a_tool_wrote_into_files_is_kept() {
    by_tools().sweep();
}

/// A thread with texts is deleted, and its files with it.
fn deleted() -> Scenario {
    story("a thread with files is deleted")
        .drive(|sim| async move {
            put(&sim, "a/text", "text/plain", b"needle in a text").await;
            put(&sim, "bytes", "image/png", &bytes(1, CHUNK + 1)).await;
            let gone = sim.insist(ThreadRoute::Delete, &[], None, String::new()).await;
            assert!(matches!(gone.status, 200 | 404), "{}", gone.body);
            let tables = "SELECT name FROM sqlite_schema WHERE name LIKE 'file%' OR name = 'chunks'";
            let left: Vec<String> = sim.world.database.ask(tables);
            assert!(left.is_empty(), "tables that are left: {left:?}");
            assert_eq!(get(&sim, "a/text").await.status, 404);
            // The contract's last look needs a thread.
            sim.create().await;
            put(&sim, "again", "text/plain", b"another needle").await;
            assert_eq!(grep(&sim, "needle").await, ["/again"]);
        })
        .terms(|terms| terms.alarm_may_stay = true)
}

#[test]
fn a_thread_is_deleted_with_its_files_whatever_fails() {
    deleted().sweep();
}

#[test]
fn a_body_that_breaks_off_leaves_nothing_and_changes_nothing() {
    story("broken off")
        .drive(|sim| async move {
            put(&sim, "f", "text/plain", b"before").await;
            for length in [10, CHUNK, 3 * CHUNK] {
                let route = StreamRoute::PutFile("f".into());
                let sent = Sent { breaks: true, ..Sent::new(route).body(&bytes(1, length)) };
                let got = sim.serve(sent).await;
                assert_eq!(got.json()["error"]["field"], "body", "{:?}", got.json());
                nothing_left(&sim);
            }
            // Shorter than announced.
            let route = StreamRoute::PutFile("f".into());
            let got = sim.serve(Sent::new(route).header("content-length", "11").body(b"ten bytes!")).await;
            assert_eq!(got.json()["error"]["field"], "content-length");
            holds(&sim, "f", b"before").await;
        })
        .calm();
}

#[test]
fn a_large_file_is_removed_bit_by_bit() {
    story("large")
        .drive(|sim| async move {
            let chunks = limits::PRUNED_CHUNKS as usize + 10;
            put(&sim, "large", "video/mp4", &bytes(1, chunks * CHUNK)).await;
            remove(&sim, "large").await;
            let left = || sim.world.database.ask::<i64>("SELECT count(*) FROM chunks")[0];
            assert_eq!(left(), 10, "as many went at once as may");
            put(&sim, "small", "text/plain", b"x").await;
            assert_eq!(left(), 1);
            nothing_left(&sim);
        })
        .once();
}

#[test]
fn paths_that_are_taken_are_told_apart() {
    story("the tree")
        .drive(|sim| async move {
            put(&sim, "dir/file", "text/plain", b"x").await;
            let json = |route: StreamRoute, body: Value| sim.serve(Sent::new(route).json(&body));
            let bare = |route: StreamRoute| sim.serve(Sent::new(route));
            let to = |from: &str, to: &str| json(StreamRoute::MoveFile(from.into()), json!({ "path": to }));
            let mkdir = |path: &str| json(StreamRoute::PostFile(path.into()), json!({ "directory": true }));
            let write = |path: &str| json(StreamRoute::PostFile(path.into()), json!({ "content": "y" }));
            assert_eq!((mkdir("empty").await.status, mkdir("empty").await.status), (201, 200));
            assert_eq!(mkdir("").await.json()["file"]["path"], "/");
            for (got, status, code, says) in [
                (write("dir").await, 409, "conflict", "/dir is a directory"),
                (write("dir/file/below").await, 409, "conflict", "/dir/file is a file"),
                (write("").await, 400, "invalid_field", "the root"),
                (write("a/../b").await, 400, "invalid_field", "“..”"),
                (mkdir("dir/file").await, 409, "conflict", "is a file"),
                (bare(StreamRoute::DeleteFile("dir".into())).await, 409, "conflict", "/dir is not empty"),
                (bare(StreamRoute::DeleteFile("none".into())).await, 404, "not_found", "no file /none"),
                (bare(StreamRoute::DeleteFile("".into())).await, 400, "invalid_field", "root"),
                (to("dir", "dir/inner").await, 400, "invalid_field", "into itself"),
                (to("dir", "empty").await, 409, "conflict", "something at /empty"),
                (to("dir", "dir/file/x").await, 400, "invalid_field", "into itself"),
                (to("empty", "dir/file/x").await, 409, "conflict", "/dir/file is a file"),
                (to("none", "x").await, 404, "not_found", "/none"),
                (to("/", "x").await, 400, "invalid_field", "root"),
                (to("dir", "/").await, 400, "invalid_field", "root"),
                (to("dir", &"long/".repeat(204)).await, 400, "invalid_field", "1024"),
                (
                    json(StreamRoute::PostFile("x".into()), json!({})).await,
                    400,
                    "invalid_field",
                    "what to write",
                ),
                (
                    json(StreamRoute::PostFile("x".into()), json!({ "content": "", "mod": 1 })).await,
                    400,
                    "invalid_field",
                    "`mod` is no field",
                ),
                (
                    json(StreamRoute::PostFile("x".into()), json!({ "data": "?" })).await,
                    400,
                    "invalid_field",
                    "not base64",
                ),
                (
                    json(StreamRoute::PostFile("x".into()), json!({ "content": "", "mimeType": "text" }))
                        .await,
                    400,
                    "invalid_field",
                    "like `text/plain`",
                ),
            ] {
                let error = got.json()["error"].clone();
                assert_eq!((got.status, error["code"].as_str()), (status, Some(code)), "{error}");
                assert!(error["message"].as_str().unwrap().contains(says), "{error}");
            }
            // A directory goes with everything below it, also where a neighbour's name begins like its own.
            put(&sim, "dir/sub/deep", "text/plain", b"d").await;
            put(&sim, "dir-2/file", "text/plain", b"n").await;
            put(&sim, "dir0", "text/plain", b"n").await;
            assert_eq!(to("dir", "ü/moved").await.status, 200);
            for (path, content) in [("ü/moved/file", b"x"), ("ü/moved/sub/deep", b"d"), ("dir-2/file", b"n")]
            {
                holds(&sim, path, content).await;
            }
            assert_eq!(get(&sim, "dir/file").await.status, 404);
            let listed = get(&sim, "").await.json();
            let names: Vec<&str> = listed["files"]
                .as_array()
                .unwrap()
                .iter()
                .map(|file| file["name"].as_str().unwrap())
                .collect();
            assert_eq!(names, ["dir-2", "empty", "ü", "dir0"], "directories first, then by name");
            let page = |cursor: String| {
                sim.serve(Sent::new(StreamRoute::ListFiles).query("limit", "3").query("cursor", &cursor))
            };
            let first = page(String::new()).await.json();
            let second = page(first["cursor"].as_str().unwrap().to_owned()).await.json();
            assert_eq!((&second["files"][0]["name"], &second["cursor"]), (&json!("dir0"), &Value::Null));
            nothing_left(&sim);
        })
        .calm();
}

#[test]
fn versions_and_ranges_are_served_as_http_has_them() {
    story("http")
        .drive(|sim| async move {
            let content = bytes(5, 2 * CHUNK + 10);
            let first = put(&sim, "f", "text/html", b"short").await.header("etag").unwrap().to_owned();
            let with = |headers: &[(&str, &str)]| {
                let sent = Sent::new(StreamRoute::GetFile("f".into()));
                let sent = headers.iter().fold(sent, |sent, (name, value)| sent.header(name, value));
                sim.serve(sent)
            };
            let got = with(&[]).await;
            for (name, value) in [
                ("content-type", "text/html"),
                ("content-length", "5"),
                ("accept-ranges", "bytes"),
                ("x-content-type-options", "nosniff"),
                ("content-security-policy", "sandbox; default-src 'none'"),
                ("cache-control", "private, no-cache"),
            ] {
                assert_eq!(got.header(name), Some(value), "{name}");
            }
            assert!(
                got.header("last-modified").unwrap().ends_with(" 2026 10:13:20 GMT") || got.status == 200
            );
            let unchanged = with(&[("if-none-match", &first)]).await;
            assert_eq!((unchanged.status, unchanged.body.as_deref()), (304, Ok(&b""[..])));
            let conditional = |name: &str, value: &str, body: &[u8]| {
                sim.serve(Sent::new(StreamRoute::PutFile("f".into())).header(name, value).body(body))
            };
            assert_eq!(conditional("if-none-match", "*", b"no").await.status, 412);
            assert_eq!(conditional("if-match", "\"other\"", b"no").await.status, 412);
            let second = conditional("if-match", &first, &content).await;
            assert_eq!((second.status, second.json()["file"]["chunkCount"].as_u64()), (200, Some(3)));
            assert_eq!(conditional("if-match", &first, b"lost update").await.status, 412);
            let second = second.header("etag").unwrap().to_owned();
            for range in [0..1, 5..CHUNK, CHUNK - 1..CHUNK + 1, CHUNK..2 * CHUNK, 10..2 * CHUNK + 10] {
                let header = format!("bytes={}-{}", range.start, range.end - 1);
                for headers in
                    [vec![("range", header.as_str())], vec![("range", &header), ("if-range", &second)]]
                {
                    let got = with(&headers).await;
                    assert_eq!(got.status, 206);
                    assert!(got.body.as_deref() == Ok(&content[range.clone()]), "{header}");
                    let told = format!("bytes {}-{}/{}", range.start, range.end - 1, content.len());
                    assert_eq!(got.header("content-range"), Some(told.as_str()));
                    assert_eq!(got.header("content-length"), Some(range.len().to_string().as_str()));
                }
            }
            let whole = with(&[("range", "bytes=0-1"), ("if-range", &first)]).await;
            assert_eq!((whole.status, whole.body.unwrap().len()), (200, content.len()), "of another version");
            let none = with(&[("range", "bytes=9999999-")]).await;
            assert_eq!((none.status, none.header("content-range")), (416, Some("bytes */2000010")));
            let head = sim.serve(Sent::new(StreamRoute::HeadFile("f".into()))).await;
            assert_eq!(
                (head.header("content-length"), head.body.as_ref().map(Vec::len)),
                (Some("2000010"), Ok(0))
            );
            let gone =
                sim.serve(Sent::new(StreamRoute::DeleteFile("f".into())).header("if-match", &first)).await;
            assert_eq!(gone.status, 412);
            remove(&sim, "f").await;
            // An id is never given out again: what comes next is another version.
            assert_ne!(put(&sim, "f", "text/html", b"short").await.header("etag"), Some(second.as_str()));
        })
        .calm();
}

#[test]
fn caps_of_files_are_named() {
    story("caps of files")
        .setup(|sim| {
            sim.world.outside.native("work", |call, _| {
                let state = &call.state;
                let write = |path: String| state.write_file(&path, "", "text/x", FileOptions::default());
                for n in 0..limits::FILES - 1 {
                    write(format!("d/{n}")).unwrap();
                }
                let error = write("d/more".into()).unwrap_err();
                assert!(error.code == Code::TooLarge && error.message.contains("10000"), "{error}");
                assert!(state.mkdir_file("e").is_err());
                write("d/1".into()).unwrap();
                assert_eq!(state.find_files("d/98??").unwrap().len(), 100);
                let large = vec![0; limits::FILE_WHOLE_BYTES + 1];
                let write = state.write_file("d/1", &large, "a/b", FileOptions::default());
                assert!(write.unwrap_err().message.contains("33554432"));
                let thumbnail = Some(Bytes::from(vec![0; limits::THUMBNAIL_BYTES + 1]));
                let options = FileOptions { thumbnail, ..FileOptions::default() };
                let write = state.write_file("d/1", "", "a/b", options).unwrap_err();
                assert!(write.message.contains("262144"), "{write}");
                Native::Gives(SECOND_US, ToolResult::success("full"))
            });
        })
        .drive(|sim| async move {
            sim.ask("use work").await;
            sim.evict().await;
            let got = sim.serve(Sent::new(StreamRoute::PutFile("x".into())).body(b"x")).await;
            assert_eq!(got.status, 413);
            remove(&sim, "d/7").await;
            put(&sim, "x", "text/plain", b"x").await;
            let size = (limits::FILE_BYTES + 1).to_string();
            let sent = Sent::new(StreamRoute::PutFile("x".into())).header("content-length", &size);
            assert_eq!(sim.serve(sent).await.json()["error"]["code"], "too_large");
            let start = |body: Value| sim.serve(Sent::new(StreamRoute::StartUpload).json(&body));
            assert_eq!(start(json!({ "path": "x", "size": limits::FILE_BYTES + 1 })).await.status, 413);
            assert_eq!(start(json!({ "path": "x", "size": -1 })).await.json()["error"]["field"], "size");
            for _ in 0..limits::UPLOADS {
                assert_eq!(start(json!({ "path": "x", "size": 1 })).await.status, 201);
            }
            assert_eq!(start(json!({ "path": "x", "size": 1 })).await.status, 409);
        })
        .once();
}

#[test]
fn a_terminated_thread_keeps_its_files_and_takes_no_more() {
    story("terminated with files")
        .drive(|sim| async move {
            put(&sim, "f", "text/plain", b"kept").await;
            sim.terminate().await;
            holds(&sim, "f", b"kept").await;
            for sent in [
                Sent::new(StreamRoute::PutFile("f".into())).body(b"x"),
                Sent::new(StreamRoute::DeleteFile("f".into())),
                Sent::new(StreamRoute::MoveFile("f".into())).json(&json!({ "path": "g" })),
                Sent::new(StreamRoute::StartUpload).json(&json!({ "path": "g", "size": 1 })),
                Sent::new(StreamRoute::PostFile("d".into())).json(&json!({ "directory": true })),
            ] {
                let got = sim.serve(sent).await;
                assert_eq!((got.status, &got.json()["error"]["code"]), (409, &json!("terminated")));
            }
            holds(&sim, "f", b"kept").await;
        })
        .calm();
}

#[test]
fn a_file_is_read_piece_by_piece() {
    story("pieces")
        .setup(|sim| {
            sim.world.outside.native("work", |call, _| {
                let state = &call.state;
                let content = bytes(9, 2 * CHUNK + 1);
                let record = state.write_file("f", &content, "a/b", FileOptions::default()).unwrap();
                assert_eq!((record.chunk_count, record.is_chunked), (3, true));
                let stream = state.read_file_stream("f").unwrap().unwrap();
                let pieces: Vec<_> = stream.collect::<Vec<_>>().now_or_never().unwrap();
                let pieces: Vec<_> = pieces.into_iter().map(Result::unwrap).collect();
                let shape: Vec<_> =
                    pieces.iter().map(|p| (p.index, p.total_chunks, p.is_last, p.data.len())).collect();
                assert_eq!(shape, [(0, 3, false, CHUNK), (1, 3, false, CHUNK), (2, 3, true, 1)]);
                assert!(pieces.iter().flat_map(|piece| piece.data.to_vec()).eq(content.iter().copied()));
                assert!(state.read_file_stream("none").unwrap().is_none());
                // One that is replaced in the middle breaks off.
                let mut stream = state.read_file_stream("f").unwrap().unwrap();
                assert!(stream.next().now_or_never().unwrap().unwrap().is_ok());
                state.write_file("f", "", "a/b", FileOptions::default()).unwrap();
                let error = stream.next().now_or_never().unwrap().unwrap().unwrap_err();
                assert_eq!(error.code, Code::Conflict, "{error}");
                assert!(stream.next().now_or_never().unwrap().is_none());
                assert_eq!(state.read_file("f").unwrap().as_deref(), Some(&b""[..]));
                Native::Gives(SECOND_US, ToolResult::success("read"))
            });
        })
        .drive(|sim| async move {
            sim.ask("use work").await;
        })
        .once();
}
