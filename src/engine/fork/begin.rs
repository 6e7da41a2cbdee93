//! Begins a copy: one transaction creates its tables and the job that fetches their content. Until the copy
//! is complete, clients can only read and delete it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::engine::features::History;
use crate::engine::fork::copy::CopyProgress;
use crate::engine::outbox::Targets;
use crate::engine::subagents::values::EncryptedValues;
use crate::error::{Code, Error, Result};
use crate::limits;
use crate::protocols::responses::threads::Forked;
use crate::request::{Reply, ThreadRequest, thread_id};
use crate::store::effects::tally::Tally;
use crate::store::fork::{Fork, ForkState};
use crate::store::generations::PreviousThread;
use crate::store::jobs;
use crate::store::jobs::Kind;
use crate::store::meta::Meta;
use crate::store::state::State;
use crate::store::thread_budget::ThreadBudget;

/// The initial content of a copy.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct NewCopy {
    pub(super) fork: Fork,
    /// Whether the request named its last message.
    pub(super) named: bool,
    pub(super) agent: String,
    pub(super) owner: Option<String>,
    pub(super) key: Option<String>,
    pub(super) tags: Vec<String>,
    pub(super) properties: Map<String, Value>,
    /// The same limits, with nothing used.
    pub(super) budget: Option<Box<ThreadBudget>>,
    /// Values of variables, encrypted for the copy.
    pub(super) env: EncryptedValues,
    /// The time at which it deletes itself.
    #[serde(default)]
    pub(super) expires_us: Option<i64>,
}

impl History<'_> {
    /// Creates the thread, unless the same request already has.
    pub(crate) async fn create_fork(&self, request: &ThreadRequest) -> Result<Reply> {
        let birth: NewCopy = crate::json::from_str(&request.body)
            .map_err(|error| Error::new(Code::BadJson, format!("This begins no copy: {error}.")))?;
        let status = match self.ensure_loaded() {
            Ok(()) => {
                self.ensure_same_copy(&birth)?;
                200
            }
            Err(error) if error.code == Code::ThreadNotFound => {
                self.begin_fork(&request.thread_id, birth)?;
                201
            }
            Err(error) => return Err(error),
        };
        self.outbox().deliver_now(Targets::All).await;
        self.read(|state, _| {
            let meta = &state.meta;
            let body = Forked {
                thread_id: &meta.thread_id,
                agent_id: &meta.agent,
                created: status == 201,
                fork: meta.fork.as_ref().map(|fork| fork.response()),
                key: meta.key.as_deref(),
            };
            Ok(Reply::json(status, &body))
        })
    }

    /// Refuses an existing thread that is not this copy, or ends at another message than the requested one.
    fn ensure_same_copy(&self, birth: &NewCopy) -> Result<()> {
        self.read(|state, _| {
            let wanted = &birth.fork;
            let same = state.meta.fork.as_ref().is_some_and(|own| {
                let of_it = own.thread == wanted.thread && own.life == wanted.life;
                of_it && (own.upto == wanted.upto || !birth.named)
            });
            if same {
                return Ok(());
            }
            let text = "There is a thread of this key already, and it is no such copy.";
            Err(Error::new(Code::KeyConflict, text)
                .at("key")
                .hint("Take another key, or delete that thread."))
        })
    }

    fn begin_fork(&self, id: &str, birth: NewCopy) -> Result<()> {
        let now = self.host.now_us();
        // First, because a thread whose values cannot be decrypted must not be created.
        let env = self.descendants().open_sealed(id, birth.env)?;
        let mut meta = Meta {
            owner: birth.owner,
            key: birth.key,
            tags: birth.tags,
            properties: birth.properties,
            budget: birth.budget,
            expires_us: birth.expires_us,
            activates: self.subagents().activations(&birth.agent),
            snapshot: self.snapshot_hash(&birth.agent, None),
            fork: Some(Box::new(birth.fork)),
            ..Meta::new(id, &birth.agent, now)
        };
        if thread_id::is_of_key(id) {
            PreviousThread::read(self.host.sql())?.precede(&mut meta);
        }
        // Hooks are informed when the copy is complete.
        let mut state = State::created(meta);
        state.effects.set(Tally::of_none());
        self.ephemeral.alarm.is_none();
        self.transaction(|sql| {
            self.create_tables(&state, sql, now)?;
            self.variables().store_own_env(&mut state, sql, &env)?;
            jobs::add(&mut state, sql, Kind::Fork, "", now, &CopyProgress::default().column()?)?;
            self.arm_at(&state, sql, now, now)
        })?;
        *self.state.borrow_mut() = Some(Box::new(state));
        self.ephemeral.notify_alarm();
        Ok(())
    }

    /// Waits for a limited time until a copy is complete.
    ///
    /// # Errors
    /// `overloaded` while it is in progress, `conflict` if it has failed.
    pub(crate) async fn copied_first(&self) -> Result<()> {
        let until = self.host.now_us() + limits::FORK_WAIT_US;
        loop {
            match self.ensure_copied() {
                Err(error) if error.code == Code::Overloaded && self.host.now_us() < until => {}
                copied => return copied,
            }
            self.host.sleep_until(self.host.now_us() + limits::FORK_LOOK_US).await;
        }
    }

    /// Refuses a thread whose copy is not complete, or has failed.
    pub(crate) fn ensure_copied(&self) -> Result<()> {
        self.read(|state, _| {
            let Some(fork) = &state.meta.fork else { return Ok(()) };
            match &fork.state {
                ForkState::Copied => Ok(()),
                ForkState::Copying if state.meta.terminated_us.is_some() => state.ensure_not_terminated(),
                ForkState::Copying => {
                    let text = format!("This thread is being copied from {}.", fork.thread);
                    let hint = "Send this again; GET /api/threads/:id has its `fork.state`.";
                    Err(Error::new(Code::Overloaded, text).hint(hint).retry_after(1))
                }
                ForkState::Failed(why) => {
                    let text = format!("This thread was to be a copy of {}: {why}", fork.thread);
                    Err(Error::new(Code::Conflict, text).hint("Delete it, and fork the thread again."))
                }
            }
        })
    }
}
