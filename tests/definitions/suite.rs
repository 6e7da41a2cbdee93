//! The official JSON Schema Test Suite, as far as our keywords go.

use std::fs;
use std::path::Path;

use bobbin::definitions::schema::{check, validate};
use serde_json::{Value, json};

/// Arguments are objects, so each schema of the suite is put under a property.
fn wrapped(schema: &Value) -> Value {
    json!({ "type": "object", "properties": { "value": schema }, "required": ["value"] })
}

#[test]
fn agrees_with_the_official_suite_wherever_it_accepts_the_schema() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/json-schema");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();

    let (mut ran, mut refused, mut wrong) = (0, Vec::new(), Vec::new());
    for file in files {
        let groups: Vec<Value> = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        for group in groups {
            let schema = wrapped(&group["schema"]);
            let problems = check(&schema);
            if !problems.is_empty() {
                refused.push(format!("{}: {}", group["description"], problems[0]));
                continue;
            }
            for test in group["tests"].as_array().unwrap() {
                ran += 1;
                let problems = validate(&schema, &json!({ "value": test["data"] }));
                if problems.is_empty() != test["valid"].as_bool().unwrap() {
                    wrong.push(format!("{} / {}: {problems:?}", group["description"], test["description"]));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {ran} disagree:\n{}", wrong.len(), wrong.join("\n"));

    // What is refused is refused for a keyword that is not on the list, or for a rule of our own.
    let ours = [
        "is not supported",
        "is not among the properties",
        "does not fit its own schema",
        "nothing fits",
        "at least one value",
    ];
    let unexplained: Vec<_> =
        refused.iter().filter(|why| !ours.iter().any(|rule| why.contains(rule))).collect();
    assert!(unexplained.is_empty(), "{unexplained:#?}");
    assert!(
        ran >= 450 && refused.len() <= 30,
        "only {ran} cases ran, {} groups refused:\n{}",
        refused.len(),
        refused.join("\n")
    );
}
