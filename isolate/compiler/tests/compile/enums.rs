//! Enums become objects, each member on its line.

use crate::support::{call, check, mistake};

#[test]
fn enums_become_objects() {
    check(&[
        (
            "enum E { A, B = 5, C }",
            r#"var E; (function (E) { E[E["A"] = 0] = "A"; E[E["B"] = 5] = "B"; E[E["C"] = 6] = "C"; })(E || (E = {}));"#,
        ),
        (
            "export enum E { A = 'x', 'b-c' = `y`, ['d'] = \"z\" + 1, }",
            r#"export var E; (function (E) { E["A"] = 'x'; E["b-c"] = `y`; E["d"] = "z" + 1; })(E || (E = {}));"#,
        ),
        (
            "const enum E { A = 1 << 2, B = A | 1, C = E.B, D }",
            r#"var E; (function (E) { E[E["A"] = 1 << 2] = "A"; E[E["B"] = E.A | 1] = "B"; E[E["C"] = E.B] = "C"; E[E["D"] = 6] = "D"; })(E || (E = {}));"#,
        ),
        (
            "enum E { A = f(), B = 'x'.length, C = -1, D }",
            r#"var E; (function (E) { E[E["A"] = f()] = "A"; E[E["B"] = 'x'.length] = "B"; E[E["C"] = -1] = "C"; E[E["D"] = 0] = "D"; })(E || (E = {}));"#,
        ),
        (
            "enum E { A = 1 } enum E { B = A + 1, C }",
            r#"var E; (function (E) { E[E["A"] = 1] = "A"; })(E || (E = {})); ;(function (E) { E[E["B"] = E.A + 1] = "B"; E[E["C"] = 3] = "C"; })(E || (E = {}));"#,
        ),
        (
            "const n = 10, s = 'x'; enum E { A = n, B, C = s, D = F.X } enum F { X }",
            r#"const n = 10, s = 'x'; var E; (function (E) { E[E["A"] = n] = "A"; E[E["B"] = 11] = "B"; E["C"] = s; E[E["D"] = F.X] = "D"; })(E || (E = {})); var F; (function (F) { F[F["X"] = 0] = "X"; })(F || (F = {}));"#,
        ),
        (
            "{ enum E { A } } function f() { const enum E { B } }",
            r#"{ let E; (function (E) { E[E["A"] = 0] = "A"; })(E || (E = {})); } function f() { let E; (function (E) { E[E["B"] = 0] = "B"; })(E || (E = {})); }"#,
        ),
        ("enum E {}", "var E; (function (E) {})(E || (E = {}));"),
        (
            "enum E { E, B = E }",
            r#"var E; (function (E) { E[E["E"] = 0] = "E"; E[E["B"] = E.E] = "B"; })(E || (E = {}));"#,
        ),
        (
            "enum E { A, B = (A => A)(A) }",
            r#"var E; (function (E) { E[E["A"] = 0] = "A"; E[E["B"] = (A => A)(E.A)] = "B"; })(E || (E = {}));"#,
        ),
        (
            "enum E { A = 1 as any, B = <any>'x', C = ('y') }",
            r#"var E; (function (E) { E[E["A"] = 1 ] = "A"; E["B"] = 'x'; E["C"] = ('y'); })(E || (E = {}));"#,
        ),
        (
            "enum E { 'a\"b\\n', \u{e9} }",
            "var E; (function (E) { E[E[\"a\\\"b\\u{a}\"] = 0] = \"a\\\"b\\u{a}\"; E[E[\"\u{e9}\"] = 1] = \"\u{e9}\"; })(E || (E = {}));",
        ),
        (
            "enum E { A = 7 / 2, B, C = 2 ** 31, D, F = 1 << 31, G = ~0 >>> 0, H = NaN, I = 1 / 0, J }",
            r#"var E; (function (E) { E[E["A"] = 7 / 2] = "A"; E[E["B"] = 4.5] = "B"; E[E["C"] = 2 ** 31] = "C"; E[E["D"] = 2147483649] = "D"; E[E["F"] = 1 << 31] = "F"; E[E["G"] = ~0 >>> 0] = "G"; E[E["H"] = NaN] = "H"; E[E["I"] = 1 / 0] = "I"; E[E["J"] = Infinity] = "J"; })(E || (E = {}));"#,
        ),
    ]);
}

#[test]
fn a_member_without_a_value_needs_a_number_before_it() {
    for (source, place) in [("enum E { A = f(),\n B }", (2, 2)), ("enum E { A = 'x', B }", (1, 19))] {
        let message = "enum member \"B\" needs a value: the one before it has no constant number";
        assert_eq!(
            mistake(&call(source)),
            ("TypeScriptError".into(), message.into(), Some(place)),
            "{source}"
        );
    }
}
