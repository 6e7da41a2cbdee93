//! Checks that every name that the modules import from each other and from the host exists.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::error::{CompileError, ErrorKind, Mistake};
use crate::record::{Clause, DEFAULT, Export, Fate, Form, Keep, Module, Part, Request, Wanted};
use crate::resolve::{Resolver, Target};
use oxc_span::Span;

/// The maximum number of modules that may re-export a name.
const MAX_HANDED_ON: usize = 500;

/// The result of following a name of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    /// The binding of that name in that module. Without a name: the module's namespace.
    Binding(String, Option<String>),
    /// A type, which does not exist at run time.
    Type,
    Nothing,
    /// Two `export *` lead to different bindings.
    Ambiguous,
    /// Re-exported too often to follow.
    TooFar,
}

/// The targets of a module's clauses and stars.
#[derive(Debug, Default)]
pub(crate) struct Targets {
    clauses: Vec<Option<Target>>,
    stars: Vec<Target>,
}

/// The modules of a call and the links between them.
pub(crate) struct Linker<'r, 's> {
    resolver: &'r Resolver,
    hosts: &'r BTreeMap<String, Vec<String>>,
    modules: Vec<Module<'s>>,
    targets: Vec<Targets>,
    by_name: HashMap<String, usize>,
}

/// A module whose names all exist, with its resolved specifiers.
pub(crate) struct Linked<'s> {
    pub(crate) module: Module<'s>,
    pub(crate) resolved: Vec<(String, String)>,
}

impl<'r, 's> Linker<'r, 's> {
    pub(crate) fn new(
        resolver: &'r Resolver,
        hosts: &'r BTreeMap<String, Vec<String>>,
        modules: Vec<Module<'s>>,
    ) -> Self {
        let by_name = modules.iter().enumerate().map(|(at, module)| (module.name.clone(), at)).collect();
        Self { resolver, hosts, modules, targets: Vec::new(), by_name }
    }

