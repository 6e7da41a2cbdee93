//! The workers of a prompt, led by its model (docs/subagents.md).

use std::collections::BTreeSet;

use crate::definitions::agent::AgentKind;
use crate::definitions::prompt::{Prompt, ToolEntry};
use crate::definitions::references::Kind;
use crate::limits;
use crate::validate::{Check, Subject};

impl Check<'_> {
    /// Checks the agents, limits and names of workers.
    pub(super) fn workers(&mut self, at: Subject<'_>, prompt: &Prompt) {
        let Some(workers) = &prompt.subagents else { return };
        if workers.agents.is_empty() && workers.enabled {
            self.error(at, "subagents.agents", "empty: name the agents that workers can be made of");
        }
        if workers.max_active == 0 || workers.max_active > limits::WORKERS {
            let most = limits::WORKERS;
            self.error(at, "subagents.maxActive", format!("must be from 1 to {most}"));
        }
        let fine = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let prefix = &workers.id_prefix;
        if prefix.is_empty() || prefix.len() > limits::WORKER_ID_CHARS / 2 || !prefix.chars().all(fine) {
            let most = limits::WORKER_ID_CHARS / 2;
            let message = format!("must be 1 to {most} characters: letters, digits, _ and -");
            self.error(at, "subagents.idPrefix", message);
        }
        let mut seen = BTreeSet::new();
        for (index, name) in workers.agents.iter().enumerate() {
            let field = format!("subagents.agents[{index}]");
            if !seen.insert(name) {
                self.error(at, &field, format!("\"{name}\" is listed twice"));
            }
            self.reference(at, &field, Kind::Agent, name);
            self.worker(at, &field, name);
        }
    }

    /// An agent of two AI sides must be exposed, and must start with only a message. An agent that talks to a
    /// user always can.
    fn worker(&mut self, at: Subject<'_>, field: &str, name: &str) {
        let Some(agent) = self.catalog.agents.get(name).filter(|agent| agent.kind == AgentKind::DualAi)
        else {
            return;
        };
        if !agent.expose_as_tool {
            let message = format!("\"{name}\" is an agent that may not be called: set its `exposeAsTool`");
            self.error(at, field, message);
        }
        let required = self.catalog.required_of(&agent.side_a.prompt);
        if !required.is_empty() {
            let names: Vec<String> = required.iter().map(|name| format!("`{name}`")).collect();
            let message = format!(
                "\"{name}\" cannot be a worker: its prompt requires {}, and a worker begins with a message alone",
                names.join(", ")
            );
            self.error(at, field, message);
        }
    }

    /// The tools for leading workers may be listed, although `subagents` already offers them.
    pub(super) fn worker_tool(&mut self, at: Subject<'_>, field: &str, prompt: &Prompt, entry: &ToolEntry) {
        let name = &entry.name;
        if prompt.workers().is_none() {
            let message =
                format!("\"{name}\" is offered with `subagents`, which says what agents workers are made of");
            self.error(at, field, message);
        } else if *entry != ToolEntry::unlisted(name) {
            self.error(at, field, format!("\"{name}\" takes no settings here: list its name alone"));
        }
    }
}
