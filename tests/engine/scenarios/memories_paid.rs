//! What vectors cost: it is asked of a budget before it is spent, logged where it is spent, and booked whatever fails.

use bobbin::request::{MemoryRoute, ThreadRoute};
use serde_json::{Value, json};

use super::memories::{add, route, search, text_about, until_state, whole, with_book};
use super::shared_memories as shared;
use super::spending::{ledgers, weighed};
use super::{ModelRequest, story};
use crate::host::{SECOND_US, Say};
use crate::sim::Sim;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![own(), of_an_owner()]
}

/// Millionths of a dollar that a token of a request to each model costs.
const CHAT: i64 = 10;
const EMBED: i64 = 3;

fn paid(catalog: &mut Value) {
    with_book(catalog);
    let model = &mut catalog["models"]["m"];
    (model["inputPrice"], model["outputPrice"]) = (json!(CHAT), json!(CHAT));
    model["capabilities"] = json!({ "maxOutputTokens": 300 });
    catalog["models"]["embed"]["inputPrice"] = json!(EMBED);
    catalog["prompts"]["p"]["memory"] =
        json!([{ "name": "book", "inject": true, "tools": ["search", "save"] }]);
    catalog["agents"]["helper"]["budget"] =
        json!({ "run": { "maxCostUsd": 1 }, "thread": { "maxCostUsd": 5, "maxTokens": 2_000_000 } });
}

/// It looks something up, saves something, and says so.
fn curious(request: &ModelRequest) -> Say {
    let say = match request.results().len() {
        0 => Say::call("memory_search", &json!({ "query": "how tall is the lighthouse?" })),
        1 => Say::call("memory_save", &json!({ "content": "The lighthouse is forty metres tall." })),
        _ => Say::text("It is tall [m1]."),
    };
    weighed(request, say)
}

/// What was given out for chats and for vectors, in millionths of a dollar, and in tokens.
fn given(sim: &Sim) -> [i64; 2] {
    let chats: u64 = sim.world.outside.given.borrow().iter().map(|given| given.input + given.output).sum();
    let (chats, vectors) = (chats as i64, sim.world.outside.embeddings.given.get() as i64);
    [chats * CHAT + vectors * EMBED, chats + vectors]
}

/// What the thread has booked of it, for its runs and apart from them.
fn booked(sim: &Sim) -> [i64; 2] {
    [0, 1].map(|unit| {
        let runs: i64 = ledgers(sim).iter().map(|ledger| ledger["s"][unit].as_i64().unwrap()).sum();
        let apart = format!("SELECT ifnull(budget ->> '$.a[{unit}]', 0) FROM meta");
        runs + sim.member.database.ask::<i64>(&apart)[0]
    })
}

/// Never less is booked than was given out, and without failures as much, to the millionth of a dollar.
fn accounted(sim: &Sim, faults: usize, given: [i64; 2]) {
    let booked = booked(sim);
    assert!(booked[0] >= given[0] && booked[1] >= given[1], "{booked:?} booked of {given:?}");
    if faults == 0 {
        assert_eq!(booked, given);
    }
}

fn own() -> Scenario {
    story("vectors of a thread's own memory are paid for")
        .define(paid)
        .setup(|sim| sim.world.outside.embeddings.counts.set(true))
        .says(curious)
        .drive(|sim| async move {
            let accepted = add(&sim, json!({ "text": text_about("lighthouse") })).await;
            until_state(&sim, &accepted, "ready").await;
            sim.ask("How tall is the lighthouse?").await;
            let owed = "SELECT jobs FROM meta";
            sim.until("the note is indexed", |sim| sim.member.database.ask::<i64>(owed) == [0]).await;
        })
        .check(|sim, history| {
            whole(sim);
            accounted(sim, history.faults, given(sim));
            let logged = "SELECT ifnull(sum(data ->> 'input_tokens'), 0) FROM logs WHERE data ->> 'purpose' = 'embedding'";
            let logged = sim.member.database.ask::<i64>(logged)[0];
            let vectors = sim.world.outside.embeddings.given.get() as i64;
            assert!(logged == vectors || history.faults > 0 && logged <= vectors, "{logged} of {vectors}");
        })
}

