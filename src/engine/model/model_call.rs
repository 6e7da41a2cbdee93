//! One call of the model: attempts, fallbacks and their pauses (spec §3.3, §35.20, §35.22). Each is counted
//! in the run's row before the request is sent. The request itself is made by `provider_call`.

use std::fmt::Display;
use std::rc::Rc;

use crate::definitions::Model;
use crate::definitions::model::Provider;
use crate::definitions::retry::EffectivePolicy;
use crate::engine::budget::Reservation;
use crate::engine::budget::exceeded::ExceededLimit;
use crate::engine::definitions::Definitions;
use crate::engine::ephemeral::Partial;
use crate::engine::model::provider_call::{AttemptTimeouts, ProviderGateway, Streaming};
use crate::engine::operator::Failure;
use crate::engine::progress::{Kind as ProgressKind, Line};
use crate::engine::thread::Thread;
use crate::engine::waits::retry::{LaterAttempt, parks};
use crate::error::Result;
use crate::limits;
use crate::models::responses;
use crate::models::{ChatRequest, ProviderCall, ProviderCode, ProviderError, Reply, backoff_us};
use crate::store::log_record::{Attempt, AttemptState};
use crate::store::logs;
use crate::store::runs::Step;
use crate::store::runs::diagnostics::{Diagnostic, Kind};
use crate::store::state::State;
use crate::store::waits::Wait;

/// The outcome of a call of the model.
#[allow(clippy::large_enum_variant, reason = "made once a step and taken apart at once")]
pub(in crate::engine) enum ModelOutcome {
    Answer(AttemptReply),
    /// The provider rejected the request as too long; the caller shortens it and calls again.
    TooLong,
    /// The next fallback is due; the caller builds a request for it and calls again.
    Elsewhere,
    /// Every attempt failed; with the text for people.
    Failed(String),
    /// A limit forbids the next attempt.
    Exceeded(ExceededLimit),
}

/// A reply, with the log of the attempt that returned it.
pub(in crate::engine) struct AttemptReply {
    pub(in crate::engine) reply: Reply,
    pub(in crate::engine) attempt: Attempt,
    /// The reservation for the attempt, released when the reply is stored.
    pub(in crate::engine) underway: Option<Reservation>,
}

/// The next action after a failed attempt.
enum RetryAction {
    /// The same attempt again, with a shorter history.
    Shorten,
    /// The same model again, after this pause in microseconds.
    Retry(i64),
    /// The same, with the run parked during the pause.
    Park(i64),
    /// The next fallback.
    Fallback,
    /// None; with the text for people.
    GiveUp(String),
}

/// A request to a model, with its retry policy.
pub(in crate::engine) struct ModelRequest<'a> {
    pub(in crate::engine) model: &'a Model,
    pub(in crate::engine) policy: &'a EffectivePolicy,
    pub(in crate::engine) request: &'a Rc<ChatRequest>,
    /// Whether the response is streamed.
    pub(in crate::engine) answer: crate::models::ResponseMode,
}

/// The number of attempts at a model of the chain in a step; 0 if there is no such model.
fn allowed(attempts: &[u32], model: u32) -> u32 {
    usize::try_from(model).ok().and_then(|model| attempts.get(model)).copied().unwrap_or(0)
}

/// The text for a response that broke off after a part was shown, and that must not be restarted.
pub(in crate::engine) fn broke_off(model: &Model, why: impl Display) -> String {
    let name = &model.name;
    format!("The model “{name}” broke off in the middle of its answer, which may not begin anew: {why}")
}

/// The wait for the next attempt at the same model.
fn later(step: Step, failed: &Attempt, pause_us: i64) -> LaterAttempt {
    let end = |name: &str| failed.end.as_ref().and_then(|end| end.get(name)?.as_str()).unwrap_or_default();
    LaterAttempt {
        receipt: step.call,
        reply: step.block,
        title: format!("Ask the model “{}” again", failed.model),
        reason: format!("{}: {}", end("error_type"), end("error")),
        pause_us,
    }
}

