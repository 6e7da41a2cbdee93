//! The outcome of a run, in one format for waiting clients and for later reads (docs/runs.md).

use serde::Serialize;
use serde_json::{Map, Value};

use crate::engine::ephemeral::MessageOutcome;
use crate::error::Result;
use crate::host::Sql;
use crate::json;
use crate::protocols::responses::runs::{Artefact, OutcomeKind, PauseKind, RunError, RunOutcome, RunStatus};
use crate::store::children::Child;
use crate::store::messages as rows;
use crate::store::messages::{Row, SharedRow};
use crate::store::runs::Run;
use crate::store::runs::end::{End, Outcome};
use crate::store::runs::session_result::SessionResult;
use crate::store::runs::usage::Usage;
use crate::store::state::State;
use crate::store::waits;

/// The response for a waiting client.
pub(in crate::engine) fn for_client(
    state: &mut State,
    sql: &dyn Sql,
    outcome: MessageOutcome,
    now: i64,
) -> Result<MessageResponse> {
    let response = match outcome {
        MessageOutcome::Stopped | MessageOutcome::Parked(None) => {
            return Ok(MessageResponse::Held(held(state)));
        }
        MessageOutcome::Parked(Some(run)) => of_run(state, sql, &run, None, now)?,
        MessageOutcome::Ended(run, answer) => of_run(state, sql, &run, answer, now)?,
    };
    Ok(MessageResponse::Run(Box::new(response)))
}

/// The response for a waiting client.
#[derive(Serialize)]
#[serde(untagged)]
pub(in crate::engine) enum MessageResponse {
    Run(Box<RunOutcome>),
    /// No run has taken the message in.
    Held(Value),
}

impl MessageResponse {
    /// Sets the token to decide the only open question.
    pub(in crate::engine) fn set_token(&mut self, token: String) {
        match self {
            MessageResponse::Run(outcome) => outcome.token = Some(token),
            MessageResponse::Held(Value::Object(fields)) => _ = fields.insert("token".into(), token.into()),
            MessageResponse::Held(_) => {}
        }
    }
}

/// The outcome of a run. `answer`: the message for people, if it is known.
pub(crate) fn of_run(
    state: &mut State,
    sql: &dyn Sql,
    run: &Run,
    answer: Option<SharedRow>,
    now: i64,
) -> Result<RunOutcome> {
    let thread = state.meta.stem.clone();
    let reply = match answer.as_ref().filter(|row| row.is_reply() && row.seq == run.block) {
        Some(reply) => Some(reply.clone()),
        None => reply_of(sql, run)?,
    };
    let known = answer.filter(|row| row.is_reply() || row.is_status());
    let told = match &run.end {
        Some(end) => failure_of(sql, run, end, known.as_ref())?.or(known).or_else(|| reply.clone()),
        None => None,
    };
    let message = told.map(|row| row.to_json(&thread, false));
    let waits = if run.phase.is_parked() { open_waits(state, sql)? } else { Vec::new() };
    let usage = Usage::of(state, sql, run, now)?;
    let parked = run.phase.is_parked();
    let children = || waits.iter().filter(|wait| wait.get("kind") == Some(&"subagent".into()));
    Ok(RunOutcome {
        run: Some(run.public_id()),
        status: status(run),
        message,
        outcome: outcome(run),
        reason: Some(reason(run, &waits)),
        artefact: artefact(run, reply.as_deref(), &thread),
        token: None,
        error: run.end.as_ref().and_then(error),
        diagnostics: run.diagnostics.response(),
        usage: Some(usage),
        result: run.result.as_ref().map(SessionResult::response),
        pause_kind: parked.then(|| pause_kind(kinds(&waits))),
        waiting_for: parked.then(|| children().map(without_kind).collect()),
        waits,
        started_at: None,
        ended_at: None,
        trace: None,
        truncated: None,
    })
}

/// The state of a run.
pub(crate) fn status(run: &Run) -> RunStatus {
    match &run.end {
        Some(end) if end.reason.outcome() == Outcome::Completed => RunStatus::Ok,
        Some(_) => RunStatus::Error,
        None if run.phase.is_parked() => RunStatus::Paused,
        None => RunStatus::Running,
    }
}

/// The outcome; `None` while it runs.
pub(crate) fn outcome(run: &Run) -> Option<OutcomeKind> {
    match run.end.as_ref().map(|end| end.reason.outcome()) {
        Some(Outcome::Completed) => Some(OutcomeKind::Completed),
        Some(Outcome::Failed) => Some(OutcomeKind::Failed),
        Some(Outcome::Stopped) => Some(OutcomeKind::Stopped),
        None => run.phase.is_parked().then_some(OutcomeKind::Parked),
    }
}

