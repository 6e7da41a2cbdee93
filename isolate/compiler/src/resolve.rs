//! Resolves specifiers to modules, at compile time and, by the same rules, for `import()` at run time.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{CompileError, ErrorKind};
use crate::request::{Language, Request, ResolveRequest, Resolved};

/// Prefixes of the engine's own names.
const RESERVED: [&str; 3] = ["import:", "globals:", "sandbox:"];
/// The engine's name for the module of the globals.
pub(crate) const GLOBALS: &str = "globals:";
/// Endings that a specifier may omit, in order of preference.
const ENDINGS: [&str; 9] =
    [".ts", ".mts", ".tsx", ".js", ".mjs", "/index.ts", "/index.mts", "/index.js", "/index.mjs"];
/// Endings of compiled files, and the endings of their sources.
const COMPILED: [(&str, &[&str]); 2] = [(".js", &[".ts", ".tsx"]), (".mjs", &[".mts"])];

/// The module for a specifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// One of the call's own modules, by its name inside the engine.
    Module(String),
    /// A namespace of the host, by its bare specifier.
    Host(String),
}

impl Target {
    /// The module's name inside the engine.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Module(name) => name.clone(),
            Self::Host(specifier) => format!("import:{specifier}"),
        }
    }
}

/// The modules that can be imported in one call.
#[derive(Debug)]
pub(crate) struct Resolver {
    main: String,
    modules: BTreeSet<String>,
    imports: BTreeSet<String>,
}

impl Resolver {
    /// Builds the resolver of a request. Refuses names that conflict or that are the engine's own.
    pub(crate) fn new(request: &Request) -> Result<Self, CompileError> {
        let main = request.main.filename.clone();
        refuse_reserved("filename", &main)?;
        if main.is_empty() {
            return Err(CompileError::invalid("filename must not be empty"));
        }
        let mut names = BTreeMap::from([(main.clone(), "the main module")]);
        for (specifier, _) in &request.modules {
            let invalid = |why: &str| {
                CompileError::invalid(format!("modules: {specifier:?} {why}")).of_specifier(specifier)
            };
            refuse_reserved("modules", specifier)?;
            let path = is_relative(specifier)
                .then(|| join("", specifier))
                .ok_or_else(|| invalid("is not a relative specifier, which begins with ./ or ../"))?;
            refuse_reserved("modules", &path)?;
            if path.is_empty() || specifier.ends_with('/') {
                return Err(invalid("names no file"));
            }
            if path.ends_with(".json") {
                return Err(invalid("is no module: JSON cannot be imported"));
            }
            if let Some(other) = names.insert(path, specifier) {
                return Err(invalid(&format!("is the same module as {other}")));
            }
        }
        names.remove(&main);
        for specifier in request.imports.keys() {
            refuse_reserved("imports", specifier)?;
            if let Some(why) = not_bare(specifier) {
                let message = format!("imports: {specifier:?} is not a bare specifier: it is {why}");
                return Err(CompileError::invalid(message).of_specifier(specifier));
            }
        }
        Ok(Self {
            main,
            modules: names.into_keys().collect(),
            imports: request.imports.keys().cloned().collect(),
        })
    }

    /// Resolves `specifier` in the module `from`, or explains why it cannot.
    pub(crate) fn resolve(&self, from: &str, specifier: &str) -> Result<Target, String> {
        if !is_relative(specifier) {
            if self.imports.contains(specifier) {
                return Ok(Target::Host(specifier.to_owned()));
            }
            return Err(match not_bare(specifier) {
                Some(why) => format!("{specifier:?} cannot be imported: it is {why}"),
                None => format!("{specifier:?} is not among the imports of this call"),
            });
        }
        // The main module counts as being in the root folder, whatever its name.
        let from = if from == self.main { "" } else { from };
        let path = join(from, specifier);
        self.find(&path)
            .map(Target::Module)
            .ok_or_else(|| format!("{specifier:?} is not among the modules of this call"))
    }

    fn find(&self, path: &str) -> Option<String> {
        let known = |name: String| self.modules.contains(&name).then_some(name);
        let added = ENDINGS.iter().map(|ending| match path {
            "" => ending.trim_start_matches('/').to_owned(),
            path => format!("{path}{ending}"),
        });
        let exchanged =
            COMPILED.iter().filter_map(|(compiled, sources)| Some((path.strip_suffix(compiled)?, sources)));
        known(path.to_owned()).or_else(|| added.into_iter().find_map(known)).or_else(|| {
            exchanged
                .flat_map(|(stem, sources)| sources.iter().map(move |end| format!("{stem}{end}")))
                .find_map(known)
        })
    }
}

/// Resolves a computed specifier.
pub(crate) fn at_run_time(request: ResolveRequest) -> Result<Resolved, CompileError> {
    let resolver = Resolver {
        main: request.main,
        modules: request.modules.into_iter().collect(),
        imports: request.imports.into_iter().collect(),
    };
    match resolver.resolve(&request.from, &request.specifier) {
        Ok(target) => Ok(Resolved { name: target.name() }),
        Err(message) => Err(CompileError {
            filename: Some(request.from),
            ..CompileError::new(ErrorKind::LinkError, message).of_specifier(&request.specifier)
        }),
    }
}

/// The language of a module by its file extension, otherwise that of the main module.
pub(crate) fn language(name: &str, main: Language) -> Language {
    match name.rsplit_once('.') {
        Some((_, "ts" | "mts" | "tsx")) => Language::Typescript,
        Some((_, "js" | "mjs")) => Language::Javascript,
        _ => main,
    }
}

fn is_relative(specifier: &str) -> bool {
    matches!(specifier, "." | "..") || specifier.starts_with("./") || specifier.starts_with("../")
}

/// Why the host cannot provide a namespace for this specifier.
fn not_bare(specifier: &str) -> Option<&'static str> {
    if specifier.is_empty() {
        return Some("empty");
    }
    if is_relative(specifier) {
        return Some("relative");
    }
    if specifier.starts_with(['/', '\\']) {
        return Some("an absolute path");
    }
    let (scheme, _) = specifier.split_once(':')?;
    let is_scheme = scheme.starts_with(|char: char| char.is_ascii_alphabetic())
        && scheme.chars().all(|char| char.is_ascii_alphanumeric() || matches!(char, '+' | '-' | '.'));
    is_scheme.then_some("a URL")
}

/// The path of `specifier` relative to `from`, both relative to the main module's folder.
fn join(from: &str, specifier: &str) -> String {
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut path: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in specifier.split('/') {
        match part {
            "" | "." => {}
            ".." if path.last().is_some_and(|last| *last != "..") => {
                path.pop();
            }
            part => path.push(part),
        }
    }
    path.join("/")
}

fn refuse_reserved(field: &str, name: &str) -> Result<(), CompileError> {
    if name.contains('\0') {
        return Err(CompileError::invalid(format!("{field}: {name:?} must not hold NUL")));
    }
    match RESERVED.iter().find(|prefix| name.starts_with(**prefix)) {
        Some(prefix) => {
            let message =
                format!("{field}: {name:?} must not begin with {prefix:?}, which is the sandbox's own");
            Err(CompileError::invalid(message).of_specifier(name))
        }
        None => Ok(()),
    }
}

/// The engine's name of the module that the caller called `specifier`.
pub(crate) fn name(specifier: &str) -> String {
    join("", specifier)
}
