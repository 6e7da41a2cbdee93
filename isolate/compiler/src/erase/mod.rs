//! Turns TypeScript into ECMAScript: types become white space in place.
//!
//! The visitor walks over the code that stays and never into a type. So everything it meets is used at run
//! time, which decides the imports that are needed.

mod catalog;
mod classes;
mod clauses;
mod enums;
mod evaluate;
mod namespaces;
mod properties;
mod scopes;
mod statements;
mod substitute;

use std::collections::{BTreeSet, HashMap, HashSet};

use oxc_ast::ast::*;
use oxc_ast_visit::{Visit, walk};
use oxc_semantic::{Scoping, SymbolId};
use oxc_span::{GetSpan, Span};
use oxc_syntax::scope::ScopeFlags;

use crate::edits::Edits;
use crate::error::Mistake;
use crate::request::Language;
use crate::text::Source;

use catalog::{Catalog, Key};
use evaluate::Value;
use namespaces::{Alias, Container};
use scopes::Scopes;

pub(crate) use clauses::Clauses;

/// Erases one module.
pub(crate) struct Eraser<'s> {
    source: Source<'s>,
    language: Language,
    scoping: &'s Scoping,
    pub(crate) edits: Edits,
    /// The first error in the order of the text.
    mistake: Option<Mistake>,
    /// Symbols that the remaining code reads or writes.
    used: HashSet<SymbolId>,
    /// Symbols that the remaining code declares.
    bound: HashSet<SymbolId>,
    pub(crate) dynamic: BTreeSet<String>,
    /// Positions of `import` in expressions.
    pub(crate) keywords: Vec<u32>,
    /// Starts of type assertions whose operand is put in parentheses.
    opened: HashSet<u32>,
    pub(crate) clauses: Clauses,
    catalog: Catalog,
    /// Built when the first namespace or enum needs it.
    scopes: Option<Scopes>,
    /// The enclosing namespaces and enums, outermost first.
    containers: Vec<Container>,
    /// Variables that are properties of a namespace's object, and the name of the object.
    members: HashMap<SymbolId, String>,
    /// Enums and namespaces whose variable has been declared.
    introduced: HashSet<SymbolId>,
    aliases: Vec<Alias>,
    current_enum: Option<Key>,
    enum_values: HashMap<(Key, String), Value>,
    constants: HashMap<SymbolId, Value>,
}

impl<'s> Eraser<'s> {
    pub(crate) fn new(source: Source<'s>, language: Language, scoping: &'s Scoping) -> Self {
        Self {
            source,
            language,
            scoping,
            edits: Edits::default(),
            mistake: None,
            used: HashSet::new(),
            bound: HashSet::new(),
            dynamic: BTreeSet::new(),
            keywords: Vec::new(),
            opened: HashSet::new(),
            clauses: Clauses::default(),
            catalog: Catalog::default(),
            scopes: None,
            containers: Vec::new(),
            members: HashMap::new(),
            introduced: HashSet::new(),
            aliases: Vec::new(),
            current_enum: None,
            enum_values: HashMap::new(),
            constants: HashMap::new(),
        }
    }

    /// Walks over a module.
    pub(crate) fn run(&mut self, program: &Program<'_>) -> Result<(), Mistake> {
        if self.language == Language::Typescript {
            self.catalog = Catalog::of(program);
        }
        self.visit_program(program);
        self.settle_aliases();
        self.settle_clauses();
        match self.mistake.take() {
            Some(mistake) => Err(mistake),
            None => Ok(()),
        }
    }

    /// The top-level names of the module at run time, except imports.
    pub(crate) fn declared(&self) -> BTreeSet<String> {
        let bindings = self.scoping.get_bindings(self.scoping.root_scope_id()).iter();
        bindings.filter(|(_, symbol)| self.bound.contains(symbol)).map(|(name, _)| name.to_string()).collect()
    }

    fn bind(&mut self, id: &BindingIdentifier<'_>) {
        self.bound.extend(id.symbol_id.get());
    }

    fn refuse(&mut self, message: impl Into<String>, span: Span) {
        self.note(Mistake::typescript(message, span));
    }

    fn note(&mut self, mistake: Mistake) {
        if self.mistake.as_ref().is_none_or(|first| mistake.at < first.at) {
            self.mistake = Some(mistake);
        }
    }

    fn blank(&mut self, span: Span) {
        self.edits.blank(span.start, span.end);
    }

    /// Erases a statement or class member. The `;` keeps its neighbours apart.
    fn erase(&mut self, span: Span) {
        self.edits.blank_with(span.start, span.end, ';');
    }

    /// Blanks the token `wanted` if it is the next one after `at`.
    fn blank_token(&mut self, at: u32, wanted: &str) {
        if let Some(end) = self.source.after_token(at, wanted) {
            self.edits.blank(end - wanted.len() as u32, end);
        }
    }

    fn symbol_of(&self, reference: &IdentifierReference<'_>) -> Option<SymbolId> {
        let id = reference.reference_id.get()?;
        self.scoping.get_reference(id).symbol_id()
    }

