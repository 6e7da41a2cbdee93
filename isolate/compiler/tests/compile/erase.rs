//! Types become white space in place.

use crate::support::{assert_in_place, check_in_place, erased};

#[test]
fn annotations_go() {
    check_in_place(&[
        ("let x: number = 1, y!: string, z: { a: 1; b(): void } | null;", "let x = 1, y , z ;"),
        ("const { a, b: [c] }: T = d;", "const { a, b: [c] } = d;"),
        (
            "function f<T extends U = V>(a: T, b?: T, { c }: U = {}, ...d: T[]): a is T {}",
            "function f (a , b , { c } = {}, ...d ) {}",
        ),
        ("function f(this: T) {} function g(this: T, a: A) {}", "function f( ) {} function g( a ) {}"),
        ("function f(a: any): asserts a is T {}", "function f(a ) {}"),
        (
            "const f = <T,>(a: T): T => a, g = async <T>(a?: T) => a;",
            "const f = (a ) => a, g = async (a ) => a;",
        ),
        ("const f = (a: new () => T, b: abstract new () => U): typeof a => b;", "const f = (a , b ) => b;"),
        ("try {} catch (e: unknown) {}", "try {} catch (e ) {}"),
        (
            "for (const a: T of b) {} for (let i: number = 0; i < 1;) {} for (let i: number; ;) {}",
            "for (const a of b) {} for (let i = 0; i < 1;) {} for (let i ; ;) {}",
        ),
        (
            "let a: unique symbol, b: `a${string}`, c: import(\"x\").Y, d: A[\"b\"], e: (typeof f)[number];",
            "let a , b , c , d , e ;",
        ),
        (
            "const o = { m<T>(this: T, a?: T): void {}, get x(): T { return 1 }, async *g<T>(): any {} };",
            "const o = { m ( a ) {}, get x() { return 1 }, async *g () {} };",
        ),
    ]);
}

#[test]
fn assertions_go() {
    check_in_place(&[
        ("a = b as any as C<D>;", "a = b ;"),
        ("a = { b: 1 } as const satisfies T;", "a = { b: 1 } ;"),
        ("(a as any).b = (<any>c).d!.e![0]!;", "(a ).b = ( c).d .e [0] ;"),
        (
            "(a as any) = 1; (a!)++; [a as any, b!] = c; ({ a: b as any } = c);",
            "(a ) = 1; (a )++; [a , b ] = c; ({ a: b } = c);",
        ),
        ("for ((a as any) of b) {} for (a! in b) {}", "for ((a ) of b) {} for (a in b) {}"),
        ("a = <T>b; a = <T><U>b; a = <const>[1];", "a = b; a = b; a = [1];"),
        ("a?.b!.c; a!?.b; (a?.b)!.c; a?.[0]!.b?.()!", "a?.b .c; a ?.b; (a?.b) .c; a?.[0] .b?.();"),
        ("a = b as any + 1; a = b! + c!; if (a! < b!) {}", "a = b + 1; a = b + c ; if (a < b ) {}"),
        ("a = b as any ? c as any : d as any;", "a = b ? c : d ;"),
        ("a = b! as any, c = d satisfies T;", "a = b , c = d ;"),
        ("a = `${b as any}` + f(c as any, ...(d as any));", "a = `${b }` + f(c , ...(d ));"),
        ("async () => { await (a as any); await <any>a }", "async () => { await (a ); await a }"),
    ]);
}

#[test]
fn type_arguments_go() {
    check_in_place(&[
        (
            "f<T>(a); new A<T>; new A<B<C>>(); a<T>`b`; f?.<T>(a); super_<T>().b<U>();",
            "f (a); new A ; new A (); a `b`; f?. (a); super_ ().b ();",
        ),
        ("const f = g<T>; const h = a.b<T>;", "const f = g ; const h = a.b ;"),
        (
            "class A extends B<C>() {} class D extends E<F> implements G<H>, I.J {}",
            "class A extends B () {} class D extends E {}",
        ),
        ("a < b > c; f(a < b, c > d); x = a<b>(c);", "a < b > c; f(a < b, c > d); x = a (c);"),
    ]);
}

#[test]
fn declarations_without_code_go() {
    check_in_place(&[
        ("type A<T> = { a: T };\nlet a;", "; \nlet a;"),
        ("interface A extends B<C> { a: 1 }\nlet a;", ";\nlet a;"),
        (
            "declare let a: T; declare const b: U, c: V; declare function f(): void; declare class D { x: 1 }",
            "; ; ; ;",
        ),
        (
            "declare enum E { A } declare const enum F { A } declare namespace N { const x: 1 } declare module M {}",
            "; ; ; ;",
        ),
        ("declare module \"x\" { export const a: 1 } declare global { interface Window {} }", "; ;"),
        (
            "function f(a: string): void; function f(a: number): void; function f(a: any) {}",
            "; ; function f(a ) {}",
        ),
        ("export function f(a: string): void; export function f(a: any) {}", "; export function f(a ) {}"),
        (
            "export type A = 1; export interface B {} export declare const c: 1; export declare function d(): void;",
            "; ; ; ;",
        ),
        ("export abstract class A {} abstract class B {}", "export class A {} class B {}"),
        (
            "if (a) { type B = 1 } function f() { interface C {} return 1 }",
            "if (a) { ; } function f() { ; return 1 }",
        ),
        ("export as namespace X;", ";"),
        ("namespace A { export type B = 1; interface C {} namespace D { type E = 1 } } module F {}", "; ;"),
        (
            "type = 1; declare = 2; abstract = 3; namespace = 4; as = 5; satisfies = 6; let type, of; type\nA",
            "type = 1; declare = 2; abstract = 3; namespace = 4; as = 5; satisfies = 6; let type, of; type\nA",
        ),
    ]);
}

#[test]
fn javascript_stays() {
    let source = "#!/usr/bin/env node\n// a: b\nexport const a = <T,>(b) => b;".replace("<T,>", "");
    assert_eq!(erased(&source).unwrap(), source);
    let rich = "label: for (const [a, { b = 1, ...c }] of d?.e ?? []) { if (!a) continue label; }\n\
        class A extends (B, C) { static #p = 1; static { this.#p ||= 2n; } get [k]() { return new.target } async *g() { yield* 1 } }\n\
        a ? (b) : c => d; a = b ? (c) => d : e; /=/.test(x) / 2; `a${`b${c}`}`; import(\"host\"); import.meta.url;\n\
        for await (const x of y) {} await 1; async () => { await using x = y; }; { using z = 1 }\n\
        var enum_, { as, type: of } = x; if (a) function_(); else; do ; while (0) var v; debugger;";
    assert_eq!(erased(rich).unwrap(), rich);
}

#[test]
fn other_scripts_and_line_ends_keep_their_places() {
    let source = "let é: \"日本😀\" = `😀` as \"𝒳\"; let b;\r\ntype T =\r\n  | \"ü\"\u{2028}  | 1; let c: X; x as \"€\"\ry";
    let code = erased(source).unwrap();
    assert_in_place(source, &code);
    assert!(!code.contains("日") && code.contains("`😀`") && code.contains("let c   ;"), "{code}");
}
