//! Classes and their members.

use oxc_ast::ast::*;
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan, Span};

use super::Eraser;

/// Modifiers before a member's name that only the type checker needs.
const MODIFIERS: [&str; 7] =
    ["public", "private", "protected", "readonly", "abstract", "override", "declare"];

impl Eraser<'_> {
    pub(super) fn class<'a>(&mut self, it: &Class<'a>) {
        self.visit_decorators(&it.decorators);
        let mut head = it.span.start;
        if let Some(end) = it.r#abstract.then(|| self.source.after_token(head, "abstract")).flatten() {
            self.edits.blank(end - "abstract".len() as u32, end);
            head = end;
        }
        head = self.source.after_token(head, "class").unwrap_or(head);
        if let Some(id) = &it.id {
            self.bind(id);
            head = id.span.end;
        }
        if let Some(types) = &it.type_parameters {
            self.blank(types.span);
            head = types.span.end;
        }
        if let Some(heritage) = &it.heritage {
            self.visit_class_heritage(heritage);
            head = heritage
                .type_arguments
                .as_ref()
                .map_or(heritage.expression.span().end, |types| types.span.end);
        }
        if let Some(last) = it.implements.last() {
            self.edits.blank(self.source.token(head), last.span.end);
        }
        self.parameter_properties(it);
        self.visit_class_body(&it.body);
    }

    pub(super) fn member<'a>(&mut self, it: &ClassElement<'a>) {
        match it {
            ClassElement::StaticBlock(_) => walk::walk_class_element(self, it),
            ClassElement::MethodDefinition(method) => self.method(method),
            ClassElement::PropertyDefinition(field) => self.field(field),
            ClassElement::AccessorProperty(it)
                if it.r#type == AccessorPropertyType::TSAbstractAccessorProperty =>
            {
                self.erase(it.span);
            }
            ClassElement::AccessorProperty(accessor) => {
                self.refuse("`accessor` is not supported: write a getter and a setter", accessor.span);
            }
            ClassElement::TSIndexSignature(signature) => self.erase(signature.span),
        }
        self.edits.separate_if_open(it.span(), self.source);
    }

    fn method<'a>(&mut self, it: &MethodDefinition<'a>) {
        self.visit_decorators(&it.decorators);
        if it.value.body.is_none() {
            return self.erase(it.span);
        }
        self.member_modifiers(it.span, it.key.span());
        self.visit_property_key(&it.key);
        if it.optional {
            self.blank_token(self.key_end(it.key.span(), it.computed), "?");
        }
        walk::walk_function(self, &it.value, oxc_syntax::scope::ScopeFlags::Function);
    }

    fn field<'a>(&mut self, it: &PropertyDefinition<'a>) {
        self.visit_decorators(&it.decorators);
        if it.declare || it.r#type == PropertyDefinitionType::TSAbstractPropertyDefinition {
            return self.erase(it.span);
        }
        self.member_modifiers(it.span, it.key.span());
        self.visit_property_key(&it.key);
        let end = self.key_end(it.key.span(), it.computed);
        if it.optional {
            self.blank_token(end, "?");
        } else if it.definite {
            self.blank_token(end, "!");
        }
        if let Some(annotation) = &it.type_annotation {
            self.visit_ts_type_annotation(annotation);
        }
        if let Some(value) = &it.value {
            self.visit_expression(value);
        }
    }

    /// The end of a member's name, including the bracket of a computed one.
    fn key_end(&self, key: Span, computed: bool) -> u32 {
        computed.then(|| self.source.after_token(key.end, "]")).flatten().unwrap_or(key.end)
    }

    /// Erases the modifiers of a member. Without them, its name could continue the initializer of the
    /// previous field.
    fn member_modifiers(&mut self, member: Span, key: Span) {
        let first = self.source.token(member.start);
        let next = self.blank_modifiers(member.start, key.start);
        let continues = self.source.has(next, "[")
            || self.source.has(next, "*")
            || matches!(self.source.slice(next, self.source.word_end(next)), "in" | "instanceof");
        if continues {
            self.edits.separate_start(first);
        }
    }

    /// Blanks the modifiers from `at` to the name at `end`. Returns the position of the first token that
    /// stays.
    pub(super) fn blank_modifiers(&mut self, at: u32, end: u32) -> u32 {
        let mut at = self.source.token(at);
        let mut stays = None;
        while at < end {
            let word_end = self.source.word_end(at).min(end);
            if word_end <= at {
                break;
            }
            if MODIFIERS.contains(&self.source.slice(at, word_end)) {
                self.edits.blank(at, word_end);
            } else {
                stays = stays.or(Some(at));
            }
            at = self.source.token(word_end);
        }
        stays.unwrap_or(at)
    }
}
