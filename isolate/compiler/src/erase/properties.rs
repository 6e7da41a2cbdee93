//! Parameter properties: `constructor(private a: A)` declares and sets a field.

use oxc_ast::ast::*;
use oxc_span::GetSpan;

use super::Eraser;

impl Eraser<'_> {
    /// Writes the fields and assignments for the modifiers of the constructor's parameters.
    pub(super) fn parameter_properties(&mut self, class: &Class<'_>) {
        let constructor = class.body.body.iter().find_map(|member| match member {
            ClassElement::MethodDefinition(method) if method.kind == MethodDefinitionKind::Constructor => {
                method.value.body.as_ref().map(|body| (method, body))
            }
            _ => None,
        });
        let Some((method, body)) = constructor else { return };
        let mut names = Vec::new();
        for parameter in method.value.params.items.iter().filter(|parameter| parameter.has_modifier()) {
            match &parameter.pattern {
                BindingPattern::BindingIdentifier(id) => names.push(id.name.as_str()),
                pattern => self.refuse("a parameter property needs a name of its own", pattern.span()),
            }
        }
        if names.is_empty() {
            return;
        }
        let fields: String = names.iter().map(|name| format!(" {name};")).collect();
        self.edits.insert(class.body.span.start + 1, fields);
        let mut filled: String = names.iter().map(|name| format!(" this.{name} = {name};")).collect();
        let Some(after) = self.place_to_fill(class, body) else {
            let message = "parameter properties need `super(…)` as a statement of the constructor itself";
            return self.refuse(message, method.span);
        };
        if !matches!(self.source.slice(after.saturating_sub(1), after), ";" | "{") {
            filled.insert(0, ';');
        }
        self.edits.insert(after, filled);
    }

    /// The position in a constructor from which `this` exists.
    fn place_to_fill(&self, class: &Class<'_>, body: &FunctionBody<'_>) -> Option<u32> {
        if class.heritage.is_some() {
            return super_call(&body.statements);
        }
        Some(body.directives.last().map_or(body.span.start + 1, |directive| directive.span.end))
    }
}

/// The end of the statement that calls `super`, which may be in a `try`.
fn super_call(statements: &[Statement<'_>]) -> Option<u32> {
    statements.iter().find_map(|statement| match statement {
        Statement::ExpressionStatement(it) => calls_super(&it.expression).then_some(it.span.end),
        Statement::TryStatement(it) => super_call(&it.block.body),
        _ => None,
    })
}

fn calls_super(it: &Expression<'_>) -> bool {
    match it {
        Expression::CallExpression(call) => matches!(call.callee, Expression::Super(_)),
        Expression::ParenthesizedExpression(it) => calls_super(&it.expression),
        _ => false,
    }
}
