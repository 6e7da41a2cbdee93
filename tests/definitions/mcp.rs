//! Tools of MCP servers: what a listed one becomes, which schemas can be offered, and how calls are checked.

use bobbin::definitions::graph::{DeclaredVariables, Item, reach};
use bobbin::definitions::{Callable, Catalog, ListedTool, McpServer, Snapshot, Tool, VariableKind};
use serde_json::{Value, json};

fn server(more: Value) -> McpServer {
    let mut server = json!({ "name": "linear", "url": "https://mcp.linear.example/mcp" });
    for (field, value) in more.as_object().unwrap() {
        server[field] = value.clone();
    }
    serde_json::from_value(server).unwrap()
}

fn tool_of(schema: Value) -> Result<Tool, (String, String)> {
    let listed = json!({ "name": "search", "inputSchema": schema });
    server(json!({})).tool(&serde_json::from_value(listed).unwrap())
}

#[test]
fn names_are_made_of_characters_that_providers_take() {
    let server = server(json!({}));
    assert_eq!(server.tool_name("admin.tools/list ü"), "linear__admin_tools_list__");
    assert_eq!(server.tool_name(&"x".repeat(100)).len(), 64);
    assert_eq!(
        (server.own_name("linear__search"), server.own_name("linear__"), server.own_name("linearx__a")),
        (Some("search"), None, None)
    );
}

#[test]
fn a_tool_has_what_is_said_of_it_by_name_or_else_of_all() {
    let server = server(
        json!({ "tier": { "default": "privileged", "look": "read_only" }, "idempotent": { "look": false },
        "approval": { "default": "always", "look": "never" }, "tools": { "block": ["drop"] } }),
    );
    let tool = |listed: Value| server.tool(&serde_json::from_value(listed).unwrap()).unwrap();
    let look = tool(json!({ "name": "look", "inputSchema": {}, "annotations": { "readOnlyHint": true } }));
    assert_eq!(
        json!([look.tier, look.idempotent, look.approval]),
        json!(["read_only", false, { "mode": "never" }])
    );
    let other = tool(
        json!({ "name": "other", "title": "T", "description": " ", "inputSchema": {}, "annotations": { "idempotentHint": true } }),
    );
    assert_eq!(
        json!([other.tier, other.idempotent, other.approval, other.description]),
        json!(["privileged", true, { "mode": "always" }, "T"])
    );
    assert!(server.offers("look") && !server.offers("drop"));
}

#[test]
fn schemas_that_cannot_be_offered_are_refused_with_their_place() {
    let marked = |property: Value| json!({ "type": "object", "properties": { "a": property } });
    let deep =
        (0..40).fold(json!({ "type": "string" }), |inner, _| json!({ "type": "array", "items": inner }));
    for (schema, place) in [
        (json!("x"), "inputSchema"),
        (json!({ "type": "array" }), "inputSchema.type"),
        (json!({ "description": "x".repeat(70_000) }), "inputSchema"),
        (json!({ "description": "a\u{202e}b" }), "inputSchema"),
        (marked(json!({ "$ref": "https://elsewhere.example/s" })), "inputSchema.properties.a.$ref"),
        (json!({ "$defs": { "x": { "$dynamicRef": "other.json#/a" } } }), "inputSchema.$defs.x.$dynamicRef"),
        (json!({ "allOf": [{ "$ref": "file:///etc/passwd" }] }), "inputSchema.allOf[0].$ref"),
        (marked(json!({ "type": "number", "x-mcp-header": "A" })), "inputSchema.properties.a.x-mcp-header"),
        (marked(json!({ "type": "string", "x-mcp-header": "" })), "inputSchema.properties.a.x-mcp-header"),
        (marked(json!({ "type": "string", "x-mcp-header": "a b" })), "inputSchema.properties.a.x-mcp-header"),
        (
            marked(json!({ "type": "string", "x-mcp-header": "a\r\nb" })),
            "inputSchema.properties.a.x-mcp-header",
        ),
        (marked(json!({ "x-mcp-header": "A" })), "inputSchema.properties.a.x-mcp-header"),
        (json!({ "type": "object", "x-mcp-header": "A" }), "inputSchema.x-mcp-header"),
        (
            marked(json!({ "type": "array", "items": { "type": "string", "x-mcp-header": "A" } })),
            "inputSchema.properties.a.items.x-mcp-header",
        ),
        (
            marked(json!({ "anyOf": [{ "type": "string", "x-mcp-header": "A" }] })),
            "inputSchema.properties.a.anyOf[0].x-mcp-header",
        ),
        (
            json!({ "properties": { "a": { "type": "string", "x-mcp-header": "A" }, "b": { "type": "string", "x-mcp-header": "a" } } }),
            "inputSchema.properties.b.x-mcp-header",
        ),
    ] {
        assert_eq!(tool_of(schema.clone()).unwrap_err().0, place, "{schema}");
    }
    assert!(tool_of(marked(deep)).unwrap_err().1.contains("too deeply"));
    // A property, a value and a local reference of these names are none.
    for schema in [
        json!({ "properties": { "x-mcp-header": { "type": "string" }, "$ref": { "type": "string" } } }),
        json!({ "properties": { "a": { "default": { "$ref": "https://a.example", "x-mcp-header": 1 } } } }),
        json!({ "properties": { "a": { "$ref": "#/$defs/a" } }, "$defs": { "a": {} } }),
    ] {
        assert!(tool_of(schema.clone()).is_ok(), "{schema}");
    }
    let listed =
        |name: &str| ListedTool { name: name.to_owned(), input_schema: json!({}), ..ListedTool::default() };
    for name in ["", "a\nb", "a\u{2066}b", &"x".repeat(257)] {
        assert!(server(json!({})).tool(&listed(name)).is_err(), "{name:?}");
    }
}

