//! Changes to stored data: the thread's tags and properties, messages, deletion of messages (spec §14.4).

use crate::engine::cut::{CutResult, may_be_cut};
use crate::engine::ephemeral::MessageOutcome;
use crate::engine::features::History;
use crate::engine::outbox::Targets;
use crate::env::Redacted;
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::protocols::responses::messages::MessageChanged;
use crate::protocols::responses::threads::ThreadChanged;
use crate::protocols::responses::{Object, Success};
use crate::request::fields::Body;
use crate::request::{Reply, ThreadRequest};
use crate::sdk::messages::MessageUpdate;
use crate::sdk::scope::HookMode;
use crate::store::changes::MessageChange;
use crate::store::idempotency::Key;
use crate::store::messages as rows;
use crate::store::messages::{Inbound, Row, SharedRow, message_seq, not_found};
use crate::store::meta::Meta;
use crate::store::state::State;
use crate::trace::Trace;

impl From<&str> for MessageUpdate {
    fn from(content: &str) -> MessageUpdate {
        MessageUpdate { content: Some(content.to_owned()), ..MessageUpdate::default() }
    }
}

impl History<'_> {
    /// `PATCH /threads/:id`.
    pub(crate) async fn patch(&self, body: &str) -> Result<Reply> {
        let mut body = Body::parse(body)?.known(&[
            "tags",
            "properties",
            "agent_id",
            "env_patch",
            "env_type_patch",
            "env_delete",
        ])?;
        let tags = body.strings("tags")?;
        let properties = body.object("properties")?;
        let env = self.variables().env_change(&mut body)?;
        let agent = body.string("agent_id")?;
        if tags.is_none() && properties.is_none() && env.is_empty() && agent.is_none() {
            return Err(Error::missing("tags").hint(
                "Give `tags`, `properties`, `agent_id`, `env_patch`, `env_type_patch` or `env_delete`.",
            ));
        }
        if let Some(agent) = &agent {
            self.read(|state, _| self.active_agent().check_agent(state, agent))?;
            self.variables().require_of(agent, &env).await?;
        }
        let now = self.host.now_us();
        let takeover = self.transition(|state, sql| {
            let takeover = match &agent {
                Some(agent) => self.active_agent().change_agent(state, sql, agent, now)?,
                None => None,
            };
            if !env.is_empty() {
                state.ensure_not_terminated()?;
                self.variables().store_env(state, sql, &env)?;
            }
            if let Some(tags) = tags {
                state.meta.tags = tags;
            }
            if let Some(properties) = properties {
                state.meta.properties = properties;
            }
            state.meta.version += 1;
            state.meta.update(sql)?;
            self.outbox().post_row(state, sql, now)?;
            Ok(takeover)
        })?;
        self.active_agent().announce_takeover(takeover)?;
        self.outbox().deliver_now(Targets::All).await;
        self.read_mut(|state, sql| {
            let (env, env_types) = self.variables().shown_env(state, sql)?;
            Ok(Reply::json(200, &changed(&state.meta, env, env_types)))
        })
    }

    /// `PATCH …/messages/:id`: changes the text or other fields.
    pub(crate) async fn patch_message(&self, request: &ThreadRequest, id: &str) -> Result<Reply> {
        let then = match (request.query.flag("truncate")?, request.query.flag("run")?) {
            (false, false) => HistoryAction::Nothing,
            (true, false) => HistoryAction::Cut,
            (true, true) => HistoryAction::AnswerAgain,
            (false, true) => {
                let text =
                    "`run` answers the changed message again. The answer replaces all messages after it.";
                return Err(Error::field("run", text).hint("Send `truncate=true` with it."));
            }
        };
        let update = MessageUpdate::of(Body::parse(&request.body)?)?;
        // A change that starts no run is idempotent, so it needs no key.
        let key = match then {
            HistoryAction::AnswerAgain => Key::of(request, &format!("messages/{id}?run "))?,
            HistoryAction::Nothing | HistoryAction::Cut => None,
        };
        let known = key.as_ref().map(|key| self.read(|_, sql| key.replayed(sql, self.host.now_us())));
        if let Some(run) = known.transpose()?.flatten() {
            let run = Some(format!("r_{run}"));
            return Ok(Reply::json(202, &MessageChanged { success: true, deleted: Some(None), run }));
        }
        let next = ChangeRequest { then, key, trace: request.trace() };
        let cut = self.change_message(id, Redacted::of_person(update), HookMode::Yes, &next).await?;
        let run = cut.as_ref().and_then(|cut| cut.run).map(|run| format!("r_{run}"));
        let deleted = cut.map(|cut| Some(cut.messages as u64));
        let status = if run.is_some() { 202 } else { 200 };
        Ok(Reply::json(status, &MessageChanged { success: true, deleted, run }))
    }

    /// Changes a message, as the hooks of such a change leave it.
    pub(super) async fn update_message(
        &self,
        id: &str,
        update: Redacted<MessageUpdate>,
        hooked: HookMode,
    ) -> Result<()> {
        let next = ChangeRequest { then: HistoryAction::Nothing, key: None, trace: None };
        self.change_message(id, update, hooked, &next).await.map(drop)
    }

    /// Changes a message; then cuts out the messages behind it and answers it again, if requested.
    async fn change_message(
        &self,
        id: &str,
        update: Redacted<MessageUpdate>,
        hooked: HookMode,
        next: &ChangeRequest,
    ) -> Result<Option<CutResult>> {
        let update = update.inner();
        update.check()?;
        self.read(|state, sql| may_change(state, sql, id, next.then).map(drop))?;
        let definitions = match hooked {
            HookMode::Yes | HookMode::InStep => self.definitions()?,
            HookMode::ByHook => None,
        };
        let update = match &definitions {
            Some(definitions) => self.hooks().before_update(definitions, id, update, hooked).await?,
            None => update,
        };
        let now = self.host.now_us();
        let (row, recount, cut) = self.transition(|state, sql| {
            let old = may_change(state, sql, id, next.then)?;
            let (silent, said) = (old.silent, old.content.clone());
            let row = update.applied(old)?;
            row.update(sql)?;
            if row.content != said {
                self.summarizer().unsettle_summary(state, sql, row.seq)?;
            }
            state.record_edit(sql)?;
            let recount = row.silent != silent;
            if recount || row.content != said {
                state.changed.messages.push((row.seq, MessageChange::Edited));
            }
            let cut = self.cut_then(state, sql, &row, next, now)?;
            Ok((SharedRow::new(row), recount, cut))
        })?;
        if let Some(cut) = &cut {
            self.announce_cut(cut)?;
        } else if recount {
            // Recompute all counts.
            self.state.borrow_mut().take();
        }
        self.broadcast_message(&row)?;
        if let Some(definitions) = &definitions {
            self.hooks().after_update(definitions, &row, hooked).await?;
        }
        Ok(cut)
    }

    fn cut_then(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        row: &Row,
        next: &ChangeRequest,
        now: i64,
    ) -> Result<Option<CutResult>> {
        if next.then == HistoryAction::Nothing {
            return Ok(None);
        }
        let cut = self.cut_after(state, sql, row.seq)?;
        if next.then == HistoryAction::Cut {
            return Ok(Some(cut));
        }
        let run = self.start_answer_again(state, sql, row, next.trace.as_ref(), now)?;
        if let Some(key) = &next.key {
            key.insert(sql, run, now)?;
        }
        Ok(Some(CutResult { run: Some(run), ..cut }))
    }

    /// `DELETE …/messages/:id`.
    pub(crate) fn delete_message(&self, id: &str) -> Result<Reply> {
        self.remove_message(id)?;
        Ok(Reply::json(200, &Success::OK))
    }

    /// Deletes a message; of a reply also the results of its calls. A queued message leaves the queue.
    pub(super) fn remove_message(&self, id: &str) -> Result<()> {
        let seq = self.transition(|state, sql| {
            let row = editable(state, sql, id)?;
            if !row.calls.is_empty() {
                // Delete the files of its results.
                for result in row.results_with_files(sql)? {
                    crate::engine::attachments::store::remove(state, sql, &result.attachments)?;
                }
            }
            row.delete(sql)?;
            self.summarizer().unsettle_summary(state, sql, row.seq)?;
            crate::engine::attachments::store::remove(state, sql, &row.attachments)?;
            state.meta.seq_floor = state.meta.seq_floor.max(state.max_seq);
            state.record_edit(sql)?;
            state.changed.messages.push((row.seq, MessageChange::Deleted));
            Ok(row.seq)
        })?;
        // Recompute all counts.
        self.state.borrow_mut().take();
        self.send_held(Some(seq))?;
        self.settle(|waiter| (waiter.run.is_none() && waiter.seq == seq).then_some(MessageOutcome::Stopped));
        Ok(())
    }
}

