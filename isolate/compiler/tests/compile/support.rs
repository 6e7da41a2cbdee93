//! Requests as tables write them.

use std::collections::BTreeMap;

use bobbin_compiler::{CompileError, Language, Main, Request, compile};

/// A call of one TypeScript module with a default export.
pub(crate) fn call(source: &str) -> Request {
    Request {
        main: Main { filename: "<runCode>".into(), source: source.into(), language: Language::Typescript },
        modules: Vec::new(),
        imports: BTreeMap::new(),
        globals: Vec::new(),
        export: "default".into(),
    }
}

/// The code of a TypeScript module. An export is added for the linker, and taken away again.
pub(crate) fn erased(source: &str) -> Result<String, CompileError> {
    const EXPORT: &str = "\nexport { main_ }; function main_() {}";
    let answer = compile(&Request { export: "main_".into(), ..call(&format!("{source}{EXPORT}")) })?;
    let code = &answer.modules.first().unwrap().code;
    Ok(code.strip_suffix(EXPORT).unwrap().to_owned())
}
