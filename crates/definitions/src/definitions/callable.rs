//! What a name in a prompt's `tools` stands for (spec §6.3, §7.5): a function, a prompt or an agent.

use std::borrow::Cow;

use serde_json::Value;

use crate::definitions::agent::{Agent, AgentKind};
use crate::definitions::catalog::Catalog;
use crate::definitions::prompt::Prompt;
use crate::definitions::schema;
use crate::definitions::schema::root::joined;
use crate::definitions::tool::{Implementation, Tool};
use crate::json;

/// Something that a model or code may call by its name.
#[derive(Clone, Copy, Debug)]
pub enum Callable<'a> {
    /// A function.
    Tool(&'a Tool),
    /// A prompt, which answers in one step (spec §23).
    Prompt(&'a Prompt),
    /// An agent that takes the thread over (spec §22), and the prompt of its side A.
    Agent(&'a Agent, &'a Prompt),
    /// An agent that works in a thread of its own (spec §8), and the prompt of its side A.
    Subagent(&'a Agent, &'a Prompt),
}

impl Catalog {
    /// What a name stands for today. Agents are called only when they are exposed; where an exposed agent and a prompt
    /// have one name, and no prompt lists it, the agent is meant.
    pub fn callable(&self, name: &str) -> Option<Callable<'_>> {
        if let Some(tool) = self.tools.get(name) {
            return Some(Callable::Tool(tool));
        }
        if let Some(agent) = self.agents.get(name).filter(|agent| agent.expose_as_tool) {
            let prompt = self.prompts.get(&agent.side_a.prompt)?;
            return Some(match agent.kind {
                AgentKind::AiHuman => Callable::Agent(agent, prompt),
                AgentKind::DualAi => Callable::Subagent(agent, prompt),
            });
        }
        self.prompts.get(name).map(Callable::Prompt)
    }
}

impl<'a> Callable<'a> {
    /// Its name.
    pub fn name(&self) -> &'a str {
        match self {
            Callable::Tool(tool) => &tool.name,
            Callable::Prompt(prompt) => &prompt.name,
            Callable::Agent(agent, _) | Callable::Subagent(agent, _) => &agent.name,
        }
    }

    /// What a model reads about it.
    pub fn description(&self) -> &'a str {
        match self {
            Callable::Tool(tool) => &tool.description,
            Callable::Prompt(prompt) => &prompt.tool_description,
            Callable::Agent(agent, _) | Callable::Subagent(agent, _) => {
                agent.tool_description.as_deref().unwrap_or_default()
            }
        }
    }

    /// JSON Schema of its arguments, if it has one: a prompt's `requiredSchema`, for an agent that of its side A's.
    pub fn schema(&self) -> Option<&'a Value> {
        match self {
            Callable::Tool(tool) => tool.args.as_ref(),
            Callable::Prompt(prompt) | Callable::Agent(_, prompt) | Callable::Subagent(_, prompt) => {
                prompt.required_schema.as_ref()
            }
        }
    }

    /// Whether its schema is an MCP server's.
    fn is_of_server(&self) -> bool {
        matches!(self, Callable::Tool(Tool { run: Implementation::Mcp(_), .. }))
    }

    /// What a provider is shown: the schema, with one object in the place of a choice at its root; whether the provider's strict
    /// mode may be asked for ([`schema::strict`]); and what the model reads about it.
    pub fn offer(&self) -> (Value, bool, Cow<'a, str>) {
        let none = json!({ "type": "object", "properties": {}, "required": [] });
        let schema = self.schema().unwrap_or(&none);
        let (schema, description) = match joined(schema) {
            Some((schema, note)) => {
                (Cow::Owned(schema), Cow::Owned(format!("{}\n\n{note}", self.description())))
            }
            None => (Cow::Borrowed(schema), Cow::Borrowed(self.description())),
        };
        // What a server has may have any keyword, so nothing can be closed or promised.
        let (schema, strict) =
            if self.is_of_server() { (schema.into_owned(), false) } else { schema::strict(&schema) };
        (schema, strict, description)
    }

    /// Arguments with their defaults.
    ///
    /// # Errors
    /// What is wrong with them. Where there is no schema, any object is taken.
    pub fn check(&self, args: Value) -> Result<Value, Vec<schema::Problem>> {
        if let Some(schema) = self.schema().filter(|_| self.is_of_server()) {
            let args = schema::without_nulls(schema, args);
            let problems = schema::validate_leniently(schema, &args);
            // The server has its defaults itself.
            return if problems.is_empty() { Ok(args) } else { Err(problems) };
        }
        let problems = schema::problems(self.schema(), &args);
        if !problems.is_empty() {
            return Err(problems);
        }
        match self.schema() {
            Some(schema) => schema::with_defaults(schema, args),
            None => Ok(args),
        }
    }
}
