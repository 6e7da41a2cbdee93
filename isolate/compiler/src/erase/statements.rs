//! Statements, and the functions in them.

use oxc_ast::ast::*;
use oxc_ast_visit::{Visit, walk};
use oxc_span::GetSpan;

use super::Eraser;
use super::namespaces::Home;
use crate::text::ends_line;

impl Eraser<'_> {
    pub(super) fn statement<'a>(&mut self, it: &Statement<'a>) {
        match it {
            Statement::ImportDeclaration(import) => self.import(import),
            Statement::ExportNamedDeclaration(export) => self.export_names(export),
            Statement::ExportFromDeclaration(export) => self.export_from(export),
            Statement::ExportAllDeclaration(export) => self.export_all(export),
            Statement::ExportDefaultDeclaration(export) => self.export_default(export),
            Statement::ExportDeclaration(export) => self.export_declaration(export),
            Statement::TSExportAssignment(export) => {
                self.refuse("`export =` is not supported: write `export default`", export.span);
            }
            Statement::TSNamespaceExportDeclaration(export) => self.erase(export.span),
            Statement::TSEnumDeclaration(declaration) if !declaration.declare => {
                self.enumeration(declaration, declaration.span.start, &Home::Here);
            }
            Statement::TSNamespaceDeclaration(namespace) if !namespace.declare => {
                self.namespace(namespace, namespace.span.start, &Home::Here);
            }
            Statement::TSImportEqualsDeclaration(alias) if alias.import_kind.is_value() => {
                self.alias(alias, alias.span, &Home::Here);
            }
            _ => match it.as_declaration() {
                Some(declaration) if is_erased(declaration) => self.erase(it.span()),
                _ => walk::walk_statement(self, it),
            },
        }
        self.edits.separate_if_open(it.span(), self.source);
    }

    pub(super) fn variables<'a>(&mut self, it: &VariableDeclaration<'a>) {
        if it.kind == VariableDeclarationKind::Const {
            it.declarations.iter().for_each(|declarator| self.note_constant(declarator));
        }
        walk::walk_variable_declaration(self, it);
    }

    /// Erases the modifiers and the question mark of a parameter.
    pub(super) fn parameter_marks(&mut self, it: &FormalParameter<'_>) {
        let pattern = it.pattern.span();
        self.blank_modifiers(it.span.start, pattern.start);
        if it.optional {
            self.blank_token(pattern.end, "?");
        }
    }

    /// Handles an arrow function. It must not have a line end before its `=>` or after its `async`, so a
    /// parenthesis moves over erased types that contain one.
    pub(super) fn arrow<'a>(&mut self, it: &ArrowFunctionExpression<'a>) {
        let params = it.params.span;
        match &it.type_parameters {
            Some(types) if self.source.breaks_line(types.span.start, params.start) => {
                self.edits.blank_with(types.span.start, types.span.end, '(');
                self.edits.blank(params.start, params.start + 1);
            }
            Some(types) => self.blank(types.span),
            None => {}
        }
        self.visit_formal_parameters(&it.params);
        if let Some(returned) = &it.return_type {
            if self.source.slice(params.end, returned.span.end).contains(ends_line) {
                self.edits.blank(params.end.saturating_sub(1), params.end);
                self.edits.blank_until(returned.span.start, returned.span.end, ')');
            } else {
                self.blank(returned.span);
            }
        }
        if let Some(body) = it.body.as_expression() {
            self.keep_expression(body);
        }
        self.visit_arrow_function_body(&it.body);
    }
}

/// Whether a declaration does not exist at run time.
pub(super) fn is_erased(it: &Declaration<'_>) -> bool {
    match it {
        Declaration::TSTypeAliasDeclaration(_)
        | Declaration::TSInterfaceDeclaration(_)
        | Declaration::TSGlobalDeclaration(_) => true,
        Declaration::VariableDeclaration(it) => it.declare,
        Declaration::FunctionDeclaration(it) => it.declare || it.body.is_none(),
        Declaration::ClassDeclaration(it) => it.declare,
        Declaration::TSEnumDeclaration(it) => it.declare,
        Declaration::TSExternalModuleDeclaration(_) => true,
        Declaration::TSNamespaceDeclaration(it) => it.declare,
        Declaration::TSImportEqualsDeclaration(it) => it.import_kind.is_type(),
    }
}
