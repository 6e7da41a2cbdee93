//! Validation of a whole catalog. Reports all complaints at once, by file and field.
//!
//! The types have already checked the shape of each file. This module checks that the definitions fit
//! together. A catalog with errors is not served.
//!
//! * `models`, `prompts`, `tools`, `agents`, `effects`, `hooks`, `endpoints`, `skills`, `memories`, `mcp`:
//!   one kind each. `settings`: `bobbin.json`.
//! * `entries`: a prompt's `tools`; `subagents`: settings of an entry for a subagent; `workers`: agents that
//!   a model leads; `approvals`: approvals of calls. `code`: files that run in the sandbox. `context`: the
//!   size of requests. `known_models`: facts about models at their makers' addresses.

pub mod agents;
mod approvals;
pub mod code;
mod context;
pub mod effects;
pub mod endpoints;
pub mod entries;
pub mod hooks;
mod known_models;
mod mcp;
mod memories;
pub mod models;
pub mod prompts;
pub mod settings;
pub mod skills;
pub mod subagents;
pub mod tools;
mod workers;

pub use crate::names::hint;
pub use crate::names::nearest;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::definitions::catalog::{Catalog, RESERVED_PREFIX};
use crate::definitions::mcp::{McpList, McpServer};
use crate::definitions::natives;
use crate::definitions::references::Kind;
use crate::definitions::retry::{Policy, Retry};
use crate::definitions::template;
use crate::definitions::tool::Implementation;
use crate::definitions::variable::{Variable, VariableKind};

/// The severity of a complaint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The catalog is not served.
    Error,
    /// The catalog is served, but something is probably not as intended.
    Warning,
}

/// A problem in a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// The file, relative to the folder of definitions.
    pub file: String,
    /// The field, such as `tools[1].name`; empty for the whole file.
    pub field: String,
    /// The problem and, if it helps, the solution.
    pub message: String,
    /// How severe it is.
    pub severity: Severity,
}

/// One line: `prompts/helper.md: error in tools[1]: no tool named "lokup"`.
impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        match self.field.as_str() {
            "" => write!(f, "{}: {severity}: {}", self.file, self.message),
            field => write!(f, "{}: {severity} in {field}: {}", self.file, self.message),
        }
    }
}

/// The files of definitions. A definition that is here but not in the catalog could not be read. That was
/// reported, so references to it are not.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: BTreeMap<(Kind, String), String>,
    /// Files of code, whether or not a definition names them, with their exports.
    code: BTreeMap<String, Vec<String>>,
}

impl Sources {
    /// Adds the file of a definition. Returns the file that already has the name, if any.
    pub fn insert(&mut self, kind: Kind, name: &str, file: &str) -> Option<String> {
        let key = (kind, name.to_owned());
        if let Some(first) = self.files.get(&key) {
            return Some(first.clone());
        }
        self.files.insert(key, file.to_owned());
        None
    }

    /// Adds a file of code and its exports.
    pub fn insert_code(&mut self, file: &str, exports: Vec<String>) {
        self.code.insert(file.to_owned(), exports);
    }

    /// The file of a definition, or its expected path.
    pub fn file(&self, kind: Kind, name: &str) -> String {
        let file = self.files.get(&(kind, name.to_owned()));
        file.cloned().unwrap_or_else(|| format!("{}/{name}", kind.folder()))
    }

    /// All files: kind, name and path of each.
    pub fn files(&self) -> impl Iterator<Item = (Kind, &str, &str)> {
        self.files.iter().map(|((kind, name), file)| (*kind, name.as_str(), file.as_str()))
    }

    /// Whether a definition has a file.
    pub fn has(&self, kind: Kind, name: &str) -> bool {
        self.files.contains_key(&(kind, name.to_owned()))
    }
}

