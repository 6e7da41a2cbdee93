//! A folder of files in, complaints or a catalog out.

use std::fs;

use bobbin::spec::{HookName, PromptText, WEB_HTTP};
use tempfile::TempDir;

use super::*;

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
    assert_eq!(compiled.catalog.prompts["helper"].prompt, PromptText::Text("You help.".into()));
    assert_eq!(compiled.catalog.prompts["helper"].name, "helper");
    assert!(compiled.catalog.prompts.contains_key("voice"), "a name in the file counts more than the file's");
}

const ENDPOINT: &str = r#"{ "run": { "native": "report" } }"#;

#[test]
fn files_in_folders_become_endpoints() {
    let compiled = compiled(&[
        MODEL,
        PROMPT,
        AGENT,
        (
            "api/health.json",
            r#"{ "$schema": "x", "description": "d", "run": { "native": "report" }, "timeoutMs": 5 }"#,
        ),
        ("api/import.POST.json", ENDPOINT),
        ("api/index.put.json", ENDPOINT),
        ("api/reports/index.json", ENDPOINT),
        ("api/reports/[day].json", ENDPOINT),
        ("api/reports/[day].delete.json", ENDPOINT),
        ("api/reports/[day]/notes/[*].json", ENDPOINT),
        ("api/reports/[*].json", ENDPOINT),
        ("api/[*].patch.json", ENDPOINT),
        ("api/README.md", "about"),
        ("api/reports/README.md", "about"),
        ("api/reports/.gitkeep", ""),
    ]);
    assert_eq!(compiled.complaints, []);
    let routes: Vec<String> = compiled.catalog.endpoints.keys().map(ToString::to_string).collect();
    assert_eq!(
        routes,
        [
            "GET /health",
            "GET /reports",
            "GET /reports/[day]",
            "GET /reports/[day]/notes/[*]",
            "GET /reports/[*]",
            "POST /import",
            "PUT /",
            "PATCH /[*]",
            "DELETE /reports/[day]",
        ]
    );
    let json = serde_json::to_string(&compiled.catalog).unwrap();
    assert_eq!(Catalog::from_json(&json).unwrap(), compiled.catalog, "{json}");
}

