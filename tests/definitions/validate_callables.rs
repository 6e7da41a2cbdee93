//! Validation of what a prompt's `tools` lists: tools, prompts, agents that take over, subagents.

use serde_json::{Value, json};

use super::validate::complaints;

#[test]
fn a_name_in_tools_stands_for_one_thing() {
    let prompt = json!({ "toolDescription": "d", "model": "fast", "prompt": "x" });
    let expected = "prompts/helper: error in tools[0]: \"clock\" is a tool and a prompt: rename one, so that it is clear which";
    assert_eq!(complaints(&[("/prompts/clock", prompt)]), [expected]);
    // An agent that is not exposed cannot be meant.
    let agent = |exposed: bool| json!({ "sideA": { "prompt": "helper" }, "exposeAsTool": exposed, "toolDescription": "d" });
    assert_eq!(complaints(&[("/agents/clock", agent(false))]), [""; 0]);
    assert!(complaints(&[("/agents/clock", agent(true))])[0].contains("is a tool and an agent"));
}

#[test]
fn an_agent_and_a_prompt_may_have_one_name_and_the_agent_is_called() {
    let prompt = json!({ "toolDescription": "d", "model": "fast", "prompt": "x" });
    let agent =
        |own: &str| json!({ "sideA": { "prompt": own }, "exposeAsTool": true, "toolDescription": "d" });
    let told = |own: &str, entry: Value| {
        let told = complaints(&[
            ("/prompts/sales", prompt.clone()),
            ("/prompts/other", prompt.clone()),
            ("/agents/sales", agent(own)),
            ("/prompts/helper/tools", json!([entry])),
        ]);
        told.into_iter().filter(|line| !line.contains("in sideA.prompt")).collect::<Vec<_>>()
    };
    assert_eq!(told("sales", json!("sales")), [""; 0]);
    let [warned] = told("other", json!("sales")).try_into().unwrap();
    assert!(
        warned.contains("warning in tools[0]") && warned.contains("the agent is called; rename the prompt"),
        "{warned}"
    );
    let [wrong] = told("sales", json!({ "name": "sales", "includeErrors": false })).try_into().unwrap();
    assert!(wrong.contains("is for prompts; \"sales\" is an agent"), "{wrong}");
}

#[test]
fn prompts_and_exposed_agents_may_be_listed_and_their_settings_fit() {
    let schema = json!({ "type": "object", "properties": { "question": { "type": "string" } } });
    let prompt = json!({ "toolDescription": "d", "model": "fast", "prompt": "x", "requiredSchema": schema });
    let agent = |fields: Value| {
        let mut agent =
            json!({ "sideA": { "prompt": "asked" }, "exposeAsTool": true, "toolDescription": "d" });
        agent.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        agent
    };
    let with = |entry: Value| {
        let told = complaints(&[
            ("/prompts/asked", prompt.clone()),
            ("/agents/sales", agent(json!({}))),
            ("/agents/quiet", agent(json!({ "exposeAsTool": false }))),
            ("/prompts/helper/tools", json!(["clock", entry])),
        ]);
        told.into_iter().filter(|line| !line.contains("warning in sideA.prompt")).collect::<Vec<_>>()
    };
    for fine in [
        json!("asked"),
        json!("sales"),
        json!({ "name": "asked", "includeToolCalls": false, "initUserMessageProperty": "question" }),
        json!({ "name": "sales", "initUserMessageProperty": "question" }),
        json!({ "name": "lookup", "options": { "limit": 1 }, "env": { "A": "b" } }),
    ] {
        assert_eq!(with(fine.clone()), [""; 0], "{fine}");
    }
    for (entry, told) in [
        (json!("quiet"), "tools[1]: \"quiet\" is an agent that may not be called: set its `exposeAsTool`"),
        (
            json!({ "name": "lookup", "includeErrors": true }),
            "tools[1].includeErrors: is for prompts; \"lookup\" is a tool",
        ),
        (
            json!({ "name": "lookup", "initUserMessageProperty": "word" }),
            "tools[1].initUserMessageProperty: is for prompts and agents; \"lookup\" is a tool",
        ),
        (
            json!({ "name": "sales", "includeTextResponse": true }),
            "tools[1].includeTextResponse: is for prompts; \"sales\" is an agent",
        ),
        (
            json!({ "name": "asked", "options": { "a": 1 } }),
            "tools[1].options: is for function tools; \"asked\" is a prompt",
        ),
        (
            json!({ "name": "asked", "initAttachmentsProperty": "files" }),
            "tools[1].initAttachmentsProperty: \"asked\" has no argument \"files\": its prompt's `requiredSchema` does not list it",
        ),
        (
            json!({ "name": "helper", "initUserMessageProperty": "question" }),
            "tools[1].initUserMessageProperty: \"helper\" has no argument \"question\": its prompt has no `requiredSchema`, so a model sends it none",
        ),
    ] {
        assert_eq!(with(entry), [format!("prompts/helper: error in {told}")]);
    }
}

