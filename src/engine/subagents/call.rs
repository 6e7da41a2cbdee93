//! What a call of a model or of code wants of subagents: a new one, or a message to one that there is.

use serde_json::{Map, Value};

use crate::engine::subagents::envelope::{ChildSpec, Content};
use crate::engine::subagents::immediate::ImmediateStart;
use crate::engine::subagents::values::EncryptedValues;
use crate::spec::message::ToolResult;
use crate::spec::{Agent, ParentCommunication as Communication, Receives, ToolEntry};
use crate::store::children::{Child, ChildInfo, ChildState, Envelopes};
use crate::store::messages::Row;
use crate::store::side::Side;
use crate::trace::Trace;

/// A child that is to be made.
#[derive(Clone)]
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
    /// Its row.
    pub(crate) fn child(&self, reference: String, side: Side, group: Option<String>, now: i64) -> Child {
        Child {
            reference,
            state: ChildState::Creating,
            status: "running".to_owned(),
            agent: self.agent.name.clone(),
            facts: self.facts(side, group),
            created_us: now,
            envelopes: Envelopes::default(),
            asked: 1,
            wait: None,
            due_us: None,
            checks: 0,
            body: None,
        }
    }

    /// What it is told of itself, but what follows from its parent.
    pub(crate) fn spec(&self, child: &Child) -> ChildSpec {
        ChildSpec {
            agent: child.agent.clone(),
            owner: None,
            depth: 1,
            blocking: child.facts.blocking,
            resumable: child.facts.resumable,
            communication: child.facts.communication,
            hears: self.hears().as_str().to_owned(),
            name: child.facts.name.clone(),
            arguments: self.arguments.clone(),
            words: self.words.clone(),
            env: EncryptedValues::default(),
            held: false,
        }
    }

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
#[derive(Clone)]
pub(crate) enum SubagentCall<'a> {
    Create(NewChild<'a>),
    Message { reference: String, words: Content },
}

impl SubagentCall<'_> {
    /// The same, in this trace.
    pub(crate) fn in_trace(&self, trace: Option<Trace>) -> Self {
        let mut call = self.clone();
        let (SubagentCall::Create(NewChild { words, .. }) | SubagentCall::Message { words, .. }) = &mut call;
        words.trace = trace.map(|trace| trace.to_string());
        call
    }
}

/// A child that a call has made or written to.
pub(crate) struct Told {
    /// What the call gives at once; none when the child's answer is waited for.
    pub(crate) result: Option<ToolResult>,
}
