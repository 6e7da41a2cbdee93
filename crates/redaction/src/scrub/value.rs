//! Values after names: their end and their plausibility.

use crate::redact::step_count;
use crate::scrub::name;
use crate::scrub::words;
use crate::scrub::{Kind, Span, before, byte, continues, part};

/// Maximum bytes of a value that are checked.
const LOOK_BYTES: usize = 128;
/// A shorter word of letters is prose.
const PROSE_CHARS: usize = 16;
/// A number with fewer digits is not secret.
const NUMBER_DIGITS: usize = 7;
/// Minimum characters of a value after a plain word.
const LEAST_CHARS: usize = 8;

/// Words that are not secret values.
const NONE: [&[u8]; 16] = [
    b"null",
    b"nil",
    b"none",
    b"undefined",
    b"true",
    b"false",
    b"void",
    b"string",
    b"str",
    b"bool",
    b"number",
    b"yes",
    b"no",
    b"redacted",
    b"bearer",
    b"basic",
];
/// Objects from which code reads values.
const ROOTS: [&[u8]; 28] = [
    b"self",
    b"this",
    b"os",
    b"process",
    b"config",
    b"cfg",
    b"conf",
    b"settings",
    b"env",
    b"args",
    b"opts",
    b"options",
    b"params",
    b"req",
    b"request",
    b"ctx",
    b"context",
    b"props",
    b"state",
    b"data",
    b"user",
    b"app",
    b"event",
    b"form",
    b"body",
    b"response",
    b"result",
    b"credentials",
];
/// Starts of lines of code.
const CODE: [&[u8]; 10] =
    [b"let ", b"const ", b"var ", b"val ", b"static ", b"final ", b"return ", b"if ", b"pub ", b"private "];

/// The syntax between a name and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// `"name": value`.
    Json(Quote),
    /// `name: value`.
    Colon,
    /// `Authorization: scheme value`.
    Header,
    /// `name=value` alone in its line.
    Line,
    /// `?name=value&`.
    Query,
    /// `name=value`.
    Equals,
    /// `name = value`, `name := value`, `name => value`.
    Assigned,
    /// `name is value`.
    Is,
    /// `--name value`.
    Flag,
    /// `<name>value</name>`.
    Tag,
    /// `bearer value`.
    Bearer,
}

impl Shape {
    /// Whether prose may have this shape.
    const fn is_prose(self) -> bool {
        matches!(
            self,
            Shape::Json(_) | Shape::Colon | Shape::Header | Shape::Is | Shape::Flag | Shape::Bearer
        )
    }

    /// Whether code may have this shape.
    const fn is_code(self) -> bool {
        matches!(self, Shape::Json(_) | Shape::Colon | Shape::Equals | Shape::Assigned | Shape::Line)
    }
}

/// A quotation mark, with a backslash inside another string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quote {
    mark: u8,
    escaped: bool,
}

impl Quote {
    pub(super) const fn length(self) -> usize {
        if self.escaped { 2 } else { 1 }
    }

    /// Whether the same mark precedes a position.
    pub(super) fn opens(self, bytes: &[u8], at: usize) -> bool {
        before(bytes, at) == self.mark && (before(bytes, at.saturating_sub(1)) == b'\\') == self.escaped
    }

    const fn text(self) -> &'static str {
        match (self.mark, self.escaped) {
            (b'"', false) => "\"",
            (b'"', true) => "\\\"",
            (b'\'', false) => "'",
            (b'\'', true) => "\\'",
            (_, false) => "`",
            (_, true) => "\\`",
        }
    }
}

/// The quotation mark at a position.
pub(super) fn quote(bytes: &[u8], at: usize) -> Option<Quote> {
    let escaped = byte(bytes, at) == b'\\';
    let mark = byte(bytes, at + usize::from(escaped));
    matches!(mark, b'"' | b'\'' | b'`').then_some(Quote { mark, escaped })
}

/// The result for a possible value.
pub(super) enum ValueMatch {
    Secret(Span),
    /// Not a secret; continue here.
    Past(usize),
}