#[test]
fn what_is_said_about_a_subagent_fits_it() {
    let schema = json!({ "type": "object", "properties": { "task": { "type": "string" }, "as": { "type": "string" } } });
    let asked = json!({ "toolDescription": "d", "model": "fast", "prompt": "x", "requiredSchema": schema, "tools": ["clock", "lookup"] });
    let side = json!({ "prompt": "asked", "sessionStop": "clock", "sessionFail": "lookup" });
    let pair = json!({ "type": "dual_ai", "maxSessionTurns": 9, "sideA": side, "sideB": { "prompt": "asked" },
        "exposeAsTool": true, "toolDescription": "d" });
    let (mut needing, mut needy) = (asked.clone(), pair.clone());
    needing["requiredSchema"]["required"] = json!(["task", "as"]);
    needy["sideA"]["prompt"] = "needing".into();
    let person = json!({ "sideA": { "prompt": "helper" }, "exposeAsTool": true, "toolDescription": "d" });
    let with = |entry: Value| {
        complaints(&[
            ("/prompts/asked", asked.clone()),
            ("/agents/pair", pair.clone()),
            ("/agents/sales", person.clone()),
            ("/prompts/needing", needing.clone()),
            ("/agents/needy", needy.clone()),
            ("/prompts/helper/tools", json!(["clock", entry])),
        ])
    };
    let resumable =
        json!({ "receives_messages": "side_b", "maxInstances": 2, "parentCommunication": "explicit" });
    let hints = json!({ "nameEnv": "CITY", "descriptionEnv": "TASK", "scopedEnv": ["LOOKUP_KEY"] });
    for fine in [
        json!("pair"),
        json!({ "name": "pair", "initUserMessageProperty": "task", "initAgentNameProperty": "as", "blocking": false }),
        json!({ "name": "pair", "optional": "WITH_PAIR", "immediate": true, "resumable": false }),
        json!({ "name": "pair", "immediate": hints, "resumable": resumable }),
        json!({ "name": "needy", "immediate": true, "initUserMessageProperty": "task", "initAgentNameProperty": "as" }),
        json!({ "name": "needy", "immediate": true, "resumable": resumable }),
    ] {
        assert_eq!(with(fine.clone()), [""; 0], "{fine}");
    }
    for (entry, told) in [
        (
            json!({ "name": "lookup", "blocking": true }),
            "error in tools[1].blocking: is for agents of two AI sides; \"lookup\" is a tool",
        ),
        (
            json!({ "name": "asked", "optional": "A" }),
            "error in tools[1].optional: is for agents of two AI sides; \"asked\" is a prompt",
        ),
        (
            json!({ "name": "asked", "initAgentNameProperty": "as" }),
            "error in tools[1].initAgentNameProperty: is for agents of two AI sides; \"asked\" is a prompt",
        ),
        (
            json!({ "name": "sales", "immediate": true }),
            "error in tools[1].immediate: is for agents of two AI sides; a person talks to \"sales\"",
        ),
        (
            json!({ "name": "sales", "resumable": resumable }),
            "error in tools[1].resumable: is for agents of two AI sides; a person talks to \"sales\"",
        ),
        (
            json!({ "name": "pair", "initAgentNameProperty": "who" }),
            "error in tools[1].initAgentNameProperty: \"pair\" has no argument \"who\": its prompt's `requiredSchema` does not list it",
        ),
        (
            json!({ "name": "pair", "optional": "with pair" }),
            "error in tools[1].optional: \"with pair\" cannot name a variable: letters, digits and _, not starting with a digit",
        ),
        (
            json!({ "name": "pair", "resumable": { "receives_messages": "side_a", "maxInstances": 0 } }),
            "error in tools[1].resumable.maxInstances: must be more than 0",
        ),
        (
            json!({ "name": "pair", "resumable": resumable, "initUserMessageProperty": "what" }),
            "warning in tools[1].initUserMessageProperty: has no effect with `resumable`: `subagent_create` has arguments of its own for this",
        ),
        (
            json!({ "name": "pair", "immediate": { "scopedEnv": ["A", "BOBBIN_X"] } }),
            "error in tools[1].immediate.scopedEnv[1]: \"BOBBIN_X\": names starting with BOBBIN_ belong to the runtime",
        ),
        (
            json!({ "name": "needy", "immediate": true, "initUserMessageProperty": "task" }),
            "error in tools[1].immediate: \"needy\" cannot begin by itself: its prompt requires `as`, which nobody gives; `initUserMessageProperty` and `initAgentNameProperty` may name one each",
        ),
        (
            json!({ "name": "needy", "immediate": true, "resumable": { "receives_messages": "side_a" } }),
            "error in tools[1].immediate: \"needy\" cannot begin by itself: its prompt requires `task`, `as`, which nobody gives",
        ),
        (
            json!({ "name": "pair", "immediate": { "nameEnv": "SLOW_KEY" } }),
            "error in tools[1].immediate.nameEnv: \"SLOW_KEY\" is the API key of a model, and models would read it",
        ),
    ] {
        assert_eq!(with(entry), [format!("prompts/helper: {told}")]);
    }
    let secret = complaints(&[
        ("/prompts/asked", asked.clone()),
        ("/agents/pair", pair.clone()),
        ("/tools/clock/variables", json!([{ "name": "PLACE", "type": "secret" }])),
        ("/prompts/helper/tools", json!([{ "name": "pair", "immediate": { "descriptionEnv": "PLACE" } }])),
    ]);
    let told = "prompts/helper: error in tools[0].immediate.descriptionEnv: \"PLACE\" is declared as a secret by the tool \"clock\", and models would read it";
    assert_eq!(secret, [told]);
}

