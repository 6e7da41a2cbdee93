//! Packages of agents (spec §31): their folders, their names, and the references in their definitions.

use std::collections::{BTreeMap, BTreeSet};

use bobbin_definitions::definitions::package::{Package, Packages, ReferenceKind, SEPARATOR, qualified};
use bobbin_definitions::definitions::references::Kind;
use bobbin_definitions::definitions::references::Reference;
use bobbin_definitions::definitions::{Agent, Catalog};
use bobbin_definitions::validate::{Complaint, Severity, Sources, nearest};
use serde_json::Value;

use crate::files::{Entry, Files, below};
use crate::folder::{PACKAGE_FILE, PACKAGES};

/// The field of package.json that marks a package of agents.
const FIELD: &str = "standardagent";

/// The folder where npm installs packages.
const MODULES: &str = "node_modules";

/// The customary prefix of npm names.
const PREFIX: &str = "standardagent-";

/// A package, as its package.json describes it.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) id: String,
    /// The package's folder, relative to the application's.
    pub(super) root: String,
    /// The folder of its definitions, relative to the application's.
    pub(super) definitions: String,
    name: String,
    /// Names in the catalog, with the field that names each.
    entry_agents: Vec<(String, String)>,
    version: Option<String>,
    author: Option<String>,
    license: Option<String>,
}

impl Found {
    /// Its package.json, relative to the application's folder.
    pub(super) fn file(&self) -> String {
        format!("{}/{PACKAGE_FILE}", self.root)
    }

    /// Fills in an agent's publication fields that its definition does not set.
    fn publish(&self, agent: &mut Agent) {
        agent.package_name.get_or_insert_with(|| self.name.clone());
        for (field, value) in [
            (&mut agent.version, &self.version),
            (&mut agent.author, &self.author),
            (&mut agent.license, &self.license),
        ] {
            *field = field.take().or_else(|| value.clone());
        }
    }
}

/// Finds the packages of an application: folders in `packages/`, and dependencies.
pub(super) fn find(files: &Files, complaints: &mut Vec<Complaint>) -> Vec<Found> {
    let mut roots: Vec<String> = Vec::new();
    for (name, entry) in files.entries(PACKAGES) {
        let root = format!("{PACKAGES}/{name}");
        if entry == Entry::Folder {
            roots.push(root);
        } else if !name.eq_ignore_ascii_case("readme.md") {
            let message = format!("not read: each package is a folder in {PACKAGES}/");
            complaints.push(Complaint { severity: Severity::Warning, ..error(root, "", message) });
        }
    }
    let own = files.json(PACKAGE_FILE).unwrap_or_default();
    roots.extend(packed_dependencies(files, &own, MODULES).map(|name| format!("{MODULES}/{name}")));
    let mut found: Vec<Found> = Vec::new();
    for root in roots {
        match read(files, &root) {
            Err(wrong) => complaints.extend(wrong),
            Ok(package) => match found.iter().find(|other| other.id == package.id) {
                Some(other) => {
                    let message = format!("{} is the package \"{}\" already", other.file(), package.id);
                    complaints.push(error(package.file(), "name", message));
                }
                None => found.push(package),
            },
        }
    }
    for package in &found {
        complaints.extend(nested(files, package, &found));
    }
    found
}

/// The names in `dependencies` whose package in `modules` is a package of agents.
fn packed_dependencies<'p>(
    files: &'p Files,
    package: &'p Value,
    modules: &'p str,
) -> impl Iterator<Item = &'p String> {
    let listed = package.get("dependencies").and_then(Value::as_object);
    let is_one = move |name: &&String| {
        let package = files.json(&format!("{modules}/{name}/{PACKAGE_FILE}"));
        package.is_some_and(|package| package.get(FIELD).is_some())
    };
    listed.into_iter().flat_map(|listed| listed.keys()).filter(is_one)
}