#[test]
fn what_vectors_cost_is_booked_whatever_fails() {
    own().sweep();
}

fn of_an_owner() -> Scenario {
    story("vectors of an owner's memory are paid for")
        .define(|catalog| {
            paid(catalog);
            catalog["memories"]["book"]["scope"] = json!("owner");
        })
        .setup(|sim| {
            shared::of_alice(sim);
            sim.world.outside.embeddings.counts.set(true);
        })
        .says(curious)
        .drive(|sim| async move {
            let accepted = shared::add(&sim, "alice", json!({ "text": text_about("lighthouse") })).await;
            assert_eq!(accepted.status, 202, "{accepted:?}");
            shared::ready(&sim, "alice").await;
            sim.ask("How tall is the lighthouse?").await;
            sim.until("the note is there", |sim| shared::counted(sim, "mem_docs", "1") == 2).await;
            shared::ready(&sim, "alice").await;
        })
        .check(|sim, history| {
            // What texts cost is nobody's run's: the memory's own log has it.
            let own = "purpose' = 'embedding' AND data ->> 'status' = 'completed'";
            let texts = shared::summed(sim, "logs", "data ->> 'input_tokens'", &format!("data ->> '{own}"));
            let [dollars, tokens] = given(sim);
            if history.faults == 0 {
                assert!(texts > 0);
                accounted(sim, 0, [dollars - texts * EMBED, tokens - texts]);
            }
            // Of requests that were lost nobody knows what they were for.
            let chats: u64 =
                sim.world.outside.given.borrow().iter().map(|given| given.input + given.output).sum();
            let questions: usize = sim
                .world
                .outside
                .embeddings
                .texts()
                .iter()
                .filter(|text| text.eq_ignore_ascii_case("how tall is the lighthouse?"))
                .map(|text| text.len() / 5)
                .sum();
            let (chats, questions) = (chats as i64, questions as i64);
            accounted(sim, history.faults.max(1), [chats * CHAT + questions * EMBED, chats + questions]);
        })
}

#[test]
fn what_the_vectors_of_a_shared_memory_cost_is_booked_by_who_asks_whatever_fails() {
    of_an_owner().sweep();
}

#[test]
fn a_search_that_nobody_pays_for_finds_words() {
    for scope in ["thread", "owner"] {
        story("a search without a budget")
            .define(move |catalog| {
                paid(catalog);
                catalog["memories"]["book"]["scope"] = json!(scope);
                // A question's vector costs more than all that is left, a reply does not.
                catalog["models"]["embed"]["inputPrice"] = json!(3_000);
                catalog["agents"]["helper"]["budget"] =
                    json!({ "run": { "maxCostUsd": 0.02 }, "onExceeded": "fail" });
            })
            .setup(shared::of_alice)
            .says(|request: &ModelRequest| {
                let known = request.texts("user").iter().any(|text| text.contains("Chapter"));
                let say = match request.results().len() {
                    0 => {
                        Say::call("memory_search", &json!({ "query": "how tall is the lighthouse of all?" }))
                    }
                    _ => Say::text(if known { "known" } else { "unknown" }),
                };
                say.using(100, 5)
            })
            .drive(move |sim| async move {
                let body = json!({ "text": text_about("lighthouse") });
                if scope == "thread" {
                    let accepted = add(&sim, body).await;
                    until_state(&sim, &accepted, "ready").await;
                } else {
                    shared::add(&sim, "alice", body).await;
                    shared::ready(&sim, "alice").await;
                }
                let before = sim.world.outside.embeddings.requests.borrow().len();
                let outcome = sim.ask("How tall is the lighthouse, and what else is there to be told?").await;
                assert_eq!(outcome["outcome"], "completed", "{outcome}");
                assert_eq!(sim.world.outside.embeddings.requests.borrow().len(), before, "none is asked for");
                let told = outcome["diagnostics"].to_string();
                assert!(
                    told.contains("memory.degraded") && told.contains("the budget does not pay for it"),
                    "{told}"
                );
            })
            .check(|_, history| assert_eq!(history.answers(), ["known"]))
            .once();
    }
}

