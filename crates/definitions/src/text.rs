//! Cutting of texts at character boundaries, and decoding of bytes. Remove secrets from a text before cutting
//! it, or a part of one may remain: see `Redacted` in `bobbin-redaction`.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// The last character boundary up to `at`.
pub fn boundary(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at)
}

/// At most `max` bytes from the start of a text.
pub fn first_bytes(text: &str, max: usize) -> &str {
    text.get(..boundary(text, max)).unwrap_or_default()
}

/// Shortens a text to at most `max` bytes.
pub fn shorten(text: &mut String, max: usize) {
    text.truncate(boundary(text, max));
}

/// Decodes percent escapes and, in a query, `+`. Invalid escapes stay, and invalid UTF-8 becomes U+FFFD.
pub fn percent_decoded(text: &str, plus_is_space: bool) -> String {
    let spaced = if plus_is_space { Cow::Owned(text.replace('+', " ")) } else { Cow::Borrowed(text) };
    percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
}

/// The text of a body with this `content-type`: UTF-8, unless it names ISO-8859-1 or windows-1252, which the
/// web treats alike. A byte order mark is removed; invalid bytes become U+FFFD.
pub fn decoded<'a>(bytes: &'a [u8], content_type: &str) -> Cow<'a, str> {
    match bytes.strip_prefix(b"\xef\xbb\xbf") {
        // A byte order mark overrides the declared charset.
        Some(bytes) => String::from_utf8_lossy(bytes),
        None if is_windows_1252(content_type) => bytes.iter().map(|byte| windows_1252(*byte)).collect(),
        None => String::from_utf8_lossy(bytes),
    }
}

fn is_windows_1252(content_type: &str) -> bool {
    let is_charset = |(name, _): &(&str, &str)| name.trim().eq_ignore_ascii_case("charset");
    let charset = content_type.split(';').filter_map(|part| part.split_once('=')).find(is_charset);
    let charset = charset.map_or("", |(_, value)| value.trim().trim_matches('"'));
    ["iso-8859-1", "windows-1252", "latin1", "cp1252", "us-ascii"]
        .iter()
        .any(|name| name.eq_ignore_ascii_case(charset))
}

fn windows_1252(byte: u8) -> char {
    /// The characters from 0x80 on; five are control characters, as in ISO-8859-1.
    const HIGH: [char; 32] = [
        '\u{20ac}', '\u{81}', '\u{201a}', '\u{192}', '\u{201e}', '\u{2026}', '\u{2020}', '\u{2021}',
        '\u{2c6}', '\u{2030}', '\u{160}', '\u{2039}', '\u{152}', '\u{8d}', '\u{17d}', '\u{8f}', '\u{90}',
        '\u{2018}', '\u{2019}', '\u{201c}', '\u{201d}', '\u{2022}', '\u{2013}', '\u{2014}', '\u{2dc}',
        '\u{2122}', '\u{161}', '\u{203a}', '\u{153}', '\u{9d}', '\u{17e}', '\u{178}',
    ];
    let high = byte.checked_sub(0x80).and_then(|at| HIGH.get(usize::from(at)));
    high.copied().unwrap_or(char::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_cut_within_a_character() {
        for (max, expected) in [(0, ""), (1, "a"), (2, "a"), (3, "aé"), (9, "aéb")] {
            assert_eq!(first_bytes("aéb", max), expected);
            let mut text = "aéb".to_owned();
            shorten(&mut text, max);
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn bytes_are_read_in_the_character_set_that_is_named() {
        for (bytes, content_type, text) in [
            (&b"caf\xc3\xa9"[..], "application/json", "café"),
            (b"caf\xc3\xa9", "text/plain; charset=utf-8", "café"),
            (b"caf\xe9", "text/plain; charset=ISO-8859-1", "café"),
            (b"\x80 \x93\x94", "text/plain;format=flowed; Charset=\"windows-1252\"", "€ “”"),
            (b"\xef\xbb\xbf{}", "application/json", "{}"),
            (b"\xef\xbb\xbfcaf\xc3\xa9", "text/plain; charset=iso-8859-1", "café"),
            (b"caf\xe9", "", "caf\u{fffd}"),
        ] {
            assert_eq!(decoded(bytes, content_type), text);
        }
    }
}
