//! Requests and answers of the compile step: the JSON of the wasm's entries.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::edits::Moved;
use crate::error::CompileError;

/// The language of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// Types are erased. Nothing is type-checked.
    Typescript,
    /// Plain ECMAScript, which is not changed.
    Javascript,
}

/// The form of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// A module.
    #[default]
    Module,
    /// A model's code: the body of an async function, a function, or a module. It becomes a module that
    /// exports a function as default.
    Body,
}

/// The module to run.
#[derive(Clone, Debug, Deserialize)]
pub struct Main {
    /// Its name inside the engine and in error locations.
    pub filename: String,
    /// Its text.
    pub source: String,
    /// Its language, which is also that of modules without a telling file extension.
    pub language: Language,
    /// Its form.
    #[serde(default)]
    pub form: Form,
}

/// How the modules of a call refer to each other in the text for the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Links {
    /// As in the source: the engine asks how to resolve a specifier.
    #[default]
    Written,
    /// By keys, for an engine that resolves specifiers itself. All imports of a module move to its last line.
    /// `import`, where it is called or used for `meta`, becomes a function that the module receives.
    Keyed,
}

/// The sources of a call and the names that the host provides.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The module to run.
    pub main: Main,
    /// Relative specifier, as the caller wrote it, and source.
    #[serde(default)]
    pub modules: Vec<(String, String)>,
    /// Bare specifier → the names in its namespace.
    #[serde(default)]
    pub imports: BTreeMap<String, Vec<String>>,
    /// Names that exist at module scope in every module, unless a module declares them itself.
    #[serde(default)]
    pub globals: Vec<String>,
    /// The export of the main module to run; empty: not checked.
    #[serde(rename = "fn")]
    pub export: String,
    /// How the modules refer to each other.
    #[serde(default)]
    pub links: Links,
}

/// A module for the engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Compiled {
    /// Its name inside the engine.
    pub name: String,
    /// Plain ECMAScript with every token on its line in the source, and one more line with the import of the
    /// globals. With keyed links that line has all other imports too.
    pub code: String,
    /// Every specifier of the module, and every literal of an `import()` that can be resolved, with the name
    /// of its module.
    pub resolved: Vec<(String, String)>,
    /// The columns that differ from those of the source, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<Moved>,
}

/// All modules of a call; the main module is the first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// The main module, then the others in the order of the request.
    pub modules: Vec<Compiled>,
    /// With keyed links: the name of every module, including the host's, and its key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<(String, String)>,
}

/// The reply of the wasm's entries.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Reply<T> {
    Success(T),
    Failure { error: CompileError },
}

impl<T> From<Result<T, CompileError>> for Reply<T> {
    fn from(result: Result<T, CompileError>) -> Self {
        match result {
            Ok(value) => Self::Success(value),
            Err(error) => Self::Failure { error },
        }
    }
}

/// A request to resolve a specifier that was computed at run time.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResolveRequest {
    /// Filename of the main module.
    pub main: String,
    /// The names of the other modules inside the engine.
    pub modules: Vec<String>,
    /// The bare specifiers.
    pub imports: Vec<String>,
    /// Name, inside the engine, of the module that imports.
    pub from: String,
    /// The specifier.
    pub specifier: String,
}

/// The module for a specifier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Resolved {
    /// Its name inside the engine.
    pub name: String,
}
