//! Globals are imported on the last line of each module.

use crate::support::{call, call_with, code};
use bobbin_compiler::{Request, compile};

#[test]
fn every_module_gets_the_globals_that_it_does_not_declare() {
    let globals = || ["a", "b"].map(str::to_owned).to_vec();
    let import = "\nimport { a, b } from \"globals:\";";
    for (source, missing) in [
        ("export default a // b", import),
        ("const a = 1; export default a", "\nimport { b } from \"globals:\";"),
        ("if (1) { var a } function b() {} export default 0", ""),
        ("class a {} import { c as b } from './c'; b; export default 0", ""),
        ("enum a { x } namespace b { export const y = 1 } export default 0", ""),
        ("export default function a() { var b }", "\nimport { b } from \"globals:\";"),
        ("{ let a } (b) => b; export default 0", import),
        ("type a = 1; interface b {} export default [a]", import),
        ("declare const a: any; declare function b(): void; export default a", import),
        ("import type a from 'x'; import { b } from 'y'; export default (x: b) => a", import),
        (
            "namespace x { export const y = 1 } import a = x.y; a; export default 0",
            "\nimport { b } from \"globals:\";",
        ),
        ("export { default as a } from './c'; export default a", import),
    ] {
        let answer = compile(&Request {
            globals: globals(),
            ..call_with(source, &[("./c.js", "export const c = 1; export default 1")])
        })
        .unwrap_or_else(|error| panic!("{source} {error:?}"));
        assert!(code(&answer).ends_with(missing), "{source}\n{}", code(&answer));
        assert_eq!(code(&answer).matches("globals:").count(), usize::from(!missing.is_empty()), "{source}");
        assert_eq!(answer.modules[1].code, format!("export const c = 1; export default 1{import}"));
    }
}

#[test]
fn a_name_that_no_variable_can_have_is_refused() {
    for name in
        ["", "a-b", "1a", "default", "await", "yield", "let", "static", "eval", "arguments", "enum", "null"]
    {
        let error =
            compile(&Request { globals: vec![name.to_owned()], ..call("export default 0") }).unwrap_err();
        assert_eq!(error.message, format!("globals: {name:?} cannot be the name of a variable"));
    }
    for name in ["a", "$", "async", "of", "get", "é", "undefined_"] {
        assert!(
            compile(&Request { globals: vec![name.to_owned()], ..call("export default 0") }).is_ok(),
            "{name}"
        );
    }
}
