//! Running effects. The alarm's handler starts the effects that are due, in parallel with a run if there is
//! one. An attempt is counted before it is made, and may be repeated with the same idempotency key. A failure
//! of one effect does not affect others.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use futures::future::abortable;
use serde_json::{Map, Value};

use crate::definitions::{Implementation, schema};
use crate::engine::ephemeral::RunningEffect;
use crate::engine::export::detached::Recurrence;
use crate::engine::features::Effects;
use crate::engine::operator::Failure;
use crate::engine::thread::Thread;
use crate::env::Redacted;
use crate::error::Result;
use crate::host::Sql;
use crate::json;
use crate::sdk::scope::{EntryMode, Origin, Scope};
use crate::store::detached_work::WorkKind;
use crate::store::effects as rows;
use crate::store::effects::{Effect, Status, tally};
use crate::store::log_record::Event;
use crate::store::state::State;
use crate::work::ExecutionPlan;
use crate::work::native::EffectCall;
use crate::{limits, work};

/// Number of requests that effects have sent in one alarm event. The platform limits them.
#[derive(Debug, Default)]
pub(crate) struct RequestCount(pub(crate) u32);

/// The remaining work after all possible effects were started.
#[derive(Debug, Default)]
pub(crate) struct RemainingWork {
    /// The due time of the next effect in the future, microseconds since 1970.
    pub(crate) next: Option<i64>,
    /// Whether others are due but this event has reached its limit. They continue in a new event.
    pub(crate) spent: bool,
}

/// An attempt to run.
struct Attempt {
    id: i64,
    /// Name of the definition.
    name: String,
    args: Value,
    attempt: u32,
    scheduled_us: i64,
    /// Its idempotency key within the thread.
    own: String,
    key: String,
    /// Whether it sends a request.
    sends: bool,
}

