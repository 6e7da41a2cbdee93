//! Namespaces become functions that fill an object.

use crate::support::{call, check, mistake};

#[test]
fn namespaces_fill_objects() {
    check(&[
        (
            "namespace N { const a = 1; export function f() {} export class C {} }",
            "var N; (function (N) { const a = 1; function f() {} N.f = f; class C {} N.C = C; })(N || (N = {}));",
        ),
        (
            "export namespace N { export let a = 1, b: T = a, c: T; }",
            "export var N; (function (N) { ; N.a = 1, N.b = N.a ; })(N || (N = {}));",
        ),
        (
            "namespace N { export let a: T; export let b: T, c = 1, d: T; a = c }",
            "var N; (function (N) { ; ; N.c = 1 ; N.a = N.c })(N || (N = {}));",
        ),
        (
            "namespace A.B.C { export const x = 1 }",
            "var A; (function (A) {let B; (function (B) {let C; (function (C) { ; C.x = 1 })(C = B.C || (B.C = {}));})(B = A.B || (A.B = {}));})(A || (A = {}));",
        ),
        (
            "namespace A { namespace B { export const x = 1 } export namespace C { export const y = B.x } }",
            "var A; (function (A) { let B; (function (B) { ; B.x = 1 })(B || (B = {})); let C; (function (C) { ; C.y = B.x })(C = A.C || (A.C = {})); })(A || (A = {}));",
        ),
        (
            "namespace A { export const x = 1 }\nnamespace A { f(x); { const x = 2; f(x) } }",
            "var A; (function (A) { ; A.x = 1 })(A || (A = {}));\n;(function (A) { f(A.x); { const x = 2; f(x) } })(A || (A = {}));",
        ),
        (
            "namespace A { export function f() { return x } export const x = 1; ({ x }); ({ x } = y); ({ x = 2 } = y); x++; x(); typeof x }",
            "var A; (function (A) { function f() { return A.x } A.f = f; ; A.x = 1; ({ x: A.x }); ({ x: A.x } = y); ({ x: A.x = 2 } = y); A.x++; A.x(); typeof A.x })(A || (A = {}));",
        ),
        (
            "namespace A { export const { a, b: [c = a], ...d } = f(), [e] = g }",
            "var A; (function (A) { ; ({ a: A.a, b: [A.c = A.a], ...A.d } = f()), [A.e] = g })(A || (A = {}));",
        ),
        (
            "class A {} namespace A { export const x = 1 }",
            "class A {} ;(function (A) { ; A.x = 1 })(A || (A = {}));",
        ),
        (
            "export function f() {} export namespace f { export const x = 1 }",
            "export function f() {} ;(function (f) { ; f.x = 1 })(f || (f = {}));",
        ),
        (
            "enum E { A } namespace E { export const x = E.A }",
            r#"var E; (function (E) { E[E["A"] = 0] = "A"; })(E || (E = {})); ;(function (E) { ; E.x = E.A })(E || (E = {}));"#,
        ),
        (
            "namespace N { export class N {} export const x = new N() }",
            "var N; (function (N_1) { class N {} N_1.N = N; ; N_1.x = new N() })(N || (N = {}));",
        ),
        (
            "namespace N { export enum E { A } export const e = E.A }",
            r#"var N; (function (N) { let E; (function (E) { E[E["A"] = 0] = "A"; })(E = N.E || (N.E = {})); ; N.e = E.A })(N || (N = {}));"#,
        ),
        (
            "namespace N { export type T = 1; export declare const a: 1; export interface I {} a }",
            "var N; (function (N) { ; ; ; N.a })(N || (N = {}));",
        ),
        (
            "declare namespace M { const x: 1 } namespace N { export namespace Empty { type T = 1 } export const y = 1 }",
            "; var N; (function (N) { ; ; N.y = 1 })(N || (N = {}));",
        ),
        (
            "namespace N { export abstract class A { private x = 1 } export async function* f<T>() {} }",
            "var N; (function (N) { class A { x = 1 } N.A = A; async function* f () {} N.f = f; })(N || (N = {}));",
        ),
    ]);
}

#[test]
fn aliases_stay_when_they_are_values() {
    check(&[
        ("import A = B.C; A()", "var A = B.C; A()"),
        ("import A = B.C; let a: A", "; let a;"),
        ("export import A = B.C", "export var A = B.C"),
        ("namespace B { export type C = 1 } export import A = B.C; import D = B.C", "; ; ;"),
        (
            "namespace B { export const c = 1 } namespace N { export import A = B.c; A } import M = N; M",
            "var B; (function (B) { ; B.c = 1 })(B || (B = {})); var N; (function (N) { ; N.A = B.c; N.A })(N || (N = {})); var M = N; M",
        ),
        ("import A = B.C; import D = A.E; D", "var A = B.C; var D = A.E; D"),
        ("import A = B.C; export { A }", "var A = B.C; export { A }"),
        ("import a from \"host\"; import B = a.b; let x: B", "; ; let x;"),
        ("import a from \"host\"; import B = a.b; B", "import a from \"host\"; var B = a.b; B"),
    ]);
}

#[test]
fn what_a_namespace_cannot_hold_is_refused() {
    for (source, message, place) in [
        (
            "import a = require(\"a\"); a",
            "`import … = require(…)` is not supported: write `import … from …`",
            (1, 1),
        ),
        ("const a = 1; export = a;", "`export =` is not supported: write `export default`", (1, 14)),
    ] {
        assert_eq!(
            mistake(&call(source)),
            ("TypeScriptError".into(), message.into(), Some(place)),
            "{source}"
        );
    }
}
