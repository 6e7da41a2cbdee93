//! Long texts that look random, and tokens with known prefixes.

use crate::redact::step_count;
use crate::scrub::class;
use crate::scrub::{Kind, Span, before, byte, continues, known, part, words};

/// Length of a random text, in characters.
const LEAST_CHARS: usize = 24;
const MOST_CHARS: usize = 512;
/// Minimum Shannon entropy, in bits per character.
const LEAST_BITS: f64 = 3.8;
/// Minimum number of different characters.
const LEAST_DIFFERENT: usize = 8;
/// Maximum length of a random part in a name, such as the hash in `app-7d4b9c6f5d-x2k8p`.
const HASH_CHARS: usize = 10;
/// Prefixes of ids of model and payment providers. Ids are not secret.
const IDS: [&[u8]; 22] = [
    b"call_",
    b"toolu_",
    b"msg_",
    b"req_",
    b"resp_",
    b"run_",
    b"step_",
    b"thread_",
    b"asst_",
    b"batch_",
    b"file-",
    b"chatcmpl-",
    b"cus_",
    b"evt_",
    b"pi_",
    b"ch_",
    b"sub_",
    b"acct_",
    b"price_",
    b"prod_",
    b"pm_",
    b"seti_",
];
/// Maximum number of nested allowed tokens, because each is scanned to its end.
const MOST_ALLOWED: usize = 16;
/// Maximum bytes on each side of a text that `allow` patterns see.
const WORD_BYTES: usize = 512;
/// Length of the shortest token with a known prefix, including the prefix.
const SHORTEST_CHARS: usize = 14;
/// Start of the marker of a known secret.
const MARK: &[u8] = b"[redacted ";
/// Maximum bytes of a marker.
const MARK_BYTES: usize = 200;

/// Finds them outside of the given spans, in order.
pub(super) fn find(bytes: &[u8], outside: &[Span], allow: &[String]) -> Vec<Span> {
    let mut looking = EntropyScan { bytes, allow, spans: Vec::new(), word: (0, 0), allowed: (0, 0) };
    let mut at = 0;
    for span in outside {
        looking.within(at, span.start);
        at = span.end;
    }
    looking.within(at, bytes.len());
    looking.spans
}

struct EntropyScan<'a> {
    bytes: &'a [u8],
    allow: &'a [String],
    spans: Vec<Span>,
    /// The last word that was checked against `allow`.
    word: (usize, usize),
    /// End of the last allowed tokens, and their nesting.
    allowed: (usize, usize),
}

