//! Decisions about waits: which are allowed, by whom, and their effects on the call. Each wait is decided
//! once. A list of decisions is applied as a whole or not at all.

use crate::engine::waits::lookup::{takes, wait_number};
use serde_json::Value;

use crate::access::{Caller, MINIMUM_SECRET_BYTES, Scope, token};
use crate::definitions::budget::Limits;
use crate::definitions::message::ToolResult;
use crate::definitions::{Callable, schema};
use crate::engine::budget::LimitStatus;
use crate::engine::cycle::run_end::HaltedRun;
use crate::engine::features::Waits;
use crate::engine::waits::answer::{Answer, answered, bounded_text, denied, filled_in};
use crate::engine::waits::budget::{Outcome, Settlement};
use crate::engine::waits::restart::has_begun;
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::json;
use crate::json_text::JsonText;
use crate::limits;
use crate::page::json_bytes;
use crate::protocols::responses::waits as responses;
use crate::request::fields::Body;
use crate::sdk::scope::EntryMode;
use crate::store::idempotency::Key;
use crate::store::log_record::Event;
use crate::store::messages::message_id;
use crate::store::runs::Phase;
use crate::store::runs::end::Reason;
use crate::store::state::State;
use crate::store::waits::{Decision, DecisionScope, Wait, WaitKind, WaitState};
use crate::store::{receipts, waits};

/// The caller of a decision.
pub(crate) struct Decider<'a> {
    pub(crate) caller: &'a Caller,
    /// The first characters of a hash of the caller's credentials.
    pub(crate) fingerprint: Option<&'a str>,
}

/// A requested decision.
#[derive(Debug)]
pub(crate) struct DecisionRequest {
    /// The number of the wait.
    wait: i64,
    kind: DecisionKind,
    actor: Option<String>,
    interrupt: Interrupt,
}

/// The effect of a decision on its step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interrupt {
    /// The step continues.
    Continue,
    /// Drops the reply and requests another one from the model.
    Restart,
}

#[derive(Debug)]
enum DecisionKind {
    Approve {
        args: Option<Value>,
    },
    Deny {
        reason: Option<String>,
        stop: bool,
    },
    Answer(Answer),
    /// Tries again now.
    Retry,
    /// Adds amounts to the budget.
    Extend {
        add: Limits,
    },
    /// Makes one last step.
    Finish,
    /// Moves the expiry.
    Defer {
        until_us: i64,
    },
}

/// The changes of a transition of decisions.
#[derive(Default)]
struct DecisionEffects {
    waits: Vec<Wait>,
    entry: Option<EntryMode>,
    halted: Option<HaltedRun>,
    /// A run that failed.
    failed: Option<HaltedRun>,
    /// Seq of the reply that is dropped.
    restarts: Option<i64>,
    /// Waits that opened or closed besides the decided ones.
    also: Vec<Wait>,
    /// Budget events for clients.
    budget_events: Vec<(&'static str, LimitStatus)>,
}

impl DecisionRequest {
    /// Whether both decisions are about the same wait.
    pub(crate) fn is_about(&self, other: &DecisionRequest) -> bool {
        self.wait == other.wait
    }