    /// `return`, `throw` and `yield` end at a line end. If erasing puts one before the operand, adds
    /// parentheses.
    fn keep_on_line(&mut self, argument: &Expression<'_>) {
        let Some(Expression::TSTypeAssertion(assertion)) = leading_assertion(argument) else { return };
        if self.source.breaks_line(assertion.span.start, assertion.expression.span().start) {
            self.wrap(assertion.span.start, argument.span().end);
        }
    }

    /// Adds parentheses to an operand that would now begin with a block's `{` or a declaration's `function`.
    fn keep_expression(&mut self, expression: &Expression<'_>) {
        let Some(Expression::TSTypeAssertion(assertion)) = leading_assertion(expression) else { return };
        if begins_ambiguously(&assertion.expression) {
            self.wrap(assertion.span.start, assertion.span.end);
        }
    }

    /// Adds parentheses from the erased `<` at `start` to `end`.
    fn wrap(&mut self, start: u32, end: u32) {
        if self.opened.insert(start) {
            self.edits.insert(end, ")");
        }
    }
}

/// The type assertion at the start of an expression.
fn leading_assertion<'e, 'a>(expression: &'e Expression<'a>) -> Option<&'e Expression<'a>> {
    let mut expression = expression;
    loop {
        if matches!(expression, Expression::TSTypeAssertion(_)) {
            return Some(expression);
        }
        expression = leftmost(expression)?;
    }
}

fn begins_ambiguously(expression: &Expression<'_>) -> bool {
    let mut expression = expression;
    loop {
        match expression {
            Expression::ObjectExpression(_)
            | Expression::FunctionExpression(_)
            | Expression::ClassExpression(_) => {
                return true;
            }
            Expression::TSTypeAssertion(assertion) => expression = &assertion.expression,
            _ => match leftmost(expression) {
                Some(next) => expression = next,
                None => return false,
            },
        }
    }
}

/// The operand at the start of an expression.
fn leftmost<'e, 'a>(expression: &'e Expression<'a>) -> Option<&'e Expression<'a>> {
    Some(match expression {
        Expression::BinaryExpression(it) => &it.left,
        Expression::LogicalExpression(it) => &it.left,
        Expression::ConditionalExpression(it) => &it.test,
        Expression::SequenceExpression(it) => it.expressions.first()?,
        Expression::CallExpression(it) => &it.callee,
        Expression::TaggedTemplateExpression(it) => &it.tag,
        Expression::StaticMemberExpression(it) => &it.object,
        Expression::ComputedMemberExpression(it) => &it.object,
        Expression::PrivateFieldExpression(it) => &it.object,
        Expression::TSAsExpression(it) => &it.expression,
        Expression::TSSatisfiesExpression(it) => &it.expression,
        Expression::TSNonNullExpression(it) => &it.expression,
        Expression::TSInstantiationExpression(it) => &it.expression,
        _ => return None,
    })
}

