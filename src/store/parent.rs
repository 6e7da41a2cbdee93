//! What a child knows of its parent: a part of its `meta` row.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::request::between::{first_life, is_first_life};
use crate::spec::ParentCommunication as Communication;
use crate::store::children::Envelopes;
use crate::store::grants::Grant;
use crate::store::side::Side;

/// See the module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Parent {
    /// Its thread.
    pub(crate) thread: String,
    /// Which thread in its place the top of the family is.
    #[serde(default = "first_life", skip_serializing_if = "is_first_life")]
    pub(crate) life: i64,
    /// Calls of subagents around this one; 1 for a child of a top-level thread.
    pub(crate) depth: u32,
    pub(crate) blocking: bool,
    pub(crate) resumable: bool,
    #[serde(default)]
    pub(crate) communication: Communication,
    /// The side that hears the parent, `a` or `b`.
    pub(crate) hears: String,
    /// What it was created with (spec §8.3), for as long as it lives.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) arguments: Map<String, Value>,
    pub(crate) envelopes: Envelopes,
    /// The newest message of the parent's: its letter's number, and its seq here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) asked: Option<(i64, i64)>,
    /// The trace of that message, until a run takes it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<String>,
    /// The tools that it may call, sorted, where these are a part of its agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<Vec<String>>,
    /// Whether it may lead workers of its own.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub(crate) spawns: bool,
    /// What it has of the parent's budget; none where nothing limits that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) grant: Option<Grant>,
}

/// What holds of everything that does not say otherwise.
pub(crate) const fn yes() -> bool {
    true
}

pub(crate) const fn is_yes(yes: &bool) -> bool {
    *yes
}

impl Parent {
    /// The side that hears the parent.
    pub(crate) fn hears(&self) -> Side {
        Side::parse(&self.hears).unwrap_or(Side::A)
    }
}
