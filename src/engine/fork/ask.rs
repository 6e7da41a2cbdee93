//! `POST …/fork` in the source thread: up to which message, and to which thread.

use serde_json::Value;

use crate::definitions::message::Role;
use crate::engine::cycle::answer_end::end_of_answer;
use crate::engine::expiry::expires;
use crate::engine::features::History;
use crate::engine::fork::begin::NewCopy;
use crate::env::PlainVariable;
use crate::error::{Code, Error, Result};
use crate::host::{Sibling, Sql};
use crate::request::between::{error_of, to_thread};
use crate::request::directory_call::{DirectoryCall, answer, name_of};
use crate::request::fields::Body;
use crate::request::{COPY, Reply, ThreadRequest, ThreadRoute, thread_id};
use crate::store::fork::{Fork, ForkState};
use crate::store::messages as rows;
use crate::store::messages::{message_id, message_seq, not_found, page};
use crate::store::state::State;
use crate::store::thread_budget::ThreadBudget;

impl History<'_> {
    /// `POST …/fork`: copies this thread.
    pub(crate) async fn fork(&self, request: &ThreadRequest) -> Result<Reply> {
        let mut body = Body::parse(&request.body)?.known(FIELDS)?;
        let (upto, key) = (CopyEnd::of(&mut body)?, body.string("key")?);
        let (tags, properties) = (body.strings("tags")?, body.object("properties")?);
        let expires_us = expires(&mut body, self.host.now_us())?;
        let mut birth = self.read_mut(|state, sql| self.birth(state, sql, &upto))?;
        birth.expires_us = expires_us;
        birth.tags = tags.unwrap_or(birth.tags);
        birth.properties = properties.unwrap_or(birth.properties);
        let id = match &key {
            Some(key) => {
                thread_id::check_key(key)?;
                thread_id::of_key(birth.owner.as_deref(), key)
            }
            None => match request.header(COPY) {
                Some(id) => id.to_owned(),
                None => thread_id::from_random(self.host.random()),
            },
        };
        birth.key = key;
        let id = match &request.idempotency_key {
            Some(key) => self.claim(key, &birth, &request.body, id).await?,
            None => id,
        };
        if id == birth.fork.thread {
            let text = "This is the thread of this key; its copy needs another one.";
            return Err(Error::new(Code::KeyConflict, text).at("key"));
        }
        let values = self.read_mut(|state, sql| self.copied_env(state, sql))?;
        birth.env = self.descendants().seal_for(&id, &values)?;
        let body = serde_json::to_string(&birth).map_err(Error::internal)?;
        self.subagents().ask(ThreadRequest { body, ..to_thread(&id, ThreadRoute::CreateFork) }).await
    }

    /// The initial content of the copy.
    fn birth(&self, state: &State, sql: &dyn Sql, upto: &CopyEnd) -> Result<NewCopy> {
        let meta = &state.meta;
        if meta.parent.is_some() {
            let text = "A subagent is a part of the thread that leads it, and is not copied alone.";
            return Err(Error::new(Code::Conflict, text).hint("Copy the thread that leads the family."));
        }
        let named = matches!(upto, CopyEnd::Message(_));
        let upto = last_copied(state, sql, upto)?;
        let limits = meta.budget.as_ref().map(|budget| ThreadBudget {
            given: budget.given.clone(),
            raised: budget.raised,
            ..ThreadBudget::default()
        });
        Ok(NewCopy {
            fork: Fork {
                thread: meta.thread_id.clone(),
                life: meta.life,
                upto,
                message: (upto > 0).then(|| message_id(&meta.stem, upto)),
                state: ForkState::Copying,
            },
            named,
            agent: meta.agent.clone(),
            owner: meta.owner.clone(),
            key: None,
            tags: meta.tags.clone(),
            properties: meta.properties.clone(),
            budget: limits.map(Box::new),
            env: Default::default(),
            expires_us: None,
        })
    }

    fn copied_env(&self, state: &mut State, sql: &dyn Sql) -> Result<Vec<PlainVariable>> {
        if state.meta.env == 0 {
            return Ok(Vec::new());
        }
        let mut values = Vec::new();
        for (name, held) in self.variables().own_set(state, sql)?.iter() {
            values.push(PlainVariable {
                name: name.to_owned(),
                kind: held.kind,
                text: held.read()?.to_owned(),
            });
        }
        Ok(values)
    }

    /// The id for an Idempotency-Key: repeated requests make one copy.
    async fn claim(&self, key: &str, birth: &NewCopy, body: &str, id: String) -> Result<String> {
        let bound = format!("fork {} {}\n{body}", birth.fork.thread, birth.fork.life);
        let call = DirectoryCall::claim(key, &bound, id).to_json()?;
        let directory = Sibling::Directory(name_of(birth.owner.as_deref()));
        let reply = answer(&self.host.sibling(directory, call).await?)?;
        let text = reply.body.as_ref().map_or("", |body| body.get());
        if reply.status != 200 {
            return Err(error_of(reply.status, reply.retry_after, text.as_bytes()));
        }
        let body: Value = crate::json::from_str(text).map_err(Error::internal)?;
        let claimed = body.get("threadId").and_then(Value::as_str).map(str::to_owned);
        claimed.ok_or_else(|| Error::internal("the directory answered a claim without an id"))
    }
}

