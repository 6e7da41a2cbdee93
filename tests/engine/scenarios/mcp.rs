//! Tools of MCP servers: both eras, answers in one piece and in events, and whatever goes wrong with servers (docs/mcp.md).

use bobbin::host::Sibling;
use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::env::{Directories, KEY_A, var};
use super::spans::{all_sent, exports, named, told};
use super::{INDETERMINATE, clerk};
use crate::host::mcp::{Gives, LEGACY, Server};
use crate::host::{Answer, MCP_URL, SECOND_US, Say};
use crate::sim::Sim;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![stateless(), sessions(), forgotten(), together(), reported(), deleted()]
}

/// A tool of the server `shop`.
pub(super) fn tool(name: &str, more: Value) -> Value {
    let mut tool = json!({ "description": "Does.", "args": { "type": "object", "properties": {}, "additionalProperties": false },
        "run": { "mcp": { "server": "shop", "tool": name } }, "timeoutMs": 30_000 });
    tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    tool
}

/// A story with the tools `work`, and `safe`, which may be called again, of the server `shop`.
pub(super) fn shop(name: &'static str) -> Scenario {
    Scenario::new(
        name,
        &json!({ "work": tool("work", json!({})), "safe": tool("find", json!({ "idempotent": true })) }),
    )
    .says(clerk)
    .define(|catalog| {
        catalog["mcp"] = json!({ "shop": { "url": format!("{MCP_URL}shop"), "headers": { "x-key": "k" } } });
    })
}

/// A server whose tools say what they are called, and how often they were called before.
pub(super) fn counting() -> Server {
    Server::new(|call, before| {
        assert_eq!(call.header("x-key"), Some("k"));
        Gives::text(&format!("{} {before}", call.params["name"].as_str().unwrap()))
    })
}

fn serves(server: impl Fn() -> Server + 'static) -> impl Fn(&Sim) {
    move |sim| sim.world.outside.mcp.serve("shop", server())
}

/// Whatever fails, `work` ran once, or nobody knows; `find` is called until it is answered.
fn once_or_again(history: &crate::contract::History) {
    let results = history.texts("tool");
    assert_eq!(results.len(), 2, "{results:?}");
    assert!(results[0] == "work 0" || history.faults > 0 && results[0] == INDETERMINATE, "{results:?}");
    assert!(results[1].starts_with("find "), "a tool that may be called again is: {results:?}");
}

fn stateless() -> Scenario {
    shop("a server without sessions")
        .setup(serves(counting))
        .drive(|sim| async move {
            sim.ask("use work,safe").await;
        })
        .check(|sim, history| {
            once_or_again(history);
            let mcp = &sim.world.outside.mcp;
            if history.faults == 0 {
                let methods = ["server/discover", "tools/call", "tools/call"];
                assert_eq!(mcp.methods(), methods, "one request a call, once the server is known");
                assert!(!sim.member.has_table("mcp"), "nothing is kept of it");
            }
            assert_eq!(mcp.of("initialize").len(), 0);
        })
}

#[test]
fn mcp_tools_are_called_once_or_again_with_the_same_key() {
    stateless().sweep();
}

fn sessions() -> Scenario {
    shop("a server with sessions, which answers in events and asks itself")
        .setup(serves(|| counting().legacy().events()))
        .setup(|sim| var(sim, "BOBBIN_ENCRYPTION_KEYS", KEY_A))
        // What the server asks is answered while its own answer is still on its way.
        .terms(|terms| terms.overlap = true)
        .drive(|sim| async move {
            sim.ask("use work,safe").await;
            sim.evict().await;
            sim.ask("use safe").await;
        })
        .check(|sim, history| {
            let results = history.texts("tool");
            assert!(
                results[0] == "work 0" || history.faults > 0 && results[0] == INDETERMINATE,
                "{results:?}"
            );
            assert!(results[1].starts_with("find ") && results[2].starts_with("find "), "{results:?}");
            let mcp = &sim.world.outside.mcp;
            if history.faults == 0 {
                let began = ["server/discover", "initialize", "notifications/initialized"];
                let each = ["tools/call", ""];
                assert_eq!(
                    mcp.methods(),
                    [&began[..], &each, &each, &each].concat(),
                    "one session, over a restart"
                );
            }
            for answer in mcp.of("") {
                assert_eq!((&answer.body["id"], &answer.body["error"]["code"]), (&json!(7), &json!(-32601)));
            }
            let kept: Vec<String> = sim.member.database.ask("SELECT ifnull(session, '') FROM mcp");
            assert!(kept.iter().all(|kept| !kept.contains("session-")), "{kept:?}");
        })
}

