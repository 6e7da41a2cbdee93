//! The imports and exports of a module, as far as the module alone determines them.

use std::collections::{BTreeMap, BTreeSet};

use oxc_span::Span;

use crate::edits::Edits;
use crate::text::Source;

/// The name of a default export.
pub(crate) const DEFAULT: &str = "default";

/// Whether an import or export is code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    Yes,
    /// A type, which is erased.
    No,
    /// Depends on another module: erased if the name is a type there.
    IfValue,
}

/// What is imported from another module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Name(String),
    Namespace,
}

/// The position of a name in its statement, which decides its separators.
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
    /// The name in this module: a binding, or the exported name.
    pub(crate) own: String,
    pub(crate) keep: Keep,
}

/// `export * from`.
#[derive(Clone, Debug)]
pub(crate) struct Star {
    pub(crate) span: Span,
    pub(crate) request: Request,
}

/// A specifier and its position.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) specifier: String,
    pub(crate) at: u32,
}

/// The kind of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `import … from`: its parts are bindings of this module.
    Import,
    /// `export { … }`: its parts are exports of this module.
    Export,
    /// `export { … } from` and `export * as … from`.
    ExportFrom,
}

/// An import or export statement that lists names.
#[derive(Debug)]
pub(crate) struct Clause {
    pub(crate) form: Form,
    pub(crate) span: Span,
    /// The other module. None for `export { … }` of this module's names.
    pub(crate) request: Option<Request>,
    pub(crate) parts: Vec<Part>,
    pub(crate) fate: Fate,
}

/// How to treat a statement without any code among its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Erased: it lists only types.
    Erased,
    /// Kept: the module is imported for its side effects, or the source is not TypeScript.
    Stays,
}

/// The meaning of an exported name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Export {
    /// A binding of the module.
    Local,
    /// Does not exist at run time.
    Type,
    /// A part of a clause: `export { a } from`, or an import that is exported.
    Of { clause: usize, part: usize },
}

/// A parsed module, without its syntax tree.
#[derive(Debug)]
pub(crate) struct Module<'s> {
    pub(crate) name: String,
    pub(crate) source: Source<'s>,
    pub(crate) edits: Edits,
    pub(crate) clauses: Vec<Clause>,
    pub(crate) exports: BTreeMap<String, Export>,
    pub(crate) stars: Vec<Star>,
    /// The specifiers of `import()` that are literals.
    pub(crate) dynamic: BTreeSet<String>,
    /// Positions of the word `import` in expressions.
    pub(crate) keywords: Vec<u32>,
    /// The module's own top-level declarations; its imports are in the clauses.
    pub(crate) declared: BTreeSet<String>,
}
