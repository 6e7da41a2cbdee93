//! Inconsistent requests.

use std::collections::BTreeMap;

use crate::support::{call, call_with, mistake};
use bobbin_compiler::{Language, MAX_SOURCE_BYTES, Request, compile, compile_json};

#[test]
fn names_of_modules_are_checked() {
    for (name, message) in [
        ("lib.ts", "modules: \"lib.ts\" is not a relative specifier, which begins with ./ or ../"),
        ("/lib.ts", "modules: \"/lib.ts\" is not a relative specifier, which begins with ./ or ../"),
        ("https://x/y", "modules: \"https://x/y\" is not a relative specifier, which begins with ./ or ../"),
        ("import:x", "modules: \"import:x\" must not begin with \"import:\", which is the sandbox's own"),
        ("./import:x", "modules: \"import:x\" must not begin with \"import:\", which is the sandbox's own"),
        (
            "./x/../globals:",
            "modules: \"globals:\" must not begin with \"globals:\", which is the sandbox's own",
        ),
        ("./a\0", "modules: \"./a\\0\" must not hold NUL"),
        ("./", "modules: \"./\" names no file"),
        ("./a/", "modules: \"./a/\" names no file"),
        ("..", "modules: \"..\" is the same module as ../."),
        ("./a.json", "modules: \"./a.json\" is no module: JSON cannot be imported"),
        ("./x/../b.ts", "modules: \"./x/../b.ts\" is the same module as ./b.ts"),
        ("./main.ts", "modules: \"./main.ts\" is the same module as the main module"),
    ] {
        let mut request = call_with("export default 0", &[("./b.ts", ""), ("../.", ""), (name, "")]);
        request.main.filename = "main.ts".into();
        assert_eq!(mistake(&request), ("InvalidOptions".into(), message.into(), None), "{name}");
    }
}

#[test]
fn names_of_imports_are_checked() {
    for (name, message) in [
        ("./a", "imports: \"./a\" is not a bare specifier: it is relative"),
        ("", "imports: \"\" is not a bare specifier: it is empty"),
        ("/a", "imports: \"/a\" is not a bare specifier: it is an absolute path"),
        ("https://a", "imports: \"https://a\" is not a bare specifier: it is a URL"),
        ("node:fs", "imports: \"node:fs\" is not a bare specifier: it is a URL"),
        ("a\0b", "imports: \"a\\0b\" must not hold NUL"),
        ("sandbox:a", "imports: \"sandbox:a\" must not begin with \"sandbox:\", which is the sandbox's own"),
    ] {
        let request =
            Request { imports: BTreeMap::from([(name.to_owned(), vec![])]), ..call("export default 0") };
        assert_eq!(mistake(&request), ("InvalidOptions".into(), message.into(), None), "{name}");
    }
}

#[test]
fn the_filename_is_checked() {
    for (name, message) in [
        ("", "filename must not be empty"),
        ("globals:", "filename: \"globals:\" must not begin with \"globals:\", which is the sandbox's own"),
        ("a\0", "filename: \"a\\0\" must not hold NUL"),
    ] {
        let mut request = call("export default 0");
        request.main.filename = name.into();
        assert_eq!(mistake(&request), ("InvalidOptions".into(), message.into(), None), "{name}");
    }
}

#[test]
fn the_sources_have_a_size() {
    let half = " ".repeat(MAX_SOURCE_BYTES / 2);
    assert!(compile(&call_with("export default 0", &[("./a.ts", &half)])).is_ok());
    let found = mistake(&call_with("export default 0", &[("./a.ts", &half), ("./b.ts", &half)]));
    assert_eq!(found.0, "InvalidOptions");
    assert!(found.1.ends_with("and 5242880 are allowed"), "{}", found.1);
}

#[test]
fn the_language_of_a_module_is_in_its_name() {
    let with = |language, name| {
        let mut request = call_with("export default 0", &[(name, "let a: T")]);
        request.main.language = language;
        compile(&request).is_ok()
    };
    for (name, typescript, javascript) in [
        ("./a.ts", true, true),
        ("./a.mts", true, true),
        ("./a.js", false, false),
        ("./a.mjs", false, false),
        ("./a", true, false),
    ] {
        assert_eq!(with(Language::Typescript, name), typescript, "{name}");
        assert_eq!(with(Language::Javascript, name), javascript, "{name}");
    }
}

#[test]
fn json_comes_in_and_goes_out() {
    let request = r#"{"main":{"filename":"<runCode>","source":"import { a } from './m'; export const f = a as 1","language":"typescript"},
        "modules":[["./m.ts","export enum a { b }"]],"imports":{"host":["default"]},"globals":["g"],"fn":"f"}"#;
    assert_eq!(
        compile_json(request.as_bytes()),
        r#"{"modules":[{"name":"<runCode>","code":"import { a } from './m'; export const f = a;    \nimport { g } from \"globals:\";","resolved":[["./m","m.ts"]]},{"name":"m.ts","code":"export var a; (function (a) { a[a[\"b\"] = 0] = \"b\"; })(a || (a = {}));\nimport { g } from \"globals:\";","resolved":[],"moved":[[1,30,16],[1,51,18],[1,70,20]]}]}"#
    );
    assert_eq!(
        compile_json(
            br#"{"main":{"filename":"f","source":"\n a b","language":"javascript"},"fn":"default"}"#
        ),
        r#"{"error":{"name":"SyntaxError","message":"Expected a semicolon or an implicit semicolon after a statement, but found none","line":2,"column":3,"filename":"f"}}"#
    );
    for malformed in [
        "",
        "{}",
        "[]",
        "{\"main\":1}",
        "\u{1}",
        r#"{"main":{"filename":"f","source":"","language":"python"},"fn":"f"}"#,
    ] {
        assert!(
            compile_json(malformed.as_bytes())
                .starts_with(r#"{"error":{"name":"InvalidOptions","message":"the request is malformed: "#),
            "{malformed}"
        );
    }
    assert!(compile_json(b"\xff").contains("InvalidOptions"));
}
