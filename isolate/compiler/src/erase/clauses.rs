//! Imports and exports of a module, and which of them are types.

use std::collections::{BTreeMap, HashMap, HashSet};

use oxc_ast::ast::*;
use oxc_ast_visit::Visit;
use oxc_semantic::SymbolId;
use oxc_span::{GetSpan, Span};

use super::Eraser;
use super::catalog::is_instantiated;
use super::namespaces::{Alias, Home};
use super::statements::is_erased;
use crate::error::{ErrorKind, Mistake};
use crate::record::{Clause, DEFAULT, Export, Fate, Form, Keep, Part, Request, Stands, Star, Wanted};
use crate::request::Language;

/// What the walk has found of a module's imports and exports so far.
#[derive(Debug, Default)]
pub(crate) struct Clauses {
    pub(crate) list: Vec<Clause>,
    pub(crate) exports: BTreeMap<String, Export>,
    pub(crate) stars: Vec<Star>,
    /// Exported names without a declaration, which cannot have a second part.
    specified: HashSet<String>,
    /// The clause and part that imported a binding.
    imported: HashMap<SymbolId, (usize, usize)>,
    /// Bindings in `export { … }`: clause, part, binding.
    named: Vec<(usize, usize, SymbolId)>,
    /// The symbol of `export default`, and its statement.
    default: Option<(SymbolId, Span)>,
}