#[test]
fn texts_that_nobody_pays_for_wait_and_are_found_by_their_words() {
    story("texts without a budget")
        .define(|catalog| {
            paid(catalog);
            catalog["agents"]["helper"]["budget"] = json!({ "thread": { "maxTokens": 20 } });
        })
        .drive(|sim| async move {
            let accepted = add(&sim, json!({ "text": text_about("lighthouse") })).await;
            let partial = until_state(&sim, &accepted, "partial").await;
            let error = partial["error"].as_str().unwrap_or_default();
            assert!(error.contains("The budget of the thread is used up: its maxTokens is 20"), "{error}");
            let question = "lighthouse, and whatever else there is to be found in all of these many texts";
            let (found, degraded) = search(&sim, json!({ "query": question })).await;
            assert!(degraded && found[0].contains("lighthouse"), "{found:?}");
            assert_eq!(sim.world.outside.embeddings.requests.borrow().len(), 0, "none is asked for");
            let body = json!({ "thread": { "maxTokens": 100_000 } }).to_string();
            let seen = sim.insist(ThreadRoute::PatchBudget, &[], None, body).await;
            assert_eq!(seen.status, 200, "{seen:?}");
            until_state(&sim, &accepted, "ready").await;
            let (_, degraded) = search(&sim, json!({ "query": question })).await;
            assert!(!degraded);
        })
        .check(|sim, _| whole(sim))
        .once();
}

#[test]
fn a_search_that_is_stopped_in_the_middle_is_booked() {
    story("a stop in the middle of a search")
        .define(paid)
        .setup(|sim| sim.world.outside.embeddings.counts.set(true))
        .says(curious)
        .terms(|terms| terms.outcomes = vec!["stopped"])
        .drive(|sim| async move {
            let accepted = add(&sim, json!({ "text": text_about("lighthouse") })).await;
            until_state(&sim, &accepted, "ready").await;
            let before = booked(&sim);
            sim.world.outside.embeddings.script(|_| Some(crate::host::Answer::silence()));
            let asked = sim.world.outside.embeddings.requests.borrow().len();
            sim.send("How tall is the lighthouse?").await;
            sim.until("it is asked", |sim| sim.world.outside.embeddings.requests.borrow().len() > asked)
                .await;
            sim.stop().await;
            sim.world.pause(SECOND_US).await;
            let after = booked(&sim);
            let question = "How tall is the lighthouse?".len() as i64 / 3;
            assert!(after[1] - before[1] >= question, "{before:?} {after:?}");
        })
        .once();
}

#[test]
fn a_shared_memory_keeps_a_log_of_the_vectors_that_no_run_has_asked_for() {
    story("the log of a memory")
        .define(|catalog| {
            paid(catalog);
            catalog["memories"]["book"]["scope"] = json!("owner");
        })
        .setup(|sim| {
            shared::of_alice(sim);
            sim.world.outside.embeddings.counts.set(true);
        })
        .drive(|sim| async move {
            shared::add(&sim, "alice", json!({ "text": text_about("lighthouse") })).await;
            shared::ready(&sim, "alice").await;
            shared::search(&sim, "alice", "lighthouse").await;
            let seen = sim.insist_memory(Some("alice"), "book", MemoryRoute::Logs, None, &Value::Null).await;
            let rows = seen.body["logs"].as_array().cloned().unwrap_or_default();
            let requests = sim.world.outside.embeddings.requests.borrow().len();
            assert_eq!((seen.status, rows.len()), (200, requests), "{seen:?}");
            assert!(
                rows.iter().all(|row| row["purpose"] == "embedding" && row["status"] == "completed"),
                "{rows:?}"
            );
            let cost: f64 = rows.iter().filter_map(|row| row["cost_total"].as_f64()).sum();
            let given = sim.world.outside.embeddings.given.get() as f64 * EMBED as f64 / 1e6;
            assert!((cost - given).abs() < 1e-9, "{cost} of {given}");
            let seen = sim.insist(route(MemoryRoute::Logs), &[], None, String::new()).await;
            assert_eq!(seen.body["error"]["code"], "memory_not_found", "{seen:?}");
        })
        .once();
}