#[test]
fn a_session_is_begun_once_and_outlives_the_process() {
    sessions().sweep();
}

/// The server forgets the session after one call: it says so, and that call is made in a new one.
fn forgotten() -> Scenario {
    shop("a session that the server forgets")
        .setup(serves(|| Server { forgets_after: 1, ..counting().legacy() }))
        .drive(|sim| async move {
            sim.ask("use safe,work").await;
        })
        .check(|sim, history| {
            let results = history.texts("tool");
            assert!(results[0].starts_with("find "), "{results:?}");
            assert!(
                results[1] == "work 0" || history.faults > 0 && results[1] == INDETERMINATE,
                "{results:?}"
            );
            if history.faults == 0 {
                assert_eq!(sim.world.outside.mcp.of("initialize").len(), 2);
            }
        })
}

#[test]
fn a_session_that_the_server_has_lost_is_begun_anew() {
    forgotten().sweep();
}

/// Readers of a reply are called at the same time.
fn together() -> Scenario {
    let reads = || tool("find", json!({ "tier": "read_only" }));
    Scenario::new("readers of a server", &json!({ "a": reads(), "b": reads(), "c": reads() }))
        .says(clerk)
        .define(|catalog| {
            catalog["mcp"] = json!({ "shop": { "url": format!("{MCP_URL}shop") } });
            catalog["prompts"]["p"]["parallelToolCalls"] = json!(true);
            catalog["prompts"]["p"]["parallelReadOnly"] = json!(true);
        })
        .setup(serves(|| Server::new(|_, _| Gives::text("seen"))))
        .terms(|terms| terms.overlap = true)
        .drive(|sim| async move {
            let began = sim.world.now_us();
            sim.ask("use a,b,c").await;
            let took = sim.world.now_us() - began;
            assert!(took < 3 * SECOND_US || !sim.world.faults.borrow().fired.is_empty(), "{took}");
        })
        .check(|_, history| assert_eq!(history.texts("tool"), ["seen", "seen", "seen"]))
}

#[test]
fn readers_of_a_server_are_called_at_the_same_time() {
    together().sweep();
}

/// What the root was told of servers: what was wrong, or nothing.
fn reports(sim: &Sim) -> Vec<Option<String>> {
    let siblings = sim.world.outside.siblings.borrow();
    let told = siblings.iter().filter(|(_, call)| call["call"] == "mcp_told");
    told.map(|(to, call)| {
        assert_eq!(*to, Sibling::Directory("root".into()));
        let report = &call["report"];
        assert!(report["server"] == "shop" && report["at_us"].is_i64(), "{report}");
        let error = &report["error"];
        assert!(error.is_null() || error["code"] == "mcp_unreachable", "{report}");
        error["message"].as_str().map(str::to_owned)
    })
    .collect()
}