/// Reads a package.json, or returns all its mistakes.
fn read(files: &Files, root: &str) -> Result<Found, Vec<Complaint>> {
    let file = format!("{root}/{PACKAGE_FILE}");
    let wrong = |field: &str, message: String| vec![error(file.clone(), field, message)];
    let Some(text) = files.raw(&file) else {
        return Err(wrong("", "a package of agents has this file, which cannot be read here".to_owned()));
    };
    let package: Value =
        serde_json::from_str(text).map_err(|error| wrong("", format!("is no JSON: {error}")))?;
    let text = |field: &str| package.get(field).and_then(Value::as_str).map(str::to_owned);
    let author = package.pointer("/author/name").and_then(Value::as_str).map(str::to_owned);
    let mut complaints = Vec::new();
    let name = text("name").unwrap_or_default();
    let id = id(&name);
    if let Some(why) = wrong_id(&name, &id) {
        complaints.extend(wrong("name", why));
    }
    let field = format!("{FIELD}.entryAgents");
    let mut entry_agents = Vec::new();
    match package.get(FIELD).and_then(|field| field.get("entryAgents")) {
        None => complaints.extend(wrong(
            &field,
            "required but missing: the names of the agents that are visible from outside".to_owned(),
        )),
        Some(Value::Array(names)) if !names.is_empty() => {
            for (index, name) in names.iter().enumerate() {
                let field = format!("{field}[{index}]");
                match name.as_str() {
                    Some(name) => entry_agents.push((field, qualified(&id, name))),
                    None => {
                        complaints.extend(wrong(&field, format!("expected the name of an agent, got {name}")))
                    }
                }
            }
        }
        Some(_) => complaints.extend(wrong(
            &field,
            "expected a list of names of agents, at least one: nothing else is visible from outside"
                .to_owned(),
        )),
    }
    if !complaints.is_empty() {
        return Err(complaints);
    }
    // `agents/` holds either all definitions or only those of agents. It holds all if it contains another
    // `agents/`.
    let inner = format!("{root}/agents");
    let definitions = if files.is_folder(&format!("{inner}/agents")) { inner } else { root.to_owned() };
    Ok(Found {
        id,
        root: root.to_owned(),
        definitions,
        name,
        entry_agents,
        version: text("version"),
        author: text("author").or(author),
        license: text("license"),
    })
}

/// A package's id: its npm name without scope and prefix, in the characters of names.
fn id(name: &str) -> String {
    let bare = name.rsplit_once('/').map_or(name, |(_, bare)| bare);
    bare.strip_prefix(PREFIX).unwrap_or(bare).replace(['-', '.'], "_")
}

/// Why a name cannot be turned into an id.
fn wrong_id(name: &str, id: &str) -> Option<String> {
    if name.is_empty() {
        return Some("required but missing: the package's definitions are named after it".to_owned());
    }
    let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let good = id.starts_with(|c: char| c.is_ascii_lowercase())
        && id.chars().all(fine)
        && !id.contains(SEPARATOR)
        && !id.ends_with('_');
    (!good).then(|| {
        format!(
            "\"{name}\" makes the id \"{id}\", which is none: lower-case letters, digits and single _ between them, \
             starting with a letter"
        )
    })
}

/// Reports packages within a package, which are not supported.
fn nested(files: &Files, package: &Found, all: &[Found]) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let mut folders = vec![format!("{}/{PACKAGES}", package.root)];
    if package.definitions != package.root {
        folders.push(format!("{}/{PACKAGES}", package.definitions));
    }
    for folder in folders {
        if files.entries(&folder).next().is_some() {
            let message =
                format!("a package holds no packages: they belong into {PACKAGES}/ of the application");
            complaints.push(error(folder, "", message));
        }
    }
    let own = files.json(&package.file()).unwrap_or_default();
    let mut named = BTreeSet::new();
    for modules in [below(&package.root, MODULES), MODULES.to_owned()] {
        named.extend(packed_dependencies(files, &own, &modules).cloned());
    }
    for name in named.iter().filter(|name| all.iter().all(|other| other.name != **name)) {
        let message = format!(
            "is a package of agents: it is there when the application's own {PACKAGE_FILE} depends on it, too"
        );
        complaints.push(error(package.file(), &format!("dependencies.{name}"), message));
    }
    complaints
}

