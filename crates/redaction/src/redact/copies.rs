//! A text without its escapes, with the original position of each byte.
//!
//! * [`DecodedText::json`], [`DecodedText::percent`], [`DecodedText::printable`]: one level of one kind of escape removed, as a
//!   decoder does it.
//! * [`DecodedText::bare`]: all escapes of all kinds removed, however nested and mixed: percent, backslashes of JSON
//!   and others, HTML entities. A `+`, which means a space in forms, becomes a space. Carriage returns and
//!   remaining backslashes are removed.
//! * [`DecodedText::unwrapped`]: a bare copy without white space.
//!
//! Each needs one pass. A bare copy is built like a stack: the end of an escape replaces it by its meaning,
//! which may complete another escape. Each such step shortens the copy.

use crate::redact::step_count;

/// Maximum bytes of an entity: `&#x10FFFF;`.
const ENTITY_BYTES: usize = 10;
const ENTITIES: [(&[u8], u8); 7] = [
    (b"amp", b'&'),
    (b"lt", b'<'),
    (b"gt", b'>'),
    (b"quot", b'"'),
    (b"apos", b'\''),
    (b"sol", b'/'),
    (b"nbsp", b' '),
];

/// A decoded text.
#[derive(Debug, Default)]
pub struct DecodedText {
    pub(super) bytes: Vec<u8>,
    /// Position of each byte in the text.
    pub from: Vec<u32>,
    /// Length of the text.
    pub whole: usize,
}

impl DecodedText {
    fn new(text: &[u8]) -> DecodedText {
        step_count::add(text.len());
        let (bytes, from) = (Vec::with_capacity(text.len()), Vec::with_capacity(text.len()));
        DecodedText { bytes, from, whole: text.len() }
    }

    fn put(&mut self, byte: u8, from: usize) {
        self.bytes.push(byte);
        // Texts are shorter than 4 GB.
        self.from.push(u32::try_from(from).unwrap_or(u32::MAX));
    }

    fn put_char(&mut self, c: char, from: usize) {
        for byte in c.encode_utf8(&mut [0; 4]).bytes() {
            self.put(byte, from);
        }
    }

    fn place(&self, at: usize) -> usize {
        self.from.get(at).map_or(self.whole, |from| *from as usize)
    }

    /// The part of the text for a range of the copy.
    pub fn source(&self, start: usize, end: usize) -> (usize, usize) {
        (self.place(start), self.place(end))
    }

    /// Decodes the inside of a JSON string.
    pub fn json(text: &[u8]) -> DecodedText {
        let mut copy = DecodedText::new(text);
        let mut at = 0;
        while let Some(byte) = text.get(at) {
            let escaped = if *byte == b'\\' { text.get(at + 1).copied() } else { None };
            at += match escaped {
                Some(b'u') => match unicode(text, at) {
                    Some((c, bytes)) => {
                        copy.put_char(c, at);
                        bytes
                    }
                    None => {
                        copy.put(*byte, at);
                        1
                    }
                },
                Some(escaped) if simple(escaped).is_some() => {
                    copy.put(simple(escaped).unwrap_or_default(), at);
                    2
                }
                _ => {
                    copy.put(*byte, at);
                    1
                }
            };
        }
        copy
    }

    /// Decodes a URL.
    pub fn percent(text: &[u8]) -> DecodedText {
        let mut copy = DecodedText::new(text);
        let mut at = 0;
        while let Some(byte) = text.get(at) {
            let escaped = if *byte == b'%' { number(text.get(at + 1..at + 3)) } else { None };
            copy.put(escaped.map_or(*byte, |value| value as u8), at);
            at += if escaped.is_some() { 3 } else { 1 };
        }
        copy
    }

    /// Removes all escapes.
    pub fn bare(text: &[u8]) -> DecodedText {
        let mut copy = DecodedText::new(text);
        for (at, byte) in text.iter().enumerate() {
            copy.put(*byte, at);
            while copy.reduce() {}
        }
        if copy.bytes.contains(&b'\\') { copy.only(|byte| byte != b'\\') } else { copy }
    }

    /// Keeps some of the bytes.
    fn only(&self, stays: impl Fn(u8) -> bool) -> DecodedText {
        let mut copy = DecodedText::new(&self.bytes);
        copy.whole = self.whole;
        for (at, byte) in self.bytes.iter().enumerate().filter(|(_, byte)| stays(**byte)) {
            copy.put(*byte, self.place(at));
        }
        copy
    }

