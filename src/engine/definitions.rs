//! The definitions for the open step.

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
}