impl EntropyScan<'_> {
    fn within(&mut self, start: usize, end: usize) {
        let mut at = start;
        while let Some((from, until)) = self.long_word(at, end) {
            at = from;
            while at < until {
                at += part(self.bytes, at, end)
                    .iter()
                    .take_while(|byte| !class::is(**byte, class::RUNS))
                    .count();
                if at < until {
                    at = self.step(at, end);
                }
            }
        }
    }

    /// The next word with enough adjacent characters for such a text; returns its range. Most of a text is
    /// skipped in strides: if the last character of a stride does not belong to a token, no token can span
    /// it.
    fn long_word(&self, start: usize, end: usize) -> Option<(usize, usize)> {
        let bytes = self.bytes;
        let mut at = start + SHORTEST_CHARS - 1;
        while at < end {
            step_count::add(1);
            if !class::is(byte(bytes, at), class::TOKEN) {
                at += SHORTEST_CHARS;
                continue;
            }
            let of_token = |byte: &&u8| class::is(**byte, class::TOKEN);
            let left = part(bytes, start, at).iter().rev().take_while(of_token).count();
            let right = part(bytes, at, end).iter().take_while(of_token).count();
            step_count::add(left + right);
            if left + right < SHORTEST_CHARS {
                at += right + SHORTEST_CHARS;
                continue;
            }
            let blank = |byte: &u8| byte.is_ascii_whitespace();
            let before =
                part(bytes, start, at).iter().rposition(blank).map_or(start, |blank| start + blank + 1);
            let marked = part(bytes, start, before).ends_with(MARK);
            let from = if marked { before - MARK.len() } else { before };
            let behind = part(bytes, at + right, end).iter().position(blank);
            let until = behind.map_or(end, |length| at + right + length);
            step_count::add(until - from);
            return Some((from, until));
        }
        None
    }

    /// Handles the text at a position; returns the next position.
    fn step(&mut self, at: usize, end: usize) -> usize {
        let bytes = self.bytes;
        match byte(bytes, at) {
            b'[' if continues(bytes, at, MARK) || continues(bytes, at, b"[REDACTED") => {
                past_mark(bytes, at, end)
            }
            b'\\' => past_escape(bytes, at),
            b':' if continues(bytes, at, b"://") => self.url(at + 3, end),
            b'd' if !before(bytes, at).is_ascii_alphanumeric() && continues(bytes, at, b"data:") => {
                past_data(bytes, at, end)
            }
            first if class::is(first, class::RUN) => self.run(at, end),
            _ => at + 1,
        }
    }

    fn take(&mut self, start: usize, end: usize) -> usize {
        self.spans.push(Span { start, end, kind: Kind::Entropy });
        end
    }

    /// Takes a token at a position, unless it is allowed; returns its end.
    fn token(&mut self, at: usize, end: usize) -> Option<usize> {
        if before(self.bytes, at).is_ascii_alphanumeric() {
            return None;
        }
        let until = known::token(part(self.bytes, 0, end), at)?;
        let (reached, within) = self.allowed;
        let within = if at < reached { within + 1 } else { 0 };
        if within < MOST_ALLOWED && self.is_allowed(at, until) {
            self.allowed = (reached.max(until), within);
            return None;
        }
        Some(self.take(at, until))
    }

    /// Scans a URL from its host to its query.
    fn url(&mut self, host: usize, end: usize) -> usize {
        let bytes = self.bytes;
        if let Some((from, until)) = known::hook(bytes, host).filter(|(_, until)| *until <= end) {
            return self.take(from, until);
        }
        let mut at = host;
        while at < end {
            let next = byte(bytes, at);
            step_count::add(1);
            if next.is_ascii_whitespace() || b"?\"'`<>)]}|\\,".contains(&next) {
                return at;
            }
            match self.token(at, end) {
                Some(until) => at = until,
                None => at += 1,
            }
        }
        end
    }

    /// Scans a run of characters that such texts may have.
    fn run(&mut self, start: usize, end: usize) -> usize {
        let bytes = self.bytes;
        let run = part(bytes, start, end);
        let length = run.iter().take_while(|byte| class::is(**byte, class::RUN)).count();
        step_count::add(length);
        let text = start + length;
        let mut until = text;
        while until < end && until < text + 2 && byte(bytes, until) == b'=' {
            until += 1;
        }
        if let Some(token) = self.token(start, end) {
            return token;
        }
        let is = (LEAST_CHARS..=MOST_CHARS).contains(&(until - start))
            && (known::names_its_place(part(bytes, start, text))
                || (is_random(part(bytes, start, text)) && !is_exempt(bytes, start, text)))
            && !self.is_allowed(start, until);
        if is {
            return self.take(start, until);
        }
        // A token may follow something that is joined to it.
        let mut at = start;
        while let Some(joint) = part(bytes, at, text).iter().position(|byte| !byte.is_ascii_alphanumeric()) {
            at += joint + 1;
            if at < text
                && let Some(token) = self.token(at, end)
            {
                return token;
            }
        }
        until
    }

    /// Whether the text, or the word around it, is allowed.
    fn is_allowed(&mut self, start: usize, end: usize) -> bool {
        if self.allow.is_empty() {
            return false;
        }
        let joins = |byte: &&u8| !byte.is_ascii_whitespace() && !b"\"'`<>()[]{},;=".contains(byte);
        if !(self.word.0 <= start && end <= self.word.1) {
            let from = start.saturating_sub(WORD_BYTES).max(self.word.1.min(start));
            let left = part(self.bytes, from, start).iter().rev().take_while(joins).count();
            let right = self.bytes.iter().skip(end).take(WORD_BYTES).take_while(joins).count();
            self.word = (start - left, end + right);
        }
        let (text, word) = (part(self.bytes, start, end), part(self.bytes, self.word.0, self.word.1));
        step_count::add(text.len() + word.len());
        self.allow.iter().any(|glob| matches(glob.as_bytes(), text) || matches(glob.as_bytes(), word))
    }
}

