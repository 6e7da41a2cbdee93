//! Secrets with a revealing context: the name of their field, `Bearer`, the user of a URL; and private keys.

use crate::redact::step_count;
use crate::scrub::class;
use crate::scrub::known;
use crate::scrub::loose;
use crate::scrub::loose::Command;
use crate::scrub::name::{self, NameMeaning};
use crate::scrub::value::{self, Shape, ValueMatch};
use crate::scrub::{Kind, Span, before, byte, continues, part};

/// Maximum bytes of blanks between a name and its value.
const BLANKS: usize = 16;
/// Assignment operators besides `=`.
const ASSIGNS: [&[u8]; 9] = [b":=", b"=>", b"+=", b"?=", b".=", b"::=", b"??=", b"||=", b":::="];

/// Finds them in a text, in order.
pub(super) fn find(bytes: &[u8], extra: &[Vec<u8>]) -> Vec<Span> {
    let mut looking = KeywordScan {
        bytes,
        extra,
        spans: Vec::new(),
        pem: known::Pem::default(),
        command: None,
        line: 0,
        plain: 0,
    };
    let mut at = 0;
    loop {
        at += part(bytes, at, bytes.len()).iter().take_while(|byte| !class::is(**byte, class::NAMES)).count();
        if at >= bytes.len() {
            return looking.spans;
        }
        at = looking.step(at);
    }
}

struct KeywordScan<'a> {
    bytes: &'a [u8],
    extra: &'a [Vec<u8>],
    spans: Vec<Span>,
    pem: known::Pem,
    /// The command in the line, if it accepts passwords.
    command: Option<Command>,
    /// Start of the line.
    line: usize,
    /// Position up to which the line contains only blanks and names.
    plain: usize,
}

impl KeywordScan<'_> {
    /// Handles the text at a position; returns the next position.
    fn step(&mut self, at: usize) -> usize {
        match byte(self.bytes, at) {
            b'\n' => {
                self.command = self.command.filter(|_| continues_line(self.bytes, at));
                self.line = at + 1;
                at + 1
            }
            b'-' if continues(self.bytes, at, b"-----BEGIN ") => match self.pem.block(self.bytes, at) {
                Some(span) => self.take(span),
                None => at + 11,
            },
            b':' if continues(self.bytes, at, b"://") => self.authority(at + 3),
            b'-' if self.command.is_some() => self.flag(at),
            first if is_name(first) && first != b'-' => self.name(at),
            _ => at + 1,
        }
    }

    fn take(&mut self, span: Span) -> usize {
        self.spans.push(span);
        span.end.max(span.start + 1)
    }

    /// Handles a name, and its value if that is secret.
    fn name(&mut self, start: usize) -> usize {
        let bytes = self.bytes;
        let mut end = start;
        loop {
            end += part(bytes, end, bytes.len())
                .iter()
                .take_while(|byte| class::is(**byte, class::NAME))
                .count();
            // One `-` joins words, two do not.
            if byte(bytes, end) != b'-' || byte(bytes, end + 1) == b'-' {
                break;
            }
            end += 1;
        }
        step_count::add(end - start);
        if self.extra.is_empty() && !name::may_matter(part(bytes, start, end)) {
            return end;
        }
        // The letter of an escape does not belong to the name.
        let escape = before(bytes, start) == b'\\' && matches!(byte(bytes, start), b'n' | b'r' | b't');
        let name = part(bytes, start + usize::from(escape), end);
        self.note_command(name, start);
        let says = |shape| match shape {
            Shape::Bearer => Some(NameMeaning::Secret),
            _ => name::meaning(name, self.extra).or_else(|| key_of_words(bytes, start, name)),
        };
        let shape = self.shape(name, start, end);
        let known = shape.and_then(|(shape, from)| Some((shape, from, says(shape)?)));
        let Some((shape, from, says)) = known else {
            let loose = loose::find(bytes, (start, end), name, self.extra);
            return match loose {
                Some((start, end)) => self.take(Span { start, end, kind: Kind::Keyword }),
                None => end,
            };
        };
        let shape =
            if says == NameMeaning::Authorization && shape == Shape::Colon { Shape::Header } else { shape };
        match value::find(bytes, from, shape, name) {
            ValueMatch::Secret(span) => self.take(span),
            ValueMatch::Past(place) => place.max(end),
        }
    }

    /// The shape of the value after a name, and its position.
    fn shape(&mut self, name: &[u8], start: usize, end: usize) -> Option<(Shape, usize)> {
        let bytes = self.bytes;
        if name.eq_ignore_ascii_case(b"bearer") && byte(bytes, end) == b' ' {
            return Some((Shape::Bearer, blanks(bytes, end)));
        }
        // End of a quoted name.
        let quote = value::quote(bytes, end);
        let mut at = end + quote.map_or(0, |quote| quote.length());
        if byte(bytes, at) == b']' {
            at += 1;
        }
        let quoted = quote.filter(|quote| quote.opens(bytes, start));
        let close = at;
        at = blanks(bytes, at);
        let spaced = at > close;
        match byte(bytes, at) {
            b':' | b'=' | b'+' | b'?' | b'.' | b'|' if let Some(length) = assigns(bytes, at) => {
                Some((Shape::Assigned, blanks(bytes, at + length)))
            }
            b':' if continues(bytes, at, b"::") => None,
            b':' => {
                let from = block(bytes, blanks(bytes, at + 1));
                Some((quoted.map_or(Shape::Colon, Shape::Json), from))
            }
            b'=' if matches!(byte(bytes, at + 1), b'=' | b'~') => None,
            b'=' => {
                let from = blanks(bytes, at + 1);
                let loose = spaced || from > at + 1;
                Some((self.equals(start, from, loose), from))
            }
            b'>' if before(bytes, start) == b'<' && close == end && !spaced => {
                Some((Shape::Tag, next_line(bytes, at + 1)))
            }
            b'i' if spaced && continues(bytes, at, b"is") => match byte(bytes, at + 2) {
                b' ' => Some((Shape::Is, blanks(bytes, at + 2))),
                b':' => Some((Shape::Is, blanks(bytes, at + 3))),
                _ => None,
            },
            _ if spaced && part(bytes, start.saturating_sub(2), start) == b"--" => Some((Shape::Flag, at)),
            _ => None,
        }
    }

    /// The shape of an `=` after the name at `start`.
    fn equals(&mut self, start: usize, from: usize, loose: bool) -> Shape {
        let bytes = self.bytes;
        if loose {
            return Shape::Assigned;
        }
        if matches!(before(bytes, start), b'?' | b'&' | b'#') {
            return Shape::Query;
        }
        let opens = !matches!(byte(bytes, from), b'"' | b'\'' | b'`');
        if opens && self.is_plain(start) { Shape::Line } else { Shape::Equals }
    }

    /// Whether the line contains only blanks and names up to a position, such as `export `. Each line is
    /// scanned once, however many names it has.
    fn is_plain(&mut self, until: usize) -> bool {
        let plain = |byte: &&u8| byte.is_ascii_whitespace() || **byte == b'.' || is_name(**byte);
        self.plain = self.plain.max(self.line);
        let length = part(self.bytes, self.plain, until).iter().take_while(plain).count();
        step_count::add(length);
        self.plain += length;
        self.plain >= until
    }

    /// Handles the user of a URL, where its password is.
    fn authority(&mut self, start: usize) -> usize {
        match known::password_of_url(self.bytes, start) {
            Some((from, end)) => self.take(Span { start: from, end, kind: Kind::Keyword }),
            None => start,
        }
    }

    /// Records that the line is a command with passwords.
    fn note_command(&mut self, name: &[u8], start: usize) {
        let begins =
            matches!(before(self.bytes, start), 0 | b' ' | b'\t' | b'\n' | b'|' | b';' | b'&' | b'(');
        match Command::of(name) {
            Some(Command::Curl) => self.command = Some(Command::Curl),
            Some(Command::Login) if self.command.is_none() && begins => self.command = Some(Command::Login),
            Some(Command::Login) | None => {}
            Some(command) if begins => self.command = Some(command),
            Some(_) => {}
        }
    }

    /// Handles `-u name:password` of a command, and similar flags.
    fn flag(&mut self, at: usize) -> usize {
        match self.command.and_then(|command| command.password(self.bytes, at)) {
            Some((from, end)) => self.take(Span { start: from, end, kind: Kind::Keyword }),
            None => at + 1,
        }
    }
}

