//! Types become white space in place.

use crate::support::erased;

#[test]
fn types_become_white_space() {
    let cases = [
        ("let x: number = 1;", "let x         = 1;"),
        (
            "function f<T>(this: A, a?: T, ...b: T[]): a is T {}",
            "function f   (         a    , ...b     )         {}",
        ),
        ("const y = x as any\n(z)", "const y = x;      \n(z)"),
        ("type A = 1\n(z)", ";         \n(z)"),
        (
            "const f = async <T,\n>(a: T): Promise<\nT> => a",
            "const f = async (  \n  a              \n ) => a",
        ),
        (
            "class A<T> extends B<T> implements C, D { private readonly x?: T; abstract y(): void }",
            "class A    extends B                    {                  x    ; ;                  }",
        ),
        ("f<T>(x!); new A<T>(); a<T>`x`", "f   (x ); new A   (); a   `x`"),
        (
            "import a, { type b, c } from \"x\"; const d: c = 1",
            ";                                  const d    = 1",
        ),
    ];
    for (source, wanted) in cases {
        println!("{}", erased(source).unwrap());
        assert_eq!(erased(source).unwrap(), wanted, "{source}");
    }
}