/// Skips a marker: `[redacted NAME]`, or the scrubber's own.
fn past_mark(bytes: &[u8], at: usize, end: usize) -> usize {
    let named = at + if continues(bytes, at, MARK) { MARK.len() } else { 1 };
    let name = part(bytes, named, (at + MARK_BYTES).min(end));
    let length = name.iter().take_while(|byte| byte.is_ascii_graphic() && **byte != b']').count();
    if name.get(length) == Some(&b']') { named + length + 1 } else { at + 1 }
}

/// Skips an escape, in which no text may start.
fn past_escape(bytes: &[u8], at: usize) -> usize {
    at + if byte(bytes, at + 1) == b'u' { 6 } else { 2 }
}

/// Skips a data URL.
fn past_data(bytes: &[u8], at: usize, end: usize) -> usize {
    let head = part(bytes, at, (at + MARK_BYTES).min(end));
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b":/;+-.=,_".contains(byte);
    let length = head.iter().take_while(|byte| plain(byte) && **byte != b',').count();
    if head.get(length) != Some(&b',') || !head.contains(&b'/') {
        return at + 5;
    }
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"\"'`<>)\\".contains(byte);
    let from = at + length + 1;
    part(bytes, from, end).iter().position(ends).map_or(end, |length| from + length)
}

/// Whether a text has letters and other characters, enough different ones, and enough entropy.
fn is_random(text: &[u8]) -> bool {
    if !text.iter().any(u8::is_ascii_alphabetic) || text.iter().all(u8::is_ascii_alphabetic) {
        return false;
    }
    let mut counts = [0_u16; 128];
    for byte in text {
        if let Some(count) = counts.get_mut(usize::from(*byte)) {
            *count = count.saturating_add(1);
        }
    }
    let different = counts.iter().filter(|count| **count > 0).count();
    different >= LEAST_DIFFERENT && bits(&counts, text.len()) >= LEAST_BITS
}

/// Shannon entropy per character.
fn bits(counts: &[u16], length: usize) -> f64 {
    let length = length as f64;
    let of = |count: &u16| {
        let share = f64::from(*count) / length;
        if *count == 0 { 0.0 } else { -share * share.log2() }
    };
    counts.iter().map(of).sum()
}

/// Whether it only looks random: a hash in hexadecimal, an id, a path, a name.
fn is_exempt(bytes: &[u8], start: usize, end: usize) -> bool {
    let text = part(bytes, start, end);
    let hex = |text: &[u8]| text.iter().all(u8::is_ascii_hexdigit);
    let slashes = text.iter().filter(|byte| **byte == b'/').count();
    let path = text.starts_with(b"/") && (slashes >= 3 || b".~:".contains(&before(bytes, start)));
    let begins = |starts: &[&[u8]]| starts.iter().any(|start| text.starts_with(start));
    hex(text)
        || text.strip_prefix(b"0x").is_some_and(hex)
        || path
        || begins(&[b"sha1-", b"sha256-", b"sha384-", b"sha512-"])
        // SSH public keys: the length of the type's name, and the name.
        || begins(&[b"AAAAB3NzaC1", b"AAAAC3NzaC1", b"AAAAE2VjZHNh", b"AAAAGnNr"])
        || (IDS.iter().any(|id| text.starts_with(id)) && !text.windows(7).any(|seven| seven == b"_secret"))
        || is_name(text)
}

