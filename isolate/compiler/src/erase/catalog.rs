//! Namespaces and enums that are declared in several parts. Each part sees the exports of the others.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use oxc_ast::ast::*;
use oxc_semantic::SymbolId;

use super::statements::is_erased;

/// Identifies one namespace or enum with all its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key(usize);

/// How a namespace or enum is identified.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Origin {
    Variable(SymbolId),
    /// An export of a namespace.
    Below(Key, String),
}

/// The values that namespaces export and the members of enums, over all parts.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    keys: HashMap<Origin, Key>,
    names: Vec<Rc<HashSet<String>>>,
}

impl Catalog {
    /// Collects the namespaces and enums of a module.
    pub(super) fn of(program: &Program<'_>) -> Self {
        let mut catalog = Self::default();
        for statement in &program.body {
            catalog.statement(statement, None);
        }
        catalog
    }

    /// The key of a declaration. If a namespace exports it, the key is below that namespace's.
    pub(super) fn key(&mut self, id: &BindingIdentifier<'_>, parent: Option<Key>) -> Option<Key> {
        let origin = match parent {
            Some(parent) => Origin::Below(parent, id.name.to_string()),
            None => Origin::Variable(id.symbol_id.get()?),
        };
        let next = Key(self.keys.len());
        let key = *self.keys.entry(origin).or_insert(next);
        if key == next {
            self.names.push(Rc::default());
        }
        Some(key)
    }

    /// The namespace or enum of a variable.
    pub(super) fn of_variable(&self, symbol: SymbolId) -> Option<Key> {
        self.keys.get(&Origin::Variable(symbol)).copied()
    }

    /// The namespace or enum that a namespace exports under this name.
    pub(super) fn below(&self, parent: Key, name: &str) -> Option<Key> {
        self.keys.get(&Origin::Below(parent, name.to_owned())).copied()
    }

    pub(super) fn names(&self, key: Key) -> Rc<HashSet<String>> {
        self.names.get(key.0).cloned().unwrap_or_default()
    }

    /// Adds the members of an enum. Those at the top level and in namespaces were collected before.
    pub(super) fn add_enum(&mut self, it: &TSEnumDeclaration<'_>, key: Key) {
        for member in &it.body.members {
            self.add(key, &member.id.static_name());
        }
    }

    fn add(&mut self, key: Key, name: &str) {
        if let Some(names) = self.names.get_mut(key.0) {
            Rc::make_mut(names).insert(name.to_owned());
        }
    }

    fn statement(&mut self, it: &Statement<'_>, parent: Option<Key>) {
        match it {
            Statement::ExportDeclaration(export) => self.declaration(&export.declaration, parent),
            statement => {
                if let Some(declaration) = statement.as_declaration() {
                    self.declaration(declaration, None);
                }
            }
        }
    }

    fn declaration(&mut self, it: &Declaration<'_>, parent: Option<Key>) {
        if let (Some(parent), false) = (parent, is_erased(it)) {
            match it {
                Declaration::VariableDeclaration(variables) => {
                    for id in variables.declarations.iter().flat_map(|it| it.id.get_binding_identifiers()) {
                        self.add(parent, &id.name);
                    }
                }
                Declaration::TSNamespaceDeclaration(namespace) if !is_instantiated(namespace) => {}
                declaration => declaration.id().iter().for_each(|id| self.add(parent, &id.name)),
            }
        }
        match it {
            Declaration::TSNamespaceDeclaration(namespace) => self.namespace(namespace, parent),
            Declaration::TSEnumDeclaration(declaration) => {
                if let Some(key) = self.key(&declaration.id, parent) {
                    self.add_enum(declaration, key);
                }
            }
            _ => {}
        }
    }

    fn namespace(&mut self, it: &TSNamespaceDeclaration<'_>, parent: Option<Key>) {
        let Some(key) = self.key(&it.id, parent) else { return };
        match &it.body {
            TSNamespaceDeclarationBody::TSNamespaceDeclaration(inner) => {
                if is_instantiated(inner) {
                    self.add(key, &inner.id.name);
                }
                self.namespace(inner, Some(key));
            }
            TSNamespaceDeclarationBody::TSModuleBlock(block) => {
                for statement in &block.body {
                    self.statement(statement, Some(key));
                }
            }
        }
    }
}

/// Whether a namespace exists at run time. A namespace of types does not.
pub(super) fn is_instantiated(it: &TSNamespaceDeclaration<'_>) -> bool {
    match &it.body {
        TSNamespaceDeclarationBody::TSNamespaceDeclaration(inner) => is_instantiated(inner),
        TSNamespaceDeclarationBody::TSModuleBlock(block) => {
            block.body.iter().any(|statement| match statement {
                Statement::TSImportEqualsDeclaration(_) => false,
                Statement::ExportDeclaration(export) => has_value(&export.declaration),
                statement => statement.as_declaration().is_none_or(has_value),
            })
        }
    }
}

fn has_value(it: &Declaration<'_>) -> bool {
    match it {
        Declaration::TSNamespaceDeclaration(inner) => !inner.declare && is_instantiated(inner),
        declaration => !is_erased(declaration),
    }
}
