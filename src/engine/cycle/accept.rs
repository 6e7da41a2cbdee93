//! Accepting messages (docs/durability.md): one transaction and no hook. The run starts without an await
//! after it, so latency never depends on an alarm.

use futures::future::{Either, select};
use serde_json::{Map, Value};

use crate::access::{Action, Caller};
use crate::definitions::AgentKind;
use crate::definitions::approval::OnMessage;
use crate::definitions::message::Role;
use crate::definitions::retry::{Policy, Retry, RetryKind};
use crate::engine::attachments::store::store as store_attachments;
use crate::engine::budget::budget_input::given_budget;
use crate::engine::cut::CutResult;
use crate::engine::cycle::answer_end::ensure_newest;
use crate::engine::cycle::flow::RunOptions;
use crate::engine::cycle::outcome;
use crate::engine::ephemeral::MessageOutcome;
use crate::engine::thread::Thread;
use crate::env::Redacted;
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::json;
use crate::limits;
use crate::protocols::responses::messages::Queued;
use crate::protocols::responses::threads::ThreadState;
use crate::request::fields::{Body, bounded};
use crate::request::{FOLLOWS, REPLACES, Reply, ThreadRequest};
use crate::sdk::messages::NewAttachment;
use crate::sdk::relations::BY_CODE;
use crate::sdk::scope::{EntryMode, HookMode};
use crate::sdk::{NewMessage, WakeMode};
use crate::store::idempotency::Key;
use crate::store::messages as rows;
use crate::store::messages::queue::HookStage;
use crate::store::messages::{Inbound, Row, SharedRow, queue};
use crate::store::runs::Run;
use crate::store::state::State;
use crate::store::waits;
use crate::store::waits::{Wait, WaitKind};
use crate::trace::Trace;

/// The maximum time that a waiting request stays open while its run waits only for tasks of MCP servers.
const TASKS_US: i64 = 60 * limits::SECOND_US;

/// A message from outside the step cycle: from `POST …/messages` (spec §27.2), or from code.
pub(crate) struct Input {
    role: Role,
    wakes: WakeMode,
    by: Sender,
    content: String,
    silent: bool,
    metadata: Option<String>,
    attachments: Vec<NewAttachment>,
    hooks: Hooks,
    /// Whether the run that takes it in is to be strict.
    strict: bool,
    /// What it wants of the run that it starts.
    options: RunOptions,
    /// The message whose reply it follows. It is refused if another message was sent after that reply.
    follows: Option<String>,
    /// The message that it replaces, with all later ones.
    replaces: Option<String>,
}

/// Whether the drain is to run `before_create_message` for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hooks {
    Due,
    Done,
}

/// The sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    /// A client; its message clears a stop.
    Client,
    /// Code that works in the thread; what a person has stopped it does not start again.
    Code,
}

impl Input {
    /// A request's message. `code`: the mode that code of a related thread requests.
    fn parse(text: &str, kind: AgentKind, code: Option<&str>) -> Result<Input> {
        let mut body = Body::parse(text)?.known(&[
            "role",
            "content",
            "attachments",
            "silent",
            "metadata",
            "diagnostics",
            "retry",
            "budget",
        ])?;
        let role = match body.string("role")?.as_deref() {
            None => return Err(Error::missing("role").hint("`role` is user or system.")),
            Some("user") => Role::User,
            Some("system") => Role::System,
            Some("assistant") => Role::Assistant,
            Some(other) => {
                return Err(Error::field("role", format!("There is no role “{other}”."))
                    .hint("`role` is user or system."));
            }
        };
        let attachments = crate::sdk::attachment_input::parse(&mut body)?;
        let content = body.string("content")?.unwrap_or_default();
        let metadata = body.object("metadata")?.map(|fields| json::text(&Value::Object(fields)));
        let wakes = match (code, role) {
            (Some("inject"), _) | (None, Role::System) => WakeMode::No,
            _ => WakeMode::Yes,
        };
        may_wake(role, wakes, kind)?;
        let strict = strictness(&mut body, wakes)?;
        let options = RunOptions { retry: retry(&mut body)?, budget: given_budget(&mut body)? };
        let wanted = [("retry", options.retry.is_some()), ("budget", options.budget.is_some())];
        if let Some((field, _)) = wanted.iter().find(|(_, wants)| *wants && wakes == WakeMode::No) {
            let text = format!("`{field}` is for the run that a message starts; this one starts none.");
            return Err(Error::field(field, text).hint("Send it with a message of the role user."));
        }
        Input {
            options,
            role,
            wakes,
            by: if code.is_some() { Sender::Code } else { Sender::Client },
            content,
            silent: body.flag("silent")?,
            metadata,
            attachments,
            hooks: Hooks::Due,
            strict,
            follows: None,
            replaces: None,
        }
        .checked()
    }

