//! What a thread and its child tell each other: envelopes, written to the outbox in the transaction of what they report,
//! delivered at least once and in order, and received once. Nothing depends on either of the two being awake.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::engine::features::Subagents;
use crate::engine::outbox::INLINE_US;
use crate::engine::subagents::values::EncryptedValues;
use crate::error::{Error, Result};
use crate::host::Sql;
use crate::limits;
use crate::request::ThreadRoute;
use crate::request::between::{first_life, is_first_life, to_thread};
use crate::spec::ParentCommunication as Communication;
use crate::spec::budget::Caps;
use crate::store::children::Child;
use crate::store::grants::{Books, Granted, Need};
use crate::store::outbox::{Post, TO_THREAD};
use crate::store::parent::{is_yes, yes};
use crate::store::runs::ledger::Amounts;
use crate::store::state::State;
use crate::text::first_bytes;

/// One of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Envelope {
    /// The thread that writes.
    pub(crate) from: String,
    /// Its number, which grows by one for each pair and way; 0 for a question, which is answered and not received.
    pub(crate) n: i64,
    pub(crate) what: EnvelopeBody,
    /// Which thread in its place the top of the family is.
    #[serde(default = "first_life", skip_serializing_if = "is_first_life")]
    pub(crate) life: i64,
}

/// What it says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EnvelopeBody {
    /// To a child that is to exist.
    Create(Box<ChildSpec>),
    /// To a child that was held: the parent's hooks know of it, and it may begin.
    Begin,
    /// A message to the child.
    Message(Content),
    /// Values of variables have changed.
    SetEnv(EncryptedValues),
    /// The run ends; the next message goes on.
    Stop,
    /// No more work.
    Terminate,
    /// How the child is (asked by the alarm of a parent that waits): the envelope whose answer is waited for.
    Check(i64),
    /// A run of the child has ended.
    Report(Report),
    /// The child says how it is.
    Status(String),
    /// Somebody is asked something in the child or below it, or is not any more.
    Asks(AsksNews),
    /// Code in the child says something.
    Notify(String),
    /// The child was terminated.
    Terminated,
    /// What a child has used of what it was lent, where no report says so.
    Books(Books),
    /// What a child has used apart from its runs, and is not of what it was lent.
    Spent(Amounts),
    /// A child needs more than it was lent.
    TopUp { wanted: Need, books: Books },
    /// What is answered to that.
    Grant(Granted),
}

impl EnvelopeBody {
    /// What it lends.
    pub(crate) fn grant(&self) -> Option<&Caps> {
        match self {
            EnvelopeBody::Create(birth) => birth.words.grant.as_ref(),
            EnvelopeBody::Message(words) => words.grant.as_ref(),
            _ => None,
        }
    }
}

/// What a child begins with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ChildSpec {
    pub(crate) agent: String,
    pub(crate) owner: Option<String>,
    pub(crate) depth: u32,
    pub(crate) blocking: bool,
    pub(crate) resumable: bool,
    #[serde(default)]
    pub(crate) communication: Communication,
    /// The side that hears the parent, `a` or `b`.
    pub(crate) hears: String,
    #[serde(default)]
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(crate) arguments: Map<String, Value>,
    /// Values of variables.
    #[serde(default, skip_serializing_if = "EncryptedValues::is_empty")]
    pub(crate) env: EncryptedValues,
    pub(crate) words: Content,
    /// Whether it waits for [`EnvelopeBody::Begin`] before its first run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) held: bool,
    /// Whether it is given no message yet, and has nothing to do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) idle: bool,
    /// The tools that it may call, where these are a part of its agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<Vec<String>>,
    /// Whether it may lead workers of its own.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub(crate) spawns: bool,
}

impl Envelope {
    /// Whether the child that it makes is held.
    pub(crate) fn holds(&self) -> bool {
        matches!(&self.what, EnvelopeBody::Create(birth) if birth.held)
    }
}

/// A message and the paths of its files, which are the writer's.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Content {
    pub(crate) text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) files: Vec<String>,
    /// The trace that what it causes is part of ([`crate::trace::Trace`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<String>,
    /// What the child is lent with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) grant: Option<Caps>,
}

/// That a wait has opened or closed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct AsksNews {
    /// How many of the child's own are open by now; none of one in a thread below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) open: Option<i64>,
    /// What clients are told of it.
    pub(crate) told: WaitFrame,
}

/// A frame about a wait.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WaitFrame {
    Opened(Value),
    Closed(Value),
}

/// What a run of a child came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    /// The run.
    pub(crate) run: i64,
    /// The newest envelope that it took in.
    pub(crate) answers: i64,
    pub(crate) ending: Ending,
    pub(crate) words: Content,
    /// What the child has used of what it was lent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) books: Option<Books>,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ending {
    Result,
    Failure,
    /// Somebody stopped it.
    Stopped,
}

impl Ending {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Ending::Result => "result",
            Ending::Failure => "failure",
            Ending::Stopped => "stopped",
        }
    }
}

/// A text as an envelope holds it; the end of one that is too long is cut off, with a note.
pub(crate) fn bounded(text: &str) -> String {
    let mut most = limits::REPORT_BYTES;
    if text.len() <= most && serde_json::to_string(text).is_ok_and(|json| json.len() <= limits::LETTER_BYTES)
    {
        return text.to_owned();
    }
    loop {
        let cut = first_bytes(text, most);
        let told = format!("{cut}\n\n[Cut off here: {} bytes in all.]", text.len());
        if serde_json::to_string(&told).is_ok_and(|json| json.len() <= limits::LETTER_BYTES) || most < 1024 {
            return told;
        }
        most /= 2;
    }
}

impl Subagents<'_> {
    /// The request that carries an envelope: the call of an object, up to the envelope's JSON.
    pub(crate) fn envelope_head(&self, to: &str) -> Result<String> {
        let request = self.aimed(to_thread(to, ThreadRoute::Envelope))?;
        request.to_json()
    }

    /// Writes an envelope to a child; its row must be written afterwards.
    pub(crate) fn tell_child(
        &self,
        state: &State,
        sql: &dyn Sql,
        child: &mut Child,
        what: EnvelopeBody,
    ) -> Result<()> {
        child.envelopes.sent += 1;
        self.post_envelope(state, sql, &child.reference, child.envelopes.sent, what)
    }

    /// Writes an envelope to the parent; without one nothing happens.
    pub(crate) fn tell_parent(&self, state: &mut State, sql: &dyn Sql, what: EnvelopeBody) -> Result<()> {
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
            Envelope { from: state.meta.thread_id.clone(), n, what, life: state.meta.family_life() };
        let body = serde_json::to_string(&envelope).map_err(Error::internal)?;
        let now = self.host.now_us();
        let due = now + INLINE_US;
        let (subject, target) = (format!("{TO_THREAD}{to}:{n:012}"), format!("{TO_THREAD}{to}"));
        let post = Post { subject: &subject, target: &target, body: &body, version: n, due_us: due };
        post.follow(sql)?;
        self.ephemeral.posted.set(true);
        self.arm_at(state, sql, due, now)
    }
}

/// What a child is told that is to begin without further words.
pub(crate) const BEGIN: &str = "Begin.";
