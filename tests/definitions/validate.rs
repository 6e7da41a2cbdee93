//! What is said about a catalog, all at once.

use bobbin::definitions::Catalog;
use bobbin::definitions::references::Kind;
use bobbin::validate::{Natives, Severity, Sources, nearest, validate};
use serde_json::{Value, json};

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

/// A catalog with nothing wrong in it.
fn fine() -> Value {
    json!({
        "models": { "fast": { "provider": "demo", "model": "demo" }, "slow": { "provider": "openai", "model": "x", "apiKeyEnv": "SLOW_KEY" } },
        "prompts": {
            "helper": {
                "toolDescription": "d", "model": "fast", "includeChat": true, "tools": ["clock", "lookup"],
                "prompt": [{ "type": "include", "prompt": "persona" }, { "type": "text", "content": "x" }],
                "variables": [{ "name": "CITY", "type": "text" }],
            },
            "persona": { "toolDescription": "d", "model": "fast", "prompt": [{ "type": "env", "property": "CITY" }] },
        },
        "tools": {
            "clock": { "description": "d", "run": { "native": "clock" } },
            "lookup": {
                "description": "d", "args": { "type": "object", "properties": { "word": { "type": "string" } } },
                "run": { "http": { "url": "{{env LOOKUP_URL}}/x", "headers": { "x-key": "{{env LOOKUP_KEY}}" } } },
            },
        },
        "agents": { "helper": { "sideA": { "prompt": "helper" }, "hooks": ["short_history"] } },
        "effects": { "ring": {
            "description": "d", "args": { "type": "object", "properties": { "times": { "type": "integer" } } },
            "run": { "native": "bell" }, "attempts": 3,
        } },
        "hooks": { "short_history": { "hook": "filter_messages", "run": { "native": "trim" }, "timeoutMs": 5000 } },
        "endpoints": { "GET /reports/[day]": { "run": { "native": "report" } } },
    })
}

/// Complaints after a change to the fine catalog: `pointer` gets `value`.
pub(crate) fn complaints(changes: &[(&str, Value)]) -> Vec<String> {
    let mut catalog = fine();
    for (pointer, value) in changes {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let key = key.replace("~1", "/");
        catalog.pointer_mut(parent).unwrap_or_else(|| panic!("{parent}"))[key] = value.clone();
    }
    let catalog = Catalog::from_json(&catalog.to_string()).unwrap();
    validate(&catalog, &Sources::default(), &natives()).iter().map(ToString::to_string).collect()
}

#[test]
fn nothing_is_said_about_a_fine_catalog() {
    assert_eq!(complaints(&[]), [""; 0]);
}