/// Servers in Go write `null` where a list or a map is empty (xorbitsai/xagent, others).
#[test]
fn keywords_that_are_null_are_not_there() {
    let schema = json!({ "type": null, "properties": null, "required": null, "additionalProperties": false });
    assert_eq!(
        tool_of(schema).unwrap().args.unwrap(),
        json!({ "additionalProperties": false, "type": "object", "properties": {} })
    );
    let inner = json!({ "type": "object", "properties": null, "required": null, "default": null });
    let schema = json!({ "properties": { "a": { "type": "array", "items": inner }, "b": null, "c": { "enum": [null, 1] } } });
    assert_eq!(
        tool_of(schema).unwrap().args.unwrap()["properties"],
        json!({ "a": { "type": "array", "items": { "type": "object", "default": null } }, "b": {}, "c": { "enum": [null, 1] } })
    );
}

/// makenotion/notion-mcp-server#340 and others: OpenAI and Anthropic refuse each request with such a schema.
#[test]
fn a_choice_at_the_root_is_one_object_for_models_and_is_checked_whole() {
    let needs =
        |name: &str| json!({ "properties": { name: { "type": "string" } }, "required": [name, "team"] });
    let schema =
        json!({ "type": "object", "properties": { "team": {} }, "anyOf": [needs("content"), needs("url")] });
    let listed = json!({ "name": "attach", "description": "Attaches.", "inputSchema": schema });
    let server = server(json!({ "provide": { "attach": { "team": "T" } } }));
    let tool = server.tool(&serde_json::from_value(listed).unwrap()).unwrap();
    let (shown, strict, description) = Callable::Tool(&tool).offer();
    let text = json!({ "type": "string" });
    assert_eq!(
        (shown, strict),
        (json!({ "type": "object", "properties": { "content": text, "url": text }, "required": [] }), false)
    );
    assert_eq!(description, "Attaches.\n\nGive the arguments of one of these: content; url.");
    let fits = |args: Value| Callable::Tool(&tool).check(args).is_ok();
    assert!(fits(json!({ "url": "u" })) && fits(json!({ "content": "c" })));
    assert!(!fits(json!({})) && !fits(json!({ "url": 1 })));
}

#[test]
fn a_tool_that_is_a_task_of_the_older_revision_alone_is_not_offered() {
    let tool = |support: &str| {
        let listed = json!({ "name": "a", "inputSchema": {}, "execution": { "taskSupport": support } });
        server(json!({})).tool(&serde_json::from_value(listed).unwrap())
    };
    assert_eq!(tool("required").unwrap_err().0, "execution.taskSupport");
    assert!(tool("optional").is_ok() && tool("forbidden").is_ok());
}

#[test]
fn marks_name_the_argument_by_its_way_through_properties() {
    let schema = json!({ "properties": { "a/b": { "properties": { "c~": { "type": "integer", "x-mcp-header": "Limit" } } }, "d": { "type": "boolean", "x-mcp-header": "D" } } });
    let tool = tool_of(schema).unwrap();
    let run = serde_json::to_value(&tool.run).unwrap();
    assert_eq!(run["mcp"]["headers"], json!({ "D": "/d", "Limit": "/a~1b/c~0" }));
    assert!(!tool.args.unwrap().to_string().contains("x-mcp-header"));
}

#[test]
fn calls_are_checked_as_far_as_the_keywords_are_known() {
    for (schema, args, fine) in [
        (json!({ "properties": { "q": { "type": "string" } }, "required": ["q"] }), json!({}), false),
        (json!({ "properties": { "q": { "type": "string" } } }), json!({ "q": 1 }), false),
        (json!({ "properties": { "q": { "type": "string", "pattern": "^a" } } }), json!({ "q": "b" }), true),
        // Which of these it is, keywords say that are not known here.
        (
            json!({ "properties": { "q": { "oneOf": [{ "$ref": "#/$defs/a" }, { "type": "string", "pattern": "b" }] } } }),
            json!({ "q": "b" }),
            true,
        ),
        (
            json!({ "additionalProperties": false, "patternProperties": { "^x-": {} } }),
            json!({ "x-a": 1 }),
            true,
        ),
        (json!({ "additionalProperties": false }), json!({ "x-a": 1 }), false),
        (
            json!({ "properties": { "q": { "prefixItems": [{ "type": "string" }], "items": { "type": "integer" } } } }),
            json!({ "q": ["a", 1] }),
            true,
        ),
        (json!({ "properties": { "q": { "type": "integer", "default": 5 } } }), json!({}), true),
    ] {
        let tool = tool_of(schema.clone()).unwrap();
        let checked = Callable::Tool(&tool).check(args.clone());
        assert_eq!(checked.is_ok(), fine, "{schema} {args}");
        // Defaults are the server's own matter.
        assert!(checked.is_err() || checked.unwrap() == args);
        let (shown, strict, _) = Callable::Tool(&tool).offer();
        assert!(!strict && shown["type"] == "object" && shown["properties"].is_object(), "{shown}");
    }
}

