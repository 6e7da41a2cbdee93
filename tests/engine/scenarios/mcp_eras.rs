//! Which protocol a server speaks is found out without making a call twice: what was read may have run (docs/mcp.md).

use serde_json::{Value, json};

use super::mcp::{counting, shop};
use super::{INDETERMINATE, clerk};
use crate::host::mcp::{Gives, McpRequest, Server};
use crate::host::{Answer, MCP_URL};
use crate::sim::Sim;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![refused_after(), in_a_session()]
}

/// An error about this very request.
fn own(call: &McpRequest, status: u16, code: i64, message: &str) -> Answer {
    let error = json!({ "code": code, "message": message });
    Answer::status(status, json!({ "jsonrpc": "2.0", "id": call.body["id"], "error": error }).to_string())
}

fn calls(sim: &Sim) -> usize {
    sim.world.outside.mcp.of("tools/call").len()
}

/// What the Python package `mcp` 2.3.0 answers where a tool has run, and then asks a person on the stream.
fn asked_in_vain(call: &McpRequest) -> Answer {
    own(call, 400, -32600, "this transport context has no back-channel")
}

fn refused_after() -> Scenario {
    shop("a call that has run, and is refused then")
        .setup(|sim| {
            let server = Server::new(|call, _| Gives::Raw(asked_in_vain(call)));
            sim.world.outside.mcp.serve("shop", server);
        })
        .drive(|sim| async move {
            sim.ask("use work").await;
        })
        .check(|sim, history| {
            let result = history.texts("tool")[0];
            let told = result.contains("error -32600: this transport context has no back-channel");
            assert!(told || history.faults > 0 && result == INDETERMINATE, "{result}");
            assert!(calls(sim) == 1 || calls(sim) == 0 && history.faults > 0, "{}", calls(sim));
            assert_eq!(sim.world.outside.mcp.of("initialize").len(), 0);
        })
}

#[test]
fn a_call_that_was_read_is_never_made_in_another_era() {
    refused_after().sweep();
}

/// A server of sessions that refuses a request outside of one by naming the request, as if it had read it.
fn in_a_session() -> Scenario {
    shop("a server of sessions that names what it refuses")
        .setup(|sim| {
            let guard = |asked: &McpRequest| {
                let outside = asked.header("mcp-session-id").is_none() && asked.method != "initialize";
                outside.then(|| own(asked, 400, -32600, "Missing session ID"))
            };
            let server = Server { guard: Some(std::rc::Rc::new(guard)), ..counting().legacy() };
            sim.world.outside.mcp.serve("shop", server);
        })
        .drive(|sim| async move {
            sim.ask("use work").await;
        })
        .check(|sim, history| {
            let result = history.texts("tool")[0];
            assert!(result == "work 0" || history.faults > 0 && result == INDETERMINATE, "{result}");
            assert!(calls(sim) <= 1, "{}", calls(sim));
        })
}

#[test]
fn the_era_of_a_server_is_known_before_its_first_call() {
    in_a_session().sweep();
}

/// What a server that was pinned under one protocol answers, what the model reads, and how often the tool was called and run.
#[test]
fn what_was_pinned_holds_unless_the_server_says_otherwise() {
    type Case = (&'static str, fn() -> Server, &'static str, usize, &'static [&'static str]);
    const BEGUN: [&str; 2] = ["initialize", "notifications/initialized"];
    let cases: [Case; 5] = [
        ("2026-07-28", || Server::new(|call, _| Gives::Raw(asked_in_vain(call))), "error -32600", 1, &[]),
        // 404 and -32601 are what `mcp` 2.3.0 answers to a tool that raises this error.
        (
            "2026-07-28",
            || Server::new(|call, _| Gives::Raw(own(call, 404, -32601, "The account is closed."))),
            "error -32601: The account is closed.",
            1,
            &[],
        ),
        // A gateway: what stands behind it was asked, and says that it is as it was.
        (
            "2026-07-28",
            || Server::new(|_, _| Gives::Raw(Answer::status(422, "too much"))),
            "http 422",
            1,
            &["server/discover"],
        ),
        ("2026-07-28", || counting().legacy(), "work 0", 2, &["server/discover", BEGUN[0], BEGUN[1]]),
        ("2025-11-25", || counting().legacy(), "work 0", 1, &BEGUN),
    ];
    for (place, (pinned, server, text, sent, others)) in cases.into_iter().enumerate() {
        shop("pinned")
            .define(move |catalog| {
                catalog["mcp"]["shop"]["pinned"] = json!({ "protocol": pinned });
            })
            .setup(move |sim| sim.world.outside.mcp.serve("shop", server()))
            .drive(|sim| async move {
                sim.ask("use work").await;
            })
            .check(move |sim, history| {
                let result = history.texts("tool")[0];
                assert!(result.contains(text), "{place}: {result}");
                assert_eq!(calls(sim), sent, "{place}");
                let methods = sim.world.outside.mcp.methods();
                let rest: Vec<&str> =
                    methods.iter().map(String::as_str).filter(|method| *method != "tools/call").collect();
                assert_eq!(rest, others, "{place}");
            })
            .once();
    }
}

/// A tool that is not found in the middle of a session answers with the status that means a lost session.
#[test]
fn a_tool_that_finds_nothing_has_not_lost_its_session() {
    shop("404 of a tool")
        .setup(|sim| {
            let server = Server::new(|call, _| Gives::Raw(own(call, 404, -32001, "There is no order 7.")));
            sim.world.outside.mcp.serve("shop", server.legacy());
        })
        .drive(|sim| async move {
            sim.ask("use work").await;
        })
        .check(|sim, history| {
            assert!(history.texts("tool")[0].contains("There is no order 7."), "{:?}", history.texts("tool"));
            assert_eq!(calls(sim), 1);
        })
        .once();
}

/// A server that asks something on the stream, and hands on that it was refused.
#[test]
fn an_error_that_the_client_has_caused_is_no_missing_tool() {
    Scenario::new("handed on", &json!({ "work": super::mcp::tool("work", json!({})) }))
        .says(clerk)
        .define(|catalog| catalog["mcp"] = json!({ "shop": { "url": format!("{MCP_URL}shop") } }))
        .setup(|sim| {
            let server = Server::new(|call, _| {
                let asks: Value =
                    json!({ "jsonrpc": "2.0", "id": 7, "method": "sampling/createMessage", "params": {} });
                let error = json!({ "code": -32601, "message": "Method not found" });
                let last = json!({ "jsonrpc": "2.0", "id": call.body["id"], "error": error });
                let events = format!("data: {asks}\n\ndata: {last}\n\n");
                Gives::Raw(Answer {
                    headers: vec![("content-type".into(), "text/event-stream".into())],
                    ..Answer::status(200, events)
                })
            });
            sim.world.outside.mcp.serve("shop", server.legacy());
        })
        // What the server asks is answered while its own answer is still on its way.
        .terms(|terms| terms.overlap = true)
        .drive(|sim| async move {
            sim.ask("use work").await;
        })
        .check(|_, history| {
            let result = history.texts("tool")[0];
            assert!(result.contains("error -32601: Method not found"), "{result}");
        })
        .once();
}
