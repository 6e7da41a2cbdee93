//! Changes to what is stored: the thread's tags and properties, messages, deletion of messages (spec §14.4).

use std::rc::Rc;

use serde_json::json;

use crate::engine::ephemeral::Verdict;
use crate::engine::outbox::Targets;
use crate::engine::thread::Thread;
use crate::env::Shown;
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::request::Reply;
use crate::request::fields::Body;
use crate::sdk::messages::MessageUpdate;
use crate::sdk::scope::Hooked;
use crate::store::changed::MessageChange;
use crate::store::messages as rows;
use crate::store::messages::{Row, Shared, message_seq, not_found};
use crate::store::state::State;

impl From<&str> for MessageUpdate {
    fn from(content: &str) -> MessageUpdate {
        MessageUpdate { content: Some(content.to_owned()), ..MessageUpdate::default() }
    }
}

impl Thread {
    /// `PATCH /threads/:id`.
    pub(crate) async fn patch(self: &Rc<Self>, body: &str) -> Result<Reply> {
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
        let env = self.env_change(&mut body)?;
        let agent = body.string("agent_id")?;
        if tags.is_none() && properties.is_none() && env.is_empty() && agent.is_none() {
            return Err(Error::missing("tags").hint(
                "Give `tags`, `properties`, `agent_id`, `env_patch`, `env_type_patch` or `env_delete`.",
            ));
        }
        if let Some(agent) = &agent {
            self.read(|state, _| self.may_be_agent(state, agent))?;
            self.require_of(agent, &env).await?;
        }
        let now = self.host.now_us();
        let handed = self.transition(|state, sql| {
            let handed = match &agent {
                Some(agent) => self.change_agent(state, sql, agent, now)?,
                None => None,
            };
            if !env.is_empty() {
                state.must_live()?;
                self.store_env(state, sql, &env)?;
            }
            if let Some(tags) = tags {
                state.meta.tags = tags;
            }
            if let Some(properties) = properties {
                state.meta.properties = properties;
            }
            state.meta.version += 1;
            state.meta.update(sql)?;
            self.post_row(state, sql, now)?;
            Ok(handed)
        })?;
        self.announce_handed(handed)?;
        self.deliver_now(Targets::All).await;
        self.read_mut(|state, sql| {
            let (env, types) = self.shown_env(state, sql)?;
            let meta = &state.meta;
            let body = json!({
                "id": meta.thread_id, "agent_id": meta.agent, "user_id": meta.owner, "tags": meta.tags,
                "properties": meta.properties, "env": env, "env_types": types, "created_at": meta.created_us / 1_000_000,
            });
            Ok(Reply::json(200, &body))
        })
    }

    /// `PATCH …/messages/:id`: another text, or what else may change.
    pub(crate) async fn patch_message(self: &Rc<Self>, id: &str, body: &str) -> Result<Reply> {
        let update = MessageUpdate::of(Body::parse(body)?)?;
        self.update_message(id, Shown::of_person(update), Hooked::Yes).await?;
        Ok(Reply::json(200, &json!({ "success": true })))
    }

    /// Changes a message, as the hooks of such a change leave it.
    pub(crate) async fn update_message(
        self: &Rc<Self>,
        id: &str,
        update: Shown<MessageUpdate>,
        hooked: Hooked,
    ) -> Result<()> {
        let update = update.inner();
        update.check()?;
        self.read(|state, sql| editable(state, sql, id).map(drop))?;
        let definitions = match hooked {
            Hooked::Yes => self.definitions()?,
            Hooked::ByHook => None,
        };
        let update = match &definitions {
            Some(definitions) => self.before_update(definitions, id, update).await?,
            None => update,
        };
        let (row, recount) = self.transition(|state, sql| {
            let old = editable(state, sql, id)?;
            let (silent, said) = (old.silent, old.content.clone());
            let row = update.applied(old)?;
            row.update(sql)?;
            if row.content != said {
                self.unsettle_summary(state, sql, row.seq)?;
            }
            edited(state, sql)?;
            let recount = row.silent != silent;
            if recount || row.content != said {
                state.changed.messages.push((row.seq, MessageChange::Edited));
            }
            Ok((Shared::new(row), recount))
        })?;
        if recount {
            // Everything that was counted is counted anew.
            self.state.borrow_mut().take();
        }
        self.broadcast_message(&row)?;
        match &definitions {
            Some(definitions) => self.after_update(definitions, &row).await,
            None => Ok(()),
        }
    }

    /// `DELETE …/messages/:id`.
    pub(crate) fn delete_message(&self, id: &str) -> Result<Reply> {
        self.remove_message(id)?;
        Ok(Reply::json(200, &json!({ "success": true })))
    }

    /// Deletes a message, and with a reply the results of its calls. A queued message is taken out of the queue.
    pub(crate) fn remove_message(&self, id: &str) -> Result<()> {
        let seq = self.transition(|state, sql| {
            let row = editable(state, sql, id)?;
            if !row.calls.is_empty() {
                // The files of its results go with them.
                for result in row.results_with_files(sql)? {
                    crate::engine::attachments::store::remove(state, sql, &result.attachments)?;
                }
            }
            row.delete(sql)?;
            self.unsettle_summary(state, sql, row.seq)?;
            crate::engine::attachments::store::remove(state, sql, &row.attachments)?;
            state.meta.seq_floor = state.meta.seq_floor.max(state.max_seq);
            edited(state, sql)?;
            state.changed.messages.push((row.seq, MessageChange::Deleted));
            Ok(row.seq)
        })?;
        // Everything that was counted is counted anew.
        self.state.borrow_mut().take();
        self.tell_held(Some(seq))?;
        self.settle(|waiter| (waiter.run.is_none() && waiter.seq == seq).then_some(Verdict::Stopped));
        Ok(())
    }
}

/// A message that may be changed now.
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

/// Resuming streams start over, and the history is read anew.
pub(crate) fn edited(state: &mut State, sql: &dyn Sql) -> Result<()> {
    state.meta.edits += 1;
    state.window = None;
    state.meta.update(sql)
}
