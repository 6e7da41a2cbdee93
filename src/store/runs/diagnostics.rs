//! Problems of a run: entries in its row, one for each code and subject, bounded in number and in bytes. A
//! run without problems has none.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::dates;
use crate::error::{Error, Result};
use crate::limits;
use crate::page::json_bytes;
use crate::protocols::responses::runs as responses;
pub(crate) use crate::protocols::responses::runs::DiagnosticKind as Kind;
use crate::protocols::responses::runs::DiagnosticLevel as Level;
use crate::text::shorten;

/// Whether a strict run ends with a problem of this kind.
const fn is_enforced(kind: Kind) -> bool {
    matches!(kind, Kind::Requirement | Kind::Contract | Kind::Recipe)
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Diagnostic {
    level: Level,
    kind: Kind,
    code: String,
    /// The subject; one entry is kept for each code and subject.
    subject: String,
    /// Text for people.
    message: String,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    data: Map<String, Value>,
    at_us: i64,
}

impl Diagnostic {
    /// A warning. `subject`: the field of its data that names the subject, and the name.
    pub(crate) fn warning(
        kind: Kind,
        code: &str,
        subject: (&str, &str),
        message: impl Into<String>,
        now: i64,
    ) -> Diagnostic {
        let mut message = message.into();
        shorten(&mut message, limits::DIAGNOSTIC_MESSAGE_BYTES);
        let data = Map::from_iter([(subject.0.to_owned(), Value::from(subject.1))]);
        Diagnostic {
            level: Level::Warn,
            kind,
            code: code.to_owned(),
            subject: subject.1.to_owned(),
            message,
            data,
            at_us: now,
        }
    }

    /// Lowers the level to information.
    pub(crate) fn info(self) -> Diagnostic {
        Diagnostic { level: Level::Info, ..self }
    }

    fn is_same(&self, other: &Diagnostic) -> bool {
        self.code == other.code && self.subject == other.subject
    }

    fn response(&self) -> responses::Diagnostic {
        responses::Diagnostic {
            level: self.level,
            kind: self.kind,
            code: self.code.clone(),
            message: self.message.clone(),
            data: self.data.clone(),
            at: dates::iso(self.at_us),
        }
    }
}

/// The diagnostics of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Diagnostics {
    /// Seq of the newest message that makes the run which takes it in strict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    strict: Option<i64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    entries: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Parses the column.
    pub(super) fn parse(column: Option<&str>) -> Result<Diagnostics> {
        column.map_or(Ok(Diagnostics::default()), |text| {
            crate::json::from_str(text)
                .map_err(|error| Error::internal(format!("the diagnostics of a run are damaged: {error}")))
        })
    }

    /// The column; `None` if it is empty.
    pub(super) fn column(&self) -> Result<Option<String>> {
        if *self == Diagnostics::default() {
            return Ok(None);
        }
        serde_json::to_string(self).map(Some).map_err(Error::internal)
    }

    /// The initial diagnostics of the next run, after this one has taken in everything below `block`: keeps
    /// the strict mode of a message that still waits.
    pub(super) fn of_next(&self, block: i64) -> Diagnostics {
        Diagnostics { strict: self.strict.filter(|seq| *seq >= block), entries: Vec::new() }
    }

    /// Makes the run that takes in this message strict.
    pub(crate) fn tighten(&mut self, seq: i64) {
        self.strict = self.strict.max(Some(seq));
    }

    /// Whether a message below this seq, or any message, makes the run strict.
    pub(crate) fn is_strict(&self, below: Option<i64>) -> bool {
        self.strict.is_some_and(|seq| below.is_none_or(|below| seq < below))
    }

    /// Adds an entry if there is room. Returns whether it is new.
    pub(crate) fn add(&mut self, entry: Diagnostic) -> bool {
        if self.entries.len() >= limits::DIAGNOSTICS || self.entries.iter().any(|old| old.is_same(&entry)) {
            return false;
        }
        let bytes = json_bytes(&entry) + self.entries.iter().map(json_bytes).sum::<usize>();
        let fits = bytes <= limits::DIAGNOSTICS_BYTES;
        if fits {
            self.entries.push(entry);
        }
        fits
    }

    /// Removes the entries whose checks run again.
    pub(crate) fn forget_requirements(&mut self) {
        self.entries.retain(|entry| !matches!(entry.kind, Kind::Requirement | Kind::Recipe | Kind::Pipeline));
    }

    /// Raises the entries that a strict run must not have to errors. Returns their messages.
    pub(crate) fn enforce(&mut self) -> Vec<&str> {
        let enforced = self.entries.iter_mut().filter(|entry| is_enforced(entry.kind));
        let raised = enforced.filter(|entry| entry.level != Level::Info).map(|entry| {
            entry.level = Level::Error;
            entry.message.as_str()
        });
        raised.collect()
    }

    /// Times and data of the entries with a code.
    pub(crate) fn of_code(&self, code: &str) -> Vec<(i64, Value)> {
        let of_it = self.entries.iter().filter(|entry| entry.code == code);
        of_it.map(|entry| (entry.at_us, Value::Object(entry.data.clone()))).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The form for clients, in the order of discovery.
    pub(crate) fn response(&self) -> Vec<responses::Diagnostic> {
        self.entries.iter().map(Diagnostic::response).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(code: &str, subject: &str) -> Diagnostic {
        Diagnostic::warning(Kind::Requirement, code, ("model", subject), format!("{subject} is missing."), 0)
    }

    #[test]
    fn there_is_one_for_each_code_and_subject() {
        let mut found = Diagnostics::default();
        assert_eq!(found.column().unwrap(), None);
        assert!(found.add(entry("model.unusable", "fast")));
        assert!(!found.add(entry("model.unusable", "fast")));
        assert!(found.add(entry("model.unusable", "slow")) && found.add(entry("tool.missing", "fast")));
        let column = found.column().unwrap().unwrap();
        assert_eq!(Diagnostics::parse(Some(&column)).unwrap(), found);
        assert_eq!(found.response()[0].at, "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn they_are_bounded_in_number_and_in_bytes() {
        let mut many = Diagnostics::default();
        (0..200).for_each(|n| _ = many.add(entry("tool.missing", &format!("t{n}"))));
        assert_eq!(many.len(), limits::DIAGNOSTICS);
        let mut long = Diagnostics::default();
        (0..60).for_each(|n| _ = long.add(entry("tool.missing", &format!("{n}{}", "x".repeat(400)))));
        assert!(long.len() > 10 && long.column().unwrap().unwrap().len() <= limits::DIAGNOSTICS_BYTES + 200);
    }

    #[test]
    fn strict_raises_what_a_run_needs_and_nothing_else() {
        let mut found = Diagnostics::default();
        found.add(entry("model.unusable", "fast"));
        found.add(Diagnostic::warning(Kind::Adapter, "fallback", ("model", "fast"), "It fell back.", 0));
        assert_eq!(found.enforce(), ["fast is missing."]);
        let levels: Vec<Level> = found.response().iter().map(|entry| entry.level).collect();
        assert_eq!(levels, [Level::Error, Level::Warn]);
    }

    #[test]
    fn a_message_that_waits_makes_the_next_run_strict() {
        let mut found = Diagnostics::default();
        found.tighten(12);
        assert!(found.is_strict(None) && found.is_strict(Some(13)) && !found.is_strict(Some(12)));
        assert!(!found.of_next(13).is_strict(None) && found.of_next(5).is_strict(None));
    }
}
