//! The compiler of definitions. It turns the files of a folder into the catalog that the Worker loads, and
//! reports all mistakes.
//!
//! It parses each file (`text`, `shape`), validates the definitions together (`bobbin_definitions::validate`), and
//! reports everything at once. It reads no disk; folder.mjs and code.mjs beside it do. The build tool links
//! it, the npm package uses it as wasm.
//!
//! # Layout
//!
//! | file | concept |
//! |---|---|
//! | `request.rs` | the JSON request and response |
//! | `files.rs` | the files of a folder, in memory |
//! | `folder.rs` | finds the definitions among them |
//! | `packages.rs` | packages of agents: their folders and names |
//! | `text.rs` | JSON, and Markdown with front matter |
//! | `shape.rs`, `words.rs` | values as definitions, and error messages for their authors |
//! | `mcp.rs` | MCP servers: the lists of their tools, and the prompts' references to them |
//! | `code.rs` | the files that definitions run in the sandbox |
//! | `place.rs` | the line and column of a field |
//! | `abi.rs` | the exports of the wasm, as in isolate/compiler |
#![deny(unsafe_code)]

#[cfg(target_arch = "wasm32")]
mod abi;
mod code;
mod files;
mod folder;
mod mcp;
mod packages;
mod place;
mod request;
mod settings;
mod shape;
mod text;
mod words;

#[cfg(test)]
mod tests;

pub use request::compile_json;

use std::collections::BTreeMap;

use bobbin_definitions::definitions::package::{SEPARATOR, qualified};
use bobbin_definitions::definitions::references::Kind;
use bobbin_definitions::definitions::runtime::VERSION;
use bobbin_definitions::definitions::skill;
use bobbin_definitions::definitions::{Catalog, Endpoint, EndpointRoute, Skill, SkillHead};
use bobbin_definitions::validate::{Complaint, Natives, Severity, Sources, validate};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use files::Files;

/// The catalog of a folder, and the mistakes in it.
struct Compiled {
    catalog: Catalog,
    complaints: Vec<Complaint>,
}

fn compile(
    files: &Files,
    bundles: BTreeMap<String, code::Bundle>,
    natives: &Natives,
) -> Result<Compiled, serde_json::Error> {
    let mut reading = Reading::default();
    let folder = folder::read(files, "");
    reading.complaints.extend(folder.complaints);
    if let Some(text) = &folder.settings {
        reading.catalog.settings = settings::read(text, &mut reading.complaints);
    }
    let packages = packages::find(files, &mut reading.complaints);
    reading.packages.extend(packages.iter().map(|package| (package.id.clone(), package.file())));
    for file in &folder.files {
        reading.file(file);
    }
    for package in &packages {
        let packed = folder::read_package(files, package);
        reading.complaints.extend(packed.complaints);
        packed.files.iter().for_each(|file| reading.file(file));
    }
    if packages.is_empty() && !folder.files.iter().any(|file| file.kind == Kind::Agent) {
        reading.complaints.push(no_agent());
    }
    let Reading { mut catalog, mut sources, partial, mut complaints, routes, lists, .. } = reading;
    packages::enter(&packages, &mut catalog, &sources, &routes, &mut complaints);
    let risky = mcp::enter(lists, &mut catalog, &mut sources, &mut complaints);
    let (order, unmeant) = mcp::expand(&mut catalog, &sources);
    let mut hidden = unmeant;
    hidden.extend(packages::settle(&mut catalog, &sources));
    let told = |complaint: &Complaint| {
        hidden.iter().any(|other| other.file == complaint.file && other.field == complaint.field)
    };
    code::gather(files, bundles, &mut catalog, &mut sources);
    catalog.add_built_in();
    let whole = |complaint: &Complaint| match partial.get(&complaint.file) {
        Some(fields) => {
            complaint.severity == Severity::Error && !fields.iter().any(|f| f == top(&complaint.field))
        }
        None => true,
    };
    let said = validate(&catalog, &sources, natives).into_iter().filter(whole);
    complaints.extend(said.filter(|complaint| !told(complaint)));
    complaints.extend(hidden.iter().filter(|complaint| whole(complaint)).cloned());
    complaints.extend(mcp::unasked(&catalog, &sources, &risky));
    complaints.sort_by(|a, b| a.file.cmp(&b.file));
    mcp::put_in_order(&mut catalog, order);
    catalog.files = sources
        .files()
        .map(|(kind, name, file)| (format!("{} {name}", kind.noun()), file.to_owned()))
        .collect();
    catalog.hash = skill::hash(&serde_json::to_string(&catalog)?);
    VERSION.clone_into(&mut catalog.runtime);
    Ok(Compiled { catalog, complaints })
}

