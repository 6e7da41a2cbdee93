//! Writes a linked module as the text for the engine.

use std::collections::BTreeSet;

use oxc_syntax::identifier::is_identifier_name;
use oxc_syntax::keyword::is_reserved_keyword;

use crate::edits::Edits;
use crate::error::{CompileError, ErrorKind, Mistake};
use crate::keyed::{self, Keys};
use crate::link::{Linked, stays};
use crate::record::{Clause, Fate, Form, Keep, Part, Stands, Wanted};
use crate::request::Compiled;
use crate::resolve::GLOBALS;
use crate::text::Source;

/// Names that an import in a module cannot bind, besides the reserved words.
const NOT_BINDABLE: [&str; 12] = [
    "arguments",
    "await",
    "eval",
    "implements",
    "interface",
    "let",
    "package",
    "private",
    "protected",
    "public",
    "static",
    "yield",
];

/// The names that every module gets.
pub(crate) struct Globals<'r> {
    names: BTreeSet<&'r str>,
}

impl<'r> Globals<'r> {
    /// Refuses names that a module cannot bind.
    pub(crate) fn new(names: &'r [String]) -> Result<Self, CompileError> {
        let bindable = |name: &str| {
            is_identifier_name(name) && !is_reserved_keyword(name) && !NOT_BINDABLE.contains(&name)
        };
        match names.iter().find(|name| !bindable(name)) {
            Some(name) => {
                Err(CompileError::invalid(format!("globals: {name:?} cannot be the name of a variable")))
            }
            None => Ok(Self { names: names.iter().map(String::as_str).collect() }),
        }
    }
}

/// Writes a module. Each name that it exports must be declared by it or by the host.
pub(crate) fn write(
    mut linked: Linked<'_>,
    globals: &Globals<'_>,
    keys: Option<&Keys>,
) -> Result<Compiled, CompileError> {
    let moved = keys.map(|keys| keyed::unlink(&mut linked, keys, |name| globals.names.contains(name)));
    let Linked { module, resolved } = linked;
    let mut edits = module.edits;
    let mut own = module.declared;
    for clause in &module.clauses {
        if moved.is_none() || clause.request.is_none() || !stays(clause) {
            shrink(&mut edits, module.source, clause);
        }
        if clause.form == Form::Import {
            own.extend(kept(clause).map(|part| part.own.clone()));
        }
    }
    for part in module.clauses.iter().filter(|clause| clause.form == Form::Export).flat_map(kept) {
        if let Wanted::Name(name) = &part.wanted
            && !own.contains(name)
            && !globals.names.contains(name.as_str())
        {
            let mistake =
                Mistake::new(ErrorKind::SyntaxError, format!("{name:?} is not declared"), part.span);
            return Err(mistake.locate(module.source, &module.name));
        }
    }
    let (mut code, columns) = edits.apply(module.source);
    let missing: Vec<&str> = globals.names.iter().copied().filter(|name| !own.contains(*name)).collect();
    let mut last = moved.unwrap_or_default();
    if !missing.is_empty() {
        let home = if keys.is_some() { keyed::GLOBALS } else { GLOBALS };
        last.push_str(&format!("import {{ {} }} from \"{home}\";", missing.join(", ")));
    }
    if !last.is_empty() {
        // Imports are hoisted, so this line can go to the end, where it moves nothing.
        code.push('\n');
        code.push_str(&last);
    }
    if let Some(keys) = keys {
        keyed::check(&module.name, &code, keys)?;
    }
    Ok(Compiled { name: module.name, code, resolved, moved: columns })
}

fn kept(clause: &Clause) -> impl Iterator<Item = &Part> {
    clause.parts.iter().filter(|part| part.keep != Keep::No)
}

/// Erases the types from an import or export.
fn shrink(edits: &mut Edits, source: Source<'_>, clause: &Clause) {
    let gone = |part: &&Part| part.keep == Keep::No;
    if clause.fate == Fate::Erased && clause.parts.iter().all(|part| gone(&part)) {
        edits.blank_with(clause.span.start, clause.span.end, ';');
        return;
    }
    for (at, part) in clause.parts.iter().enumerate().filter(|(_, part)| gone(part)) {
        let comma = source.after_token(part.span.end, ",");
        match (part.stands, comma) {
            (Stands::First | Stands::InBraces, Some(comma)) => {
                edits.blank(part.span.start, part.span.end);
                edits.blank(comma.saturating_sub(1), comma);
            }
            (Stands::Star, _) => {
                // The comma after the default import goes too.
                let before = at.checked_sub(1).and_then(|at| clause.parts.get(at));
                let start = before
                    .filter(|before| before.keep != Keep::No)
                    .and_then(|before| source.after_token(before.span.end, ","))
                    .map_or(part.span.start, |comma| comma.saturating_sub(1));
                edits.blank(start, part.span.end);
            }
            (Stands::First | Stands::InBraces, None) => edits.blank(part.span.start, part.span.end),
        }
    }
}