    /// Replaces an escape at the end by its meaning; returns whether there was one.
    fn reduce(&mut self) -> bool {
        let Some(last) = self.bytes.last().copied() else { return false };
        let before =
            |back: usize| self.bytes.len().checked_sub(back).and_then(|at| self.bytes.get(at)).copied();
        let decoded = match last {
            b'+' => Some((1, DecodedUnit::Byte(b' '))),
            b'\r' => Some((1, DecodedUnit::Nothing)),
            _ if before(2) == Some(b'\\') && simple(last).is_some() => {
                Some((2, DecodedUnit::Byte(simple(last).unwrap_or_default())))
            }
            b';' => self.entity(),
            b'}' => self.braces(),
            byte if byte.is_ascii_hexdigit() => {
                let tail = |back: usize| {
                    self.bytes.len().checked_sub(back).and_then(|at| number(self.bytes.get(at..)))
                };
                if before(3) == Some(b'%') {
                    tail(2).map(|value| (3, DecodedUnit::Byte(value as u8)))
                } else if before(4) == Some(b'\\') && before(3) == Some(b'x') {
                    tail(2).map(|value| (4, DecodedUnit::Byte(value as u8)))
                } else if before(6) == Some(b'\\') && before(5) == Some(b'u') {
                    tail(4).map(|value| (6, DecodedUnit::Unit(value)))
                } else {
                    None
                }
            }
            _ => None,
        };
        let Some((bytes, decoded)) = decoded else { return false };
        let at = self.bytes.len().saturating_sub(bytes);
        let from = self.place(at);
        self.bytes.truncate(at);
        self.from.truncate(at);
        match decoded {
            DecodedUnit::Nothing => return false,
            DecodedUnit::Byte(byte) => self.put(byte, from),
            DecodedUnit::Unit(unit) => self.put_unit(unit, from),
        }
        bytes > 1
    }

    /// Appends a code point, or a surrogate, which is joined with a preceding one.
    fn put_unit(&mut self, unit: u32, from: usize) {
        if let Some(c) = char::from_u32(unit) {
            return self.put_char(c, from);
        }
        let half = |bytes: &[u8]| match bytes {
            [0xED, second @ 0xA0..=0xAF, third] => {
                Some(0xD000 | (u32::from(second & 0x3F) << 6) | u32::from(third & 0x3F))
            }
            _ => None,
        };
        let at = self.bytes.len().saturating_sub(3);
        if let Some(high) = self.bytes.get(at..).and_then(half)
            && let Some(c) = joined(high, unit)
        {
            let from = self.place(at);
            self.bytes.truncate(at);
            self.from.truncate(at);
            return self.put_char(c, from);
        }
        for byte in [0xED, 0x80 | ((unit >> 6) & 0x3F) as u8, 0x80 | (unit & 0x3F) as u8] {
            self.put(byte, from);
        }
    }

    /// Decodes `&amp;`, `&#39;`, `&#x27;` at the end.
    fn entity(&self) -> Option<(usize, DecodedUnit)> {
        let tail = self.bytes.get(self.bytes.len().saturating_sub(ENTITY_BYTES)..)?;
        let start = tail.iter().rposition(|byte| *byte == b'&')?;
        let name = tail.get(start + 1..tail.len() - 1)?;
        let bytes = tail.len() - start;
        let decoded = match name {
            [b'#', b'x' | b'X', hex @ ..] => DecodedUnit::Unit(number(Some(hex))?),
            [b'#', digits @ ..] => DecodedUnit::Unit(std::str::from_utf8(digits).ok()?.parse().ok()?),
            name => DecodedUnit::Byte(ENTITIES.iter().find(|(known, _)| *known == name)?.1),
        };
        Some((bytes, decoded))
    }

    /// Decodes `\u{e9}` at the end.
    fn braces(&self) -> Option<(usize, DecodedUnit)> {
        let tail = self.bytes.get(self.bytes.len().saturating_sub(ENTITY_BYTES)..)?;
        let start = tail.windows(3).rposition(|three| three == br"\u{")?;
        let value = number(tail.get(start + 3..tail.len() - 1))?;
        Some((tail.len() - start, DecodedUnit::Unit(value)))
    }

    /// Removes white space.
    pub fn unwrapped(&self) -> DecodedText {
        self.only(|byte| !byte.is_ascii_whitespace())
    }

    /// Decodes quoted-printable.
    pub fn printable(text: &[u8]) -> DecodedText {
        let mut copy = DecodedText::new(text);
        let mut at = 0;
        while let Some(byte) = text.get(at) {
            let value = if *byte == b'=' { number(text.get(at + 1..at + 3)) } else { None };
            at += match (byte, text.get(at + 1), text.get(at + 2)) {
                (b'=', Some(b'\n'), _) => 2,
                (b'=', Some(b'\r'), Some(b'\n')) => 3,
                _ => {
                    copy.put(value.map_or(*byte, |value| value as u8), at);
                    if value.is_some() { 3 } else { 1 }
                }
            };
        }
        copy
    }
}