/// The names that the Worker registers for `run.native`, and for the `provider` of models.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Natives {
    /// Native tools.
    pub tools: Vec<&'static str>,
    /// Native effects.
    pub effects: Vec<&'static str>,
    /// Native endpoints.
    pub endpoints: Vec<&'static str>,
    /// Native hooks.
    pub hooks: Vec<&'static str>,
    /// Providers of models.
    pub providers: Vec<&'static str>,
    /// Whether the lists are complete. A crate of your own may register more than this program has.
    pub complete: bool,
}

impl Natives {
    /// The names that every build has.
    pub fn built_in() -> Natives {
        Natives {
            tools: natives::TOOLS.iter().map(|(name, _)| *name).collect(),
            effects: natives::EFFECTS.to_vec(),
            endpoints: natives::ENDPOINTS.to_vec(),
            hooks: natives::HOOKS.to_vec(),
            providers: natives::PROVIDERS.to_vec(),
            complete: true,
        }
    }
}

/// Natives that a catalog names and this program lacks, such as `tool greet: native "greet"`.
pub fn missing_natives(catalog: &Catalog, natives: &Natives) -> Vec<String> {
    let mut missing = Vec::new();
    let mut look = |kind: Kind, name: &str, run: &Implementation, natives: &[&str]| {
        if let Implementation::Native(native) = run
            && !natives.contains(&native.as_str())
        {
            missing.push(format!("{} {name}: native \"{native}\"", kind.noun()));
        }
    };
    catalog.tools.iter().for_each(|(name, tool)| look(Kind::Tool, name, &tool.run, &natives.tools));
    catalog.effects.iter().for_each(|(name, effect)| look(Kind::Effect, name, &effect.run, &natives.effects));
    catalog.hooks.iter().for_each(|(id, hook)| look(Kind::Hook, id, &hook.run, &natives.hooks));
    catalog.endpoints.iter().for_each(|(route, endpoint)| {
        look(Kind::Endpoint, &route.to_string(), &endpoint.run, &natives.endpoints)
    });
    for (name, model) in &catalog.models {
        let provider = model.provider.name();
        if !natives.providers.contains(&provider) {
            let known = natives.providers.join(", ");
            missing.push(format!("model {name}: provider \"{provider}\" (there are {known})"));
        }
    }
    missing
}

/// All complaints about a catalog, by file.
pub fn validate(catalog: &Catalog, sources: &Sources, natives: &Natives) -> Vec<Complaint> {
    let mut check = Check { catalog, sources, natives, complaints: Vec::new() };
    check.models();
    check.prompts();
    check.tools();
    check.agents();
    check.effects();
    check.endpoints();
    check.hooks();
    check.skills();
    check.memories();
    check.servers();
    check.folder_settings();
    check.complaints.sort_by(|a, b| a.file.cmp(&b.file));
    check.complaints
}

/// A definition, for complaints about it.
#[derive(Clone, Copy)]
struct Subject<'a> {
    kind: Kind,
    name: &'a str,
}

struct Check<'a> {
    catalog: &'a Catalog,
    sources: &'a Sources,
    natives: &'a Natives,
    complaints: Vec<Complaint>,
}