impl Thread {
    /// The current model in the chain of fallbacks.
    pub(in crate::engine) fn current_model<'a>(
        &self,
        definitions: &Definitions<'a>,
        step: Step,
    ) -> Result<&'a Model> {
        let place = self.tries(step)?.model;
        let last = definitions.chain.len().saturating_sub(1);
        let place = usize::try_from(place).unwrap_or(last).min(last);
        definitions
            .chain
            .get(place)
            .copied()
            .ok_or_else(|| crate::error::Error::internal("a chain of models is empty"))
    }

    /// Calls the model until an attempt succeeds, another request is needed, or all attempts have failed.
    pub(in crate::engine) async fn call_model(
        &self,
        definitions: &Definitions<'_>,
        step: Step,
        request: ChatRequest,
    ) -> Result<ModelOutcome> {
        let model = self.current_model(definitions, step)?;
        let policy = self.retries().model_retry(definitions, model)?;
        let request = Rc::new(request);
        self.budgets().charge_unseen(step, model, &request)?;
        loop {
            let (request, worst) = match self.budgets().afford(model, &request)? {
                Ok(affordable) => affordable,
                Err(exceeded) => return Ok(ModelOutcome::Exceeded(exceeded)),
            };
            let mut attempt = self.begin_attempt(definitions, step, model, &request)?;
            attempt.retry_source = policy.source;
            attempt.worst = worst;
            let underway = self.budgets().begins(step, model, worst);
            let answer = self.way_of_answer(definitions, step, model)?;
            let asked = ModelRequest { model, policy: &policy, request: &request, answer };
            let failed = match self.attempt(step, &asked, &mut attempt).await? {
                Ok(reply) => {
                    attempt.succeed(&reply, model, self.host.now_us());
                    attempt.reckon(model, None);
                    return Ok(ModelOutcome::Answer(AttemptReply { reply, attempt, underway }));
                }
                Err(error) => self.variables().redacted_failure(error),
            };
            attempt.fail(&failed, self.host.now_us());
            attempt.reckon(model, Some(&failed));
            let failed = self.perhaps_too_long(&asked, failed);
            let after = self.after_attempt(definitions, step, &asked, &attempt, &failed)?;
            let parked = self.next_attempt(step, &attempt, &after, model.capabilities.restartable)?;
            drop(underway);
            if matches!(after, RetryAction::Fallback | RetryAction::GiveUp(_)) {
                self.report_given_up(&attempt.model, &failed)?;
            }
            match after {
                RetryAction::Shorten => return Ok(ModelOutcome::TooLong),
                RetryAction::Retry(pause) => {
                    let pause = self.budgets().time_left()?.map_or(pause, |left| pause.min(left));
                    let busy = failed.code == ProviderCode::RateLimit;
                    let how = if busy { "is busy" } else { "did not answer" };
                    self.activity().send_retry(&format!("{} {how}", model.name), step.depth, pause)?;
                    self.retries().pause_before_retry(pause).await;
                }
                RetryAction::Park(_) => return self.waits().end_parked_flow(parked.as_slice()).await,
                RetryAction::Fallback => {
                    self.announce_fallback(&attempt.model, &self.current_model(definitions, step)?.name);
                    return Ok(ModelOutcome::Elsewhere);
                }
                RetryAction::GiveUp(text) => return Ok(ModelOutcome::Failed(text)),
            }
        }
    }

    /// Reports a model that is given up to the operator.
    fn report_given_up(&self, model: &str, failed: &ProviderError) -> Result<()> {
        let code = crate::json!(failed.code);
        self.report_failure(Failure {
            what: format!("the model \"{model}\""),
            code: code.as_str(),
            error: self.variables().shown(failed.message.clone()),
            log: None,
        })
    }

    /// The response mode of the next attempt. Some proxies break streams and nothing else. If two streams of
    /// a model broke before they began, its last attempt requests the response in one piece. The broken
    /// streams are counted from the log, so that the count survives a restart. Only the last attempt reads
    /// it.
    fn way_of_answer(
        &self,
        definitions: &Definitions<'_>,
        step: Step,
        model: &Model,
    ) -> Result<crate::models::ResponseMode> {
        let usual = model.answer();
        let tries = self.tries(step)?;
        let last = tries.attempt >= allowed(&self.retries().attempts_of(definitions)?, tries.model);
        if !last || tries.attempt <= limits::BROKEN_STREAMS {
            return Ok(usual);
        }
        let broken = self.read(|_, sql| logs::broken_streams(sql, step.block, &model.name))?;
        Ok(if broken < limits::BROKEN_STREAMS { usual } else { crate::models::ResponseMode::Whole })
    }

    /// Treats an unrecognized rejection as "too long" if it may mean that, and if the request has more than
    /// half of the tokens of the model's assumed window.
    fn perhaps_too_long(&self, asked: &ModelRequest<'_>, failed: ProviderError) -> ProviderError {
        let window = asked.model.capabilities.max_context_tokens.unwrap_or(limits::WINDOW_TOKENS);
        let is_long = || asked.request.text_tokens() as u64 > window / 2;
        match failed.may_mean_length() && is_long() {
            true => ProviderError { code: ProviderCode::ContextLength, ..failed },
            false => failed,
        }
    }

    /// The action after a failed attempt. A run without time left makes no other attempt, whatever the
    /// failure was.
    fn after_attempt(
        &self,
        definitions: &Definitions<'_>,
        step: Step,
        asked: &ModelRequest<'_>,
        attempt: &Attempt,
        failed: &ProviderError,
    ) -> Result<RetryAction> {
        if attempt.first_us.is_some() && !asked.model.capabilities.restartable {
            return Ok(RetryAction::GiveUp(broke_off(asked.model, format_args!("{failed}."))));
        }
        let after = self.after(definitions, step, asked.policy, failed)?;
        let late = attempt.worst.is_some() && self.budgets().time_left()? == Some(0);
        Ok(if late { RetryAction::Retry(0) } else { after })
    }

    fn after(
        &self,
        definitions: &Definitions<'_>,
        step: Step,
        policy: &EffectivePolicy,
        failed: &ProviderError,
    ) -> Result<RetryAction> {
        // The history is halved once in a step. A model that still finds it too long is given up.
        if failed.code == ProviderCode::ContextLength
            && self.ephemeral.requests.halved.replace(Some(step.block)) != Some(step.block)
        {
            return Ok(RetryAction::Shorten);
        }
        let tries = self.tries(step)?;
        let attempts = self.retries().attempts_of(definitions)?;
        let retries = policy.retries(failed.may_pass(), failed.retryable());
        Ok(if retries && tries.attempt < allowed(&attempts, tries.model) {
            let pause = backoff_us(policy, tries.attempt, self.host.random(), failed.retry_after_ms);
            if parks(policy, step.parking, pause) {
                RetryAction::Park(pause)
            } else {
                RetryAction::Retry(pause)
            }
        } else if allowed(&attempts, tries.model + 1) > 0 {
            RetryAction::Fallback
        } else {
            let name = &self.current_model(definitions, step)?.name;
            RetryAction::GiveUp(format!("The model “{name}” could not answer: {failed}."))
        })
    }

    /// Logs the failed attempt and counts the next one, in one transition before it is made. Returns the wait
    /// if the run is parked. `restartable`: if false, clients were shown nothing that they would have to
    /// drop.
    fn next_attempt(
        &self,
        step: Step,
        failed: &Attempt,
        after: &RetryAction,
        restartable: bool,
    ) -> Result<Option<Wait>> {
        let (stream, parked) = self.transition(|state, sql| {
            state.log_attempt(sql, failed)?;
            self.charge_failed(state, failed);
            self.note_failed(state, step, failed, after);
            let mut tries = AttemptState::of(state, sql, step)?;
            match after {
                RetryAction::Shorten => {}
                RetryAction::Retry(_) | RetryAction::Park(_) => tries.attempt += 1,
                RetryAction::Fallback => {
                    tries.model += 1;
                    tries.attempt = 1;
                }
                RetryAction::GiveUp(text) => {
                    if step.call.is_some() {
                        // When this step is entered again, no further request is sent.
                        tries.failed = Some(text.clone());
                        tries.store(state, sql, step)?;
                    }
                    return Ok((None, None));
                }
            }
            let stream = tries.stream + 1;
            match after {
                // The attempt begins when the step of the call is entered again; none is in progress before.
                RetryAction::Park(_) if step.call.is_some() => tries.logged = tries.stream,
                _ => tries.stream = stream,
            }
            tries.store(state, sql, step)?;
            let parked = match after {
                RetryAction::Park(pause_us) => {
                    Some(self.waits().park_for_attempt(state, sql, later(step, failed, *pause_us))?)
                }
                _ => None,
            };
            Ok((Some(stream), parked))
        })?;
        self.ephemeral
            .snapshots
            .logged
            .set(self.ephemeral.snapshots.logged.get() || failed.snapshot.is_some());
        self.log_bodies(failed);
        if let Some(stream) = stream {
            if step.call.is_none() {
                self.ephemeral.partial.borrow_mut().take();
            }
            if restartable {
                self.announce_reset(step.block, stream, step.depth)?;
            }
        }
        Ok(parked)
    }

    /// Charges the usage of the attempt, and the time until now.
    fn charge_failed(&self, state: &mut State, failed: &Attempt) {
        if let Ok(run) = state.active_mut() {
            self.budgets().charge_time(run, failed.ended_us);
            if let Some(ledger) = &mut run.ledger {
                ledger.charge_logged(failed);
            }
        }
    }

    /// Notes in the run's diagnostics that a model was given up. Its row is written with the next attempt, or
    /// at its end.
    fn note_failed(&self, state: &mut State, step: Step, failed: &Attempt, after: &RetryAction) {
        let (code, what) = match after {
            RetryAction::Fallback => ("fallback", "its fallback is asked"),
            RetryAction::GiveUp(_) => ("retry.exhausted", "no other is left to ask"),
            RetryAction::Shorten | RetryAction::Retry(_) | RetryAction::Park(_) => return,
        };
        // A called prompt stores its attempts elsewhere.
        if let Some(run) = state.run.as_mut().filter(|_| step.call.is_none()) {
            let text = format!("The model \"{}\" did not answer; {what}.", failed.model);
            let subject = ("model", failed.model.as_str());
            run.diagnostics.add(Diagnostic::warning(Kind::Adapter, code, subject, text, failed.ended_us));
        }
    }

    fn begin_attempt(
        &self,
        definitions: &Definitions<'_>,
        step: Step,
        model: &Model,
        request: &ChatRequest,
    ) -> Result<Attempt> {
        let run = self.read(|state, _| Ok(state.active().map_or(0, |run| run.id)))?;
        let stream = self.tries(step)?.stream;
        if step.call.is_none() {
            *self.ephemeral.partial.borrow_mut() =
                Some(Partial { seq: step.block, stream, text: String::new() });
        }
        self.announce_request(&model.name, stream)?;
        if self.activity().wants_progress() {
            let prompt = step.call.map_or_else(String::new, |_| format!(" for {}", definitions.prompt.name));
            let text = format!("Calling {}{prompt}", model.name);
            self.activity().send_progress(
                ProgressKind::ProviderCall,
                Line { text, depth: step.depth, ..Line::default() },
            )?;
        }
        let now = self.host.now_us();
        let mut attempt = Attempt::begin(run, step, stream, model, definitions.prompt, request, now);
        attempt.snapshot = self.first_snapshot(step, stream)?;
        Ok(attempt)
    }

    /// Sends one request to one model.
    pub(in crate::engine) async fn attempt(
        &self,
        step: Step,
        asked: &ModelRequest<'_>,
        attempt: &mut Attempt,
    ) -> Result<Result<Reply, ProviderError>> {
        let ModelRequest { model, policy, request, answer } = *asked;
        let deployment = |name: &str| self.variables().deployment(name);
        if let Some(lack) = crate::models::lacks(model, &deployment) {
            return Ok(Err(ProviderError::not_set_up(&lack)));
        }
        attempt.asked.insert("stream".to_owned(), (answer == crate::models::ResponseMode::Stream).into());
        let base_url = model.base_url(&deployment);
        let api_key = model.key_env().and_then(deployment);
        let background = attempt.purpose.is_none()
            && model.provider == Provider::Openai
            && responses::is_in_background(request);
        // A first attempt has no earlier one.
        let earlier = match &step.call {
            _ if !background || attempt.stream < 2 => None,
            call => {
                let call = call.map_or_else(String::new, |receipt| format!("c_{receipt}"));
                self.read(|_, sql| logs::in_background(sql, step.block, &call, &model.name))?
            }
        };
        let door = Rc::new(ProviderGateway::new(self.clone(), step, attempt.stream));
        let call = ProviderCall {
            provider: model.provider.clone(),
            definition: model.name.clone(),
            request: request.clone(),
            answer,
            base_url,
            api_key: api_key.clone(),
            stream: attempt.stream,
            earlier: earlier.clone(),
            door: door.clone(),
            out: Rc::default(),
        };
        let patience = AttemptTimeouts {
            first_us: model.timeouts.first_chunk_us(),
            stall_us: model.timeouts.stall_us(),
            attempt_us: policy.timeout_us.into_iter().chain(self.budgets().time_left()?).min(),
        };
        // A response that clients do not see can always be restarted.
        let once = !model.capabilities.restartable && attempt.purpose.is_none();
        let streaming = Streaming::new(self, step, request.reasoning.exclude, patience, attempt);
        let streaming = if once { streaming.once() } else { streaming };
        let streaming = if background { streaming.in_background(earlier) } else { streaming };
        let replied = streaming.reply(call).await?;
        attempt.body = door.sent();
        if let Some(why) = door.why_adjusted() {
            attempt.asked.insert("adjusted".to_owned(), why.into());
        }
        attempt.response.hide(api_key.as_deref());
        Ok(replied.map_err(|error| error.hiding(api_key.as_deref().as_slice())))
    }
}
