//! Prepares one module for the linker.

use oxc_allocator::Allocator;
use oxc_ast::ast::Program;
use oxc_diagnostics::OxcDiagnostic;
use oxc_parser::{ParseOptions, Parser};
use oxc_semantic::{Scoping, SemanticBuilder};
use oxc_span::{SourceType, Span};

use crate::body;
use crate::erase::{Eraser, NO_JSX};
use crate::error::{ErrorKind, Mistake};
use crate::record::Module;
use crate::request::{Form, Language};
use crate::text::Source;

/// Parses and erases a module.
pub(crate) fn read<'s>(
    name: &str,
    source: &'s str,
    language: Language,
    form: Form,
) -> Result<Module<'s>, Mistake> {
    let text = Source(source);
    let allocator = Allocator::default();
    let kind = match language {
        Language::Typescript => SourceType::ts(),
        Language::Javascript => SourceType::mjs().with_jsx(false),
    };
    let options =
        ParseOptions { allow_return_outside_function: form == Form::Body, ..ParseOptions::default() };
    let parsed = Parser::new(&allocator, source, kind.with_module(true)).with_options(options).parse();
    if let Some(diagnostic) = parsed.diagnostics.errors().next() {
        return Err(jsx(source, kind)
            .or_else(|| replaced(source, kind))
            .unwrap_or_else(|| syntax(diagnostic)));
    }
    let scoping = SemanticBuilder::new().build(&parsed.program).semantic.into_scoping();
    erase(name, text, language, form, &parsed.program, &scoping)
}

fn erase<'s>(
    name: &str,
    source: Source<'s>,
    language: Language,
    form: Form,
    program: &Program<'_>,
    scoping: &Scoping,
) -> Result<Module<'s>, Mistake> {
    let mut eraser = Eraser::new(source, language, scoping);
    if form == Form::Body {
        body::into_module(program, scoping, &mut eraser.edits)?;
    }
    eraser.run(program)?;
    if let (Language::Javascript, Form::Module, Some(at)) = (language, form, eraser.edits.first()) {
        // The parser accepts some of it.
        return Err(Mistake::new(
            ErrorKind::SyntaxError,
            "this is TypeScript, and the module is JavaScript",
            Span::empty(at),
        ));
    }
    let declared = eraser.declared();
    let clauses = eraser.clauses;
    Ok(Module {
        name: name.to_owned(),
        source,
        edits: eraser.edits,
        clauses: clauses.list,
        exports: clauses.exports,
        stars: clauses.stars,
        dynamic: eraser.dynamic,
        keywords: eraser.keywords,
        declared,
    })
}

fn syntax(diagnostic: &OxcDiagnostic) -> Mistake {
    let at = diagnostic.labels.first().map_or(0, |label| label.offset());
    Mistake::new(ErrorKind::SyntaxError, diagnostic.message.to_string(), Span::empty(at))
}

/// The error of a text with U+FFFD outside its strings and comments. The parser takes that for a binary file
/// and reports no position. For another invalid character of the same length it does.
fn replaced(source: &str, kind: SourceType) -> Option<Mistake> {
    if !source.contains('\u{fffd}') {
        return None;
    }
    let other = source.replace('\u{fffd}', "\u{fffe}");
    let allocator = Allocator::default();
    let mut mistake = syntax(Parser::new(&allocator, &other, kind).parse().diagnostics.errors().next()?);
    mistake.message = mistake.message.replace('\u{fffe}', "\u{fffd}");
    Some(mistake)
}

/// The error of a text that would be valid if JSX were allowed.
fn jsx(source: &str, kind: SourceType) -> Option<Mistake> {
    if !source.contains('<') {
        return None;
    }
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, source, kind.with_jsx(true)).parse();
    if parsed.diagnostics.has_errors() {
        return None;
    }
    let scoping = SemanticBuilder::new().build(&parsed.program).semantic.into_scoping();
    let mut eraser = Eraser::new(Source(source), Language::Typescript, &scoping);
    eraser.run(&parsed.program).err().filter(|mistake| mistake.message == NO_JSX)
}
