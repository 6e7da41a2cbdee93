//! The current time. There is no time zone database: models work out an offset, which is easy to check.

use serde_json::Value;

use crate::dates::civil;
use crate::definitions::message::ToolResult;

const WEEKDAYS: [&str; 7] = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];

/// Returns date and time at `now_us` (µs since 1970), in UTC or at `utcOffset`, such as `+02:00`.
pub(super) fn current_time(args: &Value, now_us: i64) -> ToolResult {
    let offset = args.get("utcOffset").and_then(Value::as_str).unwrap_or("Z");
    let Some(minutes) = offset_minutes(offset) else {
        return ToolResult::error(format!(
            "\"{offset}\" is not an offset from UTC; write it like +02:00 or -05:30."
        ));
    };
    let seconds = now_us.div_euclid(1_000_000) + minutes * 60;
    let (days, second_of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
    let zone = match minutes {
        0 => "Z".to_owned(),
        _ => format!(
            "{}{:02}:{:02}",
            if minutes < 0 { '-' } else { '+' },
            minutes.abs() / 60,
            minutes.abs() % 60
        ),
    };
    let weekday = usize::try_from(days.rem_euclid(7)).ok().and_then(|day| WEEKDAYS.get(day)).unwrap_or(&"");
    let time = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{zone}");
    ToolResult::success(format!("{time} ({weekday})"))
}

/// Parses minutes east of UTC: `Z`, `+2`, `+02`, `+02:00` or `+0200`, up to 14 hours.
fn offset_minutes(offset: &str) -> Option<i64> {
    if matches!(offset, "" | "Z" | "z" | "UTC") {
        return Some(0);
    }
    let (sign, rest) = match offset.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, offset.strip_prefix('+')?),
    };
    let (hours, minutes) = match rest.split_once(':') {
        Some(parts) => parts,
        None if rest.len() == 4 => rest.split_at_checked(2)?,
        None => (rest, "0"),
    };
    let number = |text: &str| {
        let digits = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<i64>().ok()).flatten()
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let total = hours * 60 + minutes;
    (minutes < 60 && total <= 14 * 60).then_some(sign * total)
}

#[cfg(test)]
mod tests {
    use crate::json;

    use super::*;

    #[test]
    fn tells_date_time_and_weekday_at_an_offset() {
        let cases = [
            (0, json!({}), "1970-01-01T00:00:00Z (Thursday)"),
            (951_782_400_000_000, json!({}), "2000-02-29T00:00:00Z (Tuesday)"),
            (1_795_300_628_999_999, json!({}), "2026-11-21T22:37:08Z (Saturday)"),
            (1_795_300_628_000_000, json!({ "utcOffset": "+02:00" }), "2026-11-22T00:37:08+02:00 (Sunday)"),
            (1_795_300_628_000_000, json!({ "utcOffset": "-0530" }), "2026-11-21T17:07:08-05:30 (Saturday)"),
            (1_795_300_628_000_000, json!({ "utcOffset": "+1" }), "2026-11-21T23:37:08+01:00 (Saturday)"),
            (-1, json!({}), "1969-12-31T23:59:59Z (Wednesday)"),
        ];
        for (now_us, args, expected) in cases {
            assert_eq!(current_time(&args, now_us).text(), expected, "{args}");
        }
    }

    #[test]
    fn an_offset_that_is_none_is_an_error() {
        for wrong in ["Berlin", "02:00", "+15", "+02:60", "+é2", "+", "+1:", "+123", "++1:00"] {
            let result = current_time(&json!({ "utcOffset": wrong }), 0);
            assert!(result.error.is_some_and(|error| error.contains(wrong)), "{wrong}");
        }
    }
}
