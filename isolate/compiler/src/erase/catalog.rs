//! Namespaces and enums that are declared in several parts: each part sees what the others export.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use oxc_ast::ast::*;
use oxc_semantic::SymbolId;

use super::statements::is_erased;

/// All parts of one namespace or enum.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    root: SymbolId,
    /// Names of exported namespaces on the way from the root.
    path: Vec<String>,
}

impl Key {
    /// The key of a declaration: of its own, or, when a namespace exports it, below that namespace's.
    pub(super) fn new(id: &BindingIdentifier<'_>, parent: Option<&Key>) -> Option<Self> {
        match parent {
            Some(parent) => Some(parent.below(&id.name)),
            None => Some(Self { root: id.symbol_id.get()?, path: Vec::new() }),
        }
    }

    pub(super) fn of_symbol(root: SymbolId) -> Self {
        Self { root, path: Vec::new() }
    }

    pub(super) fn below(&self, name: &str) -> Self {
        let mut path = self.path.clone();
        path.push(name.to_owned());
        Self { root: self.root, path }
    }
}

/// The values that namespaces export and the members that enums have, over all parts.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    names: HashMap<Key, HashSet<String>>,
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

    pub(super) fn names(&self, key: &Key) -> Option<&HashSet<String>> {
        self.names.get(key)
    }

    /// A copy for the time in which a part is written.
    pub(super) fn shared(&self, key: &Key) -> Rc<HashSet<String>> {
        Rc::new(self.names.get(key).cloned().unwrap_or_default())
    }

    /// An enum that is not at the top level; its parts are in one block.
    pub(super) fn add_enum(&mut self, it: &TSEnumDeclaration<'_>, key: &Key) {
        let members = it.body.members.iter().map(|member| member.id.static_name().to_string());
        self.names.entry(key.clone()).or_default().extend(members);
    }

    fn statement(&mut self, it: &Statement<'_>, parent: Option<&Key>) {
        match it {
            Statement::ExportDeclaration(export) => self.declaration(&export.declaration, parent),
            statement => {
                if let Some(declaration) = statement.as_declaration() {
                    self.declaration(declaration, None);
                }
            }
        }
    }

    fn declaration(&mut self, it: &Declaration<'_>, parent: Option<&Key>) {
        if let (Some(parent), false) = (parent, is_erased(it)) {
            let names = self.names.entry(parent.clone()).or_default();
            match it {
                Declaration::VariableDeclaration(variables) => {
                    for declarator in &variables.declarations {
                        names.extend(
                            declarator.id.get_binding_identifiers().iter().map(|id| id.name.to_string()),
                        );
                    }
                }
                Declaration::TSNamespaceDeclaration(namespace) if !is_instantiated(namespace) => {}
                declaration => names.extend(declaration.id().map(|id| id.name.to_string())),
            }
        }
        match it {
            Declaration::TSNamespaceDeclaration(namespace) => self.namespace(namespace, parent),
            Declaration::TSEnumDeclaration(declaration) => {
                if let Some(key) = Key::new(&declaration.id, parent) {
                    self.add_enum(declaration, &key);
                }
            }
            _ => {}
        }
    }

    fn namespace(&mut self, it: &TSNamespaceDeclaration<'_>, parent: Option<&Key>) {
        let Some(key) = Key::new(&it.id, parent) else { return };
        match &it.body {
            TSNamespaceDeclarationBody::TSNamespaceDeclaration(inner) => {
                if is_instantiated(inner) {
                    self.names.entry(key.clone()).or_default().insert(inner.id.name.to_string());
                }
                self.namespace(inner, Some(&key));
            }
            TSNamespaceDeclarationBody::TSModuleBlock(block) => {
                self.names.entry(key.clone()).or_default();
                for statement in &block.body {
                    self.statement(statement, Some(&key));
                }
            }
        }
    }
}

/// Whether a namespace is anything at run time: one that only has types is not.
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