/// Checks the value at a position, after a name.
pub(super) fn find(bytes: &[u8], start: usize, shape: Shape, name: &[u8]) -> ValueMatch {
    // A prefix: `b"…"`, `f"…"`.
    let prefixed = matches!(byte(bytes, start) | 0x20, b'b' | b'f' | b'r' | b'u');
    let open = start + usize::from(prefixed && quote(bytes, start + 1).is_some());
    let mut start = start;
    if let Some(quote) = quote(bytes, open).filter(|_| shape != Shape::Tag) {
        let from = open + quote.length();
        if starts_elsewhere(bytes, from) {
            return ValueMatch::Past(from);
        }
        if let Some(end) = closing(bytes, from, quote) {
            let text = credentials(part(bytes, from, end));
            let from = end - text.len();
            return match is_none(text) {
                true => ValueMatch::Past(from),
                false => ValueMatch::Secret(Span { start: from, end, kind: Kind::Keyword }),
            };
        }
        start = from;
    }
    bare(bytes, start, shape, name)
}

/// Whether a URL or a block starts here, which is handled separately.
fn starts_elsewhere(bytes: &[u8], at: usize) -> bool {
    [&b"http://"[..], b"https://", b"-----BEGIN", b"//"].iter().any(|start| continues(bytes, at, start))
}

/// The end of a quoted text in its line.
fn closing(bytes: &[u8], from: usize, quote: Quote) -> Option<usize> {
    let mut backslashes = 0;
    for (at, byte) in bytes.iter().enumerate().skip(from) {
        step_count::add(1);
        match *byte {
            b'\\' => backslashes += 1,
            b'\n' => return None,
            mark if mark == quote.mark => {
                if quote.escaped && backslashes == 1 {
                    return Some(at - 1);
                }
                if !quote.escaped && backslashes % 2 == 0 {
                    return Some(at);
                }
                backslashes = 0;
            }
            _ => backslashes = 0,
        }
    }
    None
}

/// Checks an unquoted value.
fn bare(bytes: &[u8], start: usize, shape: Shape, name: &[u8]) -> ValueMatch {
    if starts_elsewhere(bytes, start) || is_path(bytes, start) {
        return ValueMatch::Past(start);
    }
    if shape.is_code() && is_expression(bytes, start, shape) {
        return ValueMatch::Past(start);
    }
    let start =
        if shape == Shape::Header { start + scheme(part(bytes, start, start + LOOK_BYTES)) } else { start };
    if continues(bytes, start, b"&[") {
        return ValueMatch::Past(start);
    }
    let mut end = end(bytes, start, shape);
    while end > start + 1 && before(bytes, end) == b'.' && shape != Shape::Line {
        end -= 1;
    }
    let text = part(bytes, start, end);
    if let Some(found) = after_type(bytes, text, end, shape, name) {
        return found;
    }
    let opens = text.first().is_some_and(|first| b"[({!".contains(first));
    let place =
        opens && !matches!(shape, Shape::Line | Shape::Query | Shape::Tag) && text.len() < PROSE_CHARS;
    if is_none(text) || text.len() <= 2 || is_number(text) || is_type(text) {
        return ValueMatch::Past(start);
    }
    if place && text.iter().skip(1).all(u8::is_ascii_alphabetic) {
        return ValueMatch::Past(start);
    }
    // After the scheme of a header there is no prose.
    let prose = shape != Shape::Header || words::are_words(text);
    if shape.is_prose() && prose && is_word(text) {
        return ValueMatch::Past(end);
    }
    if shape == Shape::Tag && !closes(bytes, end) {
        return ValueMatch::Past(start);
    }
    let letters = text.iter().all(u8::is_ascii_alphabetic);
    if matches!(shape, Shape::Is | Shape::Bearer)
        && (text.len() < LEAST_CHARS || (letters && words::are_words(text)) || is_compound(text))
    {
        return ValueMatch::Past(start);
    }
    if is_variable(bytes, text, end, shape, name) {
        return ValueMatch::Past(end);
    }
    let kind = match shape {
        Shape::Json(quote) => Kind::Quoted(quote.text()),
        _ => Kind::Keyword,
    };
    ValueMatch::Secret(Span { start, end, kind })
}

/// Whether an element ends here, or at the start of the next line.
fn closes(bytes: &[u8], end: usize) -> bool {
    let rest = part(bytes, end, end + LOOK_BYTES);
    rest.strip_prefix(b"\n").map_or(rest, <[u8]>::trim_ascii_start).starts_with(b"</")
}