fn no_agent() -> Complaint {
    Complaint {
        file: Kind::Agent.folder().to_owned(),
        field: String::new(),
        message: "there is no agent, so no thread can be created: `agents/NAME.json` makes one".to_owned(),
        severity: Severity::Warning,
    }
}

/// The first step of a field's path: `tools` of `tools[0].name`.
fn top(field: &str) -> &str {
    field.split(['.', '[']).next().unwrap_or_default()
}

/// The definitions read so far.
#[derive(Default)]
struct Reading {
    catalog: Catalog,
    sources: Sources,
    /// Files that were read without their invalid fields. Mistakes that follow from these fields are not
    /// reported.
    partial: BTreeMap<String, Vec<String>>,
    /// Files of endpoints, by the shape of their routes.
    shapes: BTreeMap<String, String>,
    /// The packages' files, by id.
    packages: BTreeMap<String, String>,
    /// The ids of the packages with routes.
    routes: BTreeMap<String, String>,
    /// The lists of MCP servers' tools.
    lists: Vec<mcp::List>,
    complaints: Vec<Complaint>,
}

impl Reading {
    fn file(&mut self, file: &folder::File) {
        if file.kind == Kind::Skill {
            return self.skill(file);
        }
        let Some(value) = self.value(file) else { return };
        match file.kind {
            Kind::Model => {
                self.definition(file, value, |catalog| &mut catalog.models, |model, name| model.name = name);
            }
            Kind::Prompt => {
                self.definition(
                    file,
                    value,
                    |catalog| &mut catalog.prompts,
                    |prompt, name| prompt.name = name,
                );
            }
            Kind::Tool => {
                self.definition(file, value, |catalog| &mut catalog.tools, |tool, name| tool.name = name);
            }
            Kind::Agent => {
                self.definition(file, value, |catalog| &mut catalog.agents, |agent, name| agent.name = name);
            }
            Kind::Effect => {
                self.definition(
                    file,
                    value,
                    |catalog| &mut catalog.effects,
                    |effect, name| effect.name = name,
                );
            }
            Kind::Endpoint => self.endpoint(file, value),
            // Already read.
            Kind::Skill => {}
            Kind::Memory => {
                self.definition(
                    file,
                    value,
                    |catalog| &mut catalog.memories,
                    |memory, name| memory.name = name,
                );
            }
            Kind::Hook => {
                self.definition(file, value, |catalog| &mut catalog.hooks, |hook, id| hook.id = id);
            }
            Kind::Mcp => self.server(file, value),
        }
    }

    /// The value in a file. `None` if the file is unreadable or cannot be a definition.
    fn value(&mut self, file: &folder::File) -> Option<Value> {
        let mut value = match text::read(&file.path, &file.text) {
            Ok(value) => value,
            Err(wrong) => {
                self.sources.insert(file.kind, &file.name, &file.path);
                self.complaints.push(wrong);
                return None;
            }
        };
        if value.pointer("/run/mcp").is_some() {
            self.of_server(file);
            return None;
        }
        if let Err(message) = code::locate(&file.path, &mut value) {
            self.complain(file, "run.code", message);
        }
        Some(value)
    }

