//! Namespaces: each becomes a function that fills an object, in place.

use std::collections::HashSet;
use std::rc::Rc;

use oxc_ast::ast::*;
use oxc_ast_visit::Visit;
use oxc_semantic::{ScopeId, SymbolFlags, SymbolId};
use oxc_span::{GetSpan, Span};

use super::Eraser;
use super::catalog::{Key, is_instantiated};
use super::enums::tail;
use super::statements::is_erased;

/// The kind of a declaration, which decides how it gets its variable.
#[derive(Clone, Debug)]
pub(super) enum Home {
    /// An export of the module.
    Module,
    /// An export of the namespace whose object is `param`.
    Namespace { param: String, key: Key },
    /// Not an export.
    Here,
}

impl Home {
    /// The namespace that a declaration is part of.
    pub(super) fn parent(&self) -> Option<Key> {
        match self {
            Self::Namespace { key, .. } => Some(*key),
            Self::Module | Self::Here => None,
        }
    }
}

/// A namespace or enum whose body is being written.
#[derive(Clone, Debug)]
pub(super) struct Container {
    pub(super) scope: ScopeId,
    /// The name of its object inside.
    pub(super) param: String,
    /// Its exports, over all its parts.
    pub(super) names: Rc<HashSet<String>>,
    pub(super) key: Key,
}

