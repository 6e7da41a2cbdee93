//! Hooks for `after_system_message`.

use serde_json::Value;

use crate::dates::civil;
use crate::limits::DAY_US;

/// Adds the day to the system prompt. A finer time would invalidate the provider's prompt cache.
pub(super) fn date_in_prompt(args: &[Value], now_us: i64) -> Result<Value, String> {
    match args.first() {
        Some(Value::String(text)) => {
            let (year, month, day) = civil(now_us.div_euclid(DAY_US));
            Ok(format!("{text}\n\nToday is {year:04}-{month:02}-{day:02} (UTC).").into())
        }
        _ => Err("this hook is for `after_system_message`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use crate::json;

    use super::*;

    #[test]
    fn the_day_is_added_to_the_text() {
        let told = |args: &[Value]| date_in_prompt(args, 1_795_300_628_000_000);
        assert_eq!(told(&[json!("You help.")]), Ok(json!("You help.\n\nToday is 2026-11-21 (UTC).")));
        assert!(told(&[json!([])]).is_err() && told(&[]).is_err());
    }
}
