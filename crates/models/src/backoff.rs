//! Pauses between attempts: the retry policy's, and those that a provider requests.

use bobbin_definitions::dates::utc_s;
use bobbin_definitions::definitions::retry::{EffectivePolicy, Jitter, RetryMode};
use bobbin_definitions::limits::{BACKOFF_MAX_MS, RETRY_AFTER_MAX_US, SECOND_US};

/// Microseconds to wait after attempt number `attempt` (from 1) has failed. The policy's pause doubles
/// with each attempt; with full jitter it is random between 0 and that value. A longer `retry_after_ms`
/// replaces it. The result is at most [`RETRY_AFTER_MAX_US`] (spec §3.3, §35.22), or a day where the
/// policy parks.
pub fn backoff_us(
    policy: &EffectivePolicy,
    attempt: u32,
    random: [u8; 16],
    retry_after_ms: Option<u64>,
) -> i64 {
    let ceiling = 2_i64
        .checked_pow(attempt.saturating_sub(1))
        .and_then(|factor| policy.backoff_us.checked_mul(factor))
        .map_or(policy.max_backoff_us, |us| us.min(policy.max_backoff_us));
    let ceiling = u128::from(ceiling.unsigned_abs());
    let pause = match policy.jitter {
        // The modulo bias is negligible: 128 random bits, and a far smaller divisor.
        Jitter::Full => u128::from_le_bytes(random) % (ceiling + 1),
        Jitter::None => ceiling,
    };
    let asked = retry_after_ms.unwrap_or(0).saturating_mul(1000);
    let longest = match policy.mode {
        RetryMode::Wait => RETRY_AFTER_MAX_US,
        RetryMode::Park => (BACKOFF_MAX_MS * 1000).cast_signed(),
    };
    i64::try_from(pause.max(u128::from(asked))).map_or(longest, |us| us.min(longest))
}

/// Seconds of a mean year.
const YEAR_S: i64 = 31_556_952;

/// Parses the requested pause in milliseconds: `retry-after-ms`, else `retry-after` in seconds or as a
/// date.
pub fn retry_after_ms(ms: Option<&str>, after: Option<&str>, now_us: i64) -> Option<u64> {
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    if let Some(ms) = ms.and_then(number) {
        return Some(ms as u64);
    }
    let after = after?;
    match number(after) {
        Some(seconds) => Some((seconds * 1000.0) as u64),
        None => {
            let until_s = http_date_s(after, now_us.div_euclid(SECOND_US))?;
            u64::try_from(until_s.checked_mul(1000)?.saturating_sub(now_us.div_euclid(1000)).max(0)).ok()
        }
    }
}

/// Parses an HTTP date in seconds since 1970: `Sun, 06 Nov 1994 08:49:37 GMT`, or one of the two
/// obsolete forms, `Sunday, 06-Nov-94 08:49:37 GMT` and `Sun Nov  6 08:49:37 1994`.
fn http_date_s(text: &str, now_s: i64) -> Option<i64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let fields: Vec<&str> = text.split([' ', '-']).filter(|field| !field.is_empty()).collect();
    let (day, month, year, time) = match fields.as_slice() {
        [weekday, day, month, year, time, "GMT"] if weekday.ends_with(',') => (day, month, year, time),
        [_, month, day, time, year] => (day, month, year, time),
        _ => return None,
    };
    let date = |year| date_s(day, MONTHS.iter().position(|name| name == month)?, year, time);
    let number = year.parse().ok()?;
    if year.len() != 2 {
        return date(number);
    }
    // A two-digit year is at most 50 years in the future.
    date(2_000 + number).filter(|s| s - now_s <= 50 * YEAR_S).or_else(|| date(1_900 + number))
}

