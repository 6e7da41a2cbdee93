//! What an agent can reach: the prompts of its sides, what they include, their tools, the prompts among these, and the
//! agents that it may hand a thread to. Also what the definitions say about a name, whichever of them declares it.

use std::collections::BTreeMap;

use crate::definitions::agent::Agent;
use crate::definitions::callable::Callable;
use crate::definitions::catalog::Catalog;
use crate::definitions::hook::Hook;
use crate::definitions::mcp::McpServer;
use crate::definitions::prompt::{Prompt, PromptPart, ToolEntry};
use crate::definitions::template;
use crate::definitions::tool::{Http, Implementation, Tool};
use crate::definitions::variable::{Variable, VariableKind};

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
    /// A hook of one of its own sides.
    Hook(&'c Hook),
    /// An MCP server whose tools are listed at the first step of a run. One with a list is there as its tools.
    Server(&'c McpServer),
}

/// One that was found, and where its values come from.
#[derive(Clone, Debug)]
pub struct GraphNode<'c> {
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
            Item::Hook(hook) => &hook.variables,
            Item::Server(server) => &server.variables,
        }
    }

    /// Whether it uses values at all.
    pub fn uses_values(self) -> bool {
        let renders = |part: &PromptPart| matches!(part, PromptPart::Env { .. });
        !self.variables().is_empty()
            || match self {
                // What these name is among their variables.
                Item::Agent(_) | Item::Server(_) => false,
                Item::Prompt(prompt) => {
                    prompt.parts().iter().any(renders)
                        || prompt.tools.iter().any(|entry| entry.optional.is_some())
                }
                Item::Tool(tool) => tool.run.http().is_some_and(Http::uses_values),
                Item::Hook(hook) => hook.run.http().is_some_and(Http::uses_values),
            }
    }
}

