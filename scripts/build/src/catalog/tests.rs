//! A folder of files in, complaints or a catalog out.

use std::fs;

use bobbin::spec::{HookName, PromptText, WEB_HTTP};
use tempfile::TempDir;

use super::*;

mod approvals;
mod code;
mod endpoints;
mod mistakes;
mod packages;
mod skills;

const MODEL: (&str, &str) = ("models/fast.json", r#"{ "provider": "demo", "model": "demo" }"#);
const PROMPT: (&str, &str) =
    ("prompts/helper.md", "---\ntoolDescription: d\nmodel: fast\nincludeChat: true\n---\n\nYou help.\n");
const AGENT: (&str, &str) = ("agents/helper.json", r#"{ "sideA": { "prompt": "helper" } }"#);

const STRICT: Settings = Settings { strict: true, own_natives: false };

fn natives() -> Natives {
    Natives {
        tools: vec!["clock"],
        effects: vec!["bell"],
        endpoints: vec!["report"],
        hooks: vec!["trim"],
        providers: vec!["anthropic", "demo", "openai"],
        complete: true,
    }
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn compiled(files: &[(&str, &str)]) -> Compiled {
    compile(folder(files).path(), None, &natives()).unwrap()
}

fn told(files: &[(&str, &str)]) -> Vec<String> {
    compiled(files).complaints.iter().map(ToString::to_string).collect()
}

/// Complaints about one file beside a catalog with nothing wrong.
fn told_of(path: &str, text: &str) -> Vec<String> {
    told(&[MODEL, PROMPT, AGENT, (path, text)])
}

#[test]
fn a_folder_becomes_a_catalog() {
    let compiled = compiled(&[
        MODEL,
        PROMPT,
        AGENT,
        (
            "prompts/tone.json",
            r#"{ "$schema": "x", "name": "voice", "toolDescription": "d", "model": "fast", "prompt": "t" }"#,
        ),
        ("README.md", "about"),
        ("prompts/README.md", "about"),
        (".DS_Store", ""),
    ]);
    assert_eq!(compiled.complaints, []);
    assert_eq!(compiled.catalog.prompts.get("helper").unwrap().prompt, PromptText::Text("You help.".into()));
    assert_eq!(compiled.catalog.prompts.get("helper").unwrap().name, "helper");
    assert!(compiled.catalog.prompts.contains_key("voice"), "a name in the file counts more than the file's");
}

#[test]
fn effects_are_read_and_checked() {
    let effect = r#"{ "description": "d", "run": { "native": "bell" }, "attempts": 2 }"#;
    let compiled = compiled(&[MODEL, PROMPT, AGENT, ("effects/ring.json", effect)]);
    assert_eq!(compiled.complaints, []);
    assert_eq!(compiled.catalog.effects.get("ring").unwrap().attempts, Some(2));
    let wrong = r#"{ "description": "d", "run": { "native": "bell" }, "attempt": 2 }"#;
    let told = told_of("effects/ring.json", wrong);
    assert!(told[0].starts_with("effects/ring.json: error in attempt: "), "{told:?}");
}

#[test]
fn hooks_are_read_and_checked() {
    let agent = ("agents/helper.json", r#"{ "sideA": { "prompt": "helper" }, "hooks": ["trim", "other"] }"#);
    let trim = ("hooks/trim.json", r#"{ "hook": "filter_messages", "run": { "native": "trim" } }"#);
    let other = r#"{ "id": "other", "hook": "after_create_message", "run": { "native": "trim" } }"#;
    let compiled = compiled(&[MODEL, PROMPT, agent, trim, ("hooks/b.json", other)]);
    assert_eq!(compiled.complaints, []);
    assert_eq!(compiled.catalog.hooks.get("trim").unwrap().hook, HookName::FilterMessages);
    assert_eq!(compiled.catalog.hooks.get("other").unwrap().id, "other");
    let wrong = |text| told(&[MODEL, PROMPT, agent, trim, ("hooks/other.json", text)]);
    assert_eq!(
        wrong(r#"{ "hook": "filter_message", "run": { "native": "trim" } }"#),
        [
            "hooks/other.json: error in hook: \"filter_message\" is not known here; did you mean \"filter_messages\"?"
        ]
    );
    assert_eq!(
        wrong(r#"{ "name": "other", "hook": "filter_messages", "run": { "native": "trim" } }"#)[0],
        "hooks/other.json: error in name: unknown field; there are id, hook, description, run, timeoutMs, variables"
    );
    assert_eq!(
        told(&[MODEL, PROMPT, agent, trim, ("hooks/b.json", other), ("hooks/other.json", trim.1)]),
        ["hooks/other.json: error in id: hooks/b.json is the hook \"other\" already"]
    );
}

#[test]
fn front_matter_is_yaml_1_2_and_windows_line_ends_do_not_matter() {
    let text = "\u{feff}---\r\n# a comment\r\ntoolDescription: >-\r\n  two\r\n  lines\r\nmodel: fast\r\nenv: { SAY: no, ON: \"1\" }\r\ntools: []\r\n---\r\nA\r\n---\r\nB\r\n";
    let compiled = compiled(&[MODEL, PROMPT, AGENT, ("prompts/p.md", text)]);
    assert_eq!(compiled.complaints, []);
    let prompt = compiled.catalog.prompts.get("p").unwrap();
    assert_eq!(prompt.tool_description, "two lines");
    assert_eq!(prompt.env.get("SAY").unwrap(), "no");
    assert_eq!(prompt.prompt, PromptText::Text("A\n---\nB".into()));
}

#[test]
fn a_variable_stands_in_the_text_of_a_markdown_prompt() {
    let prompt = |body: &str| {
        let variables = "variables: [{ name: CITY, type: text, required: false, description: c }]";
        format!("---\ntoolDescription: d\nmodel: fast\n{variables}\n---\n{body}")
    };
    let parts = |body: &str| {
        let compiled = compiled(&[MODEL, PROMPT, AGENT, ("prompts/a.md", &prompt(body))]);
        assert_eq!(compiled.complaints, [], "{body}");
        serde_json::to_value(&compiled.catalog.prompts.get("a").unwrap().prompt).unwrap()
    };
    let text = |content: &str| serde_json::json!({ "type": "text", "content": content });
    let city = serde_json::json!({ "type": "env", "property": "CITY" });
    assert_eq!(parts("In {{env CITY}}."), serde_json::json!([text("In "), city, text(".")]));
    assert_eq!(parts("{{ env CITY }}{{env CITY}}"), serde_json::json!([city, city]));
    assert_eq!(parts("{{name}}, {{env CITY}}"), serde_json::json!([text("{{name}}, "), city]));
    assert_eq!(parts("{{name}} { {env CITY}}"), "{{name}} { {env CITY}}");
    for literal in ["{{env }}", "{{env a b}}", "{{env CITY"] {
        let told = told_of("prompts/a.md", &prompt(literal));
        assert!(told.len() == 1 && told[0].contains("is sent to the model as it stands"), "{told:?}");
    }

    let undeclared = told_of("prompts/a.md", &prompt("{{env COUNTRY}}"));
    assert!(undeclared.len() == 1 && undeclared[0].contains("\"COUNTRY\""), "{undeclared:?}");
    // The text of a JSON file is the specification's: it is sent as it stands.
    let json = r#"{ "toolDescription": "d", "prompt": "In {{env CITY}}", "model": "fast" }"#;
    let told = told_of("prompts/a.json", json);
    assert!(told.len() == 1 && told[0].contains("is sent to the model as it stands here"), "{told:?}");
}

#[test]
fn a_folder_without_an_agent_is_told_of() {
    let told = told(&[MODEL, PROMPT]);
    assert!(told.len() == 1 && told[0].starts_with("agents: warning: there is no agent"), "{told:?}");
}

#[test]
fn nothing_is_written_while_there_is_an_error_and_the_output_is_the_same_each_time() {
    let out = tempfile::tempdir().unwrap();
    let out = out.path().join("new/catalog.json");
    let fine = folder(&[MODEL, PROMPT, AGENT]);
    run(fine.path(), &out, None, STRICT).unwrap();
    let first = fs::read(&out).unwrap();
    assert_eq!(Catalog::from_json(std::str::from_utf8(&first).unwrap()).unwrap().agents.len(), 1);
    run(fine.path(), &out, None, STRICT).unwrap();
    assert_eq!(fs::read(&out).unwrap(), first);

    let wrong = folder(&[MODEL, PROMPT, ("agents/helper.json", "{}")]);
    let error = run(wrong.path(), &out, None, Settings::default()).unwrap_err().to_string();
    assert_eq!(error, "1 error, 0 warnings: the definitions were not compiled");
    assert_eq!(fs::read(&out).unwrap(), first);
    assert_eq!(fs::read_dir(out.parent().unwrap()).unwrap().count(), 1, "no draft is left");
}

#[test]
fn natives_of_a_crate_of_ones_own_are_taken_at_its_word() {
    let files = folder(&[
        MODEL,
        PROMPT,
        AGENT,
        ("tools/a.json", r#"{ "description": "d", "run": { "native": "greet" } }"#),
    ]);
    let own = Natives { complete: false, ..natives() };
    assert_eq!(compile(files.path(), None, &own).unwrap().complaints, []);
    assert_eq!(compile(files.path(), None, &natives()).unwrap().complaints.len(), 1);
}

#[test]
fn warnings_count_where_the_folder_or_the_caller_says_so() {
    let out = tempfile::tempdir().unwrap();
    let out = out.path().join("catalog.json");
    let stray = ("models/notes.txt", "");
    let lax = folder(&[MODEL, PROMPT, AGENT, stray]);
    run(lax.path(), &out, None, Settings::default()).unwrap();
    assert!(run(lax.path(), &out, None, STRICT).is_err());
    let strict = folder(&[MODEL, PROMPT, AGENT, stray, ("bobbin.json", r#"{ "diagnostics": "strict" }"#)]);
    assert!(run(strict.path(), &out, None, Settings::default()).is_err());
    assert_eq!(
        told_of("bobbin.json", r#"{ "diagnostic": "strict" }"#),
        ["bobbin.json: error in diagnostic: unknown field; did you mean `diagnostics`?"]
    );
}

#[test]
fn complaints_are_printed_a_line_each() {
    let compiled = compiled(&[MODEL, PROMPT, ("agents/helper.json", "{}"), ("models/notes.txt", "")]);
    assert_eq!(
        report(Path::new("agents"), &compiled.complaints),
        "agents/agents/helper.json: error in sideA: required but missing\n\
         agents/models/notes.txt: warning: not read: models are .json files\n"
    );
}

#[test]
fn the_sample_application_has_nothing_wrong_with_it() {
    let agents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents");
    let compiled = compile(&agents, None, &Natives::registered()).unwrap();
    assert_eq!(compiled.complaints, []);
    assert!(compiled.catalog.agents.contains_key("helper"));
    assert!(compiled.catalog.endpoints.contains_key(&"GET /summary".parse().unwrap()));
}
