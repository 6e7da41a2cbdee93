//! What MCP servers ask people before they go on with a call (docs/approvals.md).

use serde_json::{Value, json};

use super::INDETERMINATE;
use super::env::{KEY_A, var};
use super::mcp::{shop, tool};
use super::waits::{decides, until_open};
use crate::contract::History;
use crate::host::mcp::{Gives, McpRequest, Server};
use crate::host::{MCP_URL, SECOND_US};
use crate::sim::Sim;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![filled_in(), changed_before(), once(), stopped(), beside_readers()]
}

const STATE: &str = "opaque-4711";

/// A form that wants a name and a number.
fn form() -> Value {
    let schema = json!({ "type": "object", "required": ["name"],
        "properties": { "name": { "type": "string", "minLength": 2 }, "n": { "type": "integer", "maximum": 9 } } });
    json!({ "method": "elicitation/create", "params": { "mode": "form", "message": "Who are you?", "requestedSchema": schema } })
}

fn asks(requests: Value) -> Gives {
    Gives::Only(json!({ "resultType": "input_required", "inputRequests": requests, "requestState": STATE }))
}

/// A server that wants this before it acts, and tells what it was told.
fn curious(requests: Value) -> Server {
    Server::new(move |call, _| match told(call) {
        None => {
            let capabilities = &call.params["_meta"]["io.modelcontextprotocol/clientCapabilities"];
            assert_eq!(capabilities["elicitation"], json!({ "form": {}, "url": {} }));
            asks(requests.clone())
        }
        Some(told) => {
            assert_eq!(call.params["requestState"], STATE);
            Gives::text(&told.to_string())
        }
    })
}

fn told(call: &McpRequest) -> Option<&Value> {
    Some(&call.params["inputResponses"]).filter(|told| !told.is_null())
}

fn serves(requests: Value) -> impl Fn(&Sim) {
    move |sim| {
        var(sim, "BOBBIN_ENCRYPTION_KEYS", KEY_A);
        sim.world.outside.mcp.serve("shop", curious(requests.clone()));
    }
}

/// A call that may be made again asks for a form; it is filled in after the object was lost.
fn filled_in() -> Scenario {
    shop("a server asks for a form")
        .setup(serves(json!({ "who": form() })))
        .drive(|sim| async move {
            sim.send("use safe").await;
            let asked = until_open(&sim, 1).await;
            let wait = &asked[0];
            assert_eq!((&wait["kind"], &wait["title"]), (&json!("elicitation"), &json!("Who are you?")));
            assert_eq!(wait["allows"], json!(["answer", "deny", "defer"]));
            assert_eq!((&wait["server"], &wait["form"]["required"]), (&json!("shop"), &json!(["name"])));
            assert!(wait["reason"].as_str().unwrap().contains("shop"));
            sim.evict().await;
            sim.world.pause(3600 * SECOND_US).await;
            decides(&sim, wait, json!({ "decision": "answer", "content": { "name": "Ann", "n": 3 } })).await;
        })
        .check(|sim, history| {
            let said = json!({ "who": { "action": "accept", "content": { "name": "Ann", "n": 3 } } });
            assert_eq!(history.texts("tool"), [said.to_string()]);
            let calls = sim.world.outside.mcp.of("tools/call");
            let keys: Vec<&Value> =
                calls.iter().map(|call| &call.params["_meta"]["dev.bobbin/call"]).collect();
            assert!(keys.windows(2).all(|pair| pair[0] == pair[1]), "one key: {keys:?}");
            if history.faults == 0 {
                assert_eq!(calls.len(), 2);
            }
            let kept: Vec<String> = sim.member.database.ask("SELECT ifnull(data, '') FROM calls");
            assert!(kept.iter().all(|kept| !kept.contains(STATE)), "what it wants back is sealed: {kept:?}");
        })
}

#[test]
fn what_a_server_asks_is_answered_after_any_failure_and_asked_once() {
    filled_in().sweep();
}

