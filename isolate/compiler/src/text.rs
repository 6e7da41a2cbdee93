//! The text of a module: positions, tokens and the space between them.

/// Line and column, both from 1; the column in UTF-16 code units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// A module's text, addressed by byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'s>(pub(crate) &'s str);

/// Whether a character ends a line of ECMAScript.
pub(crate) fn ends_line(char: char) -> bool {
    matches!(char, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

fn is_space(char: char) -> bool {
    char.is_whitespace() || char == '\u{feff}'
}

fn is_word(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '$' | '\u{200c}' | '\u{200d}') || (char == '\\')
}

impl<'s> Source<'s> {
    /// The text from `start` to `end`; empty if these are not positions of the text.
    pub(crate) fn slice(self, start: u32, end: u32) -> &'s str {
        self.0.get(start as usize..end as usize).unwrap_or_default()
    }

    fn rest(self, at: u32) -> &'s str {
        self.0.get(at as usize..).unwrap_or_default()
    }

    /// Whether the text at `at` is `wanted`.
    pub(crate) fn has(self, at: u32, wanted: &str) -> bool {
        self.rest(at).starts_with(wanted)
    }

    /// The end of the identifier or keyword at `at`; `at` itself if there is none.
    pub(crate) fn word_end(self, at: u32) -> u32 {
        let rest = self.rest(at);
        let length = rest.find(|char| !is_word(char)).unwrap_or(rest.len());
        at + length as u32
    }

    /// The position of the first token at or after `at`, past white space and comments.
    pub(crate) fn token(self, at: u32) -> u32 {
        let mut rest = self.rest(at);
        loop {
            let next = rest.trim_start_matches(is_space);
            rest = if let Some(comment) = next.strip_prefix("//") {
                comment.trim_start_matches(|char| !ends_line(char))
            } else if let Some(comment) = next.strip_prefix("/*") {
                comment.split_once("*/").map_or("", |(_, after)| after)
            } else {
                return self.0.len() as u32 - next.len() as u32;
            };
        }
    }

    /// The end of the token `wanted`, if it is the next one at or after `at`.
    pub(crate) fn after_token(self, at: u32, wanted: &str) -> Option<u32> {
        let start = self.token(at);
        self.has(start, wanted).then(|| start + wanted.len() as u32)
    }

    pub(crate) fn breaks_line(self, start: u32, end: u32) -> bool {
        self.slice(start, end).contains(ends_line)
    }

    /// Line and column of a byte.
    pub(crate) fn place(self, at: u32) -> Place {
        let mut until = (at as usize).min(self.0.len());
        while !self.0.is_char_boundary(until) {
            until -= 1;
        }
        let before = self.0.get(..until).unwrap_or_default();
        let mut place = Place { line: 1, column: 1 };
        let mut chars = before.chars().peekable();
        while let Some(char) = chars.next() {
            if ends_line(char) {
                if char == '\r' && self.has_newline_next(&mut chars, until) {
                    continue;
                }
                place = Place { line: place.line + 1, column: 1 };
            } else {
                place.column += char.len_utf16() as u32;
            }
        }
        place
    }

    /// Whether a carriage return is the first half of a line end. Only its second half counts.
    fn has_newline_next(self, chars: &mut std::iter::Peekable<std::str::Chars<'_>>, until: usize) -> bool {
        chars.peek().map_or_else(|| self.has(until as u32, "\n"), |next| *next == '\n')
    }
}

/// A string literal of ECMAScript.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            char if char.is_control() || matches!(char, '\u{2028}' | '\u{2029}') => {
                out.push_str(&format!("\\u{{{:x}}}", u32::from(char)));
            }
            char => out.push(char),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_counts_lines_and_utf16_units() {
        let source = Source("a\nbé😀c\r\nd\re\u{2028}f");
        for (at, line, column) in
            [("a", 1, 1), ("b", 2, 1), ("c", 2, 5), ("d", 3, 1), ("e", 4, 1), ("f", 5, 1)]
        {
            let found = source.place(source.0.find(at).unwrap() as u32);
            assert_eq!(found, Place { line, column }, "{at}");
        }
    }

    #[test]
    fn a_token_comes_after_white_space_and_comments() {
        let source = Source(" /* a // */ // */\n\u{feff}x");
        assert_eq!(source.token(0), source.0.len() as u32 - 1);
        assert_eq!(Source("// to the end").token(0), 13);
        assert_eq!(Source("/* never closed").token(0), 15);
    }
}
