//! System prompts from their parts.

use bobbin::definitions::Catalog;
use serde_json::{Value, json};

fn prompt(parts: Value, variables: &[(&str, &str)], env: Value) -> Value {
    let variables: Vec<Value> =
        variables.iter().map(|(name, kind)| json!({ "name": name, "type": kind })).collect();
    json!({ "toolDescription": "x", "model": "m", "prompt": parts, "variables": variables, "env": env })
}

fn include(name: &str) -> Value {
    json!({ "type": "include", "prompt": name })
}

fn env(name: &str) -> Value {
    json!({ "type": "env", "property": name })
}

fn text(content: &str) -> Value {
    json!({ "type": "text", "content": content })
}

fn rendered(prompts: Value, values: &[(&str, &str)]) -> String {
    let model =
        json!({ "provider": "openai", "model": "m", "baseUrl": "https://a.example", "apiKeyEnv": "THE_KEY" });
    let catalog =
        Catalog::from_json(&json!({ "models": { "m": model }, "prompts": prompts }).to_string()).unwrap();
    let lookup = |name: &str| values.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
    catalog.prompts.get("top").unwrap().render(&catalog, &lookup)
}

#[test]
fn parts_are_joined_without_a_separator_and_includes_rendered_in_their_place() {
    let prompts = json!({
        "top": prompt(json!([text("a"), include("mid"), text("e")]), &[], json!({})),
        "mid": prompt(json!([text("b"), include("leaf"), text("d"), include("leaf")]), &[], json!({})),
        "leaf": prompt(json!("c"), &[], json!({})),
    });
    assert_eq!(rendered(prompts, &[]), "abcdce");
}

#[test]
fn only_names_declared_as_text_are_rendered() {
    let values = [("CITY", "Ulm"), ("PIN", "1234"), ("OTHER", "x"), ("THE_KEY", "sk"), ("BOBBIN_X", "y")];
    let parts = || {
        json!([
            env("CITY"),
            text(","),
            env("PIN"),
            text(","),
            env("OTHER"),
            text(","),
            env("THE_KEY"),
            env("BOBBIN_X")
        ])
    };
    let declared = [("CITY", "text"), ("PIN", "secret"), ("THE_KEY", "text"), ("BOBBIN_X", "text")];
    assert_eq!(rendered(json!({ "top": prompt(parts(), &declared, json!({})) }), &values), "Ulm,,,");

    // The including prompt may declare for what it includes, and a declaration as secret always wins.
    let nested = |outer: &[(&str, &str)], inner: &[(&str, &str)]| json!({ "top": prompt(json!([include("leaf")]), outer, json!({})), "leaf": prompt(json!([env("CITY")]), inner, json!({})) });
    assert_eq!(rendered(nested(&[("CITY", "text")], &[]), &values), "Ulm");
    assert_eq!(rendered(nested(&[], &[("CITY", "text")]), &values), "Ulm");
    assert_eq!(rendered(nested(&[("CITY", "secret")], &[("CITY", "text")]), &values), "");
    assert_eq!(rendered(nested(&[], &[]), &values), "");
}

#[test]
fn a_name_without_a_value_takes_the_prompts_own_outermost_first() {
    let prompts = |outer: Value| {
        json!({
            "top": prompt(json!([include("leaf")]), &[], outer),
            "leaf": prompt(json!([env("CITY")]), &[("CITY", "text")], json!({ "CITY": "inner" })),
        })
    };
    assert_eq!(rendered(prompts(json!({})), &[("CITY", "thread")]), "thread");
    assert_eq!(rendered(prompts(json!({ "CITY": "outer" })), &[]), "outer");
    assert_eq!(rendered(prompts(json!({})), &[]), "inner");
}

#[test]
fn a_missing_include_or_a_cycle_leaves_a_note_and_never_hangs() {
    let prompts = json!({
        "top": prompt(json!([text("a"), include("other"), include("gone")]), &[], json!({})),
        "other": prompt(json!([text("b"), include("top")]), &[], json!({})),
    });
    assert_eq!(rendered(prompts, &[]), "ab[prompt not available: top][prompt not available: gone]");
}