    /// A message from code that works in the thread.
    pub(in crate::engine) fn of(
        message: Redacted<NewMessage>,
        wakes: WakeMode,
        kind: AgentKind,
    ) -> Result<Input> {
        let NewMessage { role, content, silent, metadata, attachments } = message.inner();
        if role == Role::Tool {
            return Err(Error::field("role", "Results of tools are the runtime's to store.")
                .hint("`role` is user, assistant or system."));
        }
        may_wake(role, wakes, kind)?;
        let metadata = (!metadata.is_empty()).then(|| Value::Object(metadata));
        if let Some(metadata) = &metadata {
            bounded("metadata", metadata)?;
        }
        let metadata = metadata.map(|metadata| metadata.to_string());
        let (by, hooks) = (Sender::Code, Hooks::Due);
        Input {
            role,
            wakes,
            by,
            content,
            silent,
            metadata,
            attachments,
            hooks,
            strict: false,
            options: RunOptions::default(),
            follows: None,
            replaces: None,
        }
        .checked()
    }

    /// The draft for hooks.
    pub(in crate::engine) fn draft(&self, now: i64) -> Row {
        Row {
            inbound: Inbound::Stored,
            silent: self.silent,
            metadata: self.metadata.clone(),
            ..Row::new(0, self.role, self.content.as_str(), now)
        }
    }

    /// Applies the hooks' changes to the draft.
    pub(in crate::engine) fn becomes(&mut self, row: Row) {
        self.content = row.content.unwrap_or_default();
        self.silent = row.silent;
        self.metadata = row.metadata;
    }

    /// No hook is to run for it before it is stored, now or later.
    pub(in crate::engine) fn hooks_are_done(&mut self) {
        self.hooks = Hooks::Done;
    }

    fn checked(self) -> Result<Input> {
        let content = &self.content;
        if content.trim().is_empty() && self.attachments.is_empty() {
            return Err(Error::missing("content"));
        }
        if self.role == Role::System && !self.attachments.is_empty() {
            return Err(Error::field("attachments", "A system message has no attachments."));
        }
        if content.len() > limits::CONTENT_BYTES {
            return Err(Error::new(
                Code::TooLarge,
                format!("`content` has {} bytes; the limit is {}.", content.len(), limits::CONTENT_BYTES),
            )
            .at("content"));
        }
        Ok(self)
    }
}

/// Whether a message makes its run strict. It cannot relax the definitions.
fn strictness(body: &mut Body, wakes: WakeMode) -> Result<bool> {
    match body.string("diagnostics")?.as_deref() {
        None => Ok(false),
        Some("strict") if wakes == WakeMode::Yes => Ok(true),
        Some("strict") => {
            Err(Error::field("diagnostics", "This message starts no run that could be strict.")
                .hint("Send `diagnostics` with a message that starts one."))
        }
        Some(other) => Err(Error::field("diagnostics", format!("`diagnostics` is strict, not “{other}”."))
            .hint("Leave it out where the definitions are to decide.")),
    }
}

