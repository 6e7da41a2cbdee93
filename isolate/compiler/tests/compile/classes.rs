//! Classes: modifiers are erased, parameter properties become fields and assignments.

use crate::support::{call, check, check_in_place, mistake};

#[test]
fn modifiers_and_marks_go() {
    check_in_place(&[
        (
            "class A { public a = 1; private static readonly b?: T = 2; protected override c!: T; declare d: T; }",
            "class A { a = 1; static b = 2; c ; ; }",
        ),
        (
            "class A { private async m?(): T {} public static get x(): T { return 1 } protected set x(v: T) {} public [k]?: T; private *g() {} }",
            "class A { async m () {} static get x() { return 1 } set x(v ) {} ; [k] ; ; *g() {} }",
        ),
        (
            "abstract class A { abstract a: T; abstract b(): void; protected abstract c(): T; abstract get d(): T; abstract accessor e: T; f() {} }",
            "class A { ; ; ; ; ; f() {} }",
        ),
        (
            "class A { [key: string]: any; static [key: string]: any; readonly [key: string]: any; x = 1 }",
            "class A { ; ; ; x = 1 }",
        ),
        (
            "class A { constructor(); constructor(a?: T); constructor(a?: any) {} m(): void; m(a?: any) {} }",
            "class A { ; ; constructor(a ) {} ; m(a ) {} }",
        ),
        ("class A<T> extends B<T> implements C, D<T> { }", "class A extends B { }"),
        (
            "class A implements B {} const c = class<T> implements D {}; const e = class F<T> extends (g as any)<T> {};",
            "class A {} const c = class {}; const e = class F extends (g ) {};",
        ),
        (
            "class A { readonly = 1; public = 2; declare = 3; abstract = 4; override() {} static static = 5; 'private' = 6 }",
            "class A { readonly = 1; public = 2; declare = 3; abstract = 4; override() {} static static = 5; 'private' = 6 }",
        ),
        (
            "class A { public readonly readonly: T; private public: T; static readonly static = 1; declare declare: T }",
            "class A { readonly ; public ; static static = 1; ; }",
        ),
        (
            "class A { #a?: T; static #b: T; private static { } }"
                .replace("private static { }", "static { }")
                .leak(),
            "class A { #a ; static #b ; static { } }",
        ),
    ]);
}

#[test]
fn parameter_properties_become_fields() {
    check(&[
        (
            "class A { constructor(private a: T, public readonly b = 1, c?: T, protected d?: T) { e() } }",
            "class A { a; b; d; constructor( a , b = 1, c , d ) { this.a = a; this.b = b; this.d = d; e() } }",
        ),
        (
            "class A extends B { x = 1; constructor(private a: T) { c(); super(a); d() } }",
            "class A extends B { a; x = 1; constructor( a ) { c(); super(a); this.a = a; d() } }",
        ),
        (
            "class A extends B { constructor(override a: T) { super()\n c() } }",
            "class A extends B { a; constructor( a ) { super(); this.a = a;\n c() } }",
        ),
        (
            "class A extends B { constructor(readonly a: T) { try { super() } catch {} } }",
            "class A extends B { a; constructor( a ) { try { super(); this.a = a; } catch {} } }",
        ),
        (
            "class A { constructor(private a: T) { 'use strict'; b() } }",
            "class A { a; constructor( a ) { 'use strict'; this.a = a; b() } }",
        ),
        (
            "class A { constructor(private a: T);\n constructor(private a: any) {} }",
            "class A { a; ;\n constructor( a ) { this.a = a;} }",
        ),
        (
            "const a = class { constructor(private readonly x: T) {} }",
            "const a = class { x; constructor( x ) { this.x = x;} }",
        ),
    ]);
}

#[test]
fn what_cannot_be_written_is_refused() {
    for (source, message, place) in [
        ("@d class A {}", "decorators are not supported: call the function yourself", (1, 1)),
        ("class A {\n  @d() m() {} }", "decorators are not supported: call the function yourself", (2, 3)),
        ("class A { m(@d a: T) {} }", "decorators are not supported: call the function yourself", (1, 13)),
        ("class A { accessor a = 1 }", "`accessor` is not supported: write a getter and a setter", (1, 11)),
        (
            "class A extends B { constructor(private a: T) { if (a) super() } }",
            "parameter properties need `super(…)` as a statement of the constructor itself",
            (1, 21),
        ),
    ] {
        assert_eq!(
            mistake(&call(source)),
            ("TypeScriptError".into(), message.into(), Some(place)),
            "{source}"
        );
    }
}