/// The operation after the change of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HistoryAction {
    Nothing,
    /// Cut out the messages behind it.
    Cut,
    /// Cut, and start a run that answers it.
    AnswerAgain,
}

/// The operation after the change, with the key and trace of its request.
struct ChangeRequest {
    then: HistoryAction,
    key: Option<Key>,
    trace: Option<Trace>,
}

/// The thread after a change.
fn changed(meta: &Meta, env: Object, env_types: Object) -> ThreadChanged<'_> {
    ThreadChanged {
        id: &meta.thread_id,
        agent_id: &meta.agent,
        user_id: meta.owner.as_deref(),
        tags: &meta.tags,
        properties: &meta.properties,
        env,
        env_types,
        created_at: meta.created_us / 1_000_000,
    }
}

/// The message, if it may be changed now and the operation may follow.
fn may_change(state: &State, sql: &dyn Sql, id: &str, then: HistoryAction) -> Result<Row> {
    if then == HistoryAction::Nothing {
        return editable(state, sql, id);
    }
    may_be_cut(state)?;
    let row = editable(state, sql, id)?;
    match (row.inbound, then) {
        (Inbound::Triggers, _) | (Inbound::Stored, HistoryAction::Cut) => Ok(row),
        _ => Err(Error::new(Code::Conflict, "Only a message that was sent is changed with what follows it.")
            .hint("POST …/messages/:id/regenerate writes a reply again.")),
    }
}

/// The message, if it may be changed now.
fn editable(state: &State, sql: &dyn Sql, id: &str) -> Result<Row> {
    let seq = message_seq(&state.meta.stem, id)?;
    let row = rows::find(sql, seq)?.ok_or_else(|| not_found(id))?;
    let open = state.active().filter(|run| run.block_open());
    let queued = || state.queued_tools.iter().any(|tool| tool.seq == seq || tool.seq + 1 == seq);
    if open.is_some_and(|run| seq >= run.block && seq < run.beyond_block())
        || (state.active().is_some() && queued())
    {
        return Err(Error::new(Code::Conflict, "This message belongs to the step that is running.")
            .hint("Try again when the step is done, or stop the run."));
    }
    Ok(row)
}
