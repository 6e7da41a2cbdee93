//! Turns a model's code, written as the body of an async function, as a function or as a module, into a
//! module.
//!
//! A body becomes a function that the module exports as default. Without a `return` of its own, it returns
//! the value of its last expression. Code that would do nothing is an error, because its author would mistake
//! silence for success.

use oxc_ast::ast::*;
use oxc_ast_visit::{Visit, walk};
use oxc_semantic::{Scoping, SymbolId};
use oxc_span::{GetSpan, Span};
use oxc_syntax::scope::ScopeFlags;

use crate::edits::Edits;
use crate::error::{ErrorKind, Mistake};

/// The advice in an error message.
const WANTED: &str = "write the body of an async function, with `return` for the result";

/// Makes a module that exports a function as default. Imports stay outside the function.
pub(crate) fn into_module(
    program: &Program<'_>,
    scoping: &Scoping,
    edits: &mut Edits,
) -> Result<(), Mistake> {
    let is_code =
        |it: &&Statement<'_>| !matches!(it, Statement::ImportDeclaration(_) | Statement::EmptyStatement(_));
    let mut code = program.body.iter().filter(is_code);
    let Some(first) = code.next() else {
        return Err(mistake(format!("there is no code to run: {WANTED}"), program.span));
    };
    let last = code.next_back().unwrap_or(first);
    if program.body.iter().any(exports_default) {
        return Ok(());
    }
    if program.body.iter().any(exports) {
        let Some(name) = program.body.iter().rev().find_map(|it| exported_function(it, scoping)) else {
            return Err(mistake(format!("the code exports no function: {WANTED}"), first.span()));
        };
        edits.insert(last.span().end, format!("; export default {name};"));
        return Ok(());
    }
    edits.insert(first.span().start, "export default async () => {");
    match last {
        Statement::ExpressionStatement(it) => returned(&it.expression, "return (", edits),
        Statement::ReturnStatement(it) => {
            if let Some(argument) = it.argument.as_ref().filter(|it| is_function(it)) {
                returned(argument, "(", edits);
            }
        }
        _ if acts(program) => {}
        _ => {
            let functions = || {
                program
                    .body
                    .iter()
                    .rev()
                    .filter_map(Statement::as_declaration)
                    .filter_map(|it| function_in(it, scoping))
            };
            let Some(function) = functions().find(|it| it.unused).or_else(|| functions().next()) else {
                return Err(mistake(format!("the code does nothing: {WANTED}"), first.span()));
            };
            edits.insert(last.span().end, format!("; return {}()", function.name));
        }
    }
    edits.insert(last.span().end, "};");
    Ok(())
}

fn mistake(message: String, span: Span) -> Mistake {
    Mistake::new(ErrorKind::SyntaxError, message, span)
}

/// Returns an expression; calls it if it is a function.
fn returned(expression: &Expression<'_>, before: &str, edits: &mut Edits) {
    let Span { start, end, .. } = expression.span();
    edits.insert(start, before);
    edits.insert(end, if is_function(expression) { ")()" } else { ")" });
}

fn is_function(expression: &Expression<'_>) -> bool {
    let inner = expression.get_inner_expression();
    matches!(inner, Expression::ArrowFunctionExpression(_) | Expression::FunctionExpression(_))
}

fn exports_default(statement: &Statement<'_>) -> bool {
    match statement {
        Statement::ExportDefaultDeclaration(_) => true,
        Statement::ExportNamedDeclaration(it) => {
            it.specifiers.iter().any(|it| it.exported.name() == "default")
        }
        _ => false,
    }
}

/// Whether a statement exports more than types.
fn exports(statement: &Statement<'_>) -> bool {
    match statement {
        Statement::ExportDeclaration(it) => !it.declaration.is_type(),
        Statement::ExportNamedDeclaration(it) => it.export_kind.is_value(),
        Statement::ExportFromDeclaration(it) => it.export_kind.is_value(),
        Statement::ExportAllDeclaration(it) => it.export_kind.is_value(),
        _ => false,
    }
}

/// The last function that a statement exports, or a local value, which may be a function.
fn exported_function<'a>(statement: &'a Statement<'_>, scoping: &Scoping) -> Option<&'a str> {
    match statement {
        Statement::ExportDeclaration(it) => Some(function_in(&it.declaration, scoping)?.name),
        Statement::ExportNamedDeclaration(it) => match &it.specifiers.last()?.local {
            ModuleExportName::IdentifierReference(local) => Some(local.name.as_str()),
            _ => None,
        },
        _ => None,
    }
}

/// A named function.
struct Named<'a> {
    name: &'a str,
    /// Whether nothing refers to it.
    unused: bool,
}

/// The last function that a declaration declares.
fn function_in<'a>(declaration: &'a Declaration<'_>, scoping: &Scoping) -> Option<Named<'a>> {
    let id = match declaration {
        Declaration::FunctionDeclaration(it) if it.body.is_some() => it.id.as_ref()?,
        Declaration::VariableDeclaration(it) => it.declarations.iter().rev().find_map(|it| match &it.id {
            BindingPattern::BindingIdentifier(id) if it.init.as_ref().is_some_and(is_function) => Some(&**id),
            _ => None,
        })?,
        _ => return None,
    };
    let is_unused = |symbol: SymbolId| scoping.symbol_is_unused(symbol);
    Some(Named { name: id.name.as_str(), unused: id.symbol_id.get().is_some_and(is_unused) })
}

/// Whether code acts before one of its functions is called: calls one, loops, awaits, returns or throws.
fn acts(program: &Program<'_>) -> bool {
    let mut acts = Acts(false);
    acts.visit_program(program);
    acts.0
}

struct Acts(bool);

impl<'a> Visit<'a> for Acts {
    fn visit_call_expression(&mut self, _: &CallExpression<'a>) {
        self.0 = true;
    }

    fn visit_new_expression(&mut self, _: &NewExpression<'a>) {
        self.0 = true;
    }

    fn visit_tagged_template_expression(&mut self, _: &TaggedTemplateExpression<'a>) {
        self.0 = true;
    }

    fn visit_import_expression(&mut self, _: &ImportExpression<'a>) {
        self.0 = true;
    }

    fn visit_await_expression(&mut self, _: &AwaitExpression<'a>) {
        self.0 = true;
    }

    fn visit_return_statement(&mut self, _: &ReturnStatement<'a>) {
        self.0 = true;
    }

    fn visit_throw_statement(&mut self, _: &ThrowStatement<'a>) {
        self.0 = true;
    }

    fn visit_statement(&mut self, it: &Statement<'a>) {
        self.0 |= it.is_iteration_statement();
        if !self.0 {
            walk::walk_statement(self, it);
        }
    }

    // Code in a function runs only when it is called.

    fn visit_function(&mut self, _: &Function<'a>, _: ScopeFlags) {}

    fn visit_arrow_function_expression(&mut self, _: &ArrowFunctionExpression<'a>) {}

    fn visit_ts_type(&mut self, _: &TSType<'a>) {}
}
