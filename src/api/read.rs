//! The thread and its diagnostics.

use serde_json::Value;

use crate::api::Api;
use crate::engine::alarm;
use crate::engine::ephemeral::Alarm;
use crate::engine::records;
use crate::error::Result;
use crate::host::Sql;
use crate::json;
use crate::limits;
use crate::protocols::responses::threads as responses;
use crate::request::{Reply, ThreadRequest, agents};
use crate::store::outbox::DueEntry;
use crate::store::state::State;
use crate::store::{jobs, logs, outbox, schema, waits};

impl Api<'_> {
    /// `GET /threads/:id` (spec §27.1).
    pub(super) fn get(&self, request: &ThreadRequest) -> Result<Reply> {
        let origin = request.header(agents::ORIGIN).unwrap_or_default();
        self.read_mut(|state, sql| {
            let messages = records::visible(state, sql)?;
            let count = logs::count_with_calls(sql)?;
            let (env, env_types) = self.variables().shown_env(state, sql)?;
            let meta = &state.meta;
            let agent = self.catalog.agents.get(&meta.agent);
            let last_activity = state
                .run
                .as_ref()
                .map_or(meta.created_us, |run| run.end.as_ref().map_or(run.started_us, |end| end.at_us));
            let body = responses::Thread {
                thread: responses::ThreadFacts {
                    id: &meta.thread_id,
                    key: meta.key.as_deref(),
                    life: meta.life,
                    agent_id: &meta.agent,
                    origin_agent_id: &meta.origin_agent,
                    user_id: meta.owner.as_deref(),
                    tags: &meta.tags,
                    properties: &meta.properties,
                    env,
                    env_types,
                    parent: meta.parent.as_ref().map(|parent| parent.thread.as_str()),
                    fork: meta.fork.as_ref().map(|fork| fork.response()),
                    terminated: meta.terminated_us.map(|us| us / limits::SECOND_US),
                    created_at: meta.created_us / limits::SECOND_US,
                    executing: state.active().is_some(),
                    state: state.status(),
                },
                agent: agent.map(|agent| agents::summary(agent, origin)),
                stats: responses::ThreadStats {
                    message_count: messages,
                    log_count: count,
                    last_activity: last_activity / limits::SECOND_US,
                },
            };
            Ok(Reply::json(200, &body))
        })
    }

    /// `GET …/diagnostics`: the state that an operator needs when a thread does not work as expected.
    pub(super) async fn diagnostics(&self) -> Result<Reply> {
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
            let exports = self.telemetry().collector().is_some();
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

/// Work that the thread will do by itself, with its due times; without subagents.
fn owed(state: &mut State, sql: &dyn Sql, now: i64) -> Result<Vec<Value>> {
    let mut due: Vec<Value> = Vec::new();
    if let Some(run) = state.active().filter(|run| run.runnable()) {
        due.push(json!({ "what": "run", "at": run.resume_us.unwrap_or(now) }));
    }
    for DueEntry { subject, at_us, tries } in outbox::dues(sql)? {
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
