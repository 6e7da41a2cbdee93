//! The subagent action of a call by a model or code: create a child or send it a message. Calls for workers
//! can also wait for several of them, or close one.

use serde_json::{Map, Value};

use crate::definitions::budget::Share;
use crate::definitions::message::ToolResult;
use crate::definitions::{Agent, ParentCommunication as Communication, ReceivingSide, ToolEntry};
use crate::engine::subagents::envelope::{ChildSpec, Content};
use crate::engine::subagents::follow_up::FollowUp;
use crate::engine::subagents::immediate_start::ImmediateStart;
use crate::engine::subagents::values::EncryptedValues;
use crate::store::children::{Child, ChildInfo, ChildState, Envelopes};
use crate::store::messages::Row;
use crate::store::side::Side;
use crate::store::waits::Wait;
use crate::trace::Trace;

/// A child to create.
#[derive(Clone)]
pub(crate) struct NewChild<'a> {
    pub(crate) agent: &'a Agent,
    pub(super) entry: &'a ToolEntry,
    /// Its label.
    pub(super) name: Option<String>,
    pub(super) arguments: Map<String, Value>,
    pub(super) words: Content,
    /// The activation of the prompt that began it, if one did.
    pub(super) begun: Option<ImmediateStart>,
    /// The settings of a worker, if the child is one.
    pub(super) worker: Option<NewWorker>,
}

/// A worker to create.
#[derive(Clone)]
pub(super) struct NewWorker {
    /// The id to use; a counted one unless given.
    pub(super) alias: Option<String>,
    /// The prefix of counted ids.
    pub(super) prefix: String,
    /// The maximum number of workers of the thread.
    pub(super) most: u32,
    /// Whether it may lead workers of its own.
    pub(super) can_spawn: bool,
    /// The tools that it may call, sorted; `None` allows all of its agent's.
    pub(super) tools: Option<Vec<String>>,
    /// Its purpose, if given.
    pub(super) description: Option<String>,
    /// Its share of the budget, if given.
    pub(super) budget: Option<Share>,
    /// Whether it starts without a message.
    pub(super) idle: bool,
}

impl NewChild<'_> {
    /// The child's share of its creator's budget. The call's share precedes the entry's.
    pub(super) fn share(&self) -> Option<&Share> {
        let said = self.worker.as_ref().and_then(|worker| worker.budget.as_ref());
        said.or(self.entry.budget.as_ref())
    }

    /// The child's row.
    pub(super) fn child(&self, reference: String, side: Side, group: Option<String>, now: i64) -> Child {
        let idle = self.worker.as_ref().is_some_and(|worker| worker.idle);
        Child {
            reference,
            state: ChildState::Creating,
            status: if idle { "idle" } else { "running" }.to_owned(),
            agent: self.agent.name.clone(),
            facts: self.facts(side, group),
            created_us: now,
            envelopes: Envelopes::default(),
            asked: i64::from(!idle),
            wait: None,
            due_us: None,
            checks: 0,
            body: None,
            budget: None,
        }
    }

    /// The child's specification, except for the parts that depend on the parent's state.
    pub(super) fn spec(&self, child: &Child) -> ChildSpec {
        ChildSpec {
            agent: child.agent.clone(),
            owner: None,
            depth: 1,
            blocking: child.facts.blocking,
            resumable: child.facts.resumable,
            communication: child.facts.communication,
            hears: self.receiving_side().as_str().to_owned(),
            name: child.facts.name.clone(),
            arguments: self.arguments.clone(),
            words: self.words.clone(),
            env: EncryptedValues::default(),
            held: false,
            idle: self.worker.as_ref().is_some_and(|worker| worker.idle),
            tools: child.facts.tools.clone(),
            spawns: true,
        }
    }

    /// Applies the activation that queued the call, if the message of the call names one.
    pub(super) fn begun_by(&mut self, reply: &Row) {
        self.begun = ImmediateStart::of(reply);
        let Some(begun) = &self.begun else { return };
        self.name = self.name.take().or_else(|| begun.name.clone());
        if self.entry.resumable.is_none() {
            self.words.text = begun.text.clone().unwrap_or_default();
        }
    }

    /// The maximum number of instances of this entry.
    pub(super) fn most(&self) -> Option<u32> {
        self.entry.resumable.as_ref().and_then(|resumable| resumable.max_instances)
    }

    fn resumable(&self) -> bool {
        self.entry.resumable.is_some()
    }

    pub(super) fn blocking(&self) -> bool {
        self.entry.blocks()
    }

    fn facts(&self, side: Side, group: Option<String>) -> ChildInfo {
        let worker = self.worker.as_ref();
        let described = worker.and_then(|worker| worker.description.clone());
        ChildInfo {
            name: self.name.clone(),
            title: self.agent.title.clone(),
            description: described.or_else(|| self.agent.tool_description.clone()).unwrap_or_default(),
            blocking: self.blocking(),
            resumable: self.resumable(),
            communication: self.communication(),
            side: side.as_str().to_owned(),
            own: Vec::new(),
            deferred: false,
            group,
            alias: worker.and_then(|worker| worker.alias.clone()),
            tools: worker.and_then(|worker| worker.tools.clone()),
            cut: false,
        }
    }

    fn communication(&self) -> Communication {
        self.entry
            .resumable
            .as_ref()
            .map_or(Communication::Implicit, |resumable| resumable.parent_communication)
    }

    /// The side that receives the parent's messages. In a child that receives only one, the side that begins.
    fn receiving_side(&self) -> Side {
        match self.entry.resumable.as_ref().map(|resumable| resumable.receives_messages) {
            Some(ReceivingSide::SideB) => Side::B,
            Some(ReceivingSide::SideA) | None => Side::A,
        }
    }
}

