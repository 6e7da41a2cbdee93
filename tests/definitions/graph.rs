//! What an agent leads to.

use bobbin::definitions::Catalog;
use bobbin::definitions::graph::{Item, reach};
use serde_json::{Value, json};

fn catalog() -> Catalog {
    let prompt = |tools: Value, variable: &str| {
        json!({ "toolDescription": "d", "model": "m", "prompt": "p", "tools": tools,
            "variables": [{ "name": variable, "type": "text", "required": true }] })
    };
    let agent = |kind: &str, prompt: &str| {
        let mut agent = json!({ "type": kind, "sideA": { "prompt": prompt }, "exposeAsTool": true, "toolDescription": "d" });
        if kind == "dual_ai" {
            agent["sideB"] = json!({ "prompt": "judge" });
        }
        agent
    };
    let resumable =
        json!({ "name": "pair", "optional": "WITH", "resumable": { "receives_messages": "side_a" } });
    let catalog = json!({
        "tools": { "dig": { "description": "d", "run": { "native": "dig" },
            "variables": [{ "name": "SPADE", "type": "secret", "required": true }] } },
        "prompts": {
            "front": prompt(json!([resumable, "sales"]), "FRONT"), "sales": prompt(json!(["pair"]), "SALES"),
            "digger": prompt(json!(["dig", "pair"]), "DIGGER"), "judge": prompt(json!([]), "JUDGE"),
        },
        "agents": { "front": agent("ai_human", "front"), "clerk": agent("ai_human", "sales"), "pair": agent("dual_ai", "digger") },
    });
    Catalog::from_json(&catalog.to_string()).unwrap()
}

fn required(catalog: &Catalog, agent: &str) -> Vec<String> {
    let found = reach(catalog, catalog.agents.get(agent).unwrap());
    found.iter().flat_map(|found| found.item.variables()).map(|variable| variable.name.clone()).collect()
}

#[test]
fn a_subagents_graph_is_its_own() {
    let catalog = catalog();
    assert_eq!(required(&catalog, "front"), ["FRONT", "SALES"], "nothing of the subagent (spec §35.12)");
    assert_eq!(required(&catalog, "clerk"), ["SALES"]);
    assert_eq!(required(&catalog, "pair"), ["DIGGER", "SPADE", "JUDGE"], "both sides, and no end to itself");
}

#[test]
fn an_optional_entry_is_a_use_of_values() {
    let catalog = catalog();
    let mut prompt = catalog.prompts.get("front").unwrap().clone();
    prompt.variables.clear();
    assert!(Item::Prompt(&prompt).uses_values());
    prompt.tools[0].optional = None;
    assert!(!Item::Prompt(&prompt).uses_values());
}
