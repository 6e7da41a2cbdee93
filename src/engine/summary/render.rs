//! Renders messages as labelled text, for the model that summarizes them.

use std::ops::ControlFlow;

use crate::definitions::message::Role;
use crate::error::Result;
use crate::host::Sql;
use crate::store::messages::{Row, page};
use crate::store::window::SHORT_BYTES;
use crate::text::first_bytes;
use crate::tokens::tokens;

/// Labels of speakers, by role.
pub(super) struct Labels {
    pub(super) user: String,
    pub(super) assistant: String,
}

/// Messages that fit into one request.
pub(super) struct Piece {
    pub(crate) text: String,
    /// Seq of the last message.
    pub(super) upto: i64,
}

/// The messages after one seq up to another that fit into `room` tokens. The first is always included, cut if
/// necessary.
pub(super) fn piece(sql: &dyn Sql, after: i64, upto: i64, room: usize, labels: &Labels) -> Result<Piece> {
    let mut piece = Piece { text: String::new(), upto };
    let (mut taken, mut last) = (0, after);
    page::top_level_between(sql, after, upto, &mut |row| {
        let Some(lines) = lines(&row, labels) else { return Ok(ControlFlow::Continue(())) };
        let lines = within(lines, room);
        taken += tokens(&lines) + 1;
        if taken > room && !piece.text.is_empty() {
            piece.upto = last;
            return Ok(ControlFlow::Break(()));
        }
        if !piece.text.is_empty() {
            piece.text.push('\n');
        }
        piece.text.push_str(&lines);
        last = row.seq;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(piece)
}

/// A message; `None` if models never see it, or it is empty.
fn lines(row: &Row, labels: &Labels) -> Option<String> {
    if row.is_status() {
        return None;
    }
    let who = match row.role {
        Role::System => "System",
        Role::User => &labels.user,
        Role::Assistant => &labels.assistant,
        Role::Tool => {
            let (name, text) =
                (row.name.as_deref().unwrap_or("a tool"), row.content.as_deref().unwrap_or_default());
            return Some(format!("[Result of {name}] {}{}", short(text), notes(row)));
        }
    };
    let mut lines = Vec::new();
    let said = row.content.as_deref().unwrap_or_default().trim();
    if !said.is_empty() || !row.attachments.is_empty() {
        lines.push(format!("[{who}] {said}{}", notes(row)));
    }
    for call in row.calls.iter().filter(|call| !call.is_dropped()) {
        lines.push(format!("[{who} calls {}] {}", call.name, short(&call.arguments)));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// A line for each file.
fn notes(row: &Row) -> String {
    row.attachments.iter().map(|attachment| format!("\n{}", attachment.note())).collect()
}

fn short(text: &str) -> String {
    match first_bytes(text, SHORT_BYTES) {
        whole if whole.len() == text.len() => text.to_owned(),
        cut => format!("{cut} […]"),
    }
}

/// A text of at most `room` tokens.
fn within(mut text: String, room: usize) -> String {
    let mut all = tokens(&text);
    while all > room && !text.is_empty() {
        let share = text.len() * room / all;
        text = format!("{} […]", first_bytes(&text, share.saturating_sub(8)));
        let left = tokens(&text);
        if left >= all {
            break;
        }
        all = left;
    }
    text
}

/// A text of at most `most` tokens. It ends with a sentence, if one ends in its second half.
pub(super) fn whole_sentences(text: &str, most: usize) -> String {
    let all = tokens(text);
    if all <= most {
        return text.to_owned();
    }
    let mut cut = first_bytes(text, text.len() * most / all.max(1));
    while tokens(cut) > most {
        cut = first_bytes(cut, cut.len() * 9 / 10);
    }
    let ends = |c: char| matches!(c, '.' | '!' | '?' | '\n' | '。' | '！' | '？');
    match cut.rfind(ends).filter(|at| *at >= cut.len() / 2) {
        Some(at) => {
            cut.char_indices().take_while(|(place, _)| *place <= at).map(|(_, c)| c).collect::<String>()
        }
        None => cut.to_owned(),
    }
    .trim_end()
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definitions::message::ToolCall;

    fn labels() -> Labels {
        Labels { user: "Ann".into(), assistant: "Clerk".into() }
    }

    #[test]
    fn messages_are_lines_with_who_says_them() {
        let call = ToolCall {
            id: "c".into(),
            name: "lookup".into(),
            arguments: "{\"q\":1}".into(),
            extra_content: None,
        };
        let reply = Row { calls: vec![call], ..Row::new(2, Role::Assistant, "I look.", 0) };
        let result = Row { name: Some("lookup".into()), ..Row::new(3, Role::Tool, "r".repeat(1_000), 0) };
        let told = |row: &Row| lines(row, &labels()).unwrap_or_default();
        assert_eq!(told(&Row::new(1, Role::User, "Find it.", 0)), "[Ann] Find it.");
        assert_eq!(told(&reply), "[Clerk] I look.\n[Clerk calls lookup] {\"q\":1}");
        assert_eq!(told(&result), format!("[Result of lookup] {} […]", "r".repeat(400)));
        let status = Row {
            metadata: Some("{\"status_kind\":\"x\"}".into()),
            ..Row::new(4, Role::Assistant, "Stopped.", 0)
        };
        assert_eq!(lines(&status, &labels()), None);
        assert_eq!(lines(&Row::new(5, Role::Assistant, " ", 0), &labels()), None);
    }

    #[test]
    fn what_is_too_long_is_cut() {
        let long = "word ".repeat(10_000);
        for room in [3, 50, 500] {
            let cut = within(long.clone(), room);
            assert!(tokens(&cut) <= room.max(8), "{room}: {}", tokens(&cut));
        }
        assert_eq!(within("short".into(), 50), "short");
        let text = "One sentence is here. Another one follows it. And then a third that goes on and on.";
        assert_eq!(whole_sentences(text, 1_000), text);
        assert_eq!(whole_sentences(text, 12), "One sentence is here. Another one follows it.");
        let endless = "word ".repeat(100);
        assert!((10..=20).contains(&tokens(&whole_sentences(&endless, 20))));
    }
}
