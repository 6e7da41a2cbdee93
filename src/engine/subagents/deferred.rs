//! Children that wait for values of variables (spec §25). A creation that lacks values returns an error
//! result, and stores a row in state [`ChildState::Pending`] with the child's specification. A user who may
//! manage the thread posts the values, which creates the child; the values are never shown again. After
//! [`limits::WAIT_US`] the row is given up.

use serde::{Deserialize, Serialize};

use crate::definitions::Agent;
use crate::engine::cycle::accept::room;
use crate::engine::env::missing::RequiredVariables;
use crate::engine::features::Subagents;
use crate::engine::subagents::envelope::{ChildSpec, Content, EnvelopeBody};
use crate::engine::subagents::follow_up::FollowUp;
use crate::engine::subagents::values::OwnValues;
use crate::env::{Change, Level};
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::limits;
use crate::protocols::responses::variables::{MissingVariables, VariablesTaken};
use crate::request::fields::Body;
use crate::request::{Reply, ThreadRequest};
use crate::store::children::{Child, ChildState};
use crate::store::idempotency::Key;
use crate::store::log_record::Event;
use crate::store::messages::Inbound;
use crate::store::state::State;

/// The stored specification of a pending child: [`Child::body`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PendingChild {
    /// Its `env` holds only the values given at the creation, without inherited ones.
    pub(super) birth: ChildSpec,
    /// Names that the child does not inherit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) withheld: Vec<String>,
    /// The maximum number of instances of its entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) most: Option<u32>,
    /// The latest requester: a message, or the code that ran in a call.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) by: String,
}

impl PendingChild {
    fn of(child: &Child) -> Result<PendingChild> {
        let body = child.body.as_deref().unwrap_or_default();
        crate::json::from_str(body)
            .map_err(|error| Error::internal(format!("the row of a child that waits is damaged: {error}")))
    }
}

impl PendingChild {
    /// Whether both requests are equal, apart from requester and trace. A request with given values equals no
    /// other, because it is encrypted.
    fn is_same(&self, other: &PendingChild) -> bool {
        let plain = |of: &PendingChild| {
            let mut of = PendingChild { by: String::new(), ..of.clone() };
            of.birth.words.trace = None;
            of.birth.env.is_empty().then(|| serde_json::to_string(&of).ok()).flatten()
        };
        plain(self).is_some_and(|text| plain(other) == Some(text))
    }
}

fn unknown(id: &str) -> Error {
    Error::new(Code::NotFound, format!("No subagent waits for variables under {id}."))
        .hint("It may have been started, or given up after 7 days.")
}

