//! Prompts that are called as tools (spec §23): one request to a model and the calls of its reply, in the
//! same thread. This file has that step; `request` makes the request, `result` the caller's result.
//!
//! The messages are stored under the result of the outer call, one level deeper, in their own block of seqs.
//! The receipt of the outer call records how far the step is, so that it resumes after a crash: a stored
//! reply is not requested again, and no call is made twice.

mod request;
mod result;

use serde_json::Value;

use crate::definitions::message::ToolResult;
use crate::definitions::{Prompt, ToolEntry};
use crate::engine::calls::call::Call;
use crate::engine::calls::call::ToolRun;
use crate::engine::calls::tool_result::result_row;
use crate::engine::cycle::step::reply_row;
use crate::engine::cycle::stop::Cap;
use crate::engine::definitions::Definitions;
use crate::engine::features::Subprompts;
use crate::engine::model::model_call::{AttemptReply, ModelOutcome, broke_off};
use crate::error::Result;
use crate::host::Sql;
use crate::limits;
use crate::sdk::scope::{EntryMode, Scope};
use crate::store::log_record::{AttemptState, LostAttempt, UnfinishedReason};
use crate::store::messages::{Row, SharedRow};
use crate::store::runs::Step;
use crate::store::{logs, messages as rows, receipts};

/// The progress of the step of a call that is entered again.
fn known(sql: &dyn Sql, scope: &Scope) -> Result<Option<AttemptState>> {
    match (scope.entered, scope.receipt) {
        (EntryMode::Again, Some(receipt)) => receipts::inner(sql, receipt),
        _ => Ok(None),
    }
}

/// The step of a called prompt.
enum SubpromptStep {
    /// A request to its model is due.
    Ask(Step),
    /// The model's reply was stored before the crash.
    Replied(SharedRow),
    /// Every attempt had failed.
    Failed(String),
    /// The run may take no more steps.
    Capped,
}

