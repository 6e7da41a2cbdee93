//! What looks like a secret in results of calls: it is nowhere, whatever fails, and everything after the call sees what
//! stands in its place.

use bobbin::definitions::message::ToolResult;
use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::env::nowhere;
use super::hooks::hooked;
use super::story;
use super::subprompts::checking;
use super::waits::{decides, until_open, with};
use crate::host::collector::COLLECTOR_URL;
use crate::host::outside::ModelRequest;
use crate::host::{Answer, Native, SECOND_US, Say, TOOL_URL};
use crate::sim::Sim;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![by_tools(), by_a_prompt()]
}

/// It has a name wherever it stands.
const NAMED: &str = "canary-4711-hunter";
/// It has none.
const RANDOM: &str = "cNrY7Qx2Lm9Zt4Wv8Bk3Hs6Pd1";

/// The tool `work` gives this at once.
fn gives(sim: &Sim, result: impl Fn() -> ToolResult + 'static) {
    sim.world.outside.native("work", move |_, _| Native::Gives(SECOND_US, result()));
}

fn http(path: &str) -> Value {
    json!({ "description": "d", "run": { "http": { "url": format!("{TOOL_URL}/{path}") } } })
}

fn set(sim: &Sim, name: &str, value: &str) {
    sim.world.vars.borrow_mut().insert(name.into(), value.into());
}

fn lines(sim: &Sim) -> usize {
    let log = sim.world.log.borrow();
    log.iter()
        .filter(|line| line.contains("what looks like a secret was taken out of the result of \"work\""))
        .count()
}

/// Name and counts of the receipts.
fn counts(sim: &Sim) -> Vec<String> {
    sim.member.database.ask(
        "SELECT name || ' ' || ifnull(data ->> '$.scrubbed', ifnull(data ->> '$.result.scrubbed', '-')) FROM calls ORDER BY id",
    )
}

fn by_tools() -> Scenario {
    hooked(
        "secrets in results",
        &["after_tool_call_success", "after_tool_call_failure", "before_store_tool_result"],
    )
    .define(|catalog| {
        catalog["tools"]["reads"] = http("reads");
        catalog["tools"]["fails"] = http("fails");
        catalog["prompts"]["p"]["tools"] = json!(["work", "reads", "fails"]);
    })
    .setup(|sim| {
        set(sim, "BOBBIN_LOG_BODIES", "1");
        set(sim, "BOBBIN_OTLP_ENDPOINT", COLLECTOR_URL);
        set(sim, "BOBBIN_OTLP_CONTENT", "1");
        gives(sim, || ToolResult {
            result: Some(json!({ "password": NAMED, "log": format!("token={NAMED} {RANDOM}") })),
            ..ToolResult::success("")
        });
        let outside = &sim.world.outside;
        outside.server("/reads", |_, _| Answer::status(200, format!("DB_PASSWORD={NAMED}\nkey {RANDOM} ok")));
        outside.server("/fails", |_, _| Answer::status(401, format!("bad password: {NAMED}")));
    })
    .drive(|sim| async move {
        sim.ask("use work,reads,fails").await;
        sim.ask("use work").await;
        sim.until("all spans are sent", |sim| sim.member.database.ask::<i64>("SELECT jobs FROM meta") == [0])
            .await;
    })
    .check(|sim, history| {
        for canary in [NAMED, RANDOM] {
            nowhere(sim, canary);
            let asked = sim.world.outside.hooked.borrow();
            assert!(
                asked.iter().all(|asked| !format!("{:?}", asked.args).contains(canary)),
                "a hook sees {canary}"
            );
            let spans = sim.world.outside.collector.spans.borrow();
            assert!(spans.iter().all(|span| !format!("{span:?}").contains(canary)), "a span has {canary}");
        }
        let uncounted: Vec<i64> = sim.member.database.ask(
            "SELECT count(*) FROM calls WHERE state = 'succeeded' AND data ->> '$.scrubbed.keywords' IS NULL",
        );
        assert_eq!(uncounted, [0], "what was taken out is counted, whatever failed before it was stored");
        if history.faults > 0 {
            return;
        }
        let results = history.texts("tool");
        let work = r#"{"password":"[REDACTED]","log":"token=[REDACTED] [REDACTED:high-entropy]"}"#;
        assert_eq!(results[0], work);
        assert_eq!(results[1], "DB_PASSWORD=[REDACTED]\nkey [REDACTED:high-entropy] ok");
        assert_eq!(results[2], "http 401 from fails: bad password: [REDACTED]");
        let both = r#"{"keywords":2,"entropy":1}"#;
        assert_eq!(
            counts(sim),
            [
                format!("work {both}"),
                r#"reads {"keywords":1,"entropy":1}"#.to_owned(),
                r#"fails {"keywords":1,"entropy":0}"#.to_owned(),
                format!("work {both}"),
            ]
        );
        let hooked = sim.world.outside.hooked.borrow();
        assert!(hooked.iter().any(|asked| format!("{:?}", asked.args).contains("[REDACTED:high-entropy]")));
        assert_eq!(lines(sim), 1, "the operator is told once");
    })
}

