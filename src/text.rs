//! Where texts are cut: never within a character. A text that may hold secrets is not cut before these are taken out
//! of it, or part of one would remain: see `Shown` in `env/redact`.

/// The last place up to `at` where a text can be cut.
pub(crate) fn boundary(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at)
}

/// At most `max` bytes from the start of a text.
pub(crate) fn first_bytes(text: &str, max: usize) -> &str {
    text.get(..boundary(text, max)).unwrap_or_default()
}

/// Leaves at most `max` bytes of a text.
pub(crate) fn shorten(text: &mut String, max: usize) {
    text.truncate(boundary(text, max));
}

/// Resolves percent escapes and, in a query, `+`.
pub(crate) fn percent_decoded(text: &str, plus_is_space: bool) -> String {
    let escaped = text.contains('%') || (plus_is_space && text.contains('+'));
    if !escaped {
        return text.to_owned();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' if plus_is_space => bytes.push(b' '),
            b'%' => {
                let mut ahead = rest.clone();
                match (ahead.next().and_then(hex), ahead.next().and_then(hex)) {
                    (Some(high), Some(low)) => {
                        bytes.push(high << 4 | low);
                        rest = ahead;
                    }
                    _ => bytes.push(b'%'),
                }
            }
            _ => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
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
}