#[test]
fn an_exposed_agent_of_two_ai_sides_can_end_its_session() {
    let with = |changes: Value| {
        let mut pair = json!({ "type": "dual_ai", "maxSessionTurns": 9, "exposeAsTool": true, "toolDescription": "d",
            "sideA": { "prompt": "helper", "sessionStop": "clock" }, "sideB": { "prompt": "helper", "sessionFail": "lookup" } });
        pair.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        complaints(&[("/agents/pair", pair)])
    };
    let bare = json!({ "prompt": "helper" });
    let stop = "agents/pair: warning in sideA.sessionStop: should be set on a side: nothing but its caps ends the work of this subagent";
    let fail = "agents/pair: warning in sideA.sessionFail: should be set on a side: its models have no way to say that they have failed";
    assert_eq!(with(json!({})), [""; 0]);
    assert_eq!(with(json!({ "sideA": bare })), [stop]);
    assert_eq!(with(json!({ "sideB": bare })), [fail]);
    assert_eq!(with(json!({ "sideA": bare, "sideB": bare })), [stop, fail]);
    assert_eq!(with(json!({ "sideA": bare, "sideB": bare, "exposeAsTool": false })), [""; 0]);
}

#[test]
fn an_env_part_of_a_prompt_that_is_called_is_looked_at_alone() {
    let told = complaints(&[("/prompts/helper/tools", json!(["persona"]))]);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("prompts/persona: error in prompt[0].property: \"CITY\" must be declared"));
}

#[test]
fn cycles_are_found_wherever_they_are_entered() {
    let include = |name: &str| json!({ "toolDescription": "d", "model": "fast", "prompt": [{ "type": "include", "prompt": name }] });
    let told = complaints(&[
        ("/prompts/a", include("b")),
        ("/prompts/b", include("c")),
        ("/prompts/c", include("b")),
        ("/prompts/d", include("d")),
    ]);
    assert_eq!(
        told,
        [
            "prompts/b: error in prompt: includes itself: b → c → b",
            "prompts/d: error in prompt: includes itself: d → d"
        ]
    );
    let told = complaints(&[
        ("/models/fast/fallbacks", json!(["slow"])),
        ("/models/slow/fallbacks", json!(["fast"])),
    ]);
    assert_eq!(
        told,
        [
            "models/fast: warning in fallbacks: fast → slow → fast: a cycle; only the first model's own fallbacks are tried"
        ]
    );
}