/// The deployment is told how servers answer: a failure, and what has changed, at once; the same again once a minute.
fn reported() -> Scenario {
    shop("what the deployment is told of servers")
        .setup(serves(counting))
        .lasting(1)
        .drive(|sim| async move {
            let mcp = &sim.world.outside.mcp;
            for away in [false, true, false] {
                mcp.serve(
                    "shop",
                    if away {
                        Server::new(|_, _| Gives::Raw(Answer::status(503, "key k")))
                    } else {
                        counting()
                    },
                );
                sim.ask("use safe").await;
                sim.ask("use safe").await;
                sim.world.pause(5 * SECOND_US).await;
            }
            sim.world.pause(61 * SECOND_US).await;
            sim.ask("use safe").await;
            sim.world.pause(5 * SECOND_US).await;
        })
        .check(|sim, history| {
            let told: Vec<bool> = reports(sim).iter().map(Option::is_some).collect();
            assert!(
                reports(sim).iter().flatten().all(|text| text.contains("http 503")),
                "{:?}",
                reports(sim)
            );
            if history.faults == 0 {
                assert_eq!(told, [false, true, false, false], "once each, and once more a minute later");
            }
            assert!(told.len() <= 4 + 8 * history.faults, "{told:?}");
            // A report that is lost with what failed is made again when there is one to make, a minute later.
            assert!(told.contains(&false) && (told.contains(&true) || history.faults > 0), "{told:?}");
        })
}

#[test]
fn the_deployment_is_told_how_servers_answer_and_not_more_often_than_once_a_minute() {
    reported().sweep();
}

/// A thread that is deleted leaves nothing that would have to be told.
fn deleted() -> Scenario {
    shop("deleted with a report on its way")
        .setup(serves(counting))
        .drive(|sim| async move {
            sim.ask("use safe").await;
            super::family::delete(&sim).await;
            super::family::begin_anew(&sim).await;
        })
        .terms(|terms| {
            terms.alarm_may_stay = true;
            terms.more_requests = 3;
        })
        .check(|sim, history| assert!(reports(sim).len() <= 1 + history.faults))
}

#[test]
fn a_report_of_a_thread_that_is_deleted_may_be_lost() {
    deleted().sweep();
}

