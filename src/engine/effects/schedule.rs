//! Schedules, lists, cancels and replays effects: for clients (spec §27.5) and for code (spec §10.3).

use serde_json::Value;

use crate::definitions::{ReferenceKind, schema};
use crate::engine::export::detached::Recurrence;
use crate::engine::features::Effects;
use crate::engine::thread::Thread;
use crate::error::{Code, Error, Result};
use crate::json;
use crate::limits;
use crate::page::Page;
use crate::protocols::responses::values::{EffectAction, EffectChanged, EffectPage, Initiator, OneEffect};
use crate::request::fields::{Body, shallow};
use crate::request::{Query, Reply, ThreadRequest};
use crate::sdk::effects::{NewEffect, at_time};
use crate::sdk::scope::Scope;
use crate::store::effects as rows;
use crate::store::effects::{Effect, Status, effect_id, tally};
use crate::store::idempotency::Key;
use crate::store::repeat::{Repeat, Repetition};

/// A new effect with its time settled.
struct SubagentCall {
    name: String,
    args: Value,
    /// Microseconds since 1970; `None` for the next time of `repeat`.
    from: Option<i64>,
    /// The field with the time.
    field: &'static str,
    repeat: Option<Repeat>,
}

impl Effects<'_> {
    /// `POST …/effects`: `{name, args?, delay? | at?, every? | cron?}`.
    pub(crate) fn post_effect(&self, request: &ThreadRequest) -> Result<Reply> {
        let key = Key::of(request, "effects")?;
        let now = self.host.now_us();
        let mut body =
            Body::parse(&request.body)?.known(&["name", "args", "delay", "at", "every", "cron"])?;
        let name = body.string("name")?.ok_or_else(|| Error::missing("name"))?;
        let name = self.named(&Scope::default(), "name", &name, ReferenceKind::Effect)?.into_owned();
        let args = body.take("args").unwrap_or_else(|| json!({}));
        let delay = body.whole("delay")?;
        let (from, field) = match (delay, body.take("at")) {
            (Some(_), Some(_)) => return Err(Error::field("at", "Give `delay` or `at`, not both.")),
            (Some(delay), None) => (Some(after("delay", delay, now)?), "delay"),
            (None, Some(at)) => (Some(at_time(&at)?), "at"),
            (None, None) => (None, "cron"),
        };
        let repeats = match (body.whole("every")?, body.string("cron")?) {
            (Some(_), Some(_)) => return Err(Error::field("cron", "Give `every` or `cron`, not both.")),
            (Some(ms), None) => Repetition::Every(ms),
            (None, Some(text)) => Repetition::Cron(text),
            (None, None) => Repetition::Once,
        };
        let repeat = Repeat::of(&repeats)?;
        let wanted = SubagentCall { name, args, from, field, repeat };
        let id = self.schedule(wanted, key.as_ref(), &Scope::default())?;
        self.read(|state, sql| {
            let effect = rows::by_id(sql, id)?
                .ok_or_else(|| Error::internal("the effect went away as it was scheduled"))?;
            Ok(Reply::json(201, &OneEffect { effect: effect.response(&state.meta.stem) }))
        })
    }

    /// Schedules an effect for code that runs in `by`. Returns its id.
    pub(crate) fn schedule_effect(&self, effect: NewEffect, by: &Scope) -> Result<String> {
        let now = self.host.now_us();
        let repeat = Repeat::of(&effect.repeats)?;
        let (from, field) = match (effect.delay_ms, effect.at_us) {
            (Some(_), Some(_)) => return Err(Error::field("at", "Give `delay` or `at`, not both.")),
            (Some(ms), None) => (Some(after("delay", ms, now)?), "delay"),
            (None, Some(at)) => (Some(at), "at"),
            (None, None) => (None, "cron"),
        };
        let wanted = SubagentCall { name: effect.name, args: effect.args, from, field, repeat };
        let id = self.schedule(wanted, None, by)?;
        self.read(|state, _| Ok(effect_id(&state.meta.stem, id)))
    }

    /// One transition: the row and the alarm.
    fn schedule(&self, wanted: SubagentCall, key: Option<&Key>, by: &Scope) -> Result<i64> {
        let now = self.host.now_us();
        if let Some(id) = self.read(|_, sql| key.map_or(Ok(None), |key| key.replayed(sql, now)))? {
            return Ok(id);
        }
        let SubagentCall { name, args, from, field, repeat } = wanted;
        self.check_effect(&name, &args)?;
        let at = match (&repeat, from) {
            (None, from) => from.unwrap_or(now),
            (Some(Repeat::Every(ms)), None) => now + ms * 1_000,
            (Some(repeat), from) => repeat.first(from.unwrap_or(now))?,
        };
        if at > now + limits::EFFECT_AHEAD_US {
            return Err(Error::field(field, "An effect is due within ten years; this one would be later."));
        }
        let repeats = repeat.map(|repeat| repeat.to_text());
        let occurrence = i64::from(repeats.is_some());
        let effect = Effect { repeats, occurrence, ..Effect::new(name, args.to_string(), at, now) };
        self.add_effect(effect, key, by, now)
    }

    fn add_effect(&self, mut effect: Effect, key: Option<&Key>, by: &Scope, now: i64) -> Result<i64> {
        let effect = self.transition(|state, sql| {
            state.ensure_not_terminated()?;
            let open = tally::counts(state, sql)?.open;
            if open >= limits::EFFECTS {
                let message = format!("{open} effects are scheduled already, the most that a thread holds.");
                // There is room after the next one has run.
                let wait_us = tally::next_due(state, sql)?
                    .map_or(0, |at| at - now)
                    .clamp(0, limits::RETRY_AFTER_MAX_US);
                let mut error = Error::new(Code::QueueFull, message);
                error.retry_after_s = u32::try_from(wait_us / limits::SECOND_US + 1).ok();
                return Err(error);
            }
            effect.insert(sql)?;
            if let Some(key) = key {
                key.insert(sql, effect.id, now)?;
            }
            self.telemetry().link_effect(state, sql, &effect, by)?;
            state.effects.set(state.effects.get().scheduled(effect.at_us));
            self.arm_at(state, sql, effect.at_us, now)?;
            Ok(effect)
        })?;
        // A handler that is running waits in memory, maybe for longer.
        self.ephemeral.notify_alarm();
        self.announce_effect(&effect)?;
        Ok(effect.id)
    }

    /// Checks that the effect is defined and accepts these arguments.
    fn check_effect(&self, name: &str, args: &Value) -> Result<()> {
        let Some(definition) = self.catalog.effects.get(name) else {
            let names: Vec<&str> = self.catalog.effects.keys().map(String::as_str).collect();
            let error = Error::field("name", format!("No effect named “{name}”."));
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(error.hint(format!("Effects: {names}.")));
        };
        shallow("args", args)?;
        let bytes = args.to_string().len();
        if bytes > limits::EFFECT_ARGS_BYTES {
            let limit = limits::EFFECT_ARGS_BYTES;
            let message = format!("`args` has {bytes} bytes as JSON; the limit is {limit}.");
            return Err(Error::new(Code::TooLarge, message).at("args"));
        }
        let problems = definition.validate(args);
        if problems.is_empty() {
            return Ok(());
        }
        Err(Error::field("args", format!("Invalid arguments for “{name}”: {}", schema::lines(&problems))))
    }

    /// `GET …/effects`: pending ones, next first, then ended ones, last first.
    pub(crate) fn list_effects(&self, query: &Query) -> Result<Reply> {
        let limit = query.number("limit", limits::PAGE_DEFAULT, limits::PAGE_MAX)?;
        let offset = query.number("offset", 0, u32::MAX)?;
        self.read(|state, sql| {
            let counts = tally::counts(state, sql)?;
            let (thread, mut page) = (&state.meta.stem, Page::new(limit));
            if offset < counts.open {
                rows::upcoming(sql, thread, &mut page, offset)?;
            }
            if page.room() > 0 {
                rows::ended(sql, thread, &mut page, offset.saturating_sub(counts.open))?;
            }
            let total = counts.open + counts.ended;
            let has_more = offset as usize + page.len() < total as usize;
            let (effects, upcoming_count) = (page.into_rows(), counts.open);
            Ok(Reply::json(200, &EffectPage { effects, total, upcoming_count, limit, offset, has_more }))
        })
    }

    /// `GET …/effects/:id`.
    pub(crate) fn get_effect(&self, id: &str) -> Result<Reply> {
        self.read(|state, sql| {
            let effect = rows::find(&state.meta.stem, sql, id)?;
            Ok(Reply::json(200, &OneEffect { effect: effect.response(&state.meta.stem) }))
        })
    }

    /// Pending effects, for code.
    ///
    /// # Errors
    /// `too_large` if together they exceed [`limits::LIST_BYTES`].
    pub(crate) fn scheduled_effects(&self, name: Option<&str>) -> Result<Vec<Value>> {
        self.read(|state, sql| {
            let mut page = Page::of_bytes(limits::EFFECTS, limits::LIST_BYTES);
            rows::scheduled(sql, &state.meta.stem, &mut page, name)?;
            if page.has_more() {
                let bytes = limits::LIST_BYTES;
                let message = format!("The effects to come have more than {bytes} bytes together as JSON.");
                return Err(Error::new(Code::TooLarge, message)
                    .hint("Ask for those of one name, or over HTTP, which gives them in pages."));
            }
            Ok(page.into_rows())
        })
    }

    /// `POST …/effects/:id/cancel`. A repeating effect does not occur again. An attempt in progress
    /// continues.
    pub(crate) fn cancel_effect(&self, id: &str, by: Initiator) -> Result<Reply> {
        let now = self.host.now_us();
        let effect = self.transition(|state, sql| {
            state.ensure_not_terminated()?;
            let mut effect = rows::find(&state.meta.stem, sql, id)?;
            match effect.status {
                Status::Pending => {
                    effect.status =
                        if by == Initiator::User { Status::UserCanceled } else { Status::AgentCanceled };
                    effect.at_us = now;
                    state.effects.set(state.effects.get().moved(-1, 1));
                    self.telemetry().effect_is_over(state, sql, &effect, Recurrence::NoMore, now)?;
                }
                Status::Processing if effect.repeats.is_some() => effect.repeats = None,
                Status::Processing => return Err(conflict(id, "is running")),
                _ => return Err(conflict(id, "has ended")),
            }
            effect.update(sql)?;
            tally::prune(state, sql, now)?;
            self.rearm(state, sql, now)?;
            Ok(effect)
        })?;
        self.announce_effect(&effect)?;
        let (action, canceled_by) = (EffectAction::Canceled, Some(by));
        Ok(Reply::json(200, &EffectChanged { action, id, canceled_by, replayed_id: None }))
    }

    /// `POST …/effects/:id/run`: a waiting effect becomes due now. For an ended or a repeating effect, a copy
    /// becomes due.
    pub(crate) fn run_effect_now(&self, id: &str) -> Result<Reply> {
        let now = self.host.now_us();
        let effect = self.read(|state, sql| {
            state.ensure_not_terminated()?;
            rows::find(&state.meta.stem, sql, id)
        })?;
        match effect.status {
            Status::Processing => Err(conflict(id, "is running")),
            Status::Pending if effect.repeats.is_none() => {
                let effect = self.transition(|state, sql| {
                    let mut effect = effect;
                    effect.at_us = now;
                    effect.update(sql)?;
                    state.effects.set(state.effects.get().moved(0, 0));
                    self.arm_at(state, sql, now, now)?;
                    Ok(effect)
                })?;
                self.ephemeral.notify_alarm();
                self.announce_effect(&effect)?;
                let action = EffectAction::Ran;
                Ok(Reply::json(200, &EffectChanged { action, id, canceled_by: None, replayed_id: None }))
            }
            _ => {
                let args: Value = crate::json::from_str(&effect.args).unwrap_or(Value::Null);
                self.check_effect(&effect.name, &args)?;
                let replay_of = Some(effect.id);
                let copy = Effect { replay_of, ..Effect::new(effect.name, effect.args, now, now) };
                let copy = self.add_effect(copy, None, &Scope::default(), now)?;
                let copy = self.read(|state, _| Ok(effect_id(&state.meta.stem, copy)))?;
                let (action, replayed_id) = (EffectAction::Replayed, Some(copy));
                Ok(Reply::json(200, &EffectChanged { action, id, canceled_by: None, replayed_id }))
            }
        }
    }

    /// Sends the state of an effect to listeners.
    pub(super) fn announce_effect(&self, effect: &Effect) -> Result<()> {
        if !self.has_listeners() {
            return Ok(());
        }
        let effect = self.read(|state, _| Ok(json!(effect.response(&state.meta.stem))))?;
        self.emit("effect_changed", effect);
        Ok(())
    }
}

/// For code: returns whether there was an effect that could be cancelled.
pub(crate) fn remove(thread: &Thread, id: &str) -> Result<bool> {
    match thread.effects().cancel_effect(id, Initiator::Agent) {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.code, Code::NotFound | Code::Conflict) => Ok(false),
        Err(error) => Err(error),
    }
}

fn after(field: &str, ms: i64, now: i64) -> Result<i64> {
    let most = limits::EFFECT_AHEAD_US / 1_000;
    if !(0..=most).contains(&ms) {
        return Err(Error::field(field, format!("`{field}` is 0 to {most} milliseconds, not {ms}.")));
    }
    Ok(now + ms * 1_000)
}

fn conflict(id: &str, why: &str) -> Error {
    Error::new(Code::Conflict, format!("The effect “{id}” {why}."))
}
