//! Every text gets an answer.

use std::time::{Duration, Instant};

use crate::support::{call, call_with};
use bobbin_compiler::compile;

/// A text with every construct that is handled specially.
const TEXT: &str = r#"import d, { type A, b as c } from "host"; import * as n from "./m"; import type T from "x"; import B = n.C;
export { c, type A }; export * from "./m"; export type { T }; export * as all from "./m";
enum E { A, B = A << 1, C = "x", "d" = f(), }  const enum F { X = E.A } export enum G { Y }
namespace N.M { export const { x, y: [z = x] } = d, w = 1; let v!: any; export function f() { return w } namespace I { type J = 1 } export import K = B.L }
abstract class P<T> extends (d as any)<T> implements Q, R<T> { private readonly a?: T = <T>{ b: 1 }; #c!: number; declare e: T; [k: string]: any
  constructor(private x: T, public y = 1, z?: any) { super(x!); this.a = x as any }
  abstract g(): void; protected override async *h<U>(this: P<T>, a?: U): AsyncGenerator<U> { yield <
U>a } get i(): T { return `é😀${this.a satisfies T}` as any } }
const f1 = async <T,>(a: T, ...b: T[]): Promise<
T> => { await a!; return <T>{} }, g1 = (a?: any): a is T => ({} as T).x?.y!.z
for (const a of d as any[]) { label: while (a!) { if (a) break label; else continue } }
declare global { interface Window {} } declare module "q" { const a: 1 } export default <T>(a: T): a is T => /re[/]/u.test(a as string)
f<A>(x)<B>`t${c}`; new d<T>; let u: typeof import("x"), v = a < b > c, w: unique symbol; try { } catch (e: unknown) { throw <any>e }
"#;

/// A generator of numbers that are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit.max(1)
    }
}

fn answer(source: &str) {
    let mut request =
        call_with(source, &[("./m.ts", "export namespace C { export const L = 1 } export const q = 1;")]);
    request.imports.insert("host".into(), vec!["default".into(), "b".into()]);
    if let Err(error) = compile(&request) {
        assert!(
            error.line.is_none_or(
                |line| line as usize <= source.split(['\n', '\r', '\u{2028}', '\u{2029}']).count()
            ),
            "{error:?}"
        );
    }
}

#[test]
fn the_text_itself_compiles() {
    let mut request =
        call_with(TEXT, &[("./m.ts", "export namespace C { export const L = 1 } export const q = 1;")]);
    request.imports.insert("host".into(), vec!["default".into(), "b".into()]);
    compile(&request).unwrap_or_else(|error| panic!("{error:?}"));
}

#[test]
fn every_truncation_has_an_answer() {
    let places: Vec<usize> = TEXT.char_indices().map(|(at, _)| at).collect();
    for at in places {
        answer(&TEXT[..at]);
        answer(&TEXT[at..]);
    }
}

#[test]
fn every_mutation_has_an_answer() {
    let tokens: Vec<&str> = TEXT.split_inclusive(|char: char| !char.is_alphanumeric()).collect();
    let extra = [
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        "<",
        ">",
        "`",
        "${",
        "'",
        "\"",
        "/",
        "/*",
        "//",
        "=>",
        "?",
        "!",
        ":",
        ";",
        ",",
        "\n",
        "as",
        "enum ",
        "namespace ",
        "export ",
        "import ",
        "declare ",
        "abstract ",
        "async ",
        "type ",
        "@",
        "#",
        "\u{2028}",
        "\0",
        "\u{feff}",
        "é",
        "😀",
        "\\u{61}",
        "0",
        "...",
    ];
    // A sample (docs/testing.md) runs fewer rounds, different ones for each seed.
    let sample: Option<u64> = std::env::var("BOBBIN_SAMPLE").ok().map(|text| text.parse().unwrap());
    let (seed, rounds) = sample.map_or((20_261_122, 4_000), |seed| (20_261_122 ^ seed, 1_000));
    let mut numbers = Numbers(seed);
    for round in 0..rounds {
        let mut mutated = tokens.clone();
        for _ in 0..=numbers.below(4) {
            let at = numbers.below(mutated.len());
            match numbers.below(4) {
                0 => drop(mutated.remove(at)),
                1 => mutated.insert(at, extra[numbers.below(extra.len())]),
                2 => mutated[at] = tokens[numbers.below(tokens.len())],
                _ => {
                    let other = numbers.below(mutated.len());
                    mutated.swap(at, other);
                }
            }
        }
        let text = mutated.concat();
        let result = std::panic::catch_unwind(|| answer(&text));
        assert!(result.is_ok(), "seed {seed}, round {round}:\n{text}");
    }
}

#[test]
fn long_texts_take_no_more_than_their_share() {
    let shapes: [(&str, String); 10] = [
        ("sum", format!("export default 0; a = 1{}", " + 1".repeat(1_000))),
        (
            "enum",
            format!(
                "export default 0; enum E {{ {} }}",
                (0..20_000).map(|at| format!("A{at},")).collect::<String>()
            ),
        ),
        (
            "enums",
            format!(
                "export default 0; {}",
                (0..5_000).map(|at| format!("enum E {{ A{at} = {at} }}")).collect::<String>()
            ),
        ),
        (
            "namespaces",
            format!(
                "export default 0; {}",
                (0..5_000)
                    .map(|at| format!("namespace N {{ export const a{at} = {at}; f(a{at}, a0, N) }}"))
                    .collect::<String>()
            ),
        ),
        (
            "deep names",
            format!("export default 0; namespace {} {{ export const x = 1 }}", ["N"; 300].join(".")),
        ),
        (
            "aliases",
            format!(
                "export default 0; {} A0()",
                (0..2_000).map(|at| format!("import A{at} = A{}.b;", at + 1)).collect::<String>()
            ),
        ),
        (
            "unused imports",
            format!(
                "export default 0; {}",
                (0..20_000).map(|at| format!("import a{at} from 'a';")).collect::<String>()
            ),
        ),
        (
            "exports",
            format!(
                "export default 0; {}",
                (0..20_000).map(|at| format!("type T{at} = 1; export {{ T{at} }};")).collect::<String>()
            ),
        ),
        ("annotations", format!("export default 0; {}", "let_(a as any, b! as T<U>);\n".repeat(50_000))),
        ("comments", format!("export default 0; {}", "/* */ // x\n".repeat(100_000))),
    ];
    for (name, source) in shapes {
        let start = Instant::now();
        compile(&call(&source)).unwrap_or_else(|error| panic!("{name} {error:?}"));
        assert!(start.elapsed() < Duration::from_secs(20), "{name}: {:?}", start.elapsed());
    }
}