#[test]
fn each_mistake_is_named_with_file_and_field() {
    let long = "x".repeat(65);
    let cases = [
        // References.
        (
            "/agents/helper/sideA/prompt",
            json!("helpr"),
            "agents/helper: error in sideA.prompt: no prompt named \"helpr\"; did you mean \"helper\"?",
        ),
        (
            "/prompts/helper/model",
            json!("other"),
            "prompts/helper: error in model: no model named \"other\"; there are fast, slow",
        ),
        (
            "/prompts/helper/tools",
            json!(["clok"]),
            "prompts/helper: error in tools[0]: no tool, prompt or exposed agent named \"clok\"; did you mean \"clock\"?",
        ),
        (
            "/prompts/helper/tools",
            json!(["clock", "clock"]),
            "prompts/helper: error in tools[1]: \"clock\" is listed twice",
        ),
        (
            "/prompts/persona/prompt",
            json!([{ "type": "include", "prompt": "nobody" }]),
            "prompts/persona: error in prompt[0].prompt: no prompt named \"nobody\"; there are helper, persona",
        ),
        (
            "/models/fast/fallbacks",
            json!(["slo"]),
            "models/fast: error in fallbacks[0]: no model named \"slo\"; did you mean \"slow\"?",
        ),
        (
            "/models/fast/fallbacks",
            json!(["fast"]),
            "models/fast: error in fallbacks[0]: a model cannot be its own fallback",
        ),
        // Models.
        (
            "/models/fast/model",
            json!("demo-x"),
            "models/fast: error in model: the demo provider has no \"demo-x\"; it has demo, demo-slow, demo-fail",
        ),
        (
            "/models/slow/model",
            json!(" "),
            "models/slow: error in model: the provider's id of the model is empty",
        ),
        (
            "/models/slow/inputPrice",
            json!(-1),
            "models/slow: error in inputPrice: a price is USD for a million tokens, not negative",
        ),
        (
            "/models/slow/baseUrl",
            json!("api.example.com"),
            "models/slow: error in baseUrl: `api.example.com` should start with `https://`",
        ),
        (
            "/models/slow/baseUrl",
            json!("{{env BOBBIN_API_KEYS}}"),
            "models/slow: error in baseUrl: \"BOBBIN_API_KEYS\": names starting with BOBBIN_ belong to the runtime",
        ),
        (
            "/models/slow/apiKeyEnv",
            json!("sk-123"),
            "models/slow: error in apiKeyEnv: this is the name of the variable that holds the key, never the key itself",
        ),
        (
            "/models/slow/capabilities",
            json!({ "maxContextTokens": 0 }),
            "models/slow: error in capabilities.maxContextTokens: must be more than 0",
        ),
        (
            "/models/slow/capabilities",
            json!({ "maxContextTokens": 1, "maxOutputTokens": 2 }),
            "models/slow: error in capabilities.maxOutputTokens: is more than maxContextTokens (1)",
        ),
        (
            "/models/slow/providerOptions",
            json!({ "stream": false }),
            "models/slow: error in providerOptions.stream: the runtime sets this field of the request itself",
        ),
        // Prompts.
        (
            "/prompts/helper/toolDescription",
            json!(" "),
            "prompts/helper: error in toolDescription: empty: a model cannot know what the prompt is for",
        ),
        (
            "/prompts/helper/context",
            json!({ "triggerRatio": 1.5 }),
            "prompts/helper: error in context.triggerRatio: a share of the budget: above 0, at most 1, such as 0.85",
        ),
        (
            "/prompts/helper/context",
            json!({ "maxInputTokens": 0 }),
            "prompts/helper: error in context.maxInputTokens: must be more than 0: leave it out where the model's window is the limit",
        ),
        (
            "/prompts/helper/context",
            json!({ "safetyTokens": 48_000 }),
            "prompts/helper: error in context.safetyTokens: leaves nothing of the window of \"fast\" for messages: give less",
        ),
        (
            "/prompts/persona/summary",
            json!(true),
            "prompts/persona: error in summary: needs `includeChat: true`: without earlier turns there is nothing to summarise",
        ),
        (
            "/prompts/helper/summary",
            json!({ "model": "fsat" }),
            "prompts/helper: error in summary.model: no model named \"fsat\"; did you mean \"fast\"?",
        ),
        (
            "/prompts/helper/summary",
            json!({ "prompt": "condense" }),
            "prompts/helper: error in summary.prompt: no prompt named \"condense\"; there are helper, persona",
        ),
        (
            "/prompts/helper/summary",
            json!({ "targetRatio": 1 }),
            "prompts/helper: error in summary.targetRatio: a share of the budget: above 0, below 1, such as 0.5",
        ),
        (
            "/prompts/helper/summary",
            json!({ "maxTokens": 10, "minTurns": 1 }),
            "prompts/helper: error in summary.maxTokens: must be from 50 to 16000",
        ),
        (
            "/prompts/helper/summary",
            json!({ "minTurns": 0 }),
            "prompts/helper: error in summary.minTurns: must be at least 1",
        ),
        (
            "/prompts/helper/hooks",
            json!(["x"]),
            "prompts/helper: error in hooks[0]: no hook named \"x\"; there are short_history",
        ),
        (
            "/agents/helper/hooks",
            json!(["short_history", "short_histroy"]),
            "agents/helper: error in hooks[1]: no hook named \"short_histroy\"; did you mean \"short_history\"?",
        ),
        (
            "/agents/helper/hooks",
            json!(["short_history", "short_history"]),
            "agents/helper: error in hooks[1]: \"short_history\" is listed twice",
        ),
        // Hooks.
        (
            "/agents/helper/hooks",
            json!([]),
            "hooks/short_history: warning: no prompt and no agent lists it in `hooks`, so it never runs",
        ),
        (
            "/prompts/persona/hooks",
            json!(["short_history"]),
            "prompts/persona: warning in hooks: never run: no agent has this prompt for a side, and a prompt that is called runs none of its own",
        ),
        (
            "/hooks/short_history/variables",
            json!([{ "name": "bad name", "type": "text" }]),
            "hooks/short_history: error in variables[0].name: \"bad name\" cannot name a variable: letters, digits and _, not starting with a digit",
        ),
        (
            "/agents/helper/maxSessionTurns",
            json!(9),
            "agents/helper: warning in maxSessionTurns: has no effect: with a person a session is one turn of the model; `maxSteps` of the side ends a long one",
        ),
        (
            "/hooks/short_history/timeoutMs",
            json!(30_001),
            "hooks/short_history: error in timeoutMs: must be from 1 to 30000 (30 seconds)",
        ),
        (
            "/hooks/short_history/run/native",
            json!("trin"),
            "hooks/short_history: warning in run.native: this build has no native \"trin\"; did you mean \"trim\"?",
        ),
        (
            "/prompts/persona/toolChoice",
            json!("required"),
            "prompts/persona: error in toolChoice: `required`, but there are no tools",
        ),
        (
            "/prompts/helper/env",
            json!({ "BOBBIN_X": "1" }),
            "prompts/helper: error in env.BOBBIN_X: \"BOBBIN_X\": names starting with BOBBIN_ belong to the runtime",
        ),
        (
            "/prompts/helper/requiredSchema",
            json!({ "type": "string" }),
            "prompts/helper: error in requiredSchema.type: arguments are an object: this must be \"object\"",
        ),
        (
            "/prompts/helper/variables",
            json!([{ "name": "CITY", "type": "secret" }]),
            "prompts/persona: error in prompt[0].property: \"CITY\" is declared as a secret and cannot be part of a prompt",
        ),
        (
            "/tools/lookup/variables",
            json!([{ "name": "CITY", "type": "secret" }]),
            "prompts/persona: error in prompt[0].property: \"CITY\" is declared as a secret by the tool \"lookup\" and cannot be part of a prompt",
        ),
        (
            "/agents/helper/variables",
            json!([{ "name": "CITY", "type": "secret" }]),
            "prompts/persona: error in prompt[0].property: \"CITY\" is declared as a secret by the agent \"helper\" and cannot be part of a prompt",
        ),
        (
            "/agents/helper/variables",
            json!([{ "name": "BOBBIN_X", "type": "secret" }]),
            "agents/helper: error in variables[0].name: \"BOBBIN_X\": names starting with BOBBIN_ belong to the runtime",
        ),
        (
            "/prompts/helper/variables",
            json!([]),
            "prompts/persona: error in prompt[0].property: \"CITY\" must be declared in `variables` with type `text` here, or in \"helper\", which includes it; what is not declared is a secret",
        ),
        (
            "/prompts/persona/prompt",
            json!([{ "type": "env", "property": "SLOW_KEY" }]),
            "prompts/persona: error in prompt[0].property: \"SLOW_KEY\" is a secret of the deployment and cannot be part of a prompt",
        ),
        (
            "/prompts/persona/variables",
            json!([{ "name": "SLOW_KEY", "type": "text" }]),
            "prompts/persona: error in variables[0].name: \"SLOW_KEY\" is the API key of a model, so its type must be `secret`",
        ),
        (
            "/prompts/persona/variables",
            json!([{ "name": "A", "type": "text" }, { "name": "A", "type": "text" }]),
            "prompts/persona: error in variables[1].name: \"A\" is declared twice",
        ),
        (
            "/prompts/persona/prompt",
            json!([{ "type": "include", "prompt": "helper" }]),
            "prompts/helper: error in prompt: includes itself: helper → persona → helper",
        ),
        // Tools.
        (
            "/tools/clock/description",
            json!(""),
            "tools/clock: error in description: empty: a model cannot know when to use the tool",
        ),
        (
            "/tools/clock/timeoutMs",
            json!(600_001),
            "tools/clock: error in timeoutMs: must be from 1 to 600000 (ten minutes)",
        ),
        (
            "/tools/clock/run",
            json!({ "native": "clok" }),
            "tools/clock: warning in run.native: this build has no native \"clok\"; did you mean \"clock\"?",
        ),
        (
            "/tools/lookup/args/properties/word/pattern",
            json!("x"),
            "tools/lookup: error in args.properties.word.pattern: `pattern` is not supported: describe the form in `description`, and check it in the tool",
        ),
        (
            "/tools/lookup/run/http/url",
            json!("ftp://a.example"),
            "tools/lookup: error in run.http.url: `ftp://a.example` should start with `https://`",
        ),
        (
            "/tools/lookup/run/http/headers",
            json!({ "Host": "x" }),
            "tools/lookup: error in run.http.headers.Host: the runtime sets this header itself",
        ),
        (
            "/tools/lookup/run/http/headers",
            json!({ "x y": "x" }),
            "tools/lookup: error in run.http.headers.x y: \"x y\" cannot name a header",
        ),
        (
            "/tools/lookup/run/http/headers",
            json!({ "x": "{{KEY}}" }),
            "tools/lookup: error in run.http.headers.x: `{{KEY}}` should be `{{env NAME}}`",
        ),
        (
            "/tools/a b",
            json!({ "description": "d", "run": { "native": "clock" } }),
            "tools/a b: error in name: the name \"a b\" may hold only letters, digits, _ and -",
        ),
        // Effects.
        ("/effects/ring/attempts", json!(0), "effects/ring: error in attempts: must be from 1 to 20"),
        (
            "/effects/ring/run",
            json!({ "native": "clock" }),
            "effects/ring: warning in run.native: this build has no native \"clock\"; there are bell",
        ),
        (
            "/effects/ring/args/properties/times/type",
            json!("int"),
            "effects/ring: error in args.properties.times.type: \"int\" is not a type; types are string, number, integer, boolean, null, array, object",
        ),
        (
            "/effects/ring/run",
            json!({ "http": { "url": "a.example" } }),
            "effects/ring: error in run.http.url: `a.example` should start with `https://`",
        ),
        // Endpoints.
        (
            "/endpoints/GET ~1fs~1x",
            json!({ "run": { "native": "report" } }),
            "api/GET /fs/x: error: GET /fs/x would hide the runtime's own /fs; name the file or its folder otherwise",
        ),
        (
            "/endpoints/DELETE ~1",
            json!({ "run": { "native": "report" } }),
            "api/DELETE /: error: DELETE / would hide the runtime's own DELETE /; the thread itself answers there, so put the file into a folder, such as `info/index`",
        ),
        (
            "/endpoints/GET ~1a",
            json!({ "run": { "native": "clock" } }),
            "api/GET /a: warning in run.native: this build has no native \"clock\"; there are report",
        ),
        (
            "/endpoints/GET ~1a",
            json!({ "run": { "http": { "url": "a.example" } } }),
            "api/GET /a: error in run.http.url: `a.example` should start with `https://`",
        ),
        (
            "/endpoints/GET ~1a",
            json!({ "run": { "native": "report" }, "timeoutMs": 0 }),
            "api/GET /a: error in timeoutMs: must be from 1 to 600000 (ten minutes)",
        ),
        (
            "/endpoints/GET ~1a",
            json!({ "run": { "native": "report" }, "variables": [{ "name": "BOBBIN_X", "type": "text" }] }),
            "api/GET /a: error in variables[0].name: \"BOBBIN_X\": names starting with BOBBIN_ belong to the runtime",
        ),
        // Agents.
        (
            "/agents/helper/type",
            json!("dual_ai"),
            "agents/helper: error in sideB: missing: both sides of a `dual_ai` agent are models",
        ),
        (
            "/agents/helper/sideB",
            json!({ "prompt": "helper" }),
            "agents/helper: error in sideB: side B of an `ai_human` agent is the person; leave this out",
        ),
        (
            "/agents/helper/sideA/maxSteps",
            json!(251),
            "agents/helper: error in sideA.maxSteps: must be from 1 to 250",
        ),
        (
            "/agents/helper/sideA/stopTool",
            json!("stop"),
            "agents/helper: error in sideA.stopTool: the prompt \"helper\" does not offer the tool \"stop\"",
        ),
        (
            "/agents/helper/sideA/stopToolResponseProperty",
            json!("x"),
            "agents/helper: error in sideA.stopToolResponseProperty: needs a stopTool",
        ),
        (
            "/agents/helper/sideA/sessionFail",
            json!("quit"),
            "agents/helper: error in sideA.sessionFail: the prompt \"helper\" does not offer the tool \"quit\"",
        ),
        (
            "/agents/helper/sideA/sessionStop",
            json!({ "name": "lookup", "messageProperty": "summary" }),
            "agents/helper: error in sideA.sessionStop.messageProperty: the tool \"lookup\" has no argument \"summary\"",
        ),
        (
            "/agents/helper/sideA/sessionStatus",
            json!({ "name": "lookup", "attachmentsProperty": "files" }),
            "agents/helper: error in sideA.sessionStatus.attachmentsProperty: the tool \"lookup\" has no argument \"files\"",
        ),
        (
            "/agents/pair",
            json!({ "type": "dual_ai", "sideA": { "prompt": "helper" }, "sideB": { "prompt": "helper" } }),
            "agents/pair: warning in maxSessionTurns: should be set: two models that talk to each other find no end by themselves",
        ),
        (
            "/agents/pair",
            json!({ "type": "dual_ai", "maxSessionTurns": 9, "sideA": { "prompt": "helper" }, "sideB": { "prompt": "nobody" } }),
            "agents/pair: error in sideB.prompt: no prompt named \"nobody\"; there are helper, persona",
        ),
        (
            "/agents/pair",
            json!({ "type": "dual_ai", "maxSessionTurns": 9, "sideB": { "prompt": "helper" },
                "sideA": { "prompt": "helper", "sessionStop": "lookup", "sessionFail": "lookup" } }),
            "agents/pair: error in sideA.sessionFail: \"lookup\" ends the session as a success already",
        ),
        (
            "/agents/helper/exposeAsTool",
            json!(true),
            "agents/helper: error in toolDescription: required with exposeAsTool: models read it",
        ),
        // Warnings.
        (
            "/prompts/helper/includeChat",
            json!(false),
            "agents/helper: warning in sideA.prompt: \"helper\": its model will not see earlier turns: set `includeChat: true` in the prompt",
        ),
        (
            "/agents/helper/sideA/stopOnResponse",
            json!(false),
            "agents/helper: warning in sideA.stopOnResponse: without a stopTool nothing but its caps ends a turn",
        ),
        (
            "/models/fast/capabilities",
            json!({ "supportsToolCalls": false }),
            "prompts/helper: warning in tools: the model \"fast\" cannot call tools; none are sent",
        ),
        (
            "/prompts/persona/prompt",
            json!(" "),
            "prompts/persona: warning in prompt: empty: the model is told nothing",
        ),
    ];
    for (pointer, value, expected) in cases {
        assert_eq!(complaints(&[(pointer, value.clone())]), [expected], "{pointer} = {value}");
    }
    let name = format!("/agents/{long}");
    let told = complaints(&[(&name, json!({ "sideA": { "prompt": "helper" } }))]);
    assert!(told[0].ends_with("has 65 characters; at most 64 are allowed"), "{told:?}");
}

