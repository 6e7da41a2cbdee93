//! Files that go to the bucket: readable and right at every moment, and nothing left over, whatever fails.

use std::collections::BTreeSet;

use bobbin::request::{StreamRoute, ThreadRoute};
use bobbin::{Code, limits};
use serde_json::json;

use super::files::{bytes, get, holds, nothing_left, put, remove};
use super::story;
use crate::files::Sent;
use crate::host::{At, Fault, SECOND_US};
use crate::sim::{Sim, THREAD};
use crate::sweep::Scenario;

const CHUNK: usize = limits::FILE_CHUNK_BYTES;
/// What goes to the bucket has more bytes than this.
const ABOVE: u64 = CHUNK as u64 + 1;

pub fn all() -> Vec<Scenario> {
    vec![moved(), deleted()]
}

fn with_bucket(name: &'static str) -> Scenario {
    story(name).setup(|sim| sim.world.bucket.above.set(Some(ABOVE)))
}

/// Lets what is on its way arrive, and what a failure left be taken up by a write.
async fn settle(sim: &Sim) {
    for content in [b"one", b"two"] {
        put(sim, "small", "text/plain", content).await;
        sim.world.pause(10 * SECOND_US).await;
    }
}

/// Where a file's content is, as a client is told.
async fn storage(sim: &Sim, path: &str) -> String {
    let route = StreamRoute::GetFile(path.into());
    let record = sim.serve(Sent::new(route).query("stat", "1")).await.json();
    record["file"]["storage"].as_str().unwrap_or_default().to_owned()
}

/// Content is in one place alone, and each object has its file.
fn at_rest(sim: &Sim) {
    nothing_left(sim);
    let database = &sim.world.database;
    let moving: Vec<String> = database.ask("SELECT id || ' ' || storage FROM objects WHERE storage < 3");
    assert!(moving.is_empty(), "on their way: {moving:?}");
    let both: Vec<String> = database.ask(
        "SELECT id || '' FROM objects WHERE EXISTS
            (SELECT 1 FROM chunks WHERE id >= objects.id << 20 AND id < (objects.id << 20) + 1048575)",
    );
    assert!(both.is_empty(), "in both places: {both:?}");
    let named: BTreeSet<String> = database
        .ask(&format!("SELECT '{THREAD}/' || id FROM files WHERE id IN (SELECT id FROM objects)"))
        .into_iter()
        .collect();
    let there: BTreeSet<String> = sim.world.bucket.objects.borrow().keys().cloned().collect();
    assert_eq!(there, named, "the objects, and those that files have");
}

fn moved() -> Scenario {
    with_bucket("files in a bucket").drive(|sim| async move {
        let (first, second) = (bytes(1, 2 * CHUNK + 5), bytes(2, 2 * CHUNK));
        put(&sim, "a/film", "video/mp4", &first).await;
        holds(&sim, "a/film", &first).await;
        sim.world.pause(SECOND_US).await;
        holds(&sim, "a/film", &first).await;
        put(&sim, "a/film", "video/mp4", &second).await;
        let other = put(&sim, "other", "video/mp4", &first).await;
        remove(&sim, "other").await;
        holds(&sim, "a/film", &second).await;
        let to = json!({ "path": "b" });
        let moved = sim.serve(Sent::new(StreamRoute::MoveFile("a".into())).json(&to)).await;
        assert!(matches!(moved.status, 200 | 404), "{:?}", moved.json());
        settle(&sim).await;
        assert_eq!(storage(&sim, "b/film").await, "r2");
        assert_eq!(storage(&sim, "small").await, "local");
        assert_eq!(other.json()["file"]["storage"], "local", "until it is there");
        at_rest(&sim);
        holds(&sim, "b/film", &second).await;
        let range = format!("bytes={}-{}", CHUNK - 2, CHUNK + 1);
        let part = sim.serve(Sent::new(StreamRoute::GetFile("b/film".into())).header("range", &range)).await;
        assert_eq!(part.status, 206);
        assert!(part.body.unwrap() == second[CHUNK - 2..CHUNK + 2], "{range}");
        remove(&sim, "b/film").await;
        settle(&sim).await;
        at_rest(&sim);
        assert!(sim.world.bucket.objects.borrow().is_empty());
    })
}

#[test]
fn a_file_in_the_bucket_is_right_and_leaves_nothing_whatever_fails() {
    moved().sampled(300).sweep();
}

fn deleted() -> Scenario {
    with_bucket("a thread with files in a bucket is deleted")
        .drive(|sim| async move {
            put(&sim, "there", "video/mp4", &bytes(1, CHUNK + 2)).await;
            sim.world.pause(SECOND_US).await;
            // This one is on its way.
            put(&sim, "going", "video/mp4", &bytes(2, 3 * CHUNK)).await;
            let gone = sim.insist(ThreadRoute::Delete, &[], None, String::new()).await;
            assert!(matches!(gone.status, 200 | 404), "{}", gone.body);
            sim.world.pause(10 * SECOND_US).await;
            let left: Vec<String> = sim.world.bucket.objects.borrow().keys().cloned().collect();
            assert!(left.is_empty(), "objects of nobody: {left:?}");
            // The contract's last look needs a thread.
            sim.create().await;
        })
        .terms(|terms| terms.alarm_may_stay = true)
}