/// Length of an assignment operator other than a plain `=`.
fn assigns(bytes: &[u8], at: usize) -> Option<usize> {
    ASSIGNS.iter().find(|sign| continues(bytes, at, sign)).map(|sign| sign.len())
}

/// The first line of a YAML block, if one starts here: `name: |` and `name: >-`.
fn block(bytes: &[u8], at: usize) -> usize {
    if !matches!(byte(bytes, at), b'|' | b'>') {
        return at;
    }
    let end = at + 1 + usize::from(matches!(byte(bytes, at + 1), b'-' | b'+'));
    if byte(bytes, end) == b'\n' { next_line(bytes, end) } else { at }
}

/// Skips a line end, and the blanks after it.
fn next_line(bytes: &[u8], at: usize) -> usize {
    if byte(bytes, at) == b'\n' { blanks(bytes, at + 1) } else { at }
}

/// Recognizes `API key` in separate words.
fn key_of_words(bytes: &[u8], start: usize, name: &[u8]) -> Option<NameMeaning> {
    let before = part(bytes, start.saturating_sub(8), start);
    let is = |word: &[u8]| {
        before.len() >= word.len()
            && before.get(before.len() - word.len()..).is_some_and(|last| last.eq_ignore_ascii_case(word))
    };
    let words = [&b"api "[..], b"access ", b"secret ", b"private "];
    (name.eq_ignore_ascii_case(b"key") && words.into_iter().any(is)).then_some(NameMeaning::Secret)
}

/// Whether a byte can be part of a name.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// Skips blanks.
fn blanks(bytes: &[u8], at: usize) -> usize {
    let blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
    at + part(bytes, at, at + BLANKS).iter().take_while(blank).count()
}

/// Whether a command continues in the next line.
fn continues_line(bytes: &[u8], end: usize) -> bool {
    before(bytes, end) == b'\\'
}