/// The subagent action of a call.
#[derive(Clone)]
pub(crate) enum SubagentCall<'a> {
    Create(Box<NewChild<'a>>),
    Message {
        reference: String,
        words: Content,
    },
    Send(WorkerMessage),
    Wait(WorkersWait),
    /// Closes the worker with this id.
    Close(String),
}

/// A message to a worker.
#[derive(Clone)]
pub(crate) struct WorkerMessage {
    pub(super) id: String,
    pub(super) words: Content,
    /// Whether the call waits for the outcome.
    pub(super) waits: bool,
    /// Whether a busy worker accepts the message: it then reads it at its next step.
    pub(super) queues: bool,
}

/// A call that waits for workers.
#[derive(Clone)]
pub(crate) struct WorkersWait {
    pub(super) ids: Vec<String>,
    /// Whether one outcome is enough.
    pub(super) any: bool,
    /// The timeout; 0 returns what is available now.
    pub(super) lasts_us: i64,
    /// Seq of the reply with the call; 0 for a call from code.
    pub(super) batch: i64,
}

impl SubagentCall<'_> {
    /// The same call in another trace.
    pub(super) fn in_trace(&self, trace: Option<Trace>) -> Self {
        let mut call = self.clone();
        let words = match &mut call {
            SubagentCall::Create(new) => &mut new.words,
            SubagentCall::Message { words, .. } => words,
            SubagentCall::Send(message) => &mut message.words,
            SubagentCall::Wait(_) | SubagentCall::Close(_) => return call,
        };
        words.trace = trace.map(|trace| trace.to_string());
        call
    }
}

/// The effects of a call that created or messaged a child.
#[derive(Default)]
pub(crate) struct Dispatch {
    /// The immediate result; `None` when the call waits for the child's answer.
    pub(super) result: Option<ToolResult>,
    /// The wait that the call opened; it parks the run.
    pub(super) opened: Option<Wait>,
    /// Other changes of the transition.
    pub(super) applied: FollowUp,
}

impl Dispatch {
    /// A call with an immediate result.
    pub(super) fn now(result: ToolResult) -> Dispatch {
        Dispatch { result: Some(result), ..Dispatch::default() }
    }
}