#[test]
fn what_looks_like_a_secret_in_a_result_is_nowhere() {
    by_tools().sweep();
}

/// The prompt that is called hands the secret on in its own words.
fn leaks(request: &ModelRequest) -> Say {
    let inner = request.texts("system").first().is_some_and(|text| text.starts_with("You check"));
    match (inner, request.results().is_empty()) {
        (true, _) => Say::text(format!("the password is {NAMED}!")),
        (false, true) => Say::call("check", &json!({ "what": "the oven" })),
        (false, false) => Say::text("done"),
    }
}

fn by_a_prompt() -> Scenario {
    story("a secret in the answer of a prompt")
        .define(checking)
        .says(leaks)
        .drive(|sim| async move {
            sim.ask("hello").await;
        })
        .check(|sim, history| {
            if history.faults == 0 {
                assert_eq!(history.texts("tool"), ["the password is [REDACTED]"]);
                assert_eq!(counts(sim), [r#"check {"keywords":1,"entropy":0}"#]);
                let requests = sim.world.outside.requests.borrow();
                assert_eq!(requests.last().unwrap().results(), ["the password is [REDACTED]"]);
            }
        })
}

#[test]
fn the_answer_of_a_called_prompt_passes_as_any_result() {
    by_a_prompt().sweep();
}

#[test]
fn what_the_client_gives_passes_and_what_a_person_says_does_not() {
    story("a client's secret")
        .define(with(json!({
            "locate": { "description": "d", "run": { "client": {} } },
            "asks": { "description": "d", "run": { "native": "ask_user" },
                "args": { "type": "object", "properties": { "question": { "type": "string" } } } },
        })))
        .drive(|sim| async move {
            sim.send("use locate,asks").await;
            let waits = until_open(&sim, 2).await;
            for wait in waits {
                let decision = match wait["kind"].as_str() {
                    Some("client_tool") => json!({ "decision": "answer", "result": { "password": NAMED } }),
                    _ => json!({ "decision": "answer", "text": "my password is swordfish-12" }),
                };
                decides(&sim, &wait, decision).await;
            }
        })
        .check(|sim, history| {
            nowhere(sim, NAMED);
            assert_eq!(
                history.texts("tool"),
                [r#"{"password":"[REDACTED]"}"#, "my password is swordfish-12"]
            );
            assert_eq!(counts(sim), [r#"locate {"keywords":1,"entropy":0}"#, "asks -"]);
        })
        .calm();
}

#[test]
fn settings_say_what_is_reported_and_what_is_kept() {
    story("settings of scrubbing")
        .define(|catalog| {
            catalog["settings"] = json!({ "scrub": { "keywords": "report", "extraKeywords": ["seed"] } });
            catalog["tools"]["reads"] = http("reads");
            catalog["tools"]["reads"]["scrub"] = json!({ "keywords": "redact", "entropy": "off" });
            catalog["prompts"]["p"]["tools"] = json!(["work", "reads"]);
        })
        .setup(|sim| {
            let text = format!("seed={NAMED} key {RANDOM}");
            let same = text.clone();
            gives(sim, move || ToolResult::success(text.clone()));
            sim.world.outside.server("/reads", move |_, _| Answer::status(200, same.clone()));
        })
        .drive(|sim| async move {
            sim.ask("use work,reads").await;
            let run = sim.get(ThreadRoute::GetRun("r_1".into()), &[]).await;
            let found = &run["diagnostics"][0];
            assert_eq!((&found["code"], &found["level"]), (&json!("scrub.found"), &json!("warn")), "{run}");
            assert_eq!(found["data"], json!({ "tool": "work" }));
            let logs = sim.get(ThreadRoute::ListLogs, &[("order", "asc")]).await;
            let calls: Vec<&Value> =
                logs["logs"].as_array().unwrap().iter().filter(|row| row["type"] == "tool_call").collect();
            assert_eq!(calls[0]["scrubbed"], json!({ "keywords": 0, "entropy": 1 }));
            assert_eq!(calls[1]["scrubbed"], json!({ "keywords": 1, "entropy": 0 }));
        })
        .check(|_, history| {
            let kept = format!("seed={NAMED} key [REDACTED:high-entropy]");
            assert_eq!(history.texts("tool"), [kept, format!("seed=[REDACTED] key {RANDOM}")]);
        })
        .calm();
}