impl Eraser<'_> {
    fn types_here(&self) -> bool {
        self.language == Language::Typescript
    }

    fn fate(&self) -> Fate {
        if self.types_here() { Fate::Erased } else { Fate::Stays }
    }

    pub(super) fn import<'a>(&mut self, it: &ImportDeclaration<'a>) {
        if it.import_kind.is_type() {
            return self.erase(it.span);
        }
        self.refuse_attributes(it.with_clause.as_deref());
        if it.phase.is_some() {
            self.refuse("import phases are not supported: import the module as usual", it.span);
        }
        let clause = self.clauses.list.len();
        let mut parts = Vec::new();
        for specifier in it.specifiers.iter().flatten() {
            let (stands, wanted, local, is_type) = match specifier {
                ImportDeclarationSpecifier::ImportSpecifier(it) => {
                    let wanted = Wanted::Name(it.imported.name().to_string());
                    (Stands::InBraces, wanted, &it.local, it.import_kind.is_type())
                }
                ImportDeclarationSpecifier::ImportDefaultSpecifier(it) => {
                    (Stands::First, Wanted::Name(DEFAULT.to_owned()), &it.local, false)
                }
                ImportDeclarationSpecifier::ImportNamespaceSpecifier(it) => {
                    (Stands::Star, Wanted::Namespace, &it.local, false)
                }
            };
            if let Some(symbol) = local.symbol_id.get() {
                self.clauses.imported.insert(symbol, (clause, parts.len()));
            }
            parts.push(Part {
                span: specifier.span(),
                stands,
                wanted,
                own: local.name.to_string(),
                keep: if is_type { Keep::No } else { Keep::Yes },
            });
        }
        let fate = if it.specifiers.is_some() { self.fate() } else { Fate::Stays };
        let request = Some(request(&it.source));
        self.clauses.list.push(Clause { form: Form::Import, span: it.span, request, parts, fate });
    }

    pub(super) fn export_names<'a>(&mut self, it: &ExportNamedDeclaration<'a>) {
        if it.export_kind.is_type() {
            self.clauses.declare_types(&it.specifiers);
            return self.erase(it.span);
        }
        let clause = self.clauses.list.len();
        let mut parts = Vec::new();
        for specifier in &it.specifiers {
            let keep = if specifier.export_kind.is_type() { Keep::No } else { Keep::Yes };
            if let (ModuleExportName::IdentifierReference(local), Keep::Yes) = (&specifier.local, keep)
                && let Some(symbol) = self.symbol_of(local)
            {
                self.clauses.named.push((clause, parts.len(), symbol));
            }
            parts.push(self.export_part(specifier, keep, Export::Local));
        }
        let fate = if parts.is_empty() { Fate::Stays } else { self.fate() };
        self.clauses.list.push(Clause { form: Form::Export, span: it.span, request: None, parts, fate });
    }

    pub(super) fn export_from<'a>(&mut self, it: &ExportFromDeclaration<'a>) {
        if it.export_kind.is_type() {
            self.clauses.declare_types(&it.specifiers);
            return self.erase(it.span);
        }
        self.refuse_attributes(it.with_clause.as_deref());
        let clause = self.clauses.list.len();
        let mut parts = Vec::new();
        for specifier in &it.specifiers {
            let keep = match (specifier.export_kind.is_type(), self.types_here()) {
                (true, _) => Keep::No,
                (false, true) => Keep::IfValue,
                (false, false) => Keep::Yes,
            };
            parts.push(self.export_part(specifier, keep, Export::Of { clause, part: parts.len() }));
        }
        let fate = self.fate();
        let request = Some(request(&it.source));
        self.clauses.list.push(Clause { form: Form::ExportFrom, span: it.span, request, parts, fate });
    }

    /// A name in the braces of an export. `export` is its meaning if it is a value.
    fn export_part(&mut self, it: &ExportSpecifier<'_>, keep: Keep, export: Export) -> Part {
        let own = it.exported.name().to_string();
        let export = if keep == Keep::No { Export::Type } else { export };
        self.export(&own, export, it.span);
        let wanted = Wanted::Name(it.local.name().to_string());
        Part { span: it.span, stands: Stands::InBraces, wanted, own, keep }
    }

    pub(super) fn export_all<'a>(&mut self, it: &ExportAllDeclaration<'a>) {
        if it.export_kind.is_type() {
            if let Some(name) = &it.exported {
                self.clauses.exports.insert(name.name().to_string(), Export::Type);
            }
            return self.erase(it.span);
        }
        self.refuse_attributes(it.with_clause.as_deref());
        let Some(exported) = &it.exported else {
            self.clauses.stars.push(Star { span: it.span, request: request(&it.source) });
            return;
        };
        let own = exported.name().to_string();
        let clause = self.clauses.list.len();
        self.export(&own, Export::Of { clause, part: 0 }, exported.span());
        let part = Part {
            span: exported.span(),
            stands: Stands::Star,
            wanted: Wanted::Namespace,
            own,
            keep: Keep::Yes,
        };
        let request = Some(request(&it.source));
        let form = Form::ExportFrom;
        self.clauses.list.push(Clause { form, span: it.span, request, parts: vec![part], fate: Fate::Stays });
    }

    pub(super) fn export_default<'a>(&mut self, it: &ExportDefaultDeclaration<'a>) {
        let is_type = match &it.declaration {
            ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) => true,
            ExportDefaultDeclarationKind::FunctionDeclaration(function) if function.body.is_none() => {
                // An overload; its implementation follows.
                return self.erase(it.span);
            }
            ExportDefaultDeclarationKind::Identifier(name) => {
                self.clauses.default = self.symbol_of(name).map(|symbol| (symbol, it.span));
                false
            }
            _ => false,
        };
        if is_type {
            self.clauses.exports.entry(DEFAULT.to_owned()).or_insert(Export::Type);
            return self.erase(it.span);
        }
        self.export(DEFAULT, Export::Local, it.span);
        if let Some(expression) = it.declaration.as_expression() {
            self.keep_expression(expression);
        }
        self.visit_export_default_declaration_kind(&it.declaration);
    }

    pub(super) fn export_declaration<'a>(&mut self, it: &ExportDeclaration<'a>) {
        let is_type = match &it.declaration {
            Declaration::TSNamespaceDeclaration(namespace) => {
                namespace.declare || !is_instantiated(namespace)
            }
            declaration => is_erased(declaration),
        };
        let export = if is_type { Export::Type } else { Export::Local };
        let mut names = Vec::new();
        match &it.declaration {
            Declaration::VariableDeclaration(variables) => {
                for declarator in &variables.declarations {
                    names
                        .extend(declarator.id.get_binding_identifiers().iter().map(|id| id.name.to_string()));
                }
            }
            declaration => names.extend(declaration.id().map(|id| id.name.to_string())),
        }
        for name in names {
            if export == Export::Local && self.clauses.specified.contains(&name) {
                self.twice(&name, it.span);
            }
            let known = self.clauses.exports.entry(name).or_insert(export.clone());
            if export == Export::Local {
                *known = Export::Local;
            }
        }
        match &it.declaration {
            _ if is_type => self.erase(it.span),
            Declaration::TSEnumDeclaration(declaration) => {
                self.enumeration(declaration, it.span.start, &Home::Module);
            }
            Declaration::TSNamespaceDeclaration(namespace) => {
                self.namespace(namespace, it.span.start, &Home::Module)
            }
            Declaration::TSImportEqualsDeclaration(alias) => {
                self.alias(alias, it.span, &Home::Module);
                if self.aliases.last().is_some_and(Alias::is_type) {
                    self.clauses.exports.insert(alias.id.name.to_string(), Export::Type);
                }
            }
            declaration => self.visit_declaration(declaration),
        }
    }

    /// Records an export. No other export may have its name, except a type.
    fn export(&mut self, name: &str, export: Export, span: Span) {
        let is_value = export != Export::Type;
        if is_value && self.clauses.exports.get(name).is_some_and(|known| *known != Export::Type) {
            self.twice(name, span);
        }
        if is_value {
            self.clauses.specified.insert(name.to_owned());
            self.clauses.exports.insert(name.to_owned(), export);
        } else {
            self.clauses.exports.entry(name.to_owned()).or_insert(export);
        }
    }

    fn twice(&mut self, name: &str, span: Span) {
        self.note(Mistake::new(ErrorKind::SyntaxError, format!("{name:?} is exported twice"), span));
    }

    fn refuse_attributes(&mut self, clause: Option<&WithClause<'_>>) {
        if let Some(clause) = clause {
            self.refuse("import attributes are not supported", clause.span);
        }
    }

    /// Whether a binding does not exist at run time. The host may provide bindings that are only declared.
    fn is_type(&self, symbol: SymbolId) -> bool {
        self.types_here() && !self.scoping.symbol_flags(symbol).is_value()
    }

    /// Decides after the walk which imports the remaining code needs.
    pub(super) fn settle_clauses(&mut self) {
        let named: HashSet<SymbolId> = self.clauses.named.iter().map(|(_, _, symbol)| *symbol).collect();
        for (symbol, (clause, part)) in &self.clauses.imported {
            let Some(part) =
                self.clauses.list.get_mut(*clause).and_then(|clause| clause.parts.get_mut(*part))
            else {
                continue;
            };
            if part.keep == Keep::No || self.language == Language::Javascript || self.used.contains(symbol) {
                continue;
            }
            part.keep = if named.contains(symbol) { Keep::IfValue } else { Keep::No };
        }
        for (clause, part, symbol) in std::mem::take(&mut self.clauses.named) {
            let (keep, export) = self.fate_of(symbol);
            let clause = self.clauses.list.get_mut(clause);
            if let Some(part) = clause.and_then(|clause| clause.parts.get_mut(part)) {
                part.keep = keep;
                self.clauses.exports.insert(part.own.clone(), export);
            }
        }
        if let Some((symbol, statement)) = self.clauses.default
            && self.is_type(symbol)
        {
            self.clauses.exports.insert(DEFAULT.to_owned(), Export::Type);
            self.erase(statement);
        }
    }

    /// How to treat an export of a binding.
    fn fate_of(&self, symbol: SymbolId) -> (Keep, Export) {
        if self.is_type(symbol) {
            return (Keep::No, Export::Type);
        }
        let Some((clause, part)) = self.clauses.imported.get(&symbol).copied() else {
            return (Keep::Yes, Export::Local);
        };
        match self.clauses.list.get(clause).and_then(|clause| clause.parts.get(part)).map(|part| part.keep) {
            Some(Keep::No) => (Keep::No, Export::Type),
            Some(keep) => (keep, Export::Of { clause, part }),
            None => (Keep::Yes, Export::Local),
        }
    }
}

impl Clauses {
    /// Whether an `export { … }` names the binding.
    pub(super) fn names(&self, symbol: SymbolId) -> bool {
        self.named.iter().any(|(_, _, named)| *named == symbol)
    }

    fn declare_types(&mut self, specifiers: &[ExportSpecifier<'_>]) {
        for specifier in specifiers {
            self.exports.entry(specifier.exported.name().to_string()).or_insert(Export::Type);
        }
    }
}

fn request(source: &StringLiteral<'_>) -> Request {
    Request { specifier: source.value.to_string(), at: source.span.start }
}
