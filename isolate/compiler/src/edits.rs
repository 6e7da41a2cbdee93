//! Edits of a text that keep everything else in place.

use std::collections::HashMap;

use oxc_span::Span;
use serde::Serialize;

use crate::text::{Source, ends_line};

/// The maximum number of column mappings. Beyond it, columns are those of the text for the engine.
const MOVED: usize = 5_000;

/// From column `at` of a line up to the next entry on that line, columns count from column `was` of the
/// source. In UTF-16 units, all from 1; a line ends with a line feed. In JSON: `[line, at, was]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Moved(u32, u32, u32);

/// The replacement for a part of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
enum With {
    /// White space. `first` and `last` overwrite its ends.
    Blank { first: Option<char>, last: Option<char> },
    /// Code. The line ends of the replaced text follow it.
    Code(String),
}

#[derive(Clone, Debug)]
struct Edit {
    span: Span,
    with: With,
}

/// The edits of one module, added in any order. They do not overlap.
#[derive(Debug, Default)]
pub(crate) struct Edits {
    list: Vec<Edit>,
    /// The positions of inserted code, and the index of the edit.
    inserted: HashMap<u32, usize>,
}

impl Edits {
    /// The position of the first edit.
    pub(crate) fn first(&self) -> Option<u32> {
        self.list.iter().map(|edit| edit.span.start).min()
    }

    /// Replaces a part of the text by white space.
    pub(crate) fn blank(&mut self, start: u32, end: u32) {
        self.push(start, end, With::Blank { first: None, last: None });
    }

    /// Replaces by white space with another first character, such as the `;` that separates two statements.
    pub(crate) fn blank_with(&mut self, start: u32, end: u32, first: char) {
        self.push(start, end, With::Blank { first: Some(first), last: None });
    }

    /// Replaces by white space with another last character.
    pub(crate) fn blank_until(&mut self, start: u32, end: u32, last: char) {
        self.push(start, end, With::Blank { first: None, last: Some(last) });
    }

    /// Replaces a part of the text by code.
    pub(crate) fn replace(&mut self, start: u32, end: u32, code: impl Into<String>) {
        self.list.push(Edit { span: Span::new(start, end), with: With::Code(code.into()) });
    }

    /// Inserts code before the character at `at`; the rest of the line moves.
    pub(crate) fn insert(&mut self, at: u32, code: impl Into<String>) {
        self.inserted.insert(at, self.list.len());
        self.replace(at, at, code);
    }

    fn push(&mut self, start: u32, end: u32, with: With) {
        if start < end {
            self.list.push(Edit { span: Span::new(start, end), with });
        }
    }

    /// Ends a statement or class member with a `;` if a line end ended it so far. Without its erased end, the
    /// next line could continue it.
    pub(crate) fn separate_if_open(&mut self, statement: Span, source: Source<'_>) {
        let end = statement.end;
        if source.slice(statement.start, end).ends_with(';') {
            return;
        }
        if let Some(at) = self.inserted.get(&end) {
            if let Some(Edit { with: With::Code(code), .. }) = self.list.get_mut(*at)
                && !code.ends_with(';')
            {
                code.push(';');
            }
            return;
        }
        if let Some(Edit { with: With::Blank { first: first @ None, .. }, .. }) =
            self.list.iter_mut().rev().take(4).find(|edit| edit.span.end == end)
        {
            *first = Some(';');
        }
    }

    /// Writes a `;` at the start of the blank that begins at `start`.
    pub(crate) fn separate_start(&mut self, start: u32) {
        if let Some(Edit { with: With::Blank { first, .. }, .. }) =
            self.list.iter_mut().rev().take(8).find(|edit| edit.span.start == start)
        {
            *first = Some(';');
        }
    }

    /// The edited text, and the columns that differ from those of the source.
    pub(crate) fn apply(mut self, source: Source<'_>) -> (String, Vec<Moved>) {
        self.list.sort_by_key(|edit| (edit.span.start, edit.span.end));
        let mut out = String::with_capacity(source.0.len() + 256);
        let mut columns = Columns::default();
        let mut done = 0;
        for Edit { span, with } in &self.list {
            debug_assert!(span.start >= done, "edits overlap at {span:?}");
            let start = span.start.max(done);
            let end = span.end.max(start);
            out.push_str(source.slice(done, start));
            let old = source.slice(start, end);
            match with {
                With::Blank { first, last } => blank(&mut out, old, *first, *last),
                With::Code(code) => {
                    let from = out.len();
                    out.push_str(code);
                    out.extend(old.chars().filter(|char| ends_line(*char)));
                    columns.moved(source.slice(0, start), old, out.get(from..).unwrap_or_default());
                }
            }
            done = end;
        }
        out.push_str(source.slice(done, source.0.len() as u32));
        (out, columns.list)
    }
}

