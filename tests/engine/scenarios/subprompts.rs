//! Prompts that are called (spec §23): one step in the same thread, whatever fails.

use bobbin::definitions::message::ToolResult;
use bobbin::host::Filter;
use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::story;
use crate::host::outside::ModelRequest;
use crate::host::{Native, SECOND_US, Say};
use crate::sim::Sim;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![asked(), nested(), failing_model(), hands_off_within()]
}

/// Adds the prompt `check`, which `p` may call and which may call `work`.
pub fn checking(catalog: &mut Value) {
    let schema =
        json!({ "type": "object", "properties": { "what": { "type": "string" } }, "required": ["what"] });
    catalog["prompts"]["check"] = json!({ "toolDescription": "Checks.", "prompt": "You check.", "model": "m",
        "tools": ["work"], "requiredSchema": schema });
    catalog["prompts"]["p"]["tools"] =
        json!(["work", { "name": "check", "initUserMessageProperty": "what" }]);
}

/// Whether a request is the inner prompt's.
fn inner(request: &ModelRequest) -> bool {
    request.texts("system").first().is_some_and(|text| text.starts_with("You check"))
}

/// The inner prompt works once and says so; the outer one asks it, and repeats the result.
fn asks(request: &ModelRequest) -> Say {
    if inner(request) {
        return Say::text(format!("checking {}", request.last_user())).and_call("work", "{}");
    }
    match request.results().as_slice() {
        [] => Say::call("check", &json!({ "what": "the oven" })),
        results => Say::text(format!("told: {}", results.join("|"))),
    }
}

/// Rows of every depth, oldest first.
async fn deep(sim: &Sim) -> Vec<Value> {
    let query = [("limit", "500"), ("order", "asc"), ("includeSilent", "true"), ("depth", "9")];
    let page = sim.get(ThreadRoute::ListMessages, &query).await;
    page["messages"].as_array().cloned().unwrap_or_default()
}

fn requests(sim: &Sim, of: fn(&ModelRequest) -> bool) -> usize {
    sim.world.outside.requests.borrow().iter().filter(|request| of(request)).count()
}

fn asked() -> Scenario {
    story("a prompt that is called")
        .define(checking)
        .says(asks)
        .drive(|sim| async move {
            sim.ask("hello").await;
            let rows = deep(&sim).await;
            let outer = rows.iter().find(|row| row["name"] == "check").unwrap();
            let within: Vec<&Value> = rows.iter().filter(|row| row["depth"] == 1).collect();
            assert!(within.iter().all(|row| row["parent_id"] == outer["id"]), "{within:?}");
            let roles: Vec<&str> = within.iter().filter_map(|row| row["role"].as_str()).collect();
            assert_eq!(roles, ["assistant", "tool"], "the calls within pair as well");
            // What is stored is what the outer call was told.
            let (said, result) =
                (within[0]["content"].as_str().unwrap(), within[1]["content"].as_str().unwrap());
            let told = outer["content"].as_str().unwrap();
            assert!(told.contains(said) && told.contains(result), "{told}");
        })
        .check(|sim, history| {
            // A stored reply is never asked for again, and no call within is made twice.
            let executions = sim.world.outside.executions.borrow();
            assert!(executions.len() <= 1, "{executions:?}");
            let log = sim.world.database.ask::<i64>(
                "SELECT count(*) FROM logs WHERE kind = 'llm_request' AND data ->> 'parent_call' IS NOT NULL",
            );
            assert!(log[0] >= requests(sim, inner) as i64, "each request has its row");
            let open: Vec<i64> = sim.world.database.ask("SELECT count(*) FROM calls WHERE state = 'started'");
            assert_eq!(open, [0]);
            if history.faults == 0 {
                assert_eq!(
                    history.texts("tool"),
                    ["checking the oven\n\nTool calls:\n- work({})\n  w0"],
                    "the text, and what was called"
                );
                let seen = sim.world.outside.requests.borrow();
                assert_eq!(seen[1].texts("user"), ["the oven"], "it sees nothing of the chat");
                assert_eq!(
                    seen[0].messages().len() + 2,
                    seen[2].messages().len(),
                    "and nobody sees its step"
                );
                assert!(executions[0].key.contains("/r"), "{}", executions[0].key);
                let steps = sim.world.database.ask::<i64>("SELECT steps FROM runs");
                assert_eq!(steps, [3], "its request counts for the hard cap");
                let cost =
                    sim.world.database.ask::<i64>("SELECT count(*) FROM logs WHERE kind = 'llm_request'");
                assert_eq!(cost, [3], "an attempt of its own");
            }
        })
}

