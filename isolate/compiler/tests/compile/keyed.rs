//! Links by keys: all imports move to the last line of a module, and nothing else moves.

use std::collections::BTreeMap;

use crate::support::{call, call_with, code};
use bobbin_compiler::{Links, Request, compile};

const LIB: &str = "export const x = 1; export default 2; export type T = 3; export const y = 4";

fn keyed(source: &str) -> Request {
    let imports =
        BTreeMap::from([("a".to_owned(), vec!["n".to_owned()]), ("host".to_owned(), vec!["n".to_owned()])]);
    let modules = [("./lib.ts", LIB), ("./other.ts", LIB)];
    Request { links: Links::Keyed, imports, ..call_with(source, &modules) }
}

#[test]
fn what_is_taken_of_others_stands_on_the_last_line_in_the_same_order() {
    for (source, last) in [
        (
            "import d, { x as y, type T } from './lib.ts'; y; d",
            r#"import { "default" as d, "x" as y } from "m1";"#,
        ),
        ("import * as all from 'host'; all", r#"import * as all from "h1";"#),
        (
            "import d, * as all from './lib.ts'; all; d",
            r#"import * as all from "m1";import { "default" as d } from "m1";"#,
        ),
        ("import './other.ts'; import { n } from 'a'; n", r#"import "m2"; import { "n" as n } from "h0";"#),
        ("export { x as 'a b', T } from './lib.ts'", r#"export { "x" as "a b" } from "m1";"#),
        ("export * as lib from './lib.ts'", r#"export * as "lib" from "m1";"#),
        (
            "export * from './other'; import { x } from './lib.ts'; x",
            r#"export * from "m2"; import { "x" as x } from "m1";"#,
        ),
        ("import { x } from './lib.ts'; export { x as z }", r#"import { "x" as x } from "m1";"#),
        ("import type { T } from './lib.ts'; import { T as U } from './lib.ts'; let t: U", ""),
    ] {
        let source = format!("{source};\nexport default 1;");
        let answer = compile(&keyed(&source)).unwrap_or_else(|error| panic!("{source} {error:?}"));
        let (kept, found) = match last {
            "" => (code(&answer), ""),
            _ => code(&answer).rsplit_once('\n').unwrap(),
        };
        assert_eq!(found, last, "{source}");
        assert_eq!(kept.encode_utf16().count(), source.encode_utf16().count(), "{source}\n{kept}");
        assert!(!kept.contains("from") && kept.ends_with("\nexport default 1;"), "{kept}");
    }
}

#[test]
fn every_module_has_a_key() {
    let answer = compile(&keyed("export default 1")).unwrap();
    let keys: Vec<_> = answer.keys.iter().map(|(name, key)| (name.as_str(), key.as_str())).collect();
    let wanted = [
        ("<runCode>", "m0"),
        ("import:a", "h0"),
        ("import:host", "h1"),
        ("lib.ts", "m1"),
        ("other.ts", "m2"),
    ];
    assert_eq!(keys, wanted);
    assert_eq!(compile(&call("export default 1")).unwrap().keys, []);
}

#[test]
fn the_word_import_in_an_expression_becomes_a_name_of_its_length() {
    for (source, wanted) in [
        ("export default () => import('./lib.ts')", "export default () => $im000('./lib.ts')"),
        ("export default import.meta.url", "export default $im000.meta.url"),
        (
            "export default [import . meta, import(`./${1}`)]",
            "export default [$im000 . meta, $im000(`./${1}`)]",
        ),
        (
            "const $im000 = 1; export default () => import('a')",
            "const $im000 = 1; export default () => $im001('a')",
        ),
        ("enum E { a = import.meta.url.length } export default E", ".meta.url.length"),
        ("class A { constructor(public a = import.meta) {} } export default A", "a = $im000.meta"),
        ("namespace N { export const a = import('a') } export default N", "$im000('a')"),
        ("export default 'import.meta' // import(1)", "export default 'import.meta' // import(1)"),
    ] {
        let answer = compile(&keyed(source)).unwrap_or_else(|error| panic!("{source} {error:?}"));
        assert!(code(&answer).contains(wanted), "{source}\n{}", code(&answer));
        let taken = code(&answer).contains("from \"imports\"");
        assert_eq!(taken, !wanted.contains("'import"), "{}", code(&answer));
    }
    let globals = vec!["$im000".to_owned()];
    let answer = compile(&Request { globals, ..keyed("export default import.meta") }).unwrap();
    let last = r#"import { m0 as $im001 } from "imports";import { $im000 } from "globals";"#;
    assert_eq!(code(&answer).rsplit_once('\n').unwrap().1, last);
}

/// Positions of an expression; `@` is the expression. None may keep an `import`, whatever the eraser does
/// there.
const PLACES: &[&str] = &[
    "@",
    "f(@)",
    "new A(@)",
    "f`${@}`",
    "`${@}`",
    "a?.b?.[@]",
    "({ [@]: 1, get [@]() { return @ }, ...@, async *m(a = @) { yield @ } })",
    "[...@, , @]",
    "async () => await @",
    "(a: any = @, { b = @, [@]: c } = @, [d = @] = @) => { return @ }",
    "function f(this: any, a?: any, b = @) { if (@) throw @; for (const x of @) for (x in @) for (;@;@) while (@) do f(@); while (@); switch (@) { case @: @ } }",
    "class extends (@) { [@] = @; static { (@); } static x: any = @; #p? = @!; constructor(public a = @, readonly b: any = @) { super(@) } m() {} }",
    "@ as any",
    "@!",
    "<any>@",
    "@ satisfies any",
    "(@ as any).x!.y<any>",
    "f<typeof import('t')>(@)",
    "delete @.x",
    "void @, typeof @",
    "@ ? @ : @",
    "a = @, b ??= @, [c = @] = @, { d: e = @ } = @",
    "tag<any>`${@}`",
    "(<T,>(a: T = @) => a)(@)",
];

#[test]
fn no_word_import_stays_wherever_it_stood() {
    for place in PLACES {
        for import in ["import(x)", "import.meta"] {
            let expression = place.replace('@', import);
            for statement in [
                "export default (@);",
                "let v: any = (@);",
                "namespace N { export const v: any = (@); }",
                "enum E { a = ((@) as any) }",
            ] {
                let source = statement.replace('@', &expression);
                let answer = compile(&Request { export: String::new(), ..keyed(&source) })
                    .unwrap_or_else(|error| panic!("{source}\n{error:?}"));
                let rest = code(&answer).rsplit_once('\n').map_or(code(&answer), |(kept, _)| kept);
                let found = rest.replace("typeof import", "");
                assert!(!found.contains("import(") && !found.contains("import.meta"), "{source}\n{rest}");
            }
        }
    }
}

#[test]
fn a_name_is_quoted_whatever_is_in_it() {
    let source = r#"export { x as "\"; globalThis.y = 1; \"" } from "./lib.ts"; export default 1"#;
    let answer = compile(&keyed(source)).unwrap();
    assert!(
        code(&answer).ends_with(r#"export { "x" as "\"; globalThis.y = 1; \"" } from "m1";"#),
        "{}",
        code(&answer)
    );
}
