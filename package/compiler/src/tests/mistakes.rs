//! Messages about invalid files, and about files that belong elsewhere.

use super::*;

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
            "provider: no provider \"google\"; its API is that of `openai`, at a `baseUrl`; there are anthropic, demo, openai, and those that a crate of your own registers",
        ),
        (
            "models/a.json",
            r#"{ "provider": "opnai", "model": "x" }"#,
            "provider: no provider \"opnai\"; did you mean \"openai\"? there are openai, anthropic, demo, and those that a crate of your own registers",
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
            "run: \"clock\" is not known here; there are native, http, code, client",
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
        (
            "models/a.json",
            r#"{ "provider": "demo", "model": "demo", "includedProviders": ["x"] }"#,
            "includedProviders: unknown field; which providers a gateway takes goes into `providerOptions`, for OpenRouter as `{\"provider\": {\"order\": […]}}`",
        ),
        (
            "models/a.json",
            r#"{ "provider": "demo", "model": "demo", "providerTools": ["web_search"] }"#,
            "providerTools: unknown field; tools that a provider runs itself are not offered: a tool with `run` does the work here",
        ),
        (
            "prompts/a.json",
            r#"{ "toolDescription": "d", "prompt": "p", "model": "fast", "exposeAsTool": true }"#,
            "exposeAsTool: unknown field; every prompt can be called: leave it out, and list the prompt in `tools` of the one that calls it",
        ),
        (
            "models/a.json",
            r#"{ "provider": "demo", "model": "demo", "capabilities": { "vision": true } }"#,
            "capabilities.vision: unknown field; whether a model sees images is `supportsImages`",
        ),
        (
            "models/a.json",
            r#"{ "provider": "demo", "model": "demo", "capabilities": { "functionCalling": true } }"#,
            "capabilities.functionCalling: unknown field; whether a model calls tools is `supportsToolCalls`",
        ),
        (
            "models/a.json",
            r#"{ "provider": "demo", "model": "demo", "capabilities": { "structuredOutputs": true } }"#,
            "capabilities.structuredOutputs: unknown field; whether a model can be held to JSON is `supportsJsonMode`",
        ),
        (
            "tools/a.json",
            r#"{ "description": "d", "run": { "native": "clock" }, "executionMode": "provider" }"#,
            "executionMode: unknown field; every tool runs here: leave it out, and name what runs in `run`",
        ),
        (
            "tools/a.json",
            r#"{ "description": "d", "run": { "native": "clock" }, "uses": ["x"] }"#,
            "uses: unknown field; tools may call what is visible where they are, of a package, too: leave it out",
        ),
    ];
    for (path, text, expected) in cases {
        assert_eq!(told_of(path, text), [format!("{path}: error in {expected}")]);
    }
}

#[test]
fn a_file_that_cannot_be_read_causes_no_complaints_about_others() {
    let told = told(&[MODEL, ("prompts/helper.md", "---\nx: [\n---\n"), AGENT]);
    assert!(told.len() == 1 && told[0].starts_with("prompts/helper.md:"), "{told:?}");
    // An invalid field causes no further complaint about what follows from its absence.
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
            "promts: warning: not read: definitions are in the folders models, prompts, tools, agents, effects, api, hooks, skills, memories, mcp; settings in bobbin.json"
        ]
    );
    assert_eq!(
        told_of("handlers/a.json", "{}"),
        [
            "handlers: error: a side is a person or a prompt; code of your own runs in hooks (`hooks/`) and endpoints (`api/`)"
        ]
    );
    assert_eq!(
        told_of("providers/acme.ts", ""),
        ["providers: error: a provider of models is registered by a crate of your own: docs/models.md"]
    );
    assert_eq!(told_of("handlers/.gitkeep", ""), [""; 0]);
}
