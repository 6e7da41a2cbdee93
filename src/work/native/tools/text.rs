//! Counting in texts, for which models are unreliable.

use serde_json::Value;

use crate::definitions::message::ToolResult;

/// Reading speed of an adult in words per minute.
const READING_SPEED: usize = 240;

/// Returns characters, words, sentences, lines and reading time of `text`; with `find`, also the number of
/// its occurrences.
pub(super) fn text_statistics(args: &Value) -> ToolResult {
    let Some(text) = args.get("text").and_then(Value::as_str) else {
        return ToolResult::error("text: required but missing.");
    };
    let characters = text.chars().count();
    let without_spaces = text.chars().filter(|c| !c.is_whitespace()).count();
    let words = text.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).count();
    let seconds = (words * 60).div_ceil(READING_SPEED);
    let mut out = format!(
        "characters: {characters} ({without_spaces} without spaces)\nwords: {words}\nsentences: {}\nlines: {}\n\
         reading time: {} min {} s",
        sentences(text),
        text.lines().count(),
        seconds / 60,
        seconds % 60
    );
    if let Some(find) = args.get("find").and_then(Value::as_str).filter(|find| !find.is_empty()) {
        let count = occurrences(&text.to_lowercase(), &find.to_lowercase());
        out.push_str(&format!("\noccurrences of \"{find}\": {count}"));
    }
    ToolResult::success(out)
}

/// Counts sentences: parts with a letter or digit that end with `.`, `!`, `?`, `…` or their full-width forms,
/// or with the text. A full stop inside a number or a name (`3.5`, `docs.rs`) does not end one.
fn sentences(text: &str) -> usize {
    let mut count = 0;
    let mut has_word = false;
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        has_word |= c.is_alphanumeric();
        let ends = match c {
            '!' | '?' | '…' | '。' | '！' | '？' => true,
            '.' => characters.peek().is_none_or(|next| !next.is_alphanumeric()),
            _ => false,
        };
        if ends && has_word {
            count += 1;
            has_word = false;
        }
    }
    count + usize::from(has_word)
}

/// Counts occurrences, including overlapping ones.
fn occurrences(text: &str, find: &str) -> usize {
    text.char_indices().filter(|(at, _)| text.get(*at..).is_some_and(|rest| rest.starts_with(find))).count()
}

/// Returns `text`, for tools whose call matters more than their result, such as one that ends a session.
pub(super) fn say(args: &Value) -> ToolResult {
    match args.get("text").and_then(Value::as_str) {
        Some(text) => ToolResult::success(text),
        None => ToolResult::error("text: required but missing."),
    }
}

/// The error of a call that would have to wait for a user.
pub(super) fn no_answer(name: &str) -> ToolResult {
    let text = format!("\"{name}\" waits for a person, and cannot wait here.");
    ToolResult { error_code: Some("would_wait".into()), ..ToolResult::error(text) }
}

#[cfg(test)]
mod tests {
    use crate::json;

    use super::*;

    #[test]
    fn counts_what_people_count() {
        let text = "Grüße! How many r's are in strawberry? Version 3.5 is out.\nThe end";
        let told = text_statistics(&json!({ "text": text, "find": "R" })).text();
        assert_eq!(
            told,
            "characters: 66 (54 without spaces)\nwords: 13\nsentences: 4\nlines: 2\nreading time: 0 min 4 s\n\
             occurrences of \"R\": 7"
        );
    }

    #[test]
    fn odd_texts() {
        for (text, sentences_expected, words) in
            [("", 0, 0), ("...", 0, 0), ("Hi", 1, 1), ("Wait... what?!", 2, 2), ("— a —", 1, 1)]
        {
            let told = text_statistics(&json!({ "text": text })).text();
            assert!(
                told.contains(&format!("\nwords: {words}\nsentences: {sentences_expected}\n")),
                "{text}: {told}"
            );
        }
        assert_eq!(occurrences("aaaa", "aa"), 3);
        assert!(text_statistics(&json!({})).error.is_some());
    }
}
