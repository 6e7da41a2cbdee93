//! Threads that begin with what was said before, and delete themselves.

use bobbin::request::ThreadRoute;
use serde_json::json;

use super::story;
use crate::host::SECOND_US;
use crate::sim::Sim;
use crate::sweep::Scenario;

const ID: &str = "11111111-1111-4111-8111-111111111111";

pub fn all() -> Vec<Scenario> {
    vec![passing()]
}

async fn create(sim: &Sim) -> Sim {
    let body = json!({
        "agent_id": "helper", "expires_in": 100,
        "history": [
            { "role": "system", "content": "be brief" },
            { "role": "user", "content": "one" },
            { "role": "assistant", "content": "re: one" },
        ],
    });
    let thread = sim.of(ID);
    let made = thread.insist(ThreadRoute::Create, &[], None, body.to_string()).await;
    assert_eq!(made.status, 200, "{made:?}");
    thread
}

fn passing() -> Scenario {
    story("a thread that passes")
        .drive(|sim| async move {
            let thread = create(&sim).await;
            // Of a repeated request nothing is stored twice.
            create(&sim).await;
            thread.ask("use work").await;
            let told: Vec<(String, String)> = thread
                .history()
                .await
                .iter()
                .map(|message| {
                    let text = |name: &str| message[name].as_str().unwrap_or_default().to_owned();
                    (text("role"), text("content"))
                })
                .collect();
            let begins =
                [("system", "be brief"), ("user", "one"), ("assistant", "re: one"), ("user", "use work")];
            for (at, (role, content)) in begins.iter().enumerate() {
                assert_eq!(told[at], ((*role).to_owned(), (*content).to_owned()), "{told:?}");
            }
            assert_eq!(told.len(), 7, "{told:?}");
            thread.accepted.borrow_mut().clear();
            // In the middle of a call.
            thread.post(json!({ "role": "user", "content": "loop 500" })).await;
            thread.accepted.borrow_mut().clear();
            sim.world.pause(200 * SECOND_US).await;
            let gone = thread.insist(ThreadRoute::Get, &[], None, String::new()).await;
            assert_eq!(gone.status, 404, "{gone:?}");
        })
        .terms(|terms| {
            terms.one_answer = false;
            terms.more_requests = 1_000;
            terms.overlap = true;
        })
        .check(|sim, _| {
            let tables = "SELECT count(*) FROM sqlite_master WHERE name = 'meta'";
            assert_eq!(sim.of(ID).member.database.ask::<i64>(tables), [0], "nothing is left");
            let rows = sim.world.outside.siblings.borrow();
            assert!(rows.iter().any(|(_, call)| call["call"] == "delete" && call["id"] == ID));
        })
        // Each of its failures is followed by hundreds of steps.
        .sampled(60)
}

#[test]
fn a_thread_that_passes_is_gone_whatever_fails() {
    passing().sweep();
}
