//! Which imports and exports stay.

use std::collections::BTreeMap;

use crate::support::{call, call_with, check_in_place, code, plain};
use bobbin_compiler::{Language, Request, compile};

#[test]
fn imports_stay_when_the_code_uses_them() {
    check_in_place(&[
        (
            "import d, { a, b as c } from \"host\"; d; let x: a; c",
            "import d, { b as c } from \"host\"; d; let x ; c",
        ),
        ("import d, { a } from \"host\"; a; let x: d", "import { a } from \"host\"; a; let x;"),
        ("import d, * as n from \"host\"; d; let x: n.T", "import d from \"host\"; d; let x;"),
        ("import d, * as n from \"host\"; n; let x: d", "import * as n from \"host\"; n; let x;"),
        ("import d, { a } from \"host\"; d; let x: a", "import d, { } from \"host\"; d; let x;"),
        ("import { a, b } from \"nowhere\"; let x: a | typeof b", "; let x;"),
        ("import { a } from \"nowhere\"; function f(a) { return a }", "; function f(a) { return a }"),
        (
            "import { a } from \"nowhere\"; type b = { [a]: 1 }; interface c extends a {} class d implements a {}",
            "; ; ; class d {}",
        ),
        (
            "import { a } from \"host\"; class d extends a {}",
            "import { a } from \"host\"; class d extends a {}",
        ),
        ("import {} from \"nowhere\"; import \"host\"", "; import \"host\""),
        (
            "import type d from \"nowhere\"; import type { a } from \"nowhere\"; import type * as n from \"nowhere\"",
            "; ; ;",
        ),
        ("import { type a, b } from \"host\"; b", "import { b } from \"host\"; b"),
        ("import { type as, a as as_ } from \"host\"; as_", "import { a as as_ } from \"host\"; as_"),
        ("import type, { a } from \"host\"; type; a", "import type, { a } from \"host\"; type; a"),
        ("import { a as /* , */ b , } from \"host\"; let c: b", "; let c;"),
        ("import a from \"host\"; a satisfies T; export {}", "import a from \"host\"; a ; export {}"),
        ("import a from \"nowhere\"; declare const b: typeof a; declare class C extends a {}", "; ; ;"),
    ]);
}

#[test]
fn exports_stay_when_they_are_values() {
    check_in_place(&[
        ("type A = 1; const b = 1; export { A, b, type b as c }", "; const b = 1; export { b, }"),
        ("interface A {} export { A }; export type { A as B }", "; ; ;"),
        (
            "export { a, type T } from \"host\"; export { type U } from \"nowhere\"; export type { V } from \"nowhere\"",
            "export { a, } from \"host\"; ; ;",
        ),
        (
            "export * from \"host\"; export type * from \"nowhere\"; export type * as t from \"nowhere\"",
            "export * from \"host\"; ; ;",
        ),
        ("export * as n from \"host\"", "export * as n from \"host\""),
        ("import { a } from \"nowhere\"; export type { a }; export { type a as b }", "; ; ;"),
        (
            "import { a } from \"host\"; export { a as \"b-c\" }",
            "import { a } from \"host\"; export { a as \"b-c\" }",
        ),
        ("class A {} interface A {} export { A }", "class A {} ; export { A }"),
        ("enum_(); export const x: T = 1; export let y!: T", "enum_(); export const x = 1; export let y ;"),
    ]);
}

#[test]
fn default_exports_are_told_apart() {
    for (source, wanted) in [
        ("interface A {} export default A; export const x = 1", "; ; export const x = 1"),
        ("export default interface A {} export const x = 1", "; export const x = 1"),
        (
            "export default abstract class A<T> {} export const x = 1",
            "export default class A {} export const x = 1",
        ),
        (
            "export default function f(): void; export default function f(a?: any) {} export const x = 1",
            "; export default function f(a ) {} export const x = 1",
        ),
        (
            "export default <T,>(a: T): T => a as any\n;[1]; export const x = 1",
            "export default (a ) => a\n;[1]; export const x = 1",
        ),
        (
            "export default <any>function () {}; export const x = 1",
            "export default ( function () {}); export const x = 1",
        ),
        (
            "const a = 1; type a = 2; export default a; export const x = 1",
            "const a = 1; ; export default a; export const x = 1",
        ),
    ] {
        let answer = compile(&Request { export: "x".into(), ..call(source) })
            .unwrap_or_else(|error| panic!("{source} {error:?}"));
        assert_eq!(plain(code(&answer)), plain(wanted), "{source}");
    }
}

#[test]
fn what_another_module_knows_to_be_a_type_goes() {
    let types = "export interface T {} export type U = 1; export const v = 1;";
    for (source, wanted) in [
        ("export { T, v } from \"./t\"; export default 0", "export { v } from \"./t\"; export default 0"),
        ("export { T, U as W } from \"./t\"; export default 0", "; export default 0"),
        (
            "import { T, v } from \"./t\"; export { T, v }; export default 0",
            "import { v } from \"./t\"; export { v }; export default 0",
        ),
        ("import { T } from \"./again\"; export { T as X }; export default 0", "; ; export default 0"),
        (
            "import { v } from \"./again\"; export { v }; export default 0",
            "import { v } from \"./again\"; export { v }; export default 0",
        ),
    ] {
        let modules = [("./t.ts", types), ("./again.ts", "export * from './t'")];
        let answer =
            compile(&call_with(source, &modules)).unwrap_or_else(|error| panic!("{source} {error:?}"));
        assert_eq!(plain(code(&answer)), plain(wanted), "{source}");
    }
}

#[test]
fn javascript_keeps_unused_imports() {
    let mut request = call("import a, { b } from \"host\"; export default 1");
    request.main.language = Language::Javascript;
    request.imports = BTreeMap::from([("host".to_owned(), vec!["default".to_owned(), "b".to_owned()])]);
    assert_eq!(code(&compile(&request).unwrap()), request.main.source);
}
