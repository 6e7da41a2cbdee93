//! Repetition of effects: at an interval in milliseconds, or by a cron expression of five fields in UTC.

use chrono::{DateTime, Utc};
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};

use crate::error::{Code, Error, Result, unstopped};
use crate::limits;
use crate::protocols::responses::values as responses;

/// A validated repetition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Repeat {
    /// An interval in milliseconds.
    Every(i64),
    /// The expression as given, and parsed.
    Cron(String, Box<Cron>),
}

impl Repeat {
    pub(crate) fn of(repeats: &Repetition) -> Result<Option<Repeat>> {
        match repeats {
            Repetition::Once => Ok(None),
            Repetition::Every(ms) => Repeat::every(*ms).map(Some),
            Repetition::Cron(text) => Repeat::cron(text).map(Some),
        }
    }

    fn every(ms: i64) -> Result<Repeat> {
        let most = limits::EFFECT_AHEAD_US / 1_000;
        if !(limits::EFFECT_EVERY_MIN_MS..=most).contains(&ms) {
            let least = limits::EFFECT_EVERY_MIN_MS;
            return Err(Error::field(
                "every",
                format!("`every` is {least} to {most} milliseconds, not {ms}."),
            ));
        }
        Ok(Repeat::Every(ms))
    }

    /// A new cron expression. The parser accepts more than the five standard fields: names such as @daily,
    /// `L`, `W`, `#`, `?`, and empty list items. They are refused, because other crons give them another
    /// meaning or none.
    fn cron(text: &str) -> Result<Repeat> {
        if text.len() > limits::CRON_BYTES {
            let message = format!("`cron` has {} bytes; the limit is {}.", text.len(), limits::CRON_BYTES);
            return Err(Error::new(Code::TooLarge, message).at("cron"));
        }
        let given: Vec<&str> = text.split_whitespace().collect();
        if given.len() != FIELDS.len() {
            return Err(wrong(text, "it has five fields"));
        }
        for (field, given) in FIELDS.iter().zip(given) {
            field.check(given).map_err(|why| wrong(text, &why))?;
        }
        Repeat::read_cron(text)
    }

    /// A stored expression, possibly accepted by an older, laxer version.
    fn read_cron(text: &str) -> Result<Repeat> {
        let days = text.split_whitespace().skip(2).step_by(2).take(2);
        let parser = CronParser::builder()
            .seconds(Seconds::Disallowed)
            .year(Year::Disallowed)
            // Allows `5/15`: from 5 on, in steps of 15.
            .sloppy_ranges(true)
            // If both day fields are given, one match suffices, as in every cron. A field that begins with
            // `*` restricts the other.
            .dom_and_dow(days.into_iter().any(|field| field.starts_with('*')))
            .build();
        let cron = parser.parse(text).map_err(|error| wrong(text, &error.to_string()))?;
        Ok(Repeat::Cron(text.trim().to_owned(), Box::new(cron)))
    }

    /// The first due time, at `from` or later.
    pub(crate) fn first(&self, from: i64) -> Result<i64> {
        match self {
            Repeat::Every(_) => Ok(from),
            // Includes `from` itself if it is a full minute.
            Repeat::Cron(_, cron) => occurrence(cron, from + limits::SECOND_US - 1, true).ok_or_else(|| {
                Error::field("cron", "`cron` names no day that there is.".to_owned())
                    .hint("Mind months that have no 30th or 31st.")
            }),
        }
    }

    /// The due time after `due` that is later than `now`: missed times are skipped, and the schedule does not
    /// drift. `None`: never again. All in microseconds since 1970.
    pub(crate) fn next(&self, due: i64, now: i64) -> Option<i64> {
        match self {
            Repeat::Every(ms) => {
                let every = ms * 1_000;
                let missed = (now - due).max(0) / every;
                Some(due + (missed + 1) * every)
            }
            Repeat::Cron(_, cron) => occurrence(cron, due.max(now), false),
        }
    }

    /// The stored form.
    pub(crate) fn to_text(&self) -> String {
        match self {
            Repeat::Every(ms) => format!("every {ms}"),
            Repeat::Cron(text, _) => format!("cron {text}"),
        }
    }

    pub(super) fn from_text(text: &str) -> Result<Repeat> {
        let damaged = || Error::internal(format!("an effect repeats in the unknown way {text:?}"));
        match text.split_once(' ').ok_or_else(damaged)? {
            ("every", ms) => Repeat::every(ms.parse().map_err(|_| damaged())?),
            ("cron", text) => Repeat::read_cron(text),
            _ => Err(damaged()),
        }
    }

    /// The form for clients: `{"every": ms}` or `{"cron": "…"}`.
    /// The public form.
    pub(super) fn into_response(self) -> responses::Repetition {
        match self {
            Repeat::Every(ms) => responses::Repetition { every: Some(ms), cron: None },
            Repeat::Cron(text, _) => responses::Repetition { every: None, cron: Some(text) },
        }
    }
}

