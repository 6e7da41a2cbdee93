//! Erasing never joins two statements and never ends one too early.

use crate::support::{check, check_in_place};

#[test]
fn statements_that_ended_at_a_line_end_still_end() {
    check_in_place(&[
        ("a = b as any\n(c)", "a = b;\n(c)"),
        ("a = b as any\n[c]", "a = b;\n[c]"),
        ("a = b as any\n`c`", "a = b;\n`c`"),
        ("a = b satisfies C\n+d", "a = b\n+d"),
        ("const f = () => a as any\n(b)", "const f = () => a;\n(b)"),
        ("let a: T\n(b)", "let a;\n(b)"),
        ("const f = g<T>\nlet b", "const f = g;\nlet b"),
        ("function f() { return a as any\n(b) }", "function f() { return a;\n(b) }"),
        ("throw a as any\n(b)", "throw a;\n(b)"),
        ("if (a) b = c as any\nelse d", "if (a) b = c;\nelse d"),
        ("do a = b as any\nwhile (c)", "do a = b;\nwhile (c)"),
        ("l: a = b as any\n(c)", "l: a = b;\n(c)"),
        ("a\ntype B = 1\n(c)", "a\n; \n(c)"),
        ("a\ninterface B {}\n[c]", "a\n;\n[c]"),
        ("a\ndeclare let b: T\n(c)", "a\n;\n(c)"),
        ("export { type A, b } from \"host\"\n;(a)", "export { b } from \"host\"\n;(a)"),
        ("a\nimport type B from \"x\"\n(c)", "a\n;\n(c)"),
        ("a\nimport { type B } from \"x\"\n(c)", "a\n;\n(c)"),
    ]);
}

#[test]
fn class_members_stay_apart() {
    check_in_place(&[
        ("class A { a = b as any\n['c'] = 1 }", "class A { a = b;\n['c'] = 1 }"),
        ("class A { a = 1\n readonly ['c'] = 1 }", "class A { a = 1\n; ['c'] = 1 }"),
        ("class A { a = 1\n public *c() {} }", "class A { a = 1\n; *c() {} }"),
        (
            "class A { a = 1\n private in = 2\n protected instanceof = 3 }",
            "class A { a = 1\n; in = 2\n; instanceof = 3 }",
        ),
        (
            "class A { get: T\n a() {} static: T\n b() {} async: T\n c() {} set?: T\n d() {} }",
            "class A { get;\n a() {} static;\n b() {} async;\n c() {} set ;\n d() {} }",
        ),
        ("class A { a = 1\n abstract b(): void\n [c] = 2 }", "class A { a = 1\n;\n [c] = 2 }"),
        ("class A { a = 1\n declare b: T\n *c() {} }", "class A { a = 1\n;\n *c() {} }"),
        ("class A { a = 1\n static [b: string]: T\n [c] = 1 }", "class A { a = 1\n;\n [c] = 1 }"),
        ("class A { a = 1\n m(): void\n m() {} }", "class A { a = 1\n;\n m() {} }"),
    ]);
}

#[test]
fn an_arrow_stays_on_its_line() {
    check_in_place(&[
        ("const f = (a): Promise<\nT> => a", "const f = (a \n ) => a"),
        ("const f = (a)\n: T => a", "const f = (a \n) => a"),
        ("const f = (a): T /* x\n */ | U => a", "const f = (a \n ) => a"),
        ("const f = async <T,\n U>(a: T): T => a", "const f = async (\n a ) => a"),
        ("const f = <\nT>(a: T): {\n} => a", "const f = (\n a \n) => a"),
        ("return_(<\nT>(a) => a)", "return_((\n a) => a)"),
    ]);
}

#[test]
fn operands_stay_on_the_line_of_their_keyword() {
    check(&[
        ("function f() { return <\nT>a }", "function f() { return (\n a); }"),
        ("function f() { return <\nT>a + 1 as any\n(b) }", "function f() { return (\n a + 1 );\n(b) }"),
        ("function f() { throw <\nT>a }", "function f() { throw (\n a); }"),
        ("function* f() { yield <\nT>a.b, c }", "function* f() { yield (\n a.b), c }"),
        ("function f() { return <\nT,>(a: T) => a }", "function f() { return (\n a ) => a }"),
        ("function f() { if (a) return <\nT>b\nelse c }", "function f() { if (a) return (\n b);\nelse c }"),
    ]);
}

#[test]
fn operands_stay_expressions() {
    check(&[
        ("const f = () => <T>{ a: 1 }", "const f = () => ( { a: 1 });"),
        ("const f = () => <T>{ a: 1 } as U\n(b)", "const f = () => ( { a: 1 });\n(b)"),
        ("const f = () => (<T>{ a: 1 }).a", "const f = () => ( { a: 1 }).a"),
        ("<any>function () {}()", "( function () {}());"),
        ("<any>class {}", "( class {});"),
        ("<any>{}.a", "( {}.a);"),
        ("const a = <T>{ b: 1 }, c = [<T>{}];", "const a = { b: 1 }, c = [ {}];"),
    ]);
}
