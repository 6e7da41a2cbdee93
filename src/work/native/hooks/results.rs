//! Hooks for tool results.

use serde_json::Value;

use crate::text::shorten as shorten_to;

/// Maximum bytes of a result's text.
const KEPT_BYTES: usize = 8_000;

/// Cuts a long text of a result, with a note. The rest is neither stored nor sent to a model with every later
/// request.
pub(super) fn limit_results(args: &[Value]) -> Result<Value, String> {
    let Some(Value::Object(result)) = args.get(1) else {
        return Err("this hook is for the hooks that are given a tool result".to_owned());
    };
    let mut result = result.clone();
    for field in ["result", "error"] {
        if let Some(Value::String(text)) = result.get_mut(field) {
            shorten(text);
        }
    }
    Ok(Value::Object(result))
}

fn shorten(text: &mut String) {
    let bytes = text.len();
    if bytes <= KEPT_BYTES {
        return;
    }
    shorten_to(text, KEPT_BYTES);
    let end = text.len();
    text.push_str(&format!("\n[cut here: {end} of {bytes} bytes are kept]"));
}

#[cfg(test)]
mod tests {
    use crate::json;

    use super::*;

    #[test]
    fn a_long_text_is_cut_at_a_character_and_a_short_one_is_not() {
        let limited = |result: Value| limit_results(&[json!({}), result]).unwrap();
        let short = json!({ "status": "success", "result": "x".repeat(8_000), "more": [1] });
        assert_eq!(limited(short.clone()), short);
        let long = limited(json!({ "status": "error", "error": format!("x{}", "é".repeat(5_000)) }));
        let text = long["error"].as_str().unwrap();
        assert!(text.ends_with("é\n[cut here: 7999 of 10001 bytes are kept]"), "{}", &text[7_990..]);
        assert!(limit_results(&[json!({})]).is_err());
    }
}