#[test]
fn a_prompt_that_is_called_answers_in_one_step() {
    asked().sweep();
}

fn nested() -> Scenario {
    story("prompts within prompts")
        .define(|catalog| {
            checking(catalog);
            catalog["prompts"]["check"]["tools"] = json!(["work", "deeper"]);
            catalog["prompts"]["deeper"] = json!({ "toolDescription": "Digs.", "prompt": "You dig.", "model": "m",
                "tools": ["work"] });
        })
        .says(|request| {
            if request.texts("system")[0] == "You dig." {
                assert_eq!(request.texts("user"), ["Continue."], "no arguments, and yet a user's message");
                return Say::call("work", &json!({ "n": 2 }));
            }
            if inner(request) {
                return Say::call("deeper", &json!({})).and_call("work", "{\"n\":1}");
            }
            asks(request)
        })
        .drive(|sim| async move {
            sim.ask("hello").await;
            let rows = deep(&sim).await;
            let depths: Vec<u64> = rows.iter().filter_map(|row| row["depth"].as_u64()).collect();
            assert_eq!(depths.iter().max(), Some(&2));
            let deeper = rows.iter().find(|row| row["name"] == "deeper").unwrap();
            assert!(rows.iter().filter(|row| row["depth"] == 2).all(|row| row["parent_id"] == deeper["id"]));
        })
        .check(|sim, history| {
            assert!(sim.world.outside.executions.borrow().len() <= 2);
            if history.faults == 0 {
                let told = history.texts("tool")[0].to_owned();
                assert!(told.contains("deeper") && told.contains("w0") && told.contains("w1"), "{told}");
            }
        })
}

#[test]
fn prompts_call_prompts() {
    nested().sweep();
}

/// The inner model fails for good: retries and fallbacks are its own, and the failure is a result.
fn failing_model() -> Scenario {
    story("an inner model that fails")
        .define(|catalog| {
            checking(catalog);
            catalog["models"]["n"] = crate::sim::model("n");
            catalog["models"]["m2"] = crate::sim::model("m2");
            catalog["models"]["n"]["fallbacks"] = json!(["m2"]);
            catalog["prompts"]["check"]["model"] = json!("n");
        })
        .answers(|request| match request.model.as_str() {
            "n" | "m2" => crate::host::Answer::status(503, "down"),
            _ => asks(request).stream(request.index),
        })
        .drive(|sim| async move {
            sim.ask("hello").await;
        })
        .check(|sim, history| {
            let row = history.of("tool").next().unwrap();
            assert_eq!(row["tool_status"], "error");
            assert!(row["content"].as_str().unwrap().starts_with("The model “m2” could not answer"), "{row}");
            if history.faults == 0 {
                let models: Vec<String> =
                    sim.world.outside.requests.borrow().iter().map(|request| request.model.clone()).collect();
                assert_eq!(models, ["m", "n", "n", "m2", "m2", "m"]);
            }
        })
}

#[test]
fn an_inner_model_has_retries_and_fallbacks_of_its_own() {
    failing_model().sweep();
}

fn hands_off_within() -> Scenario {
    story("a hand-off within a prompt")
        .define(|catalog| {
            super::handoff::billing(catalog);
            checking(catalog);
            catalog["prompts"]["check"]["tools"] = json!(["billing"]);
        })
        .says(|request| {
            if request.texts("system")[0].contains("bill") {
                return Say::text("billing here");
            }
            if inner(request) {
                Say::call("billing", &json!({}))
            } else {
                Say::call("check", &json!({ "what": "x" }))
            }
        })
        .drive(|sim| async move {
            let outcome = sim.ask("hello").await;
            assert_eq!(outcome["message"]["content"], "billing here");
            assert_eq!(sim.get(ThreadRoute::Get, &[]).await["thread"]["agent_id"], "billing");
        })
}