impl Check<'_> {
    fn error(&mut self, at: Subject<'_>, field: impl Into<String>, message: impl Into<String>) {
        self.complain(at, field.into(), message.into(), Severity::Error);
    }

    fn warning(&mut self, at: Subject<'_>, field: impl Into<String>, message: impl Into<String>) {
        self.complain(at, field.into(), message.into(), Severity::Warning);
    }

    fn complain(&mut self, at: Subject<'_>, field: String, message: String, severity: Severity) {
        let file = self.sources.file(at.kind, at.name);
        self.complaints.push(Complaint { file, field, message, severity });
    }

    /// Whether a tool may belong to a server whose tools are listed at the first step of a run.
    fn is_live(&self, tool: &str) -> bool {
        // An unreadable list is reported elsewhere.
        let unknown = |server: &McpServer| server.list == McpList::Live || server.pinned.is_none();
        self.catalog.mcp.values().any(|server| unknown(server) && server.own_name(tool).is_some())
    }

    fn knows(&self, kind: Kind, name: &str) -> bool {
        self.sources.has(kind, name) || self.names(kind).contains(&name)
    }

    fn names(&self, kind: Kind) -> Vec<&str> {
        fn keys<T>(definitions: &BTreeMap<String, T>) -> Vec<&str> {
            definitions.keys().map(String::as_str).collect()
        }
        match kind {
            Kind::Model => keys(&self.catalog.models),
            Kind::Prompt => keys(&self.catalog.prompts),
            Kind::Tool => keys(&self.catalog.tools),
            Kind::Agent => keys(&self.catalog.agents),
            Kind::Effect => keys(&self.catalog.effects),
            Kind::Hook => keys(&self.catalog.hooks),
            Kind::Skill => keys(&self.catalog.skills),
            Kind::Memory => keys(&self.catalog.memories),
            Kind::Mcp => keys(&self.catalog.mcp),
            // Endpoints are never referenced.
            Kind::Endpoint => Vec::new(),
        }
    }

    /// Reports an error in `bobbin.json`.
    fn error_in_settings(&mut self, field: String, message: String) {
        let file = settings::FILE.to_owned();
        self.complaints.push(Complaint { file, field, message, severity: Severity::Error });
    }

    /// Checks a reference to another definition.
    fn reference(&mut self, at: Subject<'_>, field: &str, kind: Kind, name: &str) {
        if !self.knows(kind, name) {
            let hint = crate::names::hint(name, &self.names(kind));
            self.error(at, field, format!("no {} named \"{name}\"{hint}", kind.noun()));
        }
    }

    fn variables(&mut self, at: Subject<'_>, variables: &[Variable]) {
        let mut seen = BTreeSet::new();
        for (index, variable) in variables.iter().enumerate() {
            let field = format!("variables[{index}].name");
            self.env_name(at, &field, &variable.name);
            if !seen.insert(&variable.name) {
                self.error(at, &field, format!("\"{}\" is declared twice", variable.name));
            }
            if variable.kind == VariableKind::Text && self.catalog.is_model_key(&variable.name) {
                let name = &variable.name;
                self.error(
                    at,
                    field,
                    format!("\"{name}\" is the API key of a model, so its type must be `secret`"),
                );
            }
        }
    }

    fn env(&mut self, at: Subject<'_>, field: &str, env: &BTreeMap<String, String>) {
        for name in env.keys() {
            self.env_name(at, &format!("{field}.{name}"), name);
        }
    }

    /// Checks retry policies by kind.
    fn retries(&mut self, at: Subject<'_>, field: &str, retry: &Retry) {
        for (inner, message) in retry.problems() {
            self.error(at, format!("{field}.{inner}"), message);
        }
    }

    /// Checks the policy of one definition.
    fn policy(&mut self, at: Subject<'_>, policy: &Policy) {
        for (inner, message) in policy.problems() {
            self.error(at, format!("retry.{inner}"), message);
        }
    }

    /// Checks the name of a variable.
    fn env_name(&mut self, at: Subject<'_>, field: &str, name: &str) {
        if name.starts_with(RESERVED_PREFIX) {
            self.error(
                at,
                field,
                format!("\"{name}\": names starting with {RESERVED_PREFIX} belong to the runtime"),
            );
        } else if !template::is_name(name) {
            let message = format!(
                "\"{name}\" cannot name a variable: letters, digits and _, not starting with a digit"
            );
            self.error(at, field, message);
        }
    }

    /// Checks a text with `{{env NAME}}`.
    fn template(&mut self, at: Subject<'_>, field: &str, text: &str) {
        if let Err(error) = template::parse(text) {
            self.error(at, field, error.to_string());
        }
        for name in template::names(text) {
            self.env_name(at, field, name);
        }
    }

    fn url(&mut self, at: Subject<'_>, field: &str, url: &str) {
        match template::check_url(url) {
            Ok(()) => self.template(at, field, url),
            Err(error) => self.error(at, field, error.to_string()),
        }
    }
}
