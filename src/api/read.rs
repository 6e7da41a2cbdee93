//! What only reads: the thread, its messages, its diagnostics.

use std::rc::Rc;

use serde_json::Value;

use crate::engine::alarm;
use crate::engine::ephemeral::Alarm;
use crate::engine::thread::Thread;
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::json;
use crate::limits;
use crate::page::Page;
use crate::request::{Query, Reply, ThreadRequest, agents};
use crate::store::messages::page::{PageRequest, Shown};
use crate::store::messages::{Row, message_seq, not_found, page as list};
use crate::store::outbox::Due;
use crate::store::state::State;
use crate::store::{jobs, logs, messages as rows, outbox, schema, waits};

impl Thread {
    /// `GET /threads/:id` (spec §27.1).
    pub(crate) fn get(&self, request: &ThreadRequest) -> Result<Reply> {
        let origin = request.header(agents::ORIGIN).unwrap_or_default();
        self.read_mut(|state, sql| {
            let messages = visible(state, sql)?;
            let count = logs::count_with_calls(sql)?;
            let (env, types) = self.shown_env(state, sql)?;
            let meta = &state.meta;
            let agent = self.catalog.agents.get(&meta.agent);
            let last_activity = state.run.as_ref().map_or(meta.created_us, |run| {
                run.end.as_ref().map_or(run.started_us, |end| end.at_us)
            });
            let body = json!({
                "thread": {
                    "id": meta.thread_id, "key": meta.key, "life": meta.life, "agent_id": meta.agent, "origin_agent_id": meta.origin_agent,
                    "user_id": meta.owner, "tags": meta.tags, "properties": meta.properties, "env": env,
                    "env_types": types, "parent": meta.parent.as_ref().map(|parent| &parent.thread),
                    "fork": meta.fork.as_ref().map(|fork| fork.to_json()),
                    "terminated": meta.terminated_us.map(|us| us / limits::SECOND_US),
                    "created_at": meta.created_us / limits::SECOND_US,
                    "executing": state.active().is_some(), "state": state.status(),
                },
                "agent": agent.map(|agent| agents::summary(agent, origin)),
                "stats": {
                    "messageCount": messages, "logCount": count, "lastActivity": last_activity / limits::SECOND_US,
                },
            });
            Ok(Reply::json(200, &body))
        })
    }

    /// `GET …/messages` (spec §14.3, §27.2): always in the order of the conversation; `order` picks the end that a
    /// page is taken from.
    pub(crate) fn list_messages(&self, query: &Query) -> Result<Reply> {
        Ok(Reply::json(200, &self.messages(query)?))
    }

    /// A page of messages.
    pub(crate) fn messages(&self, query: &Query) -> Result<Value> {
        let limit = query.number("limit", limits::PAGE_DEFAULT, limits::PAGE_MAX)?;
        let offset = query.number("offset", 0, u32::MAX)?;
        let silent = query.flag("includeSilent")?;
        let depth = query.number("depth", 0, u32::MAX)?;
        let newest_first = match query.get("order") {
            None | Some("" | "desc") => true,
            Some("asc") => false,
            Some(other) => {
                return Err(Error::field("order", format!("`order` is asc or desc, not “{other}”.")));
            }
        };
        self.read_mut(|state, sql| {
            let thread = state.meta.stem.clone();
            let cursor = |name: &str| match query.get(name) {
                None | Some("") => Ok(None),
                Some(id) => message_seq(&thread, id).map(Some).map_err(|_| {
                    Error::new(Code::BadCursor, format!("`{name}` is no message of this thread: “{id}”."))
                        .at(name)
                }),
            };
            let (before, after) =
                (cursor("before")?.unwrap_or(i64::MAX >> 11), cursor("after")?.unwrap_or(0));
            if let Some(ids) = query.get("ids") {
                return by_ids(state, sql, ids);
            }
            let wanted = PageRequest {
                shown: Shown { depth, silent },
                after,
                before,
                newest_first,
                limit: i64::from(limit) + 1,
                offset,
            };
            let mut page = Page::new(limit);
            list::page(sql, &wanted, &mut |row| page.add(|| shown(state, &row)))?;
            let total =
                if depth == 0 && !silent { visible(state, sql)? } else { list::count(sql, wanted.shown)? };
            let has_more = page.has_more();
            let mut messages = page.into_rows();
            if newest_first {
                messages.reverse();
            }
            messages
                .iter_mut()
                .try_for_each(|message| crate::engine::subagents::shown::project(state, sql, message))?;
            Ok(json!({ "messages": messages, "total": total, "hasMore": has_more }))
        })
    }

    /// `GET …/messages/:id`.
    pub(crate) fn get_message(&self, id: &str) -> Result<Reply> {
        Ok(Reply::json(200, &self.message(id)?))
    }

    /// A message as clients see it.
    pub(crate) fn message(&self, id: &str) -> Result<Value> {
        self.read(|state, sql| {
            let thread = &state.meta.stem;
            let row = rows::find(sql, message_seq(thread, id)?)?.ok_or_else(|| not_found(id))?;
            crate::engine::subagents::shown::message(state, sql, &row)
        })
    }