    /// Links all modules. The first is the main module, which must have the export `wanted` unless that is
    /// empty.
    pub(crate) fn link(mut self, wanted: &str) -> Result<Vec<Linked<'s>>, CompileError> {
        self.targets = self.modules.iter().map(|module| self.targets(module)).collect::<Result<_, _>>()?;
        let mut types = Vec::new();
        for module in &self.modules {
            types.extend(self.check(module)?);
        }
        // Without a name nothing is checked here: the isolate looks for the export after evaluating the
        // modules.
        if !wanted.is_empty() {
            self.check_wanted(wanted)?;
        }
        for (module, clause, part) in types {
            let module = self.by_name.get(&module).and_then(|at| self.modules.get_mut(*at));
            let clause = module.and_then(|module| module.clauses.get_mut(clause));
            if let Some(part) = clause.and_then(|clause| clause.parts.get_mut(part)) {
                part.keep = Keep::No;
            }
        }
        let resolver = self.resolver;
        let resolved = |module: &Module<'_>, targets: &Targets| resolved(resolver, module, targets);
        Ok(self
            .modules
            .into_iter()
            .zip(&self.targets)
            .map(|(module, targets)| Linked { resolved: resolved(&module, targets), module })
            .collect())
    }

    fn targets(&self, module: &Module<'s>) -> Result<Targets, CompileError> {
        let clauses = module.clauses.iter().map(|clause| match &clause.request {
            Some(request) if stays(clause) => self.target(module, request).map(Some),
            _ => Ok(None),
        });
        Ok(Targets {
            clauses: clauses.collect::<Result<_, _>>()?,
            stars: module
                .stars
                .iter()
                .map(|star| self.target(module, &star.request))
                .collect::<Result<_, _>>()?,
        })
    }

    fn target(&self, module: &Module<'s>, request: &Request) -> Result<Target, CompileError> {
        self.resolver
            .resolve(&module.name, &request.specifier)
            .map_err(|message| unlinked(module, message, Span::empty(request.at), &request.specifier))
    }

    /// Checks the names that a module imports from others. Returns the parts that turn out to be types.
    fn check(&self, module: &Module<'s>) -> Result<Vec<(String, usize, usize)>, CompileError> {
        let mut types = Vec::new();
        for (at, clause) in module.clauses.iter().enumerate() {
            for (part_at, part) in clause.parts.iter().enumerate() {
                if part.keep == Keep::No || (clause.form == Form::Export && part.keep == Keep::Yes) {
                    continue;
                }
                let (found, specifier) = self.part(module, at, clause, part);
                match (found, part.keep) {
                    (Found::Binding(..), _) => {}
                    (Found::Type, Keep::IfValue) => types.push((module.name.clone(), at, part_at)),
                    (found, _) => {
                        let message = complaint(&found, part, &specifier);
                        return Err(unlinked(module, message, part.span, &specifier));
                    }
                }
            }
        }
        Ok(types)
    }

    /// What a part of a clause refers to, and its specifier.
    fn part(&self, module: &Module<'s>, at: usize, clause: &Clause, part: &Part) -> (Found, String) {
        let specifier = clause.request.as_ref().map(|request| request.specifier.clone()).unwrap_or_default();
        if clause.form == Form::Export {
            // A binding from an import of this module.
            return (self.export(module, &part.own, &mut HashSet::new()), specifier);
        }
        let Some(target) = self
            .by_name
            .get(&module.name)
            .and_then(|it| self.targets.get(*it))
            .and_then(|it| it.clauses.get(at))
        else {
            return (Found::Nothing, specifier);
        };
        let found = match target {
            Some(target) => self.wanted(target, &part.wanted, &mut HashSet::new()),
            None => Found::Nothing,
        };
        (found, specifier)
    }

    fn wanted(&self, target: &Target, wanted: &Wanted, seen: &mut HashSet<(String, String)>) -> Found {
        match (wanted, target) {
            (Wanted::Namespace, target) => Found::Binding(target.name(), None),
            (Wanted::Name(name), Target::Host(host)) => {
                if self.hosts.get(host).is_some_and(|names| names.contains(name)) {
                    Found::Binding(target.name(), Some(name.clone()))
                } else {
                    Found::Nothing
                }
            }
            (Wanted::Name(name), Target::Module(module)) => {
                match self.by_name.get(module).and_then(|at| self.modules.get(*at)) {
                    Some(module) => self.export(module, name, seen),
                    None => Found::Nothing,
                }
            }
        }
    }

    /// What the export `name` of a module refers to (ResolveExport of ECMAScript's module records).
    fn export(&self, module: &Module<'s>, name: &str, seen: &mut HashSet<(String, String)>) -> Found {
        if seen.len() >= MAX_HANDED_ON {
            return Found::TooFar;
        }
        if !seen.insert((module.name.clone(), name.to_owned())) {
            // A cycle of re-exports.
            return Found::Nothing;
        }
        let Some(targets) = self.by_name.get(&module.name).and_then(|at| self.targets.get(*at)) else {
            return Found::Nothing;
        };
        match module.exports.get(name) {
            Some(Export::Local) => return Found::Binding(module.name.clone(), Some(name.to_owned())),
            Some(Export::Type) => return Found::Type,
            Some(Export::Of { clause, part }) => {
                let handed = module.clauses.get(*clause).and_then(|clause| clause.parts.get(*part));
                return match (handed, targets.clauses.get(*clause)) {
                    (Some(part), _) if part.keep == Keep::No => Found::Type,
                    (Some(part), Some(Some(target))) => self.wanted(target, &part.wanted, seen),
                    _ => Found::Nothing,
                };
            }
            None if name == DEFAULT => return Found::Nothing,
            None => {}
        }
        let mut found = Found::Nothing;
        for target in &targets.stars {
            let next = self.wanted(target, &Wanted::Name(name.to_owned()), seen);
            found = match (found, next) {
                (_, end @ (Found::Ambiguous | Found::TooFar)) => return end,
                (found, Found::Nothing) => found,
                (found @ Found::Binding(..), Found::Type) => found,
                (Found::Binding(module, name), Found::Binding(other, other_name)) => {
                    if module != other || name != other_name {
                        return Found::Ambiguous;
                    }
                    Found::Binding(module, name)
                }
                (_, next) => next,
            };
        }
        found
    }

    fn check_wanted(&self, wanted: &str) -> Result<(), CompileError> {
        let Some(main) = self.modules.first() else { return Ok(()) };
        let message = match self.export(main, wanted, &mut HashSet::new()) {
            Found::Binding(..) => return Ok(()),
            Found::Type => format!("export {wanted:?} is a type: it has no value"),
            Found::Ambiguous => format!("export {wanted:?} is ambiguous: two \"export *\" bring one"),
            Found::Nothing | Found::TooFar => format!("export {wanted:?} not found"),
        };
        Err(CompileError {
            filename: Some(main.name.clone()),
            ..CompileError::new(ErrorKind::LinkError, message)
        })
    }
}

/// Whether any part of a clause may stay, so that its specifier must resolve.
pub(crate) fn stays(clause: &Clause) -> bool {
    clause.fate == Fate::Stays || clause.parts.iter().any(|part| part.keep != Keep::No)
}

fn complaint(found: &Found, part: &Part, specifier: &str) -> String {
    let Wanted::Name(name) = &part.wanted else { return format!("{specifier:?} cannot be imported") };
    match found {
        Found::Type => format!("{name:?} is a type in {specifier:?}: it has no value"),
        Found::Ambiguous => format!("{specifier:?} exports {name:?} by two \"export *\": it is ambiguous"),
        Found::TooFar => format!("{specifier:?} hands {name:?} on through too many modules"),
        Found::Nothing | Found::Binding(..) => format!("{specifier:?} has no export {name:?}"),
    }
}

fn unlinked(module: &Module<'_>, message: String, span: Span, specifier: &str) -> CompileError {
    Mistake::new(ErrorKind::LinkError, message, span)
        .locate(module.source, &module.name)
        .of_specifier(specifier)
}

/// Every specifier of the module at run time, with the name of its module.
fn resolved(resolver: &Resolver, module: &Module<'_>, targets: &Targets) -> Vec<(String, String)> {
    let mut all = BTreeMap::new();
    for (clause, target) in module.clauses.iter().zip(&targets.clauses) {
        if let (Some(request), Some(target), true) = (&clause.request, target, stays(clause)) {
            all.insert(request.specifier.clone(), target.name());
        }
    }
    for (star, target) in module.stars.iter().zip(&targets.stars) {
        all.insert(star.request.specifier.clone(), target.name());
    }
    for specifier in &module.dynamic {
        if let Ok(target) = resolver.resolve(&module.name, specifier) {
            all.insert(specifier.clone(), target.name());
        }
    }
    all.into_iter().collect()
}