/// What is said of options of `execute_code`, the warnings about natives aside.
fn of_options(options: Value) -> Vec<String> {
    let tool = json!({ "description": "d", "run": { "native": "execute_code" } });
    let entry = json!({ "name": "execute_code", "options": options });
    complaints(&[("/tools/execute_code", tool), ("/prompts/helper/tools", json!(["clock", entry]))])
        .into_iter()
        .filter(|line| !line.starts_with("tools/execute_code: warning in run.native"))
        .collect()
}

#[test]
fn wrong_options_of_execute_code_are_named_with_what_is_allowed() {
    let at = |option: &str, why: &str| format!("prompts/helper: error in tools[1].options.{option}: {why}");
    for (options, option, why) in [
        (
            json!({ "maxCodeSise": 5 }),
            "maxCodeSise",
            "there is no such option; did you mean \"maxCodeSize\"?",
        ),
        (
            json!({ "memory": 5 }),
            "memory",
            "there is no such option; there are maxCodeSize, maxOutputSize, codeTimeoutMs, maxToolCalls, \
             allowedHosts, workingDirectory",
        ),
        (json!({ "maxCodeSize": 0 }), "maxCodeSize", "must be a whole number, 1 or more, not 0"),
        (
            json!({ "maxOutputSize": "1 MB" }),
            "maxOutputSize",
            "must be a whole number, 0 or more, not \"1 MB\"",
        ),
        (json!({ "codeTimeoutMs": 0 }), "codeTimeoutMs", "must be a whole number from 1 to 600000, not 0"),
        (
            json!({ "codeTimeoutMs": 600_001 }),
            "codeTimeoutMs",
            "must be a whole number from 1 to 600000, not 600001",
        ),
        (json!({ "maxToolCalls": 1.5 }), "maxToolCalls", "must be a whole number, 0 or more, not 1.5"),
        (json!({ "allowedHosts": "a.example" }), "allowedHosts", "must be a list of hosts"),
        (json!({ "allowedHosts": ["a.example", 7] }), "allowedHosts[1]", "must be a text"),
        (
            json!({ "allowedHosts": ["https://a.example"] }),
            "allowedHosts[0]",
            "“https://a.example” is no host: write it as in `api.example.com`, `localhost:8080` or `*.example.com`",
        ),
        (
            json!({ "workingDirectory": "notes" }),
            "workingDirectory",
            "must be an absolute path without `.` and `..`, such as `/sandbox`",
        ),
        (
            json!({ "workingDirectory": "/notes/../x" }),
            "workingDirectory",
            "must be an absolute path without `.` and `..`, such as `/sandbox`",
        ),
    ] {
        assert_eq!(of_options(options), [at(option, why)]);
    }
    assert_eq!(of_options(json!({ "maxToolCalls": -1, "workingDirectory": 1 })).len(), 2, "all at once");
}

#[test]
fn right_options_of_execute_code_and_any_of_other_tools_are_taken() {
    let all = json!({ "maxCodeSize": 1, "maxOutputSize": 0, "codeTimeoutMs": 600_000, "maxToolCalls": 0,
        "allowedHosts": ["localhost:8080", "*.example.com"], "workingDirectory": "/notes//code/" });
    for fine in [json!({}), all] {
        assert_eq!(of_options(fine), [""; 0]);
    }
    let other = json!([{ "name": "clock", "options": { "maxCodeSise": 5 } }]);
    assert_eq!(complaints(&[("/prompts/helper/tools", other)]), [""; 0]);
}