#[test]
fn a_hand_off_within_a_prompt_changes_the_thread_once() {
    hands_off_within().sweep();
}

#[test]
fn an_inner_failure_is_an_error_that_says_what_failed() {
    story("an inner tool that fails")
        .define(checking)
        .says(asks)
        .setup(|sim| {
            sim.world.outside.native("work", |_, _| Native::Gives(1_000, ToolResult::error("no luck")))
        })
        .drive(|sim| async move {
            sim.ask("hello").await;
        })
        .check(|_, history| {
            let row = history.of("tool").next().unwrap();
            assert_eq!(row["tool_status"], "error");
            assert!(
                row["content"].as_str().unwrap().starts_with("1 of 1 tool calls failed.\nwork: no luck\n")
            );
        })
        .calm();
}

#[test]
fn a_prompt_that_asks_for_the_chat_sees_it_up_to_the_step() {
    story("history within")
        .define(|catalog| {
            checking(catalog);
            catalog["prompts"]["check"]["includeChat"] = json!(true);
        })
        .says(|request| match (inner(request), request.last_user()) {
            (true, _) => Say::text(format!("saw {}", request.texts("user").join(","))),
            (false, "first") => Say::text("one"),
            _ => asks(request),
        })
        .drive(|sim| async move {
            sim.ask("first").await;
            sim.ask("second").await;
        })
        .check(|_, history| assert_eq!(history.texts("tool"), ["saw first,second,the oven"]))
        .calm();
}

#[test]
fn arguments_are_checked_and_spelled_out_where_none_is_the_message() {
    story("arguments within")
        .define(|catalog| {
            checking(catalog);
            catalog["prompts"]["p"]["tools"] = json!(["check"]);
        })
        .says(|request| {
            if inner(request) {
                return Say::text(request.last_user());
            }
            match request.results().len() {
                0 => Say::call("check", &json!({})).and_call("check", "{\"what\":\"x\"}"),
                _ => Say::text("done"),
            }
        })
        .drive(|sim| async move {
            sim.ask("hello").await;
        })
        .check(|_, history| {
            assert_eq!(
                history.texts("tool"),
                ["Invalid arguments for \"check\": what: required but missing.", "{\n  \"what\": \"x\"\n}"]
            );
        })
        .calm();
}

#[test]
fn prompts_go_eight_deep() {
    story("a prompt that calls itself")
        .define(|catalog| {
            checking(catalog);
            catalog["prompts"]["check"]["tools"] = json!(["check"]);
        })
        .says(|request| match (inner(request), request.results().len()) {
            (false, 1) => Say::text("done"),
            _ => Say::call("check", &json!({ "what": "again" })),
        })
        .drive(|sim| async move {
            sim.ask("hello").await;
        })
        .check(|sim, history| {
            assert_eq!(requests(sim, inner), 8);
            assert!(history.texts("tool")[0].contains("calls within calls go 8 deep at most"));
        })
        .once();
}

#[test]
fn inner_requests_count_for_the_hard_cap() {
    story("inner steps and the cap")
        .define(checking)
        .says(|request| match inner(request) {
            true => Say::text("fine"),
            false => Say::call("check", &json!({ "what": "x" })),
        })
        .drive(|sim| async move {
            assert_eq!(sim.ask("hello").await["reason"], "max_total_steps");
        })
        .terms(|terms| terms.outcomes = vec!["failed"])
        .check(|sim, _| assert_eq!(sim.world.outside.requests.borrow().len(), 250))
        .once();
}

#[test]
fn no_rule_of_the_side_holds_within_a_prompt() {
    story("a stop tool within")
        .define(|catalog| {
            checking(catalog);
            catalog["agents"]["helper"]["sideA"]["stopTool"] = json!("work");
        })
        .says(asks)
        .drive(|sim| async move {
            assert_eq!(sim.ask("hello").await["reason"], "stop_on_response");
        })
        .calm();
}

