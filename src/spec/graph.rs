//! What an agent leads to: its sides' prompts, what they include, their tools, the prompts among these, and the agents
//! that it may hand a thread to. And what the definitions say about a name, whoever declares it.

use std::collections::{BTreeMap, BTreeSet};

use super::agent::{Agent, AgentKind};
use super::catalog::Catalog;
use super::prompt::{Prompt, PromptPart, ToolEntry};
use super::template;
use super::tool::{Http, Run, Tool};
use super::variable::{Variable, VariableKind};

/// Values by name, as definitions give them.
pub type Env = BTreeMap<String, String>;

/// A definition that an agent leads to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Item<'c> {
    /// An agent.
    Agent(&'c Agent),
    /// A prompt.
    Prompt(&'c Prompt),
    /// A function tool.
    Tool(&'c Tool),
}

/// One that was found, and where its values come from.
#[derive(Clone, Debug)]
pub struct Found<'c> {
    /// What it is.
    pub item: Item<'c>,
    /// Values above all others: of the entries in `tools` that lead here, the innermost first.
    pub above: Vec<&'c Env>,
    /// Values below all others: the agent's, then the prompts', the outermost first.
    pub below: Vec<&'c Env>,
    /// Whether another agent hands the thread over on the way here.
    pub handed: bool,
}

impl<'c> Item<'c> {
    /// The variables that it declares.
    pub fn variables(self) -> &'c [Variable] {
        match self {
            Item::Agent(agent) => &agent.variables,
            Item::Prompt(prompt) => &prompt.variables,
            Item::Tool(tool) => &tool.variables,
        }
    }

    /// Whether it uses values at all.
    pub fn uses_values(self) -> bool {
        let renders = |part: &PromptPart| matches!(part, PromptPart::Env { .. });
        !self.variables().is_empty()
            || match self {
                Item::Agent(_) => false,
                Item::Prompt(prompt) => prompt.parts().iter().any(renders),
                Item::Tool(tool) => tool.run.http().is_some_and(Http::uses_values),
            }
    }
}

impl Run {
    /// Where it is, when it is behind a URL.
    pub fn http(&self) -> Option<&Http> {
        match self {
            Run::Http(http) => Some(http),
            Run::Native(_) => None,
        }
    }
}

impl Http {
    /// Whether a name stands in its URL or headers.
    pub fn uses_values(&self) -> bool {
        let named = |text: &String| !template::names(text).is_empty();
        named(&self.url) || self.headers.values().any(named)
    }
}

/// Everything that an agent leads to, itself first; no cycle keeps it from its end.
pub fn reach<'c>(catalog: &'c Catalog, agent: &'c Agent) -> Vec<Found<'c>> {
    let mut walk = Walk { catalog, found: Vec::new(), seen: BTreeSet::new() };
    walk.agent(agent, false);
    walk.found
}

struct Walk<'c> {
    catalog: &'c Catalog,
    found: Vec<Found<'c>>,
    /// Agent, prompt, and the names that entries of `tools` give values to.
    seen: BTreeSet<(&'c str, &'c str, Vec<&'c str>)>,
}

/// The way to a prompt.
#[derive(Clone)]
struct Way<'c> {
    agent: &'c Agent,
    above: Vec<&'c Env>,
    below: Vec<&'c Env>,
    handed: bool,
}

impl<'c> Walk<'c> {
    fn agent(&mut self, agent: &'c Agent, handed: bool) {
        if !self.seen.insert((&agent.name, "", Vec::new())) {
            return;
        }
        let sides = [Some(&agent.side_a), agent.side_b.as_ref()];
        let prompts: Vec<&Prompt> =
            sides.into_iter().flatten().filter_map(|side| self.catalog.prompts.get(&side.prompt)).collect();
        let mut way = Way { agent, above: Vec::new(), below: vec![&agent.env], handed };
        // What the agent itself declares may stand in the prompt of any side.
        let below = [&agent.env].into_iter().chain(prompts.iter().map(|prompt| &prompt.env)).collect();
        self.found.push(Found { item: Item::Agent(agent), above: Vec::new(), below, handed });
        for prompt in prompts {
            way.below.truncate(1);
            self.prompt(prompt, &way);
        }
    }

    fn prompt(&mut self, prompt: &'c Prompt, way: &Way<'c>) {
        let mut given: Vec<&str> = way.above.iter().flat_map(|env| env.keys()).map(String::as_str).collect();
        given.sort_unstable();
        given.dedup();
        if !self.seen.insert((&way.agent.name, &prompt.name, given)) {
            return;
        }
        let mut way = way.clone();
        way.below.push(&prompt.env);
        self.push(Item::Prompt(prompt), &way);
        for part in prompt.parts() {
            if let PromptPart::Include { prompt } = part
                && let Some(included) = self.catalog.prompts.get(prompt)
            {
                self.included(included, &mut way.clone(), &mut vec![&prompt]);
            }
        }
        for entry in &prompt.tools {
            self.entry(entry, &way);
        }
    }