#[test]
fn workers_are_made_of_agents_that_can_be_some() {
    let prompt = json!({ "toolDescription": "d", "model": "fast", "prompt": "x" });
    let needs = json!({ "type": "object", "properties": { "q": { "type": "string" } }, "required": ["q"] });
    let mut strict = prompt.clone();
    strict["requiredSchema"] = needs;
    let dual = |own: &str, exposed: bool| {
        json!({ "type": "dual_ai", "sideA": { "prompt": own }, "sideB": { "prompt": "plain" }, "maxSessionTurns": 1,
            "exposeAsTool": exposed, "toolDescription": "d" })
    };
    let told = |workers: Value, tools: Value| {
        let told = complaints(&[
            ("/prompts/plain", prompt.clone()),
            ("/prompts/strict", strict.clone()),
            ("/agents/chat", json!({ "sideA": { "prompt": "plain" } })),
            ("/agents/twin", dual("plain", true)),
            ("/agents/hidden", dual("plain", false)),
            ("/agents/asks", dual("strict", true)),
            ("/prompts/helper/tools", tools),
            ("/prompts/helper/subagents", workers),
        ]);
        told.into_iter().filter(|line| line.starts_with("prompts/helper: error")).collect::<Vec<_>>()
    };
    let none = [""; 0];
    assert_eq!(told(json!({ "agents": ["chat", "twin"] }), json!(["agent.spawn", "agent_wait"])), none);
    for (workers, tools, expected) in [
        (json!({ "agents": [] }), json!([]), "subagents.agents: empty"),
        (
            json!({ "agents": ["chat"], "maxActive": 0 }),
            json!([]),
            "subagents.maxActive: must be from 1 to 100",
        ),
        (
            json!({ "agents": ["chat"], "maxActive": 101 }),
            json!([]),
            "subagents.maxActive: must be from 1 to 100",
        ),
        (
            json!({ "agents": ["chat"], "idPrefix": "a.b" }),
            json!([]),
            "subagents.idPrefix: must be 1 to 32 characters",
        ),
        (json!({ "agents": ["chat", "chat"] }), json!([]), "subagents.agents[1]: \"chat\" is listed twice"),
        (json!({ "agents": ["gone"] }), json!([]), "subagents.agents[0]: "),
        (
            json!({ "agents": ["hidden"] }),
            json!([]),
            "subagents.agents[0]: \"hidden\" is an agent that may not be called",
        ),
        (
            json!({ "agents": ["asks"] }),
            json!([]),
            "subagents.agents[0]: \"asks\" cannot be a worker: its prompt requires `q`",
        ),
        (
            json!({ "agents": ["chat"], "enabled": false }),
            json!(["agent_send"]),
            "tools[0]: \"agent_send\" is offered with `subagents`",
        ),
        (
            json!({ "agents": ["chat"] }),
            json!([{ "name": "agent_send", "blocking": true }]),
            "tools[0]: \"agent_send\" takes no settings",
        ),
    ] {
        let [line] = told(workers.clone(), tools).try_into().unwrap();
        assert!(line.contains(&format!("in {expected}")), "{workers}: {line}");
    }
}

#[test]
fn names_of_the_runtimes_own_tools_are_refused_whatever_has_them() {
    let tool = json!({ "description": "d", "run": { "native": "clock" } });
    let prompt = json!({ "toolDescription": "d", "model": "fast", "prompt": "x" });
    let agent = json!({ "sideA": { "prompt": "helper" } });
    let own = [
        "ask_user",
        "load_skill",
        "agent_spawn",
        "agent_send",
        "agent_wait",
        "agent_close",
        "subagent_create",
        "subagent_message",
        "memory_search",
        "memory_save",
        "memory_update",
        "memory_delete",
        "scratchpad_read",
        "scratchpad_write",
        "scratchpad_clear",
    ];
    for name in own {
        for (folder, file) in [("tools", &tool), ("prompts", &prompt), ("agents", &agent)] {
            let expected = format!(
                "{folder}/{name}: error in name: \"{name}\" is the name of a tool of the runtime's own; give the file another name"
            );
            assert_eq!(complaints(&[(&format!("/{folder}/{name}"), file.clone())]), [expected]);
        }
    }
    let expected = "tools/mcp_github: error in name: \"mcp_github\" begins as the tools of MCP servers do; give the file another name";
    assert_eq!(complaints(&[("/tools/mcp_github", tool.clone())]), [expected]);
    for free in ["ask_users", "memory_note", "agent_x", "mcp", "scratchpad"] {
        assert_eq!(complaints(&[(&format!("/tools/{free}"), tool.clone())]), [""; 0], "{free}");
    }
}
