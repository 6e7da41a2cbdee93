//! Changes of a text that leave everything else where it was.

use oxc_span::Span;

use crate::text::{Source, ends_line};

/// What takes the place of a part of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
enum With {
    /// White space. `first` and `last` are written over its ends.
    Blank { first: Option<char>, last: Option<char> },
    /// Code. The line ends of what it replaces follow it.
    Code(String),
}

#[derive(Clone, Debug)]
struct Edit {
    span: Span,
    with: With,
}

/// The changes of one module, made in any order. They do not overlap.
#[derive(Debug, Default)]
pub(crate) struct Edits {
    list: Vec<Edit>,
}

impl Edits {
    /// Where the first change is.
    pub(crate) fn first(&self) -> Option<u32> {
        self.list.iter().map(|edit| edit.span.start).min()
    }

    /// White space instead of a part of the text.
    pub(crate) fn blank(&mut self, start: u32, end: u32) {
        self.push(start, end, With::Blank { first: None, last: None });
    }

    /// White space whose first character is another one, such as the `;` that keeps two statements apart.
    pub(crate) fn blank_with(&mut self, start: u32, end: u32, first: char) {
        self.push(start, end, With::Blank { first: Some(first), last: None });
    }

    /// White space whose last character is another one.
    pub(crate) fn blank_until(&mut self, start: u32, end: u32, last: char) {
        self.push(start, end, With::Blank { first: None, last: Some(last) });
    }

    /// Code instead of a part of the text.
    pub(crate) fn replace(&mut self, start: u32, end: u32, code: impl Into<String>) {
        self.list.push(Edit { span: Span::new(start, end), with: With::Code(code.into()) });
    }

    /// Code before the character at `at`; the rest of the line moves.
    pub(crate) fn insert(&mut self, at: u32, code: impl Into<String>) {
        self.replace(at, at, code);
    }

    fn push(&mut self, start: u32, end: u32, with: With) {
        if start < end {
            self.list.push(Edit { span: Span::new(start, end), with });
        }
    }

    /// Ends a statement or class member by a `;` where a line end has ended it until now: without what was erased
    /// at its end, the next line could continue it.
    pub(crate) fn separate_if_open(&mut self, statement: Span, source: Source<'_>) {
        let end = statement.end;
        if source.slice(statement.start, end).ends_with(';') {
            return;
        }
        match self.list.iter_mut().rev().take(4).find(|edit| edit.span.end == end) {
            Some(Edit { with: With::Blank { first: first @ None, .. }, .. }) => *first = Some(';'),
            Some(Edit { with: With::Code(code), span }) if span.is_empty() && !code.ends_with(';') => {
                code.push(';')
            }
            _ => {}
        }
    }

    /// Writes a `;` over the start of the blank that begins at `start`.
    pub(crate) fn separate_start(&mut self, start: u32) {
        if let Some(Edit { with: With::Blank { first, .. }, .. }) =
            self.list.iter_mut().rev().take(8).find(|edit| edit.span.start == start)
        {
            *first = Some(';');
        }
    }

    /// The text after all changes.
    pub(crate) fn apply(mut self, source: Source<'_>) -> String {
        self.list.sort_by_key(|edit| (edit.span.start, edit.span.end));
        let mut out = String::with_capacity(source.0.len() + 256);
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
                    out.push_str(code);
                    out.extend(old.chars().filter(|char| ends_line(*char)));
                }
            }
            done = end;
        }
        out.push_str(source.slice(done, source.0.len() as u32));
        out
    }
}

/// White space as wide as `old`, with its line ends.
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
        // What takes two units in UTF-16 takes two columns.
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
        assert_eq!(edits.apply(source), format!("a{}\r\n b;", " ".repeat(7)));
    }

    #[test]
    fn marks_are_written_over_the_ends_of_a_blank() {
        let source = Source("(a: T)");
        let mut edits = Edits::default();
        edits.blank_until(2, 5, ')');
        edits.blank_with(5, 6, ';');
        assert_eq!(edits.apply(source), "(a  );");
    }

    #[test]
    fn replaced_text_keeps_its_line_ends_behind_the_new_text() {
        let source = Source("enum\nE\n{}");
        let mut edits = Edits::default();
        edits.replace(0, 8, "var E; {");
        assert_eq!(edits.apply(source), "var E; {\n\n}");
    }
}
