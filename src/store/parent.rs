//! A child's knowledge of its parent, stored in its `meta` row.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::definitions::ParentCommunication as Communication;
use crate::request::between::{first_life, is_first_life};
use crate::store::children::Envelopes;
use crate::store::grants::Grant;
use crate::store::side::Side;

/// The parent of a thread, and what it has passed on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Parent {
    pub(crate) thread: String,
    /// Generation of the family's top-level thread.
    #[serde(default = "first_life", skip_serializing_if = "is_first_life")]
    pub(crate) life: i64,
    /// Depth of subagent calls; 1 for a child of a top-level thread.
    pub(crate) depth: u32,
    pub(crate) blocking: bool,
    pub(crate) resumable: bool,
    #[serde(default)]
    pub(crate) communication: Communication,
    /// The side that receives the parent's messages, `a` or `b`.
    pub(crate) hears: String,
    /// The arguments of its creation (spec §8.3), valid for its lifetime.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) arguments: Map<String, Value>,
    pub(crate) envelopes: Envelopes,
    /// The parent's newest message: number of its envelope, and its seq here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) asked: Option<(i64, i64)>,
    /// The trace of that message, until a run takes the message in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<String>,
    /// The tools that it may call, sorted, if its agent has more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<Vec<String>>,
    /// Whether it may manage workers.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub(crate) spawns: bool,
    /// Its allocation of the parent's budget; none if that is not limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) grant: Option<Grant>,
}

/// Default of fields that are true if missing.
pub(crate) const fn yes() -> bool {
    true
}

pub(crate) const fn is_yes(yes: &bool) -> bool {
    *yes
}

impl Parent {
    /// The side that receives the parent's messages.
    pub(crate) fn receiving_side(&self) -> Side {
        Side::parse(&self.hears).unwrap_or(Side::A)
    }
}