#[test]
fn everything_that_is_wrong_with_endpoints_is_reported() {
    let told = told(&[
        MODEL,
        PROMPT,
        AGENT,
        ("api/a.json", ENDPOINT),
        ("api/a.get.json", ENDPOINT),
        ("api/a.pots.json", ENDPOINT),
        ("api/kv.put.json", ENDPOINT),
        ("api/messages/[id]/x.json", ENDPOINT),
        ("api/index.patch.json", ENDPOINT),
        ("api/r/[x].json", ENDPOINT),
        ("api/r/[y].json", ENDPOINT),
        ("api/s/[*]/b.json", ENDPOINT),
        ("api/s/[a b].json", ENDPOINT),
        ("api/s/[a]/[a].json", ENDPOINT),
        ("api/t/notes.txt", ""),
        ("api/u/broken.json", "{"),
        ("api/v.json", r#"{ "run": { "native": "reprot" }, "timeoutMs": 0, "method": "POST" }"#),
        ("api/w.pust.json", r#"{ "name": "x" }"#),
        ("api/x.json", r#"{ "run": { "native": "reprot" } }"#),
    ]);
    assert_eq!(
        told,
        [
            "api/a.json: error: api/a.get.json answers GET /a already",
            "api/a.pots.json: error: `.pots` is no method; there are .get, .post, .put, .patch and .delete; a path that has a dot needs one of them after it",
            "api/index.patch.json: error: PATCH / would hide the runtime's own PATCH /; name the file or its folder otherwise",
            "api/kv.put.json: error: PUT /kv would hide the runtime's own /kv; name the file or its folder otherwise",
            "api/messages/[id]/x.json: error: GET /messages/[id]/x would hide the runtime's own /messages; name the file or its folder otherwise",
            "api/r/[y].json: error: api/r/[x].json answers GET /r/[y] already",
            "api/s/[*]/b.json: error: `[*]` takes everything that follows, so it can only be the last segment",
            "api/s/[a b].json: error: `[a b]` is no parameter: its name has letters, digits, _ and -, and begins with a letter or _",
            "api/s/[a]/[a].json: error: the parameter `[a]` is there twice; give each a name of its own",
            "api/t/notes.txt: warning: not read: endpoints are .json, .ts or .js files",
            "api/u/broken.json:1:1: error: the file ends in the middle: a bracket, brace or quote is not closed",
            "api/v.json: error in method: unknown field; there are description, run, timeoutMs, variables",
            "api/v.json: error in timeoutMs: must be from 1 to 600000 (ten minutes)",
            "api/w.pust.json: error in name: unknown field; there are description, run, timeoutMs, variables",
            "api/w.pust.json: error in run: required but missing",
            "api/w.pust.json: error: `.pust` is no method; there are .get, .post, .put, .patch and .delete; a path that has a dot needs one of them after it",
            "api/x.json: warning in run.native: this build has no native \"reprot\"; did you mean \"report\"?",
        ]
    );
}

#[test]
fn effects_are_read_and_checked() {
    let effect = r#"{ "description": "d", "run": { "native": "bell" }, "attempts": 2 }"#;
    let compiled = compiled(&[MODEL, PROMPT, AGENT, ("effects/ring.json", effect)]);
    assert_eq!(compiled.complaints, []);
    assert_eq!(compiled.catalog.effects["ring"].attempts, Some(2));
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
    assert_eq!(compiled.catalog.hooks["trim"].hook, HookName::FilterMessages);
    assert_eq!(compiled.catalog.hooks["other"].id, "other");
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
    let prompt = &compiled.catalog.prompts["p"];
    assert_eq!(prompt.tool_description, "two lines");
    assert_eq!(prompt.env["SAY"], "no");
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
        serde_json::to_value(&compiled.catalog.prompts["a"].prompt).unwrap()
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
fn text_that_is_no_json_or_yaml_is_reported_with_line_and_column() {
    let cases = [
        ("models/a.json", "{\n  \"provider\": \"demo\",\n}", "models/a.json:3:1: error: trailing comma"),
        ("models/a.json", "", "models/a.json:1:1: error: the file is empty"),
        ("models/a.json", " \n ", "models/a.json:2:1: error: the file is empty"),
        (
            "models/a.json",
            "{ \"model\": \"a\"",
            "models/a.json:1:14: error: the file ends in the middle: a bracket, brace or quote is not closed",
        ),
        (
            "models/a.json",
            "{\n  // which one\n  \"model\": \"a\" }",
            "models/a.json:2:3: error: JSON has no comments: take it out, or put it into a README.md beside this file",
        ),
        (
            "models/a.json",
            "{ 'model': 'a' }",
            "models/a.json:1:3: error: JSON has double quotes, not single ones",
        ),
        (
            "models/a.json",
            "{ model: 1 }",
            "models/a.json:1:3: error: the name of a field must be in double quotes",
        ),
        ("models/a.json", "[]", "models/a.json: error: must hold an object"),
        (
            "models/a.json",
            "{ \"model\": \"a\",\n  \"model\": \"b\" }",
            "models/a.json:2:9: error: `model` is there twice",
        ),
        (
            "prompts/a.md",
            "no front matter",
            "prompts/a.md:1:1: error: must begin with front matter: a line `---`, YAML, and another line `---`",
        ),
        (
            "prompts/a.md",
            "---\nmodel: fast\n",
            "prompts/a.md:1:1: error: the front matter has no closing line `---`",
        ),
        ("prompts/a.md", "---\n- a\n---\n", "prompts/a.md: error: must hold an object"),
    ];
    for (path, text, expected) in cases {
        assert_eq!(told_of(path, text), [expected]);
    }
    let wrong_yaml = [
        ("---\nmodel: fast\n model: fast\n---\n", "prompts/a.md:3:"),
        ("---\nmodel: fast\nmodel: slow\n---\n", "prompts/a.md:3:"),
        ("---\nmodel: [fast\n---\n", "prompts/a.md:"),
        ("---\nmodel: !!python/object fast\n---\n", "prompts/a.md:2:"),
        ("---\na: &a [x]\nb: *c\n---\n", "prompts/a.md:3:"),
    ];
    for (text, expected) in wrong_yaml {
        let told = told_of("prompts/a.md", text);
        assert!(told.len() == 1 && told[0].starts_with(expected), "{text:?}: {told:?}");
    }
}

#[test]
fn every_mistake_in_the_shape_of_a_file_is_reported() {
    let file = r#"{ "toolDescription": 5, "modle": "fast", "prompt": [{ "type": "text" }, { "type": "text", "content": "x" }, { "type": "txt" }],
        "includeChat": "yes", "tools": [{ "name": "clock" }, 7, { "name": "clock", "evn": {} }, 8],
        "variables": [{ "name": "A", "type": "text" }, { "name": "B" }, { "name": "C", "type": "number" }] }"#;
    assert_eq!(
        told_of("prompts/a.json", file),
        [
            "prompts/a.json: error in toolDescription: expected a string, got 5",
            "prompts/a.json: error in modle: unknown field; did you mean `model`?",
            "prompts/a.json: error in prompt[0].content: required but missing",
            "prompts/a.json: error in prompt[2].type: \"txt\" is not known here; did you mean \"text\"?",
            "prompts/a.json: error in includeChat: expected true or false, got the text \"yes\"",
            "prompts/a.json: error in tools[1]: expected a name or an object, got 7",
            "prompts/a.json: error in tools[2].evn: unknown field; did you mean `env`?",
            "prompts/a.json: error in tools[3]: expected a name or an object, got 8",
            "prompts/a.json: error in variables[1].type: required but missing",
            "prompts/a.json: error in variables[2].type: \"number\" is not known here; there are text, secret",
        ]
    );
}

#[test]
fn everything_that_is_missing_is_reported() {
    let missing = |field: &str| format!("prompts/a.json: error in {field}: required but missing");
    assert_eq!(
        told_of("prompts/a.json", "{}"),
        [missing("toolDescription"), missing("prompt"), missing("model")]
    );
    let rest = r#"{ "toolDescription": 5, "includeChat": 5 }"#;
    assert_eq!(told_of("prompts/a.json", rest)[2..], [missing("prompt"), missing("model")]);
}

#[test]
fn a_misspelt_field_is_read_as_what_was_meant() {
    let file = r#"{ "toolDescription": "d", "prompt": "x", "modle": "fast", "tolos": ["clok"] }"#;
    assert_eq!(
        told_of("prompts/a.json", file),
        [
            "prompts/a.json: error in modle: unknown field; did you mean `model`?",
            "prompts/a.json: error in tolos: unknown field; did you mean `tools`?",
            "prompts/a.json: error in tools[0]: no tool, prompt or exposed agent named \"clok\"; there are a, helper",
        ]
    );
}

#[test]
fn what_people_will_try_is_answered() {
    let cases = [
        (
            "models/a.json",
            r#"{ "provider": "google", "model": "x" }"#,
            "provider: \"google\" is not known here; it arrives with a later version; there are openai, anthropic, demo",
        ),
        (
            "models/a.json",
            r#"{ "provider": "opnai", "model": "x" }"#,
            "provider: \"opnai\" is not known here; did you mean \"openai\"?",
        ),
        (
            "models/a.json",
            r#"{ "provider": "demo", "model": "demo", "temperature": 1 }"#,
            "temperature: unknown field; settings of the provider's request go into `providerOptions`",
        ),
        (
            "models/a.json",
            r#"{ "provider": "demo", "model": "demo", "apiKey": "sk" }"#,
            "apiKey: unknown field; keys are never in files: name the variable that holds it in `apiKeyEnv`",
        ),
        (
            "tools/a.json",
            r#"{ "description": "d", "run": { "code": "a.ts" } }"#,
            "run.code: there is no file tools/a.ts; there are none",
        ),
        (
            "tools/a.json",
            r#"{ "description": "d", "run": { "http": { "url": "https://a.example", "header": {} } } }"#,
            "run.http.header: unknown field; did you mean `headers`?",
        ),
        (
            "tools/a.json",
            r#"{ "description": "d", "run": "clock" }"#,
            "run: \"clock\" is not known here; there are native, http, code",
        ),
        (
            "tools/a.json",
            r#"{ "description": "d", "run": { "native": "clock" }, "timeoutMs": -1 }"#,
            "timeoutMs: expected a whole number that is not negative, got -1",
        ),
        (
            "tools/a.json",
            r#"{ "description": "d", "run": { "native": "clock", "code": "a.ts" } }"#,
            "run: names one implementation: `native`, `http` or `code`, and nothing beside it",
        ),
        (
            "agents/a.json",
            r#"{ "sideA": { "prompt": "helper", "maxSteps": "20" } }"#,
            "sideA.maxSteps: expected a whole number that is not negative, got the text \"20\"",
        ),
        (
            "agents/a.json",
            r#"{ "sideA": { "prompt": "helper" }, "blocking": true }"#,
            "blocking: unknown field; it goes into the entry of `tools` that names the agent",
        ),
        (
            "agents/a.json",
            r#"{ "sideA": { "prompt": "helper", "maxstep": 3 } }"#,
            "sideA.maxstep: unknown field; did you mean `maxSteps`?",
        ),
        ("agents/a.json", r#"{ "sideA": {} }"#, "sideA.prompt: required but missing"),
    ];
    for (path, text, expected) in cases {
        assert_eq!(told_of(path, text), [format!("{path}: error in {expected}")]);
    }
}

#[test]
fn a_file_that_cannot_be_read_causes_no_complaints_about_others() {
    let told = told(&[MODEL, ("prompts/helper.md", "---\nx: [\n---\n"), AGENT]);
    assert!(told.len() == 1 && told[0].starts_with("prompts/helper.md:"), "{told:?}");
    // Nor does a field that is wrong cause one about what follows from its absence.
    let prompt = (
        "prompts/helper.json",
        r#"{ "toolDescription": "d", "prompt": "x", "model": "fast", "includeChat": 1 }"#,
    );
    let agent = ("agents/other.json", r#"{ "sideA": { "prompt": "other" } }"#);
    let other = (
        "prompts/other.json",
        r#"{ "toolDescription": "d", "prompt": "x", "model": "fast", "includeChat": true, "tools": ["helper"] }"#,
    );
    assert_eq!(self::told(&[MODEL, prompt, other, agent]).len(), 1);
}

#[test]
fn one_name_is_one_definition() {
    let second = (
        "prompts/helper.json",
        r#"{ "toolDescription": "d", "prompt": "x", "model": "fast", "includeChat": true }"#,
    );
    assert_eq!(
        told(&[MODEL, PROMPT, AGENT, second]),
        ["prompts/helper.md: error in name: prompts/helper.json is the prompt \"helper\" already"]
    );
}

#[test]
fn what_does_not_belong_in_the_folder_is_reported() {
    assert_eq!(
        told_of("models/notes.txt", ""),
        ["models/notes.txt: warning: not read: models are .json files"]
    );
    assert_eq!(
        told_of("tools/a.md", ""),
        ["tools/a.md: warning: not read: tools are .json files; only prompts may be .md"]
    );
    assert_eq!(
        told_of("prompts/deep/a.md", ""),
        ["prompts/deep: warning: not read: prompts are .md or .json files"]
    );
    assert_eq!(
        told_of("promts/a.md", ""),
        [
            "promts: warning: not read: definitions are in the folders models, prompts, tools, agents, effects, api, hooks; settings in bobbin.json"
        ]
    );
    assert_eq!(
        told_of("handlers/a.json", "{}"),
        ["handlers: error: definitions of handlers arrive with a later version"]
    );
    assert_eq!(told_of("handlers/.gitkeep", ""), [""; 0]);
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

const CODE: &str = "export default async (state, args) => `hello ${args.name}`;\n";

#[test]
fn code_is_named_from_its_definition_and_comes_with_the_catalog() {
    let tool = r#"{ "description": "Greets.", "run": { "code": "../lib/greet.ts" } }"#;
    let hook = r#"{ "hook": "filter_messages", "run": { "code": { "file": "trim.js", "allowedHosts": ["a.test"] } } }"#;
    let prompt = (
        "prompts/helper.md",
        "---\ntoolDescription: d\nmodel: fast\nincludeChat: true\nhooks: [trim]\n---\n\nYou help.\n",
    );
    let files = [
        MODEL,
        prompt,
        AGENT,
        ("tools/greet.json", tool),
        ("hooks/trim.json", hook),
        ("lib/greet.ts", CODE),
        ("hooks/trim.js", CODE),
        ("hooks/unused.js", CODE),
        ("api/reports/[day].post.ts", CODE),
        ("api/_shared.ts", CODE),
        ("api/types.d.ts", ""),
        ("api/shared.test.ts", CODE),
    ];
    let Compiled { catalog, complaints, .. } = compiled(&files);
    assert!(complaints.is_empty(), "{complaints:?}");
    let names: Vec<&String> = catalog.code.keys().collect();
    assert_eq!(names, ["api/reports/[day].post.ts", "hooks/trim.js", "lib/greet.ts"]);
    let routes: Vec<String> = catalog.endpoints.keys().map(ToString::to_string).collect();
    assert_eq!(routes, ["POST /reports/[day]"]);
    let again = Catalog::from_json(&serde_json::to_string(&catalog).unwrap()).unwrap();
    assert_eq!(again, catalog);
}

#[test]
fn code_that_is_not_there_and_hosts_that_are_none_are_named() {
    let tool = |code: &str| format!(r#"{{ "description": "d", "run": {{ "code": {code} }} }}"#);
    for (code, said) in [
        (r#""missing.ts""#, "error in run.code: there is no file tools/missing.ts"),
        (r#""../../../etc/x.ts""#, "is not in the folder of definitions"),
        (r#"{ "file": "x.ts", "allowedHosts": ["https://a.test"] }"#, "run.code.allowedHosts[0]"),
        (r#"{ "file": "x.ts", "memoryLimitBytes": 0 }"#, "must be a positive number"),
        (r#"{ "file": "x.ts", "engine": "deno" }"#, "run.code.engine"),
    ] {
        let told = told(&[MODEL, PROMPT, AGENT, ("tools/x.json", &tool(code)), ("tools/x.ts", CODE)]);
        assert!(told.iter().any(|line| line.contains(said)), "{code}: {told:?}");
    }
}

#[test]
fn the_file_that_was_meant_is_named_and_one_without_a_default_export_is_no_tool() {
    let tool = |file: &str| format!(r#"{{ "description": "d", "run": {{ "code": "{file}" }} }}"#);
    let bundles = r#"{ "tools/daily.ts": { "source": "", "exports": ["default"] }, "lib/words.ts": { "source": "", "exports": ["default"] },
        "tools/ticket.ts": { "source": "", "exports": ["execute", "more"] }, "tools/empty.ts": { "source": "", "exports": [] },
        "bobbin/http.js": { "source": "" } }"#;
    for (file, said) in [
        ("tikcet.ts", "there is no file tools/tikcet.ts; did you mean \"tools/ticket.ts\"?"),
        ("words.ts", "there is no file tools/words.ts; did you mean \"lib/words.ts\"?"),
        (
            "ticket.ts",
            "tools/ticket.ts has no default export, which is the function that is called (it exports execute, more)",
        ),
        ("empty.ts", "(it exports nothing): write `export default`"),
    ] {
        let folder = folder(&[
            MODEL,
            PROMPT,
            AGENT,
            ("tools/x.json", &tool(file)),
            ("tools/daily.json", &tool("daily.ts")),
        ]);
        let path = folder.path().join("bundles.json");
        fs::write(&path, bundles).unwrap();
        let told =
            report(Path::new(""), &compile(folder.path(), Some(&path), &natives()).unwrap().complaints);
        assert!(told.contains(said), "{file}: {told}");
    }
}

#[test]
fn bundles_stand_for_the_files_that_they_are_made_from() {
    let tool = r#"{ "description": "d", "run": { "code": "x.ts" } }"#;
    let folder = folder(&[MODEL, PROMPT, AGENT, ("tools/x.json", tool), ("tools/x.ts", CODE)]);
    let bundles = folder.path().join("bundles.json");
    let made = r#"{ "tools/x.ts": { "source": "bundled", "uses": ["bobbin/url.js"] }, "bobbin/url.js": { "source": "url" },
        "bobbin/http.js": { "source": "http" } }"#;
    fs::write(&bundles, made).unwrap();
    let catalog = compile(folder.path(), Some(&bundles), &natives()).unwrap().catalog;
    let modules = [("./tools/x.ts", "bundled"), ("./bobbin/url.js", "url")];
    assert_eq!(
        catalog.modules_of(&["tools/x.ts"]),
        modules.map(|(name, source)| (name.into(), source.into()))
    );
    assert!(!catalog.code.contains_key(WEB_HTTP), "nothing here needs it");

    fs::create_dir(folder.path().join("api")).unwrap();
    fs::write(folder.path().join("api/x.ts"), CODE).unwrap();
    let catalog = compile(folder.path(), Some(&bundles), &natives()).unwrap().catalog;
    let modules = catalog.modules_of(&["api/x.ts", WEB_HTTP]);
    assert_eq!(modules[1], ("./bobbin/http.js".to_owned(), "http".to_owned()));
}
