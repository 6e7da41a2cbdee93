//! Where values come from (spec §11.2, §35.1; docs/http.md). Until threads and owners have values of their own the
//! order is: the tool entry's, then the deployment's, the agent's, the prompt's.

use super::Thread;
use super::host::Host;
use super::step::Definitions;
use crate::spec::ToolEntry;
use crate::spec::catalog::RESERVED_PREFIX;

impl<H: Host> Thread<H> {
    /// A value of the deployment. The runtime's own settings are invisible to definitions.
    pub(super) fn deployment(&self, name: &str) -> Option<String> {
        if name.starts_with(RESERVED_PREFIX) { None } else { self.host.var(name) }
    }

    /// A value for a prompt's `env` part. What may be rendered at all, the prompt decides.
    pub(super) fn prompt_env(&self, definitions: &Definitions<'_>, name: &str) -> Option<String> {
        self.deployment(name)
            .or_else(|| definitions.agent.env.get(name).cloned())
            .or_else(|| definitions.prompt.env.get(name).cloned())
    }

    /// A value for what runs apart from any prompt: an effect or an endpoint.
    pub(super) fn agent_env(&self, agent: &str, name: &str) -> Option<String> {
        let of_agent = || self.catalog.agents.get(agent).and_then(|agent| agent.env.get(name).cloned());
        self.deployment(name).or_else(of_agent)
    }

    /// A value for a call of a tool; the prompt's entry of it has the first word.
    pub(super) fn tool_env(
        &self,
        definitions: &Definitions<'_>,
        entry: &ToolEntry,
        name: &str,
    ) -> Option<String> {
        entry.env.get(name).cloned().or_else(|| self.prompt_env(definitions, name))
    }
}
