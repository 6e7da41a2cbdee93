//! The step cycle (spec §19). [`Thread::step`] follows the specification's list, in order.

use serde_json::{Map, Value};

use crate::definitions::message::{Role, ToolCall};
use crate::engine::budget::exceeded::Consequence;
use crate::engine::calls::batch::Batch;
use crate::engine::cycle::flow::StepResult;
use crate::engine::cycle::stop;
use crate::engine::cycle::stop::Cap;
use crate::engine::definitions::Definitions;
use crate::engine::hooks::BlockReason;
use crate::engine::hooks::inbound::Drain;
use crate::engine::model::model_call::{AttemptReply, ModelOutcome};
use crate::engine::thread::Thread;
use crate::error::Result;
use crate::host::Sql;
use crate::json;
use crate::limits;
use crate::models::Reply;
use crate::store::messages::{Inbound, Row, SharedRow};
use crate::store::runs::end::Reason;
use crate::store::runs::{Phase, Step};
use crate::store::state::State;
use crate::text::first_bytes;

enum StepStart {
    Step(Step),
    Capped(Cap),
}

impl Thread {
    /// Runs one step, from the stored phase on.
    pub(in crate::engine) async fn step(&self) -> Result<StepResult> {
        self.variables().ready_env().await?;
        self.mcp().ready_lists().await?;
        let Some(definitions) = self.definitions()? else { return self.definition_missing() };
        if let Some(text) = self.diagnosis().run_diagnostics(&definitions)? {
            return self.ended(Reason::StrictDiagnostics, Some(text));
        }
        self.hooks().hook_thread(&definitions).await?;
        self.subagents().activate(&definitions).await?;
        let mut reply = match self.stored_reply()?.or(self.queued_reply()?) {
            Some(reply) => {
                self.hooks().observe_again(&definitions, &reply).await?;
                reply
            }
            // An agent that makes a single call has no model.
            None if definitions.chain.is_empty() => return self.definition_missing(),
            None => {
                // 1. Drain the queue.
                let Drain::Ready(from) = self.hooks().hook_inbound(&definitions).await? else {
                    return Ok(StepResult::Yield);
                };
                let step = match self.open_step(&definitions)? {
                    StepStart::Step(step) => step,
                    StepStart::Capped(cap) => return self.ended(cap.reason(), Some(cap.message())),
                };
                if self.hooks().observe_inbound(&definitions, step, from).await? == Drain::Yields {
                    return Ok(StepResult::Yield);
                }
                let answer = match self.ask_model(&definitions, step).await? {
                    Ok(answer) => *answer,
                    Err((reason, text)) => return self.ended(reason, Some(text)),
                };
                // 4. Store the reply.
                self.store_reply(&definitions, step, answer).await?
            }
        };
        let mut batch = Batch::default();
        while let Some((of, call)) = self.next_call(&reply)? {
            // 5. Run the calls one by one, in the order received, then those that code has queued.
            let done = self.call_outcome(&mut batch, &definitions, &of, &call).await?;
            // 6. Store each result before the next call.
            let settling = self.hooks().settle_call(&definitions, of, &call, done);
            let of = batch.beside(self, settling).await?;
            reply = if of.seq == reply.seq { of } else { reply };
        }
        let reply = self.with_queued(reply)?;
        // 7. Evaluate the stop conditions.
        match self.evaluate(&definitions, &reply)? {
            None => Ok(StepResult::Step),
            Some((reason, message)) => self.ended(reason, message),
        }
    }

    /// The model's reply, or the reason why the run ends without one.
    async fn ask_model(
        &self,
        definitions: &Definitions<'_>,
        step: Step,
    ) -> Result<Result<Box<AttemptReply>, (Reason, String)>> {
        loop {
            // 2. Assemble the context.
            let request = match self.model_context().assemble(definitions, step).await? {
                Ok(request) => self.budgets().last_request(request)?,
                Err(BlockReason(why)) => return Ok(Err((Reason::HookBlocked, why))),
            };
            // 3. Call the model.
            match self.call_model(definitions, step, request).await? {
                ModelOutcome::Answer(answer) => return Ok(Ok(Box::new(answer))),
                ModelOutcome::TooLong => self.model_context().halve_window()?,
                ModelOutcome::Elsewhere => {}
                ModelOutcome::Failed(text) => return Ok(Err((Reason::ModelError, text))),
                ModelOutcome::Exceeded(exceeded) => match self.budgets().over_budget(exceeded).await? {
                    Consequence::Finish => {}
                    Consequence::Fail(text) => return Ok(Err((Reason::BudgetExceeded, text))),
                },
            }
        }
    }

    fn ended(&self, reason: Reason, message: Option<String>) -> Result<StepResult> {
        self.end_run(reason, message)?;
        Ok(StepResult::Ended)
    }

    fn definition_missing(&self) -> Result<StepResult> {
        let agent = self.read(|state, _| Ok(state.meta.agent.clone()))?;
        let message = format!(
            "The agent “{agent}”, its prompt or its model is not among the definitions any more, so this run cannot go on."
        );
        self.ended(Reason::DefinitionMissing, Some(message))
    }

    /// The open step's reply, if it was stored before a crash.
    fn stored_reply(&self) -> Result<Option<SharedRow>> {
        self.read(|state, sql| match state.active() {
            Some(run) if run.phase == Phase::Tools => {
                match state.window.as_ref().and_then(|window| window.row(run.block)) {
                    Some(row) => Ok(Some(row.clone())),
                    None => Ok(crate::store::messages::find(sql, run.block)?.map(SharedRow::new)),
                }
            }
            _ => Ok(None),
        })
    }

