//! Error of the token estimate for each model of a thread: the provider's count divided by the estimate,
//! smoothed. One column of `meta`, as JSON. It is written when a factor has moved, not with every reply.

use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// Weight of a new report.
const WEIGHT: f64 = 0.2;
const LEAST: f64 = 0.5;
const MOST: f64 = 2.0;
/// Reports that are off by more are ignored: some servers report a constant, or the last message only.
const BELIEVED: f64 = 4.0;
/// Relative change after which a factor is written.
const MOVED: f64 = 0.05;
/// Models with a factor; a thread uses few.
const MODELS: usize = 32;

/// A factor for each model, by the name of its definition.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Calibration {
    factors: Map<String, Value>,
    /// The contents of the column.
    written: Map<String, Value>,
}

impl Calibration {
    /// Parses the column.
    pub(super) fn parse(column: Option<&str>) -> Result<Calibration> {
        let Some(text) = column else { return Ok(Calibration::default()) };
        let written: Map<String, Value> = crate::json::from_str(text)
            .map_err(|error| Error::internal(format!("the stored calibration is damaged: {error}")))?;
        Ok(Calibration { factors: written.clone(), written })
    }

    /// The factor for estimates of a model.
    pub(crate) fn factor(&self, model: &str) -> f64 {
        of(&self.factors, model)
    }

    /// The factor in the column, which is the same after a crash.
    pub(crate) fn kept_factor(&self, model: &str) -> f64 {
        of(&self.written, model)
    }

    /// Adds a provider's report of a request. Returns the column if it must be written.
    pub(super) fn learn(&mut self, model: &str, estimated: usize, reported: u64) -> Option<String> {
        let seen = reported as f64 / estimated as f64;
        let known = self.factors.len() < MODELS || self.factors.contains_key(model);
        if !known || !(1.0 / BELIEVED..=BELIEVED).contains(&seen) {
            return None;
        }
        let before = self.factor(model);
        let factor = before + WEIGHT * (seen.clamp(LEAST, MOST) - before);
        self.factors.insert(model.to_owned(), factor.into());
        if (factor / of(&self.written, model) - 1.0).abs() <= MOVED {
            return None;
        }
        self.written = self.factors.clone();
        for factor in self.written.values_mut() {
            *factor = ((factor.as_f64().unwrap_or(1.0) * 1_000.0).round() / 1_000.0).into();
        }
        Some(Value::Object(self.written.clone()).to_string())
    }
}

fn of(factors: &Map<String, Value>, model: &str) -> f64 {
    factors.get(model).and_then(Value::as_f64).map_or(1.0, |factor| factor.clamp(LEAST, MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_follows_what_is_reported_and_is_written_when_it_has_moved() {
        let mut calibration = Calibration::default();
        assert_eq!(calibration.factor("m"), 1.0);
        let mut columns = Vec::new();
        for _ in 0..40 {
            columns.extend(calibration.learn("m", 1_000, 1_400));
        }
        assert!((calibration.factor("m") - 1.4).abs() < 0.01);
        assert!((3..8).contains(&columns.len()), "{columns:?}");
        assert_eq!(columns[0], r#"{"m":1.08}"#);
        let read = Calibration::parse(columns.last().map(String::as_str)).unwrap();
        assert!((read.factor("m") - 1.4).abs() < 0.08);
        assert_eq!(calibration.learn("m", 1_000, 1_400), None, "what is known is not written again");
        assert_eq!(calibration.factor("other"), 1.0);
    }

    #[test]
    fn it_stays_within_bounds_and_some_reports_say_nothing() {
        let mut calibration = Calibration::default();
        for _ in 0..100 {
            calibration.learn("high", 10, 39);
            calibration.learn("low", 1_000, 300);
            calibration.learn("odd", 1_000, 10);
            calibration.learn("none", 1_000, 0);
            calibration.learn("nothing", 0, 10);
        }
        assert!((calibration.factor("high") - MOST).abs() < 0.01, "{}", calibration.factor("high"));
        assert!((calibration.factor("low") - LEAST).abs() < 0.01, "{}", calibration.factor("low"));
        assert_eq!(["odd", "none", "nothing"].map(|model| calibration.factor(model)), [1.0; 3]);
        assert!(Calibration::parse(Some("[]")).is_err());
        let wild = Calibration::parse(Some(r#"{"m":80,"n":"x"}"#)).unwrap();
        assert_eq!((wild.factor("m"), wild.factor("n")), (MOST, 1.0));
    }

    #[test]
    fn a_thread_keeps_the_factors_of_few_models() {
        let mut calibration = Calibration::default();
        (0..100).for_each(|n| _ = calibration.learn(&format!("m{n}"), 100, 200));
        assert_eq!(calibration.factors.len(), MODELS);
    }
}
