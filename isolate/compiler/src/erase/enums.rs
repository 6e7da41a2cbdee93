//! Enums: each becomes an object that is filled in place, with each member on its own line.

use oxc_ast::ast::*;
use oxc_ast_visit::Visit;
use oxc_span::GetSpan;

use super::Eraser;
use super::catalog::Key;
use super::evaluate::{Value, literal};
use super::namespaces::{Container, Home};
use crate::text::quote;

impl Eraser<'_> {
    /// Writes an enum whose statement begins at `start`.
    pub(super) fn enumeration<'a>(&mut self, it: &TSEnumDeclaration<'a>, start: u32, home: &Home) {
        let (Some(key), Some(scope)) = (self.catalog.key(&it.id, home.parent()), it.body.scope_id.get())
        else {
            return;
        };
        if !self.is_at_top(&it.id) {
            self.catalog.add_enum(it, key);
        }
        let name = it.id.name.to_string();
        let param = self.visible_name(&name, scope, Some(scope));
        let head = self.head(&it.id, home, &param);
        self.edits.replace(start, it.body.span.start + 1, head);
        self.containers.push(Container { scope, param: param.clone(), names: self.catalog.names(key), key });
        let outer = self.current_enum.replace(key);
        let mut previous = Some(Value::Number(-1.0));
        for member in &it.body.members {
            previous = self.enum_member(member, key, &param, previous);
        }
        self.current_enum = outer;
        self.containers.pop();
        let end = it.body.span.end;
        self.edits.replace(end.saturating_sub(1), end, tail(&name, home));
    }

    /// Writes a member. Returns its value, if it is known, for the next member.
    fn enum_member<'a>(
        &mut self,
        it: &TSEnumMember<'a>,
        key: Key,
        param: &str,
        previous: Option<Value>,
    ) -> Option<Value> {
        let name = it.id.static_name().to_string();
        let quoted = quote(&name);
        let value = match (&it.initializer, previous) {
            (Some(initializer), _) => {
                let value = self.value_of(initializer);
                let (start, end) = (initializer.span().start, initializer.span().end);
                if value == Some(Value::Text) {
                    self.edits.replace(it.span.start, start, format!("{param}[{quoted}] = "));
                } else {
                    self.edits.replace(it.span.start, start, format!("{param}[{param}[{quoted}] = "));
                }
                self.visit_expression(initializer);
                let close =
                    if value == Some(Value::Text) { ";".to_owned() } else { format!("] = {quoted};") };
                self.edits.insert(end, close);
                value
            }
            (None, Some(Value::Number(previous))) => {
                let value = previous + 1.0;
                let code = format!("{param}[{param}[{quoted}] = {}] = {quoted};", literal(value));
                self.edits.replace(it.span.start, it.span.end, code);
                Some(Value::Number(value))
            }
            (None, _) => {
                self.refuse(
                    format!("enum member {name:?} needs a value: the one before it has no constant number"),
                    it.span,
                );
                None
            }
        };
        self.blank_token(it.span.end, ",");
        if let Some(value) = value {
            self.enum_values.insert((key, name), value);
        }
        value
    }

    /// Records the value of a `const` for later enums.
    pub(super) fn note_constant(&mut self, it: &VariableDeclarator<'_>) {
        if let (BindingPattern::BindingIdentifier(id), Some(init), None) =
            (&it.id, &it.init, &it.type_annotation)
            && let (Some(symbol), Some(value)) = (id.symbol_id.get(), self.value_of(init))
        {
            self.constants.insert(symbol, value);
        }
    }
}

/// The end of an enum's or namespace's code: a call with the object of that name, which may exist already.
pub(super) fn tail(name: &str, home: &Home) -> String {
    match home {
        Home::Namespace { param, .. } => format!("}})({name} = {param}.{name} || ({param}.{name} = {{}}));"),
        Home::Module | Home::Here => format!("}})({name} || ({name} = {{}}));"),
    }
}
