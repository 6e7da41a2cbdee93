//! MCP servers: their lists, the resulting tools, and the references to them.

use bobbin_definitions::definitions::approval::Mode;
use bobbin_definitions::definitions::{Callable, Implementation, McpProtocol, Tier};
use serde_json::json;

use super::*;

const LINEAR: (&str, &str) = (
    "mcp/linear.json",
    r#"{ "url": "https://mcp.linear.example/mcp", "description": "Issues.",
         "headers": { "authorization": "Bearer {{env LINEAR_TOKEN}}" },
         "variables": [ { "name": "LINEAR_TOKEN", "type": "secret" }, { "name": "LINEAR_TEAM", "type": "text" } ],
         "tools": { "allow": ["search_issues", "create_issue"] },
         "provide": { "create_issue": { "teamId": "{{env LINEAR_TEAM}}" } },
         "approval": { "default": "never", "create_issue": "always" },
         "tier": { "search_issues": "read_only" }, "timeoutMs": 5000 }"#,
);
const TOOLS: &str = r#"{ "protocol": "2026-07-28", "server": { "name": "linear", "version": "3.1" }, "tools": [
  { "name": "search_issues", "description": "Finds issues.", "annotations": { "readOnlyHint": true },
    "inputSchema": { "$schema": "x", "type": "object", "properties": { "q": { "type": "string", "pattern": "^a", "x-mcp-header": "Query" } }, "required": ["q"] } },
  { "name": "create_issue", "title": "Makes an issue", "icons": [],
    "inputSchema": { "type": "object", "properties": { "title": { "type": "string" }, "teamId": { "type": "string" } }, "required": ["title", "teamId"] } },
  { "name": "delete.issue", "annotations": { "destructiveHint": true }, "inputSchema": { "type": "object" } } ] }"#;
const LIST: (&str, &str) = ("mcp/linear.tools.json", TOOLS);

fn prompt(tools: &str) -> String {
    format!("---\ntoolDescription: d\nmodel: fast\nincludeChat: true\ntools: {tools}\n---\n\nYou help.\n")
}

fn with<'a>(prompt: &'a str, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut files = vec![MODEL, AGENT, LINEAR, LIST, ("prompts/helper.md", prompt)];
    files.retain(|(path, _)| more.iter().all(|(other, _)| other != path));
    files.extend_from_slice(more);
    files
}

fn listed(catalog: &Catalog) -> Vec<&str> {
    catalog.prompts.get("helper").unwrap().tools.iter().map(|entry| entry.name.as_str()).collect()
}

