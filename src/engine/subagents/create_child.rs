//! Creates the thread of a child: its tables, first messages and first run. Idempotent: a repeated envelope
//! finds the thread.

use crate::definitions::message::Role;
use crate::engine::cycle::accept::room;
use crate::engine::features::Subagents;
use crate::engine::subagents::envelope::{BEGIN, ChildSpec, Content, Envelope};
use crate::engine::subagents::follow_up::FollowUp;
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::json;
use crate::sdk::scope::EntryMode;
use crate::store::attachment::AttachmentRef;
use crate::store::children::Envelopes;
use crate::store::effects::tally::Tally;
use crate::store::messages::{Inbound, Row};
use crate::store::meta::Meta;
use crate::store::parent::Parent;
use crate::store::state::State;
use crate::trace::Trace;

/// The data that a child stores about its parent.
fn parent_of(envelope: &Envelope, birth: &ChildSpec) -> Parent {
    Parent {
        thread: envelope.from.clone(),
        life: envelope.life,
        depth: birth.depth,
        blocking: birth.blocking,
        resumable: birth.resumable,
        communication: birth.communication,
        hears: birth.hears.clone(),
        arguments: birth.arguments.clone(),
        envelopes: Envelopes::default(),
        asked: None,
        trace: None,
        tools: birth.tools.clone(),
        spawns: birth.spawns,
        grant: None,
    }
}

impl Subagents<'_> {
    /// Creates this thread as a child and receives the envelope, in one transaction. Returns `None` if the
    /// thread exists as a child of the same parent.
    pub(super) fn create_as_child(
        &self,
        id: &str,
        envelope: &Envelope,
        birth: &ChildSpec,
    ) -> Result<Option<FollowUp>> {
        match self.ensure_loaded() {
            Ok(()) => {
                return self.read(|state, _| match &state.meta.parent {
                    Some(parent) if parent.thread == envelope.from => Ok(None),
                    _ => Err(Error::new(Code::Conflict, "This thread is not a child of that one.")),
                });
            }
            Err(error) if error.code == Code::ThreadNotFound => {}
            Err(error) => return Err(error),
        }
        if !self.catalog.agents.contains_key(&birth.agent) {
            let message = format!("The agent “{}” is not among the definitions any more.", birth.agent);
            return Err(Error::new(Code::AgentNotFound, message));
        }
        // Before the first write: do not create a thread whose values cannot be decrypted.
        self.descendants()
            .open_sealed(id, birth.env.clone())
            .map_err(|error| Error::new(Code::Conflict, format!("Its values cannot be read: {error}")))?;
        let now = self.host.now_us();
        let parent = parent_of(envelope, birth);
        let snapshot = self.snapshot_hash(&birth.agent, Some(&parent));
        let meta = Meta {
            owner: birth.owner.clone(),
            tags: birth.name.iter().map(|name| format!("name:{name}")).collect(),
            parent: Some(parent),
            activates: self.activations(&birth.agent),
            snapshot,
            ..Meta::new(id, &birth.agent, now)
        };
        let mut state = State::created(meta);
        state.creation_handled = self.hooks().has_no_created_hook(&state.meta.agent);
        state.effects.set(Tally::of_none());
        self.ephemeral.alarm.is_none();
        // Files can only be copied into an existing thread. The envelope is then received in a later
        // transition.
        let applied = self.transaction(|sql| {
            self.create_tables(&state, sql, now)?;
            match birth.words.files.is_empty() {
                true => self.receive_from_parent(&mut state, sql, envelope, Vec::new()).map(Some),
                false => Ok(None),
            }
        })?;
        *self.state.borrow_mut() = Some(Box::new(state));
        Ok(applied)
    }

    /// Adds the parent's first input to this thread: the arguments, then the message.
    pub(super) fn begin(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        birth: &ChildSpec,
        files: Vec<AttachmentRef>,
        n: i64,
        applied: &mut FollowUp,
    ) -> Result<()> {
        let env = self.descendants().open_sealed(&state.meta.thread_id, birth.env.clone())?;
        self.variables().store_env(state, sql, &env)?;
        if !birth.arguments.is_empty() {
            let now = self.host.now_us();
            let arguments = serde_json::to_string_pretty(&birth.arguments).map_err(Error::internal)?;
            let row = Row {
                inbound: Inbound::Stored,
                silent: true,
                metadata: Some(json!({ "subagentInitialArguments": true }).to_string()),
                ..Row::new(
                    state.next_seq(),
                    Role::System,
                    format!("You were created with these arguments:\n{arguments}"),
                    now,
                )
            };
            applied.rows.push(state.insert(sql, row)?);
        }
        if birth.idle {
            return Ok(());
        }
        self.take_words(state, sql, &birth.words, files, n, applied)?;
        if birth.held { Ok(()) } else { self.start_for_parent(state, sql, applied) }
    }

    /// Adds a message of the parent and starts a run.
    pub(super) fn receive_words(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        words: &Content,
        files: Vec<AttachmentRef>,
        n: i64,
        applied: &mut FollowUp,
    ) -> Result<()> {
        self.take_words(state, sql, words, files, n, applied)?;
        self.start_for_parent(state, sql, applied)
    }

    /// Starts a run for the parent's message, unless one is active.
    pub(super) fn start_for_parent(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        applied: &mut FollowUp,
    ) -> Result<()> {
        if state.active().is_none() && state.waiting() > 0 {
            let trace = take_parent_trace(state);
            self.start_for_queue(state, sql, trace.as_ref(), self.host.now_us())?;
            applied.entry = Some(EntryMode::First);
        }
        Ok(())
    }

    /// Inserts a message of the parent: a silent row for each file, then the text.
    fn take_words(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        words: &Content,
        files: Vec<AttachmentRef>,
        n: i64,
        applied: &mut FollowUp,
    ) -> Result<()> {
        state.ensure_not_terminated()?;
        room(state)?;
        let now = self.host.now_us();
        let receiving = state.meta.parent.as_ref().map(Parent::receiving_side);
        let role = receiving.map_or(Role::User, |side| side.other().role());
        for file in files {
            let text = format!("Attached: {}", file.path);
            let row = Row {
                inbound: Inbound::Stored,
                silent: true,
                attachments: vec![file],
                ..Row::new(state.next_seq(), role, text, now)
            };
            applied.rows.push(state.insert(sql, row)?);
        }
        let text = if words.text.trim().is_empty() { BEGIN } else { words.text.as_str() };
        let metadata = json!({ "parent_thread_id": state.meta.parent.as_ref().map(|parent| &parent.thread) });
        let row = Row {
            inbound: Inbound::Triggers,
            metadata: Some(metadata.to_string()),
            ..Row::new(state.next_seq(), role, text, now)
        };
        let row = state.insert(sql, row)?;
        if let Some(parent) = state.meta.parent.as_mut() {
            parent.asked = Some((n, row.seq));
            parent.trace.clone_from(&words.trace);
        }
        applied.rows.push(row);
        // A message resumes a child that the parent stopped.
        state.meta.stopped = false;
        Ok(())
    }
}

/// Takes the trace of the parent's last message, which a new run continues. `meta` must be written
/// afterwards.
pub(crate) fn take_parent_trace(state: &mut State) -> Option<Trace> {
    let trace = state.meta.parent.as_mut()?.trace.take()?;
    Trace::parse(&trace)
}
