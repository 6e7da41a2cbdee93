//! Files of endpoints.

use super::*;

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
            "api/index.patch.json: error: PATCH / would hide the runtime's own PATCH /; the thread itself answers there, so put the file into a folder, such as `info/index`",
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
