//! The catalog: all definitions of a deployment, compiled from the `agents/` folder into one file.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Serialize};

use crate::definitions::agent::Agent;
use crate::definitions::effect::Effect;
use crate::definitions::endpoint::{Endpoint, EndpointRoute};
use crate::definitions::hook::Hook;
use crate::definitions::mcp::listed::SEPARATOR;
use crate::definitions::mcp::{McpList, McpServer};
use crate::definitions::memory::Memory;
use crate::definitions::model::Model;
use crate::definitions::package::Packages;
use crate::definitions::prompt::Prompt;
use crate::definitions::runtime;
use crate::definitions::schema;
use crate::definitions::settings::Settings;
use crate::definitions::skill::Skill;
use crate::definitions::tool::{Implementation, Tool};
use crate::definitions::variable::is_default;

/// Names that start so belong to the runtime: no definition sees their values.
pub const RESERVED_PREFIX: &str = "BOBBIN_";

/// All definitions, by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Catalog {
    /// Models.
    pub models: BTreeMap<String, Model>,
    /// Prompts.
    pub prompts: BTreeMap<String, Prompt>,
    /// Function tools.
    pub tools: BTreeMap<String, Tool>,
    /// Agents.
    pub agents: BTreeMap<String, Agent>,
    /// Effects.
    pub effects: BTreeMap<String, Effect>,
    /// Custom endpoints of threads, by what they answer.
    pub endpoints: BTreeMap<EndpointRoute, Endpoint>,
    /// Hooks, by id.
    pub hooks: BTreeMap<String, Hook>,
    /// Skills.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub skills: BTreeMap<String, Skill>,
    /// Memories.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub memories: BTreeMap<String, Memory>,
    /// MCP servers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mcp: BTreeMap<String, McpServer>,
    /// Packages of agents. Their definitions are among the others, as `id__name`.
    #[serde(skip_serializing_if = "Packages::is_empty")]
    pub packages: Packages,
    /// Those of `bobbin.json`.
    #[serde(skip_serializing_if = "Settings::is_default")]
    pub settings: Settings,
    /// How many warnings there were when it was compiled.
    #[serde(skip_serializing_if = "is_default")]
    pub warnings: u32,
    /// The files that definitions run in the sandbox, by their path below the folder of definitions; and the modules that
    /// stand for the web's globals there, below `bobbin/`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub code: BTreeMap<String, Source>,
    /// The files that definitions were read from, by `kind name`, such as `prompt helper`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// The version of the runtime that compiled it; empty where it was not compiled.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub runtime: String,
    /// `sha256:…` over all of it but that version; empty where it was not compiled.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hash: String,
}

/// The module with `Request` and `Response`, in [`Catalog::code`]: what calls an endpoint's code needs it, too.
pub const WEB_HTTP: &str = "bobbin/http.js";

/// A file of code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// What is in it, its npm dependencies too.
    pub source: String,
    /// Modules below `bobbin/` that it imports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uses: Vec<String>,
    /// Of a bundle: from which of its lines on lines of a file follow, by the file's path and from which line; without a
    /// path they are a package's. Empty for a file that is as it was written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<(u32, String, u32)>,
}

impl Source {
    /// The file and line that were written, of a line of what stands for `file`.
    pub fn origin<'a>(&'a self, file: &'a str, line: u32) -> Option<(&'a str, u32)> {
        if self.lines.is_empty() {
            return Some((file, line));
        }
        let (from, file, first) = self.lines.iter().rev().find(|(from, _, _)| *from <= line)?;
        (!file.is_empty()).then(|| (file.as_str(), first + (line - from)))
    }
}

/// What is read of a catalog that cannot be read.
#[derive(Default, Deserialize)]
#[serde(default)]
struct CatalogHeader {
    runtime: String,
}

impl Catalog {
    /// Everything that files need to run, themselves first: specifiers and sources.
    pub fn modules_of(&self, files: &[&str]) -> Vec<(String, String)> {
        let mut wanted: Vec<&str> = files.iter().rev().copied().collect();
        let mut modules: Vec<(String, String)> = Vec::new();
        while let Some(name) = wanted.pop() {
            let specifier = format!("./{name}");
            let Some(found) =
                self.code.get(name).filter(|_| modules.iter().all(|(have, _)| *have != specifier))
            else {
                continue;
            };
            modules.push((specifier, found.source.clone()));
            wanted.extend(found.uses.iter().map(String::as_str));
        }
        modules
    }