impl Subagents<'_> {
    /// `GET /threads/:id/variables/:request`.
    pub(crate) async fn get_variables(&self, id: &str) -> Result<Reply> {
        let (child, needs) = self.waiting_child(id, &OwnValues::default()).await?;
        let parent = self.read(|state, _| Ok(state.meta.thread_id.clone()))?;
        let body = MissingVariables {
            request_id: id,
            parent_thread_id: &parent,
            agent_name: &child.agent,
            registry_agent_name: &child.agent,
            name: child.facts.name.as_deref(),
            required: &needs.required,
            missing: &needs.missing,
            created_at: child.created_us / limits::SECOND_US,
            expires_at: child.due_us.map(|at| at / limits::SECOND_US),
        };
        Ok(Reply::json(200, &body))
    }

    /// `POST /threads/:id/variables/:request`: creates the child.
    pub(crate) async fn post_variables(&self, request: &ThreadRequest, id: &str) -> Result<Reply> {
        let answer = VariablesTaken { request_id: id, child_thread_id: id, status: "success" };
        let now = self.host.now_us();
        let mut body = Body::parse(&request.body)?.known(&["env", "env_types"])?;
        let env = body.take("env").ok_or_else(|| Error::missing("env"))?;
        let types = ("env_types", body.take("env_types"));
        let change = Change::parse(("env", Some(env)), types, ("", None), Level::Thread, &self.catalog)?;
        // The idempotency key covers only the names. The values leave no trace that could be guessed from.
        let names = change.set().collect::<Vec<_>>().join(" ");
        let key = Key::of(&ThreadRequest { body: names, ..request.clone() }, &format!("variables/{id} "))?;
        let replayed = |sql: &dyn Sql| match &key {
            Some(key) => Ok(key.replayed(sql, now)?.is_some()),
            None => Ok(false),
        };
        if self.read(|_, sql| replayed(sql))? {
            return Ok(Reply::json(200, &answer));
        }
        self.read(|state, _| state.ensure_not_terminated())?;
        let given = OwnValues { values: change.plain(), withheld: Vec::new() };
        let (child, needs) = self.waiting_child(id, &given).await?;
        if !needs.missing.is_empty() {
            return Err(Error::new(
                Code::MissingVariables,
                format!("“{}” still needs values for: {}.", child.agent, needs.missing.join(", ")),
            )
            .at("env"));
        }
        // Another request may have completed during the awaits above.
        let made = self.transition(|state, sql| {
            if replayed(sql)? {
                return Ok(false);
            }
            state.ensure_not_terminated()?;
            self.begin_deferred(state, sql, id, &given)?;
            key.as_ref().map_or(Ok(()), |key| key.insert(sql, state.max_seq, now))?;
            Ok(true)
        })?;
        if made {
            self.send_envelopes();
        }
        Ok(Reply::json(200, &answer))
    }

    /// A pending child, and its needs when it is given these values.
    async fn waiting_child(&self, id: &str, given: &OwnValues) -> Result<(Child, RequiredVariables)> {
        let look = || {
            self.read_mut(|state, sql| {
                let (child, deferred) = pending(state, sql, id)?;
                let agent = self.deferred_agent(&child)?;
                let given = self.deferred_values(id, deferred, given)?;
                let values = self.descendants().child_values(state, sql, agent, &given)?;
                Ok((child, self.descendants().child_needs(agent, &values)))
            })
        };
        let seen = look()?;
        if seen.1.missing.is_empty() {
            return Ok(seen);
        }
        self.variables().refresh_env().await?;
        look()
    }

    fn deferred_agent(&self, child: &Child) -> Result<&Agent> {
        self.catalog.agents.get(&child.agent).ok_or_else(|| {
            Error::new(
                Code::AgentNotFound,
                format!("The agent “{}” is not among the definitions any more.", child.agent),
            )
        })
    }

    /// The values from the creation, merged with the values given now.
    fn deferred_values(&self, id: &str, deferred: PendingChild, given: &OwnValues) -> Result<OwnValues> {
        let mut values = self.descendants().open_sealed(id, deferred.birth.env)?.plain();
        values.retain(|value| given.values.iter().all(|new| new.name != value.name));
        values.extend(given.values.iter().cloned());
        Ok(OwnValues { values, withheld: deferred.withheld })
    }

    fn begin_deferred(&self, state: &mut State, sql: &dyn Sql, id: &str, given: &OwnValues) -> Result<()> {
        let (mut child, deferred) = pending(state, sql, id)?;
        let agent = self.deferred_agent(&child)?;
        let alike = |other: &&Child| other.agent == child.agent && other.state.exists() && !other.is_worker();
        let active = state.open_children(sql)?.iter().filter(alike).count();
        if let Some(most) = deferred.most.filter(|most| active >= *most as usize) {
            return Err(Error::new(
                Code::Conflict,
                format!("{most} subagents “{}” are active, which is the limit.", child.agent),
            )
            .hint("Try again when one of them has been terminated."));
        }
        let mut birth = deferred.birth.clone();
        birth.held = self.hooks().holds_children(state);
        let given = self.deferred_values(id, deferred, given)?;
        let values = self.descendants().child_values(state, sql, agent, &given)?;
        birth.env = self.descendants().seal_for(id, &values)?;
        child.facts.own = given.values.iter().map(|value| value.name.clone()).collect();
        child.facts.deferred = true;
        child.state = ChildState::Creating;
        "running".clone_into(&mut child.status);
        (child.due_us, child.body) = (None, None);
        // If nothing is left to allocate, the child starts without a grant and requests one.
        birth.words.grant = match self.budgets().lend(state, sql, &mut child, None, false)? {
            Ok(grant) => grant,
            Err(_) => self.budgets().lend(state, sql, &mut child, None, true)?.unwrap_or_default(),
        };
        self.send_to_child(state, sql, &mut child, EnvelopeBody::Create(Box::new(birth)))?;
        Event::subagent("create", &child, state.active(), None).insert(sql, self.host.now_us())?;
        state.update_child(sql, child)
    }

    /// Gives up a child that has waited too long.
    pub(super) fn give_up(&self, reference: &str) -> Result<()> {
        let now = self.host.now_us();
        let applied = self.transition(|state, sql| {
            let mut applied = FollowUp::default();
            let waits = |child: &Child| {
                child.state == ChildState::Pending && child.due_us.is_some_and(|at| at <= now)
            };
            let Some(mut child) = state.child(sql, reference)?.filter(waits) else { return Ok(applied) };
            if room(state).is_err() {
                // The thread's queue has no room for the message. Try again later.
                child.due_us = Some(now + limits::CHECK_MAX_US);
                state.update_child(sql, child)?;
                return Ok(applied);
            }
            let days = limits::WAIT_US / limits::DAY_US;
            let text =
                format!("It was not started: nobody gave the values that it needs within {days} days.");
            self.lose_child(state, sql, &mut child, "was not started", &mut applied)?;
            "failed".clone_into(&mut child.status);
            if child.is_worker() {
                return Ok(applied);
            }
            (child.due_us, child.body) = (None, None);
            let words = Content { text, files: Vec::new(), ..Content::default() };
            self.queue_words(
                state,
                sql,
                &child,
                "failure",
                &words,
                Vec::new(),
                Inbound::Triggers,
                &mut applied,
            )?;
            state.update_child(sql, child)?;
            Ok(applied)
        })?;
        self.after_commit(applied)
    }

    /// Stores a pending child. If the model repeats an equal request in a later message, it finds the
    /// existing row. Equal calls in one message create separate children.
    pub(super) fn defer_child(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        mut child: Child,
        deferred: PendingChild,
    ) -> Result<Child> {
        let now = self.host.now_us();
        let mut found = None;
        for waiting in state.open_children(sql)?.iter().filter(|child| child.state == ChildState::Pending) {
            let known = PendingChild::of(waiting)?;
            if known.by != deferred.by && known.is_same(&deferred) {
                found = Some((waiting.clone(), PendingChild { by: deferred.by.clone(), ..known }));
                break;
            }
        }
        if let Some((mut waiting, known)) = found {
            waiting.body = Some(serde_json::to_string(&known).map_err(Error::internal)?);
            state.update_child(sql, waiting.clone())?;
            return Ok(waiting);
        }
        child.state = ChildState::Pending;
        "pending".clone_into(&mut child.status);
        child.due_us = Some(now + limits::WAIT_US);
        child.body = Some(serde_json::to_string(&deferred).map_err(Error::internal)?);
        state.insert_child(sql, child.clone())?;
        self.arm_at(state, sql, now + limits::WAIT_US, now)?;
        Ok(child)
    }
}

/// The pending child with this id.
fn pending(state: &mut State, sql: &dyn Sql, id: &str) -> Result<(Child, PendingChild)> {
    let child = state.child(sql, id)?.filter(|child| child.state == ChildState::Pending);
    let child = child.ok_or_else(|| unknown(id))?;
    let deferred = PendingChild::of(&child)?;
    Ok((child, deferred))
}
