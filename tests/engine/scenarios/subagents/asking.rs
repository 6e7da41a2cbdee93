//! Children whose calls wait for people (docs/approvals.md): the question is in the child, and those above are parked.

use bobbin::host::Filter;
use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::{agent, lists, references, settled, states, story, times, waits};
use crate::host::SECOND_US;
use crate::scenarios::waits::{asking, decides, runs, until_open};
use crate::sim::Sim;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![approved_below(), denied_far_below(), stopped_above()]
}

/// What is open here and below, once so many are.
async fn until_open_below(sim: &Sim, count: usize) -> Vec<Value> {
    for _ in 0..2_000 {
        let body = sim.get(ThreadRoute::ListWaits, &[("descendants", "true")]).await;
        let waits = body["waits"].as_array().unwrap().clone();
        if waits.len() == count {
            return waits;
        }
        sim.world.pause(SECOND_US / 4).await;
    }
    panic!("{count} waits never opened below");
}

fn payer(catalog: &mut Value) {
    catalog["tools"]["pay"] = asking(json!("always"));
}

/// What clients of the thread above are told: each question of a thread below, and its end, with the child that it is of. A
/// stream that was lost with its process tells nothing.
fn told_above(sim: &Sim, faults: usize, (kind, decision): (&str, &str)) {
    if faults > 0 {
        return;
    }
    let frames = sim.world.frames.borrow();
    let of = |kind: &str| -> Vec<Value> {
        frames.iter().filter(|frame| frame.1.kind == kind).map(|frame| frame.1.data.clone()).collect()
    };
    let ([opened], [closed]) = (&*of("wait_opened"), &*of("wait_closed")) else {
        panic!("{:?}, {:?}", of("wait_opened"), of("wait_closed"));
    };
    let child = json!(references(sim)[0]);
    assert_eq!((&opened["reference"], &closed["reference"]), (&child, &child));
    assert_eq!((&opened["wait"]["id"], &opened["wait"]["kind"]), (&closed["id"], &json!(kind)));
    assert_eq!((&opened["wait"]["state"], &closed["state"]), (&json!("open"), &json!("decided")));
    assert_eq!((&closed["kind"], &closed["decision"]), (&json!(kind), &json!(decision)));
}

fn of_thread(sim: &Sim, wait: &Value) -> Sim {
    sim.of(wait["threadId"].as_str().unwrap())
}

fn approved_below() -> Scenario {
    story("a child's call that is approved")
        .define(|catalog| {
            payer(catalog);
            agent(catalog, "research", &json!(["pay"]));
            lists(catalog, json!([waits("research")]));
        })
        .drive(|sim| async move {
            sim.listen(Filter { events: true, ..Filter::default() }, None).await.unwrap();
            let sent = sim.send(r#"call research {"q":"call pay {}"}"#).await;
            let found = until_open_below(&sim, 1).await;
            assert_ne!(found[0]["threadId"], sim.member.id.as_str());
            assert_eq!(sim.get(ThreadRoute::ListWaits, &[]).await["waits"], json!([]), "it is the child's");
            sim.until("its parent knows", |sim| states(sim).iter().any(|state| state.ends_with(" waiting")))
                .await;
            sim.world.pause(3_600 * SECOND_US).await;
            assert_eq!(sim.outcome(&sent).await["outcome"], "parked");
            let child = of_thread(&sim, &found[0]);
            assert_eq!(child.member.id, references(&sim)[0]);
            decides(&child, &until_open(&child, 1).await[0], json!({ "decision": "approve" })).await;
            settled(&sim, SECOND_US / 20).await;
        })
        .check(|sim, history| {
            let results = history.texts("tool");
            let ran = times(&results, "w0");
            assert!(results.len() == 1 && (ran == 1 || history.faults > 0), "{results:?}");
            assert!(runs(sim) <= 1);
            assert_eq!(states(sim), ["terminated terminated"]);
            let asked: Vec<i64> =
                sim.of(&references(sim)[0]).member.database.ask("SELECT count(*) FROM waits");
            assert_eq!(asked, [1], "it was asked once");
            told_above(sim, history.faults, ("approval", "approve"));
        })
}

#[test]
fn a_childs_call_is_asked_about_in_the_child_and_its_parent_waits() {
    approved_below().sampled(300).sweep();
}

fn denied_far_below() -> Scenario {
    story("a call of a child's child that is denied")
        .define(|catalog| {
            payer(catalog);
            agent(catalog, "leaf", &json!(["pay"]));
            agent(catalog, "research", &json!([waits("leaf")]));
            lists(catalog, json!([waits("research")]));
        })
        .drive(|sim| async move {
            let leaf = json!({ "q": "call pay {}" });
            let research = json!({ "q": format!("call leaf {leaf}") });
            sim.listen(Filter { events: true, ..Filter::default() }, None).await.unwrap();
            sim.send(&format!("call research {research}")).await;
            let found = until_open_below(&sim, 1).await;
            let leaf = of_thread(&sim, &found[0]);
            decides(&leaf, &found[0], json!({ "decision": "deny", "reason": "not today" })).await;
            settled(&sim, SECOND_US / 20).await;
        })
        .check(|sim, history| {
            assert_eq!(runs(sim), 0, "what is denied never runs");
            let results = history.texts("tool");
            assert_eq!((results.len(), times(&results, "Denied: not today")), (1, 1), "{results:?}");
            assert_eq!(history.family.len(), 2);
            told_above(sim, history.faults, ("approval", "deny"));
        })
}

#[test]
fn a_call_far_below_is_asked_about_there_and_all_above_it_wait() {
    denied_far_below().sampled(300).sweep();
}

fn stopped_above() -> Scenario {
    story("a stop while a child's call is asked about")
        .define(|catalog| {
            payer(catalog);
            agent(catalog, "research", &json!(["pay"]));
            lists(catalog, json!([waits("research")]));
        })
        .terms(|terms| {
            terms.one_answer = false;
            terms.pairs = false;
            terms.outcomes = vec!["stopped", "completed"];
        })
        .drive(|sim| async move {
            sim.send(r#"call research {"q":"call pay {}"}"#).await;
            let found = until_open_below(&sim, 1).await;
            sim.stop().await;
            settled(&sim, SECOND_US / 20).await;
            let child = of_thread(&sim, &found[0]);
            let route = ThreadRoute::GetWait(found[0]["id"].as_str().unwrap().into());
            assert_eq!(child.get(route, &[]).await["wait"]["state"], "cancelled");
        })
        .check(|sim, _| {
            assert_eq!(runs(sim), 0);
            for thread in sim.family() {
                if thread.member.has_table("waits") {
                    let open: Vec<i64> = thread.member.database.ask("SELECT id FROM waits WHERE open = 1");
                    assert!(open.is_empty(), "{}", thread.member.id);
                }
            }
        })
}

#[test]
fn a_stop_ends_what_is_asked_in_a_child() {
    stopped_above().sampled(300).sweep();
}
