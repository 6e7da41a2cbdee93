//! The committed JSON Schemas, as editors use them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn checkout(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

#[test]
fn the_sample_files_fit_their_schemas_and_name_them() {
    for kind in ["model", "prompt", "tool", "agent"] {
        let schema =
            jsonschema::draft202012::new(&read(&checkout(&format!("schemas/{kind}.schema.json")))).unwrap();
        let folder = checkout(&format!("agents/{kind}s"));
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let files: Vec<PathBuf> =
            files.filter(|path| path.extension().is_some_and(|e| e == "json")).collect();
        assert!(!files.is_empty(), "{kind}");
        for file in files {
            let mut value = read(&file);
            assert_eq!(value["$schema"], format!("../../schemas/{kind}.schema.json"), "{}", file.display());
            let wrong: Vec<String> = schema.iter_errors(&value).map(|error| error.to_string()).collect();
            assert!(wrong.is_empty(), "{}: {wrong:?}", file.display());
            value["colour"] = json!("red");
            assert!(!schema.is_valid(&value), "{}: an unknown field", file.display());
        }
    }
}

#[test]
fn a_server_fits_its_schema() {
    let schema = jsonschema::draft202012::new(&read(&checkout("schemas/mcp.schema.json"))).unwrap();
    let server = json!({ "$schema": "x", "url": "https://mcp.linear.example/mcp", "tools": { "block": ["drop"] },
        "headers": { "authorization": "Bearer {{env T}}" }, "variables": [{ "name": "T", "type": "secret" }],
        "provide": { "create": { "team": "x", "limits": [1] } }, "approval": { "default": "never", "create": { "mode": "always" } },
        "tier": { "look": "read_only" }, "idempotent": { "look": true }, "protocol": "2025-11-25", "list": "live",
        "auth": { "type": "oauth", "scopes": ["read"] }, "timeoutMs": 5 });
    assert!(
        schema.is_valid(&server),
        "{:?}",
        schema.iter_errors(&server).map(|e| e.to_string()).collect::<Vec<_>>()
    );
    for (field, value) in [
        ("pinned", json!({})),
        ("tools", json!({ "alow": [] })),
        ("list", json!("x")),
        ("auth", json!({ "type": "x" })),
    ] {
        let mut server = server.clone();
        server[field] = value;
        assert!(!schema.is_valid(&server), "{field}");
    }
}

#[test]
fn short_and_long_forms_fit() {
    let schema = jsonschema::draft202012::new(&read(&checkout("schemas/prompt.schema.json"))).unwrap();
    let prompt = |prompt: Value, tools: Value| {
        schema.is_valid(&json!({ "toolDescription": "d", "model": "m", "prompt": prompt, "tools": tools }))
    };
    assert!(prompt(
        json!("text"),
        json!(["a", { "name": "b", "env": { "X": "1" }, "options": { "any": [1] } }])
    ));
    assert!(prompt(
        json!([{ "type": "text", "content": "x" }, { "type": "env", "property": "CITY" }]),
        json!([])
    ));
    assert!(!prompt(json!([{ "type": "text" }]), json!([])));
    assert!(!prompt(json!("text"), json!([{ "name": "b", "evn": {} }])));
    assert!(!prompt(json!(7), json!([])));
}
