//! A new thread: its tables and its row in one transaction.

use crate::api::Api;
use crate::api::{history, import};
use crate::engine::budget::budget_input::given_budget;
use crate::engine::expiry::expires;
use crate::engine::outbox::Targets;
use crate::error::{Code, Error, Result};
use crate::protocols::responses::threads::ThreadCreated;
use crate::request::fields::Body;
use crate::request::{Reply, ThreadRequest, thread_id};
use crate::store::effects::tally::Tally;
use crate::store::generations::PreviousThread;
use crate::store::meta::Meta;
use crate::store::state::State;
use crate::store::thread_budget::ThreadBudget;

/// The fields of `POST /threads`.
const NEW_THREAD: &[&str] = &[
    "agent_id",
    "user_id",
    "key",
    "tags",
    "properties",
    "env",
    "env_types",
    "tenvs",
    "budget",
    "history",
    "copied_from",
    "expires_in",
];

/// Whether this request created the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Creation {
    Now,
    Before,
}

impl Api<'_> {
    /// Creates the thread, unless it exists: a client may repeat a creation. Sends the row to the directory
    /// before the response if possible, so that a list shows the thread at once.
    pub(super) async fn create(&self, request: &ThreadRequest) -> Result<Reply> {
        let answer = self.create_or_find(request).await;
        let is_of_key = thread_id::is_of_key(&request.thread_id);
        answer.map_err(|error| match error.code {
            // It was deleted meanwhile. Another request finds the key free.
            Code::ThreadNotFound if is_of_key => {
                Error::new(Code::Overloaded, "The thread of this key was just deleted.").retry_after(1)
            }
            _ => error,
        })
    }

    async fn create_or_find(&self, request: &ThreadRequest) -> Result<Reply> {
        let made = match self.ensure_loaded() {
            Ok(()) => Creation::Before,
            Err(error) if error.code == Code::ThreadNotFound => self.create_new(request).await?,
            Err(error) => return Err(error),
        };
        // Only the creating client knows a random id. A key can be guessed.
        if made == Creation::Before && thread_id::is_of_key(&request.thread_id) {
            self.ensure_same_thread(request)?;
        }
        self.hooks().start_created_hook()?;
        self.outbox().deliver_now(Targets::All).await;
        self.read(|state, _| {
            let key = state.meta.key.as_deref();
            let created = key.map(|_| made == Creation::Now);
            let body = ThreadCreated {
                thread_id: &request.thread_id,
                agent_id: &state.meta.agent,
                message: match created {
                    Some(false) => "There is a thread of this key.",
                    Some(true) | None => "Thread created",
                },
                key,
                created,
            };
            Ok(Reply::json(if created == Some(true) { 201 } else { 200 }, &body))
        })
    }

    /// Refuses a request with the key of a thread that has, and was created with, another agent.
    fn ensure_same_thread(&self, request: &ThreadRequest) -> Result<()> {
        let mut body = new_thread(request)?;
        let named = body.string("agent_id")?.ok_or_else(|| Error::missing("agent_id"))?;
        let wanted = self.catalog.shown_agent(&named).map_or(named.as_str(), |agent| agent.name.as_str());
        self.read(|state, _| {
            let Meta { agent, origin_agent, .. } = &state.meta;
            if wanted == agent || wanted == origin_agent {
                return Ok(());
            }
            let text = format!("The thread of this key was created with the agent “{origin_agent}”.");
            let hint = "Name that agent, take another key, or delete the thread: its key is free then.";
            Err(Error::new(Code::KeyConflict, text).at("agent_id").hint(hint))
        })
    }

    async fn create_new(&self, request: &ThreadRequest) -> Result<Creation> {
        let mut body = new_thread(request)?;
        let key = body.string("key")?;
        let name = body.string("agent_id")?.ok_or_else(|| Error::missing("agent_id"))?;
        let shown = self.catalog.shown_agent(&name).ok_or_else(|| self.active_agent().no_agent(&name))?;
        let agent = shown.name.clone();
        let env = self.variables().new_env(&request.thread_id, &mut body)?;
        let given = given_budget(&mut body)?;
        self.budgets().check_prices(&agent, given.as_ref())?;
        let budget = given.map(|given| ThreadBudget { given: Some(given), ..ThreadBudget::default() });
        let owner = body.string("user_id")?;
        let now = self.host.now_us();
        let copied = body.string("copied_from")?;
        let copied = copied.map(|from| import::copied(&mut body, from, now)).transpose()?;
        let earlier = history::earlier(&mut body)?;
        if let Some(key) = &key
            && thread_id::of_key(owner.as_deref(), key) != request.thread_id
        {
            return Err(Error::internal("a thread is to be created in a place that is not its key's"));
        }
        let mut meta = Meta {
            fork: copied.as_ref().map(|copied| Box::new(copied.fork.clone())),
            expires_us: expires(&mut body, now)?,
            budget: budget.map(Box::new),
            key,
            owner,
            tags: body.strings("tags")?.unwrap_or_default(),
            properties: body.object("properties")?.unwrap_or_default(),
            activates: self.subagents().activations(&agent),
            snapshot: self.snapshot_hash(&agent, None),
            ..Meta::new(&request.thread_id, &agent, now)
        };
        self.variables().require(&meta.agent, meta.owner.as_deref(), &env).await?;
        // The same creation may have completed during the requests to the directories.
        if self.ensure_loaded().is_ok() {
            return Ok(Creation::Before);
        }
        if thread_id::is_of_key(&request.thread_id) {
            PreviousThread::read(self.host.sql())?.precede(&mut meta);
        }
        let mut state = State::created(meta);
        state.creation_handled = self.hooks().has_no_created_hook(&state.meta.agent);
        // Of an object that is new all this is known.
        state.effects.set(Tally::of_none());
        self.ephemeral.alarm.is_none();
        self.transaction(|sql| {
            self.create_tables(&state, sql, now)?;
            let newest = history::store(&mut state, sql, earlier, now)?;
            self.outbox().post_earlier(&state, sql, newest.as_ref(), now)?;
            if let Some(copied) = &copied {
                self.store_copied(&mut state, sql, copied, now)?;
            }
            if let Some(at) = state.meta.expires_us {
                self.arm_at(&state, sql, at, now)?;
            }
            self.variables().store_new_env(&mut state, sql, &env)
        })?;
        *self.state.borrow_mut() = Some(Box::new(state));
        Ok(Creation::Now)
    }
}

/// The fields of a request for a new thread.
fn new_thread(request: &ThreadRequest) -> Result<Body> {
    let body = Body::parse(&request.body)?.known(NEW_THREAD);
    body.map_err(|error| match error.field.as_deref() {
        // Fields of the reference runtime, which ignores them too.
        Some("initial_messages") => error.hint("`history` is what was said before."),
        Some("data") => error.hint("`properties` is the object that is kept for you."),
        _ => error,
    })
}
