//! Messages between a thread and its children. The sender writes an envelope to the outbox in the transaction
//! that it reports on. Delivery is in order and at least once, and the receiver drops duplicates. Neither
//! side has to be awake.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::definitions::ParentCommunication as Communication;
use crate::definitions::budget::Caps;
use crate::engine::features::Subagents;
use crate::engine::outbox::INLINE_US;
use crate::engine::subagents::values::EncryptedValues;
use crate::error::{Error, Result};
use crate::host::Sql;
use crate::limits;
use crate::request::ThreadRoute;
use crate::request::between::{first_life, is_first_life, to_thread};
use crate::store::children::Child;
use crate::store::grants::{BudgetRequest, GrantReply, UsageReport};
use crate::store::outbox::{NewEntry, TO_THREAD};
use crate::store::parent::{is_yes, yes};
use crate::store::runs::ledger::Amounts;
use crate::store::state::State;
use crate::text::first_bytes;

/// A message between a thread and its child.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Envelope {
    /// The sending thread.
    pub(super) from: String,
    /// The sequence number for this pair and direction. 0 marks a question, which is answered at once and not
    /// stored.
    pub(super) n: i64,
    pub(super) what: EnvelopeBody,
    /// The generation of the thread at the top of the family.
    #[serde(default = "first_life", skip_serializing_if = "is_first_life")]
    pub(super) life: i64,
}

/// The content of an envelope.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EnvelopeBody {
    /// Creates the child that receives it.
    Create(Box<ChildSpec>),
    /// Starts a child that was held. The parent's hooks have been notified of it.
    Begin,
    /// A message to the child.
    Message(Content),
    /// Changes values of variables.
    SetEnv(EncryptedValues),
    /// Stops the run. The next message resumes the child.
    Stop,
    /// Terminates the child.
    Terminate,
    /// A parent's poll of a child that it waits for: whether the answer to this envelope will still come.
    Check(i64),
    /// A run of the child has ended.
    Report(Report),
    /// A custom status of the child.
    Status(String),
    /// A wait of the child or of a thread below it has opened or closed.
    Asks(WaitNews),
    /// A notification from code in the child.
    Notify(String),
    /// The child was terminated.
    Terminated,
    /// The usage of a child's grant, sent when no report contains it.
    Books(UsageReport),
    /// Usage of a child outside its runs, which is not part of its grant.
    Spent(Amounts),
    /// A child's request for more budget.
    TopUp { wanted: BudgetRequest, books: UsageReport },
    /// The reply to that request.
    Grant(GrantReply),
}

impl EnvelopeBody {
    /// The grant that the envelope carries.
    pub(super) fn grant(&self) -> Option<&Caps> {
        match self {
            EnvelopeBody::Create(birth) => birth.words.grant.as_ref(),
            EnvelopeBody::Message(words) => words.grant.as_ref(),
            _ => None,
        }
    }
}

/// The specification of a new child.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ChildSpec {
    pub(super) agent: String,
    pub(super) owner: Option<String>,
    pub(super) depth: u32,
    pub(super) blocking: bool,
    pub(super) resumable: bool,
    #[serde(default)]
    pub(super) communication: Communication,
    /// The side that receives the parent's messages, `a` or `b`.
    pub(super) hears: String,
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) arguments: Map<String, Value>,
    /// Values of variables.
    #[serde(default, skip_serializing_if = "EncryptedValues::is_empty")]
    pub(super) env: EncryptedValues,
    pub(super) words: Content,
    /// Whether the child waits for [`EnvelopeBody::Begin`] before its first run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) held: bool,
    /// Whether the child starts without a message, and therefore idle.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) idle: bool,
    /// The tools that the child may call; `None` allows all of its agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tools: Option<Vec<String>>,
    /// Whether the child may lead workers.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub(super) spawns: bool,
}

impl Envelope {
    /// Whether the envelope creates a held child.
    pub(super) fn holds(&self) -> bool {
        matches!(&self.what, EnvelopeBody::Create(birth) if birth.held)
    }
}