/// Returns a date in seconds since 1970. `month` counts from 0.
fn date_s(day: &str, month: usize, year: i64, time: &str) -> Option<i64> {
    let day = day.parse::<i64>().ok()?;
    let month = i64::try_from(month).ok()? + 1;
    let mut clock = time.split(':').map(|part| part.parse::<i64>().ok());
    let time = (clock.next()??, clock.next()??, clock.next()??);
    (1970..10_000).contains(&year).then(|| utc_s((year, month, day), time))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use bobbin_definitions::definitions::retry::{PolicySources, RetryKind};

    const LOW: [u8; 16] = [0; 16];

    fn of(policy: serde_json::Value) -> EffectivePolicy {
        let definition = bobbin_definitions::json::from_value(policy).unwrap();
        EffectivePolicy::of(
            RetryKind::Model,
            PolicySources { definition: Some(&definition), ..PolicySources::default() },
        )
    }

    fn usual(attempt: u32, random: [u8; 16], retry_after_ms: Option<u64>) -> i64 {
        backoff_us(&of(bobbin_definitions::json!({})), attempt, random, retry_after_ms)
    }

    #[test]
    fn jitter_lies_between_nothing_and_the_pause() {
        let policy = of(bobbin_definitions::json!({ "backoffMs": 200, "maxBackoffMs": 500 }));
        let mut seen = (i64::MAX, 0);
        for draw in 0..1_000_u128 {
            let bits = (draw + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
            let pause = backoff_us(&policy, 2, random(bits), None);
            assert!((0..=400_000).contains(&pause), "{pause}");
            seen = (seen.0.min(pause), seen.1.max(pause));
        }
        assert!(seen.0 < 20_000 && seen.1 > 380_000, "the whole range is drawn: {seen:?}");
    }

    #[test]
    fn a_policy_sets_the_pauses() {
        let fixed =
            of(bobbin_definitions::json!({ "backoffMs": 300, "maxBackoffMs": 1_000, "jitter": "none" }));
        let pauses: Vec<i64> = (1..5).map(|n| backoff_us(&fixed, n, LOW, None)).collect();
        assert_eq!(pauses, [300_000, 600_000, 1_000_000, 1_000_000]);
        assert_eq!(backoff_us(&fixed, 1, LOW, Some(2_000)), 2_000_000, "the provider's wish is longer");
        let long =
            bobbin_definitions::json!({ "backoffMs": 600_000, "maxBackoffMs": 600_000, "jitter": "none" });
        assert_eq!(backoff_us(&of(long.clone()), 1, LOW, None), 60_000_000, "`wait` waits a minute at most");
        let mut parks = long;
        parks["mode"] = "park".into();
        assert_eq!(backoff_us(&of(parks.clone()), 1, LOW, None), 600_000_000);
        assert_eq!(backoff_us(&of(parks), 1, LOW, Some(u64::MAX)), 86_400_000_000);
    }

    fn random(value: u128) -> [u8; 16] {
        value.to_le_bytes()
    }

    #[test]
    fn the_ceiling_doubles_with_each_attempt() {
        for (attempt, ceiling_us) in [
            (0, 1_000_000),
            (1, 1_000_000),
            (2, 2_000_000),
            (3, 4_000_000),
            (6, 32_000_000),
            (7, 60_000_000),
            (99, 60_000_000),
        ] {
            assert_eq!(usual(attempt, random(ceiling_us as u128), None), ceiling_us, "{attempt}");
            assert_eq!(usual(attempt, random(ceiling_us as u128 + 1), None), 0, "{attempt}");
            assert_eq!(usual(attempt, LOW, None), 0);
        }
    }

    #[test]
    fn the_providers_wish_counts_up_to_a_minute() {
        assert_eq!(usual(1, LOW, Some(2_500)), 2_500_000);
        assert_eq!(usual(1, random(700_000), Some(300)), 700_000);
        assert_eq!(usual(1, LOW, Some(3_600_000)), 60_000_000);
        assert_eq!(usual(1, [255; 16], Some(u64::MAX)), 60_000_000);
    }

    #[test]
    fn retry_after_in_every_form() {
        let date_us = 784_111_777_000_000;
        for (ms, after, expected) in [
            (None, Some("7"), Some(7_000)),
            (None, Some("0.5"), Some(500)),
            (Some("1200"), Some("2"), Some(1_200)),
            (Some("soon"), Some("2"), Some(2_000)),
            (None, Some("Sun, 06 Nov 1994 08:49:37 GMT"), Some(90_500)),
            (None, Some("Sun, 06 Nov 1994 08:00:00 GMT"), Some(0)),
            (None, Some("Sunday, 06-Nov-94 08:49:37 GMT"), Some(90_500)),
            (None, Some("Sun Nov  6 08:49:37 1994"), Some(90_500)),
            (None, Some("tomorrow"), None),
            (None, Some("-3"), None),
            (None, Some("NaN"), None),
            (None, None, None),
        ] {
            assert_eq!(retry_after_ms(ms, after, date_us - 90_500_000), expected, "{ms:?} {after:?}");
        }
    }

    #[test]
    fn dates() {
        for (text, expected) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Tue, 29 Feb 2000 12:00:00 GMT", Some(951_825_600)),
            ("Wed, 01 Mar 2000 00:00:00 GMT", Some(951_868_800)),
            ("Fri, 31 Dec 2100 23:59:59 GMT", Some(4_133_980_799)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(784_111_777)),
            ("Friday, 31-Dec-26 23:59:59 GMT", Some(1_798_761_599)),
            ("Saturday, 27-Nov-76 00:00:00 GMT", Some(217_900_800)),
            ("Sun Nov  6 08:49:37 1994", Some(784_111_777)),
            ("Sat Nov 26 08:49:37 1994", Some(785_839_777)),
            ("Sun Nov 6 08:49:37", None),
            ("Sun, 06 Nov 1994 08:49:37 PST", None),
            ("Sun, 06 Foo 1994 08:49:37 GMT", None),
            ("Sun, 06 Nov 1994 08:49 GMT", None),
            ("Sun, 99 Nov 99999999999999 08:49:37 GMT", None),
        ] {
            assert_eq!(http_date_s(text, 1_795_000_000), expected, "{text}");
        }
    }
}