/// What somebody changed when they approved of a call holds for all of it: also when it is made once more with what its server asked.
fn changed_before() -> Scenario {
    shop("an approval changes a call whose server asks")
        .define(|catalog| {
            let safe = &mut catalog["tools"]["safe"];
            safe["args"] = json!({ "type": "object", "properties": { "to": { "type": "string" } },
                "additionalProperties": false });
            safe["approval"] = json!({ "mode": "always", "edit": ["to"] });
        })
        .setup(serves(json!({ "who": form() })))
        .drive(|sim| async move {
            sim.send("use safe").await;
            let asked = until_open(&sim, 1).await;
            decides(&sim, &asked[0], json!({ "decision": "approve", "args": { "to": "bob" } })).await;
            sim.until("its server asks", |sim| {
                let open = "SELECT count(*) FROM waits WHERE open = 1 AND kind = 'elicitation'";
                sim.member.database.ask::<i64>(open) == [1]
            })
            .await;
            let asked = until_open(&sim, 1).await;
            decides(&sim, &asked[0], json!({ "decision": "answer", "content": { "name": "Ann" } })).await;
        })
        .check(|sim, history| {
            let said = json!({ "who": { "action": "accept", "content": { "name": "Ann" } } });
            let result = history.texts("tool")[0];
            assert!(result.contains(&said.to_string()), "{result}");
            let calls = sim.world.outside.mcp.of("tools/call");
            assert!(calls.len() >= 2);
            assert!(calls.iter().all(|call| call.params["arguments"] == json!({ "to": "bob" })), "{calls:?}");
        })
}

#[test]
fn what_an_approval_changed_holds_when_a_server_asks_after_it() {
    changed_before().sweep();
}

/// The same of a call that is never made again: once the answer was sent, nobody knows.
fn once() -> Scenario {
    shop("a server asks, and may not be called again")
        .setup(serves(json!({ "who": form() })))
        .drive(|sim| async move {
            sim.send("use work").await;
            sim.until("it is asked, or nobody knows", |sim| {
                let asked = sim.member.has_table("waits")
                    && sim.member.database.ask::<i64>("SELECT count(*) FROM waits WHERE open = 1") == [1];
                asked
                    || sim.member.database.ask::<i64>("SELECT count(*) FROM runs WHERE outcome IS NOT NULL")
                        == [1]
            })
            .await;
            for wait in super::waits::open(&sim).await {
                decides(&sim, &wait, json!({ "decision": "answer", "content": { "name": "Ann" } })).await;
            }
        })
        .check(|sim, history| {
            let result = history.texts("tool")[0];
            assert!(
                result.contains("accept") || history.faults > 0 && result == INDETERMINATE,
                "{result}, {} faults",
                history.faults
            );
            let acted =
                sim.world.outside.executions.borrow().iter().filter(|one| one.name == "shop/work").count();
            assert!(acted <= 1, "it acted {acted} times");
        })
}

#[test]
fn a_call_that_goes_on_after_an_answer_is_made_once() {
    once().sweep();
}

/// A stop while it is open: the server is told nothing more.
fn stopped() -> Scenario {
    shop("stopped while a server asks")
        .setup(serves(json!({ "who": form() })))
        .terms(|terms| terms.outcomes = vec!["stopped"])
        .drive(|sim| async move {
            sim.send("use safe").await;
            until_open(&sim, 1).await;
            sim.stop().await;
        })
        .check(|sim, history| {
            assert_eq!(history.texts("tool").len(), 1);
            assert!(sim.world.outside.mcp.of("tools/call").iter().all(|call| told(call).is_none()));
            let states: Vec<String> = sim.member.database.ask("SELECT state FROM waits");
            assert_eq!(states, ["cancelled"]);
        })
}

#[test]
fn a_stop_ends_what_a_server_asks() {
    stopped().sweep();
}

/// A reader beside others: the others have their results, and it is called once more alone.
fn beside_readers() -> Scenario {
    let reads = |name: &str| tool(name, json!({ "tier": "read_only" }));
    Scenario::new("a reader that asks", &json!({ "a": reads("find"), "b": reads("ask"), "c": reads("find") }))
        .says(super::clerk)
        .define(|catalog| {
            catalog["mcp"] = json!({ "shop": { "url": format!("{MCP_URL}shop") } });
            catalog["prompts"]["p"]["parallelToolCalls"] = json!(true);
            catalog["prompts"]["p"]["parallelReadOnly"] = json!(true);
        })
        .setup(|sim| {
            let server = Server::new(|call, _| match (call.params["name"].as_str(), told(call)) {
                (Some("find"), _) => Gives::text("seen"),
                (_, Some(_)) => Gives::text("told"),
                _ if call.params["_meta"]["io.modelcontextprotocol/clientCapabilities"] == json!({}) => {
                    Gives::Error(-32021, "people must be asked".into())
                }
                _ => asks(json!({ "who": form() })),
            });
            sim.world.outside.mcp.serve("shop", server);
        })
        .terms(|terms| {
            terms.overlap = true;
            // It was refused once, and then asked.
            terms.idempotent_runs += 1;
        })
        .drive(|sim| async move {
            sim.send("use a,b,c").await;
            let asked = until_open(&sim, 1).await;
            decides(&sim, &asked[0], json!({ "decision": "answer", "content": { "name": "Ann" } })).await;
        })
        .check(|_, history| assert_eq!(history.texts("tool"), ["seen", "told", "seen"]))
}

