//! Hooks for `filter_messages`.

use serde_json::Value;

/// Keeps the newest `count` messages, or a few more so that the first one is the user's.
pub(super) fn keep_last(args: &[Value], count: usize) -> Result<Value, String> {
    let Some(messages) = args.first().and_then(Value::as_array) else {
        return Err("this hook is for `filter_messages`".to_owned());
    };
    let newest = messages.len().saturating_sub(count);
    let is_user = |message: &Value| message.get("role").and_then(Value::as_str) == Some("user");
    // A history that begins within a reply is of little use to a model.
    let from = messages.iter().take(newest + 1).rposition(is_user).unwrap_or(newest);
    Ok(messages.iter().skip(from).cloned().collect())
}

#[cfg(test)]
mod tests {
    use crate::json;

    use super::*;

    #[test]
    fn the_newest_stay_and_the_question_they_answer() {
        let kept = |roles: &str, count| {
            let role = |role| if role == 'u' { "user" } else { "assistant" };
            let messages: Value =
                roles.chars().enumerate().map(|(n, c)| json!({ "id": n, "role": role(c) })).collect();
            keep_last(&[messages], count).unwrap().as_array().unwrap().first().map(|m| m["id"].clone())
        };
        assert_eq!(kept("uauaua", 2), Some(json!(4)));
        assert_eq!(kept("uauaaaa", 2), Some(json!(2)));
        assert_eq!(kept("uaua", 20), Some(json!(0)));
        assert_eq!(kept("aaaa", 1), Some(json!(3)));
        assert_eq!(kept("", 20), None);
        assert!(keep_last(&[json!("text")], 1).is_err());
    }
}