#[test]
fn all_complaints_come_at_once() {
    let told = complaints(&[
        ("/agents/helper/sideA/prompt", json!("x")),
        ("/agents/helper/sideA/maxSteps", json!(0)),
        ("/tools/clock/description", json!("")),
        ("/models/fast/inputPrice", json!(-1)),
    ]);
    assert_eq!(told.len(), 4, "{told:#?}");
}

#[test]
fn a_stop_tool_has_the_argument_that_holds_the_answer() {
    let stop = |property: &str| {
        [
            ("/agents/helper/sideA/stopTool", json!("lookup")),
            ("/agents/helper/sideA/stopToolResponseProperty", json!(property)),
        ]
    };
    assert_eq!(complaints(&stop("word")), [""; 0]);
    let expected = "agents/helper: error in sideA.stopToolResponseProperty: the tool \"lookup\" has no argument \"answer\"";
    assert_eq!(complaints(&stop("answer")), [expected]);
}

#[test]
fn the_id_of_a_hook_is_snake_case_and_starts_with_a_letter() {
    for (id, wrong) in [
        ("Trim", "the name \"Trim\" may hold only lower-case letters, digits and _"),
        ("trim-it", "the name \"trim-it\" may hold only lower-case letters, digits and _"),
        ("2nd", "the name \"2nd\" must start with a letter"),
        ("_x", "the name \"_x\" must start with a letter"),
    ] {
        let hook = json!({ "hook": "filter_messages", "run": { "native": "trim" } });
        let told = complaints(&[
            (&format!("/hooks/{id}"), hook),
            ("/agents/helper/hooks", json!(["short_history", id])),
        ]);
        assert_eq!(told, [format!("hooks/{id}: error in id: {wrong}")]);
    }
}

