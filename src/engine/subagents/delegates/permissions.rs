//! Restricts a worker to some of its agent's tools. The restriction applies to models and code.

use std::collections::BTreeSet;

use crate::definitions::mcp::PREFIX;
use crate::definitions::subagent::OF_WORKERS;
use crate::definitions::{Agent, Catalog, Implementation, Prompt, SideConfig};
use crate::engine::features::Delegates;
use crate::error::Result;

/// An agent's tools: those that its prompts list, and the runtime's own that come with them.
pub(super) fn tools_of<'c>(catalog: &'c Catalog, agent: &'c Agent) -> BTreeSet<&'c str> {
    let mut tools = BTreeSet::new();
    for side in sides(agent) {
        let Some(prompt) = catalog.prompts.get(&side.prompt) else { continue };
        tools.extend(prompt.tools.iter().map(|entry| entry.name.as_str()));
        tools.extend(ends(side));
        if prompt.workers().is_some() {
            tools.extend(OF_WORKERS);
        }
    }
    tools
}

fn sides(agent: &Agent) -> impl Iterator<Item = &SideConfig> {
    [Some(&agent.side_a), agent.side_b.as_ref()].into_iter().flatten()
}

/// The tools with which a side ends its turn or session, or sets its status. Always permitted, because the
/// worker could not end without them.
fn ends(side: &SideConfig) -> impl Iterator<Item = &str> {
    let session = [&side.session_stop, &side.session_fail, &side.session_status];
    let session = session.into_iter().flatten().map(|tool| tool.name.as_str());
    side.stop_tool.as_deref().into_iter().chain(session)
}

impl Delegates<'_> {
    /// Whether this thread may call the tool.
    pub(crate) fn permits(&self, name: &str) -> Result<bool> {
        self.read(|state, _| {
            let Some(tools) = state.meta.parent.as_ref().and_then(|parent| parent.tools.as_ref()) else {
                return Ok(true);
            };
            let agent = self.catalog.agents.get(&state.meta.agent);
            let ends = agent.into_iter().flat_map(sides).flat_map(ends).any(|tool| tool == name);
            // The tools of a live-listed MCP server are granted together, under the server's name.
            let server = match self.catalog.tools.get(name).map(|tool| &tool.run) {
                Some(Implementation::Mcp(of)) => Some(of.server.as_str()),
                _ => None,
            };
            let given =
                |tool: &String| tool == name || server.is_some() && tool.strip_prefix(PREFIX) == server;
            Ok(ends || tools.iter().any(given))
        })
    }

    /// The error text for a tool that this thread may not call.
    pub(crate) fn not_permitted(name: &str) -> String {
        format!("\"{name}\" cannot be called here: it is not among the tools that this subagent was given.")
    }

    /// The worker tools that a prompt's model is offered in this thread.
    pub(crate) fn leads(&self, prompt: &Prompt) -> Result<Vec<&'static str>> {
        let may = || self.read(|state, _| Ok(state.meta.parent.as_ref().is_none_or(|parent| parent.spawns)));
        if prompt.workers().is_none() || !may()? {
            return Ok(Vec::new());
        }
        let mut offered = Vec::with_capacity(OF_WORKERS.len());
        for name in OF_WORKERS {
            if self.permits(name)? {
                offered.push(name);
            }
        }
        Ok(offered)
    }
}