/// A message, and the paths of its files in the sender's thread.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Content {
    pub(super) text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) files: Vec<String>,
    /// The trace that continues in the receiver ([`crate::trace::Trace`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) trace: Option<String>,
    /// The budget granted with the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) grant: Option<Caps>,
}

/// The news that a wait opened or closed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WaitNews {
    /// The number of the child's own open waits. `None` when the wait belongs to a thread below the child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) open: Option<i64>,
    /// The frame for clients.
    pub(crate) told: WaitFrame,
}

/// A frame about a wait.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WaitFrame {
    Opened(Value),
    Closed(Value),
}

/// The outcome of a child's run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    /// The id of the run.
    pub(super) run: i64,
    /// The newest envelope that the run received.
    pub(super) answers: i64,
    pub(super) ending: Ending,
    pub(super) words: Content,
    /// The usage of the child's grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) books: Option<UsageReport>,
}

/// The kind of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ending {
    Result,
    Failure,
    /// A person stopped the run.
    Stopped,
}

impl Ending {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Ending::Result => "result",
            Ending::Failure => "failure",
            Ending::Stopped => "stopped",
        }
    }
}

/// Cuts a text to the size limit of an envelope, with a note about the cut.
pub(super) fn bounded(text: &str) -> String {
    let mut most = limits::REPORT_BYTES;
    if text.len() <= most
        && serde_json::to_string(text).is_ok_and(|json| json.len() <= limits::ENVELOPE_BYTES)
    {
        return text.to_owned();
    }
    loop {
        let cut = first_bytes(text, most);
        let told = format!("{cut}\n\n[Cut off here: {} bytes in all.]", text.len());
        if serde_json::to_string(&told).is_ok_and(|json| json.len() <= limits::ENVELOPE_BYTES) || most < 1024
        {
            return told;
        }
        most /= 2;
    }
}

impl Subagents<'_> {
    /// The head of the request that carries an envelope; the envelope's JSON follows it.
    pub(crate) fn envelope_head(&self, to: &str) -> Result<String> {
        let request = self.aimed(to_thread(to, ThreadRoute::Envelope))?;
        request.to_json()
    }

    /// Sends an envelope to a child. The child's row must be written afterwards.
    pub(crate) fn send_to_child(
        &self,
        state: &State,
        sql: &dyn Sql,
        child: &mut Child,
        what: EnvelopeBody,
    ) -> Result<()> {
        child.envelopes.sent += 1;
        self.post_envelope(state, sql, &child.reference, child.envelopes.sent, what)
    }

    /// Sends an envelope to the parent, if there is one.
    pub(crate) fn send_to_parent(&self, state: &mut State, sql: &dyn Sql, what: EnvelopeBody) -> Result<()> {
        let Some(parent) = state.meta.parent.as_mut() else { return Ok(()) };
        parent.envelopes.sent += 1;
        let (to, n) = (parent.thread.clone(), parent.envelopes.sent);
        state.meta.update(sql)?;
        self.post_envelope(state, sql, &to, n, what)
    }

    fn post_envelope(
        &self,
        state: &State,
        sql: &dyn Sql,
        to: &str,
        n: i64,
        what: EnvelopeBody,
    ) -> Result<()> {
        let envelope =
            Envelope { from: state.meta.thread_id.clone(), n, what, life: state.meta.family_generation() };
        let body = serde_json::to_string(&envelope).map_err(Error::internal)?;
        let now = self.host.now_us();
        let due = now + INLINE_US;
        let (subject, target) = (format!("{TO_THREAD}{to}:{n:012}"), format!("{TO_THREAD}{to}"));
        let post = NewEntry { subject: &subject, target: &target, body: &body, version: n, due_us: due };
        post.follow(sql)?;
        self.ephemeral.deliveries.posted.set(true);
        self.arm_at(state, sql, due, now)
    }
}

/// The first message of a child that starts without any other text.
pub(super) const BEGIN: &str = "Begin.";