impl Eraser<'_> {
    /// Writes a namespace whose statement begins at `start`.
    pub(super) fn namespace<'a>(&mut self, it: &TSNamespaceDeclaration<'a>, start: u32, home: &Home) {
        if !is_instantiated(it) {
            return self.erase(Span::new(start, it.span.end));
        }
        let (Some(key), Some(scope)) = (self.catalog.key(&it.id, home.parent()), it.scope_id.get()) else {
            return;
        };
        let name = it.id.name.to_string();
        let param = self.visible_name(&name, scope, None);
        let head = self.head(&it.id, home, &param);
        self.containers.push(Container { scope, param: param.clone(), names: self.catalog.names(key), key });
        let inside = Home::Namespace { param, key };
        let end = it.span.end;
        match &it.body {
            TSNamespaceDeclarationBody::TSNamespaceDeclaration(inner) => {
                self.edits.replace(start, inner.span.start, head);
                self.namespace(inner, inner.span.start, &inside);
                self.containers.pop();
                self.edits.insert(end, tail(&name, home));
            }
            TSNamespaceDeclarationBody::TSModuleBlock(block) => {
                self.edits.replace(start, block.span.start + 1, head);
                self.note_members(block, &inside);
                for statement in &block.body {
                    self.namespace_statement(statement, &inside);
                }
                self.containers.pop();
                self.edits.replace(end.saturating_sub(1), end, tail(&name, home));
            }
        }
    }

    /// The start of an enum's or namespace's code, with its variable unless another part, a class or a
    /// function declared it.
    pub(super) fn head(&mut self, id: &BindingIdentifier<'_>, home: &Home, param: &str) -> String {
        self.bind(id);
        let open = format!("(function ({param}) {{");
        let Some(symbol) = id.symbol_id.get() else { return open };
        let flags = self.scoping.symbol_flags(symbol);
        if flags.intersects(SymbolFlags::Function | SymbolFlags::Class) || !self.introduced.insert(symbol) {
            // The previous statement may have ended at the line end.
            return format!(";{open}");
        }
        let keyword = match home {
            Home::Module => "export var",
            Home::Here if self.is_at_top(id) => "var",
            Home::Here | Home::Namespace { .. } => "let",
        };
        format!("{keyword} {}; {open}", id.name)
    }

    pub(super) fn is_at_top(&self, id: &BindingIdentifier<'_>) -> bool {
        id.symbol_id
            .get()
            .is_some_and(|symbol| self.scoping.symbol_scope_id(symbol) == self.scoping.root_scope_id())
    }

    /// Collects the names that are only properties of the object. Functions may use them before their
    /// declaration.
    fn note_members(&mut self, block: &TSModuleBlock<'_>, home: &Home) {
        let Home::Namespace { param, .. } = home else { return };
        for statement in &block.body {
            let Statement::ExportDeclaration(export) = statement else { continue };
            let ids = match &export.declaration {
                Declaration::VariableDeclaration(variables) => {
                    variables.declarations.iter().flat_map(|it| it.id.get_binding_identifiers()).collect()
                }
                Declaration::TSImportEqualsDeclaration(alias) => vec![&alias.id],
                _ => Vec::new(),
            };
            for symbol in ids.into_iter().filter_map(|id| id.symbol_id.get()) {
                self.members.insert(symbol, param.clone());
            }
        }
    }

    fn namespace_statement<'a>(&mut self, it: &Statement<'a>, home: &Home) {
        match it {
            Statement::ExportDeclaration(export) => {
                self.namespace_export(export, home);
                self.edits.separate_if_open(export.span, self.source);
            }
            Statement::ImportDeclaration(_)
            | Statement::ExportNamedDeclaration(_)
            | Statement::ExportFromDeclaration(_)
            | Statement::ExportAllDeclaration(_)
            | Statement::ExportDefaultDeclaration(_)
            | Statement::TSExportAssignment(_) => {
                self.refuse("a namespace cannot have this: export its declarations one by one", it.span());
            }
            statement => self.statement(statement),
        }
    }

    fn namespace_export<'a>(&mut self, it: &ExportDeclaration<'a>, home: &Home) {
        let Home::Namespace { param, .. } = home else { return };
        let start = it.span.start;
        match &it.declaration {
            declaration if is_erased(declaration) => self.erase(it.span),
            Declaration::VariableDeclaration(variables) => self.namespace_variables(variables, start, param),
            Declaration::TSEnumDeclaration(declaration) => self.enumeration(declaration, start, home),
            Declaration::TSNamespaceDeclaration(namespace) => self.namespace(namespace, start, home),
            Declaration::TSImportEqualsDeclaration(alias) => self.alias(alias, it.span, home),
            declaration => {
                self.edits.blank(start, declaration.span().start);
                self.visit_declaration(declaration);
                if let Some(id) = declaration.id() {
                    self.edits
                        .insert(declaration.span().end, format!(" {param}.{name} = {name};", name = id.name));
                }
            }
        }
    }

    /// `export const a = 1` in a namespace declares no variable. It sets a property of the object, and its
    /// uses read that.
    fn namespace_variables<'a>(&mut self, it: &VariableDeclaration<'a>, start: u32, param: &str) {
        if it.declarations.iter().all(|declarator| declarator.init.is_none()) {
            return self.erase(Span::new(start, it.span.end));
        }
        let first = it.declarations.first().map_or(it.span.end, |declarator| declarator.span.start);
        self.edits.blank_with(start, first, ';');
        let mut begun = false;
        for (declarator, next) in
            it.declarations.iter().zip(it.declarations.iter().skip(1).map(Some).chain([None]))
        {
            match &declarator.init {
                Some(init) => {
                    begun = true;
                    let braced = matches!(declarator.id, BindingPattern::ObjectPattern(_));
                    if braced {
                        self.edits.insert(declarator.span.start, "(");
                    }
                    self.exported_pattern(&declarator.id, param);
                    if let Some(annotation) = &declarator.type_annotation {
                        self.visit_ts_type_annotation(annotation);
                    }
                    self.visit_expression(init);
                    if braced {
                        self.edits.insert(declarator.span.end, ")");
                    }
                }
                None => self.blank(declarator.span),
            }
            if !begun || next.is_some_and(|next| next.init.is_none()) {
                self.blank_token(declarator.span.end, ",");
            }
        }
    }

    /// Writes the pattern of an exported variable as an assignment to properties.
    fn exported_pattern<'a>(&mut self, it: &BindingPattern<'a>, param: &str) {
        match it {
            BindingPattern::BindingIdentifier(id) => {
                self.edits.replace(id.span.start, id.span.end, format!("{param}.{}", id.name));
            }
            BindingPattern::AssignmentPattern(pattern) => {
                self.exported_pattern(&pattern.left, param);
                self.visit_expression(&pattern.right);
            }
            BindingPattern::ArrayPattern(pattern) => {
                for element in pattern.elements.iter().flatten() {
                    self.exported_pattern(element, param);
                }
                if let Some(rest) = &pattern.rest {
                    self.exported_pattern(&rest.argument, param);
                }
            }
            BindingPattern::ObjectPattern(pattern) => {
                for property in &pattern.properties {
                    if property.shorthand {
                        self.edits.insert(
                            property.key.span().start,
                            format!("{}: ", self.text(property.key.span())),
                        );
                    } else {
                        self.visit_property_key(&property.key);
                    }
                    self.exported_pattern(&property.value, param);
                }
                if let Some(rest) = &pattern.rest {
                    self.exported_pattern(&rest.argument, param);
                }
            }
        }
    }

    fn text(&self, span: Span) -> String {
        self.source.slice(span.start, span.end).to_owned()
    }
}