/// Fields of a request for a copy.
const FIELDS: &[&str] = &["up_to", "answer_to", "key", "tags", "properties", "expires_in"];

/// The end of the copied part.
enum CopyEnd {
    /// All complete messages.
    Here,
    /// This message.
    Message(String),
    /// The end of the answer to this one.
    Answer(String),
}

impl CopyEnd {
    fn of(body: &mut Body) -> Result<CopyEnd> {
        match (body.string("up_to")?, body.string("answer_to")?) {
            (Some(_), Some(_)) => {
                let text = "`up_to` and `answer_to` both say up to where the thread is copied.";
                Err(Error::field("answer_to", text).hint("Send one of the two."))
            }
            (Some(message), None) => Ok(CopyEnd::Message(message)),
            (None, Some(message)) => Ok(CopyEnd::Answer(message)),
            (None, None) => Ok(CopyEnd::Here),
        }
    }
}

/// Seq of the last copied message: the end of the step of a given message, or the last message of a complete
/// step.
fn last_copied(state: &State, sql: &dyn Sql, upto: &CopyEnd) -> Result<i64> {
    let open = state.active().filter(|run| run.block_open()).map(|run| run.block);
    // Waiting messages are for this thread only.
    let most = open.into_iter().chain(state.undrained).min().map_or(i64::MAX >> 11, |first| first - 1);
    let refused = |text: &str| {
        let hint = "Wait for the end of the run, or name an earlier message.";
        let field = if matches!(upto, CopyEnd::Answer(_)) { "answer_to" } else { "up_to" };
        Err(Error::new(Code::Conflict, text).at(field).hint(hint))
    };
    let (seq, row) = match upto {
        CopyEnd::Here => return Ok(page::last_before(sql, most + 1)?.unwrap_or(0)),
        CopyEnd::Message(id) => {
            let seq = message_seq(&state.meta.stem, id)?;
            (seq, rows::find(sql, seq)?.ok_or_else(|| not_found(id))?)
        }
        CopyEnd::Answer(id) => {
            let ends = end_of_answer(state, sql, id).map_err(|error| error.at("answer_to"))?;
            let Some(seq) = ends else { return refused("The answer to this message is still being made.") };
            (seq, rows::find(sql, seq)?.ok_or_else(|| not_found(id))?)
        }
    };
    if seq > most {
        return refused("This message waits, or belongs to the step that is running.");
    }
    if row.depth > 0 {
        return Err(Error::field("up_to", "This message is a part of another one; name that one."));
    }
    match end_of_step(sql, seq)? {
        Some(end) if end <= most => Ok(end),
        _ => refused("A call of this message has no result."),
    }
}

/// Seq of the last message of a message's step; `None` if a call has no result.
fn end_of_step(sql: &dyn Sql, seq: i64) -> Result<Option<i64>> {
    let Some(reply) = page::last_but_results(sql, seq)? else { return Ok(Some(seq)) };
    let mut open: Vec<&str> =
        reply.calls.iter().filter(|call| !call.is_dropped()).map(|call| call.id.as_str()).collect();
    let mut end = seq;
    if open.is_empty() {
        return Ok(Some(end));
    }
    page::results_after(sql, reply.seq, &mut |seq, role, call| {
        if role != Role::Tool {
            return false;
        }
        open.retain(|id| Some(*id) != call);
        end = end.max(seq);
        !open.is_empty()
    })?;
    Ok(open.is_empty().then_some(end))
}
