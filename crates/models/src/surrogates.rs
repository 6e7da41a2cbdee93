//! Halves of characters. JSON writes a character beyond U+FFFF as two UTF-16 units, and servers in
//! JavaScript split texts between them: one chunk ends with the first unit and the next begins with the
//! second. Until then a character of the highest private-use plane stands in for each half. Adjacent
//! halves are joined, and a lone half becomes U+FFFD.

use crate::Delta;
use bobbin_definitions::definitions::opaque::Opaque;
use bobbin_definitions::limits::CALLS_PER_REPLY;

/// The stand-in for unit 0xD800; the others follow.
const FIRST: u32 = 0x10_F000;

/// Replaces lone halves in JSON with stand-ins; `None` when there are none.
pub fn marked(json: &str) -> Option<String> {
    replaced(json, stand_in)
}

/// Repairs JSON as far as possible. `lossy` is `json` with invalid bytes replaced. `None` when there is
/// nothing to repair.
pub fn mended(lossy: &str, json: &[u8]) -> Option<String> {
    marked(lossy).or_else(|| (lossy.as_bytes() != json).then(|| lossy.to_owned()))
}

/// Replaces lone halves in JSON, such as a call's arguments, with U+FFFD, so that every parser accepts
/// it.
pub fn whole(json: String) -> String {
    replaced(&json, |_| char::REPLACEMENT_CHARACTER).unwrap_or(json)
}

/// Replaces the escapes of lone halves.
fn replaced(json: &str, with: impl Fn(u32) -> char) -> Option<String> {
    let has_units = |text: &str| text.contains("\\ud") || text.contains("\\uD");
    if !has_units(json) {
        return None;
    }
    let (mut out, mut rest, mut changed) = (String::with_capacity(json.len()), json, false);
    while let Some(at) = rest.find('\\') {
        out.push_str(rest.get(..at).unwrap_or_default());
        rest = rest.get(at..).unwrap_or_default();
        let length = match (unit(rest), rest.get(6..).and_then(unit)) {
            (Some(0xD800..0xDC00), Some(0xDC00..0xE000)) => 12,
            (Some(half @ 0xD800..0xE000), _) => {
                out.push(with(half));
                changed = true;
                rest = rest.get(6..).unwrap_or_default();
                continue;
            }
            // The character after a backslash never begins another escape.
            _ => 1 + rest.get(1..).and_then(|after| after.chars().next()).map_or(0, char::len_utf8),
        };
        out.push_str(rest.get(..length).unwrap_or_default());
        rest = rest.get(length..).unwrap_or_default();
    }
    out.push_str(rest);
    changed.then_some(out)
}

/// The UTF-16 unit of a `\uXXXX` at the start of a text.
fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u32::from_str_radix(digits, 16).ok()
}

fn stand_in(half: u32) -> char {
    char::from_u32(FIRST + half - 0xD800).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// The half of a stand-in.
fn half(c: char) -> Option<u32> {
    let at = u32::from(c).checked_sub(FIRST)?;
    (at < 0x800).then_some(0xD800 + at)
}

fn joined(high: u32, low: u32) -> Option<char> {
    let pair = (0xD800..0xDC00).contains(&high) && (0xDC00..0xE000).contains(&low);
    if pair { char::from_u32(0x10000 + ((high & 0x3FF) << 10) + (low & 0x3FF)) } else { None }
}

/// The text that a piece belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    Text,
    Reasoning,
    Arguments(usize),
}

/// Maximum number of texts with a held half; each piece searches them. A reply with more calls is
/// refused.
const HELD: usize = CALLS_PER_REPLY + 2;

/// Joins the halves of a response.
#[derive(Debug, Default)]
pub struct SurrogateJoiner {
    /// Whether there may be any; until then texts are not searched.
    seen: bool,
    /// First halves at the end of each text so far.
    held: Vec<(Stream, u32)>,
}

impl SurrogateJoiner {
    /// Checks whether a piece of JSON may contain halves.
    pub fn look(&mut self, json: &[u8]) {
        self.seen = self.seen || json.windows(3).any(|three| matches!(three, br"\ud" | br"\uD"));
    }

    /// Removes the stand-ins from the deltas, starting at index `from`.
    pub fn settle(&mut self, out: &mut [Delta], from: usize) {
        if !self.seen {
            return;
        }
        for delta in out.iter_mut().skip(from) {
            match delta {
                Delta::Text(text) => self.piece(Stream::Text, text),
                Delta::Reasoning(text) => self.piece(Stream::Reasoning, text),
                Delta::CallArguments { index, text } => self.piece(Stream::Arguments(*index), text),
                Delta::CallStart { id, name, .. } | Delta::Response { id, model: name } => {
                    for text in [id, name] {
                        *text = alone(text);
                    }
                }
                Delta::CallExtra { extra: opaque, .. } | Delta::Payload(opaque) => restore(opaque),
                Delta::Usage(_) | Delta::Finish(_) => {}
            }
        }
    }

    /// Ends the response: held halves become U+FFFD.
    pub fn finish(&mut self, out: &mut Vec<Delta>) {
        for (stream, _) in self.held.drain(..) {
            let text = char::REPLACEMENT_CHARACTER.to_string();
            out.push(match stream {
                Stream::Text => Delta::Text(text),
                Stream::Reasoning => Delta::Reasoning(text),
                Stream::Arguments(index) => Delta::CallArguments { index, text },
            });
        }
    }

