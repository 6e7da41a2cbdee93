//! What a call of a model or of code wants of subagents: a new one, or a message to one that there is.

use serde_json::{Map, Value};

use crate::engine::subagents::envelope::Content;
use crate::engine::subagents::immediate::ImmediateStart;
use crate::spec::message::ToolResult;
use crate::spec::{Agent, ParentCommunication as Communication, Receives, ToolEntry};
use crate::store::children::ChildInfo;
use crate::store::messages::Row;
use crate::store::side::Side;

/// A child that is to be made.
pub(crate) struct NewChild<'a> {
    pub(crate) agent: &'a Agent,
    pub(crate) entry: &'a ToolEntry,
    /// Its label.
    pub(crate) name: Option<String>,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) words: Content,
    /// How an activation of the prompt began it.
    pub(crate) begun: Option<ImmediateStart>,
}

impl NewChild<'_> {
    /// It is made by a call that an activation has queued, if the message of the call says so.
    pub(crate) fn begun_by(&mut self, reply: &Row) {
        self.begun = ImmediateStart::of(reply);
        let Some(begun) = &self.begun else { return };
        self.name = self.name.take().or_else(|| begun.name.clone());
        if self.entry.resumable.is_none() {
            self.words.text = begun.text.clone().unwrap_or_default();
        }
    }

    /// How many of its kind there may be.
    pub(crate) fn most(&self) -> Option<u32> {
        self.entry.resumable.as_ref().and_then(|resumable| resumable.max_instances)
    }

    fn resumable(&self) -> bool {
        self.entry.resumable.is_some()
    }

    pub(crate) fn blocking(&self) -> bool {
        self.entry.blocks()
    }

    pub(crate) fn facts(&self, side: Side, group: Option<String>) -> ChildInfo {
        ChildInfo {
            name: self.name.clone(),
            title: self.agent.title.clone(),
            description: self.agent.tool_description.clone().unwrap_or_default(),
            blocking: self.blocking(),
            resumable: self.resumable(),
            communication: self.communication(),
            side: side.as_str().to_owned(),
            own: Vec::new(),
            deferred: false,
            group,
        }
    }

    fn communication(&self) -> Communication {
        self.entry
            .resumable
            .as_ref()
            .map_or(Communication::Implicit, |resumable| resumable.parent_communication)
    }

    /// The side that hears the parent; of a child that hears once, the one that begins.
    pub(crate) fn hears(&self) -> Side {
        match self.entry.resumable.as_ref().map(|resumable| resumable.receives_messages) {
            Some(Receives::SideB) => Side::B,
            Some(Receives::SideA) | None => Side::A,
        }
    }
}

/// What a call wants of subagents.
pub(crate) enum SubagentCall<'a> {
    Create(NewChild<'a>),
    Message { reference: String, words: Content },
}

/// A child that a call has made or written to.
pub(crate) struct Told {
    /// What the call gives at once; none when the child's answer is waited for.
    pub(crate) result: Option<ToolResult>,
}
