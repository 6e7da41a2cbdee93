//! Effects that code schedules (spec §10.3).

use serde_json::Value;

use crate::dates::{Edge, instant};
use crate::error::{Error, Result};
use crate::limits;
use crate::store::repeat::Repetition;

/// An effect to schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEffect {
    /// The definition's name.
    pub name: String,
    /// Its arguments: an object, stored as it is now.
    pub args: Value,
    /// When it is due, in milliseconds from now. `None` on an effect with an interval means after one
    /// interval.
    pub delay_ms: Option<i64>,
    /// When it is due, in microseconds since 1970, instead of `delay_ms`. A time in the past is due at once.
    pub at_us: Option<i64>,
    /// Whether it repeats.
    pub repeats: Repetition,
}

impl NewEffect {
    /// An effect that runs once, after `delay_ms` milliseconds.
    pub fn once(name: impl Into<String>, args: Value, delay_ms: i64) -> NewEffect {
        NewEffect {
            name: name.into(),
            args,
            delay_ms: Some(delay_ms),
            at_us: None,
            repeats: Repetition::Once,
        }
    }
}

/// Reads a date, or milliseconds since 1970. Numbers outside the years 1973 to 5138 are refused: they are
/// probably seconds, or another unit.
pub(crate) fn at_time(at: &Value) -> Result<i64> {
    match at {
        Value::String(text) => instant("at", text, Edge::Start),
        Value::Number(number) => number
            .as_i64()
            .filter(|ms| (limits::EFFECT_AT_MIN_MS..limits::EFFECT_AT_MAX_MS).contains(ms))
            .map(|ms| ms * 1_000)
            .ok_or_else(|| {
                Error::field("at", format!("`at` is a date or milliseconds since 1970, not {number}."))
                    .hint("Seconds times 1,000 are milliseconds; `delay` counts from now.")
            }),
        other => instant("at", &other.to_string(), Edge::Start),
    }
}