/// The policies for retries in the run, in their stored form.
fn retry(body: &mut Body) -> Result<Option<String>> {
    let Some(fields) = body.object("retry")? else { return Ok(None) };
    let mut kinds = Body::of(fields).known(&RetryKind::ALL.map(RetryKind::as_str))?;
    let mut retry = Map::new();
    for kind in RetryKind::ALL.map(RetryKind::as_str) {
        let Some(policy) = kinds.take(kind) else { continue };
        let read = crate::json::from_value::<Policy>(policy.clone());
        read.map_err(|error| Error::field(&format!("retry.{kind}"), format!("`retry.{kind}`: {error}.")))?;
        retry.insert(kind.to_owned(), policy);
    }
    let retry: Retry = crate::json::from_value(Value::Object(retry)).map_err(Error::internal)?;
    if let Some((field, message)) = retry.problems().into_iter().next() {
        return Err(Error::field(&format!("retry.{field}"), format!("`retry.{field}` {message}.")));
    }
    let text = serde_json::to_string(&retry).map_err(Error::internal)?;
    Ok((retry != Retry::default()).then_some(text))
}

/// Refuses a message of side A that would start side B if side B is a person.
fn may_wake(role: Role, wakes: WakeMode, kind: AgentKind) -> Result<()> {
    if role == Role::Assistant && wakes == WakeMode::Yes && kind == AgentKind::AiHuman {
        let text = "Only an agent with two AI sides takes `assistant` messages.";
        return Err(Error::field("role", text).hint("`role` is user or system."));
    }
    Ok(())
}

/// The waits that a message has denied, and the entry of the run if it continues.
type DeniedWaits = (Vec<Wait>, Option<EntryMode>);

/// A message that was accepted, now or by an earlier request with the same key.
struct AcceptedMessage {
    row: SharedRow,
    /// The run that it started.
    started: Option<i64>,
    /// The messages that it replaced.
    cut: Option<CutResult>,
}

impl AcceptedMessage {
    /// The state of the thread in the response to the sender. A repeated request returns the same state.
    fn state(&self, state: &State) -> ThreadState {
        match (self.row.inbound, state.status()) {
            (Inbound::Triggers, ThreadState::Parked) => ThreadState::Parked,
            (Inbound::Triggers, _) => ThreadState::Running,
            (_, word) => word,
        }
    }
}

impl Thread {
    pub(crate) async fn post_message(&self, request: &ThreadRequest) -> Result<Reply> {
        let wait = request.query.flag("wait")?;
        let key = Key::of(request, "")?;
        let kind = self.read(|state, _| Ok(self.kind(state)))?;
        let code = request.header(BY_CODE);
        let mut input = Input::parse(&request.body, kind, code)?;
        input.follows = request.header(FOLLOWS).map(str::to_owned);
        input.replaces = request.header(REPLACES).map(str::to_owned);
        if input.replaces.is_some() {
            // Deleting messages requires more permission than sending one.
            self.read(|state, _| request.caller.may(&Action::Manage, Some(state.meta.thread())))?;
        }
        if code.is_some() && input.wakes == WakeMode::No {
            let id = self.hooks().inject(input, HookMode::Yes).await?;
            return Ok(Reply::json(202, &json!({ "messageId": id })));
        }
        let accepted = self.accept(input, key.as_ref(), request.trace().as_ref())?;
        if wait && accepted.row.inbound == Inbound::Triggers {
            return self.await_outcome(&accepted, &request.caller).await;
        }
        self.read(|state, _| {
            let id = accepted.row.id(&state.meta.stem);
            // A repeated request returns the same response.
            let began = |run: &&Run| Some(run.id) == accepted.started || run.turn_from == accepted.row.seq;
            let body = Queued {
                status: "queued",
                queue_id: id.clone(),
                message_id: id,
                message: accepted.row.to_json(&state.meta.stem, false),
                state: accepted.state(state),
                run: state.run.as_ref().filter(began).map(Run::public_id),
            };
            Ok(Reply::json(202, &body))
        })
    }

    /// The kind of the thread's agent; with a person if the agent no longer exists.
    pub(in crate::engine) fn kind(&self, state: &State) -> AgentKind {
        self.catalog.agents.get(&state.meta.agent).map(|agent| agent.kind).unwrap_or_default()
    }