/// Whether a text may be quoted-printable.
pub fn is_printable(text: &[u8]) -> bool {
    let digit = |byte: &u8| byte.is_ascii_digit() || (b'A'..=b'F').contains(byte);
    text.windows(3).any(|three| match three {
        [b'=', b'\n', _] | [b'=', b'\r', b'\n'] => true,
        [b'=', first, second] => digit(first) && digit(second),
        _ => false,
    })
}

enum DecodedUnit {
    Nothing,
    Byte(u8),
    /// A UTF-16 unit or a code point.
    Unit(u32),
}

/// The meaning of a backslash and a character, if it is a single character.
fn simple(escaped: u8) -> Option<u8> {
    Some(match escaped {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'f' => 12,
        // These begin another escape.
        b'%' | b'&' => return None,
        other if other.is_ascii_punctuation() => other,
        _ => return None,
    })
}

/// Decodes `\uXXXX` at a position, or a surrogate pair: the character and the length.
fn unicode(text: &[u8], at: usize) -> Option<(char, usize)> {
    let unit = |at: usize| match text.get(at..at + 2) {
        Some(br"\u") => number(text.get(at + 2..at + 6)),
        _ => None,
    };
    let first = unit(at)?;
    match char::from_u32(first) {
        Some(c) => Some((c, 6)),
        None => Some((joined(first, unit(at + 6)?)?, 12)),
    }
}

fn joined(high: u32, low: u32) -> Option<char> {
    let pair = (0xD800..0xDC00).contains(&high) && (0xDC00..0xE000).contains(&low);
    if pair { char::from_u32(0x10000 + ((high & 0x3FF) << 10) + (low & 0x3FF)) } else { None }
}

/// Parses one to six hexadecimal digits.
fn number(digits: Option<&[u8]>) -> Option<u32> {
    let digits = digits.filter(|digits| (1..=6).contains(&digits.len()))?;
    digits.iter().try_fold(0, |value, digit| Some(value * 16 + char::from(*digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bare(text: &str) -> String {
        String::from_utf8_lossy(&DecodedText::bare(text.as_bytes()).bytes).into_owned()
    }

    #[test]
    fn every_escape_is_taken_away() {
        for (text, expected) in [
            ("plain text, 50% & more; {a}", "plain text, 50% & more; {a}"),
            ("%2F%2f%c3%a9+%2B", "//é  "),
            ("%252F %25252F", "/ /"),
            (r#"\/ \" \\ \u00e9 \ud83d\ude00 \u{1f600} \x2f"#, "/ \"  é 😀 😀 /"),
            (r"\\u00e9 \\\\n", "é \n"),
            ("&amp;amp; &lt;&#39;&#x27;&quot; &eacute;", "& <''\" &eacute;"),
            ("a\r\nb", "a\nb"),
            ("%2 %zz \\q &; \\u12", "%2 %zz q &; u12"),
            ("", ""),
        ] {
            assert_eq!(bare(text), expected, "{text}");
        }
    }

    #[test]
    fn one_level_is_one_level() {
        let text = |copy: DecodedText| String::from_utf8(copy.bytes).unwrap();
        assert_eq!(
            text(DecodedText::json(br#"\\n \u00e9 \ud83d\ude00 \ud83d %41 \q"#)),
            "\\n é 😀 \\ud83d %41 \\q"
        );
        assert_eq!(text(DecodedText::percent(b"%2541 %c3%a9 + %4")), "%41 é + %4");
        assert_eq!(text(DecodedText::printable(b"a=3Db=\r\nc=\n=a")), "a=bc=a");
        assert!(is_printable(b"a=\nb") && is_printable(b"=3D") && !is_printable(b"a=b== c=\xc3\xa9"));
        assert_eq!(text(DecodedText::bare(b"a b\nc").unwrapped()), "abc");
    }

    #[test]
    fn bytes_know_where_they_came_from() {
        let text = r"a\u00e9%2Fb";
        let copy = DecodedText::bare(text.as_bytes());
        assert_eq!(copy.bytes, "aé/b".as_bytes());
        assert_eq!(copy.source(1, 3), (1, 7));
        assert_eq!(copy.source(3, 4), (7, 10));
        assert_eq!(copy.source(0, 5), (0, text.len()));
        let copy = DecodedText::bare(b"x\\n yz").unwrapped();
        assert_eq!((copy.bytes.as_slice(), copy.source(0, 2)), (&b"xyz"[..], (0, 5)));
    }
}