/// What comes back, what the model is told, and with which code.
#[test]
fn answers_of_servers_become_results_by_the_rules() {
    let only = |result: Value| move || Gives::Only(result.clone());
    let raw = |answer: Answer| move || Gives::Raw(answer.clone());
    let html = || Answer {
        headers: vec![("content-type".into(), "text/html".into())],
        ..Answer::status(200, "<p>")
    };
    let events = |text: String| Answer {
        headers: vec![("content-type".into(), "text/event-stream".into())],
        ..Answer::status(200, text)
    };
    let endless = (0..5).fold(events(String::new()), |mut answer, _| {
        let data = format!(
            "data: {{\"method\":\"notifications/message\",\"params\":\"{}\"}}\n\n",
            "x".repeat(2 << 20)
        );
        answer.pieces.push(crate::host::answer::Piece::Data(data.into()));
        answer
    });
    type Case = (Box<dyn Fn() -> Gives>, &'static str, &'static str, Option<&'static str>);
    let cases: Vec<Case> = vec![
        (
            Box::new(only(json!({ "content": [], "structuredContent": { "n": 1 } }))),
            "success",
            "{\"n\":1}",
            None,
        ),
        (
            Box::new(only(json!({ "content": [{ "type": "text", "text": "no luck" }], "isError": true }))),
            "error",
            "no luck",
            None,
        ),
        (
            Box::new(|| Gives::Error(-32602, "Tool work not found".into())),
            "error",
            "bobbin mcp pull shop",
            Some("mcp_tool_missing"),
        ),
        (
            Box::new(|| Gives::Error(-32603, "boom".into())),
            "error",
            "error -32603: boom",
            Some("mcp_protocol"),
        ),
        (Box::new(only(json!({ "resultType": "hologram" }))), "error", "hologram", Some("mcp_protocol")),
        (Box::new(raw(html())), "error", "neither JSON", Some("mcp_protocol")),
        (
            Box::new(raw(Answer::status(200, "x".repeat((8 << 20) + 1)))),
            "error",
            "limit",
            Some("mcp_protocol"),
        ),
        (Box::new(raw(endless)), "error", "limit", Some("mcp_protocol")),
        (Box::new(raw(events("data: {}\n\n".into()))), "error", "broke off", Some("mcp_unreachable")),
        (
            Box::new(raw(Answer::status(200, "{}").cut_after(1))),
            "error",
            "broke off",
            Some("mcp_unreachable"),
        ),
        (Box::new(raw(Answer::status(503, "busy"))), "error", "http 503", Some("mcp_unreachable")),
        (Box::new(raw(Answer::status(401, "who"))), "error", "credentials", Some("mcp_unauthorized")),
        (
            Box::new(raw(Answer::status(302, "").header("location", "http://10.0.0.1/"))),
            "error",
            "not followed",
            Some("mcp_unreachable"),
        ),
        (Box::new(raw(Answer::refused())), "error", "could not be reached", Some("mcp_unreachable")),
        (Box::new(raw(Answer::silence())), "error", "within 30 s", Some("mcp_unreachable")),
        (
            Box::new(raw(events(": open\n\n".into()).stall_after(1))),
            "error",
            "within 30 s",
            Some("mcp_unreachable"),
        ),
    ];
    for (place, (gives, status, text, code)) in cases.into_iter().enumerate() {
        let gives = std::rc::Rc::new(gives);
        shop("answers")
            .setup(move |sim| {
                let gives = gives.clone();
                sim.world.outside.mcp.serve("shop", Server::new(move |_, _| gives()));
            })
            .drive(|sim| async move {
                sim.ask("use work").await;
            })
            .check(move |sim, history| {
                let row = history.of("tool").next().unwrap();
                let said = row["content"].as_str().unwrap();
                let shown = said.get(..200).unwrap_or(said);
                assert_eq!(row["tool_status"], status, "{place}: {shown}");
                assert!(said.contains(text), "{place}: {shown}");
                assert_eq!(row["metadata"]["error_code"].as_str(), code, "{place}: {shown}");
                assert_eq!(sim.world.outside.mcp.of("tools/call").len(), 1, "{place}: not repeated by us");
            })
            .once();
    }
}

/// A tool that may be called again is, as the policy for servers says.
#[test]
fn a_call_of_a_server_is_tried_again_by_its_own_policy() {
    shop("tried again")
        .define(|catalog| {
            catalog["settings"]["retryDefaults"] = json!({ "mcp": { "maxAttempts": 3, "backoffMs": 1000 } });
        })
        .setup(|sim| {
            let server = Server::new(|call, before| match (call.params["name"].as_str(), before) {
                (Some("find"), 0) => Gives::Raw(Answer::status(503, "")),
                (Some("find"), 1) => Gives::Raw(Answer::refused()),
                (Some("find"), _) => Gives::text("found"),
                _ => Gives::Raw(Answer::status(503, "")),
            });
            sim.world.outside.mcp.serve("shop", server);
        })
        .drive(|sim| async move {
            sim.ask("use safe,work").await;
        })
        .check(|sim, history| {
            let results = history.texts("tool");
            assert_eq!(results[0], "found");
            assert!(results[1].contains("http 503"), "{results:?}");
            let calls = sim.world.outside.mcp.of("tools/call");
            let keys: Vec<&Value> =
                calls.iter().map(|call| &call.params["_meta"]["dev.bobbin/call"]).collect();
            assert_eq!(calls.len(), 4, "three of the one, one of the other");
            assert!(keys[0] == keys[1] && keys[1] == keys[2] && keys[2] != keys[3], "{keys:?}");
        })
        .calm();
}

/// What the application fills in is sent, and shown to nobody; headers carry what the server marks, and values of the thread.
#[test]
fn arguments_of_the_application_and_values_of_the_thread_are_sent() {
    const TOKEN: &str = "tok-1234567890-abcdef";
    let run = json!({ "mcp": { "server": "shop", "tool": "grüß", "provide": { "team": "{{env TEAM}}", "n": 4, "in": [{ "team": "{{env TEAM}}" }] },
        "headers": { "Team": "/team", "Deep": "/at/place" } } });
    let variables = json!([{ "name": "TOKEN", "type": "secret" }, { "name": "TEAM", "type": "text" }]);
    let text = json!({ "type": "string" });
    let at = json!({ "type": "object", "properties": { "place": text }, "additionalProperties": false });
    let args =
        json!({ "type": "object", "properties": { "at": at, "team": text }, "additionalProperties": false });
    let work = tool("work", json!({ "args": args, "run": run, "variables": variables }));
    Scenario::new("arguments", &json!({ "work": work }))
    .says(|request| match request.results().len() {
        0 => Say::call("work", &json!({ "at": { "place": "Zürich" }, "team": "theirs" })),
        _ => Say::text(format!("done: {}", request.results()[0])),
    })
    .define(|catalog| {
        catalog["mcp"] = json!({ "shop": { "url": format!("{MCP_URL}shop"),
                "headers": { "Authorization": "Bearer {{env TOKEN}}", "MCP-Method": "theirs" } } });
        catalog["agents"]["helper"]["env"] = json!({ "TEAM": "t1" });
    })
    .setup(|sim| {
        var(sim, "BOBBIN_ENCRYPTION_KEYS", KEY_A);
        Directories::default().serve(sim);
        sim.born.borrow_mut()["env"] = json!({ "TOKEN": TOKEN });
        let server = Server::new(|call, _| {
            assert_eq!(call.header("authorization"), Some("Bearer tok-1234567890-abcdef"));
            assert_eq!(call.header("mcp-param-team"), Some("t1"));
            assert_eq!(call.header("mcp-param-deep"), Some("=?base64?WsO8cmljaA==?="));
            assert_eq!(*call.args(), json!({ "at": { "place": "Zürich" }, "team": "t1", "n": 4, "in": [{ "team": "t1" }] }));
            Gives::text(&format!("you are {TOKEN}"))
        });
        sim.world.outside.mcp.serve("shop", server);
    })
    .terms(|terms| terms.pairs = true)
    .drive(|sim| async move {
        sim.ask("go").await;
    })
    .check(|sim, history| {
        let result = history.texts("tool")[0];
        assert!(result.starts_with("you are ") && !result.contains(TOKEN), "{result}");
        let call =
            &history.messages.iter().find(|message| message["tool_calls"].is_string()).unwrap()["tool_calls"];
        assert!(!call.as_str().unwrap().contains("t1"), "what is filled in is in no message: {call}");
        assert_eq!(sim.world.outside.mcp.of("tools/call").len(), 1);
    })
    .once();
}

/// Images and resources are files of the thread.
#[test]
fn files_of_a_server_are_stored_with_the_result() {
    shop("files")
        .setup(serves(|| {
            Server::new(|_, _| {
                Gives::Result(json!({ "content": [
                    { "type": "text", "text": "here" },
                    { "type": "image", "mimeType": "image/gif",
                      "data": "R0lGODlhAQABAIAAAP///wAAACH5BAEAAAAALAAAAAABAAEAAAICRAEAOw==" },
                    { "type": "resource", "resource": { "uri": "file:///a/notes.txt", "mimeType": "text/plain", "blob": "aGk=" } },
                ] }))
            })
        }))
        .drive(|sim| async move {
            sim.ask("use work").await;
        })
        .check(|_, history| {
            let row = history.of("tool").next().unwrap();
            assert_eq!(row["content"], "here");
            let files: Vec<(&Value, &Value)> =
                row["attachments"].as_array().unwrap().iter().map(|file| (&file["name"], &file["mimeType"])).collect();
            assert_eq!(
                files,
                [(&json!("image-1.gif"), &json!("image/gif")), (&json!("notes.txt"), &json!("text/plain"))]
            );
        })
        .calm();
}

/// Private addresses and such without https are not reached; a strict run says so before it asks its model.
#[test]
fn a_server_that_may_not_be_reached_is_not() {
    for (url, text) in [
        ("https://10.0.0.7/mcp", "the private address 10.0.0.7"),
        ("http://shop.test/mcp", "no https address"),
    ] {
        shop("not reached")
            .define(move |catalog| catalog["mcp"]["shop"]["url"] = json!(url))
            .drive(|sim| async move {
                sim.ask("use work").await;
            })
            .check(move |sim, history| {
                assert!(history.texts("tool")[0].contains(text), "{:?}", history.texts("tool"));
                let found: Vec<String> = sim.member.database.ask("SELECT diagnostics FROM runs");
                assert!(found[0].contains("mcp.unreachable") && found[0].contains("shop"), "{found:?}");
            })
            .once();
    }
}

/// A thread's session is nobody else's, whatever they share.
#[test]
fn each_thread_and_each_set_of_credentials_has_its_own_session() {
    shop("whose session")
        .define(|catalog| {
            catalog["mcp"]["shop"]["headers"]["x-user"] = json!("{{env USER_ID}}");
            let variables = json!([{ "name": "USER_ID", "type": "text" }]);
            catalog["tools"]["work"]["variables"] = variables.clone();
            catalog["tools"]["safe"]["variables"] = variables;
        })
        .setup(serves(|| counting().legacy()))
        .setup(|sim| {
            var(sim, "BOBBIN_ENCRYPTION_KEYS", KEY_A);
            Directories::default().serve(sim);
            sim.born.borrow_mut()["env"] = json!({ "USER_ID": "ann" });
        })
        .drive(|sim| async move {
            sim.ask("use safe").await;
            let patch = json!({ "env_patch": { "USER_ID": "bea" } }).to_string();
            let seen = sim.insist(ThreadRoute::Patch, &[], None, patch).await;
            assert_eq!(seen.status, 200, "{}", seen.body);
            sim.ask("use safe").await;
            sim.ask("use safe").await;
        })
        .check(|sim, history| {
            assert_eq!(history.texts("tool"), ["find 0", "find 1", "find 2"]);
            let calls = sim.world.outside.mcp.of("tools/call");
            let of: Vec<(Option<&str>, Option<&str>)> = calls
                .iter()
                .filter(|call| call.header("mcp-session-id").is_some())
                .map(|call| (call.header("x-user"), call.header("mcp-session-id")))
                .collect();
            assert_eq!(
                of,
                [
                    (Some("ann"), Some("session-1")),
                    (Some("bea"), Some("session-2")),
                    (Some("bea"), Some("session-2"))
                ]
            );
            assert!(calls.iter().all(|call| call.header("mcp-protocol-version").is_some()));
            assert_eq!(sim.world.outside.mcp.of("initialize")[0].params["protocolVersion"], LEGACY);
        })
        .once();
}

/// What a server was asked has a span of its own, in which the server is told that it works.
#[test]
fn a_server_is_told_of_the_span_that_it_is_asked_in() {
    shop("spans of servers")
        .setup(exports)
        .setup(serves(counting))
        .drive(|sim| async move {
            sim.ask("use work").await;
            told(&sim).await;
        })
        .check(|sim, _| {
            all_sent(sim, &[]);
            let (call, asked) = (&named(sim, "execute_tool work")[0], &named(sim, "tools/call work")[0]);
            assert_eq!((&asked["parentSpanId"], &asked["kind"]), (&call["spanId"], &json!(3)));
            let sent = &sim.world.outside.mcp.of("tools/call")[0];
            let parent =
                format!("00-{}-{}-01", asked["traceId"].as_str().unwrap(), asked["spanId"].as_str().unwrap());
            assert_eq!(sent.header("traceparent"), Some(parent.as_str()));
            assert_eq!(sent.params["_meta"]["traceparent"], parent);
            assert!(call.to_string().contains("extension"), "{call}");
            assert!(asked.to_string().contains("mcp.test"), "{asked}");
        })
        .calm();
}
