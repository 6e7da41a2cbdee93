//! Tools that code queues (spec §6.4).

use bobbin::Code;
use bobbin::definitions::message::ToolResult;
use bobbin::engine::{EndpointAnswer, NativeCall, ThreadState};
use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::handoff::billing;
use super::{clerk, story};
use crate::contract::History;
use crate::host::{Handler, Native, SECOND_US, Say};
use crate::sim::{Ask, Sim, native};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![
        in_a_step(),
        on_an_idle_thread(),
        handed_off(),
        once_handed_off(),
        ends_a_turn(),
        waits_behind_a_stop(),
    ]
}

/// `later` and an endpoint `POST /queue` exist beside `work`; `helper` offers `work` alone.
fn with_later(catalog: &mut Value) {
    catalog["tools"]["later"] = native(false);
    catalog["tools"]["later"]["run"]["native"] = json!("later");
    catalog["endpoints"]["POST /queue"] = json!({ "run": { "native": "queue" } });
}

/// `later` takes a second and says its number.
fn later(sim: &Sim) {
    sim.world.outside.native("later", |call, _| {
        Native::Gives(SECOND_US, ToolResult::success(format!("later {}", call.args["n"])))
    });
}

/// What `POST /queue` does.
fn endpoint(act: impl Fn(&ThreadState) -> bobbin::Result<()> + Clone + 'static) -> impl Fn(&Sim) + 'static {
    move |sim| {
        let act = act.clone();
        sim.world.outside.endpoint("queue", move |call| {
            let (act, state) = (act.clone(), call.state.clone());
            Handler::Acts(0, Box::new(move || act(&state).map(|()| EndpointAnswer::text(200, "queued"))))
        });
    }
}

/// What `work` does before its second is over.
fn working(act: impl Fn(&NativeCall) -> bobbin::Result<String> + 'static) -> impl Fn(&Sim) + 'static {
    let act = std::rc::Rc::new(act);
    move |sim| {
        let act = act.clone();
        sim.world.outside.native("work", move |call, _| {
            let result =
                act(call).map_or_else(|error| ToolResult::error(error.into_message()), ToolResult::success);
            Native::Gives(SECOND_US, result)
        });
    }
}

async fn queue(sim: &Sim) {
    assert_eq!(sim.reach_surely(Ask::of("POST", "/queue")).await.status, 200);
}

/// Names of all calls, in order, and how many executions of a tool there were.
fn calls(history: &History) -> Vec<String> {
    history.of("assistant").flat_map(History::calls).map(|(_, name)| name).collect()
}

fn runs(sim: &Sim, name: &str) -> usize {
    sim.world.outside.executions.borrow().iter().filter(|execution| execution.name == name).count()
}

fn in_a_step() -> Scenario {
    story("tools queued by a tool")
        .define(with_later)
        .says(clerk)
        .setup(later)
        .setup(working(|call| {
            call.state.queue_tool("later", json!({ "n": 1 }))?;
            call.state.queue_tool("later", json!({ "n": 2 }))?;
            Ok("queued".into())
        }))
        .drive(|sim| async move {
            sim.ask("use work,work").await;
        })
        .terms(|terms| terms.more_requests = 1)
        .check(|sim, history| {
            let named = calls(history);
            let queued = named.iter().filter(|name| *name == "later").count();
            // Each was called once; one that a failure befell is told so.
            assert!(runs(sim, "later") <= queued, "{named:?}");
            if history.faults == 0 {
                assert_eq!(named, ["work", "work", "later", "later", "later", "later"]);
                assert_eq!(
                    history.texts("tool"),
                    ["queued", "queued", "later 1", "later 2", "later 1", "later 2"],
                    "in order, after the calls of the reply"
                );
                assert_eq!(sim.world.outside.requests.borrow().len(), 2);
            }
            let open: Vec<i64> = sim.world.database.ask("SELECT count(*) FROM messages WHERE inbound = 3");
            assert_eq!(open, [0], "the step of each is closed");
        })
}

#[test]
fn tools_queued_by_a_tool_are_called_after_the_calls_of_the_step() {
    in_a_step().sweep();
}

fn on_an_idle_thread() -> Scenario {
    story("a tool queued on an idle thread")
        .define(with_later)
        .says(|request| Say::text(format!("saw {}", request.texts("tool").join(" "))))
        .setup(later)
        .setup(endpoint(|state| state.queue_tool("later", json!({ "n": 7 })).map(drop)))
        .drive(|sim| async move {
            queue(&sim).await;
            sim.until("a run", |sim| !sim.world.outside.requests.borrow().is_empty()).await;
        })
        .terms(|terms| {
            terms.one_answer = false;
            // A request to the endpoint that was lost is sent again, and queues again.
            terms.more_requests = 2;
        })
        .check(|sim, history| {
            let named = calls(history);
            assert!(!named.is_empty() && runs(sim, "later") <= named.len());
            assert!(
                history.answers().last().unwrap().starts_with("saw "),
                "the cycle goes on with the model"
            );
            if history.faults == 0 {
                assert_eq!(history.texts("tool"), ["later 7"]);
                assert_eq!(sim.world.outside.requests.borrow().len(), 1, "its step has no model call");
                let steps: Vec<i64> = sim.world.database.ask("SELECT steps FROM runs");
                assert_eq!(steps, [2], "it counts as one of the steps that any run may take");
            }
        })
}

#[test]
fn a_tool_queued_on_an_idle_thread_starts_a_run_without_a_model_call() {
    on_an_idle_thread().sweep();
}

fn handed_off() -> Scenario {
    story("a hand-off queued by code")
        .define(|catalog| {
            with_later(catalog);
            billing(catalog);
            catalog["prompts"]["p"]["tools"] = json!(["work"]);
        })
        .says(|request| {
            let billing = request.texts("system")[0].contains("bill");
            Say::text(if billing { "billing here" } else { "helper here" })
        })
        .setup(endpoint(|state| state.queue_tool("billing", json!({})).map(drop)))
        .drive(|sim| async move {
            sim.ask("hello").await;
            queue(&sim).await;
            sim.until("the answer", |sim| sim.world.outside.requests.borrow().len() >= 2).await;
            sim.until("idle", |sim| sim.world.executor.waiting(false).is_empty()).await;
            assert_eq!(sim.get(ThreadRoute::Get, &[]).await["thread"]["agent_id"], "billing");
        })
        .terms(|terms| {
            terms.one_answer = false;
            terms.more_requests = 2;
        })
        .check(|_, history| {
            assert_eq!(history.answers().last(), Some(&"billing here"));
            assert!(history.texts("tool").iter().all(|text| text.starts_with("Handed off to \"billing\"")));
        })
}

#[test]
fn code_hands_a_thread_off() {
    handed_off().sweep();
}

/// A hand-off that took place is not made again by a later step that fails before it opens a block.
fn once_handed_off() -> Scenario {
    story("a queued tool after a hand-off")
        .define(|catalog| {
            with_later(catalog);
            billing(catalog);
            catalog["prompts"]["p"]["tools"] =
                json!(["work", { "name": "billing", "initUserMessageProperty": "question" }]);
            catalog["agents"]["helper"]["sideA"]["stopTool"] = json!("work");
        })
        .says(|request| match request.texts("system")[0].contains("bill") {
            true => Say::text("billing here"),
            false => Say::call("billing", &json!({ "question": "first?" })).and_call("work", "{}"),
        })
        .setup(later)
        .setup(endpoint(|state| state.queue_tool("later", json!({})).map(drop)))
        .drive(|sim| async move {
            sim.ask("hello").await;
            queue(&sim).await;
            sim.until("the answer", |sim| sim.world.outside.requests.borrow().len() >= 2).await;
        })
        .terms(|terms| {
            terms.one_answer = false;
            terms.more_requests = 2;
        })
        .check(|_, history| assert_eq!(history.texts("user"), ["hello", "first?"]))
}

#[test]
fn a_hand_off_takes_place_once() {
    once_handed_off().sweep();
}

/// The stop tool, queued by code, ends the turn; no model is asked.
fn ends_a_turn() -> Scenario {
    story("a stop tool queued by code")
        .define(|catalog| {
            with_later(catalog);
            catalog["prompts"]["p"]["tools"] = json!(["work", "later"]);
            catalog["agents"]["helper"]["sideA"]["stopTool"] = json!("later");
        })
        .says(clerk)
        .setup(later)
        .setup(endpoint(|state| state.queue_tool("later", json!({})).map(drop)))
        .drive(|sim| async move {
            queue(&sim).await;
            sim.until("executed", |sim| runs(sim, "later") > 0).await;
            sim.world.pause(20 * SECOND_US).await;
        })
        .terms(|terms| terms.one_answer = false)
        .check(|sim, _| {
            assert!(sim.world.outside.requests.borrow().is_empty(), "no model was asked");
            let reasons: Vec<String> = sim.world.database.ask("SELECT DISTINCT reason FROM runs");
            assert_eq!(reasons, ["stop_tool"]);
        })
}

#[test]
fn a_stop_tool_that_code_queues_ends_the_turn() {
    ends_a_turn().sweep();
}

fn waits_behind_a_stop() -> Scenario {
    story("tools behind a stop")
        .define(with_later)
        .says(clerk)
        .setup(later)
        .setup(endpoint(|state| state.queue_tool("later", json!({ "n": 3 })).map(drop)))
        .drive(|sim| async move {
            sim.ask("hello").await;
            sim.stop().await;
            queue(&sim).await;
            let queued = sim.get(ThreadRoute::Diagnostics, &[]).await["queue"].clone();
            assert!(queued["tools"].as_u64() >= Some(1) && queued["waiting"] == queued["tools"], "{queued}");
            sim.world.pause(60 * SECOND_US).await;
            assert_eq!(runs(&sim, "later"), 0, "it waits as a message does");
            let row = sim.history().await.into_iter().rev().find(|row| !row["tool_calls"].is_null()).unwrap();
            assert_eq!((&row["status"], &row["metadata"]["queued"]), (&json!("pending"), &json!(true)));
            assert_eq!(sim.go_on().await.status, 202);
            sim.until("executed", |sim| runs(sim, "later") > 0).await;
        })
        .terms(|terms| {
            terms.one_answer = false;
            terms.more_requests = 2;
        })
        .check(|_, history| {
            let row = history.of("assistant").find(|row| !row["tool_calls"].is_null()).unwrap();
            assert_eq!(row["status"], "completed");
        })
}

#[test]
fn a_stopped_thread_keeps_its_queued_tools() {
    waits_behind_a_stop().sweep();
}

#[test]
fn a_stop_in_a_queued_tool_leaves_the_others_waiting() {
    story("stopped in a queued tool")
        .define(with_later)
        .says(clerk)
        .setup(later)
        .setup(endpoint(|state| {
            (0..3).try_for_each(|n| state.queue_tool("later", json!({ "n": n })).map(drop))
        }))
        .drive(|sim| async move {
            queue(&sim).await;
            sim.until("executing", |sim| runs(sim, "later") > 1).await;
            sim.stop().await;
            sim.world.pause(60 * SECOND_US).await;
            assert_eq!(runs(&sim, "later"), 2);
            assert_eq!(sim.get(ThreadRoute::Diagnostics, &[]).await["queue"]["tools"], 1);
            sim.ask("hello").await;
        })
        .check(|_, history| {
            let results = history.texts("tool");
            assert_eq!((results[0], results[2]), ("later 0", "later 2"));
            assert!(results[1].contains("was stopped while \"later\" was running"), "{results:?}");
            // It was queued before the message, and is called before the model is asked about it.
            assert_eq!(history.answers(), ["re: hello"]);
        })
        .calm();
}

#[test]
fn a_wrong_call_is_refused_when_it_is_queued() {
    story("wrong queued calls")
        .define(|catalog| {
            with_later(catalog);
            catalog["agents"]["hidden"] = json!({ "sideA": { "prompt": "p" } });
        })
        .setup(working(|call| {
            let refused = |name: &str, args: Value| call.state.queue_tool(name, args).unwrap_err();
            let error = refused("nope", json!({}));
            assert_eq!((error.code, error.field.as_deref()), (Code::InvalidField, Some("name")), "{error}");
            assert!(refused("hidden", json!({})).message.contains("hidden"), "it is not exposed");
            let error = refused("later", json!({ "n": "x" }));
            assert_eq!(error.field.as_deref(), Some("args"));
            assert!(error.message.ends_with("n: expected integer, got string."), "{error}");
            let error = refused("later", json!({ "x": "y".repeat(1_000_000) }));
            assert_eq!((error.code, error.field.as_deref()), (Code::TooLarge, Some("args")), "{error}");
            call.state.terminate()?;
            assert_eq!(refused("later", json!({})).code, Code::Terminated);
            Ok("nobody reads this".into())
        }))
        .drive(|sim| async move {
            sim.ask("use work").await;
        })
        .terms(|terms| {
            terms.outcomes = vec!["stopped"];
            terms.pairs = false;
        })
        .check(|sim, _| assert_eq!(runs(sim, "later"), 0))
        .calm();
}

#[test]
fn a_tool_that_queues_itself_comes_to_the_cap() {
    story("a tool that queues itself")
        .define(with_later)
        .says(clerk)
        .setup(working(|call| call.state.queue_tool("work", json!({}))))
        .drive(|sim| async move {
            let outcome = sim.ask("use work").await;
            assert_eq!(outcome["reason"], "max_total_steps");
            assert_eq!(sim.get(ThreadRoute::Diagnostics, &[]).await["queue"]["waiting"], 0);
        })
        .terms(|terms| terms.outcomes = vec!["failed"])
        .check(|sim, history| {
            assert_eq!(runs(sim, "work"), 250, "a step of the model, and so many queued ones");
            assert!(history.texts("tool").last().unwrap().starts_with("Not run: "));
        })
        .once();
}

#[test]
fn the_queue_is_full_of_tools_too() {
    story("a queue full of tools")
        .define(with_later)
        .setup(later)
        .setup(endpoint(|state| {
            for n in 0..1_000 {
                state.queue_tool("later", json!({ "n": n }))?;
            }
            assert_eq!(state.queue_tool("later", json!({})).unwrap_err().code, Code::QueueFull);
            Ok(())
        }))
        .drive(|sim| async move {
            sim.stop().await;
            queue(&sim).await;
            sim.evict().await;
            let seen = sim.post(json!({ "role": "user", "content": "one more" })).await;
            assert_eq!((seen.status, &seen.body["error"]["code"]), (429, &json!("queue_full")));
        })
        .once();
}

#[test]
fn a_queued_tool_may_be_taken_back_while_it_waits() {
    story("taken back")
        .define(with_later)
        .says(clerk)
        .setup(later)
        .setup(endpoint(|state| {
            let first = state.queue_tool("later", json!({ "n": 1 }))?;
            state.queue_tool("later", json!({ "n": 2 }))?;
            assert!(state.delete_message(&first)?);
            Ok(())
        }))
        .drive(|sim| async move {
            sim.stop().await;
            queue(&sim).await;
            sim.ask("hello").await;
        })
        .check(|_, history| assert_eq!(history.texts("tool"), ["later 2"]))
        .calm();
}

#[test]
fn what_waits_for_a_vanished_agent_fails_once() {
    story("a vanished agent")
        .define(with_later)
        .setup(endpoint(|state| state.queue_tool("later", json!({})).map(drop)))
        .drive(|sim| async move {
            sim.stop().await;
            queue(&sim).await;
            let mut catalog = crate::sim::catalog(&super::with_work());
            catalog["agents"] = json!({ "other": { "sideA": { "prompt": "p" } } });
            sim.deploy(&catalog);
            assert_eq!(sim.ask("hello").await["reason"], "definition_missing");
        })
        .terms(|terms| {
            terms.outcomes = vec!["failed"];
            terms.pairs = false;
        })
        .check(|sim, history| {
            assert_eq!(history.statuses("run_failed").len(), 1);
            assert!(sim.world.outside.requests.borrow().is_empty());
        })
        .calm();
}
