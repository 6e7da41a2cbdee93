//! Request headers (RFC 9110): preconditions on the stored content, and a range of it.

use std::ops::Range;

use crate::error::{Code, Error, Result};
use crate::request::{StreamRoute, ThreadRequest};

/// `If-Match` and `If-None-Match`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conditions {
    if_match: Option<String>,
    if_none_match: Option<String>,
}

impl Conditions {
    /// Parses the conditions of a request.
    pub(crate) fn of(request: &ThreadRequest<StreamRoute>) -> Conditions {
        let header = |name| request.header(name).map(str::to_owned);
        Conditions { if_match: header("if-match"), if_none_match: header("if-none-match") }
    }

    /// Checks a change of content with this tag; `None` if it does not exist yet.
    ///
    /// # Errors
    /// `precondition_failed`.
    pub(super) fn check(&self, etag: Option<&str>) -> Result<()> {
        let failed =
            |header: &str, message: &str| Err(Error::new(Code::PreconditionFailed, message).at(header));
        if self.if_match.as_ref().is_some_and(|list| !has(list, etag, Compare::Strong)) {
            return failed("if-match", "What is stored is not what `If-Match` names.");
        }
        if self.if_none_match.as_ref().is_some_and(|list| has(list, etag, Compare::Weak)) {
            return failed("if-none-match", "What `If-None-Match` names is stored.");
        }
        Ok(())
    }

    /// Whether the client already has the content with this tag, so that the status is 304.
    ///
    /// # Errors
    /// `precondition_failed` by `If-Match`.
    pub(crate) fn not_modified(&self, etag: &str) -> Result<bool> {
        let of_match = Conditions { if_none_match: None, ..self.clone() };
        of_match.check(Some(etag))?;
        Ok(self.if_none_match.as_ref().is_some_and(|list| has(list, Some(etag), Compare::Weak)))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Compare {
    /// A weak tag never matches.
    Strong,
    /// A weak tag matches the strong one.
    Weak,
}

/// Whether a list of tags, or `*`, contains this one. Our tags contain no comma.
fn has(list: &str, etag: Option<&str>, compare: Compare) -> bool {
    let Some(etag) = etag else { return false };
    list.split(',').map(str::trim).any(|tag| {
        let strong = match compare {
            Compare::Strong => tag,
            Compare::Weak => tag.strip_prefix("W/").unwrap_or(tag),
        };
        tag == "*" || strong == etag
    })
}

/// The requested part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Portion {
    /// All of it: no range, an unsupported form, or a range of another version.
    Whole,
    /// These bytes; not empty.
    Part(Range<u64>),
    /// The range is outside the file: 416.
    Nothing,
}

impl Portion {
    /// Parses `Range` and `If-Range`. For several ranges the whole is served, which RFC 9110 allows.
    pub(crate) fn of(request: &ThreadRequest<StreamRoute>, etag: &str, size: u64) -> Portion {
        let Some(range) = request.header("range") else { return Portion::Whole };
        // A date is not a strong validator here: two changes may fall into one second.
        if request.header("if-range").is_some_and(|tag| tag.trim() != etag) {
            return Portion::Whole;
        }
        parse(range, size).unwrap_or(Portion::Whole)
    }
}

fn parse(range: &str, size: u64) -> Option<Portion> {
    let (unit, range) = range.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = range.trim().split_once('-')?;
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // A number with too many digits is beyond every end.
        digits.then(|| text.parse::<u64>().unwrap_or(u64::MAX))
    };
    let part = match (first, last) {
        ("", last) => size.saturating_sub(number(last)?)..size,
        (first, "") => number(first)?..size,
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            if last < first {
                return None;
            }
            first..last.saturating_add(1).min(size)
        }
    };
    Some(if part.start < part.end { Portion::Part(part) } else { Portion::Nothing })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_the_standard_says() {
        let part = |range: Range<u64>| Some(Portion::Part(range));
        for (text, size, expected) in [
            ("bytes=0-0", 10, part(0..1)),
            ("bytes=2-4", 10, part(2..5)),
            ("bytes=5-", 10, part(5..10)),
            ("bytes=-3", 10, part(7..10)),
            ("bytes=-30", 10, part(0..10)),
            ("bytes=9-99999999999999999999999", 10, part(9..10)),
            ("Bytes = 1-2", 10, part(1..3)),
            ("bytes=10-", 10, Some(Portion::Nothing)),
            ("bytes=99999999999999999999999-", 10, Some(Portion::Nothing)),
            ("bytes=-0", 10, Some(Portion::Nothing)),
            ("bytes=0-", 0, Some(Portion::Nothing)),
            ("bytes=4-2", 10, None),
            ("bytes=0-1,3-4", 10, None),
            ("bytes=a-b", 10, None),
            ("bytes=-", 10, None),
            ("bytes=+1-2", 10, None),
            ("lines=0-1", 10, None),
            ("", 10, None),
        ] {
            assert_eq!(parse(text, size), expected, "{text}");
        }
    }

    #[test]
    fn tags_are_compared_strongly_for_writes_and_weakly_for_reads() {
        let conditions = |if_match: Option<&str>, if_none_match: Option<&str>| Conditions {
            if_match: if_match.map(str::to_owned),
            if_none_match: if_none_match.map(str::to_owned),
        };
        for (if_match, if_none_match, etag, passes) in [
            (None, None, None, true),
            (Some("\"1\""), None, Some("\"1\""), true),
            (Some("\"0\", \"1\""), None, Some("\"1\""), true),
            (Some("*"), None, Some("\"1\""), true),
            (Some("*"), None, None, false),
            (Some("\"1\""), None, None, false),
            (Some("\"2\""), None, Some("\"1\""), false),
            (Some("W/\"1\""), None, Some("\"1\""), false),
            (None, Some("*"), None, true),
            (None, Some("*"), Some("\"1\""), false),
            (None, Some("W/\"1\""), Some("\"1\""), false),
            (None, Some("\"2\""), Some("\"1\""), true),
        ] {
            let outcome = conditions(if_match, if_none_match).check(etag);
            assert_eq!(outcome.is_ok(), passes, "{if_match:?} {if_none_match:?} {etag:?}");
        }
        assert_eq!(conditions(None, Some("W/\"1\"")).not_modified("\"1\""), Ok(true));
        assert_eq!(conditions(Some("*"), None).not_modified("\"1\""), Ok(false));
        assert!(conditions(Some("\"2\""), Some("\"1\"")).not_modified("\"1\"").is_err());
    }
}
