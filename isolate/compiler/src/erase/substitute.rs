//! Names that become properties: exports of a namespace, and members of an enum in its own initializers.

use oxc_ast::ast::*;

use oxc_semantic::ScopeId;

use super::Eraser;
use super::scopes::Scopes;

impl Eraser<'_> {
    /// The property that a name means, if it is not a variable.
    pub(super) fn substitute(&self, it: &IdentifierReference<'_>) -> Option<String> {
        if self.containers.is_empty() {
            return None;
        }
        let symbol = self.symbol_of(it);
        if let Some(param) = symbol.and_then(|symbol| self.members.get(&symbol)) {
            return Some(format!("{param}.{}", it.name));
        }
        let declared = symbol.map(|symbol| self.scoping.symbol_scope_id(symbol));
        for container in self.containers.iter().rev() {
            let is_enum = self.current_enum == Some(container.key);
            if declared == Some(container.scope) {
                // In an enum, all names of its scope are its members.
                return is_enum.then(|| format!("{}.{}", container.param, it.name));
            }
            if declared.is_some_and(|scope| self.is_within(scope, container.scope)) {
                return None;
            }
            if container.names.contains(it.name.as_str()) {
                return Some(format!("{}.{}", container.param, it.name));
            }
        }
        None
    }

    fn is_within(&self, inner: ScopeId, outer: ScopeId) -> bool {
        self.scopes.as_ref().is_some_and(|scopes| scopes.is_within(inner, outer))
    }

    /// The name of a namespace's or enum's object inside its body.
    pub(super) fn visible_name(&mut self, name: &str, scope: ScopeId, except: Option<ScopeId>) -> String {
        self.scopes.get_or_insert_with(|| Scopes::of(self.scoping)).visible_name(name, scope, except)
    }

    /// Handles a name in code that stays.
    pub(super) fn name<'a>(&mut self, it: &IdentifierReference<'a>) {
        self.note_use(it);
        let Some(property) = self.substitute(it) else { return };
        self.edits.replace(it.span.start, it.span.end, property);
    }

    pub(super) fn note_use(&mut self, it: &IdentifierReference<'_>) {
        if let Some(symbol) = self.symbol_of(it) {
            self.used.insert(symbol);
        }
    }

    /// Writes `{ a }` as `{ a: N.a }`.
    pub(super) fn shorthand<'a>(&mut self, it: &IdentifierReference<'a>) {
        self.note_use(it);
        if let Some(property) = self.substitute(it) {
            self.edits.insert(it.span.end, format!(": {property}"));
        }
    }
}
