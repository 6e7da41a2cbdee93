//! Tests of the compiler: files in, complaints or a catalog out.

use std::fs;
use std::path::Path;

use bobbin_definitions::definitions::{HookName, PromptText, WEB_HTTP};

use super::*;

mod approvals;
mod code;
mod endpoints;
mod mcp;
mod mistakes;
mod packages;
mod skills;

const MODEL: (&str, &str) = ("models/fast.json", r#"{ "provider": "demo", "model": "demo" }"#);
const PROMPT: (&str, &str) =
    ("prompts/helper.md", "---\ntoolDescription: d\nmodel: fast\nincludeChat: true\n---\n\nYou help.\n");
const AGENT: (&str, &str) = ("agents/helper.json", r#"{ "sideA": { "prompt": "helper" } }"#);

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

fn folder(files: &[(&str, &str)]) -> Files {
    let mut folder = Files::default();
    files.iter().for_each(|(path, text)| folder.insert(path, Ok((*text).to_owned())));
    folder
}

/// Reads a folder on the disk, like folder.mjs.
fn folder_at(path: &Path) -> Files {
    fn read(files: &mut Files, path: &Path, within: &str) {
        for entry in fs::read_dir(path).unwrap() {
            let entry = entry.unwrap();
            let name = files::below(within, &entry.file_name().to_string_lossy());
            match entry.path().is_dir() {
                true => read(files, &entry.path(), &name),
                false => files.insert(&name, Ok(fs::read_to_string(entry.path()).unwrap())),
            }
        }
    }
    let mut files = Files::default();
    read(&mut files, path, "");
    files
}

fn compiled(files: &[(&str, &str)]) -> Compiled {
    compile(&folder(files), BTreeMap::new(), &natives()).unwrap()
}

/// The result of [`compile_json`] as JSON.
fn answered(files: &[(&str, &str)], strict: bool) -> Value {
    let files: BTreeMap<&str, &str> = files.iter().copied().collect();
    let request = serde_json::json!({ "files": files, "strict": strict });
    serde_json::from_str(&compile_json(request.to_string().as_bytes())).unwrap()
}

/// All complaints, one per line.
fn report(complaints: &[Complaint]) -> String {
    complaints.iter().map(|complaint| format!("{complaint}\n")).collect()
}

fn told(files: &[(&str, &str)]) -> Vec<String> {
    compiled(files).complaints.iter().map(ToString::to_string).collect()
}

/// The complaints about one file, beside an otherwise valid catalog.
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
    // The specification defines the text of a JSON file: it is sent unchanged.
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
fn there_is_no_catalog_while_there_is_an_error_and_it_is_the_same_each_time() {
    let first = answered(&[MODEL, PROMPT, AGENT], true);
    let catalog = Catalog::from_json(first["catalog"].as_str().unwrap()).unwrap();
    assert_eq!(catalog.agents.len(), 1);
    assert_eq!(catalog.runtime, bobbin_definitions::definitions::runtime::VERSION);
    assert_eq!(answered(&[MODEL, PROMPT, AGENT], true), first);
    let wrong = answered(&[MODEL, PROMPT, ("agents/helper.json", "{}")], false);
    assert_eq!(wrong["catalog"], Value::Null);
    assert!(answered(&[], false)["error"].is_null(), "an empty folder has a warning");
    let none: Value = serde_json::from_str(&compile_json(b"{\"file\":1}")).unwrap();
    assert!(none["error"].as_str().unwrap().contains("file"), "{none}");
}

#[test]
fn what_is_wrong_has_a_line_and_a_column() {
    let tool = "{\n  \"description\": \"d\",\n  \"run\": {\n\t\"native\": \"clok\" } }";
    let prompt = "---\ntoolDescription: d\nmodel: fastt\ntools:\n  - clock\n  - name: clock\n    blockin: true\nincludeChat: yes please\n---\nYou help.\n";
    let files = [
        MODEL,
        AGENT,
        ("prompts/helper.md", prompt),
        ("tools/clock.json", tool),
        ("tools/x.json", "{ \"a\": }"),
    ];
    let answer = answered(&files, false);
    let place = |file: &str, field: &str| {
        let found = answer["findings"].as_array().unwrap().iter().find(|finding| {
            finding["file"] == file && finding["field"].as_str().unwrap_or_default() == field
        });
        let found = found.unwrap_or_else(|| panic!("{file} {field}: {answer:#}"));
        (found["line"].as_u64(), found["column"].as_u64())
    };
    assert_eq!(place("prompts/helper.md", "includeChat"), (Some(8), Some(1)));
    assert_eq!(place("prompts/helper.md", "model"), (Some(3), Some(1)));
    assert_eq!(place("prompts/helper.md", "tools[1].blockin"), (Some(7), Some(5)));
    assert_eq!(place("tools/clock.json", "run.native"), (Some(4), Some(2)));
    assert_eq!(place("tools/x.json", ""), (Some(1), Some(8)));
    let missing = answered(&[MODEL, PROMPT, ("agents/helper.json", "\n{}")], false);
    assert_eq!((&missing["findings"][0]["line"], &missing["findings"][0]["column"]), (&2.into(), &1.into()));
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
    assert_eq!(compile(&files, BTreeMap::new(), &own).unwrap().complaints, []);
    assert_eq!(compile(&files, BTreeMap::new(), &natives()).unwrap().complaints.len(), 1);
}

#[test]
fn warnings_count_where_the_folder_or_the_caller_says_so() {
    let stray = ("models/notes.txt", "");
    let lax = [MODEL, PROMPT, AGENT, stray];
    let made = |answer: Value| (answer["catalog"].is_string(), answer["strict"].as_bool().unwrap());
    assert_eq!(made(answered(&lax, false)), (true, false));
    assert_eq!(made(answered(&lax, true)), (false, true));
    let strict = [MODEL, PROMPT, AGENT, stray, ("bobbin.json", r#"{ "diagnostics": "strict" }"#)];
    assert_eq!(made(answered(&strict, false)), (false, true));
    assert_eq!(
        told_of("bobbin.json", r#"{ "diagnostic": "strict" }"#),
        ["bobbin.json: error in diagnostic: unknown field; did you mean `diagnostics`?"]
    );
}

#[test]
fn complaints_are_printed_a_line_each() {
    let compiled = compiled(&[MODEL, PROMPT, ("agents/helper.json", "{}"), ("models/notes.txt", "")]);
    assert_eq!(
        report(&compiled.complaints),
        "agents/helper.json: error in sideA: required but missing\n\
         models/notes.txt: warning: not read: models are .json files\n"
    );
}

#[test]
fn the_sample_application_has_nothing_wrong_with_it() {
    let agents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents");
    let compiled = compile(&folder_at(&agents), BTreeMap::new(), &Natives::built_in()).unwrap();
    assert_eq!(compiled.complaints, []);
    assert!(compiled.catalog.agents.contains_key("helper"));
    assert!(compiled.catalog.endpoints.contains_key(&"GET /summary".parse().unwrap()));
}