    /// Reads `catalog.json`. A definition without a name gets its key's.
    ///
    /// # Errors
    /// It is no catalog, or not one that this version takes ([`runtime`]).
    pub fn from_json(json: &str) -> Result<Catalog, serde_json::Error> {
        let read = crate::json::from_str(json);
        // A newer runtime's may have fields that are not known here: that it is newer says more.
        let made = match &read {
            Ok(Catalog { runtime, .. }) => runtime.clone(),
            Err(_) => crate::json::from_str::<CatalogHeader>(json).unwrap_or_default().runtime,
        };
        runtime::takes(&made).map_err(serde_json::Error::custom)?;
        let mut catalog: Catalog = read?;
        catalog.name_all();
        catalog.add_loading();
        catalog.add_memory_tools();
        catalog.add_calls()?;
        Ok(catalog)
    }

    fn name_all(&mut self) {
        fn name<T>(definitions: &mut BTreeMap<String, T>, field: impl Fn(&mut T) -> &mut String) {
            for (key, definition) in definitions {
                let name = field(definition);
                if name.is_empty() {
                    name.clone_from(key);
                }
            }
        }
        name(&mut self.models, |model| &mut model.name);
        name(&mut self.prompts, |prompt| &mut prompt.name);
        name(&mut self.tools, |tool| &mut tool.name);
        name(&mut self.agents, |agent| &mut agent.name);
        name(&mut self.effects, |effect| &mut effect.name);
        name(&mut self.hooks, |hook| &mut hook.id);
        name(&mut self.skills, |skill| &mut skill.head.name);
        name(&mut self.memories, |memory| &mut memory.name);
        name(&mut self.mcp, |server| &mut server.name);
    }

    /// A model and then its fallbacks, in the order in which they are tried (spec §3.3). Unknown names are left out.
    pub fn model_chain(&self, name: &str) -> Vec<&Model> {
        let Some(first) = self.models.get(name) else { return Vec::new() };
        let mut chain = vec![first];
        for fallback in first.fallbacks.iter().filter_map(|name| self.models.get(name)) {
            if chain.iter().all(|model| model.name != fallback.name) {
                chain.push(fallback);
            }
        }
        chain
    }

    /// The arguments that a prompt requires, by name; none of one that there is not.
    pub fn required_of(&self, prompt: &str) -> Vec<&str> {
        let schema = self.prompts.get(prompt).and_then(|prompt| prompt.required_schema.as_ref()?.as_object());
        schema.map(|schema| schema::required(schema).collect()).unwrap_or_default()
    }

    /// The hooks that run while a prompt is an agent's active one (spec §9): the prompt's, or else the agent's, in the
    /// order in which they are listed. Unknown ids are left out.
    pub fn hooks_of<'c>(&'c self, agent: &'c Agent, prompt: &'c Prompt) -> impl Iterator<Item = &'c Hook> {
        let listed = if prompt.hooks.is_empty() { &agent.hooks } else { &prompt.hooks };
        listed.iter().filter_map(|id| self.hooks.get(id))
    }

    /// Whether a tool is one of an MCP server, also of one whose list is not known here.
    pub fn is_of_mcp(&self, tool: &str) -> bool {
        match self.tools.get(tool) {
            Some(tool) => matches!(tool.run, Implementation::Mcp(_)),
            None => {
                let server = tool.split_once(SEPARATOR).and_then(|(server, _)| self.mcp.get(server));
                server.is_some_and(|server| server.list == McpList::Live)
            }
        }
    }

    /// Whether a name is secret whatever is declared: the runtime's own names, and every model's key.
    pub fn is_secret(&self, name: &str) -> bool {
        name.starts_with(RESERVED_PREFIX) || self.is_model_key(name)
    }

    /// Whether a name holds the API key of a model.
    pub fn is_model_key(&self, name: &str) -> bool {
        self.models.values().any(|model| model.key_env() == Some(name))
    }
}