#[test]
fn a_thread_is_deleted_with_its_objects_whatever_fails() {
    deleted().sweep();
}

#[test]
fn a_reader_does_not_notice_that_its_file_goes_to_the_bucket() {
    with_bucket("a reader meanwhile")
        .drive(|sim| async move {
            let content = bytes(5, 20 * CHUNK + 1);
            put(&sim, "film", "video/mp4", &content).await;
            assert_eq!(storage(&sim, "film").await, "local");
            // It takes longer than the copy.
            holds(&sim, "film", &content).await;
            assert_eq!(storage(&sim, "film").await, "r2");
            let bucket = &sim.world.bucket;
            assert_eq!((bucket.puts.get(), bucket.gets.get()), (1, 1), "it went on in the bucket");
            let head = sim.serve(Sent::new(StreamRoute::HeadFile("film".into()))).await;
            assert_eq!(head.header("content-length"), Some(content.len().to_string().as_str()));
            assert_eq!(bucket.gets.get(), 1, "headers need no object");
            at_rest(&sim);
        })
        .calm();
}

#[test]
fn a_very_large_file_leaves_the_database_bit_by_bit() {
    with_bucket("very large")
        .drive(|sim| async move {
            let content = bytes(1, (limits::PRUNED_CHUNKS as usize + 10) * CHUNK);
            put(&sim, "film", "video/mp4", &content).await;
            let chunks = || sim.world.database.ask::<i64>("SELECT count(*) FROM chunks")[0];
            sim.world.pause(10 * SECOND_US).await;
            assert_eq!((chunks(), storage(&sim, "film").await.as_str()), (0, "r2"));
            at_rest(&sim);
            holds(&sim, "film", &content).await;
        })
        .once();
}

#[test]
fn a_bucket_that_fails_is_told_and_never_empty_content() {
    with_bucket("a bucket that fails")
        .drive(|sim| async move {
            let bucket = &sim.world.bucket;
            let content = bytes(1, 2 * CHUNK);
            let once = async |route| sim.serve_once(Sent::new(route)).await.unwrap();
            let file = || StreamRoute::GetFile("film".into());
            let code = |got: &crate::files::Got| got.json()["error"]["code"].clone();
            bucket.refuses.set(true);
            put(&sim, "film", "video/mp4", &content).await;
            sim.world.pause(SECOND_US).await;
            holds(&sim, "film", &content).await;
            assert_eq!(storage(&sim, "film").await, "local");
            // A write takes it up again.
            bucket.refuses.set(false);
            settle(&sim).await;
            assert_eq!((storage(&sim, "film").await.as_str(), bucket.puts.get()), ("r2", 1));

            bucket.refuses.set(true);
            let got = once(file()).await;
            assert_eq!((got.status, code(&got)), (503, json!("overloaded")));
            bucket.refuses.set(false);
            bucket.above.set(None);
            let got = once(file()).await;
            assert_eq!((got.status, code(&got)), (500, json!("internal")));
            bucket.above.set(Some(ABOVE));
            let objects = bucket.objects.take();
            let got = once(file()).await;
            assert_eq!((got.status, code(&got)), (500, json!("internal")));
            bucket.objects.replace(objects);
            holds(&sim, "film", &content).await;

            // A removal is heard at once; its object goes when the bucket lets it.
            bucket.refuses.set(true);
            remove(&sim, "film").await;
            settle(&sim).await;
            assert_eq!(bucket.objects.borrow().len(), 1);
            for (refuses, above) in [(true, Some(ABOVE)), (false, None)] {
                bucket.refuses.set(refuses);
                bucket.above.set(above);
                let gone = sim.once(ThreadRoute::Delete, &[], None, String::new()).await.unwrap();
                assert!(gone.status >= 500, "{}", gone.body);
                if refuses {
                    assert_eq!((gone.status, &gone.body["error"]["code"]), (503, &json!(Code::Overloaded)));
                }
                assert_eq!(get(&sim, "small").await.status, 200, "it is all there");
            }
            bucket.above.set(Some(ABOVE));
            let gone = sim.once(ThreadRoute::Delete, &[], None, String::new()).await.unwrap();
            assert_eq!(gone.status, 200, "{}", gone.body);
            assert!(bucket.objects.borrow().is_empty());
            sim.create().await;
        })
        .calm();
}

#[test]
fn what_a_crash_left_in_the_bucket_goes_with_its_file() {
    // The object is stored, nobody knows it, and its file is removed.
    with_bucket("an object that nobody knows")
        .suffers(|| crate::host::fault::whenever(1, Fault::CrashLost, |point| point.at == At::ObjectDone))
        .drive(|sim| async move {
            put(&sim, "film", "video/mp4", &bytes(1, 2 * CHUNK)).await;
            sim.world.pause(SECOND_US).await;
            assert_eq!(storage(&sim, "film").await, "local");
            assert_eq!(sim.world.bucket.objects.borrow().len(), 1);
            remove(&sim, "film").await;
            settle(&sim).await;
            at_rest(&sim);
            assert!(sim.world.bucket.objects.borrow().is_empty());
        })
        .calm();
}
