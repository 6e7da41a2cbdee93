//! What a run begins with is the same bytes, whatever the order in the files, and says what differs.

use bobbin::definitions::{Catalog, Snapshot};
use serde_json::{Value, json};

fn catalog() -> Value {
    let skill =
        |hash: &str| json!({ "head": { "description": "d" }, "body": "b", "path": "skills/x", "hash": hash });
    json!({
        "models": { "fast": { "provider": "demo", "model": "demo", "fallbacks": ["demo"] }, "demo": { "provider": "demo", "model": "demo" } },
        "prompts": {
            "p": { "toolDescription": "d", "model": "fast", "tools": ["b", "a"], "skills": ["two", "one"],
                "prompt": [{ "type": "text", "content": "x" }, { "type": "include", "prompt": "q" }] },
            "q": { "toolDescription": "d", "model": "fast", "prompt": "included" },
        },
        "tools": { "a": { "description": "d", "run": { "native": "n" } }, "b": { "description": "d", "run": { "native": "n" } } },
        "skills": { "one": skill("sha256:1"), "two": skill("sha256:2") },
        "agents": { "helper": { "sideA": { "prompt": "p" } } },
    })
}

fn snapshot(catalog: &Value) -> Snapshot {
    Snapshot::of(&Catalog::from_json(&catalog.to_string()).unwrap(), "helper").unwrap()
}

#[test]
fn it_is_the_same_bytes_whatever_the_order_in_the_files() {
    let mut other = catalog();
    other["prompts"]["p"]["tools"] = json!(["a", "b", "a"]);
    other["prompts"]["p"]["skills"] = json!(["one", "two"]);
    let mut trusting = catalog();
    for (catalog, trusted) in [(&mut other, ["a", "b"]), (&mut trusting, ["b", "a"])] {
        catalog["settings"] = json!({ "approvals": { "policy": "on-failure", "trusted": trusted } });
        catalog["agents"]["helper"]["approvals"] = json!({ "policy": "unless-trusted", "trusted": ["b"] });
    }
    let (first, second) = (snapshot(&trusting), snapshot(&other));
    assert_eq!(Value::Object(first.fields.clone()).to_string(), Value::Object(second.fields).to_string());
    // These bytes are the same on every machine.
    assert_eq!(first.fields["tools"], json!(["a", "b", "load_skill"]));
    assert_eq!(first.fields["models"], json!(["fast", "demo"]));
    // What is strictest holds.
    assert_eq!(first.fields["approvals"], json!({ "policy": "unless-trusted" }));
    assert_eq!(first.fields["trusted"], json!(["a", "b"]));
    assert_eq!(first.fields["promptHash"], json!(bobbin::definitions::skill::hash("xincluded")));
    assert_eq!(first.hash, "sha256:1d5c29654e1747d84e2005555322153d62ddc7c02e9555f906ba6fc7a99a47c0");
}

#[test]
fn it_says_what_differs() {
    let before = snapshot(&catalog());
    let mut other = catalog();
    other["prompts"]["q"]["prompt"] = json!("other");
    other["prompts"]["p"]["tools"] = json!(["a", "c"]);
    other["skills"]["one"]["hash"] = json!("sha256:9");
    other["prompts"]["p"]["skills"] = json!(["one"]);
    let today = snapshot(&other);
    let difference = today.since(&before.hash, Some(&before.fields));
    let told = difference.others.unwrap();
    assert_eq!(told["added"], json!({ "tools": ["c"] }));
    assert_eq!(told["removed"], json!({ "tools": ["b"] }));
    assert_eq!(told["changed"], json!(["promptHash"]));
    assert_eq!((&told["previous"], &told["next"]), (&json!(before.hash), &json!(today.hash)));
    assert_eq!(difference.skills, Some(json!({ "added": [], "removed": ["two"], "changed": ["one"] })));
    let unknown = today.since("sha256:0", None);
    assert!(unknown.others.is_some() && unknown.skills.is_none());
    // What does not concern the agent makes no difference.
    let mut elsewhere = catalog();
    elsewhere["tools"]["c"] = json!({ "description": "d", "run": { "native": "n" } });
    assert_eq!(snapshot(&elsewhere).hash, before.hash);
}

#[test]
fn long_lists_become_their_number_and_hash() {
    let mut many = catalog();
    for n in 0..200 {
        let skill = json!({ "head": { "description": "d" }, "body": "b", "path": "skills/x", "hash": format!("sha256:{n:064}") });
        many["skills"][format!("skill-{n}")] = skill;
    }
    many["prompts"]["p"]["skills"] = json!("*");
    let snapshot = snapshot(&many);
    assert_eq!(snapshot.fields["skills"]["count"], 202);
    assert!(Value::Object(snapshot.fields).to_string().len() < 8_192);
}