impl Effects<'_> {
    /// Starts effects that are due, up to the limits.
    pub(crate) fn start_effects(&self, begun: &mut RequestCount) -> Result<RemainingWork> {
        let now = self.host.now_us();
        let none = self.read(|state, sql| Ok(tally::next_due(state, sql)?.is_none()))?;
        if none {
            return Ok(RemainingWork::default());
        }
        let (processing, mut next) = self.read(|_, sql| rows::outlook(sql))?;
        let running = self.ephemeral.effects.borrow().len();
        let due = next.is_some_and(|at| at <= now);
        if processing > running || (due && self.room(begun) > 0) {
            let room = self.room(begun);
            let (attempts, over) = self.transition(|state, sql| self.take(state, sql, room, now))?;
            for effect in over {
                self.report_effect_failure(&effect)?;
                self.announce_effect(&effect)?;
            }
            for attempt in attempts {
                begun.0 += u32::from(attempt.sends);
                self.start_attempt(attempt);
            }
            (_, next) = self.read(|_, sql| rows::outlook(sql))?;
        }
        if next.is_some_and(|at| at <= now) {
            // Effects that are due wait for a slot, and are checked again when one is free.
            next = self.read(|_, sql| rows::next_after(sql, now))?;
            return Ok(RemainingWork { next, spent: begun.0 >= self.outgoing_limit() && self.places() > 0 });
        }
        Ok(RemainingWork { next, spent: false })
    }

    /// Number of effects that may be started now.
    fn room(&self, begun: &RequestCount) -> usize {
        self.places().min(self.outgoing_limit().saturating_sub(begun.0) as usize)
    }

    /// Number of effects that may run in addition to the current ones.
    fn places(&self) -> usize {
        limits::EFFECTS_AT_ONCE.saturating_sub(self.ephemeral.effects.borrow().len())
    }

    /// Due effects that start now, earliest first, at most `room`. An effect starts only while effects of its
    /// name hold fewer slots than are free. This leaves slots for other names when effects hang.
    fn chosen(&self, sql: &dyn Sql, room: usize, now: i64) -> Result<Vec<i64>> {
        let mut held: BTreeMap<String, usize> = BTreeMap::new();
        for effect in self.ephemeral.effects.borrow().values() {
            *held.entry(effect.name.clone()).or_insert(0) += 1;
        }
        let (mut free, mut chosen) = (self.places(), Vec::new());
        rows::each_due(sql, now, |id, name| {
            if chosen.len() >= room {
                return ControlFlow::Break(());
            }
            let held = held.entry(name.to_owned()).or_insert(0);
            if *held < free {
                (*held, free) = (*held + 1, free - 1);
                chosen.push(id);
            }
            ControlFlow::Continue(())
        })?;
        Ok(chosen)
    }

    /// Counts the attempts that are made now, and fails effects that cannot run. Attempts that were lost in a
    /// crash or a panic count as failed. Returns the attempts, and the effects that changed without one.
    fn take(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        room: usize,
        now: i64,
    ) -> Result<(Vec<Attempt>, Vec<Effect>)> {
        let (mut attempts, mut over) = (Vec::new(), Vec::new());
        for effect in rows::processing(sql)? {
            if !self.ephemeral.effects.borrow().contains_key(&effect.id) {
                let error = self.variables().shown("The process was lost in the middle of it.".to_owned());
                over.push(self.failed(state, sql, effect, error, now)?);
            }
        }
        for id in self.chosen(sql, room, now)? {
            let Some(mut effect) = rows::by_id(sql, id)? else { continue };
            match self.ready(&effect) {
                Err(error) => {
                    let error = self.variables().shown_within(state, sql, error)?;
                    over.push(self.end(state, sql, effect, Status::Failed, Some(error), now)?);
                }
                Ok((args, sends)) => {
                    effect.status = Status::Processing;
                    effect.attempts += 1;
                    effect.update(sql)?;
                    self.telemetry().effect_begins(state, sql, &effect, now)?;
                    attempts.push(Attempt {
                        id: effect.id,
                        own: effect.key(),
                        key: effect.idempotency_key(&state.meta.stem),
                        name: effect.name,
                        args,
                        attempt: effect.attempts,
                        scheduled_us: effect.scheduled_us,
                        sends,
                    });
                }
            }
        }
        state.effects.set(state.effects.get().moved(0, 0));
        Ok((attempts, over))
    }

    /// The arguments and whether it sends a request, or the reason for which it cannot run, today or ever.
    fn ready(&self, effect: &Effect) -> Result<(Value, bool), String> {
        if effect.status != Status::Pending {
            return Err("Its row is damaged.".to_owned());
        }
        if let Err(error) = effect.repeat() {
            return Err(error.into_message());
        }
        let name = &effect.name;
        let definition =
            self.catalog.effects.get(name).ok_or_else(|| format!("There is no effect “{name}” any more."))?;
        let args: Value = crate::json::from_str(&effect.args)
            .map_err(|error| format!("Its stored arguments are no JSON: {error}."))?;
        let invalid = |problems: &[_]| format!("Invalid arguments for “{name}”: {}", schema::lines(problems));
        let problems = definition.validate(&args);
        if !problems.is_empty() {
            return Err(invalid(&problems));
        }
        let args = match &definition.args {
            Some(schema) => schema::with_defaults(schema, args).map_err(|problems| invalid(&problems))?,
            None => args,
        };
        Ok((args, matches!(definition.run, Implementation::Http(_))))
    }

    /// Runs an attempt in parallel with other work.
    fn start_attempt(&self, attempt: Attempt) {
        let (id, name) = (attempt.id, attempt.name.clone());
        let running = AttemptGuard { thread: self.0.clone(), id };
        let thread = self.0.clone();
        let (work, abort) = abortable(async move {
            let _running = running;
            let outcome = thread
                .effects()
                .attempt_effect(attempt)
                .await
                .map_err(|error| thread.variables().shown(error));
            if let Err(error) = thread.effects().attempt_ended(id, outcome) {
                // Its row says that it is in progress, but nothing runs it. The next check treats it as lost.
                thread.variables().log(&format!("the end of an effect could not be stored: {error}"));
            }
        });
        self.ephemeral.effects.borrow_mut().insert(id, RunningEffect { name, abort });
        self.host.spawn(Box::pin(async move {
            // The caller that aborted an attempt has ended its row.
            let _aborted = work.await;
        }));
    }

    async fn attempt_effect(&self, attempt: Attempt) -> Result<(), String> {
        let Some(definition) = self.catalog.effects.get(&attempt.name) else {
            return Err(format!("There is no effect “{}” any more.", attempt.name));
        };
        let identity = self.read(|state, _| {
            let id = rows::effect_id(&state.meta.stem, attempt.id);
            Ok((state.meta.thread_id.clone(), state.meta.agent.clone(), id))
        });
        let (thread_id, agent_id, effect_id) = identity.map_err(|error| error.into_message())?;
        if !definition.variables.is_empty() {
            self.variables().refresh_env().await.map_err(|error| error.into_message())?;
        }
        let env = |name: &str| self.variables().agent_env(&agent_id, name);
        for variable in definition.variables.iter().filter(|variable| variable.required) {
            if env(&variable.name).is_none() {
                return Err(format!("“{}” needs a value for {}.", attempt.name, variable.name));
            }
        }
        let declared = definition.variables.iter().filter_map(|variable| {
            env(&variable.name).map(|value| (variable.name.clone(), Value::String(value)))
        });
        // A repeated attempt finds the calls of earlier ones.
        let entered = if attempt.attempt > 1 { EntryMode::Again } else { EntryMode::First };
        let own = attempt.own;
        let origin = Origin::Effect(json!({ "id": effect_id, "name": attempt.name }));
        let package = self.catalog.packages.of(&attempt.name);
        let trace = self.traces().trace_of_work(WorkKind::Effect.as_str(), &own);
        let scope = Scope::beside(origin, &own, entered).in_package(package).in_trace(trace.clone());
        let call = EffectCall {
            native: String::new(),
            name: attempt.name.clone(),
            args: attempt.args,
            thread_id,
            effect_id,
            idempotency_key: attempt.key,
            attempt: attempt.attempt,
            scheduled_us: attempt.scheduled_us,
            now_us: self.host.now_us(),
            random: self.host.random(),
            env: declared.collect::<Map<_, _>>(),
            sleep: self.sleep(),
            state: self.state_in(scope),
            agent_id: agent_id.clone(),
        };
        let trace = || trace.clone();
        let plan = ExecutionPlan {
            run: &definition.run,
            limit_ms: Some(definition.timeout_ms.unwrap_or(limits::EFFECT_NATIVE_MS)),
            http_ms: definition.timeout_ms,
            env: &env,
            trace: &trace,
        };
        let detached = self.begin_detached(&call.state).map_err(|error| error.into_message())?;
        let ended = work::run(self.work_context(), plan, call).await;
        self.end_detached(detached).map_err(|error| error.into_message())?;
        ended.map_err(|failure| failure.of("it"))
    }

    /// Stores the outcome of an attempt, unless the thread was terminated meanwhile.
    fn attempt_ended(&self, id: i64, outcome: Result<(), Redacted>) -> Result<()> {
        let now = self.host.now_us();
        let changed = self.transition(|state, sql| {
            let effect = rows::by_id(sql, id)?.filter(|effect| effect.status == Status::Processing);
            let Some(effect) = effect else { return Ok(None) };
            let effect = match outcome {
                Ok(()) => self.end(state, sql, effect, Status::Completed, None, now)?,
                Err(error) => self.failed(state, sql, effect, error, now)?,
            };
            self.rearm(state, sql, now)?;
            Ok(Some(effect))
        })?;
        let Some(effect) = changed else { return Ok(()) };
        self.report_effect_failure(&effect)?;
        self.announce_effect(&effect)
    }

    /// Logs an effect that has failed permanently, for the operator.
    fn report_effect_failure(&self, effect: &Effect) -> Result<()> {
        if effect.status != Status::Failed {
            return Ok(());
        }
        self.report_failure(Failure {
            what: format!("the effect \"{}\" (attempts: {})", effect.name, effect.attempts),
            code: None,
            error: self.variables().shown(effect.error.clone().unwrap_or_default()),
            log: None,
        })
    }

    /// Handles a failed attempt: schedules another one after a pause, or gives the effect up.
    fn failed(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        mut effect: Effect,
        error: Redacted,
        now: i64,
    ) -> Result<Effect> {
        let definition = self.catalog.effects.get(&effect.name);
        let limit = definition.and_then(|found| found.attempts).unwrap_or(limits::EFFECT_ATTEMPTS);
        if effect.attempts >= limit {
            return self.end(state, sql, effect, Status::Failed, Some(error), now);
        }
        let pause = limits::BACKOFF_US << effect.attempts.saturating_sub(1).min(20);
        effect.status = Status::Pending;
        effect.at_us = now + pause.min(limits::EFFECT_BACKOFF_MAX_US);
        effect.error = Some(error.cut(limits::HTTP_TOOL_ERROR_BYTES).into());
        effect.update(sql)?;
        state.effects.set(state.effects.get().moved(0, 0));
        Ok(effect)
    }

    /// Ends the effect, or this occurrence. An occurrence gets its own row, and the next one becomes due.
    fn end(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        mut effect: Effect,
        status: Status,
        error: Option<Redacted>,
        now: i64,
    ) -> Result<Effect> {
        let error = error.map(|error| error.cut(limits::HTTP_TOOL_ERROR_BYTES));
        if let Some(error) = &error {
            let id = rows::effect_id(&state.meta.stem, effect.id);
            Event::effect_failure(&id, &effect.name, effect.attempts, error).insert(sql, now)?;
        }
        let error: Option<String> = error.map(String::from);
        // An effect with an invalid repetition ends here.
        let next = effect.repeat().ok().flatten().and_then(|repeat| repeat.next(effect.scheduled_us, now));
        let comes = if next.is_some() { Recurrence::Again } else { Recurrence::NoMore };
        let ended = Effect { status, error: error.clone(), ..effect.clone() };
        self.telemetry().effect_is_over(state, sql, &ended, comes, now)?;
        let Some(next) = next else {
            effect = Effect { status, at_us: now, error, ..effect };
            effect.update(sql)?;
            state.effects.set(state.effects.get().moved(-1, 1));
            tally::prune(state, sql, now)?;
            return Ok(effect);
        };
        let mut over = Effect {
            status,
            at_us: now,
            repeats: None,
            of: Some(effect.id),
            error: error.clone(),
            ..effect.clone()
        };
        over.insert(sql)?;
        let occurrence = effect.occurrence + 1;
        effect = Effect {
            status: Status::Pending,
            at_us: next,
            scheduled_us: next,
            occurrence,
            attempts: 0,
            error,
            ..effect
        };
        effect.update(sql)?;
        state.effects.set(state.effects.get().moved(0, 1));
        tally::prune(state, sql, now)?;
        Ok(over)
    }

    /// Aborts the attempts in progress at their next await. The caller has already ended their rows.
    pub(crate) fn abort_effects(&self) {
        let running = std::mem::take(&mut *self.ephemeral.effects.borrow_mut());
        for effect in running.into_values() {
            effect.abort.abort();
        }
        self.ephemeral.notify_alarm();
    }
}

/// An attempt in progress. Dropping it frees its slot.
struct AttemptGuard {
    thread: Thread,
    id: i64,
}

impl Drop for AttemptGuard {
    fn drop(&mut self) {
        self.thread.ephemeral.effects.borrow_mut().remove(&self.id);
        self.thread.ephemeral.notify_alarm();
    }
}
