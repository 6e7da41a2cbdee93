//! Dates in queries, headers and responses.

use chrono::{DateTime, Datelike, NaiveDate, Utc};

use crate::error::{Error, Result};
use crate::limits::{DAY_US, SECOND_US};

/// The instant of a day that a date without time means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// The first.
    Start,
    /// The last.
    End,
}

/// Microseconds since 1970 of `2026-11-21`, `2026-11-21T10:00`, `2026-11-21T10:00:00.5Z` or
/// `2026-11-21T10:00:00+01:00` (without a zone: UTC), or of a number with 9 to 14 digits: seconds or, from
/// 100,000,000,000 on, milliseconds.
pub fn instant(field: &str, text: &str, edge: Edge) -> Result<i64> {
    parse(text, edge).ok_or_else(|| {
        Error::field(
            field,
            format!("`{field}` must be a date such as 2026-11-21 or 2026-11-21T10:00:00Z, not “{text}”."),
        )
    })
}

fn parse(text: &str, edge: Edge) -> Option<i64> {
    if (9..=14).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit()) {
        let number: i64 = text.parse().ok()?;
        return Some(if number < 100_000_000_000 { number * SECOND_US } else { number * 1_000 });
    }
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut parts = date.split('-');
    let year = number(parts.next()?, 4)?;
    let month = number(parts.next()?, 2)?;
    let day = number(parts.next()?, 2)?;
    if parts.next().is_some() {
        return None;
    }
    let midnight = utc_s((year, month, day), (0, 0, 0))? * SECOND_US;
    match time {
        None if edge == Edge::End => Some(midnight + DAY_US - 1),
        None => Some(midnight),
        Some(time) => Some(midnight + time_of_day(time)?),
    }
}

/// Microseconds since midnight UTC; negative or beyond the day for some time zones.
fn time_of_day(text: &str) -> Option<i64> {
    let (clock, zone) = match text.find(['Z', 'z', '+', '-']) {
        Some(at) => (text.get(..at)?, zone(text.get(at..)?)?),
        None => (text, 0),
    };
    let mut parts = clock.split(':');
    let hours = number(parts.next()?, 2)?;
    let minutes = number(parts.next()?, 2)?;
    let seconds = match parts.next() {
        None => 0,
        Some(seconds) => micros(seconds)?,
    };
    if parts.next().is_some() || hours > 23 || minutes > 59 || seconds >= 60 * SECOND_US {
        return None;
    }
    Some((hours * 60 + minutes - zone) * 60 * SECOND_US + seconds)
}

/// Microseconds of `07` or `07.25`; digits after the sixth are ignored.
fn micros(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let mut fraction: String = fraction.chars().take(6).collect();
    while fraction.len() < 6 {
        fraction.push('0');
    }
    Some(number(whole, 2)? * SECOND_US + number(&fraction, 6)?)
}

/// Minutes east of UTC for `Z`, `+01:00` or `-0330`.
fn zone(text: &str) -> Option<i64> {
    let (sign, rest) = match text.split_at_checked(1)? {
        ("Z" | "z", "") => return Some(0),
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let digits: String = rest.chars().filter(|c| *c != ':').collect();
    let (hours, minutes) = (number(digits.get(..2)?, 2)?, number(digits.get(2..)?, 2)?);
    (hours <= 14 && minutes <= 59).then_some(sign * (hours * 60 + minutes))
}

/// A number of exactly this many digits.
fn number(text: &str, digits: usize) -> Option<i64> {
    (text.len() == digits && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
}

/// Seconds since 1970 of a time in UTC; `None` if there is no such day or time.
pub fn utc_s((year, month, day): (i64, i64, i64), (hour, minute, second): (i64, i64, i64)) -> Option<i64> {
    let small = |number: i64| u32::try_from(number).ok();
    let date = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, small(month)?, small(day)?)?;
    // Seconds are added, because 60 is a leap second.
    let minute = date.and_hms_opt(small(hour)?, small(minute)?, 0)?.and_utc().timestamp();
    (0..=60).contains(&second).then_some(minute + second)
}

/// Year, month and day of a day since 1970. Days beyond the range of the calendar are its last one.
pub fn civil(days: i64) -> (i64, i64, i64) {
    let instant = days.checked_mul(DAY_US / SECOND_US).and_then(|s| DateTime::from_timestamp(s, 0));
    let date = instant.unwrap_or(DateTime::<Utc>::MAX_UTC).date_naive();
    (date.year().into(), date.month().into(), date.day().into())
}

/// `2026-11-22T10:00:00.123Z` from microseconds since 1970; smaller units are cut.
pub fn iso(us: i64) -> String {
    let (year, month, day) = civil(us.div_euclid(DAY_US));
    let ms = us.rem_euclid(DAY_US) / 1_000;
    let (seconds, ms) = (ms / 1_000, ms % 1_000);
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{ms:03}Z")
}

#[cfg(test)]
mod tests {
    use crate::dates::{Edge, iso, parse};

    #[test]
    fn an_instant_is_written_as_it_is_read() {
        for us in [0, 951_782_400_000_000, 1_795_255_200_123_000, -1_000] {
            assert_eq!(parse(&iso(us), Edge::Start), Some(us), "{}", iso(us));
        }
        assert_eq!(iso(1_795_255_200_123_999), "2026-11-21T10:00:00.123Z");
    }

    #[test]
    fn dates_and_times_of_every_form_are_read() {
        let cases = [
            ("1970-01-01", 0),
            ("2000-02-29", 951_782_400_000_000),
            ("2026-11-21", 1_795_219_200_000_000),
            ("2026-11-21T10:00", 1_795_255_200_000_000),
            ("2026-11-21T10:00:00Z", 1_795_255_200_000_000),
            ("2026-11-21 10:00:00.25", 1_795_255_200_250_000),
            ("2026-11-21T11:30:00+01:30", 1_795_255_200_000_000),
            ("2026-11-21T00:00:00-0030", 1_795_221_000_000_000),
            ("1795255200", 1_795_255_200_000_000),
            ("1795255200123", 1_795_255_200_123_000),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text, Edge::Start), Some(expected), "{text}");
        }
        assert_eq!(parse("1970-01-01", Edge::End), Some(86_399_999_999));
        assert_eq!(parse("1970-01-01T00:00:00Z", Edge::End), Some(0));
    }

    #[test]
    fn what_is_no_date_is_refused() {
        let cases = [
            "",
            "x",
            "2026",
            "2026-13-01",
            "2026-02-29",
            "2026-00-10",
            "26-01-01",
            "2026-11-21T",
            "2026-11-21T24:00",
            "2026-11-21T10:60",
            "2026-11-21T10:00:00+99:00",
            "2026-11-21T10:00:00+é",
            "2026-11-21Tü",
            "999999999999999",
            "-5",
        ];
        for text in cases {
            assert_eq!(parse(text, Edge::Start), None, "{text}");
        }
    }
}
