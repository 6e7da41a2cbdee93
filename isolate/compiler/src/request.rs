//! What the compile step is asked and what it answers: the JSON of the wasm's one entry.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::edits::Moved;
use crate::error::CompileError;

/// How a source is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// Types are erased first. Nothing is type-checked.
    Typescript,
    /// Plain ECMAScript: comes out as it went in.
    Javascript,
}

/// What a source is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// A module.
    #[default]
    Module,
    /// The body of an async function, a function, or a module: what models write. It becomes a module that exports a function
    /// as default.
    Body,
}

/// The module that is run.
#[derive(Clone, Debug, Deserialize)]
pub struct Main {
    /// Its name inside the engine and in error locations.
    pub filename: String,
    /// Its text.
    pub source: String,
    /// How it is read, and how those modules are whose names do not say it.
    pub language: Language,
    /// What it is.
    #[serde(default)]
    pub form: Form,
}

/// How the modules of a call name each other in the text that the engine gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Links {
    /// As in the source: the engine asks what a specifier means.
    #[default]
    Written,
    /// By keys, for an engine that cannot be told what a specifier means: what a module takes of others stands on its
    /// last line, and `import`, where it is called or asked for `meta`, is a function that the module gets.
    Keyed,
}

/// One call's sources and the names that the host gives it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The module that is run.
    pub main: Main,
    /// Relative specifier, as the caller wrote it, and source.
    #[serde(default)]
    pub modules: Vec<(String, String)>,
    /// Bare specifier → the names that its namespace has.
    #[serde(default)]
    pub imports: BTreeMap<String, Vec<String>>,
    /// Names that exist at module scope in every module, unless a module declares them itself.
    #[serde(default)]
    pub globals: Vec<String>,
    /// The export of the main module that will be run; empty: it is not looked for.
    #[serde(rename = "fn")]
    pub export: String,
    /// How the modules name each other.
    #[serde(default)]
    pub links: Links,
}

/// A module as the engine takes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Compiled {
    /// Its name inside the engine.
    pub name: String,
    /// Plain ECMAScript, every token on the line where it was in the source, and one line more: the import of the globals,
    /// and with keyed links what else the module takes of others.
    pub code: String,
    /// Every specifier of the module, and every one of an `import()` with a literal that can be resolved, with the
    /// module that it means.
    pub resolved: Vec<(String, String)>,
    /// Where columns of the code are not those of the source, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<Moved>,
}

/// All modules of a call; the main module is the first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// The main module, then the others in the order of the request.
    pub modules: Vec<Compiled>,
    /// With keyed links: the name of every module, the host's among them, and its key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<(String, String)>,
}

/// What the wasm's entries answer.
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

/// Asks which module a specifier means that was computed at run time.
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
    /// What it imports.
    pub specifier: String,
}

/// The module that a specifier means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Resolved {
    /// Its name inside the engine.
    pub name: String,
}
