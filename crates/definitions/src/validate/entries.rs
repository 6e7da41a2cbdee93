//! Entries in a prompt's `tools`: functions, prompts and agents.

use serde_json::Value;

use crate::definitions::agent::SideConfig;
use crate::definitions::callable::Callable;
use crate::definitions::execute_code;
use crate::definitions::execute_code_options::{Settings, WrongOption};
use crate::definitions::prompt::ToolEntry;
use crate::definitions::references::Kind;
use crate::definitions::tool::Implementation;
use crate::names::hint;
use crate::validate::{Check, Subject};

impl Check<'_> {
    /// Checks that the name of an entry is unambiguous and callable, and that its settings apply.
    pub(super) fn entry(&mut self, at: Subject<'_>, field: &str, entry: &ToolEntry) {
        self.env(at, &format!("{field}.env"), &entry.env);
        let name = &entry.name;
        if self.of_server(at, field, entry) {
            return;
        }
        let kinds = [Kind::Tool, Kind::Prompt, Kind::Agent];
        let mut found: Vec<Kind> = kinds.into_iter().filter(|kind| self.knows(*kind, name)).collect();
        // An agent that is not exposed is ignored when the name has another meaning.
        if found.len() > 1 && !self.catalog.agents.get(name).is_some_and(|agent| agent.expose_as_tool) {
            found.retain(|kind| *kind != Kind::Agent);
        }
        // An exposed agent wins over a prompt, as in calls by code.
        if matches!(found.as_slice(), [Kind::Prompt, Kind::Agent]) {
            found.retain(|kind| *kind == Kind::Agent);
            self.shadowed_prompt(at, field, name);
        }
        match found.as_slice() {
            [] => {
                let hint = hint(name, &self.callables());
                self.error(at, field, format!("no tool, prompt or exposed agent named \"{name}\"{hint}"));
            }
            [kind] => {
                if *kind == Kind::Agent {
                    self.listed_agent(at, field, name);
                }
                self.settings(at, field, entry, *kind);
                self.code_options(at, field, entry);
                self.subagent(at, field, entry, *kind);
            }
            several => {
                let nouns: Vec<&str> = several.iter().map(|kind| kind.noun()).collect();
                let message = format!(
                    "\"{name}\" is a {}: rename one, so that it is clear which",
                    nouns.join(" and a ")
                );
                self.error(at, field, message.replace("a agent", "an agent"));
            }
        }
    }

    /// Warns about a prompt with the name of an exposed agent, because it cannot be called. Not if a side of
    /// the agent uses that prompt.
    fn shadowed_prompt(&mut self, at: Subject<'_>, field: &str, name: &str) {
        let Some(agent) = self.catalog.agents.get(name) else { return };
        let own = |side: &SideConfig| side.prompt == name;
        if !own(&agent.side_a) && !agent.side_b.as_ref().is_some_and(own) {
            let message = format!(
                "\"{name}\" is an agent with `exposeAsTool` and a prompt: the agent is called; rename the prompt to call that"
            );
            self.warning(at, field, message);
        }
    }

    /// Names that prompts may list.
    fn callables(&self) -> Vec<&str> {
        let exposed = |name: &&str| self.catalog.agents.get(*name).is_some_and(|agent| agent.expose_as_tool);
        let mut names = self.names(Kind::Tool);
        names.extend(self.names(Kind::Prompt));
        names.extend(self.names(Kind::Agent).into_iter().filter(exposed));
        names.sort_unstable();
        names.dedup();
        names
    }

    fn listed_agent(&mut self, at: Subject<'_>, field: &str, name: &str) {
        let Some(agent) = self.catalog.agents.get(name) else { return };
        if !agent.expose_as_tool {
            let message = format!("\"{name}\" is an agent that may not be called: set its `exposeAsTool`");
            self.error(at, field, message);
        }
    }

    /// Reports settings for other kinds, and arguments that do not exist.
    fn settings(&mut self, at: Subject<'_>, field: &str, entry: &ToolEntry, kind: Kind) {
        let name = &entry.name;
        let result = [
            ("includeTextResponse", entry.include_text_response.is_some()),
            ("includeToolCalls", entry.include_tool_calls.is_some()),
            ("includeErrors", entry.include_errors.is_some()),
        ];
        let init = [
            ("initUserMessageProperty", &entry.init_user_message_property),
            ("initAttachmentsProperty", &entry.init_attachments_property),
        ];
        let function = [("env", !entry.env.is_empty()), ("options", !entry.options.is_empty())];
        let mut wrong = Vec::new();
        if kind == Kind::Tool {
            wrong.extend(
                init.iter().filter(|(_, value)| value.is_some()).map(|(key, _)| (*key, "prompts and agents")),
            );
        } else {
            wrong.extend(function.iter().filter(|(_, set)| *set).map(|(key, _)| (*key, "function tools")));
        }
        if kind != Kind::Prompt {
            wrong.extend(result.iter().filter(|(_, set)| *set).map(|(key, _)| (*key, "prompts")));
        }
        for (key, owners) in wrong {
            let message =
                format!("is for {owners}; \"{name}\" is a {}", kind.noun()).replace("a agent", "an agent");
            self.error(at, format!("{field}.{key}"), message);
        }
        // The tools of a resumable agent have their own arguments.
        if kind == Kind::Tool || entry.resumable.is_some() {
            return;
        }
        for (key, property) in init {
            self.init_argument(at, &format!("{field}.{key}"), name, property);
        }
    }

    /// Checks the options of `execute_code`. Options of other tools are unknown here.
    fn code_options(&mut self, at: Subject<'_>, field: &str, entry: &ToolEntry) {
        let Some(tool) = self.catalog.tools.get(&entry.name) else { return };
        if matches!(tool.run, Implementation::Mcp(_)) && !entry.options.is_empty() {
            let text = "a server's tool is given its arguments alone: `provide`, in the server's file, fills some in";
            self.error(at, format!("{field}.options"), text);
        }
        if !execute_code::runs(&tool.run) {
            return;
        }
        for WrongOption { name, why } in Settings::of(&entry.options).err().into_iter().flatten() {
            self.error(at, format!("{field}.options.{name}"), why);
        }
    }

    /// Checks that a prompt or an agent has an argument.
    pub(super) fn init_argument(
        &mut self,
        at: Subject<'_>,
        field: &str,
        name: &str,
        property: &Option<String>,
    ) {
        let schema = self.catalog.callable(name).and_then(|callable| match callable {
            Callable::Tool(_) => None,
            other => Some(other.schema()),
        });
        if let (Some(property), Some(schema)) = (property, schema)
            && let Some(why) = lacks(schema, property)
        {
            self.error(at, field, format!("\"{name}\" has no argument \"{property}\": {why}"));
        }
    }
}

/// The reason why a schema has no such property.
fn lacks(schema: Option<&Value>, property: &str) -> Option<&'static str> {
    let Some(schema) = schema else {
        return Some("its prompt has no `requiredSchema`, so a model sends it none");
    };
    let known = schema.get("properties").and_then(Value::as_object);
    // Models receive a closed schema, whatever it says.
    let has = known.is_some_and(|known| known.contains_key(property));
    (!has).then_some("its prompt's `requiredSchema` does not list it")
}
