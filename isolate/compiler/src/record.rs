//! What a module imports and exports, as far as one module alone can tell.

use std::collections::{BTreeMap, BTreeSet};

use oxc_span::Span;

use crate::edits::Edits;
use crate::text::Source;

/// Name under which a module exports what it exports by default.
pub(crate) const DEFAULT: &str = "default";

/// Whether an import or export is code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    Yes,
    /// A type: goes.
    No,
    /// Only another module can tell: goes when the name is a type there.
    IfValue,
}

/// What is taken of another module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Name(String),
    Namespace,
}

/// Where a name stands in its statement, which decides what separates it from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stands {
    /// `import NAME from`
    First,
    /// `{ NAME }`
    InBraces,
    /// `* as NAME`
    Star,
}

/// One name of an import or export statement.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) span: Span,
    pub(crate) stands: Stands,
    pub(crate) wanted: Wanted,
    /// The name on this module's side: a binding, or the exported name.
    pub(crate) own: String,
    pub(crate) keep: Keep,
}

/// `export * from`.
#[derive(Clone, Debug)]
pub(crate) struct Star {
    pub(crate) span: Span,
    pub(crate) request: Request,
}

/// A specifier and its place.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) specifier: String,
    pub(crate) at: u32,
}

/// What kind of statement it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `import … from`: its parts are bindings of this module.
    Import,
    /// `export { … }`: its parts are exports of this module.
    Export,
    /// `export { … } from` and `export * as … from`.
    ExportFrom,
}

/// A statement that names parts of modules.
#[derive(Debug)]
pub(crate) struct Clause {
    pub(crate) form: Form,
    pub(crate) span: Span,
    /// The other module. Nothing: `export { … }` of names of this module.
    pub(crate) request: Option<Request>,
    pub(crate) parts: Vec<Part>,
    pub(crate) fate: Fate,
}

/// What becomes of a statement none of whose parts is code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Goes: all it names are types.
    Erased,
    /// Stays: the module is wanted for what it does, or the source is no TypeScript.
    Stays,
}

/// What a name means that a module exports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Export {
    /// A binding of the module.
    Local,
    /// Nothing at run time.
    Type,
    /// A part of one of the clauses: `export { a } from`, or an import that is exported.
    Of { clause: usize, part: usize },
}

/// A parsed module. Its syntax tree is gone.
#[derive(Debug)]
pub(crate) struct Module<'s> {
    pub(crate) name: String,
    pub(crate) source: Source<'s>,
    pub(crate) edits: Edits,
    pub(crate) clauses: Vec<Clause>,
    pub(crate) exports: BTreeMap<String, Export>,
    pub(crate) stars: Vec<Star>,
    /// Specifiers of `import()`, where they are literals.
    pub(crate) dynamic: BTreeSet<String>,
    /// Where the word `import` stands in an expression.
    pub(crate) keywords: Vec<u32>,
    /// What the module declares at its top level itself; its imports are in the clauses.
    pub(crate) declared: BTreeSet<String>,
}