    fn piece(&mut self, stream: Stream, text: &mut String) {
        let place = self.held.iter().position(|(held, _)| *held == stream);
        if text.is_empty() || (place.is_none() && !text.chars().any(|c| half(c).is_some())) {
            return;
        }
        let mut before = place.map(|place| self.held.swap_remove(place).1);
        let mut clean = String::with_capacity(text.len());
        for c in text.chars() {
            let now = half(c);
            if let Some(high) = before.take() {
                if let Some(c) = now.and_then(|low| joined(high, low)) {
                    clean.push(c);
                    continue;
                }
                clean.push(char::REPLACEMENT_CHARACTER);
            }
            match now {
                None => clean.push(c),
                Some(high @ 0xD800..0xDC00) => before = Some(high),
                Some(_) => clean.push(char::REPLACEMENT_CHARACTER),
            }
        }
        match before {
            Some(high) if self.held.len() < HELD => self.held.push((stream, high)),
            Some(_) => clean.push(char::REPLACEMENT_CHARACTER),
            None => {}
        }
        *text = clean;
    }
}

fn alone(text: &str) -> String {
    text.chars().map(|c| if half(c).is_some() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Restores the original escapes in data that goes back to its provider.
fn restore(opaque: &mut Opaque) {
    if opaque.get().chars().any(|c| half(c).is_some()) {
        let mut text = String::with_capacity(opaque.get().len());
        for c in opaque.get().chars() {
            match half(c) {
                Some(half) => text.push_str(&format!("\\u{half:04x}")),
                None => text.push(c),
            }
        }
        if let Some(restored) = Opaque::parse(text) {
            *opaque = restored;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_halves_that_stand_alone_are_replaced() {
        for (json, expected) in [
            (r#""plain""#, None),
            (r#""\ud83d\ude00""#, None),
            (r#""\\ud83d""#, None),
            (r#""\ud83d""#, Some("\"\u{fffd}\"")),
            (r#""a\uDE00b\ud83d\ud83d\ude00""#, Some("\"a\u{fffd}b\u{fffd}\\ud83d\\ude00\"")),
            (r#""\ud83d\n""#, Some("\"\u{fffd}\\n\"")),
        ] {
            assert_eq!(replaced(json, |_| char::REPLACEMENT_CHARACTER).as_deref(), expected, "{json}");
        }
        assert_eq!(whole(r#"{"a":"\ud83d"}"#.to_owned()), "{\"a\":\"\u{fffd}\"}");
    }

    #[test]
    fn halves_are_joined_where_they_meet() {
        let mark = |json: &str| -> String {
            bobbin_definitions::json::from_str(&marked(json).unwrap_or(json.to_owned())).unwrap()
        };
        let mut halves = SurrogateJoiner::default();
        halves.look(br"\ud83d");
        let mut out = vec![
            Delta::Text(mark(r#""a\ud83d""#)),
            Delta::Reasoning(mark(r#""\ud83d""#)),
            Delta::Text(mark(r#""\ude00b\ude00""#)),
            Delta::Text(mark(r#""\ud83d""#)),
            Delta::Text("c".into()),
            Delta::CallStart { index: 0, id: mark(r#""i\ud83d""#), name: "n".into() },
            Delta::Payload(Opaque::parse(marked(r#"{"s":"\ud83d"}"#).unwrap()).unwrap()),
        ];
        halves.settle(&mut out, 0);
        halves.finish(&mut out);
        let text: String =
            out.iter().map(|delta| if let Delta::Text(text) = delta { text.as_str() } else { "" }).collect();
        assert_eq!(text, "a\u{1f600}b\u{fffd}\u{fffd}c");
        assert!(out.contains(&Delta::Reasoning("\u{fffd}".into())));
        assert!(out.contains(&Delta::CallStart { index: 0, id: "i\u{fffd}".into(), name: "n".into() }));
        assert!(out.contains(&Delta::Payload(Opaque::parse(r#"{"s":"\ud83d"}"#.into()).unwrap())));
    }

    #[test]
    fn of_more_calls_than_a_reply_may_have_no_halves_are_held() {
        let half = |index, half| Delta::CallArguments { index, text: stand_in(half).into() };
        let mut halves = SurrogateJoiner::default();
        halves.look(br"\ud83d");
        let mut out: Vec<Delta> = (0..10_000).map(|index| half(index, 0xD83D)).collect();
        halves.settle(&mut out, 0);
        assert_eq!(halves.held.len(), HELD);
        assert_eq!(out[9_999], Delta::CallArguments { index: 9_999, text: "\u{fffd}".into() });
        let mut out = vec![half(0, 0xDE00), half(CALLS_PER_REPLY - 1, 0xDE00), half(9_999, 0xDE00)];
        halves.settle(&mut out, 0);
        let texts = out.iter().map(|delta| match delta {
            Delta::CallArguments { text, .. } => text.as_str(),
            _ => "",
        });
        assert_eq!(texts.collect::<Vec<_>>(), ["\u{1f600}", "\u{1f600}", "\u{fffd}"]);
    }
}