fn wrong(text: &str, why: &str) -> Error {
    let shown: String = text.chars().take(limits::CRON_BYTES).collect();
    Error::field("cron", format!("`cron` “{shown}”: {}.", unstopped(why)))
        .hint("Five fields in UTC: minute hour day-of-month month day-of-week, such as 0 9 * * 1-5.")
}

/// A field of a cron expression.
struct CronField {
    name: &'static str,
    least: u32,
    most: u32,
    /// Names for numbers, from `least` on.
    names: &'static [&'static str],
}

const MONTHS: &[&str] = &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const DAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const FIELDS: [CronField; 5] = [
    CronField { name: "minute", least: 0, most: 59, names: &[] },
    CronField { name: "hour", least: 0, most: 23, names: &[] },
    CronField { name: "day of the month", least: 1, most: 31, names: &[] },
    CronField { name: "month", least: 1, most: 12, names: MONTHS },
    CronField { name: "day of the week", least: 0, most: 7, names: DAYS },
];

impl CronField {
    /// Checks a list of `*`, numbers and ranges, each with an optional step.
    fn check(&self, text: &str) -> Result<(), String> {
        let name = self.name;
        for item in text.split(',') {
            let (range, step) = match item.split_once('/') {
                Some((range, step)) => (range, Some(step)),
                None => (item, None),
            };
            if step.is_some_and(|step| !step.parse::<u32>().is_ok_and(|step| (1..=self.most).contains(&step)))
            {
                return Err(format!("the step of the {name} “{item}” is not within 1 and {}", self.most));
            }
            if range == "*" {
                continue;
            }
            let (from, to) = match range.split_once('-') {
                Some((from, to)) => (self.number(from, item)?, self.number(to, item)?),
                None => (self.number(range, item)?, self.most),
            };
            if from > to {
                return Err(format!("the {name} “{item}” ends before it begins"));
            }
        }
        Ok(())
    }

    fn number(&self, text: &str, item: &str) -> Result<u32, String> {
        let CronField { name, least, most, names } = self;
        if let Some(at) = (*least..).zip(*names).find(|(_, known)| known.eq_ignore_ascii_case(text)) {
            return Ok(at.0);
        }
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse::<u32>().ok().filter(|_| digits) {
            Some(number) if (*least..=*most).contains(&number) => Ok(number),
            Some(_) => Err(format!("the {name} “{item}” is not within {least} and {most}")),
            None => Err(format!("the {name} “{item}” is no number, `*`, range or step")),
        }
    }
}

/// The first match after the second of `us`, or within it if `inclusive`.
fn occurrence(cron: &Cron, us: i64, inclusive: bool) -> Option<i64> {
    let second = DateTime::<Utc>::from_timestamp(us.div_euclid(limits::SECOND_US), 0)?;
    cron.find_next_occurrence(&second, inclusive).ok().map(|next| next.timestamp_micros())
}

