//! Changes to what is stored: the thread's tags and properties, messages' text, deletion of messages (spec §14.4).

use std::rc::Rc;

use serde_json::{Value, json};

use super::Thread;
use super::attachments;
use super::body::Body;
use super::hooks::Hooked;
use super::host::{Host, Param, Sql};
use super::live::Verdict;
use super::rows::{self, Row, Shared, columns, message_seq, not_found};
use super::state::State;
use crate::api::Reply;
use crate::error::{Code, Error, Result};
use crate::limits;

impl<H: Host> Thread<H> {
    /// `PATCH /threads/:id`.
    pub(super) async fn patch(self: &Rc<Self>, body: &str) -> Result<Reply> {
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
        if body.take("agent_id").is_some() {
            return Err(Error::field("agent_id", "`agent_id` cannot be changed yet.")
                .hint("`tags`, `properties` and `env_patch` can."));
        }
        if tags.is_none() && properties.is_none() && env.is_empty() {
            return Err(Error::missing("tags")
                .hint("Give `tags`, `properties`, `env_patch`, `env_type_patch` or `env_delete`."));
        }
        let now = self.host.now_us();
        self.transition(|state, sql| {
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
            self.post_row(state, sql, now)
        })?;
        self.deliver_now().await;
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

    /// `PATCH …/messages/:id`: another text.
    pub(super) async fn patch_message(self: &Rc<Self>, id: &str, body: &str) -> Result<Reply> {
        let mut body = Body::parse(body)?.known(&["content"])?;
        let content = body.string("content")?.ok_or_else(|| Error::missing("content"))?;
        self.update_message(id, content, Hooked::Yes).await?;
        Ok(Reply::json(200, &json!({ "success": true })))
    }

    /// Gives a message another text, as the hooks of such a change leave it.
    pub(super) async fn update_message(
        self: &Rc<Self>,
        id: &str,
        content: String,
        hooked: Hooked,
    ) -> Result<()> {
        if content.trim().is_empty() {
            return Err(Error::field("content", "`content` must not be empty.")
                .hint("DELETE takes the message away."));
        }
        if content.len() > limits::CONTENT_BYTES {
            return Err(Error::new(
                Code::TooLarge,
                format!("`content` has {} bytes; the limit is {}.", content.len(), limits::CONTENT_BYTES),
            ));
        }
        self.read(|state, sql| editable(state, sql, id).map(drop))?;
        let definitions = match hooked {
            Hooked::Yes => self.definitions()?,
            Hooked::ByHook => None,
        };
        let content = match &definitions {
            Some(definitions) => self.before_update(definitions, id, content).await?,
            None => content,
        };
        let row = self.transition(|state, sql| {
            let row = editable(state, sql, id)?;
            // What led to the old text goes with it.
            sql.run(
                "UPDATE messages SET content = ?, reasoning = NULL WHERE seq = ?",
                &[Param::Text(&content), Param::Int(row.seq)],
            )?;
            edited(state, sql)?;
            Ok(Shared::new(Row { content: Some(content), reasoning: None, ..row }))
        })?;
        self.broadcast_message(&row)?;
        match &definitions {
            Some(definitions) => self.after_update(definitions, &row).await,
            None => Ok(()),
        }
    }

    /// `DELETE …/messages/:id`.
    pub(super) fn delete_message(&self, id: &str) -> Result<Reply> {
        self.remove_message(id)?;
        Ok(Reply::json(200, &json!({ "success": true })))
    }

    /// Deletes a message, and with a reply the results of its calls. A queued message is taken out of the queue.
    pub(super) fn remove_message(&self, id: &str) -> Result<()> {
        let seq = self.transition(|state, sql| {
            let row = editable(state, sql, id)?;
            let calls: Value = row.calls.iter().map(|call| call.id.as_str()).collect();
            let calls = calls.to_string();
            let results = [Param::Int(row.seq), Param::Int(row.seq + limits::BLOCK), Param::Text(&calls)];
            if !row.calls.is_empty() {
                // The files of its results go with them.
                let with_files = concat!(
                    "SELECT ",
                    columns!(),
                    " FROM messages WHERE seq > ? AND seq < ? AND role = 'tool' AND attachments IS NOT NULL
                      AND tool_call_id IN (SELECT value FROM json_each(?))"
                );
                for result in rows::read(sql, with_files, &results)? {
                    attachments::remove(state, sql, &result.attachments)?;
                }
            }
            sql.run(
                "DELETE FROM messages WHERE seq = ?1 OR (seq > ?1 AND seq < ?2 AND role = 'tool'
                 AND tool_call_id IN (SELECT value FROM json_each(?3)))",
                &results,
            )?;
            attachments::remove(state, sql, &row.attachments)?;
            state.meta.seq_floor = state.meta.seq_floor.max(state.max_seq);
            edited(state, sql)?;
            Ok(row.seq)
        })?;
        // Everything that was counted is counted anew.
        self.state.borrow_mut().take();
        self.settle(|waiter| (waiter.run.is_none() && waiter.seq == seq).then_some(Verdict::Stopped));
        Ok(())
    }
}

/// A message that may be changed now.
fn editable<S: Sql>(state: &State, sql: &S, id: &str) -> Result<Row> {
    let seq = message_seq(&state.meta.thread_id, id)?;
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
pub(super) fn edited<S: Sql>(state: &mut State, sql: &S) -> Result<()> {
    state.meta.edits += 1;
    state.window = None;
    state.meta.update(sql)
}