/// Tracks the columns of the edited text.
#[derive(Default)]
struct Columns {
    /// The end of the counted part of the source, in bytes.
    counted: usize,
    was: Place,
    is: Place,
    list: Vec<Moved>,
}

#[derive(Clone, Copy, Default)]
struct Place {
    line: u32,
    column: u32,
}

impl Place {
    fn pass(&mut self, text: &str) {
        let units = |text: &str| match text.is_ascii() {
            true => text.len() as u32,
            false => text.encode_utf16().count() as u32,
        };
        match text.rsplit_once('\n') {
            None => self.column += units(text),
            Some((before, last)) => {
                self.line += 1 + before.matches('\n').count() as u32;
                self.column = units(last);
            }
        }
    }
}

impl Columns {
    /// Records that `new` replaces `old` after `before`. Blanked parts of `before` kept their width.
    fn moved(&mut self, before: &str, old: &str, new: &str) {
        if self.list.len() == MOVED {
            return;
        }
        let between = before.get(self.counted..).unwrap_or_default();
        self.counted = before.len() + old.len();
        for (place, text) in [(&mut self.was, old), (&mut self.is, new)] {
            place.pass(between);
            place.pass(text);
        }
        let by = |at: u32, was: u32| i64::from(at) - i64::from(was);
        let on_this_line = self.list.last().filter(|Moved(line, ..)| *line == self.is.line + 1);
        let now = by(self.is.column, self.was.column);
        if now != on_this_line.map_or(0, |Moved(_, at, was)| by(*at, *was)) {
            self.list.push(Moved(self.is.line + 1, self.is.column + 1, self.was.column + 1));
        }
    }
}

/// White space of the width of `old`, with its line ends.
fn blank(out: &mut String, old: &str, first: Option<char>, last: Option<char>) {
    let end = old.chars().count();
    for (at, char) in old.chars().enumerate() {
        let mark = if at == 0 {
            first
        } else if at + 1 == end {
            last
        } else {
            None
        };
        if ends_line(char) {
            out.push(char);
            continue;
        }
        out.push(mark.unwrap_or(' '));
        // A character of two UTF-16 units takes two columns.
        if char.len_utf16() == 2 {
            out.push(' ');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_keep_lines_and_utf16_columns() {
        let source = Source("a: \"é😀\"\r\n b;");
        let mut edits = Edits::default();
        edits.blank(1, 14);
        assert_eq!(edits.apply(source), (format!("a{}\r\n b;", " ".repeat(7)), vec![]));
    }

    #[test]
    fn marks_are_written_over_the_ends_of_a_blank() {
        let source = Source("(a: T)");
        let mut edits = Edits::default();
        edits.blank_until(2, 5, ')');
        edits.blank_with(5, 6, ';');
        assert_eq!(edits.apply(source).0, "(a  );");
    }

    #[test]
    fn replaced_text_keeps_its_line_ends_behind_the_new_text() {
        let source = Source("enum\nE\n{}");
        let mut edits = Edits::default();
        edits.replace(0, 8, "var E; {");
        assert_eq!(edits.apply(source).0, "var E; {\n\n}");
    }

    #[test]
    fn it_is_known_where_columns_are_not_those_of_the_source() {
        let source = Source("é😀(a: T)\nb\nenum E {\n} c d");
        let mut edits = Edits::default();
        edits.insert(6, "in😀");
        edits.replace(7, 8, "one");
        edits.replace(15, 25, "E");
        edits.insert(26, "s");
        edits.replace(28, 29, "x");
        let (text, moved) = edits.apply(source);
        assert_eq!(text, "é😀in😀(one: T)\nb\nE\n sc x");
        assert_eq!(moved, [Moved(1, 8, 4), Moved(1, 12, 6), Moved(4, 1, 2), Moved(4, 3, 3)]);
    }
}
