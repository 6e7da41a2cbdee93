//! Errors: why the sources of a call were refused, and where.

use oxc_span::Span;
use serde::Serialize;
use thiserror::Error;

use crate::text::Source;

/// The kind of an error: its `name` for the caller of `runCode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ErrorKind {
    /// The text is not valid ECMAScript or TypeScript.
    SyntaxError,
    /// TypeScript that cannot be erased to ECMAScript, or that the sandbox does not support.
    TypeScriptError,
    /// A module or a name that does not exist.
    LinkError,
    /// The request is inconsistent, whatever the sources are.
    InvalidOptions,
}

/// The first error found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Error)]
#[error("{message}")]
pub struct CompileError {
    /// The kind of the error.
    pub name: ErrorKind,
    /// The description for a person.
    pub message: String,
    /// Line in the caller's source, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Column in that line, from 1, in UTF-16 code units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The module's name inside the engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    /// The specifier that cannot be resolved, or whose module lacks the requested name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub specifier: Option<String>,
}

impl CompileError {
    /// An error without a position in a source.
    pub(crate) fn new(name: ErrorKind, message: impl Into<String>) -> Self {
        Self { name, message: message.into(), line: None, column: None, filename: None, specifier: None }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidOptions, message)
    }

    pub(crate) fn of_specifier(mut self, specifier: &str) -> Self {
        self.specifier = Some(specifier.to_owned());
        self
    }
}

/// An error at a position of one module. The module's name is added later.
#[derive(Clone, Debug)]
pub(crate) struct Mistake {
    pub(crate) name: ErrorKind,
    pub(crate) message: String,
    pub(crate) at: u32,
}

impl Mistake {
    pub(crate) fn new(name: ErrorKind, message: impl Into<String>, span: Span) -> Self {
        Self { name, message: message.into(), at: span.start }
    }

    pub(crate) fn typescript(message: impl Into<String>, span: Span) -> Self {
        Self::new(ErrorKind::TypeScriptError, message, span)
    }

    pub(crate) fn locate(self, source: Source<'_>, filename: &str) -> CompileError {
        let place = source.place(self.at);
        CompileError {
            line: Some(place.line),
            column: Some(place.column),
            filename: Some(filename.to_owned()),
            ..CompileError::new(self.name, self.message)
        }
    }
}
