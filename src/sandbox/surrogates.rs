//! Lone surrogates. JavaScript strings may contain them, and so may JSON, as escapes; Rust strings cannot.

use std::borrow::Cow;

/// JSON with U+FFFD instead of every lone surrogate.
pub(super) fn paired(json: &str) -> Cow<'_, str> {
    if !json.contains("\\ud") && !json.contains("\\uD") {
        return Cow::Borrowed(json);
    }
    let mut text = String::with_capacity(json.len());
    let mut rest = json;
    while let Some((before, escape)) = rest.find('\\').and_then(|at| rest.split_at_checked(at)) {
        text.push_str(before);
        let (length, half) = match (unit(escape), escape.get(6..).and_then(unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (12, false),
            (Some(0xd800..=0xdfff), _) => (6, true),
            // An escape of one character, which may be a backslash.
            _ => (2, false),
        };
        // A split inside a character: not a JSON escape.
        let Some((escape, after)) = escape.split_at_checked(length) else { break };
        text.push_str(if half { "\\ufffd" } else { escape });
        rest = after;
    }
    text.push_str(rest);
    Cow::Owned(text)
}

/// The UTF-16 unit of an escape at the start.
fn unit(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_surrogate_pairs_become_replacement_characters() {
        for (text, read_as) in [
            (r#"["\ud83e\uddf5"]"#, "🧵"),
            (r#"["\ud83e"]"#, "\u{fffd}"),
            (r#"["a\uddf5\ud83eb"]"#, "a\u{fffd}\u{fffd}b"),
            (r#"["\uD83E\uD83E\uDDF5"]"#, "\u{fffd}🧵"),
            (r#"["\ud83e\u0041"]"#, "\u{fffd}A"),
            (r#"["\\ud83e\ud83e"]"#, "\\ud83e\u{fffd}"),
            (r#"["é\\\ud83e"]"#, "é\\\u{fffd}"),
        ] {
            let read: [String; 1] = crate::json::from_str(&paired(text)).unwrap();
            assert_eq!(read, [read_as], "{text}");
        }
        for text in [r#"["\ud83"]"#, r#"["\ud83e\"]"#, "[\"\\ud83e\\é\"]", r#"["\ud8é"]"#, r#"\ud83e"#] {
            assert!(crate::json::from_str::<[String; 1]>(&paired(text)).is_err(), "{text}");
        }
    }
}