    /// Parses a decision whose fields are known. `wait`: the number in the path; otherwise the field `id`
    /// names it.
    pub(crate) fn parse(mut body: Body, thread: &str, wait: Option<i64>) -> Result<DecisionRequest> {
        let named = body.string("id")?;
        let wait = match (wait, named) {
            (Some(wait), None) => wait,
            (Some(_), Some(_)) => return Err(Error::field("id", "The wait is named by the path already.")),
            (None, Some(id)) => wait_number(thread, &id)?,
            (None, None) => return Err(Error::missing("id")),
        };
        let name = body.string("decision")?.ok_or_else(|| Error::missing("decision"))?;
        let kind = DecisionKind::parse(&mut body, &name)?;
        let interrupt = Interrupt::parse(&mut body, &kind)?;
        let actor = body.string("actor")?;
        if actor.as_ref().is_some_and(|actor| actor.chars().count() > limits::ACTOR_CHARS) {
            let text = format!("`actor` has at most {} characters.", limits::ACTOR_CHARS);
            return Err(Error::field("actor", text));
        }
        kind.leaves_nothing(&mut body, &name)?;
        Ok(DecisionRequest { wait, kind, actor, interrupt })
    }
}

impl Interrupt {
    fn parse(body: &mut Body, kind: &DecisionKind) -> Result<Interrupt> {
        let interrupt = match body.string("interrupt")?.as_deref() {
            None | Some("continue") => Interrupt::Continue,
            Some("restart") => Interrupt::Restart,
            Some(other) => {
                let text = format!("`interrupt` is continue or restart, not “{other}”.");
                return Err(Error::field("interrupt", text));
            }
        };
        if interrupt == Interrupt::Restart
            && !matches!(
                kind,
                DecisionKind::Approve { .. }
                    | DecisionKind::Answer(_)
                    | DecisionKind::Deny { stop: false, .. }
            )
        {
            let text = "`interrupt` restart needs the decision approve, answer, or deny without `stop`.";
            return Err(Error::field("interrupt", text));
        }
        Ok(interrupt)
    }
}

impl DecisionKind {
    fn parse(body: &mut Body, name: &str) -> Result<DecisionKind> {
        Ok(match name {
            "approve" => DecisionKind::Approve { args: body.object("args")?.map(Value::Object) },
            "deny" => DecisionKind::Deny { reason: bounded_text(body, "reason")?, stop: body.flag("stop")? },
            "answer" => DecisionKind::Answer(Answer::parse(body)?),
            "retry" => DecisionKind::Retry,
            "extend" => {
                let add = body.take("add").ok_or_else(|| Error::missing("add"))?;
                let add = crate::json::from_value(add);
                DecisionKind::Extend {
                    add: add.map_err(|error| Error::field("add", format!("`add`: {error}.")))?,
                }
            }
            "finish" => DecisionKind::Finish,
            "defer" => {
                let until = body.take("until").ok_or_else(|| Error::missing("until"))?;
                let until = until.as_i64().and_then(|seconds| seconds.checked_mul(limits::SECOND_US));
                let until_us =
                    until.ok_or_else(|| Error::field("until", "`until` is in seconds since 1970."))?;
                DecisionKind::Defer { until_us }
            }
            other => {
                let text = format!("There is no decision “{other}”.");
                return Err(Error::field("decision", text)
                    .hint("`decision` is approve, deny, answer, defer, retry, extend or finish."));
            }
        })
    }

    /// The outcome of a decision about a budget; `None` for other decisions.
    fn of_budget(&self, wait: &Wait) -> Option<Outcome<'_>> {
        match self {
            _ if wait.kind != WaitKind::Budget => None,
            DecisionKind::Extend { add } => Some(Outcome::Extended(add)),
            DecisionKind::Finish => Some(Outcome::Finishes),
            _ => Some(Outcome::Fails("It was not extended.".to_owned())),
        }
    }

    /// Refuses fields that belong to other decisions.
    fn leaves_nothing(&self, body: &mut Body, name: &str) -> Result<()> {
        for (field, fits) in [
            ("args", matches!(self, DecisionKind::Approve { .. })),
            ("reason", matches!(self, DecisionKind::Deny { .. })),
            ("stop", matches!(self, DecisionKind::Deny { .. })),
            ("text", matches!(self, DecisionKind::Answer(_))),
            ("choice", matches!(self, DecisionKind::Answer(_))),
            ("result", matches!(self, DecisionKind::Answer(_))),
            ("isError", matches!(self, DecisionKind::Answer(_))),
            ("content", matches!(self, DecisionKind::Answer(_))),
            ("until", matches!(self, DecisionKind::Defer { .. })),
            ("add", matches!(self, DecisionKind::Extend { .. })),
        ] {
            if !fits && body.take(field).is_some() {
                return Err(Error::field(
                    field,
                    format!("`{field}` has no meaning with the decision “{name}”."),
                ));
            }
        }
        Ok(())
    }
}