    /// Takes in all queued messages by reserving the step's block behind them, and counts the step and its
    /// first attempt, all before the work. An open step is kept.
    fn open_step(&self, definitions: &Definitions<'_>) -> Result<StepStart> {
        let now = self.host.now_us();
        let mut near = Vec::new();
        let mut before = 0;
        let opened = self.transition(|state, sql| {
            let block = state.next_seq();
            let run = state.active_mut()?;
            before = run.block;
            if run.phase == Phase::Model {
                return Ok(StepStart::Step(Step::own(run.block)));
            }
            if let Some(cap) = stop::cap(run, definitions.side, definitions.agent.session_turns()) {
                return Ok(StepStart::Capped(cap));
            }
            run.phase = Phase::Model;
            run.step += 1;
            run.steps += 1;
            *run.own_steps() += 1;
            run.block = block;
            run.model = 0;
            run.attempt = 1;
            run.stream = 1;
            run.recoveries = 0;
            if let Some(ledger) = &mut run.ledger {
                ledger.close_step();
                ledger.unseen = 0;
            }
            self.budgets().charge_time(run, now);
            near = self.budgets().limits_close_to(run, now);
            run.update(sql)?;
            let long = (run.step % limits::EXPORT_STEPS == 1 && run.step > 1).then(|| run.clone());
            state.filled = 0;
            state.drain();
            if let Some(run) = long {
                self.telemetry().schedule_spans(state, sql, &run, now)?;
            }
            self.summarizer().schedule_summary(state, sql, now)?;
            Ok(StepStart::Step(Step::own(block)))
        })?;
        self.budgets().announce_budget("warning", &near);
        if let StepStart::Step(step) = &opened {
            self.drained(step.block)?;
            self.announce_step(before)?;
        }
        Ok(opened)
    }

    /// Records the run for the clients whose messages it took in.
    fn drained(&self, block: i64) -> Result<()> {
        if self.ephemeral.waiters.borrow().is_empty() {
            return Ok(());
        }
        let run = self.read(|state, _| Ok(state.run.as_ref().map(|run| run.id)))?;
        for waiter in self.ephemeral.waiters.borrow_mut().iter_mut() {
            if waiter.run.is_none() && waiter.seq < block {
                waiter.run = run;
            }
        }
        Ok(())
    }

    /// Stores the reply and the phase of its calls, in one transition.
    async fn store_reply(
        &self,
        definitions: &Definitions<'_>,
        step: Step,
        answer: AttemptReply,
    ) -> Result<SharedRow> {
        let now = self.host.now_us();
        let AttemptReply { reply, attempt, underway } = answer;
        let reasoning = self.replay_column(definitions, step, &reply)?;
        let row =
            self.read(|state, _| Ok(Row { reasoning, ..reply_row(state, definitions, step, reply, now) }))?;
        let row = self.memories().with_citations(definitions, row).await?;
        let row = self.hooks().before_create(definitions, row).await?;
        let row = self.transition(|state, sql| {
            state.log_attempt(sql, &attempt)?;
            state.calibrate(sql, &attempt)?;
            let row = state.insert(sql, row)?;
            // The phase follows from the stored reply, so it needs no write.
            let run = state.active_mut()?;
            run.phase = Phase::Tools;
            if let Some(ledger) = &mut run.ledger {
                ledger.charge_logged(&attempt);
            }
            Ok(row)
        })?;
        drop(underway);
        self.ephemeral.partial.borrow_mut().take();
        self.log_bodies(&attempt);
        self.announce_reply(&row, &attempt)?;
        self.hooks().after_create(definitions, &row).await?;
        Ok(row)
    }
}

/// The reply as a row. Empty and repeated ids of calls are replaced by generated ones (docs/durability.md).
/// The stop tool's response property becomes the text (spec §20.1).
pub(in crate::engine) fn reply_row(
    state: &State,
    definitions: &Definitions<'_>,
    step: Step,
    reply: Reply,
    now: i64,
) -> Row {
    let mut calls: Vec<ToolCall> = Vec::with_capacity(reply.tool_calls.len());
    for (index, mut call) in reply.tool_calls.into_iter().enumerate() {
        let repeated = calls.iter().any(|other| other.id == call.id)
            || state.window.as_ref().is_some_and(|window| window.has_call(&call.id));
        if call.id.is_empty() || repeated {
            call.id = format!("call_{}_{index}", step.block);
        }
        calls.push(call);
    }
    // Stop rules do not apply within a call.
    let response = if step.call.is_none() { stop::response(definitions.side, &calls) } else { None };
    let content = response.unwrap_or(reply.content);
    let mut metadata = Map::new();
    metadata.insert("prompt".into(), definitions.prompt.name.clone().into());
    if !reply.reasoning.is_empty() {
        metadata.insert("reasoning".into(), first_bytes(&reply.reasoning, limits::METADATA_BYTES).into());
    }
    Row {
        calls,
        inbound: Inbound::Step,
        metadata: Some(json::text(&Value::Object(metadata))),
        ..Row::new(step.block, definitions.active.role(), content, now)
    }
}

impl Thread {
    /// Stores a status message for people; models never see it.
    pub(in crate::engine) fn insert_status(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        kind: &str,
        text: &str,
        reason: Reason,
    ) -> Result<SharedRow> {
        let seq = state.next_seq();
        let metadata = json!({ "status_kind": kind, "reason": reason.as_str() });
        let row = Row {
            metadata: Some(metadata.to_string()),
            ..Row::new(seq, Role::Assistant, text, self.host.now_us())
        };
        state.insert(sql, row)
    }
}