/// `import A = B.C`, which stays if `A` is used as a value.
#[derive(Clone, Debug)]
pub(super) struct Alias {
    statement: Span,
    /// From `import` to the name.
    keyword: Span,
    name: Span,
    home: Home,
    symbol: Option<SymbolId>,
    /// The symbol of the first name of `B.C`.
    root: Option<SymbolId>,
    root_span: Span,
    /// The replacement for the first name.
    instead: Option<String>,
    /// Whether it is known to be a type.
    is_type: bool,
}

impl Alias {
    pub(super) fn is_type(&self) -> bool {
        self.is_type
    }
}

impl Eraser<'_> {
    pub(super) fn alias<'a>(&mut self, it: &TSImportEqualsDeclaration<'a>, statement: Span, home: &Home) {
        let mut path = Vec::new();
        let root = match &it.module_reference {
            TSModuleReference::ExternalModuleReference(_) => {
                return self
                    .refuse("`import … = require(…)` is not supported: write `import … from …`", it.span);
            }
            TSModuleReference::IdentifierReference(root) => root,
            TSModuleReference::QualifiedName(name) => {
                path.push(name.right.name.to_string());
                let mut left = &name.left;
                loop {
                    match left {
                        TSTypeName::QualifiedName(name) => {
                            path.push(name.right.name.to_string());
                            left = &name.left;
                        }
                        TSTypeName::IdentifierReference(root) => break root,
                        TSTypeName::ThisExpression(this) => {
                            return self.refuse("`this` is no namespace", this.span);
                        }
                    }
                }
            }
        };
        path.reverse();
        let symbol = it.id.symbol_id.get();
        let root_symbol = self.symbol_of(root);
        self.aliases.push(Alias {
            statement,
            keyword: Span::new(it.span.start, it.id.span.start),
            name: it.id.span,
            home: home.clone(),
            symbol,
            root: root_symbol,
            root_span: root.span,
            instead: self.substitute(root),
            is_type: root_symbol.is_some_and(|symbol| self.leads_to_type(symbol, &path)),
        });
    }

    /// Whether a path through namespaces of this module leads to something other than a value.
    fn leads_to_type(&self, root: SymbolId, path: &[String]) -> bool {
        let Some((last, way)) = path.split_last() else { return !self.scoping.symbol_flags(root).is_value() };
        let mut key = self.catalog.of_variable(root);
        for name in way {
            key = key.and_then(|key| self.catalog.below(key, name));
        }
        key.is_some_and(|key| !self.catalog.names(key).contains(last))
    }

    /// Writes the needed aliases after the walk: those that the code names, and those that these name.
    pub(super) fn settle_aliases(&mut self) {
        let mut open = std::mem::take(&mut self.aliases);
        loop {
            let (needed, rest): (Vec<Alias>, Vec<Alias>) =
                open.into_iter().partition(|alias| self.is_needed(alias));
            if needed.is_empty() {
                for alias in rest {
                    self.erase(alias.statement);
                }
                return;
            }
            for alias in needed {
                self.write_alias(&alias);
            }
            open = rest;
        }
    }

    fn is_needed(&self, alias: &Alias) -> bool {
        let named =
            alias.symbol.is_some_and(|symbol| self.used.contains(&symbol) || self.clauses.names(symbol));
        match alias.home {
            Home::Here => named,
            Home::Module | Home::Namespace { .. } => named || !alias.is_type,
        }
    }

    fn write_alias(&mut self, alias: &Alias) {
        self.used.extend(alias.root);
        match &alias.home {
            Home::Namespace { param, .. } => {
                self.edits.blank_with(alias.statement.start, alias.name.start, ';');
                self.edits.insert(alias.name.start, format!("{param}."));
            }
            Home::Module | Home::Here => {
                self.bound.extend(alias.symbol);
                // As wide as the word that it replaces.
                let end = alias.keyword.start + "import".len() as u32;
                self.edits.replace(alias.keyword.start, end, "var   ");
            }
        }
        if let Some(instead) = &alias.instead {
            self.edits.replace(alias.root_span.start, alias.root_span.end, instead.clone());
        }
    }
}
