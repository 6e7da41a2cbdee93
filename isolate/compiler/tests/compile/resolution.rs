//! From specifiers to modules, at compile time and at run time.

use std::collections::BTreeMap;

use crate::support::{call_with, mistake};
use bobbin_compiler::{Request, compile, resolve_json};

const MODULES: [(&str, &str); 9] = [
    ("./a.ts", "export default 1"),
    ("./b.js", "export default 1"),
    ("./b.ts", "export default 1"),
    ("./dir/index.ts", "import '../a'; import './deep/c'; import '..'; export default 1"),
    ("./dir/deep/c.mjs", "import '../../a.js'; import '../index.js'; export default 1"),
    ("../up.ts", "import './up2'; export default 1"),
    ("../up2.ts", "export default 1"),
    ("./index.js", "export default 1"),
    ("./bare name", "export default 1"),
];

fn request(source: &str) -> Request {
    let imports = BTreeMap::from([("host".to_owned(), vec![]), ("@a/b".to_owned(), vec![])]);
    Request { imports, ..call_with(source, &MODULES) }
}

const FOUND: [(&str, &str); 20] = [
    ("./a.ts", "a.ts"),
    ("./a", "a.ts"),
    ("./a.js", "a.ts"),
    ("./b", "b.ts"),
    ("./b.js", "b.js"),
    ("./b.ts", "b.ts"),
    ("./dir", "dir/index.ts"),
    ("./dir/", "dir/index.ts"),
    ("./dir/index", "dir/index.ts"),
    ("./dir/deep/c", "dir/deep/c.mjs"),
    ("./dir/../a", "a.ts"),
    ("././a", "a.ts"),
    ("./x/y/../../a", "a.ts"),
    ("../up", "../up.ts"),
    (".", "index.js"),
    ("./", "index.js"),
    ("./bare name", "bare name"),
    ("host", "import:host"),
    ("@a/b", "import:@a/b"),
    ("./dir//deep/c", "dir/deep/c.mjs"),
];

const LOST: [(&str, &str); 14] = [
    ("./c", "\"./c\" is not among the modules of this call"),
    ("./a.ts.js", "\"./a.ts.js\" is not among the modules of this call"),
    ("../a", "\"../a\" is not among the modules of this call"),
    ("a", "\"a\" is not among the imports of this call"),
    ("a.ts", "\"a.ts\" is not among the imports of this call"),
    ("https://x.test/a.js", "\"https://x.test/a.js\" cannot be imported: it is a URL"),
    ("node:fs", "\"node:fs\" cannot be imported: it is a URL"),
    ("cloudflare:workers", "\"cloudflare:workers\" cannot be imported: it is a URL"),
    ("data:text/javascript,1", "\"data:text/javascript,1\" cannot be imported: it is a URL"),
    ("import:host", "\"import:host\" cannot be imported: it is a URL"),
    ("globals:", "\"globals:\" cannot be imported: it is a URL"),
    ("/a.ts", "\"/a.ts\" cannot be imported: it is an absolute path"),
    ("", "\"\" cannot be imported: it is empty"),
    ("#a", "\"#a\" is not among the imports of this call"),
];

#[test]
fn specifiers_mean_modules() {
    for (specifier, name) in FOUND {
        let answer = compile(&request(&format!("import {specifier:?}; export default 0")))
            .unwrap_or_else(|error| panic!("{error:?}"));
        assert_eq!(answer.modules[0].resolved, [(specifier.to_owned(), name.to_owned())]);
    }
    let answer = compile(&request("export default 0")).unwrap();
    let names: Vec<&str> = answer.modules.iter().map(|module| module.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "<runCode>",
            "a.ts",
            "b.js",
            "b.ts",
            "dir/index.ts",
            "dir/deep/c.mjs",
            "../up.ts",
            "../up2.ts",
            "index.js",
            "bare name"
        ]
    );
    let of = |name: &str| answer.modules.iter().find(|module| module.name == name).unwrap().resolved.clone();
    let pair = |(specifier, name): (&str, &str)| (specifier.to_owned(), name.to_owned());
    assert_eq!(
        of("dir/index.ts"),
        [("..", "index.js"), ("../a", "a.ts"), ("./deep/c", "dir/deep/c.mjs")].map(pair)
    );
    assert_eq!(of("dir/deep/c.mjs"), [("../../a.js", "a.ts"), ("../index.js", "dir/index.ts")].map(pair));
    assert_eq!(of("../up.ts"), [("./up2", "../up2.ts")].map(pair));
}

#[test]
fn specifiers_that_mean_nothing_are_mistakes_with_a_place() {
    for (specifier, message) in LOST {
        let found = mistake(&request(&format!("\n  import {specifier:?}; export default 0")));
        assert_eq!(found, ("LinkError".into(), message.into(), Some((2, 10))));
    }
    for statement in [
        "export * from 'lost'",
        "export { a } from 'lost'",
        "import a from 'lost'; a",
        "export * as a from 'lost'",
    ] {
        let error = compile(&request(&format!("{statement}; export default 0"))).unwrap_err();
        assert_eq!(error.specifier.as_deref(), Some("lost"), "{statement}");
        assert_eq!(error.filename.as_deref(), Some("<runCode>"), "{statement}");
    }
}

#[test]
fn a_mistake_in_a_module_names_that_module() {
    let error =
        compile(&call_with("import './x'; export default 0", &[("./x.ts", "\nimport './y'")])).unwrap_err();
    assert_eq!((error.filename.as_deref(), error.line, error.column), (Some("x.ts"), Some(2), Some(8)));
}

#[test]
fn dynamic_imports_are_resolved_when_they_can_be() {
    let answer = compile(&request(
        "export default () => [import('./a'), import(`./b`), import('lost'), import(x), import(`./${y}`)]",
    ))
    .unwrap();
    let resolved =
        [("./a", "a.ts"), ("./b", "b.ts")].map(|(specifier, name)| (specifier.to_owned(), name.to_owned()));
    assert_eq!(answer.modules[0].resolved, resolved);
}

#[test]
fn at_run_time_the_rules_are_the_same() {
    let names: Vec<&str> = vec![
        "a.ts",
        "b.js",
        "b.ts",
        "dir/index.ts",
        "dir/deep/c.mjs",
        "../up.ts",
        "../up2.ts",
        "index.js",
        "bare name",
    ];
    let ask = |from: &str, specifier: &str| -> serde_json::Value {
        let request = serde_json::json!({ "main": "<runCode>", "modules": names, "imports": ["host", "@a/b"], "from": from, "specifier": specifier });
        serde_json::from_str(&resolve_json(request.to_string().as_bytes())).unwrap()
    };
    for (specifier, name) in FOUND {
        assert_eq!(ask("<runCode>", specifier), serde_json::json!({ "name": name }));
    }
    for (specifier, message) in LOST {
        let error = serde_json::json!({ "name": "LinkError", "message": message, "filename": "<runCode>", "specifier": specifier });
        assert_eq!(ask("<runCode>", specifier), serde_json::json!({ "error": error }));
    }
    assert_eq!(ask("dir/deep/c.mjs", "../../a"), serde_json::json!({ "name": "a.ts" }));
}
