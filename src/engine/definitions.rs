//! What the definitions say about the step that is open.

use crate::engine::thread::Thread;
use crate::error::{Code, Error, Result};
use crate::spec::{Agent, Model, Prompt, SideConfig};
use crate::store::side::Side;

/// What the active side runs on.
pub(crate) struct Definitions<'a> {
    pub(crate) agent: &'a Agent,
    /// The side that acts, and how it is set up.
    pub(crate) active: Side,
    pub(crate) side: &'a SideConfig,
    pub(crate) prompt: &'a Prompt,
    /// The model and its fallbacks, usable ones first; empty of an agent that makes one call (`mcp` of `bobbin.json`) alone.
    pub(crate) chain: Vec<&'a Model>,
}

impl Thread {
    /// The definitions that the thread runs on today.
    ///
    /// # Errors
    /// `conflict` where one is gone.
    pub(crate) fn definitions_now(&self) -> Result<Definitions<'_>> {
        self.definitions()?.ok_or_else(|| {
            let text = "The thread's agent, its prompt or its model is not among the definitions.";
            Error::new(Code::Conflict, text).hint("Deploy it again, or give the thread another agent.")
        })
    }
}
