//! Function bodies as models write them.

use bobbin_compiler::{Answer, CompileError, Form, Main, Request, compile};

use crate::support::{call, code, plain};

fn body(source: &str) -> Result<Answer, CompileError> {
    let request = call(source);
    let main = Main { form: Form::Body, ..request.main };
    compile(&Request { main, export: String::new(), ..request })
}

#[test]
fn a_body_becomes_the_module_of_a_function_with_a_result() {
    for (source, wanted) in [
        ("return 1", "export default async () => {return 1};"),
        ("const r: number = 1;\nr", "export default async () => {const r = 1;\nreturn (r)};"),
        ("const r = 1\nr as number // why", "export default async () => {const r = 1\nreturn (r )}; // why"),
        ("await f();;", "export default async () => {return (await f());};;"),
        ("await f({ a: 1 });", "export default async () => {return (await f({ a: 1 }));};"),
        (
            "async () => {\n return 1;\n}",
            "export default async () => {return (async () => {\n return 1;\n})()};",
        ),
        ("(async () => 1);", "export default async () => {return ((async () => 1))();};"),
        ("(async () => 1)();", "export default async () => {return ((async () => 1)());};"),
        ("return async () => 1", "export default async () => {return (async () => 1)()};"),
        ("return f", "export default async () => {return f};"),
        (
            "async function main(): Promise<number> {\n return 1;\n}",
            "export default async () => {async function main() {\n return 1;\n}; return main()};",
        ),
        (
            "const main = async () => h();\nfunction h() {}",
            "export default async () => {const main = async () => h();\nfunction h() {}; return main()};",
        ),
        (
            "function again() { return again }",
            "export default async () => {function again() { return again }; return again()};",
        ),
        (
            "async function main() {}\nmain();",
            "export default async () => {async function main() {}\nreturn (main());};",
        ),
        (
            "function unused() {}\nconst x = await f()",
            "export default async () => {function unused() {}\nconst x = await f()};",
        ),
        ("for (const x of y) { f(x) }", "export default async () => {for (const x of y) { f(x) }};"),
        ("for (;;);", "export default async () => {for (;;);};"),
        ("if (a) return 1", "export default async () => {if (a) return 1};"),
        ("interface T {}\nconst x = <T>f();", "export default async () => {;\nconst x = f();};"),
        ("export default async () => 1", "export default async () => 1"),
        (
            "async function main() {}\nexport { main as default }",
            "async function main() {}\nexport { main as default }",
        ),
        ("export async function main() {}", "export async function main() {}; export default main;"),
        (
            "const main = () => 1;\nexport { main }",
            "const main = () => 1;\nexport { main }; export default main;",
        ),
        ("export interface T {}\nreturn 1", "export default async () => {;\nreturn 1};"),
    ] {
        let answer = body(source).unwrap_or_else(|error| panic!("{source}\n{error:?}"));
        assert_eq!(plain(code(&answer)), plain(wanted), "{source}");
    }
}

#[test]
fn imports_stay_outside() {
    let request = call("import { a } from \"host\";\nreturn a + b\nimport { b } from \"host\"");
    let imports = [("host".to_owned(), vec!["a".to_owned(), "b".to_owned()])].into();
    let main = Main { form: Form::Body, ..request.main };
    let answer = compile(&Request { main, imports, export: String::new(), ..request }).unwrap();
    let wanted =
        "import { a } from \"host\";\nexport default async () => {return a + b};\nimport { b } from \"host\"";
    assert_eq!(code(&answer), wanted);
}

#[test]
fn code_that_does_nothing_is_a_mistake() {
    for (source, message) in [
        ("", "there is no code to run"),
        (";", "there is no code to run"),
        ("// nothing", "there is no code to run"),
        ("const x = 1;", "the code does nothing"),
        ("interface T {}", "the code does nothing"),
        ("class A { f() { return g() } }", "the code does nothing"),
        ("export const x = 1;", "the code exports no function"),
    ] {
        let error = body(source).unwrap_err();
        assert!(error.message.starts_with(message), "{source}: {}", error.message);
        assert!(error.message.contains("body of an async function"), "{}", error.message);
    }
}

#[test]
fn places_are_those_of_the_source() {
    let error = body("const a = 1;\n  const x = ;").unwrap_err();
    assert_eq!((error.line, error.column), (Some(2), Some(13)));
    let answer = body("f(); g()").unwrap();
    let moved = serde_json::to_string(&answer.modules[0].moved).unwrap();
    // `f` is at column 29, and `g` after `return (` at 42.
    assert_eq!(moved, "[[1,29,1],[1,42,6],[1,46,9],[1,48,9]]");
}
