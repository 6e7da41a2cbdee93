//! Which prompts begin subagents, and the data of the calls that begin them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::engine::features::Subagents;
use crate::store::messages::Row;
use crate::store::side::Side;

/// The metadata key that marks the message of such a call.
pub(super) const MARK: &str = "immediate";

/// The data in the message of such a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ImmediateStart {
    /// The place in the row of its variables; 1 without hints.
    #[serde(default)]
    pub(super) place: u32,
    /// The child's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    /// The child's first message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
}

impl ImmediateStart {
    /// The data in a call's message, if an activation queued the call.
    pub(super) fn of(reply: &Row) -> Option<ImmediateStart> {
        let metadata: Map<String, Value> = crate::json::from_str(reply.metadata.as_deref()?).ok()?;
        crate::json::from_value(metadata.get(MARK)?.clone()).ok()
    }
}

impl Subagents<'_> {
    /// The bits of the sides whose prompts begin subagents.
    pub(crate) fn activations(&self, agent: &str) -> i64 {
        let Some(agent) = self.catalog.agents.get(agent) else { return 0 };
        let begins = |prompt: &str| {
            self.catalog
                .prompts
                .get(prompt)
                .is_some_and(|prompt| prompt.tools.iter().any(|entry| entry.immediate.is_some()))
        };
        let side = |side, prompt| if begins(prompt) { bit(side) } else { 0 };
        let b = agent.side_b.as_ref().map_or(0, |config| side(Side::B, &config.prompt));
        side(Side::A, &agent.side_a.prompt) | b
    }
}

/// The bit of a side in `meta.activates`, which holds the prompts of a new thread that have not become active
/// yet.
pub(super) const fn bit(side: Side) -> i64 {
    match side {
        Side::A => 1,
        Side::B => 2,
    }
}