/// The code and text of a run's failure or stop.
pub(crate) fn error(end: &End) -> Option<RunError> {
    if end.reason.outcome() == Outcome::Completed {
        return None;
    }
    let stopped = || format!("The run was stopped ({}).", end.reason.as_str());
    let text = end.message.clone().unwrap_or_else(stopped);
    Some(RunError { code: end.reason.as_str(), message: text })
}

/// The open waits of a parked run, each with its `kind`.
fn open_waits(state: &mut State, sql: &dyn Sql) -> Result<Vec<Value>> {
    let mut open = match state.meta.waits {
        0 => Vec::new(),
        _ => waits::open(sql)?.iter().map(|wait| json!(wait.shown(state))).collect(),
    };
    let children = state.open_children(sql)?.iter().filter_map(Child::waited_for);
    open.extend(children.map(|mut wait| {
        if let Some(fields) = wait.as_object_mut() {
            fields.insert("kind".into(), "subagent".into());
        }
        wait
    }));
    Ok(open)
}

/// The kinds of waits in their public form.
fn kinds(waits: &[Value]) -> impl Iterator<Item = &str> + Clone {
    waits.iter().filter_map(|wait| wait.get("kind").and_then(Value::as_str))
}

/// The party that can resume a run with waits of these kinds.
pub(crate) fn pause_kind<'a>(mut kinds: impl Iterator<Item = &'a str> + Clone) -> PauseKind {
    let human = ["approval", "question", "client_tool", "budget", "elicitation", "sign_in"];
    match () {
        () if kinds.clone().any(|kind| human.contains(&kind)) => PauseKind::Human,
        () if kinds.clone().next().is_none() || kinds.any(|kind| kind != "retry") => PauseKind::External,
        () => PauseKind::System,
    }
}

/// The reason why no run takes in a waiting message.
pub(in crate::engine) fn held_error(state: &State) -> RunError {
    let end = state.run.as_ref().and_then(|run| run.end.as_ref());
    let stopped = end.filter(|end| end.reason.outcome() == Outcome::Stopped);
    let code = stopped.map_or("stopped_by_user", |end| end.reason.as_str());
    RunError { code, message: "The thread was stopped before a run took the message in.".to_owned() }
}

/// The outcome for a queued message of a stopped thread.
fn held(state: &State) -> Value {
    json!({
        "run": null, "status": "error", "message": null, "outcome": "stopped",
        "artefact": { "message": null, "files": [], "result": null }, "token": null, "waits": [],
        "error": held_error(state),
        "diagnostics": [], "usage": null,
    })
}

fn reason(run: &Run, waits: &[Value]) -> Option<String> {
    if let Some(end) = &run.end {
        return Some(end.reason.as_str().to_owned());
    }
    if !run.phase.is_parked() {
        return None;
    }
    let kind = waits.first().and_then(|wait| wait.get("kind")).and_then(Value::as_str);
    Some(format!("waiting_for_{}", kind.unwrap_or("subagent")))
}

/// The last reply of a run.
pub(crate) fn reply_of(sql: &dyn Sql, run: &Run) -> Result<Option<SharedRow>> {
    if run.step == 0 {
        return Ok(None);
    }
    Ok(rows::find(sql, run.block)?.filter(Row::is_reply).map(SharedRow::new))
}

/// The stored message with the reason of a failure, unless it is known already.
fn failure_of(sql: &dyn Sql, run: &Run, end: &End, known: Option<&SharedRow>) -> Result<Option<SharedRow>> {
    if end.reason.outcome() != Outcome::Failed || known.is_some_and(|row| row.is_status()) {
        return Ok(None);
    }
    Ok(rows::failure_at(sql, run.block, end.at_us)?.map(SharedRow::new))
}

/// The products of a run: its last reply, its files and its result.
fn artefact(run: &Run, reply: Option<&Row>, thread: &str) -> Artefact {
    let message = reply.map(|row| row.to_json(thread, false));
    let shown = message.as_ref().and_then(|message| message.get("attachments")).and_then(Value::as_array);
    let files = match &run.result {
        Some(result) => json!(result.attachments),
        None => shown.into_iter().flatten().filter_map(|file| file.get("path").cloned()).collect(),
    };
    Artefact { message, files, result: run.result.as_ref().map(SessionResult::response) }
}

fn without_kind(wait: &Value) -> Value {
    let fields = wait.as_object().cloned().unwrap_or_default();
    Value::Object(fields.into_iter().filter(|(name, _)| name != "kind").collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_a_persons_as_soon_as_one_wait_is() {
        for (kinds, expected) in [
            (&["subagent"][..], PauseKind::External),
            (&["subagent", "approval"], PauseKind::Human),
            (&["retry"], PauseKind::System),
            (&["retry", "children"], PauseKind::External),
            (&[], PauseKind::External),
        ] {
            assert_eq!(pause_kind(kinds.iter().copied()), expected, "{kinds:?}");
        }
    }
}