    /// `GET …/diagnostics`: what an operator asks first when a thread does not do what it should.
    pub(crate) async fn diagnostics(self: &Rc<Self>) -> Result<Reply> {
        let alarm_at = self.host.alarm().await?;
        let now = self.host.now_us();
        self.read_mut(|state, sql| {
            let mut due = owed(state, sql, now)?;
            let mut waiting: Vec<Value> = Vec::new();
            let mut children: Vec<Value> = Vec::new();
            for child in state.open_children(sql)? {
                children.push(child.to_diagnostics());
                waiting.extend(child.waiting());
                if let Some(at) = child.due_us {
                    due.push(json!({ "what": "subagent", "subject": child.reference, "at": at, "tries": child.checks }));
                }
            }
            let handler_running = self.ephemeral.alarm.get() == Alarm::Held;
            let exports = self.collector().is_some();
            let dropped = exports.then(|| logs::dropped_spans(sql)).transpose()?;
            let mut body = json!({
                "threadId": state.meta.thread_id, "life": state.meta.life,
                "state": state.status(),
                "phase": state.run.as_ref().map_or("idle", |run| run.phase.as_str()),
                "run": state.run.as_ref().map(crate::store::runs::Run::to_json),
                "queue": { "waiting": state.waiting(), "tools": state.waiting() - state.queued },
                "effects": {
                    "next": crate::store::effects::tally::next_due(state, sql)?, "running": self.ephemeral.effects.borrow().len(),
                },
                "waitingReceipts": waiting,
                "children": children,
                "alarm": { "at": alarm_at, "handlerRunning": handler_running, "due": alarm::due(state, sql, now)? },
                "due": due,
                "flow": { "running": self.ephemeral.flow.borrow().is_some(), "outgoingCalls": self.ephemeral.outgoing.get() },
                "listeners": self.host.listeners().any(),
                "history": {
                    "lastSeq": state.max_seq, "settled": state.settled(), "cut": state.meta.window_cut,
                    "tokensAtMost": state.meta.window_tokens, "edits": state.meta.edits,
                },
                "schema": schema::VERSION,
                "bytes": sql.size(),
                "now": now,
            });
            if let (Some(fields), Some((dropped, error))) = (body.as_object_mut(), dropped) {
                fields.insert("export".into(), json!({ "dropped": dropped, "error": error }));
            }
            Ok(Reply::json(200, &body))
        })
    }
}

/// What the thread has to do by itself, and when; subagents apart.
fn owed(state: &mut State, sql: &dyn Sql, now: i64) -> Result<Vec<Value>> {
    let mut due: Vec<Value> = Vec::new();
    if let Some(run) = state.active().filter(|run| run.runnable()) {
        due.push(json!({ "what": "run", "at": run.resume_us.unwrap_or(now) }));
    }
    for Due { subject, at_us, tries } in outbox::dues(sql)? {
        due.push(json!({ "what": "outbox", "subject": subject, "at": at_us, "tries": tries }));
    }
    if let Some(at) = crate::store::effects::tally::next_due(state, sql)? {
        due.push(json!({ "what": "effect", "at": at }));
    }
    if state.meta.waits > 0 {
        for wait in waits::open(sql)? {
            let id = wait.public_id(&state.meta.stem);
            due.push(
                json!({ "what": "wait", "subject": id, "kind": wait.kind.as_str(), "at": wait.expires_us }),
            );
        }
    }
    for job in jobs::all(state, sql)? {
        let what = job.kind.map_or("job", jobs::Kind::as_str);
        due.push(json!({ "what": what, "at": job.due_us, "tries": job.attempts, "error": job.error }));
    }
    Ok(due)
}

/// Top-level messages that are not silent; counted once while the object lives.
fn visible(state: &mut State, sql: &dyn Sql) -> Result<i64> {
    if let Some(visible) = state.visible {
        return Ok(visible);
    }
    let counted = list::count_visible(sql)?;
    state.visible = counted;
    Ok(counted.unwrap_or(0))
}

fn shown(state: &State, row: &Row) -> Result<Value> {
    Ok(row.to_json(&state.meta.stem, state.is_queued(row)))
}

/// Those of these messages that there are. An id of another thread or of a deleted message is left out, as the reference
/// does.
fn by_ids(state: &State, sql: &dyn Sql, ids: &str) -> Result<Value> {
    let ids = ids.split(',').map(str::trim).filter(|id| !id.is_empty());
    let mut seqs: Vec<i64> =
        ids.filter_map(|id| message_seq(&state.meta.stem, id).ok()).take(limits::PAGE_MAX as usize).collect();
    seqs.sort_unstable();
    seqs.dedup();
    let mut page = Page::new(limits::PAGE_MAX);
    for seq in seqs {
        if let Some(row) = rows::find(sql, seq)?
            && page.add(|| shown(state, &row))?.is_break()
        {
            break;
        }
    }
    let (total, has_more) = (page.len(), page.has_more());
    let mut messages = page.into_rows();
    messages
        .iter_mut()
        .try_for_each(|message| crate::engine::subagents::shown::project(state, sql, message))?;
    Ok(json!({ "messages": messages, "total": total, "hasMore": has_more }))
}
