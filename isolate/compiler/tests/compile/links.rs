//! Names that modules import from each other.

use std::collections::BTreeMap;

use crate::support::{call_with, mistake};
use bobbin_compiler::{Request, compile};

/// A call with a host namespace and modules that re-export each other's names.
fn linked(source: &str) -> Request {
    let modules = [
        ("./a.ts", "export const a = 1, x = 1; export default 2; export type T = 1;"),
        ("./b.ts", "export const b = 1, x = 2;"),
        ("./stars.ts", "export * from './a'; export * from './b'; export * from 'host';"),
        (
            "./chain.ts",
            "export { a as first } from './stars'; import { b } from './stars'; export { b as second, b as \"a-b\" };",
        ),
        ("./spaces.ts", "export * as all from './a'; import * as more from './b'; export { more };"),
        ("./same.ts", "export * from './a'; export { a } from './a'; export * from './again';"),
        ("./again.ts", "export { a, a as y } from './a';"),
        ("./twice.ts", "export * from './again'; export * from './same';"),
        ("./self.ts", "import { a, b } from './self'; export const a = b; export { a as b };"),
        (
            "./types.ts",
            "export type { T } from './a'; export type * as all from './a'; export class C {} export enum E { A } export namespace N { type X = 1 }",
        ),
    ];
    let imports =
        BTreeMap::from([("host".to_owned(), vec!["default".to_owned(), "h".to_owned(), "x".to_owned()])]);
    Request { imports, ..call_with(source, &modules) }
}

#[test]
fn names_that_exist_are_found() {
    for source in [
        "import { a } from './a'; export default a",
        "import two, { a as b } from './a.ts'; export default [two, b]",
        "import { default as two } from './a'; export default two",
        "import { a, b, h } from './stars'; export default [a, b, h]",
        "import { first, second, 'a-b' as c } from './chain'; export default [first, second, c]",
        "import { all, more } from './spaces'; export default [all, more]",
        "import { a, y } from './twice'; export default [a, y]",
        "import * as n from './stars'; export default n.nothing",
        "import host, { h } from 'host'; export default [host, h]",
        "import * as n from 'host'; export default n",
        "import { a } from './self'; export default a",
        "import { C, E } from './types'; export default [C, E]",
        "export { a as default } from './a'",
        "export { default } from 'host'",
        "import { a } from './a'; export { a as default }",
        "import './a'; import 'host'; export default 0",
    ] {
        compile(&linked(source)).unwrap_or_else(|error| panic!("{source} {error:?}"));
    }
}

#[test]
fn names_that_do_not_exist_are_mistakes_with_a_place() {
    for (source, message, place) in [
        ("import { c } from './a'; export default c", "\"./a\" has no export \"c\"", (1, 10)),
        (
            "let x;\nimport y, {\n  a } from './b'; export default [y, a]",
            "\"./b\" has no export \"default\"",
            (2, 8),
        ),
        ("import d from './stars'; export default d", "\"./stars\" has no export \"default\"", (1, 8)),
        (
            "import { x } from './stars'; export default x",
            "\"./stars\" exports \"x\" by two \"export *\": it is ambiguous",
            (1, 10),
        ),
        ("import { g } from 'host'; export default g", "\"host\" has no export \"g\"", (1, 10)),
        ("export { q as r } from './a'; export default 0", "\"./a\" has no export \"q\"", (1, 10)),
        ("import { T } from './a'; export default T", "\"T\" is a type in \"./a\": it has no value", (1, 10)),
        (
            "import { T } from './types'; T; export default 0",
            "\"T\" is a type in \"./types\": it has no value",
            (1, 10),
        ),
        (
            "import { N } from './types'; N; export default 0",
            "\"N\" is a type in \"./types\": it has no value",
            (1, 10),
        ),
        (
            "import { toString } from './a'; export default toString",
            "\"./a\" has no export \"toString\"",
            (1, 10),
        ),
    ] {
        assert_eq!(mistake(&linked(source)), ("LinkError".into(), message.into(), Some(place)), "{source}");
    }
}

#[test]
fn the_wanted_export_must_exist() {
    for (source, wanted, found) in [
        ("export default 1", "default", None),
        ("export const a = 1", "a", None),
        ("export * from './a'", "a", None),
        ("export * from 'host'", "h", None),
        ("export * as ns from 'host'", "ns", None),
        ("export const a = 1", "default", Some("export \"default\" not found")),
        ("export * from './a'", "default", Some("export \"default\" not found")),
        ("export * from 'host'", "g", Some("export \"g\" not found")),
        ("export type a = 1", "a", Some("export \"a\" is a type: it has no value")),
        ("export { T } from './a'", "T", Some("export \"T\" is a type: it has no value")),
        ("export * from './stars'", "x", Some("export \"x\" is ambiguous: two \"export *\" bring one")),
        ("export const a = 1", "__proto__", Some("export \"__proto__\" not found")),
    ] {
        let answer = compile(&Request { export: wanted.into(), ..linked(source) });
        assert_eq!(answer.err().map(|error| error.message).as_deref(), found, "{source} {wanted}");
    }
}

#[test]
fn a_name_handed_on_too_often_is_a_mistake_and_not_a_fall() {
    let names: Vec<String> =
        (0..2_000).map(|at| format!("export {{ a{at} as a{} }} from './x';", at + 1)).collect();
    let source = names.concat();
    let request = call_with("import { a2000 } from './x'; export default a2000", &[("./x.js", &source)]);
    assert_eq!(mistake(&request).1, "\"./x\" hands \"a2000\" on through too many modules");
}

#[test]
fn circles_end() {
    let circle = |source| {
        let modules = [
            ("./one.ts", "export * from './two'; export const here = 1;"),
            ("./two.ts", "export * from './one'; export { lost } from './three';"),
            ("./three.ts", "export { lost } from './two'; export * from './three';"),
        ];
        mistake(&call_with(source, &modules))
    };
    let lost = ("LinkError".to_owned(), "\"./one\" has no export \"lost\"".to_owned(), Some((1, 10)));
    assert_eq!(circle("import { lost } from './one'; export default lost"), lost);
    let inner = circle("import { here } from './two'; export default here");
    assert_eq!(inner.1, "\"./three\" has no export \"lost\"");
}
