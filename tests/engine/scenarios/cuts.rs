//! Conversations that go on from an earlier message: answered anew, or changed and answered.

use bobbin::request::{REPLACES, ThreadRoute};
use serde_json::{Value, json};

use super::summary::{said, settled, summarised};
use super::{clerk, family, story};
use crate::contract::History;
use crate::host::SECOND_US;
use crate::sim::{Seen, Sim};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![anew(), changed(), replaced(), with_children()]
}

async fn regenerate(sim: &Sim, id: &str, key: &str) -> Seen {
    sim.insist(ThreadRoute::Regenerate(id.into()), &[], Some(key), String::new()).await
}

async fn change(sim: &Sim, id: &str, content: &str) -> Seen {
    let query = [("truncate", "true"), ("run", "true")];
    let body = json!({ "content": content }).to_string();
    let key = format!("change {id}");
    sim.insist(ThreadRoute::PatchMessage(id.into()), &query, Some(&key), body).await
}

/// Waits until no run is active any more.
async fn rests(sim: &Sim) {
    sim.until("it rests", |sim| {
        sim.member.database.ask::<i64>("SELECT count(*) FROM runs WHERE phase != 'ended'") == [0]
    })
    .await;
}

/// The third question of four is answered anew, once for a key.
fn anew() -> Scenario {
    story("answered anew")
        .drive(|sim| async move {
            for text in ["one", "two"] {
                sim.ask(text).await;
            }
            let third = sim.send("use work").await;
            sim.outcome(&third).await;
            sim.ask("four").await;
            let history = sim.history().await;
            let said =
                |message: &Value| message["content"].as_str().is_some_and(|text| text.starts_with("done: "));
            let reply = history.iter().find(|message| said(message));
            let id = reply.unwrap()["id"].as_str().unwrap().to_owned();
            sim.accepted.borrow_mut().clear();
            let seen = regenerate(&sim, &id, "again").await;
            assert_eq!((seen.status, &seen.body["messageId"]), (202, &json!(third.id)), "{}", seen.body);
            rests(&sim).await;
            let again = regenerate(&sim, &id, "again").await;
            assert_eq!((again.status, &again.body["run"]), (202, &seen.body["run"]), "{}", again.body);
            let gone = sim.insist(ThreadRoute::GetMessage(id), &[], None, String::new()).await;
            assert_eq!(gone.status, 404);
        })
        .terms(|terms| {
            terms.one_answer = false;
            // What was cut had calls.
            terms.pairs = false;
        })
        .check(|sim, history| {
            assert_eq!(history.texts("user"), ["one", "two", "use work"]);
            let answers = history.answers();
            assert_eq!(answers.len(), 3, "{answers:?}");
            assert!(answers[2].starts_with("done: "), "{answers:?}");
            let requests = sim.world.outside.requests.borrow();
            let last = requests.last().unwrap();
            assert_eq!(last.texts("user"), ["one", "two", "use work"], "nothing of what was cut is sent");
        })
}

#[test]
fn what_was_said_is_answered_anew_whatever_fails() {
    anew().sampled(300).sweep();
}

/// The first question is changed, with all that followed.
fn changed() -> Scenario {
    story("changed and answered")
        .drive(|sim| async move {
            let first = sim.send("one").await;
            sim.outcome(&first).await;
            sim.ask("use work").await;
            sim.accepted.borrow_mut().clear();
            let seen = change(&sim, &first.id, "uno").await;
            assert_eq!(seen.status, 202, "{}", seen.body);
            rests(&sim).await;
            let again = change(&sim, &first.id, "uno").await;
            assert_eq!((again.status, &again.body["run"]), (202, &seen.body["run"]), "{}", again.body);
        })
        .terms(|terms| {
            terms.one_answer = false;
            terms.pairs = false;
        })
        .check(|_, history| {
            assert_eq!((history.texts("user"), history.answers()), (vec!["uno"], vec!["re: uno"]));
        })
}

#[test]
fn a_changed_message_is_answered_in_place_of_what_followed_whatever_fails() {
    changed().sampled(200).sweep();
}

/// Send a message that replaces another one and all later ones.
async fn replace(sim: &Sim, id: &str, key: &str, body: Value) -> Seen {
    sim.with_header(REPLACES, id).post_with(key, body, &[]).await
}