impl Subprompts<'_> {
    /// Runs a prompt: one request to its model, then the calls of the reply. `scope` is the inside of the
    /// call.
    pub(super) async fn subprompt(
        &self,
        scope: &Scope,
        outer: &Definitions<'_>,
        entry: &ToolEntry,
        prompt: &Prompt,
        args: &Value,
    ) -> Result<ToolResult> {
        let name = &prompt.name;
        let chain = self.usable_chain(&prompt.model);
        if chain.is_empty() {
            let text = format!("The model of \"{name}\" is not among the definitions any more.");
            return Ok(ToolResult::error(text));
        }
        let Definitions { agent, active, side, .. } = *outer;
        let definitions = Definitions { agent, active, side, prompt, chain };
        let mut scope = scope.clone();
        scope.path.push(name.clone());
        let reply = match self.open_inner(&scope, &definitions)? {
            SubpromptStep::Capped => {
                return Ok(ToolResult::error(format!("Not run: {}", Cap::Total.message())));
            }
            SubpromptStep::Failed(text) => return Ok(ToolResult::error(text)),
            SubpromptStep::Replied(reply) => reply,
            SubpromptStep::Ask(step) => loop {
                let request = self.inner_request(&definitions, step, entry, args)?;
                match self.call_model(&definitions, step, request).await? {
                    ModelOutcome::Answer(answer) => {
                        break self.store_inner(&scope, &definitions, step, answer)?;
                    }
                    // The next request leaves the thread's history out. If that is still too long, the call
                    // fails.
                    ModelOutcome::TooLong | ModelOutcome::Elsewhere => {}
                    ModelOutcome::Failed(text) => return Ok(ToolResult::error(text)),
                    ModelOutcome::Exceeded(exceeded) => return Ok(exceeded.result()),
                }
            },
        };
        let mut results = Vec::with_capacity(reply.calls.len());
        for index in 0..reply.calls.len() {
            let Some(call) = Call::of(&reply, index) else { continue };
            let stored = match scope.entered {
                EntryMode::First => None,
                EntryMode::Again => self.read(|_, sql| rows::find(sql, call.seq))?.map(SharedRow::new),
            };
            results.push(match stored {
                Some(row) => row,
                None => {
                    let earlier = self.hooks().earlier_receipt(scope.entered, &call)?;
                    let (scope, definitions) = (&scope, &definitions);
                    let run = ToolRun { thread: self, scope, definitions, reply: &reply, call: &call };
                    let mut done = run.outcome(earlier).await?;
                    let files = done.take_files(&call.call.name);
                    let row = result_row(&reply, &call, &done, self.host.now_us());
                    self.store_result(&reply, &call, &done, row, &files)?
                }
            });
        }
        Ok(crate::engine::subprompt::result::compose(entry, &reply, &results))
    }

    /// Reserves a block for the step and counts it and its first attempt, all before the work. An open step
    /// is entered again: its last attempt was lost in a crash.
    fn open_inner(&self, scope: &Scope, definitions: &Definitions<'_>) -> Result<SubpromptStep> {
        let Scope { receipt: call, depth, parking, .. } = *scope;
        let apart = scope.is_detached();
        let now = self.host.now_us();
        let (opened, stream) = self.transition(|state, sql| {
            if let Some(mut tries) = known(sql, scope)? {
                if let Some(reply) = rows::find(sql, tries.block)? {
                    return Ok((SubpromptStep::Replied(SharedRow::new(reply)), None));
                }
                if let Some(text) = tries.failed {
                    return Ok((SubpromptStep::Failed(text), None));
                }
                let step = Step { block: tries.block, call, depth, parking, apart };
                let place = usize::try_from(tries.model).unwrap_or(usize::MAX);
                let model = definitions.chain.get(place).filter(|model| !model.capabilities.restartable);
                if tries.logged < tries.stream {
                    let (prompt, why) = (definitions.prompt, UnfinishedReason::Lost);
                    let lost = LostAttempt { step, tries: &tries, prompt, why };
                    self.log_lost(state, sql, &lost, now)?;
                    state.usage = None;
                    if let Some(model) = model
                        && logs::was_shown(sql, tries.block, tries.stream)?
                    {
                        let text = broke_off(model, "the process was lost.");
                        tries.failed = Some(text.clone());
                        tries.logged = tries.stream;
                        tries.store(state, sql, step)?;
                        self.ephemeral.spending.cut_off();
                        self.budgets().charge_cut_off(state, sql)?;
                        return Ok((SubpromptStep::Failed(text), None));
                    }
                    tries.unseen += 1;
                }
                tries.stream += 1;
                let stream = tries.stream;
                tries.store(state, sql, step)?;
                return Ok((SubpromptStep::Ask(step), model.is_none().then_some(stream)));
            }
            if !scope.is_detached() {
                let run = state.active_mut()?;
                if run.steps >= limits::RUN_STEPS {
                    return Ok((SubpromptStep::Capped, None));
                }
                run.steps += 1;
                run.update(sql)?;
            }
            let step = Step { block: state.next_seq(), call, depth, parking, apart };
            state.meta.seq_floor = step.block + limits::BLOCK - 1;
            state.meta.update(sql)?;
            AttemptState { block: step.block, attempt: 1, stream: 1, ..AttemptState::default() }
                .store(state, sql, step)?;
            Ok((SubpromptStep::Ask(step), None))
        })?;
        if let (SubpromptStep::Ask(step), Some(stream)) = (&opened, stream) {
            self.announce_reset(step.block, stream, step.depth)?;
        }
        Ok(opened)
    }

    /// Stores the model's reply.
    fn store_inner(
        &self,
        scope: &Scope,
        definitions: &Definitions<'_>,
        step: Step,
        answer: AttemptReply,
    ) -> Result<SharedRow> {
        let now = self.host.now_us();
        let AttemptReply { reply, attempt, underway } = answer;
        let row = self.transition(|state, sql| {
            let row = Row {
                parent: scope.receipt,
                depth: scope.depth,
                ..reply_row(state, definitions, step, reply, now)
            };
            state.log_attempt(sql, &attempt)?;
            state.calibrate(sql, &attempt)?;
            if let Ok(run) = state.active_mut()
                && let Some(ledger) = &mut run.ledger
            {
                ledger.charge_logged(&attempt);
            }
            state.insert(sql, row)
        })?;
        drop(underway);
        self.log_bodies(&attempt);
        self.announce_reply(&row, &attempt)?;
        Ok(row)
    }
}