    /// Reads a skill: its file, and the files beside it.
    fn skill(&mut self, file: &folder::File) {
        let (front, body) = match text::read_skill(&file.path, &file.text) {
            Ok(read) => read,
            Err(wrong) => {
                self.sources.insert(file.kind, &file.name, &file.path);
                self.complaints.push(wrong);
                return;
            }
        };
        let named = front.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
        let name = match self.name(file, named.unwrap_or(&file.name)) {
            Ok(name) => name,
            Err(wrong) => return self.complain(file, "name", wrong),
        };
        if let Some(first) = self.sources.insert(file.kind, &name, &file.path) {
            return self.complain(file, "name", format!("{first} is the skill \"{name}\" already"));
        }
        let Some(head) = self.shaped::<SkillHead>(file, front) else { return };
        let beside = file.beside.iter().map(|(path, text)| (path.as_str(), text.as_str()));
        let hash = skill::hash_of_files(beside.chain([(skill::FILE, file.text.as_str())]));
        let path = file.path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        let head = SkillHead { name: name.clone(), ..head };
        let skill = Skill { head, body, path, files: file.beside.clone(), hash };
        self.catalog.skills.insert(name, skill);
    }

    /// Adds a definition to the catalog. Returns its name, unless the file was unreadable.
    fn definition<T: DeserializeOwned + JsonSchema>(
        &mut self,
        file: &folder::File,
        value: Value,
        definitions: impl Fn(&mut Catalog) -> &mut BTreeMap<String, T>,
        rename: impl Fn(&mut T, String),
    ) -> Option<String> {
        let field = if file.kind == Kind::Hook { "id" } else { "name" };
        let named = value.get(field).and_then(Value::as_str).filter(|name| !name.is_empty());
        let name = match self.name(file, named.unwrap_or(&file.name)) {
            Ok(name) => name,
            Err(wrong) => {
                self.complain(file, field, wrong);
                return None;
            }
        };
        if let Some(first) = self.sources.insert(file.kind, &name, &file.path) {
            let message = format!("{first} is the {} \"{name}\" already", file.kind.noun());
            self.complain(file, field, message);
            return None;
        }
        let mut definition = self.shaped::<T>(file, value)?;
        rename(&mut definition, name.clone());
        definitions(&mut self.catalog).insert(name.clone(), definition);
        Some(name)
    }

    /// A definition's name in the catalog. Refuses a name of the application that could be a package's.
    fn name(&self, file: &folder::File, name: &str) -> Result<String, String> {
        if let Some(id) = &file.package {
            return Ok(qualified(id, name));
        }
        match name.split_once(SEPARATOR).and_then(|(id, _)| self.packages.get_key_value(id)) {
            Some((id, package)) => Err(format!(
                "\"{name}\": names that start with \"{id}{SEPARATOR}\" are those of the package {package}"
            )),
            None => Ok(name.to_owned()),
        }
    }

    /// The definition in a file, without its invalid fields.
    fn shaped<T: DeserializeOwned + JsonSchema>(&mut self, file: &folder::File, value: Value) -> Option<T> {
        let (definition, wrong) = shape::read::<T>(value);
        if !wrong.is_empty() {
            let fields = wrong.iter().map(|wrong| top(&wrong.field).to_owned()).collect();
            self.partial.insert(file.path.clone(), fields);
        }
        for wrong in wrong {
            self.complain(file, &wrong.field, wrong.message);
        }
        definition
    }

    /// Reads an endpoint. Its route comes from the file's name.
    fn endpoint(&mut self, file: &folder::File, value: Value) {
        let route = EndpointRoute::of_file(&file.name);
        let endpoint = self.shaped::<Endpoint>(file, value);
        let route = match route {
            Ok(route) => route,
            Err(wrong) => return wrong.into_iter().for_each(|message| self.complain(file, "", message)),
        };
        if let Some(first) = self.shapes.get(&route.shape()) {
            let message = format!("{first} answers {route} already");
            return self.complain(file, "", message);
        }
        self.shapes.insert(route.shape(), file.path.clone());
        if let Some(id) = &file.package {
            self.routes.insert(route.to_string(), id.clone());
        }
        self.sources.insert(Kind::Endpoint, &route.to_string(), &file.path);
        if let Some(endpoint) = endpoint {
            self.catalog.endpoints.insert(route, endpoint);
        }
    }

    fn complain(&mut self, file: &folder::File, field: &str, message: String) {
        let (file, field) = (file.path.clone(), field.to_owned());
        self.complaints.push(Complaint { file, field, message, severity: Severity::Error });
    }
}
