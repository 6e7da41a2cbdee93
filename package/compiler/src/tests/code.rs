//! Files of code and their bundles.

use super::*;
use crate::code;

const CODE: &str = "export default async (state, args) => `hello ${args.name}`;\n";

fn bundles(json: &str) -> BTreeMap<String, code::Bundle> {
    serde_json::from_str(json).unwrap()
}

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
    let made = r#"{ "tools/daily.ts": { "source": "", "exports": ["default"] }, "lib/words.ts": { "source": "", "exports": ["default"] },
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
        let told = report(&compile(&folder, bundles(made), &natives()).unwrap().complaints);
        assert!(told.contains(said), "{file}: {told}");
    }
}

#[test]
fn bundles_stand_for_the_files_that_they_are_made_from() {
    let tool = r#"{ "description": "d", "run": { "code": "x.ts" } }"#;
    let mut folder = folder(&[MODEL, PROMPT, AGENT, ("tools/x.json", tool), ("tools/x.ts", CODE)]);
    let made = r#"{ "tools/x.ts": { "source": "bundled", "uses": ["bobbin/url.js"] }, "bobbin/url.js": { "source": "url" },
        "bobbin/http.js": { "source": "http" } }"#;
    let catalog = compile(&folder, bundles(made), &natives()).unwrap().catalog;
    let modules = [("./tools/x.ts", "bundled"), ("./bobbin/url.js", "url")];
    assert_eq!(
        catalog.modules_of(&["tools/x.ts"]),
        modules.map(|(name, source)| (name.into(), source.into()))
    );
    assert!(!catalog.code.contains_key(WEB_HTTP), "nothing here needs it");

    folder.insert("api/x.ts", Ok(CODE.to_owned()));
    let catalog = compile(&folder, bundles(made), &natives()).unwrap().catalog;
    let modules = catalog.modules_of(&["api/x.ts", WEB_HTTP]);
    assert_eq!(modules[1], ("./bobbin/http.js".to_owned(), "http".to_owned()));
}