/// The end of an unquoted value.
fn end(bytes: &[u8], start: usize, shape: Shape) -> usize {
    let mut at = start;
    while let Some(next) = bytes.get(at) {
        let ends = match next {
            b'\\' if matches!(byte(bytes, at + 1), b'n' | b'r' | b't' | b'"' | b'\'') => true,
            b'\\' => {
                at += 1;
                false
            }
            b'\n' | b'\r' => true,
            b'<' => shape != Shape::Line,
            _ if shape == Shape::Tag => false,
            b'"' | b'\'' | b'`' => true,
            next if next.is_ascii_whitespace() => true,
            _ if shape == Shape::Line => false,
            b'&' => shape == Shape::Query || is_next_field(bytes, at + 1),
            b'#' => shape == Shape::Query,
            b',' | b';' | b')' | b']' | b'}' | b'>' | b'|' => true,
            _ => false,
        };
        if ends {
            break;
        }
        at += 1;
    }
    step_count::add(at.saturating_sub(start));
    at.min(bytes.len())
}

/// Whether `name=` follows.
fn is_next_field(bytes: &[u8], at: usize) -> bool {
    let field = part(bytes, at, at + LOOK_BYTES);
    step_count::add(1);
    let name =
        field.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"_-.[]".contains(byte)).count();
    name > 0 && field.get(name) == Some(&b'=')
}

/// Length of a scheme at the start of credentials: `Bearer …`.
fn scheme(text: &[u8]) -> usize {
    let length = text.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'-').count();
    let goes_on = matches!(text.get(length..), Some([b' ', next, ..]) if next.is_ascii_graphic() && !b"\"'`".contains(next));
    if length > 0 && goes_on { length + 1 } else { 0 }
}

/// Credentials without their scheme; any other text unchanged.
pub(super) fn credentials(text: &[u8]) -> &[u8] {
    let known = [&b"bearer "[..], b"basic ", b"token "];
    let is =
        |scheme: &&[u8]| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    known.into_iter().find(is).map_or(text, |scheme| part(text, scheme.len(), text.len()))
}

/// The value after the type of a field: `password: String = "…"`.
fn after_type(bytes: &[u8], text: &[u8], end: usize, shape: Shape, name: &[u8]) -> Option<ValueMatch> {
    let named =
        !text.is_empty() && text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"&_.".contains(byte));
    let assigned = shape == Shape::Colon && named && continues(bytes, end, b" = ");
    assigned.then(|| find(bytes, end + 3, Shape::Assigned, name))
}

/// Whether a text is empty, a word such as `null`, a mask, or a placeholder.
pub(super) fn is_none(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    if text.len() > LOOK_BYTES {
        return false;
    }
    let is = |word: &&[u8]| text.eq_ignore_ascii_case(word);
    let mask = |byte: &u8| b"*xX.-_#?".contains(byte) || !byte.is_ascii();
    let within =
        |open: &[u8], close: &[u8]| text.starts_with(open) && text.ends_with(close) && text.len() > 1;
    let starts = |start: &[u8]| text.get(..start.len()).is_some_and(|text| text.eq_ignore_ascii_case(start));
    let variable = |rest: &[u8]| {
        let name = rest.iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
        let upper =
            rest.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_');
        !rest.is_empty() && (name || upper)
    };
    text.is_empty()
        || NONE.iter().any(is)
        || text.iter().all(mask)
        || text.windows(3).any(|three| three == b"***")
        || text.windows(9).any(|nine| nine.eq_ignore_ascii_case(b"[redacted"))
        || within(b"<", b">")
        || within(b"{", b"}")
        || within(b"[", b"]")
        || within(b"%", b"%")
        || within(b"__", b"__")
        || [
            &b"<"[..],
            b"${",
            b"$(",
            b"{{",
            b"[redacted",
            b"%s",
            b"%(",
            b"$env:",
            b"your-",
            b"your_",
            b"secrets.",
        ]
        .iter()
        .any(|start| starts(start))
        || text.strip_prefix(b"$").is_some_and(variable)
}

/// Whether it is a number that is too short for a secret.
fn is_number(text: &[u8]) -> bool {
    let digits = text.iter().filter(|byte| byte.is_ascii_digit()).count();
    digits < NUMBER_DIGITS && text.iter().all(|byte| byte.is_ascii_digit() || b".+-%".contains(byte))
}

/// `u8`, `int64`.
fn is_type(text: &[u8]) -> bool {
    let letters = text.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
    let (name, digits) = text.split_at(letters);
    matches!(name, b"u" | b"i" | b"f" | b"int" | b"uint" | b"float")
        && matches!(digits, b"8" | b"16" | b"32" | b"64" | b"128")
}