    fn accept(&self, input: Input, key: Option<&Key>, trace: Option<&Trace>) -> Result<AcceptedMessage> {
        if let Some(row) = key.map(|key| self.replayed(key)).transpose()?.flatten() {
            return Ok(AcceptedMessage { row: SharedRow::new(row), started: None, cut: None });
        }
        for (mime, size) in input.attachments.iter().filter_map(NewAttachment::content) {
            self.files().make_index(mime, size)?;
        }
        let now = self.host.now_us();
        let (accepted, (closed, entry)) = self.transition(|state, sql| {
            state.ensure_not_terminated()?;
            input.follows.as_deref().map_or(Ok(()), |message| ensure_newest(state, sql, message))?;
            let replaced = input.replaces.as_deref();
            let cut = replaced.map(|message| self.history().cut_from(state, sql, message)).transpose()?;
            room(state)?;
            let attachments = store_attachments(state, sql, &input.attachments, || self.host.random(), now)?;
            let row = Row {
                attachments,
                inbound: if input.wakes == WakeMode::Yes { Inbound::Triggers } else { Inbound::Stored },
                silent: input.silent,
                metadata: input.metadata.clone(),
                ..Row::new(state.next_seq(), input.role, input.content.as_str(), now)
            };
            let row = state.insert(sql, row)?;
            if input.hooks == Hooks::Done {
                queue::set_hooked(sql, row.seq, HookStage::Before)?;
            }
            if let Some(key) = key {
                key.insert(sql, row.seq, now)?;
            }
            let denied = self.denies(state, sql, &input, &row)?;
            if input.strict {
                self.tighten(state, sql, row.seq)?;
            }
            let stays = row.inbound != Inbound::Triggers || (input.by == Sender::Code && state.meta.stopped);
            let started = if stays {
                None
            } else {
                self.budgets().tighten_budget(state, sql, input.options.budget.as_ref())?;
                self.start_run(state, sql, input.options, trace, now)?
            };
            Ok((AcceptedMessage { row, started, cut }, denied))
        })?;
        if let Some(cut) = &accepted.cut {
            self.history().announce_cut(cut)?;
        }
        self.waits().announce_waits(&closed)?;
        if accepted.started.is_some() {
            self.start_flow(EntryMode::First);
        } else if let Some(entry) = entry {
            self.start_flow(entry);
        }
        self.broadcast_message(&accepted.row)?;
        Ok(accepted)
    }

    /// Denies the open approvals if a person writes instead of deciding, and the agent or the folder enables
    /// this.
    fn denies(&self, state: &mut State, sql: &dyn Sql, input: &Input, row: &Row) -> Result<DeniedWaits> {
        let by_person =
            input.by == Sender::Client && row.role == Role::User && row.inbound == Inbound::Triggers;
        if state.meta.waits == 0 || !by_person {
            return Ok(DeniedWaits::default());
        }
        let agent = self.catalog.agents.get(&state.meta.agent).and_then(|agent| agent.approvals.on_message);
        match agent.or(self.catalog.settings.approvals.on_message) {
            Some(OnMessage::Deny) => self.waits().deny_for_message(state, sql),
            Some(OnMessage::Queue) | None => Ok(DeniedWaits::default()),
        }
    }

    /// Stores a message of code that works in the thread, once for a key. Returns its id.
    pub(in crate::engine) fn add_message(&self, input: Input, key: Option<&str>) -> Result<String> {
        let key = key.map(|key| Key::new(key.to_owned(), &["code", &input.content]));
        let accepted = self.accept(input, key.as_ref(), None)?;
        self.read(|state, _| Ok(accepted.row.id(&state.meta.stem)))
    }

    /// Makes the run that receives the message strict: the active one, or the one that is about to start.
    fn tighten(&self, state: &mut State, sql: &dyn Sql, seq: i64) -> Result<()> {
        match state.active_mut() {
            Ok(run) => {
                run.diagnostics.tighten(seq);
                run.update(sql)
            }
            Err(_) => {
                state.tightens = Some(seq);
                Ok(())
            }
        }
    }

    /// Starts a run for the queue unless one is active. A stop is cleared.
    fn start_run(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        options: RunOptions,
        trace: Option<&Trace>,
        now: i64,
    ) -> Result<Option<i64>> {
        if state.meta.stopped {
            state.meta.stopped = false;
            state.meta.update(sql)?;
        }
        if state.active().is_some() {
            return Ok(None);
        }
        self.start_with(state, sql, options, trace, now).map(Some)
    }

