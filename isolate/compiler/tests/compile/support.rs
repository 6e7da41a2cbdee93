//! Requests as tables write them, and what is compared of the answers.

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

/// What the linker wants of a main module.
const EXPORT: &str = "\nexport default 0;";

/// The code of a TypeScript module that has no default export. The host gives it the namespace "host" with `a`, `b`
/// and `default`.
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

/// A text whose white space is single blanks, none at the end of a line or beside one of the marks that erasing sets.
pub(crate) fn plain(text: &str) -> String {
    let lines: Vec<String> =
        text.split('\n').map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    lines.join("\n")
}

/// Checks cases of source and code, which differ in no more than white space.
pub(crate) fn check(cases: &[(&str, &str)]) {
    for (source, wanted) in cases {
        let found = erased(source).unwrap_or_else(|error| panic!("{source}\n{error:?}"));
        assert_eq!(plain(&found), plain(wanted), "{source}");
    }
}

/// Checks cases of erasing alone: every character of the code is where it was in the source, or white space instead
/// of another one, or one of the marks that keep code apart.
pub(crate) fn check_in_place(cases: &[(&str, &str)]) {
    check(cases);
    for (source, _) in cases {
        assert_in_place(source, &erased(source).unwrap());
    }
}

/// See [`check_in_place`].
pub(crate) fn assert_in_place(source: &str, code: &str) {
    let (source, code): (Vec<u16>, Vec<u16>) =
        (source.encode_utf16().collect(), code.encode_utf16().collect());
    assert_eq!(source.len(), code.len(), "{}", String::from_utf16_lossy(&code));
    for (at, (old, new)) in source.iter().zip(&code).enumerate() {
        let mark = [' ', ';', '(', ')'].map(|mark| mark as u16).contains(new);
        assert!(old == new || mark, "at {at}: {}", String::from_utf16_lossy(&code));
    }
}

/// What is wrong with a call: kind, message, line and column.
pub(crate) fn mistake(request: &Request) -> (String, String, Option<(u32, u32)>) {
    let error = compile(request).expect_err(&request.main.source);
    let place = error.line.zip(error.column);
    (format!("{:?}", error.name), error.message, place)
}
