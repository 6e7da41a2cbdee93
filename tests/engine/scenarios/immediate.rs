//! Subagents that begin with their prompt: once for each activation, one for each place of a row of variables.

use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::env::var;
use super::family_env::{below, family, no_secrets_of, types, who};
use crate::contract::History;
use crate::host::Say;
use crate::host::outside::ModelRequest;
use crate::sim::Sim;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![plain(), in_a_row(), after_a_hand_off()]
}

/// Children report what they were told, and what their tool was given.
fn script(request: &ModelRequest) -> Say {
    match (who(request), request.results().last().copied()) {
        ("shop" | "stall", None) => Say::call("work", &json!({})),
        ("shop" | "stall", Some(seen)) => {
            let told = request.last_user();
            Say::call("finish", &json!({ "summary": format!("told {told:?} with {seen}") }))
        }
        _ => Say::text(format!("re: {}", request.last_user())),
    }
}

fn entry(catalog: &mut Value, entry: Value) {
    catalog["prompts"]["p"]["tools"] = json!([entry]);
    catalog["prompts"]["shop_a"]["tools"] = json!(["work", "finish"]);
}

/// Results of children that reached the root.
fn results(history: &History) -> Vec<&str> {
    let told = history.messages.iter().filter(|message| message["metadata"]["subagent_event"] == "result");
    told.filter_map(|message| message["content"].as_str()).collect()
}

async fn until_results(sim: &Sim, n: i64) {
    sim.until("results", |sim| {
        let found: Vec<i64> = sim
            .member
            .database
            .ask("SELECT count(*) FROM messages WHERE metadata ->> 'subagent_event' = 'result'");
        found[0] >= n
    })
    .await;
}

fn plain() -> Scenario {
    family("a child that begins by itself")
        .define(|catalog| {
            entry(catalog, json!({ "name": "shop", "immediate": true, "blocking": false }));
            catalog["prompts"]["shop_a"]["tools"] =
                json!(["work", "finish", { "name": "stall", "immediate": true }]);
        })
        .says(script)
        .drive(|sim| async move {
            sim.send("hello").await;
            until_results(&sim, 1).await;
            sim.send("again").await;
        })
        .terms(|terms| terms.one_answer = false)
        .check(|sim, history| {
            // The root's call, and the shop's; nothing began a second time.
            assert_eq!(below(sim).len(), 2);
            let [result] = results(history).try_into().unwrap_or_else(|all| panic!("{all:?}"));
            assert!(result.contains("told \"Begin.\""), "{result}");
            // Its call was made before anything was asked of a model.
            let requests = sim.world.outside.requests.borrow();
            let first = requests.iter().find(|request| who(request) == "helper").unwrap();
            assert_eq!(first.results().len(), 1, "{}", first.body);
            let of_shop = requests.iter().find(|request| who(request) == "shop").unwrap();
            assert!(of_shop.results()[0].contains("told"), "the stall is waited for: {}", of_shop.body);
            for member in sim.family() {
                assert_eq!(member.member.database.ask::<i64>("SELECT activates FROM meta"), [0]);
            }
        })
}

#[test]
fn a_prompts_children_begin_once_before_its_first_request_whatever_fails() {
    plain().sampled(400).sweep();
}

const KEYS: [&str; 3] = ["canary-first-1111", "canary-second-2222", "canary-third-3333"];