/// Adds the packages to the catalog, and the package.json fields to their agents.
pub(super) fn enter(
    found: &[Found],
    catalog: &mut Catalog,
    sources: &Sources,
    endpoints: &BTreeMap<String, String>,
    complaints: &mut Vec<Complaint>,
) {
    for package in found {
        let within = format!("{}{SEPARATOR}", package.id);
        for (field, name) in &package.entry_agents {
            if sources.has(Kind::Agent, name) {
                continue;
            }
            let own = |name: &String| name.strip_prefix(&within).map(str::to_owned);
            let known: Vec<String> = catalog.agents.keys().filter_map(own).collect();
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let bare = name.strip_prefix(&within).unwrap_or(name);
            let hint = match nearest(bare, &known) {
                Some(near) => format!("; did you mean \"{near}\"?"),
                None if known.is_empty() => "; there are none".to_owned(),
                None => format!("; there are {}", known.join(", ")),
            };
            let message = format!("the package has no agent named \"{bare}\"{hint}");
            complaints.push(error(package.file(), field, message));
        }
        for agent in catalog.agents.values_mut().filter(|agent| agent.name.starts_with(&within)) {
            package.publish(agent);
        }
        let own = |route: &String| endpoints.get(route).is_some_and(|owner| *owner == package.id);
        let entered = Package {
            name: package.name.clone(),
            entry_agents: package.entry_agents.iter().map(|(_, name)| name.clone()).collect(),
            endpoints: catalog.endpoints.keys().filter(|route| own(&route.to_string())).cloned().collect(),
        };
        catalog.packages.0.insert(package.id.clone(), entered);
    }
}

/// Replaces every reference by its name in the catalog, and reports references to hidden definitions.
pub(super) fn settle(catalog: &mut Catalog, sources: &Sources) -> Vec<Complaint> {
    let packages: Packages = catalog.packages.clone();
    if packages.is_empty() {
        return Vec::new();
    }
    // Agents that could not be read completely count as exposed. Their mistakes have been reported.
    let private: BTreeSet<String> = catalog
        .agents
        .values()
        .filter(|agent| !agent.expose_as_tool)
        .map(|agent| agent.name.clone())
        .collect();
    let exposed = |name: &str| sources.has(Kind::Agent, name) && !private.contains(name);
    let has = |name: &str, sought: ReferenceKind| match sought {
        ReferenceKind::Model => sources.has(Kind::Model, name),
        ReferenceKind::Prompt => sources.has(Kind::Prompt, name),
        ReferenceKind::Agent => sources.has(Kind::Agent, name),
        ReferenceKind::Effect => sources.has(Kind::Effect, name),
        ReferenceKind::Hook => sources.has(Kind::Hook, name),
        ReferenceKind::Skill => sources.has(Kind::Skill, name),
        ReferenceKind::Memory => sources.has(Kind::Memory, name),
        ReferenceKind::Callable => {
            sources.has(Kind::Tool, name) || sources.has(Kind::Prompt, name) || exposed(name)
        }
    };
    let mut complaints = Vec::new();
    catalog.each_reference(&mut |reference| {
        let Reference { kind, name, field, sought, target } = reference;
        let within = packages.of(name);
        let found = packages.resolve(within, target, |name| has(name, sought)).into_owned();
        let there =
            has(&found, sought) || (sought == ReferenceKind::Callable && sources.has(Kind::Agent, &found));
        if packages.is_foreign(within, &found) {
            let why = match sought {
                ReferenceKind::Callable if packages.is_entry(&found) && exposed(&found) => None,
                ReferenceKind::Callable if packages.is_entry(&found) => {
                    Some(format!("\"{target}\" is an agent that may not be called: set its `exposeAsTool`"))
                }
                _ => Some(packages.hidden(&found)),
            };
            if let Some(why) = why {
                complaints.push(error(sources.file(kind, name), &field, why));
            }
        }
        if there {
            *target = found;
        }
    });
    complaints
}

fn error(file: String, field: &str, message: String) -> Complaint {
    Complaint { file, field: field.to_owned(), message, severity: Severity::Error }
}