/// The repetition that an effect's caller requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Repetition {
    /// None.
    #[default]
    Once,
    /// An interval in milliseconds, at least 1,000.
    Every(i64),
    /// A cron expression of five fields, in UTC.
    Cron(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;
    const MINUTE: i64 = 60 * SECOND;
    /// A Thursday.
    const NEW_YEAR_2026: i64 = 1_767_225_600 * SECOND;

    fn utc(us: i64) -> String {
        format!("{:?}", DateTime::<Utc>::from_timestamp_micros(us).unwrap().naive_utc())
    }

    #[test]
    fn intervals_neither_drift_nor_pile_up() {
        let every = Repeat::every(10_000).unwrap();
        let first = NEW_YEAR_2026 + 3 * SECOND;
        assert_eq!(every.first(first).unwrap(), first);
        for (now, next) in [(0, 10), (9, 10), (10, 20), (11, 20), (3_600, 3_610), (3_605, 3_610)] {
            assert_eq!(every.next(first, first + now * SECOND), Some(first + next * SECOND), "{now}");
        }
        // Run early, by hand: the next time stays.
        assert_eq!(every.next(first, first - 5 * SECOND), Some(first + 10 * SECOND));
    }

    #[test]
    fn cron_means_what_it_always_meant() {
        for (cron, times) in [
            ("0 9 * * 1-5", ["2026-01-01T09:00:00", "2026-01-02T09:00:00", "2026-01-05T09:00:00"]),
            ("*/20 * * * *", ["2026-01-01T00:00:00", "2026-01-01T00:20:00", "2026-01-01T00:40:00"]),
            ("30 4 29 2 *", ["2028-02-29T04:30:00", "2032-02-29T04:30:00", "2036-02-29T04:30:00"]),
            // If both are given, a day of the month or a day of the week suffices.
            ("0 0 13 * 5", ["2026-01-02T00:00:00", "2026-01-09T00:00:00", "2026-01-13T00:00:00"]),
            // With a step, both must match: odd days that are Mondays, the 13th if its weekday's number is in
            // the set.
            ("0 0 */2 * 1", ["2026-01-05T00:00:00", "2026-01-19T00:00:00", "2026-02-09T00:00:00"]),
            ("0 0 13 * */2", ["2026-01-13T00:00:00", "2026-06-13T00:00:00", "2026-08-13T00:00:00"]),
            ("0 0 */1 * 7", ["2026-01-04T00:00:00", "2026-01-11T00:00:00", "2026-01-18T00:00:00"]),
            ("5/25 3 * * *", ["2026-01-01T03:05:00", "2026-01-01T03:30:00", "2026-01-01T03:55:00"]),
            ("0 0 * * TUE/3", ["2026-01-02T00:00:00", "2026-01-06T00:00:00", "2026-01-09T00:00:00"]),
            ("5 0,12 1 JAN-feb *", ["2026-01-01T00:05:00", "2026-01-01T12:05:00", "2026-02-01T00:05:00"]),
            ("0 0 * * 7", ["2026-01-04T00:00:00", "2026-01-11T00:00:00", "2026-01-18T00:00:00"]),
        ] {
            let repeat = Repeat::cron(cron).unwrap();
            let mut at = repeat.first(NEW_YEAR_2026).unwrap();
            for expected in times {
                assert_eq!(utc(at), expected, "{cron}");
                at = repeat.next(at, at).unwrap();
            }
        }
    }

    #[test]
    fn cron_is_the_first_minute_that_fits() {
        // Compares with every minute of a month.
        type Fits = fn(i64, i64, i64) -> bool;
        let cases: [(&str, Fits); 4] = [
            ("*/7 * * * *", |_, _, minute| minute % 7 == 0),
            ("3 2-4 * * *", |_, hour, minute| minute == 3 && (2..=4).contains(&hour)),
            ("0 0 */10 * *", |day, hour, minute| day % 10 == 0 && hour == 0 && minute == 0),
            ("59 23 31 * *", |day, hour, minute| day == 30 && hour == 23 && minute == 59),
        ];
        for (cron, fits) in cases {
            let repeat = Repeat::cron(cron).unwrap();
            let naive: Vec<i64> = (0..31 * 24 * 60)
                .filter(|n| fits(n / 1440, n / 60 % 24, n % 60))
                .map(|n| NEW_YEAR_2026 + n * MINUTE)
                .collect();
            let mut at = repeat.first(NEW_YEAR_2026).unwrap();
            for expected in naive {
                assert_eq!(at, expected, "{cron} {}", utc(expected));
                // A moment later, the minute has passed.
                at = repeat.next(at, at + SECOND).unwrap();
            }
        }
    }

    #[test]
    fn what_is_stored_is_read_again_and_nonsense_is_named() {
        for repeat in [Repeat::every(1_000).unwrap(), Repeat::cron(" 1  2 3 4 5 ").unwrap()] {
            assert_eq!(Repeat::from_text(&repeat.to_text()).unwrap(), repeat);
        }
        for text in
            ["", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "a * * * *", "@hourly"]
                .into_iter()
                .chain(["0 0 L * *", "0 0 1W * *", "0 0 * * 5#1", "0 0 ? * *", "1,,2 * * * *", "*/0 * * * *"])
                .chain([
                    "5-1 * * * *",
                    "1- * * * *",
                    "+1 * * * *",
                    "*/ * * * *",
                    "0 0 * JAN-x *",
                    "0 0 * * 8",
                ])
        {
            let error = Repeat::cron(text).unwrap_err();
            assert!(error.message.contains(text) && error.hint.is_some(), "{error}");
        }
        let error = Repeat::cron("60 * * * *").unwrap_err();
        assert_eq!(error.message, "`cron` “60 * * * *”: the minute “60” is not within 0 and 59.");
        assert_eq!(Repeat::cron(&"0,".repeat(200_000)).unwrap_err().code, Code::TooLarge);
        // Expressions accepted by an earlier version continue to run.
        for text in ["0 0 L * *", "5/15 * * * *", "/20 * * * *", "@daily", "0 0 */2 * 1"] {
            assert!(Repeat::from_text(&format!("cron {text}")).is_ok(), "{text}");
        }
        assert!(Repeat::cron("0 0 31 4 *").unwrap().first(NEW_YEAR_2026).is_err());
        for text in ["", "every", "every x", "every 1", "hourly 1"] {
            assert!(Repeat::from_text(text).is_err(), "{text}");
        }
    }
}
