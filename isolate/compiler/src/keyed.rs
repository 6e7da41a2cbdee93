//! Links by keys, for an engine with its own rules for specifiers. All imports of a module move to its last
//! line, where they displace nothing. They use names that mean the same module everywhere.

use std::collections::BTreeMap;

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    ExportAllDeclaration, ExportFromDeclaration, ImportDeclaration, ImportExpression, ImportMeta,
    StringLiteral,
};
use oxc_ast_visit::Visit;
use oxc_parser::Parser;
use oxc_span::SourceType;

use crate::error::{CompileError, ErrorKind};
use crate::link::{Linked, stays};
use crate::record::{Clause, Form, Keep, Part, Stands, Wanted};
use crate::resolve::Target;
use crate::text::{Source, quote};

/// The module of the globals.
pub(crate) const GLOBALS: &str = "globals";
/// The module that exports, under the key of each module, its replacement for `import`.
const IMPORTS: &str = "imports";

/// The keys of all modules of a call, by name.
pub(crate) struct Keys {
    by_name: BTreeMap<String, String>,
}

impl Keys {
    pub(crate) fn new<'a>(
        modules: impl Iterator<Item = &'a str>,
        hosts: impl Iterator<Item = &'a String>,
    ) -> Self {
        let modules = modules.enumerate().map(|(at, name)| (name.to_owned(), format!("m{at}")));
        let hosts = hosts.enumerate().map(|(at, name)| (Target::Host(name.clone()).name(), format!("h{at}")));
        Self { by_name: modules.chain(hosts).collect() }
    }

    pub(crate) fn into_list(self) -> Vec<(String, String)> {
        self.by_name.into_iter().collect()
    }

    fn of<'a>(&'a self, name: &'a str) -> &'a str {
        // Every name that a link leads to has a key.
        self.by_name.get(name).map_or(name, String::as_str)
    }
}

/// Removes the links of a module from its text. Returns the line that replaces them.
pub(crate) fn unlink(linked: &mut Linked<'_>, keys: &Keys, taken: impl Fn(&str) -> bool) -> String {
    let Linked { module, resolved } = linked;
    let source = |specifier: &str| {
        let name = resolved.iter().find(|(known, _)| known == specifier).map_or("", |(_, name)| name);
        quote(keys.of(name))
    };
    let mut lines = BTreeMap::new();
    for clause in module.clauses.iter().filter(|clause| stays(clause)) {
        if let Some(request) = &clause.request {
            lines.insert(clause.span.start, statement(clause, &source(&request.specifier)));
            module.edits.blank_with(clause.span.start, clause.span.end, ';');
        }
    }
    for star in &module.stars {
        lines.insert(star.span.start, format!("export * from {};", source(&star.request.specifier)));
        module.edits.blank_with(star.span.start, star.span.end, ';');
    }
    if !module.keywords.is_empty() {
        let name = unused(module.source, taken);
        for at in &module.keywords {
            module.edits.replace(*at, at + "import".len() as u32, name.clone());
        }
        let line = format!("import {{ {} as {name} }} from {};", keys.of(&module.name), quote(IMPORTS));
        lines.insert(u32::MAX, line);
    }
    lines.into_values().collect::<Vec<_>>().join(" ")
}

/// Refuses a text with a remaining link of its own, which the engine would follow even out of the sandbox. A
/// link that the eraser missed must not get through, so this checks the whole text again.
pub(crate) fn check(name: &str, code: &str, keys: &Keys) -> Result<(), CompileError> {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, code, SourceType::mjs()).parse();
    let mut links = Links { keys, foreign: parsed.diagnostics.has_errors() };
    links.visit_program(&parsed.program);
    if !links.foreign {
        return Ok(());
    }
    let message = "an import in this module cannot be linked for the engine v8".to_owned();
    Err(CompileError { filename: Some(name.to_owned()), ..CompileError::new(ErrorKind::LinkError, message) })
}

/// Finds links that lead to anything but a key.
struct Links<'k> {
    keys: &'k Keys,
    foreign: bool,
}

impl Links<'_> {
    fn source(&mut self, source: &StringLiteral<'_>) {
        let source = source.value.as_str();
        let ours =
            source == GLOBALS || source == IMPORTS || self.keys.by_name.values().any(|key| key == source);
        self.foreign |= !ours;
    }
}

impl<'a> Visit<'a> for Links<'_> {
    fn visit_import_declaration(&mut self, it: &ImportDeclaration<'a>) {
        self.source(&it.source);
    }

    fn visit_export_from_declaration(&mut self, it: &ExportFromDeclaration<'a>) {
        self.source(&it.source);
    }

    fn visit_export_all_declaration(&mut self, it: &ExportAllDeclaration<'a>) {
        self.source(&it.source);
    }

    fn visit_import_expression(&mut self, _: &ImportExpression<'a>) {
        self.foreign = true;
    }

    fn visit_import_meta(&mut self, _: &ImportMeta) {
        self.foreign = true;
    }
}

/// An import or export statement without its types.
fn statement(clause: &Clause, source: &str) -> String {
    let keyword = if clause.form == Form::Import { "import" } else { "export" };
    let kept = clause.parts.iter().filter(|part| part.keep != Keep::No);
    let (stars, names): (Vec<&Part>, Vec<&Part>) = kept.partition(|part| part.stands == Stands::Star);
    let own = |part: &Part| match clause.form {
        Form::Import => part.own.clone(),
        Form::Export | Form::ExportFrom => quote(&part.own),
    };
    let mut text: String =
        stars.iter().map(|part| format!("{keyword} * as {} from {source};", own(part))).collect();
    if !names.is_empty() {
        let names = names.iter().map(|part| match &part.wanted {
            Wanted::Name(wanted) => format!("{} as {}", quote(wanted), own(part)),
            Wanted::Namespace => own(part),
        });
        text.push_str(&format!("{keyword} {{ {} }} from {source};", names.collect::<Vec<_>>().join(", ")));
    }
    // The module is imported for its side effects.
    if text.is_empty() { format!("import {source};") } else { text }
}

/// A name as long as `import` that the module does not use.
fn unused(source: Source<'_>, taken: impl Fn(&str) -> bool) -> String {
    let names = (0_u32..).map(|number| format!("$im{number:03}"));
    names.into_iter().find(|name| !source.0.contains(name.as_str()) && !taken(name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_with_a_link_of_its_own_is_refused() {
        let keys = Keys::new(["main"].into_iter(), [String::from("host")].iter());
        for code in [
            "import 'm0'; import { a } from 'h0'; export * from 'globals'",
            "export { a } from 'imports'",
            "f('import(1)')",
        ] {
            assert_eq!(check("main", code, &keys), Ok(()), "{code}");
        }
        for code in [
            "import 'cloudflare:workers'",
            "export * from 'node:process'",
            "export { a } from './m0'",
            "() => import('m0')",
            "`${[class { static { import.meta } }]}`",
            "this is no code",
        ] {
            assert!(check("main", code, &keys).is_err(), "{code}");
        }
    }
}