#[test]
fn what_a_model_gives_as_null_is_left_out_where_the_server_takes_none() {
    let either = json!({ "type": ["string", "null"] });
    for (property, required, given) in [
        (json!({ "type": "boolean" }), json!([]), json!({})),
        (either, json!([]), json!({ "q": null })),
        (json!({}), json!([]), json!({ "q": null })),
    ] {
        let tool = tool_of(json!({ "properties": { "q": property }, "required": required })).unwrap();
        assert_eq!(Callable::Tool(&tool).check(json!({ "q": null })).unwrap(), given);
    }
    let needed = tool_of(json!({ "properties": { "q": { "type": "boolean" } }, "required": ["q"] })).unwrap();
    assert!(Callable::Tool(&needed).check(json!({ "q": null })).is_err());
}

fn catalog() -> Value {
    let tool = json!({ "description": "d", "run": { "mcp": { "server": "linear", "tool": "look" } },
        "variables": [{ "name": "TOKEN", "type": "secret" }] });
    json!({
        "models": { "m": { "provider": "demo", "model": "demo" } },
        "prompts": { "p": { "toolDescription": "d", "model": "m", "prompt": "x", "tools": ["linear__look", { "mcp": "live", "env": { "CITY": "Ulm" } }] } },
        "tools": { "linear__look": tool },
        "mcp": {
            "linear": { "url": "https://l.example/mcp", "headers": { "x": "{{env TOKEN}}", "y": "{{env SENT}}" }, "pinned": { "protocol": "2026-07-28", "hash": "sha256:1" },
                "variables": [{ "name": "TOKEN", "type": "secret" }] },
            "live": { "url": "https://v.example/mcp", "list": "live", "variables": [{ "name": "CITY", "type": "text", "required": true }] },
            "spare": { "url": "https://s.example/mcp", "list": "live" },
        },
        "agents": { "helper": { "sideA": { "prompt": "p" } } },
    })
}

#[test]
fn an_agent_leads_to_the_variables_of_its_servers() {
    let catalog = Catalog::from_json(&catalog().to_string()).unwrap();
    let found = reach(&catalog, catalog.agents.get("helper").unwrap());
    let servers: Vec<&str> = found
        .iter()
        .filter_map(|found| match found.item {
            Item::Server(server) => Some(server.name.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(servers, ["live"]);
    let names: Vec<&str> =
        found.iter().flat_map(|found| found.item.variables()).map(|v| v.name.as_str()).collect();
    assert_eq!(names, ["TOKEN", "CITY"]);
    let given = found.iter().find(|found| matches!(found.item, Item::Server(_))).unwrap();
    assert_eq!(given.above[0].get("CITY").map(String::as_str), Some("Ulm"));
    let declared = DeclaredVariables::of(&catalog);
    assert!(declared.is_secret("TOKEN") && declared.secrets().any(|name| name == "SENT"));
    assert_eq!(declared.kind("CITY"), VariableKind::Text);
    let told =
        bobbin::request::explain::explain(&catalog, "helper", &bobbin::tools::names(), &|_| None).unwrap();
    let told = |field: &str, key: &str| -> Vec<String> {
        told[field]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| format!("{} {}", one["kind"].as_str().unwrap(), one[key].as_str().unwrap_or("-")))
            .collect()
    };
    assert_eq!(
        told("uses", "name")[2..],
        ["tool linear__look", "agent helper", "MCP server linear", "MCP server live"]
    );
    assert_eq!(told("uses", "server")[2], "tool linear");
    assert_eq!(told("unused", "name"), ["MCP server spare"]);
}

#[test]
fn a_run_begins_with_what_its_servers_say() {
    let of =
        |catalog: &Value| Snapshot::of(&Catalog::from_json(&catalog.to_string()).unwrap(), "helper").unwrap();
    let before = of(&catalog());
    let servers = before.fields["mcp"].as_array().unwrap();
    assert_eq!(
        servers.iter().map(|one| one["name"].as_str().unwrap()).collect::<Vec<_>>(),
        ["linear", "live"]
    );
    let mut other = catalog();
    other["mcp"]["linear"]["pinned"]["hash"] = json!("sha256:2");
    let told = of(&other).since(&before.hash, Some(&before.fields)).others.unwrap();
    assert_eq!(told["added"]["mcp"][0]["name"], "linear");
    assert_eq!(told["removed"]["mcp"].as_array().unwrap().len(), 1);
}
