//! Invalid texts and unsupported syntax, with their positions.

use crate::support::{call, call_with, mistake};
use bobbin_compiler::{Language, compile};

#[test]
fn mistakes_of_syntax_have_a_place() {
    for (source, place) in [
        ("let a = ;", (1, 9)),
        ("ok();\r\n  let 1a;", (2, 8)),
        ("/* é😀 */ let = = 1", (1, 17)),
        ("function f() {\n", (2, 1)),
        ("a = `${", (1, 8)),
        ("'open", (1, 1)),
        ("let a: ;", (1, 8)),
        ("interface { a }", (1, 10)),
        ("await = 1", (1, 7)),
        ("return 1", (1, 1)),
        ("'\u{fffd}'; /* \u{fffd} */\nlet é = \u{fffd}", (2, 9)),
        ("let \u{fffd} = '\u{fffd}'", (1, 5)),
        ("'\u{fffd}'; let = = 1; \u{fffd}", (1, 12)),
    ] {
        let found = mistake(&call(source));
        assert_eq!((found.0.as_str(), found.2), ("SyntaxError", Some(place)), "{source}: {}", found.1);
        assert!(!found.1.is_empty());
    }
}

#[test]
fn names_are_exported_once_and_declared() {
    for (source, message, place) in [
        ("export default 1;\nexport default 2", "\"default\" is exported twice", (2, 1)),
        ("const a = 1; export { a, a }; export default 0", "\"a\" is exported twice", (1, 26)),
        (
            "export const a = 1; export { b as a } from './a'; export default 0",
            "\"a\" is exported twice",
            (1, 30),
        ),
        ("export { a }; export function a() {} export default 0", "\"a\" is exported twice", (1, 15)),
        ("export { a }; export default 0", "\"a\" is not declared", (1, 10)),
        (
            "declare const a: 1; export { b, a }; const b = 1; export default 0",
            "\"a\" is not declared",
            (1, 33),
        ),
    ] {
        assert_eq!(mistake(&call(source)), ("SyntaxError".into(), message.into(), Some(place)), "{source}");
    }
    for source in [
        "export function a(): void; export function a() {} export namespace a { export const b = 1 } export default 0",
        "export enum E { A } export enum E { B = 1 } export default 0",
        "type a = 1; const b = 1; export { type a, b as a }; export default 0",
        "export interface a {} const b = 1; export { b as a }; export default 0",
        "export default interface A {} export default class A {}",
        "export class a {} export interface a {} export default 0",
    ] {
        compile(&call(source)).unwrap_or_else(|error| panic!("{source} {error:?}"));
    }
}

#[test]
fn types_are_no_javascript() {
    for source in [
        "let a: T",
        "a as b",
        "enum E {}",
        "type A = 1",
        "class A { private a }",
        "a!",
        "import type a from 'a'",
        "<T>a",
    ] {
        let mut request = call(source);
        request.main.language = Language::Javascript;
        assert_eq!(mistake(&request).0, "SyntaxError", "{source}");
    }
}

#[test]
fn what_the_sandbox_does_not_take_is_named() {
    for (source, message, place) in [
        ("const a = <div>{b}</div>;", "JSX is not supported: call the functions that it stands for", (1, 11)),
        ("const a =\n  <></>;", "JSX is not supported: call the functions that it stands for", (2, 3)),
        ("import a from './a.json' with { type: 'json' }; a", "import attributes are not supported", (1, 31)),
        ("export * from './a' with { a: 'b' }", "import attributes are not supported", (1, 26)),
        (
            "import defer * as a from './a'; a",
            "import phases are not supported: import the module as usual",
            (1, 1),
        ),
    ] {
        assert_eq!(
            mistake(&call(source)),
            ("TypeScriptError".into(), message.into(), Some(place)),
            "{source}"
        );
    }
}

#[test]
fn the_first_mistake_of_the_text_counts() {
    let source = "function f() { @d class A {} }\nconst b = <T>c;\nclass D { accessor e = 1 }\nexport = f;";
    assert_eq!(mistake(&call(source)).2, Some((1, 16)));
    let error =
        compile(&call_with("export default 0", &[("./a.ts", "ok()"), ("./b.ts", "\n\n@d class B {}")]))
            .unwrap_err();
    assert_eq!((error.filename.as_deref(), error.line), (Some("b.ts"), Some(3)));
}