/// Three places, of which the second has no task.
fn in_a_row() -> Scenario {
    family("children in a row")
        .define(|catalog| {
            let hints = json!({ "nameEnv": "NAME", "descriptionEnv": "TASK", "scopedEnv": ["GIVEN"] });
            entry(catalog, json!({ "name": "shop", "immediate": hints, "blocking": false }));
        })
        .setup(|sim| {
            let [first, second, third] = KEYS;
            *sim.born.borrow_mut() = json!({ "agent_id": "helper", "env_types": { "CITY": "text" }, "env": {
                "CITY": "Lisbon", "NAME": "Ada's own shop", "TASK": "Sell the apples.", "GIVEN": first,
                "NAME__2": "Bob's own shop", "GIVEN__2": second,
                "TASK__7": "Sell the pears.", "GIVEN__7": third, "OTHER": "canary-other-9999",
            } });
        })
        .says(script)
        .drive(|sim| async move {
            sim.send("hello").await;
            until_results(&sim, 3).await;
        })
        .terms(|terms| {
            terms.one_answer = false;
            terms.more_requests = 3;
        })
        .check(|sim, history| {
            let mut all = results(history);
            all.sort_by_key(|text| text.find("told").map(|at| text[at..].to_owned()));
            let [plain, apples, pears] = all.try_into().unwrap_or_else(|all| panic!("{all:?}"));
            assert!(plain.contains("Bob's own shop") && plain.contains("told \"Begin.\""), "{plain}");
            assert!(
                apples.contains("Ada's own shop") && apples.contains("told \"Sell the apples.\""),
                "{apples}"
            );
            assert!(pears.contains("told \"Sell the pears.\""), "{pears}");
            // Each has its own value under the plain name, and nobody else's.
            let children = below(sim);
            assert_eq!(children.len(), 3);
            for child in &children {
                assert_eq!(types(child), ["CITY text", "GIVEN secret", "OTHER secret"]);
            }
            let redacted = |text: &&str| text.contains(r#""GIVEN":"[redacted GIVEN]""#);
            assert!([apples, pears, plain].iter().all(redacted));
            assert_eq!(types(sim), ["CITY text", "OTHER secret"], "the rest was taken");
            no_secrets_of(sim, &KEYS);
        })
}

#[test]
fn variables_in_a_row_begin_a_child_each_and_are_taken_whatever_fails() {
    in_a_row().sampled(400).sweep();
}

fn after_a_hand_off() -> Scenario {
    family("children after a hand-off")
        .define(|catalog| {
            entry(catalog, json!({ "name": "billing" }));
            catalog["prompts"]["q"] = json!({ "toolDescription": "d", "prompt": "You bill.", "model": "m",
                "includeChat": true, "includePastTools": true, "tools": [{ "name": "shop", "immediate": true }] });
            catalog["agents"]["billing"] = json!({ "sideA": { "prompt": "q" }, "exposeAsTool": true,
                "toolDescription": "Takes over." });
        })
        .says(|request| match request.system() {
            text if text.contains("help") => Say::call("billing", &json!({})),
            _ => script(request),
        })
        .drive(|sim| async move {
            sim.send("bills").await;
            sim.until("an answer", |sim| !sim.member.database.ask::<i64>(
                "SELECT 1 FROM messages WHERE role = 'assistant' AND content LIKE 're:%'").is_empty()).await;
        })
        .terms(|terms| terms.one_answer = false)
        .check(|sim, history| {
            assert_eq!((below(sim).len(), history.answers()), (1, vec!["re: bills"]));
            let results = history.texts("tool");
            assert!(results[0].starts_with("Handed off") && results[1].contains("told \"Begin.\""), "{results:?}");
        })
}

#[test]
fn a_hand_off_begins_the_children_of_the_new_prompt_once_whatever_fails() {
    after_a_hand_off().sampled(400).sweep();
}

#[test]
fn what_is_switched_off_or_has_no_hints_does_not_begin() {
    for (value, begins) in [(None, 0), (Some("no"), 0), (Some("YES"), 1), (Some(" true "), 1), (Some("1"), 1)]
    {
        family("optional")
            .define(|catalog| {
                let hints = json!({ "nameEnv": "NAME", "scopedEnv": ["GIVEN"] });
                entry(
                    catalog,
                    json!({ "name": "shop", "immediate": true, "optional": "SHOP", "blocking": false }),
                );
                catalog["prompts"]["p"]["tools"]
                    .as_array_mut()
                    .unwrap()
                    .push(json!({ "name": "stall", "immediate": hints, "blocking": false }));
            })
            .setup(move |sim| {
                if let Some(value) = value {
                    var(sim, "SHOP", value);
                }
            })
            .says(script)
            .drive(move |sim| async move {
                sim.send("hello").await;
                until_results(&sim, begins).await;
            })
            .terms(|terms| terms.one_answer = false)
            .check(move |sim, _| assert_eq!(below(sim).len() as i64, begins, "{value:?}"))
            .calm();
    }
}

#[test]
fn a_secret_of_the_definitions_names_and_instructs_nobody() {
    family("a secret as a hint")
        .define(|catalog| {
            let hints = json!({ "nameEnv": "OWN", "descriptionEnv": "TASK" });
            entry(catalog, json!({ "name": "shop", "immediate": hints, "blocking": false }));
        })
        .setup(|sim| {
            let env = json!({ "OWN": KEYS[0], "TASK": "Sell the apples." });
            *sim.born.borrow_mut() = json!({ "agent_id": "helper", "env": env });
        })
        .says(script)
        .drive(|sim| async move {
            sim.send("hello").await;
            until_results(&sim, 1).await;
        })
        .terms(|terms| terms.one_answer = false)
        .check(|sim, history| {
            assert!(results(history)[0].contains("told \"Sell the apples.\""), "{:?}", results(history));
            no_secrets_of(sim, &KEYS);
        })
        .calm();
}

#[test]
fn children_that_begin_their_like_end_eight_levels_down() {
    family("depth")
        .define(|catalog| {
            entry(catalog, json!({ "name": "shop", "immediate": true, "blocking": false }));
            catalog["prompts"]["shop_a"]["tools"] = json!(["finish", { "name": "shop", "immediate": true }]);
        })
        .says(|request| match (who(request), request.results().last().copied()) {
            ("shop", Some(seen)) => Say::call("finish", &json!({ "summary": format!("+{seen}") })),
            _ => script(request),
        })
        .drive(|sim| async move {
            sim.send("hello").await;
            until_results(&sim, 1).await;
        })
        .terms(|terms| terms.one_answer = false)
        .check(|sim, history| {
            assert_eq!(below(sim).len(), 8);
            let result = results(history)[0];
            assert_eq!(result.matches('+').count(), 8, "{result}");
            assert!(result.contains("8 deep at most"), "{result}");
        })
        .calm();
}

#[test]
fn hints_wait_for_values_that_are_missing_with_what_was_given() {
    family("hints that lack a value")
        .define(|catalog| {
            let hints = json!({ "descriptionEnv": "TASK", "scopedEnv": ["GIVEN"] });
            entry(catalog, json!({ "name": "shop", "immediate": hints }));
            catalog["tools"]["work"]["variables"][1]["required"] = true.into();
        })
        .setup(|sim| {
            let env = json!({ "TASK": "Sell the apples.", "GIVEN": KEYS[0] });
            *sim.born.borrow_mut() = json!({ "agent_id": "helper", "env": env });
        })
        .says(script)
        .drive(|sim| async move {
            sim.send("hello").await;
            sim.until("a child that waits", |sim| {
                !sim.member.database.ask::<i64>("SELECT 1 FROM children WHERE state = 'pending'").is_empty()
            })
            .await;
            sim.evict().await;
            // What the child is given alone is not the thread's any more, and is kept for it.
            assert_eq!(types(&sim), Vec::<String>::new());
            let id = sim.member.database.ask::<String>("SELECT reference FROM children").remove(0);
            let body = json!({ "env": { "OWN": KEYS[1] } }).to_string();
            let seen = sim.insist(ThreadRoute::PostVariables(id), &[], Some("once"), body).await;
            assert_eq!(seen.status, 200, "{}", seen.body);
            until_results(&sim, 1).await;
        })
        .terms(|terms| terms.one_answer = false)
        .check(|sim, history| {
            let result = results(history)[0];
            let told = r#"told "Sell the apples." with {"OWN":"[redacted OWN]","GIVEN":"[redacted GIVEN]"}"#;
            assert!(result.contains(told), "{result}");
            no_secrets_of(sim, &KEYS);
        })
        .sampled(300)
        .sweep();
}

#[test]
fn a_required_message_and_name_are_the_usual_ones_where_nobody_gives_others() {
    family("a child with required arguments")
        .define(|catalog| {
            entry(
                catalog,
                json!({ "name": "shop", "immediate": true, "blocking": false,
                    "initUserMessageProperty": "task", "initAgentNameProperty": "as" }),
            );
            catalog["prompts"]["shop_a"]["requiredSchema"] = json!({ "type": "object", "properties": {
                "task": { "type": "string" }, "as": { "type": "string" } }, "required": ["task", "as"] });
        })
        .says(script)
        .drive(|sim| async move {
            sim.send("hello").await;
            until_results(&sim, 1).await;
        })
        .terms(|terms| terms.one_answer = false)
        .check(|_, history| {
            let [result] = results(history).try_into().unwrap_or_else(|all| panic!("{all:?}"));
            assert!(result.contains("told \"Begin.\""), "{result}");
        })
        .calm();
}