#[test]
fn a_stop_closes_everything_within() {
    story("stopped within")
        .define(checking)
        .answers(|request| match inner(request) {
            true => asks(request).stream(request.index).pace(5 * SECOND_US),
            false => asks(request).stream(request.index),
        })
        .drive(|sim| async move {
            sim.send("hello").await;
            sim.until_requests(2).await;
            sim.world.pause(SECOND_US).await;
            sim.stop().await;
            let log = sim.get(ThreadRoute::ListLogs, &[]).await;
            let rows: Vec<&Value> = log["logs"].as_array().unwrap().iter().collect();
            let cut = rows.iter().find(|row| row["error_type"] == "cancelled").unwrap();
            assert_eq!((&cut["prompt_name"], &cut["attempt"]), (&json!("check"), &json!(1)));
            sim.world.pause(60 * SECOND_US).await;
            assert_eq!(sim.world.open_requests.get(), 0);
            sim.ask("again").await;
        })
        .terms(|terms| {
            terms.outcomes = vec!["stopped", "completed"];
            terms.one_answer = false;
        })
        .check(|sim, history| {
            assert!(history.texts("tool")[0].contains("was stopped while \"check\" was running"));
            let open: Vec<i64> = sim.world.database.ask("SELECT count(*) FROM calls WHERE state = 'started'");
            assert_eq!(open, [0]);
        })
        .calm();
}

#[test]
fn listeners_that_ask_for_depth_follow_the_inner_text() {
    story("inner streams")
        .define(checking)
        .says(asks)
        .drive(|sim| async move {
            let top = sim.listen(Filter::default(), None).await.unwrap();
            let all = sim.listen(Filter { depth: 1, ..Filter::default() }, None).await.unwrap();
            sim.ask("hello").await;
            let frames = all.frames.borrow();
            let mut text = String::new();
            for frame in frames.iter().filter(|frame| frame.kind == "message_chunk" && frame.depth == 1) {
                assert_eq!(frame.data["offset"], text.len());
                text.push_str(frame.data["chunk"].as_str().unwrap());
            }
            assert_eq!(text, "checking the oven");
            assert!(top.frames.borrow().iter().all(|frame| frame.depth == 0));
        })
        .calm();
}

#[test]
fn the_prompts_that_led_to_a_tool_are_its_path() {
    story("promptPath")
        .define(checking)
        .says(asks)
        .setup(|sim| {
            sim.world.outside.native("work", |call, _| {
                let path = call.state.execution().unwrap().unwrap().prompt_path;
                Native::Gives(1_000, ToolResult::success(path.join(" > ")))
            });
        })
        .drive(|sim| async move {
            sim.ask("hello").await;
        })
        .check(|_, history| assert!(history.texts("tool")[0].ends_with("p > check")))
        .calm();
}

#[test]
fn the_inner_step_runs_no_hooks_and_those_of_a_call_see_the_outer_one() {
    const ALL: [&str; 3] = ["after_system_message", "before_create_message", "before_store_tool_result"];
    story("hooks of a prompt that is called")
        .define(|catalog| {
            checking(catalog);
            for hook in ALL {
                catalog["hooks"][hook] = json!({ "hook": hook, "run": { "native": hook } });
                catalog["hooks"][format!("inner_{hook}")] =
                    json!({ "hook": hook, "run": { "native": "inner" } });
            }
            catalog["prompts"]["p"]["hooks"] = json!(ALL);
            catalog["prompts"]["check"]["hooks"] = json!(ALL.map(|hook| format!("inner_{hook}")));
        })
        .setup(|sim| {
            for hook in ALL.into_iter().chain(["inner"]) {
                super::hooks::react(sim, hook, |_| Ok(Value::Null));
            }
        })
        .says(asks)
        .drive(|sim| async move {
            sim.ask("hello").await;
            let asked = super::hooks::asked(&sim);
            let times = |hook: &str| asked.iter().filter(|asked| *asked == hook).count();
            assert_eq!((times("after_system_message"), times("before_create_message")), (2, 4), "{asked:?}");
            let [call] = &super::hooks::asked_of(&sim, "before_store_tool_result")[..] else {
                panic!("{asked:?}")
            };
            assert_eq!(call.args[0]["function"]["name"], "check");
            let native = sim.world.outside.hooked.borrow();
            assert!(native.iter().all(|asked| !asked.call_id.contains("inner_")), "{native:?}");
        })
        .calm();
}