    /// The message of an earlier request with the same key.
    fn replayed(&self, key: &Key) -> Result<Option<Row>> {
        self.read(|_, sql| {
            let Some(seq) = key.replayed(sql, self.host.now_us())? else { return Ok(None) };
            rows::find(sql, seq)?
                .map(Some)
                .ok_or_else(|| Error::new(Code::Conflict, "The message of this Idempotency-Key was deleted."))
        })
    }

    /// Waits for the outcome of the run that receives the message, or has received it before this request.
    async fn await_outcome(&self, accepted: &AcceptedMessage, caller: &Caller) -> Result<Reply> {
        let seq = accepted.row.seq;
        let (known, run) = match accepted.started {
            Some(run) => (None, Some(run)),
            None => self.read(|state, sql| message_outcome(state, sql, seq))?,
        };
        let lost = |_| {
            Error::new(Code::Overloaded, "The thread was restarted while this request waited.")
                .hint("Send it again with the same Idempotency-Key to wait for the same run.")
        };
        let mut outcome = match known {
            Some(outcome) => outcome,
            None => self.wait_for(seq, run).await.map_err(lost)?,
        };
        // Most tasks of servers end soon, without a person.
        let until = self.host.now_us() + TASKS_US;
        while let MessageOutcome::Parked(Some(run)) = &outcome
            && self.host.now_us() < until
            && self.read_mut(waits_for_tasks)?
        {
            let settled = self.wait_for(seq, Some(run.id));
            if let Either::Left((Err(left), _)) = select(settled, self.host.sleep_until(until)).await {
                return Err(lost(left));
            }
            outcome = self.read(|state, sql| {
                let known = message_outcome(state, sql, seq)?.0;
                Ok(known.unwrap_or_else(|| MessageOutcome::Parked(state.active().cloned())))
            })?;
        }
        let now = self.host.now_us();
        self.read_mut(|state, sql| {
            let mut body = outcome::for_client(state, sql, outcome, now)?;
            if let Some(token) = self.waits().decision_token(state, sql, caller)? {
                body.set_token(token);
            }
            Ok(Reply::json(200, &body))
        })
    }
}

/// Whether the active run waits only for tasks of MCP servers, or polls one of them now.
fn waits_for_tasks(state: &mut State, sql: &dyn Sql) -> Result<bool> {
    if state.active().is_some_and(|run| !run.phase.is_parked()) {
        return Ok(true);
    }
    let waits = if state.meta.waits == 0 { Vec::new() } else { waits::open(sql)? };
    let for_tasks = !waits.is_empty() && waits.iter().all(|wait| wait.kind == WaitKind::Task);
    Ok(for_tasks && state.open_children(sql)?.is_empty())
}

/// Refuses a message if the queue is full.
pub(in crate::engine) fn room(state: &State) -> Result<()> {
    let waiting = state.waiting();
    if waiting < limits::QUEUE_MESSAGES {
        return Ok(());
    }
    let message = format!("{waiting} messages and tools wait already, the most that a thread holds.");
    if state.active().is_none() {
        // Waiting does not help: no run takes messages from the queue.
        return Err(Error::new(Code::QueueFull, format!("{message} The thread is stopped."))
            .hint("POST …/continue processes them and makes room."));
    }
    Err(Error::new(Code::QueueFull, message).retry_after(5))
}

/// The known outcome of the run of a message, and the run that received the message.
pub(in crate::engine) fn message_outcome(
    state: &State,
    sql: &dyn Sql,
    seq: i64,
) -> Result<(Option<MessageOutcome>, Option<i64>)> {
    let run = Run::of_message(sql, seq)?;
    if let Some(run) = run.as_ref().filter(|run| run.end.is_some()) {
        let answer = rows::find(sql, run.block)?.map(SharedRow::new);
        return Ok((Some(MessageOutcome::Ended(run.clone(), answer)), None));
    }
    let known = match state.active() {
        Some(active) if active.phase.is_parked() => Some(MessageOutcome::Parked(Some(active.clone()))),
        // Queued, and no run is active: a stop holds the message.
        None if state.meta.stopped || run.is_none() => Some(MessageOutcome::Stopped),
        _ => None,
    };
    Ok((known, run.map(|run| run.id)))
}