#[test]
fn a_definition_that_could_not_be_read_is_not_complained_about_again() {
    let mut catalog = fine();
    catalog["prompts"].as_object_mut().unwrap().remove("persona");
    let catalog = Catalog::from_json(&catalog.to_string()).unwrap();
    let mut sources = Sources::default();
    assert_eq!(sources.insert(Kind::Prompt, "persona", "prompts/persona.md"), None);
    assert_eq!(
        sources.insert(Kind::Prompt, "persona", "prompts/persona.json").as_deref(),
        Some("prompts/persona.md")
    );
    assert_eq!(validate(&catalog, &sources, &natives()), []);
    let found = validate(&catalog, &Sources::default(), &natives());
    assert_eq!((found.len(), found[0].severity), (1, Severity::Error));
}

#[test]
fn a_slip_of_the_pen_is_recognised() {
    let known = ["includeChat", "includePastTools", "model"];
    for (name, expected) in [
        ("inculdeChat", "includeChat"),
        ("includechat", "includeChat"),
        ("includePastTool", "includePastTools"),
        ("modle", "model"),
    ] {
        assert_eq!(nearest(name, &known).unwrap_or(""), expected, "{name}");
    }
    assert_eq!(nearest("mdel", &known), Some("model"));
    assert_eq!(nearest("temperature", &known), None);
}