/// Whether it consists mainly of words, numbers and hexadecimal digits.
fn is_name(text: &[u8]) -> bool {
    if words::are_words(text) {
        return true;
    }
    let (mut plain, mut ordered, mut random, mut longest) = (true, 0, 0, 0);
    for part in text.split(|byte| b"-_/+".contains(byte)).filter(|part| !part.is_empty()) {
        let letters = part.iter().all(u8::is_ascii_alphabetic);
        let digits = part.iter().all(u8::is_ascii_digit);
        plain &= letters || digits;
        let hash = part.len() >= 4 && part.iter().all(u8::is_ascii_hexdigit);
        if digits || hash || (letters && part.len() < 4) || words::are_words(part) {
            ordered += part.len();
        } else {
            random += part.len();
            longest = longest.max(part.len());
        }
    }
    let joined = text.iter().any(|byte| b"-_".contains(byte));
    let small = !text.iter().any(|byte| b"+".contains(byte));
    (plain && joined && small) || (longest <= HASH_CHARS && ordered >= random)
}

/// Whether a text matches a glob with `*` for any characters.
fn matches(glob: &[u8], text: &[u8]) -> bool {
    let (mut at, mut place) = (0, 0);
    let mut star = None;
    while place < text.len() {
        match glob.get(at) {
            Some(b'*') => {
                star = Some((at, place));
                at += 1;
            }
            Some(byte) if text.get(place) == Some(byte) => {
                at += 1;
                place += 1;
            }
            _ => match star {
                Some((behind, from)) => {
                    star = Some((behind, from + 1));
                    at = behind + 1;
                    place = from + 1;
                }
                None => return false,
            },
        }
    }
    glob.get(at..).unwrap_or_default().iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_anything() {
        for (glob, text, is) in [
            ("arn:*", "arn:aws:iam::1", true),
            ("arn:*", "an arn:", false),
            ("*-ab*c", "x-abab-abzzc", true),
            ("*", "", true),
            ("a*b", "a", false),
            ("abc", "abc", true),
        ] {
            assert_eq!(matches(glob.as_bytes(), text.as_bytes()), is, "{glob} {text}");
        }
    }

    #[test]
    fn what_only_looks_random_is_left() {
        for text in [
            "0123456789abcdef0123456789abcdef01234567",
            "0x52908400098527886E0F7030069857D2E4169EE7",
            "6f0c8a52-1b1d-4c57-9f2e-3a5b8d7c6e4f",
            "note-6f0c8a52-1b1d-4c57-9f2e-3a5b8d7c6e4f",
            "my-long-file-name-2024-with-parts",
            "/var/lib/app/data9/cache",
            "call_AbC1dEf2GhI3jKl4MnO5pQr6",
            "convertUtf8StringToBase64String",
            "packages/frontend/components/Button2",
            "payment-service-7d4b9c6f5d-x2k8p",
            "dist/assets/vendor-Bx7Kq9Zt",
            "sha512-z6hGq4bFv2nR8sWc1yJt5kLm",
            "aaaaaaaaaaaaaaaaaaaaaaaa1",
            "onlylettersonlylettersonlyletters",
        ] {
            assert!(find(text.as_bytes(), &[], &[]).is_empty(), "{text}");
        }
        for text in [
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "4eC39HqLyjWDarjtT1zdp7dcQ",
            "dXNlcjpwYXNzd29yZDEyMzQ1Njc4OTA=",
            "3f9-QkZ_x8TbW2mLp0VsRy7cJd5nHg",
            "AKIAIOSFODNN7EXAMPLE",
            "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        ] {
            let found = find(format!("a {text} b").as_bytes(), &[], &[]);
            assert_eq!(
                found.iter().map(|span| (span.start, span.end)).collect::<Vec<_>>(),
                [(2, 2 + text.len())],
                "{text}"
            );
            assert!(find(text.as_bytes(), &[], &[format!("{}*", &text[..3])]).is_empty(), "{text}");
        }
    }
}