#[test]
fn a_pinned_list_becomes_tools_of_the_catalog() {
    let prompt = prompt(r#"["clock", "mcp:linear", "ask_user"]"#);
    let clock = ("tools/clock.json", r#"{ "description": "d", "run": { "native": "clock" } }"#);
    let compiled = compiled(&with(&prompt, &[clock]));
    assert_eq!(report(&compiled.complaints), "");
    let catalog = Catalog::from_json(&serde_json::to_string(&compiled.catalog).unwrap()).unwrap();
    assert_eq!(listed(&catalog), ["clock", "linear__create_issue", "linear__search_issues", "ask_user"]);
    let search = catalog.tools.get("linear__search_issues").unwrap();
    assert_eq!(
        (search.tier, search.idempotent, search.timeout_ms),
        (Some(Tier::ReadOnly), Some(true), Some(5000))
    );
    let Implementation::Mcp(of) = &search.run else { panic!() };
    assert_eq!((of.server.as_str(), of.tool.as_str()), ("linear", "search_issues"));
    assert_eq!(of.headers.get("Query").unwrap(), "/q");
    // Models see the server's own keywords, without its annotations and without the arguments that the
    // application fills in.
    let callable = Callable::Tool(search);
    let shown = json!({ "type": "object", "properties": { "q": { "type": "string", "pattern": "^a" } }, "required": ["q"] });
    let (parameters, strict, _) = callable.offer();
    assert_eq!((parameters, strict), (shown, false));
    assert!(callable.check(json!({ "q": "b", "more": 1 })).is_ok() && callable.check(json!({})).is_err());
    let create = catalog.tools.get("linear__create_issue").unwrap();
    assert_eq!((create.description.as_str(), create.idempotent, create.tier), ("Makes an issue", None, None));
    assert_eq!(create.approval.as_ref().unwrap().mode, Mode::Always);
    let shown =
        json!({ "type": "object", "properties": { "title": { "type": "string" } }, "required": ["title"] });
    assert_eq!(create.args.as_ref().unwrap(), &shown);
    let Implementation::Mcp(of) = &create.run else { panic!() };
    assert_eq!(Value::Object(of.provide.clone()), json!({ "teamId": "{{env LINEAR_TEAM}}" }));
    let names: Vec<&str> = create.variables.iter().map(|variable| variable.name.as_str()).collect();
    assert_eq!(names, ["LINEAR_TOKEN", "LINEAR_TEAM"]);
    assert!(!catalog.tools.contains_key("linear__delete_issue"), "it is not allowed");
    let pinned = catalog.mcp.get("linear").unwrap().pinned.as_ref().unwrap();
    assert_eq!((pinned.protocol, pinned.server.version.as_str()), (McpProtocol::Modern, "3.1"));
    assert_eq!(catalog.files.get("tool linear__search_issues").unwrap(), "mcp/linear.tools.json");
    assert_eq!(catalog.files.get("MCP server linear").unwrap(), "mcp/linear.json");
}

#[test]
fn one_tool_can_be_meant_in_several_ways_wherever_tools_are_named() {
    for entry in [
        r#"["mcp:linear/search_issues"]"#,
        r#"["mcp:linear__search_issues"]"#,
        r#"["mcp:search_issues"]"#,
        r#"["linear__search_issues"]"#,
        r#"[{ "mcp": "linear", "tools": ["search_issues"] }]"#,
        r#"[{ "name": "mcp:linear", "tools": ["search_issues"] }]"#,
    ] {
        let prompt = prompt(entry);
        let compiled = compiled(&with(&prompt, &[]));
        assert_eq!(report(&compiled.complaints), "", "{entry}");
        assert_eq!(listed(&compiled.catalog), ["linear__search_issues"], "{entry}");
    }
    let agent = (
        "agents/helper.json",
        r#"{ "sideA": { "prompt": "helper", "stopTool": "mcp:search_issues" }, "approvals": { "trusted": ["mcp:linear", "ask_user"] } }"#,
    );
    let prompt = prompt(
        r#"[{ "mcp": "linear", "env": { "LINEAR_TEAM": "a" } }, { "name": "linear__create_issue", "env": { "LINEAR_TEAM": "b" } }]"#,
    );
    let compiled = compiled(&with(&prompt, &[agent]));
    assert_eq!(report(&compiled.complaints), "");
    let agent = compiled.catalog.agents.get("helper").unwrap();
    assert_eq!(agent.side_a.stop_tool.as_deref(), Some("linear__search_issues"));
    assert_eq!(agent.approvals.trusted, ["linear__create_issue", "ask_user", "linear__search_issues"]);
    let entries = &compiled.catalog.prompts.get("helper").unwrap().tools;
    let teams: Vec<(&str, &str)> = entries
        .iter()
        .map(|entry| (entry.name.as_str(), entry.env.get("LINEAR_TEAM").unwrap().as_str()))
        .collect();
    assert_eq!(teams, [("linear__search_issues", "a"), ("linear__create_issue", "b")]);
}

#[test]
fn a_live_server_is_left_to_the_engine() {
    let live = ("mcp/live.json", r#"{ "url": "http://127.0.0.1:9/mcp", "list": "live" }"#);
    let agent = (
        "agents/helper.json",
        r#"{ "sideA": { "prompt": "helper", "stopTool": "live__done" }, "approvals": { "trusted": ["mcp:live/look"] } }"#,
    );
    let prompt = prompt(r#"["mcp:live/done", "mcp:linear"]"#);
    let compiled = compiled(&with(&prompt, &[live, agent]));
    assert_eq!(report(&compiled.complaints), "");
    let catalog = Catalog::from_json(&serde_json::to_string(&compiled.catalog).unwrap()).unwrap();
    assert_eq!(listed(&catalog), ["mcp:live", "linear__create_issue", "linear__search_issues"]);
    let entry = &catalog.prompts.get("helper").unwrap().tools[0];
    assert_eq!((entry.mcp(), entry.tools.as_deref()), (Some("live"), Some(["done".to_owned()].as_slice())));
    assert_eq!(catalog.agents.get("helper").unwrap().approvals.trusted, ["live__look"]);
}

#[test]
fn a_package_has_servers_of_its_own() {
    let about = (
        "packages/acme/package.json",
        r#"{ "name": "acme", "standardagent": { "entryAgents": ["clerk"] } }"#,
    );
    let clerk = ("packages/acme/agents/clerk.json", r#"{ "sideA": { "prompt": "clerk" } }"#);
    let asks = (
        "packages/acme/prompts/clerk.json",
        r#"{ "toolDescription": "d", "model": "fast", "includeChat": true, "prompt": "x",
        "tools": ["mcp:tracker", "mcp:linear"] }"#,
    );
    let tracker = ("packages/acme/mcp/tracker.json", r#"{ "url": "https://t.example/mcp" }"#);
    let list = (
        "packages/acme/mcp/tracker.tools.json",
        r#"{ "protocol": "2025-11-25", "tools": [{ "name": "look", "inputSchema": { "type": "object" } }] }"#,
    );
    let prompt = prompt(r#"["mcp:linear"]"#);
    let packed = [about, clerk, asks, tracker, list];
    let compiled = compiled(&with(&prompt, &packed));
    assert_eq!(report(&compiled.complaints), "");
    let entries = &compiled.catalog.prompts.get("acme__clerk").unwrap().tools;
    let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["acme__tracker__look", "linear__create_issue", "linear__search_issues"]);
    let prompt = self::prompt(r#"["mcp:acme/tracker", "acme__tracker__look"]"#);
    let told = told(&with(&prompt, &packed));
    assert_eq!(
        told,
        [
            "prompts/helper.md: error in tools[0]: \"acme/tracker\" is not visible outside of its package, whose entry agents are acme/clerk",
            "prompts/helper.md: error in tools[1]: \"acme/tracker__look\" is not visible outside of its package, whose entry agents are acme/clerk",
        ]
    );
}

#[test]
fn what_is_wrong_with_a_server_is_told_with_its_place() {
    let server = |more: &str| format!(r#"{{ "url": "https://t.example/mcp"{more} }}"#);
    let small = r#"{ "protocol": "2026-07-28", "tools": [{ "name": "look", "inputSchema": { "type": "object", "properties": { "a": {} } } }] }"#;
    for (more, list, expected) in [
        (
            "",
            None,
            "mcp/t.json: error: there is no list of its tools: `bobbin mcp pull t` writes t.tools.json beside this file",
        ),
        (
            r#", "list": "live""#,
            Some(small),
            "mcp/t.tools.json: warning: not read: the server's file says that its tools are listed live",
        ),
        (
            r#", "tools": { "allow": ["lok"] }"#,
            Some(small),
            "mcp/t.json: error in tools.allow[0]: the list of the server's tools has no \"lok\"; did you mean \"look\"?",
        ),
        (
            r#", "tools": { "alow": ["look"] }"#,
            Some(small),
            "mcp/t.json: error in tools: \"alow\" is not known here; did you mean \"allow\"?",
        ),
        (
            r#", "tools": { "allow": [] }"#,
            Some(small),
            "mcp/t.json: error in tools.allow: allows none of its tools: leave it out to have all of them",
        ),
        (
            r#", "provide": { "look": { "b": 1 } }"#,
            Some(small),
            "mcp/t.json: error in provide.look.b: the tool has no argument \"b\"; did you mean \"a\"?",
        ),
        (
            r#", "provide": { "look": { "a": ["{{env X}}"] } }"#,
            Some(small),
            "mcp/t.json: error in provide.look.a[0]: \"X\" is not among its `variables`; there are none",
        ),
        (
            r#", "approval": { "lok": "always" }"#,
            Some(small),
            "mcp/t.json: error in approval.lok: the list of the server's tools has no \"lok\"; did you mean \"look\"?",
        ),
        (
            r#", "approval": { "look": "allways" }"#,
            Some(small),
            "mcp/t.json: error in approval.look: there is no mode \"allways\"; did you mean \"always\"?; there are never, always, when, on_failure",
        ),
        (
            r#", "approval": { "look": { "mode": "always", "edit": ["b"] } }"#,
            Some(small),
            "mcp/t.json: error in approval.look.edit[0]: the tool has no argument \"b\"; did you mean \"a\"?",
        ),
        (
            r#", "headers": { "Accept": "x" }"#,
            Some(small),
            "mcp/t.json: error in headers.Accept: the runtime sets this header itself",
        ),
        (
            r#", "headers": { "x-a": "{{env A}}" }"#,
            Some(small),
            "mcp/t.json: error in headers.x-a: \"A\" is not among its `variables`; there are none",
        ),
        (
            r#", "timeoutMs": 0"#,
            Some(small),
            "mcp/t.json: error in timeoutMs: must be from 1 to 600000 (ten minutes)",
        ),
        (
            r#", "pinned": {}"#,
            Some(small),
            "mcp/t.json: error in pinned: unknown field; the list of its tools says that",
        ),
        (
            r#", "auth": { "type": "client_credentials", "clientId": "a", "clientSecret": "b" }"#,
            Some(small),
            "mcp/t.json: error in auth.clientSecret: no secret stands in a file: name a variable, as `{{env NAME}}`",
        ),
        (
            r#", "auth": { "type": "client_credentials", "clientId": "a", "clientSecret": "{{env S}}" }, "variables": [{ "name": "S", "type": "secret" }], "headers": { "Authorization": "x" }"#,
            Some(small),
            "mcp/t.json: error in headers.Authorization: `auth` sets this header",
        ),
        (
            "",
            Some("{"),
            "mcp/t.tools.json:1:1: error: the file ends in the middle: a bracket, brace or quote is not closed",
        ),
        (
            "",
            Some(r#"{ "protocol": "2026-07-28", "tools": [{ "name": "a" }] }"#),
            "mcp/t.tools.json: error in tools[0].inputSchema: required but missing",
        ),
        (
            "",
            Some(
                r#"{ "protocol": "2026-07-28", "tools": [{ "name": "a_b", "inputSchema": {} }, { "name": "a/b", "inputSchema": {} }] }"#,
            ),
            "mcp/t.tools.json: warning in tools[1].name: models know \"a/b\" as \"t__a_b_c14cddc0\", as another tool becomes \"t__a_b\" as well",
        ),
        (
            "",
            Some(
                r#"{ "protocol": "2026-07-28", "tools": [{ "name": "a", "inputSchema": { "type": "object", "properties": { "x": { "$ref": "https://a.example/s" } } } }] }"#,
            ),
            "mcp/t.tools.json: warning in tools[0].inputSchema.properties.x.$ref: refers to what is outside of the schema; nothing is fetched for it: \"a\" cannot be offered; block it in the server's file to say so",
        ),
        (
            r#", "tools": { "allow": ["a"] }"#,
            Some(
                r#"{ "protocol": "2026-07-28", "tools": [{ "name": "a", "inputSchema": { "properties": { "x": { "type": "number", "x-mcp-header": "X" } } } }] }"#,
            ),
            "mcp/t.tools.json: error in tools[0].inputSchema.properties.x.x-mcp-header: marks what is no argument that is a string, an integer or a boolean: \"a\" cannot be offered; block it in the server's file to say so",
        ),
    ] {
        let server = server(more);
        let mut files = vec![MODEL, PROMPT, AGENT, ("mcp/t.json", server.as_str())];
        files.extend(list.map(|list| ("mcp/t.tools.json", list)));
        assert_eq!(told(&files), [expected], "{more}");
    }
    let both = [
        ("mcp/a.json", r#"{ "url": "http://a.example/mcp", "list": "live" }"#),
        ("mcp/b__c.json", r#"{ "url": "ftp://x", "list": "live" }"#),
        ("mcp/odd.tools.json", "{}"),
        ("mcp/odd.md", ""),
    ];
    let mut files = vec![MODEL, PROMPT, AGENT];
    files.extend(both);
    assert_eq!(
        told(&files),
        [
            "mcp/a.json: error in url: must be https; only a server on this machine can be http, in development",
            "mcp/b__c.json: error in name: the name \"b__c\" may not hold __ or end with _: that begins the name of a tool",
            "mcp/b__c.json: error in url: `ftp://x` should start with `https://`",
            "mcp/odd.md: warning: not read: MCP servers are .json files",
            "mcp/odd.tools.json: error: lists tools of a server that odd.json would define: there is none",
        ]
    );
}

#[test]
fn what_is_wrong_with_a_reference_is_told_with_its_place() {
    for (tools, expected) in [
        (
            r#"["mcp:lineer"]"#,
            "tools[0]: no MCP server named \"lineer\", and no tool of one; did you mean \"mcp:linear\"?",
        ),
        (
            r#"["mcp:linear/serch_issues"]"#,
            "tools[0]: \"linear\" has no tool \"serch_issues\"; did you mean \"search_issues\"?",
        ),
        (
            r#"["mcp:linear/delete.issue"]"#,
            "tools[0]: \"delete.issue\" is not among the tools that the file of \"linear\" allows",
        ),
        (
            r#"[{ "mcp": "linear", "tools": ["search_issues", "x"] }]"#,
            "tools[0].tools[1]: \"x\" is not among the tools that the file of \"linear\" allows",
        ),
        (
            r#"[{ "mcp": "linear", "options": { "a": 1 } }]"#,
            "tools[0].options: a server's tool is given its arguments alone: `provide`, in the server's file, fills some in",
        ),
        (
            r#"[{ "name": "ask_user", "tools": ["a"] }]"#,
            "tools[0].tools: is for tools of an MCP server: `{ \"mcp\": NAME, \"tools\": [...] }`",
        ),
        (r#"[{ "env": {} }]"#, "tools[0].name: required but missing"),
        (
            r#"["mcp:linear", "linear__delete_issue"]"#,
            "tools[1]: no tool, prompt or exposed agent named \"linear__delete_issue\"; did you mean \"linear__create_issue\"?",
        ),
        (r#"["mcp:linear", "mcp:linear"]"#, "tools[1]: \"linear__create_issue\" is listed twice"),
    ] {
        let prompt = prompt(tools);
        assert_eq!(told(&with(&prompt, &[])), [format!("prompts/helper.md: error in {expected}")], "{tools}");
    }
    let agent = ("agents/helper.json", r#"{ "sideA": { "prompt": "helper", "stopTool": "mcp:linear" } }"#);
    let prompt = prompt(r#"["mcp:linear"]"#);
    assert_eq!(
        told(&with(&prompt, &[agent])),
        [
            "agents/helper.json: error in sideA.stopTool: \"mcp:linear\" means all tools of \"linear\": one is meant here, as in \"mcp:linear/TOOL\"",
        ]
    );
    let file = (
        "tools/find.json",
        r#"{ "description": "d", "run": { "mcp": { "server": "linear", "tool": "search_issues" } } }"#,
    );
    assert_eq!(
        told(&with(&prompt, &[file])),
        [
            "tools/find.json: error in run.mcp: tools of MCP servers are in no file: a prompt lists \"mcp:NAME\", and mcp/NAME.json says which",
        ]
    );
}

#[test]
fn a_tool_that_may_destroy_something_wants_a_word_about_approval() {
    let prompt = prompt(r#"["mcp:t"]"#);
    let list = (
        "mcp/t.tools.json",
        r#"{ "protocol": "2026-07-28", "tools": [{ "name": "drop", "inputSchema": {}, "annotations": { "destructiveHint": true } }] }"#,
    );
    let server =
        |approval: &str| format!(r#"{{ "url": "https://t.example/mcp", "approval": {{ {approval} }} }}"#);
    let warning = "mcp/t.json: warning in approval: the server says that \"drop\" may destroy something, and nobody is asked: say \"drop\": \"always\", or \"never\" if that is meant";
    for (approval, expected) in [
        ("", vec![warning]),
        (r#""default": "never""#, vec![warning]),
        (r#""default": "always""#, vec![]),
        (r#""drop": "never""#, vec![]),
    ] {
        let server = server(approval);
        assert_eq!(told(&with(&prompt, &[("mcp/t.json", &server), list])), expected, "{approval}");
    }
    let (server, empty) = (server(""), self::prompt("[]"));
    assert_eq!(
        told(&with(&empty, &[("mcp/t.json", &server), list])),
        Vec::<String>::new(),
        "no prompt lists it"
    );
}
