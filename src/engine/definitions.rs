//! The definitions for the open step.

use crate::definitions::offered::is_of_tool;
use crate::definitions::{Agent, Model, Prompt, SideConfig};
use crate::engine::thread::Thread;
use crate::error::{Code, Error, Result};
use crate::store::side::Side;

/// The definitions of the active side.
pub(crate) struct Definitions<'a> {
    pub(crate) agent: &'a Agent,
    /// The acting side, and its configuration.
    pub(crate) active: Side,
    pub(crate) side: &'a SideConfig,
    pub(crate) prompt: &'a Prompt,
    /// The model and its fallbacks, usable ones first. Empty for an agent that makes a single call (`mcp` of
    /// `bobbin.json`).
    pub(crate) chain: Vec<&'a Model>,
}

impl Thread {
    /// The current definitions of the thread.
    ///
    /// # Errors
    /// `conflict` if one of them no longer exists.
    pub(crate) fn definitions_now(&self) -> Result<Definitions<'_>> {
        self.definitions()?.ok_or_else(|| {
            let text = "The thread's agent, its prompt or its model is not among the definitions.";
            Error::new(Code::Conflict, text).hint("Deploy it again, or give the thread another agent.")
        })
    }

    /// The current definitions of the active side; `None` if one of them no longer exists.
    pub(super) fn definitions(&self) -> Result<Option<Definitions<'_>>> {
        let (name, active) = self.read(|state, _| {
            Ok((state.meta.agent.clone(), state.active().map_or(Side::A, |run| run.side)))
        })?;
        Ok(self.definitions_of(&name, active))
    }

    pub(crate) fn definitions_of(&self, agent: &str, active: Side) -> Option<Definitions<'_>> {
        let agent = self.catalog.agents.get(agent)?;
        let side = match active {
            Side::A => &agent.side_a,
            Side::B => agent.side_b.as_ref()?,
        };
        let prompt = self.catalog.prompts.get(&side.prompt)?;
        let chain = self.usable_chain(&prompt.model);
        let fits = !chain.is_empty() || is_of_tool(&agent.name);
        fits.then_some(Definitions { agent, active, side, prompt, chain })
    }

    /// A model and its fallbacks. Models without a key are skipped if another one is left (spec §3.3).
    pub(crate) fn usable_chain(&self, model: &str) -> Vec<&Model> {
        let mut chain = self.catalog.model_chain(model);
        let deployment = |name: &str| self.variables().deployment(name);
        if chain.iter().any(|model| crate::models::usable(model, &deployment)) {
            chain.retain(|model| crate::models::usable(model, &deployment));
        }
        chain
    }
}
