//! What a call of a model or of code wants of subagents: a new one, or a message to one that there is; of workers also to wait
//! for some, or to end one.

use serde_json::{Map, Value};

use crate::engine::subagents::applied::Applied;
use crate::engine::subagents::envelope::{ChildSpec, Content};
use crate::engine::subagents::immediate::ImmediateStart;
use crate::engine::subagents::values::EncryptedValues;
use crate::spec::budget::Share;
use crate::spec::message::ToolResult;
use crate::spec::{Agent, ParentCommunication as Communication, Receives, ToolEntry};
use crate::store::children::{Child, ChildInfo, ChildState, Envelopes};
use crate::store::messages::Row;
use crate::store::side::Side;
use crate::store::waits::Wait;
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
    /// What it is as a worker, if it is to be one.
    pub(crate) worker: Option<NewWorker>,
}

/// A worker that is to be made.
#[derive(Clone)]
pub(crate) struct NewWorker {
    /// The id that it is to have; counted unless given.
    pub(crate) alias: Option<String>,
    /// What counted ids begin with.
    pub(crate) prefix: String,
    /// How many workers the thread may have.
    pub(crate) most: u32,
    /// Whether it may lead workers of its own.
    pub(crate) can_spawn: bool,
    /// The tools that it may call, sorted, where these are a part of its agent's.
    pub(crate) tools: Option<Vec<String>>,
    /// What it is for, if that is said.
    pub(crate) description: Option<String>,
    /// What it may hold of the budget, if that is said.
    pub(crate) budget: Option<Share>,
    /// Whether it is given no message yet.
    pub(crate) idle: bool,
}

impl NewChild<'_> {
    /// What it may hold of the budget of who makes it: what the call says, else what the entry does.
    pub(crate) fn share(&self) -> Option<&Share> {
        let said = self.worker.as_ref().and_then(|worker| worker.budget.as_ref());
        said.or(self.entry.budget.as_ref())
    }

    /// Its row.
    pub(crate) fn child(&self, reference: String, side: Side, group: Option<String>, now: i64) -> Child {
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
            idle: self.worker.as_ref().is_some_and(|worker| worker.idle),
            tools: child.facts.tools.clone(),
            spawns: true,
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
    Create(Box<NewChild<'a>>),
    Message {
        reference: String,
        words: Content,
    },
    Send(WorkerMessage),
    Wait(WorkersWait),
    /// Ends the worker with this id.
    Close(String),
}

/// A message to a worker.
#[derive(Clone)]
pub(crate) struct WorkerMessage {
    pub(crate) id: String,
    pub(crate) words: Content,
    /// Whether the call waits for what comes of it.
    pub(crate) waits: bool,
    /// Whether it may be written to while it works: it reads that with its next step.
    pub(crate) queues: bool,
}

/// That a call waits for workers.
#[derive(Clone)]
pub(crate) struct WorkersWait {
    pub(crate) ids: Vec<String>,
    /// Whether one of them is enough.
    pub(crate) any: bool,
    /// How long; 0: it takes what there is.
    pub(crate) lasts_us: i64,
    /// Seq of the reply with the call; 0 of a call that code makes.
    pub(crate) batch: i64,
}

impl SubagentCall<'_> {
    /// The same, in this trace.
    pub(crate) fn in_trace(&self, trace: Option<Trace>) -> Self {
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

/// A child that a call has made or written to.
#[derive(Default)]
pub(crate) struct Dispatched {
    /// What the call gives at once; none when the child's answer is waited for.
    pub(crate) result: Option<ToolResult>,
    /// The wait that it has opened, with which the run is parked.
    pub(crate) opened: Option<Wait>,
    /// What else has followed.
    pub(crate) applied: Applied,
}

impl Dispatched {
    /// One whose result is there.
    pub(crate) fn now(result: ToolResult) -> Dispatched {
        Dispatched { result: Some(result), ..Dispatched::default() }
    }
}
