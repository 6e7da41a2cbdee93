//! Packages of agents: their names, their references, and their visibility.

use bobbin_definitions::definitions::Implementation;

use super::*;

/// Version 1.2.0 of `@corp/standardagent-acme`, whose entry agent is `clerk`.
const ABOUT: (&str, &str) = (
    "packages/rates/package.json",
    r#"{ "name": "@corp/standardagent-acme", "version": "1.2.0", "author": { "name": "Ada" }, "license": "MIT",
         "standardagent": { "entryAgents": ["clerk"] } }"#,
);
const CLERK: (&str, &str) = (
    "packages/rates/agents/clerk.json",
    r#"{ "sideA": { "prompt": "clerk", "stopTool": "rate", "sessionStop": "other", "stopOnResponse": true },
         "exposeAsTool": true, "toolDescription": "d", "license": "ISC", "hooks": ["trim", "own"] }"#,
);
const PROMPTED: (&str, &str) = (
    "packages/rates/prompts/clerk.json",
    r#"{ "toolDescription": "d", "model": "fast", "includeChat": true,
         "prompt": [{ "type": "include", "prompt": "tone" }, { "type": "include", "prompt": "helper" }],
         "tools": ["rate", { "name": "other" }, "inner", "acme/rate2"] }"#,
);
const INNER: (&str, &str) = (
    "packages/rates/agents/inner.json",
    r#"{ "sideA": { "prompt": "tone" }, "exposeAsTool": true, "toolDescription": "d" }"#,
);
const TONE: (&str, &str) = (
    "packages/rates/prompts/tone.md",
    "---\ntoolDescription: d\nmodel: slow\nincludeChat: true\nhooks: [own]\n---\nBe kind.\n",
);
const SLOW: (&str, &str) =
    ("packages/rates/models/slow.json", r#"{ "provider": "demo", "model": "demo", "fallbacks": ["fast"] }"#);
const RATE: (&str, &str) =
    ("packages/rates/tools/rate.json", r#"{ "description": "d", "run": { "code": "rate.ts" } }"#);
const RATE2: (&str, &str) =
    ("packages/rates/tools/rate2.json", r#"{ "description": "d", "run": { "native": "clock" } }"#);
const OWN: (&str, &str) =
    ("packages/rates/hooks/own.json", r#"{ "hook": "filter_messages", "run": { "native": "trim" } }"#);

/// The application's definitions. Two of them have names that the package uses, too.
const SHARED: [(&str, &str); 4] = [
    ("tools/other.json", r#"{ "description": "d", "run": { "native": "clock" } }"#),
    ("tools/rate.json", r#"{ "description": "d", "run": { "native": "clock" } }"#),
    ("hooks/trim.json", r#"{ "hook": "filter_messages", "run": { "native": "trim" } }"#),
    ("prompts/tone.md", "---\ntoolDescription: d\nmodel: fast\nincludeChat: true\n---\nBe brief.\n"),
];

fn packed<'f>(more: &[(&'f str, &'f str)]) -> Vec<(&'f str, &'f str)> {
    let code = ("packages/rates/tools/rate.ts", "export default () => 1");
    let mut files =
        vec![MODEL, PROMPT, AGENT, ABOUT, CLERK, PROMPTED, INNER, TONE, SLOW, RATE, RATE2, OWN, code];
    files.extend(SHARED);
    files.retain(|(path, _)| more.iter().all(|(other, _)| other != path));
    files.extend(more);
    files
}

fn told_with(more: &[(&str, &str)]) -> Vec<String> {
    told(&packed(more))
}

#[test]
fn a_packages_definitions_have_its_id_and_refer_to_its_own_before_the_applications() {
    let compiled = compiled(&packed(&[]));
    assert_eq!(compiled.complaints, []);
    let catalog = compiled.catalog;
    let names = |tools: &[bobbin_definitions::definitions::ToolEntry]| -> Vec<String> {
        tools.iter().map(|tool| tool.name.clone()).collect()
    };
    let prompt = catalog.prompts.get("acme__clerk").unwrap();
    assert_eq!(prompt.name, "acme__clerk");
    assert_eq!(prompt.model, "fast", "the package has no such model");
    assert_eq!(names(&prompt.tools), ["acme__rate", "other", "acme__inner", "acme__rate2"]);
    let parts = serde_json::to_value(&prompt.prompt).unwrap();
    assert_eq!((&parts[0]["prompt"], &parts[1]["prompt"]), (&"acme__tone".into(), &"helper".into()));
    assert_eq!(catalog.prompts.get("acme__tone").unwrap().model, "acme__slow");
    assert_eq!(catalog.prompts.get("acme__tone").unwrap().hooks, ["acme__own"]);
    assert_eq!(catalog.models.get("acme__slow").unwrap().fallbacks, ["fast"]);
    let agent = catalog.agents.get("acme__clerk").unwrap();
    assert_eq!(agent.side_a.prompt, "acme__clerk");
    assert_eq!(agent.side_a.stop_tool.as_deref(), Some("acme__rate"));
    assert_eq!(agent.side_a.session_stop.as_ref().unwrap().name, "other");
    assert_eq!(agent.hooks, ["trim", "acme__own"]);
    let published = [&agent.package_name, &agent.version, &agent.author, &agent.license];
    let published = published.map(|field| field.as_deref().unwrap_or_default());
    assert_eq!(published, ["@corp/standardagent-acme", "1.2.0", "Ada", "ISC"], "its own license");
    assert_eq!(catalog.packages.0.get("acme").unwrap().entry_agents, ["acme__clerk"]);
    let Implementation::Code(code) = &catalog.tools.get("acme__rate").unwrap().run else {
        panic!("it runs code")
    };
    assert_eq!(code.file, "packages/rates/tools/rate.ts");
    assert_eq!(catalog.code.get(&code.file).unwrap().source, "export default () => 1");
    // The application's own definitions are unchanged.
    assert_eq!(catalog.prompts.get("tone").unwrap().prompt, PromptText::Text("Be brief.".into()));
    let read = Catalog::from_json(&serde_json::to_string(&catalog).unwrap()).unwrap();
    assert_eq!(read, catalog);
}

#[test]
fn definitions_are_in_the_folder_agents_or_beside_the_package_file_and_other_files_are_left_alone() {
    let about = r#"{ "name": "acme.two", "standardagent": { "entryAgents": ["a"] } }"#;
    let agent = r#"{ "sideA": { "prompt": "helper" } }"#;
    for (root, listed) in [
        ("packages/x", "{}"),
        ("node_modules/acme.two", r#"{ "dependencies": { "acme.two": "1", "gone": "1" } }"#),
    ] {
        for definitions in ["", "agents/"] {
            let (package, file) =
                (format!("{root}/package.json"), format!("{root}/{definitions}agents/a.json"));
            let (stray, readme) = (format!("{root}/index.js"), format!("{root}/{definitions}README.md"));
            let compiled = compiled(&[
                MODEL,
                PROMPT,
                AGENT,
                ("package.json", listed),
                ("packages/README.md", ""),
                (&package, about),
                (&file, agent),
                (&stray, "require('fs')"),
                (&readme, ""),
            ]);
            assert_eq!(compiled.complaints, [], "{file}");
            assert!(compiled.catalog.agents.contains_key("acme_two__a"), "{file}");
        }
    }
}

#[test]
fn outside_of_a_package_its_entry_agents_are_there_and_nothing_else() {
    let hidden = |name: &str| {
        format!("\"acme/{name}\" is not visible outside of its package, whose entry agents are acme/clerk")
    };
    let prompt = |fields: &str| {
        format!(
            r#"{{ "toolDescription": "d", "includeChat": true, "prompt": "x", "model": "fast", {fields} }}"#
        )
    };
    let listed = |name: &str| {
        let text = prompt(&format!(r#""tools": ["{name}"]"#));
        compiled(&packed(&[("prompts/a.json", &text)]))
    };
    for name in ["acme/clerk", "acme__clerk", "@corp/standardagent-acme/clerk"] {
        let compiled = listed(name);
        assert_eq!(compiled.complaints, [], "{name}");
        assert_eq!(compiled.catalog.prompts.get("a").unwrap().tools[0].name, "acme__clerk");
    }
    for (name, item) in
        [("acme/rate", "rate"), ("acme__rate", "rate"), ("acme/inner", "inner"), ("acme/none", "none")]
    {
        let told: Vec<String> = listed(name).complaints.iter().map(ToString::to_string).collect();
        assert_eq!(told, [format!("prompts/a.json: error in tools[0]: {}", hidden(item))], "{name}");
    }
    let wrong = [
        (r#""hooks": ["acme/own"]"#, "hooks[0]", "own"),
        (r#""prompt": [{ "type": "include", "prompt": "acme__tone" }]"#, "prompt[0].prompt", "tone"),
        (r#""model": "acme/slow""#, "model", "slow"),
    ];
    for (field, at, item) in wrong {
        let text = match field.split_once(':').map(|(name, _)| name) {
            Some(r#""prompt""#) => {
                format!(r#"{{ "toolDescription": "d", "includeChat": true, "model": "fast", {field} }}"#)
            }
            Some(r#""model""#) => {
                format!(r#"{{ "toolDescription": "d", "includeChat": true, "prompt": "x", {field} }}"#)
            }
            _ => prompt(field),
        };
        // No agent has the prompt, so there is also a warning about its hooks.
        let told = told_with(&[("prompts/a.json", &text)]);
        assert_eq!(
            told.last(),
            Some(&format!("prompts/a.json: error in {at}: {}", hidden(item))),
            "{told:?}"
        );
    }
    // Another package is outside, too.
    let about = ("packages/b/package.json", r#"{ "name": "b", "standardagent": { "entryAgents": ["a"] } }"#);
    let agent = ("packages/b/agents/a.json", r#"{ "sideA": { "prompt": "p" } }"#);
    let text = prompt(r#""tools": ["acme/clerk", "acme/rate", "rate"]"#);
    assert_eq!(
        told_with(&[about, agent, ("packages/b/prompts/p.json", &text)]),
        [format!("packages/b/prompts/p.json: error in tools[1]: {}", hidden("rate"))]
    );
    // An agent that may not be called is no tool, and the prompt of the same name does not replace it.
    let shy = (CLERK.0, r#"{ "sideA": { "prompt": "clerk" }, "hooks": ["trim"] }"#);
    assert_eq!(
        told_with(&[shy, ("prompts/a.json", &prompt(r#""tools": ["acme/clerk"]"#))]),
        [
            "prompts/a.json: error in tools[0]: \"acme/clerk\" is an agent that may not be called: set its `exposeAsTool`"
        ]
    );
}

#[test]
fn endpoints_share_their_routes() {
    let endpoint = r#"{ "run": { "native": "report" } }"#;
    let compiled =
        compiled(&packed(&[("packages/rates/api/rates.json", endpoint), ("api/mine.json", endpoint)]));
    assert_eq!(compiled.complaints, []);
    let packages = &compiled.catalog.packages;
    assert_eq!(packages.of_route(&"GET /rates".parse().unwrap()), Some("acme"));
    assert_eq!(packages.of_route(&"GET /mine".parse().unwrap()), None);
    assert_eq!(
        told_with(&[("packages/rates/api/rates.json", endpoint), ("api/rates.get.json", endpoint)]),
        ["packages/rates/api/rates.json: error: api/rates.get.json answers GET /rates already"]
    );
}

#[test]
fn what_is_wrong_with_a_package_is_told_with_its_file_and_field() {
    let about = |text: &str| told(&[MODEL, PROMPT, AGENT, ("packages/x/package.json", text)]);
    let error = |rest: &str| vec![format!("packages/x/package.json: error{rest}")];
    let required = " in standardagent.entryAgents: required but missing: the names of the agents that are visible from outside";
    assert_eq!(about(r#"{ "name": "x" }"#), error(required));
    assert_eq!(about(r#"{ "name": "x", "standardagent": {} }"#), error(required));
    let list = " in standardagent.entryAgents: expected a list of names of agents, at least one: nothing else is visible from outside";
    assert_eq!(about(r#"{ "name": "x", "standardagent": { "entryAgents": [] } }"#), error(list));
    let number = " in standardagent.entryAgents[0]: expected the name of an agent, got 1";
    assert_eq!(about(r#"{ "name": "x", "standardagent": { "entryAgents": [1] } }"#), error(number));
    let unnamed = " in name: required but missing: the package's definitions are named after it";
    assert_eq!(about(r#"{ "standardagent": { "entryAgents": ["a"] } }"#), error(unnamed));
    let odd = " in name: \"a--b\" makes the id \"a__b\", which is none: lower-case letters, digits and single _ between them, starting with a letter";
    assert_eq!(about(r#"{ "name": "a--b", "standardagent": { "entryAgents": ["a"] } }"#), error(odd));
    assert_eq!(
        about("{")[0].split(": ").take(3).collect::<Vec<_>>(),
        ["packages/x/package.json", "error", "is no JSON"]
    );
    let without =
        told(&[MODEL, PROMPT, AGENT, ("packages/x/agents/a.json", "{}"), ("packages/notes.txt", "")]);
    assert!(
        without[1].starts_with("packages/x/package.json: error: a package of agents has this file"),
        "{without:?}"
    );
    assert_eq!(without[0], "packages/notes.txt: warning: not read: each package is a folder in packages/");
    assert_eq!(
        told_with(&[(
            ABOUT.0,
            r#"{ "name": "acme", "standardagent": { "entryAgents": ["clerk", "clrek"] } }"#
        )]),
        [
            "packages/rates/package.json: error in standardagent.entryAgents[1]: the package has no agent named \"clrek\"; did you mean \"clerk\"?"
        ]
    );
    let twin =
        ("packages/twin/package.json", r#"{ "name": "acme", "standardagent": { "entryAgents": ["a"] } }"#);
    assert_eq!(
        told_with(&[twin]),
        [
            "packages/twin/package.json: error in name: packages/rates/package.json is the package \"acme\" already"
        ]
    );
    let nested = ("packages/rates/packages/y/package.json", "{}");
    assert_eq!(
        told_with(&[nested]),
        [
            "packages/rates/packages: error: a package holds no packages: they belong into packages/ of the application"
        ]
    );
    let depends = (
        ABOUT.0,
        r#"{ "name": "acme", "standardagent": { "entryAgents": ["clerk"] }, "dependencies": { "b": "1" } }"#,
    );
    let b = ("node_modules/b/package.json", r#"{ "name": "b", "standardagent": { "entryAgents": ["a"] } }"#);
    assert_eq!(
        told_with(&[depends, b]),
        [
            "packages/rates/package.json: error in dependencies.b: is a package of agents: it is there when the application's own package.json depends on it, too"
        ]
    );
    let taken = ("tools/acme__x.json", r#"{ "description": "d", "run": { "native": "clock" } }"#);
    assert_eq!(
        told_with(&[taken]),
        [
            "tools/acme__x.json: error in name: \"acme__x\": names that start with \"acme__\" are those of the package packages/rates/package.json"
        ]
    );
    let long = format!("packages/rates/tools/{}.json", "x".repeat(60));
    let told = told_with(&[(&long, r#"{ "description": "d", "run": { "native": "clock" } }"#)]);
    assert_eq!(
        told,
        [format!(
            "{long}: error in name: the name \"acme__{}\" has 66 characters; at most 64 are allowed",
            "x".repeat(60)
        )]
    );
    assert_eq!(
        told_with(&[(
            "packages/rates/tools/rate2.json",
            r#"{ "description": 1, "run": { "native": "clock" } }"#
        )]),
        ["packages/rates/tools/rate2.json: error in description: expected a string, got 1"]
    );
}