#[test]
fn a_reader_that_asks_does_so_alone() {
    beside_readers().sweep();
}

/// What is decided, and what the server is told then.
#[test]
fn decisions_are_told_in_the_words_of_the_protocol() {
    let url = || {
        json!({ "method": "elicitation/create",
        "params": { "mode": "url", "message": "Connect", "url": "https://shop.test/connect?x=1" } })
    };
    let accepted = |content: Value| json!({ "action": "accept", "content": content });
    let answer = |name: &str| json!({ "decision": "answer", "content": { "name": name } });
    let cases = [
        (
            json!({ "who": form() }),
            vec![json!({ "decision": "deny" })],
            json!({ "who": { "action": "decline" } }),
        ),
        (
            json!({ "at": url() }),
            vec![json!({ "decision": "answer" })],
            json!({ "at": { "action": "accept" } }),
        ),
        (
            json!({ "a": form(), "b": form(), "c": url() }),
            vec![answer("Ann"), answer("Bea"), json!({ "decision": "deny" })],
            json!({ "a": accepted(json!({ "name": "Ann" })), "b": accepted(json!({ "name": "Bea" })), "c": { "action": "decline" } }),
        ),
    ];
    for (requests, decisions, expected) in cases {
        shop("decisions")
            .setup(serves(requests))
            .drive(move |sim| {
                let decisions = decisions.clone();
                async move {
                    sim.send("use work").await;
                    let mut asked = until_open(&sim, decisions.len()).await;
                    asked.sort_by_key(|wait| wait["id"].as_str().unwrap().to_owned());
                    for (wait, decision) in asked.iter().zip(decisions) {
                        decides(&sim, wait, decision).await;
                    }
                }
            })
            .check(move |sim, history| {
                assert_eq!(history.texts("tool"), [expected.to_string()]);
                assert_eq!(sim.world.outside.mcp.of("tools/call").len(), 2);
            })
            .once();
    }
}

/// What does not fit the form is refused, and may be said again.
#[test]
fn an_answer_is_held_against_the_form() {
    shop("forms")
        .setup(serves(json!({ "who": form() })))
        .drive(|sim| async move {
            sim.send("use work").await;
            let wait = until_open(&sim, 1).await.remove(0);
            for (decision, status) in [
                (json!({ "decision": "answer", "content": { "n": 3 } }), 422),
                (json!({ "decision": "answer", "content": { "name": "A" } }), 422),
                (json!({ "decision": "answer", "content": { "name": "Ann", "n": 10 } }), 422),
                (json!({ "decision": "answer", "text": "Ann" }), 400),
                (json!({ "decision": "approve" }), 422),
            ] {
                let seen = super::waits::decide(&sim, &wait, decision.clone()).await;
                assert!(
                    seen.status == status || (400..500).contains(&seen.status),
                    "{decision}: {} {}",
                    seen.status,
                    seen.body
                );
            }
            decides(&sim, &wait, json!({ "decision": "answer", "content": { "name": "Ann" } })).await;
        })
        .check(|_, history| assert!(history.texts("tool")[0].contains("Ann")))
        .once();
}

/// Nobody answers: the call ends with that, and the run goes on.
#[test]
fn what_nobody_answers_expires() {
    shop("nobody answers")
        .define(|catalog| catalog["prompts"]["p"]["approvals"] = json!({ "expiresAfterSeconds": 3600 }))
        .setup(serves(json!({ "who": form() })))
        .drive(|sim| async move {
            sim.send("use work").await;
            until_open(&sim, 1).await;
        })
        .check(|sim, history: &History| {
            assert_eq!(history.texts("tool"), ["Nobody answered within 60 minutes."]);
            assert_eq!(sim.world.outside.mcp.of("tools/call").len(), 1);
        })
        .once();
}

/// One that never has enough is left.
#[test]
fn a_server_that_asks_again_and_again_is_left() {
    shop("again and again")
        .setup(|sim| {
            sim.world.outside.mcp.serve("shop", Server::new(|_, _| asks(json!({ "who": form() }))));
        })
        .drive(|sim| async move {
            sim.send("use work").await;
            for _ in 0..10 {
                let wait = until_open(&sim, 1).await.remove(0);
                decides(&sim, &wait, json!({ "decision": "answer", "content": { "name": "Ann" } })).await;
            }
        })
        .check(|sim, history| {
            assert!(history.texts("tool")[0].contains("again and again"));
            assert_eq!(sim.world.outside.mcp.of("tools/call").len(), 11);
        })
        .once();
}