    /// An included prompt is its text alone: its tools are not offered.
    fn included(&mut self, prompt: &'c Prompt, way: &mut Way<'c>, path: &mut Vec<&'c str>) {
        way.below.push(&prompt.env);
        self.push(Item::Prompt(prompt), way);
        for part in prompt.parts() {
            if let PromptPart::Include { prompt } = part
                && !path.contains(&prompt.as_str())
                && let Some(included) = self.catalog.prompts.get(prompt)
            {
                path.push(prompt);
                self.included(included, &mut way.clone(), path);
            }
        }
    }

    fn entry(&mut self, entry: &'c ToolEntry, way: &Way<'c>) {
        let mut way = way.clone();
        way.above.insert(0, &entry.env);
        if let Some(tool) = self.catalog.tools.get(&entry.name) {
            self.push(Item::Tool(tool), &way);
        } else if let Some(prompt) = self.catalog.prompts.get(&entry.name) {
            way.below.truncate(1);
            self.prompt(prompt, &way);
        } else if let Some(agent) = self.catalog.agents.get(&entry.name)
            && agent.expose_as_tool
            && agent.kind == AgentKind::AiHuman
        {
            self.agent(agent, true);
        }
    }

    fn push(&mut self, item: Item<'c>, way: &Way<'c>) {
        let Way { above, below, handed, .. } = way.clone();
        self.found.push(Found { item, above, below, handed });
    }
}

/// What the definitions say about names, all of them together.
#[derive(Clone, Debug, Default)]
pub struct Declared {
    text: BTreeSet<String>,
    secret: BTreeSet<String>,
    /// Values of secrets that stand in definitions: value, name.
    values: Vec<(String, String)>,
    /// Names that stand in headers, or hold keys of models.
    sent: BTreeSet<String>,
}

impl Declared {
    /// Reads the whole catalog.
    pub fn of(catalog: &Catalog) -> Declared {
        let mut declared = Declared::default();
        for variable in variables(catalog) {
            let names = match variable.kind {
                VariableKind::Text => &mut declared.text,
                VariableKind::Secret => &mut declared.secret,
            };
            names.insert(variable.name.clone());
        }
        let keys = catalog.models.values().filter_map(|model| model.key_env());
        let runs = catalog.tools.values().map(|tool| &tool.run);
        let runs = runs.chain(catalog.effects.values().map(|effect| &effect.run));
        let runs = runs.chain(catalog.endpoints.values().map(|endpoint| &endpoint.run));
        let headers = runs.filter_map(Run::http).flat_map(|http| http.headers.values());
        declared.sent =
            keys.chain(headers.flat_map(|value| template::names(value))).map(str::to_owned).collect();
        let prompts = catalog.prompts.values();
        let entries = prompts.clone().flat_map(|prompt| &prompt.tools).map(|entry| &entry.env);
        let envs = entries.chain(prompts.map(|prompt| &prompt.env));
        for (name, value) in envs.chain(catalog.agents.values().map(|agent| &agent.env)).flatten() {
            if declared.secret.contains(name) {
                declared.values.push((name.clone(), value.clone()));
            }
        }
        declared
    }

    /// The type of a value that has none of its own: `text` only where that is declared, and nobody declares the name as
    /// a secret.
    pub fn kind(&self, name: &str) -> VariableKind {
        match self.text.contains(name) && !self.secret.contains(name) {
            true => VariableKind::Text,
            false => VariableKind::Secret,
        }
    }

    /// Whether somebody declares the name as a secret.
    pub fn is_secret(&self, name: &str) -> bool {
        self.secret.contains(name)
    }

    /// Names whose values are secrets wherever they come from: declared ones, keys of models, and what is sent in
    /// headers unless it is declared `text`.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let sent = self.sent.iter().filter(|name| !self.secret.contains(*name) && !self.text.contains(*name));
        self.secret.iter().chain(sent).map(String::as_str)
    }

    /// Secrets whose values stand in definitions: name, value.
    pub fn secret_values(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// Every declaration there is.
pub fn variables(catalog: &Catalog) -> impl Iterator<Item = &Variable> {
    let of_tools = catalog.tools.values().flat_map(|tool| &tool.variables);
    let of_prompts = catalog.prompts.values().flat_map(|prompt| &prompt.variables);
    let of_agents = catalog.agents.values().flat_map(|agent| &agent.variables);
    let of_effects = catalog.effects.values().flat_map(|effect| &effect.variables);
    let of_endpoints = catalog.endpoints.values().flat_map(|endpoint| &endpoint.variables);
    of_tools.chain(of_prompts).chain(of_agents).chain(of_effects).chain(of_endpoints)
}
