//! What the definitions say about the step that is open.

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