/// Whether it is a word of prose, or the name of a type.
fn is_word(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"&").or_else(|| text.strip_prefix(b"*")).unwrap_or(text);
    let text = text.trim_ascii_end();
    let text = text
        .strip_suffix(b"?")
        .or_else(|| text.strip_suffix(b"!"))
        .or_else(|| text.strip_suffix(b":"))
        .unwrap_or(text);
    let letters = |byte: &u8| byte.is_ascii_alphabetic() || !byte.is_ascii();
    if !text.iter().all(letters) {
        return is_compound(text) && text.len() < PROSE_CHARS;
    }
    let humps = text.iter().filter(|byte| byte.is_ascii_uppercase()).count();
    let is_type = text.first().is_some_and(u8::is_ascii_uppercase)
        && humps >= 2
        && humps * 3 <= text.len()
        && words::are_words(text);
    text.len() < PROSE_CHARS || is_type
}

/// `case-sensitive`, `doesn't`, `and/or`.
fn is_compound(text: &[u8]) -> bool {
    text.iter().all(|byte| byte.is_ascii_alphabetic() || b"-'/".contains(byte)) && words::are_words(text)
}

/// Whether a path starts here.
fn is_path(bytes: &[u8], at: usize) -> bool {
    let text = part(bytes, at, at + LOOK_BYTES);
    let length =
        text.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"/._-~".contains(byte)).count();
    let text = text.get(..length).unwrap_or_default();
    (text.starts_with(b"/") || text.starts_with(b"./") || text.starts_with(b"~/") || text.starts_with(b"../"))
        && text.iter().filter(|byte| **byte == b'/').count() >= 1
        && words::are_words(text)
}

/// Whether it is an expression in code: a call, an element, a field.
fn is_expression(bytes: &[u8], start: usize, shape: Shape) -> bool {
    let text = part(bytes, start, start + LOOK_BYTES);
    let text = text.strip_prefix(b"await ").or_else(|| text.strip_prefix(b"new ")).unwrap_or(text);
    let text = text.strip_prefix(b"&").or_else(|| text.strip_prefix(b"$")).unwrap_or(text);
    let named = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.:?!>-".contains(byte);
    let length = text.iter().take_while(|byte| named(byte)).count();
    let (path, rest) = text.split_at_checked(length).unwrap_or((text, &[]));
    let begins = path.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
    if !begins {
        return false;
    }
    let calls = matches!(rest.first(), Some(b'(' | b'['));
    // A line of a configuration file may contain anything.
    let joined = shape != Shape::Line || path.iter().any(|byte| b"._".contains(byte));
    if calls && joined && words::are_words(path) {
        return true;
    }
    let dotted =
        path.windows(2).any(|two| matches!(two, [b'.', next] if next.is_ascii_alphabetic() || *next == b'_'));
    let arrow = path.windows(2).any(|two| two == b"::" || two == b"->");
    let root = path.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
    let root = path.get(..root).unwrap_or_default();
    if dotted && (ROOTS.contains(&root) || (calls && shape == Shape::Assigned)) {
        return true;
    }
    let lettered = path.iter().all(|byte| !byte.is_ascii_digit());
    (dotted || arrow) && lettered && shape != Shape::Line && words::are_words(path)
}

/// Whether code passes on a variable with the name of a secret: `token=token,` and `let secret =
/// client_secret;`.
fn is_variable(bytes: &[u8], text: &[u8], end: usize, shape: Shape, own: &[u8]) -> bool {
    if !matches!(shape, Shape::Line | Shape::Equals | Shape::Assigned | Shape::Colon)
        || text.len() > LOOK_BYTES
    {
        return false;
    }
    let (text, end) = match (shape, text) {
        // An argument in a line of its own.
        (Shape::Line, [text @ .., b',' | b')']) => (text, end - 1),
        (Shape::Line, _) => return false,
        _ => (text, end),
    };
    let identifier = text.iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
    if !identifier {
        return false;
    }
    let closes = matches!(byte(bytes, end), b')' | b';' | b',' | b']' | b'}');
    let named = name::meaning(text, &[]).is_some() || text.eq_ignore_ascii_case(own);
    (named && (closes || shape == Shape::Assigned))
        || (shape == Shape::Assigned && (closes || is_code(bytes, end)))
}

/// Whether the line up to a position is code.
fn is_code(bytes: &[u8], end: usize) -> bool {
    let from = end.saturating_sub(LOOK_BYTES);
    let line = part(bytes, from, end);
    let line = line.rsplit(|byte| *byte == b'\n').next().unwrap_or(line).trim_ascii_start();
    CODE.iter().any(|word| line.starts_with(word))
}