impl Waits<'_> {
    /// Applies decisions, all or none. Returns the waits afterwards.
    pub(crate) fn decide(
        &self,
        wanted: &[DecisionRequest],
        decider: &Decider<'_>,
        key: Option<&Key>,
    ) -> Result<Vec<JsonText<responses::Wait<'static>>>> {
        if let Some(key) = key
            && self.read(|_, sql| key.replayed(sql, self.host.now_us()))?.is_some()
        {
            // Idempotent: the same request has decided these waits before.
            return self.read(|state, sql| {
                wanted
                    .iter()
                    .map(|one| JsonText::new(&self.found_wait(state, sql, one.wait)?.shown(state)))
                    .collect()
            });
        }
        self.end_overdue()?;
        let decided = self.transition(|state, sql| {
            state.ensure_not_terminated()?;
            let mut decided = DecisionEffects::default();
            let block =
                state.active().filter(|run| run.phase == Phase::Parked).map(|run| (Some(run.id), run.block));
            let found = self.found_open(state, sql, wanted, decider)?;
            for (one, wait) in wanted.iter().zip(found) {
                if decided.halted.is_some() || decided.failed.is_some() {
                    return Err(Error::field(
                        "decisions",
                        "The decision that ends the run must be the last one.",
                    )
                    .hint("It cancels what is asked besides."));
                }
                if one.interrupt == Interrupt::Restart {
                    let of = block.filter(|(run, reply)| *run == wait.run && Some(*reply) == wait.batch);
                    decided.restarts = Some(of.ok_or_else(has_begun)?.1);
                }
                self.apply(state, sql, one, wait, decider, &mut decided)?;
            }
            if let Some(reply) = decided.restarts {
                decided.waits.extend(self.restart_step(state, sql, reply)?);
                decided.entry = Some(EntryMode::Again);
            }
            if let (Some(key), Some(first)) = (key, wanted.first()) {
                key.insert(sql, first.wait, self.host.now_us())?;
            }
            Ok(decided)
        })?;
        let shown = self.read(|state, _| {
            decided.waits.iter().map(|wait| JsonText::new(&wait.shown(state))).collect::<Result<Vec<_>>>()
        })?;
        if decided.restarts.is_some() {
            // Reload the state, because the reply was deleted.
            self.state.borrow_mut().take();
        }
        self.after_decisions(decided)?;
        Ok(shown)
    }

    /// The waits to decide, all of them open. Checked before anything is written; a conflict lists the state
    /// of each.
    fn found_open(
        &self,
        state: &State,
        sql: &dyn Sql,
        wanted: &[DecisionRequest],
        decider: &Decider<'_>,
    ) -> Result<Vec<Wait>> {
        let mut found = Vec::with_capacity(wanted.len());
        for one in wanted {
            let wait = match self.found_wait(state, sql, one.wait) {
                Err(error) if error.code == Code::NotFound && wanted.len() > 1 => {
                    return Err(self.conflict(state, sql, wanted)?);
                }
                found => found?,
            };
            may_decide(decider.caller, &wait)?;
            if wait.state != WaitState::Open {
                return Err(self.conflict(state, sql, wanted)?);
            }
            found.push(wait);
        }
        Ok(found)
    }

    /// Performs the effects of decisions after their commit.
    fn after_decisions(&self, decided: DecisionEffects) -> Result<()> {
        self.announce_waits(&decided.waits)?;
        self.announce_waits(&decided.also)?;
        if !decided.budget_events.is_empty() {
            self.subagents().send_envelopes();
        }
        for (kind, reached) in decided.budget_events {
            self.budgets().announce_budget(kind, &[reached]);
        }
        match (decided.halted, decided.failed, decided.entry) {
            (Some(halted), _, _) => self.control().halted(halted)?,
            (None, Some(failed), _) => self.control().cut_off(failed)?,
            (None, None, Some(entry)) => self.start_flow(entry),
            (None, None, None) => {}
        }
        if self.read(|state, _| Ok(state.meta.parent.is_some()))? {
            self.subagents().send_envelopes();
        }
        Ok(())
    }

    fn apply(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        wanted: &DecisionRequest,
        mut wait: Wait,
        decider: &Decider<'_>,
        decided: &mut DecisionEffects,
    ) -> Result<()> {
        let now = self.host.now_us();
        let mut decision = Decision {
            scope: decider.caller.scope.to_string(),
            fingerprint: decider.fingerprint.map(str::to_owned),
            actor: wanted.actor.clone(),
            interrupt: (wanted.interrupt == Interrupt::Restart).then(|| "restart".to_owned()),
            ..Decision::default()
        };
        if let DecisionKind::Defer { until_us } = &wanted.kind {
            self.defer(state, sql, &mut wait, *until_us)?;
            decided.waits.push(wait);
            return Ok(());
        }
        let result = self.note_decision(&wanted.kind, &wait, &mut decision)?;
        if let (Some(result), Some(receipt)) = (result, wait.receipt) {
            // Redact secrets in every answer. Scrub only the results of client tools, not text that people write.
            let result = self.variables().redact_result(result);
            let result = match &wait.asked.call {
                Some(call) if wait.kind == WaitKind::ClientTool => {
                    let tool = self.catalog.tools.get(&call.tool);
                    self.scrubbing().clean_result_within(state, &call.tool, tool, result)
                }
                _ => result,
            };
            receipts::answer(sql, receipt, &result)?;
        }
        self.close_wait(state, sql, &mut wait, WaitState::Decided, Some(decision))?;
        if matches!(wanted.kind, DecisionKind::Deny { stop: true, .. }) {
            state.meta.stopped = true;
            state.meta.update(sql)?;
            Event::stop(state.active()).insert(sql, now)?;
            self.descendants().stop_children(state, sql)?;
            decided.halted = Some(self.control().halt(state, sql, Reason::StoppedByUser, now)?);
        } else if let Some(outcome) = wanted.kind.of_budget(&wait) {
            let Settlement { entry, halted, told, waits } = self.settle_budget(state, sql, &wait, outcome)?;
            decided.entry = entry.or(decided.entry);
            decided.failed = halted.or(decided.failed.take());
            decided.budget_events.extend(told);
            decided.also.extend(waits);
        } else {
            decided.entry = self.resume_after(state, sql, &wait)?.or(decided.entry);
        }
        decided.waits.push(wait);
        Ok(())
    }

    /// Stores the kind in the decision, and returns the result of the call if the decision is its result.
    fn note_decision(
        &self,
        kind: &DecisionKind,
        wait: &Wait,
        decision: &mut Decision,
    ) -> Result<Option<ToolResult>> {
        Ok(match kind {
            DecisionKind::Approve { args } => {
                takes(wait, "approve")?;
                if let Some(args) = args {
                    self.check_edit(wait, args)?;
                }
                decision.decision = "approve".into();
                decision.args.clone_from(args);
                None
            }
            DecisionKind::Deny { reason, .. } => {
                takes(wait, "deny")?;
                decision.decision = "deny".into();
                decision.reason.clone_from(reason);
                // The denial is sent to the MCP server, which decides the outcome of the call.
                (wait.kind != WaitKind::Elicitation).then(|| denied(wait, reason.as_deref()))
            }
            DecisionKind::Answer(answer) if wait.kind == WaitKind::Elicitation => {
                takes(wait, "answer")?;
                decision.decision = "answer".into();
                decision.content = filled_in(wait, answer)?;
                None
            }
            DecisionKind::Answer(answer) => {
                decision.decision = "answer".into();
                Some(answered(wait, answer, decision)?)
            }
            DecisionKind::Retry => {
                takes(wait, "retry")?;
                decision.decision = "retry".into();
                None
            }
            DecisionKind::Extend { add } => {
                takes(wait, "extend")?;
                decision.decision = "extend".into();
                decision.add = Some(json!(add));
                None
            }
            DecisionKind::Finish => {
                takes(wait, "finish")?;
                decision.decision = "finish".into();
                None
            }
            DecisionKind::Defer { .. } => None,
        })
    }

    /// Keeps the wait open for longer.
    fn defer(&self, state: &mut State, sql: &dyn Sql, wait: &mut Wait, until_us: i64) -> Result<()> {
        takes(wait, "defer")?;
        let now = self.host.now_us();
        if until_us <= now || until_us > now + limits::WAIT_MAX_US {
            return Err(Error::field("until", "`until` lies in the next 30 days."));
        }
        wait.expires_us = until_us;
        waits::defer(sql, wait.id, until_us)?;
        state.wait_due.take();
        self.arm_at(state, sql, until_us, now)
    }

    /// Validates arguments changed by the approver: only permitted ones, and valid for the tool.
    fn check_edit(&self, wait: &Wait, changed: &Value) -> Result<()> {
        let invalid = |message: String| Error::new(Code::InvalidArgs, message).at("args");
        let Some(call) = &wait.asked.call else { return Err(invalid("This call has no arguments.".into())) };
        if json_bytes(changed) > limits::WAIT_DATA_BYTES {
            let text = format!("`args` is over {} bytes.", limits::WAIT_DATA_BYTES);
            return Err(Error::new(Code::TooLarge, text).at("args"));
        }
        let fields = changed.as_object().into_iter().flatten();
        if let Some((name, _)) = fields.clone().find(|(name, _)| !wait.asked.edit.contains(name)) {
            let allowed =
                if wait.asked.edit.is_empty() { "none".to_owned() } else { wait.asked.edit.join(", ") };
            return Err(invalid(format!("`args.{name}` may not be changed; these may: {allowed}.")));
        }
        let mut args = call.args.clone();
        if let Some(all) = args.as_object_mut() {
            all.extend(fields.map(|(name, value)| (name.clone(), value.clone())));
        }
        let Some(callable @ Callable::Tool(_)) = self.catalog.callable(&call.tool) else { return Ok(()) };
        match callable.check(args) {
            Ok(_) => Ok(()),
            Err(problems) => Err(invalid(schema::lines(&problems))),
        }
    }

    /// A token to decide the only open wait without keys. Requires a caller who may decide it, and a
    /// deployment that mints tokens.
    pub(crate) fn decision_token(
        &self,
        state: &State,
        sql: &dyn Sql,
        caller: &Caller,
    ) -> Result<Option<String>> {
        if state.meta.waits != 1 {
            return Ok(None);
        }
        let open = waits::open(sql)?;
        let Some(wait) = open.first().filter(|wait| may_decide(caller, wait).is_ok()) else {
            return Ok(None);
        };
        let secret =
            self.host.var("BOBBIN_TOKEN_SECRET").filter(|secret| secret.len() >= MINIMUM_SECRET_BYTES);
        let Some(secret) = secret else { return Ok(None) };
        let scope = Scope::Wait(state.meta.thread_id.clone(), wait.public_id(&state.meta.stem));
        let now = self.host.now_us();
        let most = i64::try_from(limits::WAIT_TOKEN_S).unwrap_or(0);
        let left = (wait.deadline_us() - now) / limits::SECOND_US;
        let minted = token::mint(secret.as_bytes(), &scope, now / limits::SECOND_US + left.min(most));
        Ok(Some(minted.token))
    }

    /// The conflict error if some waits are closed or unknown. It lists the state of those that exist.
    fn conflict(&self, state: &State, sql: &dyn Sql, wanted: &[DecisionRequest]) -> Result<Error> {
        let mut found = Vec::with_capacity(wanted.len());
        for one in wanted {
            if let Some(wait) = waits::find(sql, one.wait)? {
                found.push(json!(wait.shown(state)));
            }
        }
        let (text, details) = match (wanted, found.as_slice()) {
            ([_], [one]) => ("This was decided already.", json!({ "wait": one })),
            (_, all) => ("Not all of these are open; nothing was changed.", json!({ "waits": all })),
        };
        let mut error = Error::new(Code::Conflict, text);
        error.details = Some(Box::new(details));
        Ok(error)
    }
}

impl Wait {
    /// The wait in its public form.
    pub(crate) fn shown<'a>(&'a self, state: &'a State) -> responses::Wait<'a> {
        self.response(&state.meta, &|seq| message_id(&state.meta.stem, seq))
    }
}

fn may_decide(caller: &Caller, wait: &Wait) -> Result<()> {
    let may = match (&caller.scope, wait.asked.by) {
        // A caller who may decide the wait minted its token. The route has checked that the token is for this
        // wait.
        (Scope::Admin | Scope::Wait(..), _) | (_, DecisionScope::Thread) => true,
        (Scope::Owner(_), DecisionScope::Owner) => true,
        (Scope::Owner(_), DecisionScope::Admin)
        | (Scope::Thread(_), DecisionScope::Owner | DecisionScope::Admin) => false,
    };
    if may {
        return Ok(());
    }
    let who = if wait.asked.by == DecisionScope::Admin { "an admin" } else { "the thread's owner" };
    Err(Error::new(Code::Forbidden, format!("This is for {who} to decide."))
        .hint(format!("The scope of these credentials is `{}`.", caller.scope)))
}
