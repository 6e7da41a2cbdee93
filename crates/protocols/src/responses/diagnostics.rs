//! The diagnostics of a thread (docs/runs.md).

use bobbin_definitions::json_text::JsonText;
use serde::Serialize;

use super::Micros;
use super::threads::ThreadState;

/// The newest run of a thread.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiagnosedRun<'a> {
    /// The id of the run.
    pub id: String,
    /// The part of a step that the run is in, `parked` while it waits.
    pub phase: &'static str,
    /// The side of the agent that acts: `a` or `b`.
    pub side: &'static str,
    /// The number of turns in the session.
    pub session_turns: u32,
    /// The number of steps so far.
    pub step: u32,
    /// The number of steps since a message last reset the counters.
    pub steps: u32,
    /// The number of the attempt at the current model, from 1.
    pub attempt: u32,
    /// The number of the current request for this reply.
    pub stream: u32,
    /// How often the current step was continued after a crash.
    pub recoveries: u32,
    /// The time at which the run continues by itself, in microseconds since 1970. `null` unless it pauses.
    pub resume_at: Option<Micros>,
    /// The time of the start, in microseconds since 1970.
    pub started_at: Micros,
    /// The time of the end, in microseconds since 1970. `null` until then.
    pub ended_at: Option<Micros>,
    /// The outcome. `null` until the run has ended.
    pub outcome: Option<&'static str>,
    /// Why the run ended. `null` until then.
    pub reason: Option<&'static str>,
    /// The text of the failure. `null` if there is none.
    pub error: Option<&'a str>,
}

/// The messages and calls that no run has taken in.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiagnosedQueue {
    /// The number of messages and calls.
    pub waiting: u32,
    /// The number of calls.
    pub tools: u32,
}

/// The effects of a thread.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiagnosedEffects {
    /// The time of the next one, in microseconds since 1970. `null` if none is scheduled.
    pub next: Option<Micros>,
    /// The number of running ones.
    pub running: u64,
}

/// A call that waits for a subagent.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitingReceipt<'a> {
    /// The number of the call.
    pub receipt: i64,
    /// The id of the subagent's thread.
    pub subagent: &'a str,
    /// The time at which the wait ends, in microseconds since 1970.
    pub expires_at: Micros,
    /// The time of the next check, in microseconds since 1970. `null` if none is due.
    pub check_at: Option<Micros>,
    /// The number of checks so far.
    pub checks: i64,
}

/// A subagent that is not terminated.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiagnosedChild<'a> {
    /// The id of the subagent's thread.
    pub reference: &'a str,
    /// The agent of the subagent.
    pub agent: &'a str,
    /// `pending`, `creating`, `live` or `terminated`.
    pub state: &'static str,
    /// The status for the model.
    pub status: &'a str,
    /// The number of the last message to the subagent.
    pub sent: i64,
    /// The number of the last message from the subagent.
    pub received: i64,
}

/// The alarm of a thread.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiagnosedAlarm {
    /// The time that is set, in microseconds since 1970. `null` if none is.
    pub at: Option<Micros>,
    /// Whether the handler of the alarm is running.
    pub handler_running: bool,
    /// The time at which the thread has work, in microseconds since 1970. `null` if it has none.
    pub due: Option<Micros>,
}

/// Work that a thread will do by itself.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DueWork<'a> {
    /// The work: `run`, `outbox`, `effect`, `wait`, `subagent`, or the kind of a job.
    pub what: &'static str,
    /// The subject of the work. `null` if there is none. Absent for other work than `outbox`, `wait` and
    /// `subagent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<Option<&'a str>>,
    /// For `wait`: the kind of the wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// The time, in microseconds since 1970. `null` if it is unknown.
    pub at: Option<Micros>,
    /// The number of attempts so far. `null` if it is unknown. Absent for work that is not repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tries: Option<Option<i64>>,
    /// For a job: the error of the last attempt, or `null`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Option<&'a str>>,
}

/// The process that works on a run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiagnosedFlow {
    /// Whether a run is being worked on.
    pub running: bool,
    /// The number of requests in the current event.
    pub outgoing_calls: u32,
}

/// The numbers of a thread's messages.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiagnosedHistory {
    /// The number of the last message.
    pub last_seq: i64,
    /// No message with this number or a lower one can still be added.
    pub settled: i64,
    /// Requests to models contain no messages below this number.
    pub cut: i64,
    /// The maximum of tokens of the messages in a request. `null` until a provider rejects a request as too
    /// long.
    pub tokens_at_most: Option<u64>,
    /// The number of changes to stored messages.
    pub edits: i64,
}

/// The export of spans to a collector.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiagnosedExport {
    /// The number of dropped spans.
    pub dropped: i64,
    /// Why the newest of them was dropped. `null` if none was.
    pub error: Option<String>,
}

/// The first facts for an operator (docs/runs.md).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadDiagnostics<'a> {
    /// The id of the thread.
    pub thread_id: &'a str,
    /// The number of this thread among those of its key, from 1.
    pub life: i64,
    /// The state of the thread.
    pub state: ThreadState,
    /// The phase of the newest run, `idle` if there is no run.
    pub phase: &'static str,
    /// The newest run. `null` if there is none.
    pub run: Option<DiagnosedRun<'a>>,
    /// The messages and calls that no run has taken in.
    pub queue: DiagnosedQueue,
    /// The effects.
    pub effects: DiagnosedEffects,
    /// The calls that wait for a subagent.
    pub waiting_receipts: Vec<JsonText<WaitingReceipt<'static>>>,
    /// The subagents that are not terminated.
    pub children: Vec<JsonText<DiagnosedChild<'static>>>,
    /// The alarm.
    pub alarm: DiagnosedAlarm,
    /// Work that the thread will do by itself.
    pub due: Vec<JsonText<DueWork<'static>>>,
    /// The process that works on the run.
    pub flow: DiagnosedFlow,
    /// Whether clients are connected.
    pub listeners: bool,
    /// The numbers of the messages.
    pub history: DiagnosedHistory,
    /// The version of the tables.
    pub schema: i64,
    /// Bytes of the database.
    pub bytes: i64,
    /// The time of the response, in microseconds since 1970.
    pub now: Micros,
    /// With a collector of spans: the spans that were dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub export: Option<DiagnosedExport>,
}
