//! Builds requests for the tables of the tests, and compares the answers.

use std::collections::BTreeMap;

use bobbin_compiler::{Answer, CompileError, Form, Language, Links, Main, Request, compile};

/// A call of one TypeScript module that runs its default export.
pub(crate) fn call(source: &str) -> Request {
    Request {
        main: Main {
            filename: "<runCode>".into(),
            source: source.into(),
            language: Language::Typescript,
            form: Form::Module,
        },
        modules: Vec::new(),
        imports: BTreeMap::new(),
        globals: Vec::new(),
        export: "default".into(),
        links: Links::Written,
    }
}

/// A call with local modules.
pub(crate) fn call_with(source: &str, modules: &[(&str, &str)]) -> Request {
    let modules = modules.iter().map(|(name, source)| ((*name).to_owned(), (*source).to_owned())).collect();
    Request { modules, ..call(source) }
}

/// The export that the linker requires of a main module.
const EXPORT: &str = "\nexport default 0;";

/// Compiles a TypeScript module without a default export. The host provides the namespace "host" with `a`,
/// `b` and `default`.
pub(crate) fn erased(source: &str) -> Result<String, CompileError> {
    let imports =
        BTreeMap::from([("host".to_owned(), vec!["a".to_owned(), "b".to_owned(), "default".to_owned()])]);
    let answer = compile(&Request { imports, ..call(&format!("{source}{EXPORT}")) })?;
    Ok(code(&answer).strip_suffix(EXPORT).unwrap().to_owned())
}

/// The code of the main module.
pub(crate) fn code(answer: &Answer) -> &str {
    &answer.modules.first().unwrap().code
}

/// Collapses white space: single blanks, none at the end of a line or beside a mark that erasing sets.
pub(crate) fn plain(text: &str) -> String {
    let lines: Vec<String> =
        text.split('\n').map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    lines.join("\n")
}

/// Checks pairs of source and code, which may differ only in white space.
pub(crate) fn check(cases: &[(&str, &str)]) {
    for (source, wanted) in cases {
        let found = erased(source).unwrap_or_else(|error| panic!("{source}\n{error:?}"));
        assert_eq!(plain(&found), plain(wanted), "{source}");
    }
}

/// Checks cases of pure erasing: each character of the code is at its position in the source, or is white
/// space, or one of the marks that separate code.
pub(crate) fn check_in_place(cases: &[(&str, &str)]) {
    check(cases);
    for (source, _) in cases {
        assert_in_place(source, &erased(source).unwrap());
    }
}

/// Implements [`check_in_place`] for one case.
pub(crate) fn assert_in_place(source: &str, code: &str) {
    let (source, code): (Vec<u16>, Vec<u16>) =
        (source.encode_utf16().collect(), code.encode_utf16().collect());
    assert_eq!(source.len(), code.len(), "{}", String::from_utf16_lossy(&code));
    for (at, (old, new)) in source.iter().zip(&code).enumerate() {
        let mark = [' ', ';', '(', ')'].map(|mark| mark as u16).contains(new);
        assert!(old == new || mark, "at {at}: {}", String::from_utf16_lossy(&code));
    }
}

/// The error of a call: kind, message, line and column.
pub(crate) fn mistake(request: &Request) -> (String, String, Option<(u32, u32)>) {
    let error = compile(request).expect_err(&request.main.source);
    let place = error.line.zip(error.column);
    (format!("{:?}", error.name), error.message, place)
}