impl Implementation {
    /// Where it is, when it is behind a URL.
    pub fn http(&self) -> Option<&Http> {
        match self {
            Implementation::Http(http) => Some(http),
            Implementation::Native(_)
            | Implementation::Code(_)
            | Implementation::Client(_)
            | Implementation::Mcp(_) => None,
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
pub fn reach<'c>(catalog: &'c Catalog, agent: &'c Agent) -> Vec<GraphNode<'c>> {
    let mut walk = Walk { catalog, found: Vec::new(), seen: Vec::new() };
    walk.agent(agent, false);
    walk.found
}

struct Walk<'c> {
    catalog: &'c Catalog,
    found: Vec<GraphNode<'c>>,
    /// Agent, prompt, and the names that entries of `tools` give values to.
    seen: Vec<(&'c str, &'c str, Vec<&'c str>)>,
}

/// The way to a prompt.
#[derive(Clone)]
struct PromptPath<'c> {
    agent: &'c Agent,
    above: Vec<&'c Env>,
    below: Vec<&'c Env>,
    handed: bool,
}

impl<'c> Walk<'c> {
    /// Whether the walk was here before; now it was.
    fn was_at(&mut self, place: (&'c str, &'c str, Vec<&'c str>)) -> bool {
        let seen = self.seen.contains(&place);
        if !seen {
            self.seen.push(place);
        }
        seen
    }

    fn agent(&mut self, agent: &'c Agent, handed: bool) {
        if self.was_at((&agent.name, "", Vec::new())) {
            return;
        }
        let sides = [Some(&agent.side_a), agent.side_b.as_ref()];
        let prompts: Vec<&Prompt> =
            sides.into_iter().flatten().filter_map(|side| self.catalog.prompts.get(&side.prompt)).collect();
        let mut prompt_path = PromptPath { agent, above: Vec::new(), below: vec![&agent.env], handed };
        // What the agent itself declares may stand in the prompt of any side.
        let below = [&agent.env].into_iter().chain(prompts.iter().map(|prompt| &prompt.env)).collect();
        self.found.push(GraphNode { item: Item::Agent(agent), above: Vec::new(), below, handed });
        for prompt in prompts {
            prompt_path.below.truncate(1);
            self.prompt(prompt, &prompt_path);
            prompt_path.below.truncate(1);
            prompt_path.below.push(&prompt.env);
            for hook in self.catalog.hooks_of(agent, prompt) {
                self.push(Item::Hook(hook), &prompt_path);
            }
        }
    }

    fn prompt(&mut self, prompt: &'c Prompt, prompt_path: &PromptPath<'c>) {
        let mut given: Vec<&str> = Vec::new();
        for name in prompt_path.above.iter().flat_map(|env| env.keys()) {
            if !given.contains(&name.as_str()) {
                given.push(name);
            }
        }
        if self.was_at((&prompt_path.agent.name, &prompt.name, given)) {
            return;
        }
        let mut prompt_path = prompt_path.clone();
        prompt_path.below.push(&prompt.env);
        self.push(Item::Prompt(prompt), &prompt_path);
        for part in prompt.parts() {
            if let PromptPart::Include { prompt } = part
                && let Some(included) = self.catalog.prompts.get(prompt)
            {
                self.included(included, &mut prompt_path.clone(), &mut vec![&prompt]);
            }
        }
        for entry in &prompt.tools {
            self.entry(entry, &prompt_path);
        }
    }

    /// An included prompt is its text alone: its tools are not offered.
    fn included(&mut self, prompt: &'c Prompt, prompt_path: &mut PromptPath<'c>, path: &mut Vec<&'c str>) {
        prompt_path.below.push(&prompt.env);
        self.push(Item::Prompt(prompt), prompt_path);
        for part in prompt.parts() {
            if let PromptPart::Include { prompt } = part
                && !path.contains(&prompt.as_str())
                && let Some(included) = self.catalog.prompts.get(prompt)
            {
                path.push(prompt);
                self.included(included, &mut prompt_path.clone(), path);
            }
        }
    }

    fn entry(&mut self, entry: &'c ToolEntry, prompt_path: &PromptPath<'c>) {
        let mut prompt_path = prompt_path.clone();
        prompt_path.above.insert(0, &entry.env);
        match self.catalog.callable(&entry.name) {
            Some(Callable::Tool(tool)) => self.push(Item::Tool(tool), &prompt_path),
            Some(Callable::Prompt(prompt)) => {
                prompt_path.below.truncate(1);
                self.prompt(prompt, &prompt_path);
            }
            Some(Callable::Agent(agent, _)) => self.agent(agent, true),
            // What belongs to a thread of its own is looked at when that is made.
            Some(Callable::Subagent(..)) => {}
            None => {
                if let Some(server) = entry.mcp().and_then(|name| self.catalog.mcp.get(name)) {
                    self.push(Item::Server(server), &prompt_path);
                }
            }
        }
    }

    fn push(&mut self, item: Item<'c>, prompt_path: &PromptPath<'c>) {
        let PromptPath { above, below, handed, .. } = prompt_path.clone();
        self.found.push(GraphNode { item, above, below, handed });
    }
}

/// What the definitions say about names, all of them together.
#[derive(Clone, Debug, Default)]
pub struct DeclaredVariables {
    text: Vec<String>,
    secret: Vec<String>,
    /// Values of secrets that stand in definitions: name, value.
    values: Vec<(String, String)>,
    /// Names that stand in headers, or hold keys of models.
    sent: Vec<String>,
}

impl DeclaredVariables {
    /// Reads the whole catalog.
    pub fn of(catalog: &Catalog) -> DeclaredVariables {
        let mut declared = DeclaredVariables::default();
        for tool in catalog.tools.values() {
            declared.takes(&tool.variables, Some(&tool.run));
        }
        for effect in catalog.effects.values() {
            declared.takes(&effect.variables, Some(&effect.run));
        }
        for endpoint in catalog.endpoints.values() {
            declared.takes(&endpoint.variables, Some(&endpoint.run));
        }
        for hook in catalog.hooks.values() {
            declared.takes(&hook.variables, Some(&hook.run));
        }
        for prompt in catalog.prompts.values() {
            declared.takes(&prompt.variables, None);
        }
        for agent in catalog.agents.values() {
            declared.takes(&agent.variables, None);
        }
        for server in catalog.mcp.values() {
            declared.takes(&server.variables, None);
            for name in server.headers.values().flat_map(|value| template::names(value)) {
                note(&mut declared.sent, name);
            }
        }
        for key in catalog.models.values().filter_map(|model| model.key_env()) {
            note(&mut declared.sent, key);
        }
        for agent in catalog.agents.values() {
            declared.gives(&agent.env);
        }
        for prompt in catalog.prompts.values() {
            declared.gives(&prompt.env);
            for entry in &prompt.tools {
                declared.gives(&entry.env);
            }
        }
        declared
    }

    fn takes(&mut self, variables: &[Variable], run: Option<&Implementation>) {
        for variable in variables {
            let names = match variable.kind {
                VariableKind::Text => &mut self.text,
                VariableKind::Secret => &mut self.secret,
            };
            note(names, &variable.name);
        }
        if let Some(Implementation::Http(http)) = run {
            for name in http.headers.values().flat_map(|value| template::names(value)) {
                note(&mut self.sent, name);
            }
        }
    }

    fn gives(&mut self, env: &Env) {
        for (name, value) in env {
            if self.is_secret(name) {
                self.values.push((name.clone(), value.clone()));
            }
        }
    }

    /// The type of a value that has none of its own: `text` only where that is declared, and nobody declares the name as
    /// a secret.
    pub fn kind(&self, name: &str) -> VariableKind {
        match self.text.iter().any(|text| text == name) && !self.is_secret(name) {
            true => VariableKind::Text,
            false => VariableKind::Secret,
        }
    }

    /// Whether somebody declares the name as a secret.
    pub fn is_secret(&self, name: &str) -> bool {
        self.secret.iter().any(|secret| secret == name)
    }

    /// Names whose values are secrets wherever they come from: declared ones, keys of models, and what is sent in
    /// headers unless it is declared `text`.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let sent = self.sent.iter().filter(|name| !self.text.contains(name));
        self.secret.iter().chain(sent).map(String::as_str)
    }

    /// Secrets whose values stand in definitions: name, value.
    pub fn secret_values(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

fn note(names: &mut Vec<String>, name: &str) {
    if !names.iter().any(|known| known == name) {
        names.push(name.to_owned());
    }
}
