//! The thread and its diagnostics.

use crate::api::Api;
use crate::engine::alarm;
use crate::engine::ephemeral::Alarm;
use crate::engine::records;
use crate::error::Result;
use crate::host::Sql;
use crate::json_text::JsonText;
use crate::limits;
use crate::protocols::responses::diagnostics::{
    DiagnosedAlarm, DiagnosedEffects, DiagnosedExport, DiagnosedFlow, DiagnosedHistory, DiagnosedQueue,
    DueWork, ThreadDiagnostics,
};
use crate::protocols::responses::threads as responses;
use crate::request::{Reply, ThreadRequest, agents};
use crate::store::effects::tally;
use crate::store::outbox::DueEntry;
use crate::store::runs::Run;
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
            let mut waiting_receipts = Vec::new();
            let mut children = Vec::new();
            for child in state.open_children(sql)? {
                children.push(JsonText::new(&child.diagnosed())?);
                waiting_receipts.extend(child.waiting().map(|call| JsonText::new(&call)).transpose()?);
                if child.due_us.is_some() {
                    due.push(JsonText::new(&DueWork {
                        subject: Some(Some(&child.reference)),
                        tries: Some(Some(child.checks)),
                        ..work("subagent", child.due_us)
                    })?);
                }
            }
            let body = ThreadDiagnostics {
                thread_id: &state.meta.thread_id,
                life: state.meta.life,
                state: state.status(),
                phase: state.run.as_ref().map_or("idle", |run| run.phase.as_str()),
                run: state.run.as_ref().map(Run::diagnosed),
                queue: DiagnosedQueue { waiting: state.waiting(), tools: state.waiting() - state.queued },
                effects: DiagnosedEffects {
                    next: tally::next_due(state, sql)?,
                    running: self.ephemeral.effects.borrow().len() as u64,
                },
                waiting_receipts,
                children,
                alarm: DiagnosedAlarm {
                    at: alarm_at,
                    handler_running: self.ephemeral.alarm.get() == Alarm::Held,
                    due: alarm::due(state, sql, now)?,
                },
                due,
                flow: DiagnosedFlow {
                    running: self.ephemeral.flow.borrow().is_some(),
                    outgoing_calls: self.ephemeral.outgoing.get(),
                },
                listeners: self.host.listeners().any(),
                history: DiagnosedHistory {
                    last_seq: state.max_seq,
                    settled: state.settled(),
                    cut: state.meta.window_cut,
                    tokens_at_most: state.meta.window_tokens.map(|tokens| tokens as u64),
                    edits: state.meta.edits,
                },
                schema: schema::VERSION,
                bytes: sql.size(),
                now,
                export: self.diagnosed_export(sql)?,
            };
            Ok(Reply::json(200, &body))
        })
    }

    /// The export of spans, if the thread has a collector.
    fn diagnosed_export(&self, sql: &dyn Sql) -> Result<Option<DiagnosedExport>> {
        if self.telemetry().collector().is_none() {
            return Ok(None);
        }
        let (dropped, error) = logs::dropped_spans(sql)?;
        Ok(Some(DiagnosedExport { dropped, error }))
    }
}

/// Work that the thread will do by itself, with its due times; without subagents.
fn owed(state: &mut State, sql: &dyn Sql, now: i64) -> Result<Vec<JsonText<DueWork<'static>>>> {
    let mut due = Vec::new();
    if let Some(run) = state.active().filter(|run| run.runnable()) {
        due.push(JsonText::new(&work("run", Some(run.resume_us.unwrap_or(now))))?);
    }
    for DueEntry { subject, at_us, tries } in outbox::dues(sql)? {
        let subject = Some(subject.as_deref());
        due.push(JsonText::new(&DueWork { subject, tries: Some(tries), ..work("outbox", at_us) })?);
    }
    if let Some(at) = tally::next_due(state, sql)? {
        due.push(JsonText::new(&work("effect", Some(at)))?);
    }
    if state.meta.waits > 0 {
        for wait in waits::open(sql)? {
            let id = wait.public_id(&state.meta.stem);
            due.push(JsonText::new(&DueWork {
                subject: Some(Some(&id)),
                kind: Some(wait.kind.as_str()),
                ..work("wait", Some(wait.expires_us))
            })?);
        }
    }
    for job in jobs::all(state, sql)? {
        due.push(JsonText::new(&DueWork {
            tries: Some(Some(i64::from(job.attempts))),
            error: Some(job.error.as_deref()),
            ..work(job.kind.map_or("job", jobs::Kind::as_str), Some(job.due_us))
        })?);
    }
    Ok(due)
}

/// Work without a subject.
fn work(what: &'static str, at: Option<i64>) -> DueWork<'static> {
    DueWork { what, at, ..DueWork::default() }
}