/// The first question is replaced with all that followed, as by a chat program whose message cannot be changed in place.
fn replaced() -> Scenario {
    story("taken back and asked otherwise")
        .drive(|sim| async move {
            let first = sim.send("one").await;
            sim.outcome(&first).await;
            sim.ask("use work").await;
            sim.accepted.borrow_mut().clear();
            let body = json!({ "role": "user", "content": "uno" });
            for _ in 0..2 {
                // The second request is a retry. The old message does not exist any more.
                let seen = replace(&sim, &first.id, "uno", body.clone()).await;
                assert_eq!(seen.status, 202, "{}", seen.body);
                assert_ne!(seen.body["messageId"], first.id.as_str(), "no id is given twice");
            }
            let uno = sim.accepted.borrow().last().unwrap().clone();
            sim.outcome(&uno).await;
            let other = replace(&sim, &first.id, "other", json!({ "role": "user", "content": "x" })).await;
            assert_eq!(
                (other.status, &other.body["error"]["code"]),
                (409, &json!("conflict")),
                "{}",
                other.body
            );
        })
        .terms(|terms| {
            terms.one_answer = false;
            terms.pairs = false;
        })
        .check(|_, history| {
            assert_eq!((history.texts("user"), history.answers()), (vec!["uno"], vec!["re: uno"]));
        })
}

#[test]
fn a_message_is_taken_back_and_another_asked_whatever_fails() {
    replaced().sampled(200).sweep();
}

#[test]
fn a_refused_message_replaces_nothing() {
    story("nothing replaced")
        .answers(|request| clerk(request).stream(request.index).pace(SECOND_US))
        .drive(|sim| async move {
            let first = sim.send("one").await;
            sim.outcome(&first).await;
            let before = sim.history().await;
            let long = "x".repeat(bobbin::limits::CONTENT_BYTES + 1);
            let file = json!({ "name": "a", "mimeType": "text/plain", "data": "!" });
            for (at, body) in [
                json!({ "role": "user", "content": "" }),
                json!({ "role": "user", "content": long }),
                json!({ "role": "user", "content": "x", "attachments": [file] }),
            ]
            .into_iter()
            .enumerate()
            {
                let seen = replace(&sim, &first.id, &format!("k{at}"), body).await;
                assert!(matches!(seen.status, 400 | 413 | 422), "{}", seen.body);
                assert_eq!(sim.history().await, before);
            }
            let body = json!({ "role": "user", "content": "x" });
            let seen = replace(&sim, "m_6f0c0000_99", "k8", body.clone()).await;
            assert_eq!(
                (seen.status, &seen.body["error"]["code"]),
                (409, &json!("conflict")),
                "{}",
                seen.body
            );
            // Nothing is deleted during a run.
            let second = sim.send("use work").await;
            sim.until_requests(2).await;
            let seen = replace(&sim, &first.id, "k9", body).await;
            assert_eq!(
                (seen.status, &seen.body["error"]["code"]),
                (409, &json!("conflict")),
                "{}",
                seen.body
            );
            sim.outcome(&second).await;
            assert_eq!(sim.history().await[..2], before);
        })
        .calm();
}

/// A child that a cut message has made, and that works on, is ended and not heard.
fn with_children() -> Scenario {
    family::story("a child is cut off")
        .define(|catalog| {
            let entry = &mut catalog["prompts"]["p"]["tools"][0];
            entry["resumable"] = json!({ "receives_messages": "side_a" });
            entry["blocking"] = false.into();
        })
        .drive(|sim| async move {
            sim.ask("[]").await;
            let args = json!({ "agent": "research", "message": "[[\"nap\",{}]]", "attachments": [],
                "name": "n", "arguments": { "q": "?" } });
            let second = sim.send(&family::calls(json!([["subagent_create", args]]))).await;
            sim.outcome(&second).await;
            sim.until("the child naps", |sim| !sim.world.outside.executions.borrow().is_empty()).await;
            let first = sim.history().await[0]["id"].as_str().unwrap().to_owned();
            sim.accepted.borrow_mut().clear();
            let seen = change(&sim, &first, "[ ]").await;
            assert_eq!(seen.status, 202, "{}", seen.body);
            rests(&sim).await;
            sim.world.pause(120 * SECOND_US).await;
        })
        .terms(|terms| {
            terms.more_requests = 3;
            terms.pairs = false;
        })
        .check(|sim, history| {
            assert_eq!(history.texts("user"), ["[ ]"], "nothing of the child");
            assert_eq!(History::answers(history), ["did 0"]);
            let open: Vec<i64> = sim.member.database.ask("SELECT count(*) FROM children WHERE open = 1");
            assert_eq!(open, [0]);
        })
}

#[test]
fn a_child_of_what_was_cut_is_ended_and_not_heard_whatever_fails() {
    with_children().sampled(150).sweep();
}

