// What has code instead of types does, when it runs, what TypeScript's own code does.

import { test } from "node:test";
import assert from "node:assert/strict";
import { code, reference } from "./support/compiler.mjs";

/** Sources of one construct each; what they export by default is compared. @type {Record<string, string>} */
const CASES = {
  "an enum and its reverse mapping": `enum E { A, B = 5, C, D = B << 2, F = D | A } export default { ...E }`,
  "an enum of strings": `enum E { A = "x", B = \`y\`, C = "a" + "b" + 1, D = A } export default { ...E }`,
  "a mixed enum with computed members": `const f = () => 7; enum E { A = "x".length, B = f(), C = 3, D, "e-f" = 1.5, G } export default { ...E, keys: Object.keys(E) }`,
  "numbers of an enum": `enum E { A = -1, B, C = 1e3, D, F = 0.5, G, H = ~0, I, J = 2 ** 40, K, L = 7 % 4, M, N = -7 >>> 28, O, P = 1 / 0, Q, R = 0xff, S, T = 1_000, U } export default { ...E, keys: Object.keys(E) }`,
  "constants in an enum": `const n = 3, s = "t"; enum E { A = n, B, C = s, D = n + 1, F } export default { ...E }`,
  "an enum in several parts": `enum E { A = 1, B = A + 1 } enum E { C = B + 1, D = E.A } export default { ...E }`,
  "an enum that names another": `enum E { A = 4 } enum F { B = E.A, C, D = E["A"] * 2, G } export default { ...F }`,
  "a const enum": `const enum E { A = 1, B } export default [E.A, E["B"]]`,
  "an enum in a function": `export default [1, 2].map((n) => { enum E { A = n as any } return { ...E } })`,
  "an enum in a block and one outside": `enum E { A } { enum E { B } E; } export default { ...E }`,
  "an enum whose member has its name": `enum E { E = 2, F = E + 1 } export default { ...E }`,
  "members that hide what is outside": `const A = 100; enum E { A = 1, B = A, C = ((A) => A)(5) } export default { ...E }`,
  "an enum with members that objects have": `enum E { toString, constructor, __proto__x, valueOf = "v" } export default Object.entries(E)`,
  "an exported enum used before": `const f = () => E.A; export enum E { A = 3 } export default f()`,
  "names with escapes": `enum E { "a\\nb" = 1, 'c"d', "e\\\\f", "\\u{1f600}" } export default { ...E }`,

  "a namespace": `namespace N { const hidden = 1; export const a = hidden, b = a + 1; export let c: number; export function f() { return [a, c] } c = 5 } export default [{ ...N, f: 0 }, N.f()]`,
  "a namespace in several parts": `namespace N { export let n = 1; export function up() { return ++n } } namespace N { up(); export const seen = n; n = 10; { let n = 0; n++ } } export default [N.n, N.seen]`,
  "a nested namespace": `namespace A.B { export const x = 1; export namespace C { export const y = x + 1 } } namespace A { export const z = B.x + B.C.y } export default [A.B.x, A.B.C.y, A.z]`,
  "a namespace inside that is not exported": `namespace A { namespace B { export const x = 1 } export const y = B.x } export default [Object.keys(A), A.y]`,
  "a namespace of a class": `class A { static s = 1; m() { return A.x } } namespace A { export const x = A.s + 1; export class Inner extends A {} } export default [new A().m(), new A.Inner().m()]`,
  "a namespace of a function": `function f() { return f.count++ } namespace f { export let count = 1 } f(); export default [f(), f.count]`,
  "a namespace of an enum": `enum E { A = 1 } namespace E { export const parse = (s: keyof typeof E) => E[s] } export default E.parse("A")`,
  "destructured exports": `namespace N { export const { a, b: { c = 2 }, ...d } = { a: 1, b: {} as any, e: 5 }, [f, , g = f] = [7, 8] } export default { ...N }`,
  "shorthands, updates and defaults": `namespace N { export let a = 1, b = 2; export const o = { a, b }; ({ a, b = 9 } = { a: 5 } as any); a++; b += a; [a] = [a * 2]; for (a of [3]); export const f = (x = a, { y = b } = {}) => [x, y] } export default [N.a, N.b, N.o, N.f()]`,
  "names that hide exports": `namespace N { export const a = 1; export const f = (a: number) => a; export class C { a = a; m(b = a) { const a = 2; return [a, b] } } } export default [N.f(9), new N.C().a, new N.C().m()]`,
  "a namespace with a class of its name": `namespace N { export class N { x = 1 } export const n = new N() } export default N.n.x`,
  "a function that is used before its namespace is filled": `namespace N { export const early = f(); export function f() { return typeof x } export const x = 1 } export default [N.early, N.f()]`,
  "aliases": `namespace A { export namespace B { export const c = 3; export type T = 1 } } import B = A.B; import c = A.B.c; import T = A.B.T; let t: T; export default [B.c, c]`,
  "an exported alias": `namespace A { export const c = { d: 3 } } namespace N { export import e = A.c; export const f = e.d } export default [N.e.d, N.f]`,
  "an enum in a namespace": `namespace N { export enum E { A, B } export enum E { C = 2 } export const e = E.B; enum Hidden { X } export const h = Hidden.X } namespace N { export const again = E.C } export default [{ ...N.E }, N.e, N.h, N.again, Object.keys(N)]`,
  "this of a function of a namespace": `namespace N { export const f = function (this: any) { return this === N }; export const g = f() } export default [N.g]`,
  "a namespace without values": `namespace N { export type T = 1; interface I {} } const N = 5; export default N`,

  "parameter properties": `class A { constructor(public a: number, private readonly b = a + 1, c = 0, protected d?: string) {} } export default { ...new A(1) }`,
  "the order of fields and parameter properties": `const log: string[] = []; class B { constructor() { log.push("super") } } class A extends B { y = log.push("field"); constructor(public x = log.push("default")) { log.push("before"); super(); log.push(Object.keys(this).join()) } } new A(); export default log`,
  "a field that hides nothing": `class A { a = 1; constructor(public b: number) { this.a += this.b } } export default [{ ...new A(2) }, Object.keys(new A(1))]`,
  "a class that inherits a parameter property": `class A { constructor(readonly a: number) {} } class B extends A { constructor(override readonly a: number, public b = a) { super(a + 1) } } export default { ...new B(1) }`,
  "a parameter property after a call of super in a try": `class A {} class B extends A { constructor(public b: number) { try { super() } finally { } } } export default new B(3).b`,
  "fields without values": `class A { a; b?: string; declare c: number; d!: number; static e; ["f"]?: 1 } export default [Object.keys(new A()), Object.keys(A)]`,
  "private names, accessors and static blocks": `abstract class A { static #n = 1; #m?: number = 2; static { this.#n++ } abstract g(): void; get m(): number { return this.#m! + A.#n } } class B extends A { g() {} } export default new B().m`,

  "statements that stay apart": `let a = [5] as any\n[0, 1].forEach(() => {})\nlet b = a as unknown\n;(() => 1)()\ntype T = 1\n;[2].length\nexport default [a, b]`,
  "objects that stay expressions": `const f = () => <any>{ a: 1 }, g = () => <any>{ b: 2 } as any\nexport default [f(), g()]`,
  "operands on the next line": `function f() { return <\nany>5 } function* g() { yield <\nany>6 } const h = (a: number): Promise<\nnumber> => a as any\nexport default [f(), [...g()], h(7)]`,
  "optional chains": `const a: any = { b: null, f() { return this === a } }; export default [a?.b?.c!.d, a!.f!(), (a?.f)!(), a.x?.y!.z.w]`,
  "overloads": `function f(a: string): string; function f(a: number): number; function f(a: any) { return a } class A { m(a: 1): 1; m(a: any) { return a } } export default [f("x"), new A().m(1)]`,
  "generics and comparisons": `const a = 1, b = 2, c = 3; function f(...x: any[]) { return x } export default [f(a < b, c > 1), f<any>(a), new Map<string, number>().size]`,
};

for (const [name, source] of Object.entries(CASES)) {
  test(name, async () => {
    const ours = await run(code(source));
    assert.deepEqual(ours, await run(reference(source)));
    assert.notEqual(ours, undefined);
  });
}

/** The default export of a module. @param {string} text */
async function run(text) {
  const module = await import(`data:text/javascript;charset=utf-8,${encodeURIComponent(text)}`);
  return module.default;
}