impl<'a> Visit<'a> for Eraser<'_> {
    // Statements: statements.rs and clauses.rs.

    fn visit_program(&mut self, it: &Program<'a>) {
        for statement in &it.body {
            self.visit_statement(statement);
        }
    }

    fn visit_statement(&mut self, it: &Statement<'a>) {
        self.statement(it);
    }

    fn visit_for_statement_init(&mut self, it: &ForStatementInit<'a>) {
        walk::walk_for_statement_init(self, it);
    }

    fn visit_variable_declaration(&mut self, it: &VariableDeclaration<'a>) {
        self.variables(it);
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        if it.definite {
            self.blank_token(it.id.span().end, "!");
        }
        walk::walk_variable_declarator(self, it);
    }

    fn visit_return_statement(&mut self, it: &ReturnStatement<'a>) {
        it.argument.iter().for_each(|argument| self.keep_on_line(argument));
        walk::walk_return_statement(self, it);
    }

    fn visit_throw_statement(&mut self, it: &ThrowStatement<'a>) {
        self.keep_on_line(&it.argument);
        walk::walk_throw_statement(self, it);
    }

    fn visit_expression_statement(&mut self, it: &ExpressionStatement<'a>) {
        self.keep_expression(&it.expression);
        walk::walk_expression_statement(self, it);
    }

    // Expressions.

    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        self.name(it);
    }

    fn visit_binding_identifier(&mut self, it: &BindingIdentifier<'a>) {
        self.bind(it);
    }

    fn visit_object_property(&mut self, it: &ObjectProperty<'a>) {
        match (&it.value, it.shorthand) {
            (Expression::Identifier(name), true) => self.shorthand(name),
            _ => walk::walk_object_property(self, it),
        }
    }

    fn visit_assignment_target_property_identifier(&mut self, it: &AssignmentTargetPropertyIdentifier<'a>) {
        self.shorthand(&it.binding);
        if let Some(init) = &it.init {
            self.visit_expression(init);
        }
    }

    fn visit_ts_as_expression(&mut self, it: &TSAsExpression<'a>) {
        self.visit_expression(&it.expression);
        self.edits.blank(it.expression.span().end, it.span.end);
    }

    fn visit_ts_satisfies_expression(&mut self, it: &TSSatisfiesExpression<'a>) {
        self.visit_expression(&it.expression);
        self.edits.blank(it.expression.span().end, it.span.end);
    }

    fn visit_ts_non_null_expression(&mut self, it: &TSNonNullExpression<'a>) {
        self.visit_expression(&it.expression);
        self.edits.blank(it.span.end.saturating_sub(1), it.span.end);
    }

    fn visit_ts_type_assertion(&mut self, it: &TSTypeAssertion<'a>) {
        let (start, end) = (it.span.start, it.expression.span().start);
        if self.opened.contains(&start) {
            self.edits.blank_with(start, end, '(');
        } else {
            self.edits.blank(start, end);
        }
        self.visit_expression(&it.expression);
    }

    fn visit_yield_expression(&mut self, it: &YieldExpression<'a>) {
        it.argument.iter().for_each(|argument| self.keep_on_line(argument));
        walk::walk_yield_expression(self, it);
    }

    fn visit_import_expression(&mut self, it: &ImportExpression<'a>) {
        if it.phase.is_some() {
            self.refuse("import phases are not supported: write `import()`", it.span);
        }
        match &it.source {
            Expression::StringLiteral(literal) => {
                self.dynamic.insert(literal.value.to_string());
            }
            Expression::TemplateLiteral(template) => {
                if let (Some(quasi), true) = (template.quasis.first(), template.expressions.is_empty()) {
                    self.dynamic.extend(quasi.value.cooked.map(|text| text.to_string()));
                }
            }
            _ => {}
        }
        self.keywords.push(it.span.start);
        walk::walk_import_expression(self, it);
    }

    fn visit_import_meta(&mut self, it: &ImportMeta) {
        self.keywords.push(it.span.start);
    }

    // Functions.

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        self.arrow(it);
    }

    fn visit_formal_parameter(&mut self, it: &FormalParameter<'a>) {
        self.parameter_marks(it);
        walk::walk_formal_parameter(self, it);
    }

    fn visit_ts_this_parameter(&mut self, it: &TSThisParameter<'a>) {
        self.blank(it.span);
        self.blank_token(it.span.end, ",");
    }

    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        walk::walk_function(self, it, flags);
    }

    // Classes: classes.rs.

    fn visit_class(&mut self, it: &Class<'a>) {
        self.class(it);
    }

    fn visit_class_element(&mut self, it: &ClassElement<'a>) {
        self.member(it);
    }

    fn visit_decorator(&mut self, it: &Decorator<'a>) {
        self.refuse("decorators are not supported: call the function yourself", it.span);
    }

    // Types.

    fn visit_ts_type(&mut self, _: &TSType<'a>) {}

    fn visit_ts_type_annotation(&mut self, it: &TSTypeAnnotation<'a>) {
        self.blank(it.span);
    }

    fn visit_ts_type_parameter_declaration(&mut self, it: &TSTypeParameterDeclaration<'a>) {
        self.blank(it.span);
    }

    fn visit_ts_type_parameter_instantiation(&mut self, it: &TSTypeParameterInstantiation<'a>) {
        self.blank(it.span);
    }

    // Statements and members that statements.rs, clauses.rs and classes.rs handle as a whole. The walk never
    // gets here. The empty methods keep code that visits types out of the wasm.

    fn visit_ts_type_alias_declaration(&mut self, _: &TSTypeAliasDeclaration<'a>) {}

    fn visit_ts_interface_declaration(&mut self, _: &TSInterfaceDeclaration<'a>) {}

    fn visit_ts_enum_declaration(&mut self, _: &TSEnumDeclaration<'a>) {}

    fn visit_ts_external_module_declaration(&mut self, _: &TSExternalModuleDeclaration<'a>) {}

    fn visit_ts_namespace_declaration(&mut self, _: &TSNamespaceDeclaration<'a>) {}

    fn visit_ts_global_declaration(&mut self, _: &TSGlobalDeclaration<'a>) {}

    fn visit_ts_import_equals_declaration(&mut self, _: &TSImportEqualsDeclaration<'a>) {}

    fn visit_ts_index_signature(&mut self, _: &TSIndexSignature<'a>) {}

    fn visit_ts_class_implements(&mut self, _: &TSClassImplements<'a>) {}

    // Syntax that no engine accepts.

    fn visit_jsx_element(&mut self, it: &JSXElement<'a>) {
        self.refuse(NO_JSX, it.span);
    }

    fn visit_jsx_fragment(&mut self, it: &JSXFragment<'a>) {
        self.refuse(NO_JSX, it.span);
    }
}

/// The sandbox has no function that JSX could call.
pub(crate) const NO_JSX: &str = "JSX is not supported: call the functions that it stands for";