#[test]
fn a_thread_that_works_is_not_cut() {
    story("not while it works")
        .answers(|request| clerk(request).stream(request.index).pace(SECOND_US))
        .drive(|sim| async move {
            let first = sim.send("hello").await;
            sim.outcome(&first).await;
            let second = sim.send("use work").await;
            sim.until_requests(2).await;
            for seen in [regenerate(&sim, "last", "k1").await, change(&sim, &first.id, "x").await] {
                assert_eq!(
                    (seen.status, &seen.body["error"]["code"]),
                    (409, &json!("conflict")),
                    "{}",
                    seen.body
                );
            }
            sim.stop().await;
            sim.outcome(&second).await;
            sim.accepted.borrow_mut().clear();
            let seen = regenerate(&sim, "last", "k2").await;
            assert_eq!((seen.status, &seen.body["messageId"]), (202, &json!(second.id)), "{}", seen.body);
            rests(&sim).await;
            let history = sim.history().await;
            assert_eq!(history.last().unwrap()["content"], "done: w0");
        })
        .terms(|terms| {
            terms.one_answer = false;
            terms.outcomes.push("stopped");
        })
        .calm();
}

#[test]
fn what_cannot_be_cut_is_refused_by_name() {
    story("no cut")
        .drive(|sim| async move {
            let seen = regenerate(&sim, "last", "k0").await;
            assert_eq!((seen.status, &seen.body["error"]["code"]), (409, &json!("conflict")));
            sim.ask("hello").await;
            let reply = sim.history().await[1]["id"].as_str().unwrap().to_owned();
            let refused = |seen: Seen, status: u16, code: &str| {
                assert_eq!(
                    (seen.status, &seen.body["error"]["code"]),
                    (status, &Value::from(code)),
                    "{}",
                    seen.body
                );
            };
            refused(change(&sim, &reply, "x").await, 409, "conflict");
            refused(regenerate(&sim, "m_6f0c0000_99", "k1").await, 404, "message_not_found");
            let body = json!({ "content": "x" }).to_string();
            let route = ThreadRoute::PatchMessage(reply);
            refused(sim.insist(route, &[("run", "true")], None, body).await, 400, "invalid_field");
            assert_eq!(sim.history().await.len(), 2);
        })
        .calm();
}

/// Asks so many questions, and has the one of this number answered anew. What was asked then, and what the model was sent.
async fn long_ago(sim: &Sim, questions: usize, number: usize) -> (Vec<String>, String) {
    let mut asked = Vec::new();
    let mut id = String::new();
    for n in 0..questions {
        let text = format!("fact-{n} {}", said(n));
        let sent = sim.send(&text).await;
        sim.outcome(&sent).await;
        asked.push(text);
        if n + 1 == number {
            id = sent.id;
        }
    }
    sim.accepted.borrow_mut().clear();
    asked.truncate(number);
    let seen = regenerate(sim, &id, "again").await;
    assert_eq!(seen.status, 202, "{}", seen.body);
    rests(sim).await;
    let requests = sim.world.outside.requests.borrow();
    let last = requests.iter().rfind(|request| request.last_user().starts_with("fact-")).unwrap();
    (asked, serde_json::to_string(last.messages()).unwrap())
}

#[test]
fn what_made_room_for_what_is_gone_is_sent_again() {
    story("room again")
        .define(|catalog| {
            catalog["prompts"]["p"]["context"] = json!({ "maxInputTokens": 2_000 });
        })
        .drive(|sim| async move {
            let (asked, sent) = long_ago(&sim, 60, 8).await;
            assert!(asked.iter().all(|text| sent.contains(text.trim_end())), "{sent}");
        })
        .terms(|terms| terms.one_answer = false)
        .once();
}

#[test]
fn a_summary_knows_nothing_of_what_is_gone() {
    for number in [3, 30] {
        summarised("no summary of it")
            .drive(move |sim| async move {
                let (asked, sent) = long_ago(&sim, 40, number).await;
                assert!(sent.contains(asked.last().unwrap().trim_end()), "{sent}");
                assert!((number..40).all(|n| !sent.contains(&format!("fact-{n} "))), "{sent}");
                assert!((number..40).all(|n| !sent.contains(&format!("fact-{n}."))), "{sent}");
                settled(&sim).await;
                let summary = sim.get(ThreadRoute::GetContext, &[]).await["summary"].clone();
                assert!(
                    (number..40).all(|n| !summary.to_string().contains(&format!("fact-{n}"))),
                    "{summary}"
                );
            })
            .once();
    }
}
