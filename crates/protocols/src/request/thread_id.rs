//! Ids of threads. The name of an object is the id of its thread. Most ids are random UUIDs, so that nobody
//! can guess one. The id of a thread with a key is derived from the key and the owner. A client that has both
//! finds the object without a lookup.

use sha2::{Digest, Sha256};

use bobbin_definitions::error::{Error, Result};
use bobbin_definitions::limits::THREAD_KEY_CHARS;

/// Prefix of a key in place of an id.
pub const KEY_PREFIX: &str = "key:";

/// The id for these random bytes (UUID version 4).
pub fn from_random(bytes: [u8; 16]) -> String {
    uuid(bytes, 0x40)
}

/// An id derived from these texts, in the form of a random one. A client that knows all texts can derive it.
pub fn of_parts(texts: &[&str]) -> String {
    uuid(first_bytes(texts), 0x40)
}

/// The id of the thread that an owner's key names (UUID version 8); `None`: for threads without an owner. A
/// key contains no NUL, so each pair of owner and key has a different id.
pub fn of_key(owner: Option<&str>, key: &str) -> String {
    uuid(first_bytes(&["thread-key", owner.unwrap_or_default(), key]), 0x80)
}

/// The seed for ids within a thread: the thread's id for the first life, and a text of the same form for each
/// later life.
pub fn of_life(id: &str, life: i64) -> String {
    match life {
        ..=1 => id.to_owned(),
        life => uuid(first_bytes(&["thread-life", id, &life.to_string()]), 0x80),
    }
}

/// Whether an id is derived from a key. A new thread may use such an id after the old one was deleted.
pub fn is_of_key(id: &str) -> bool {
    id.as_bytes().get(14) == Some(&b'8')
}

/// The id of the thread that an address names: `text` itself, or the id derived from the key after
/// [`KEY_PREFIX`]. `None` if the text is neither.
pub fn named(text: &str, owner: Option<&str>) -> Option<String> {
    match text.strip_prefix(KEY_PREFIX) {
        Some(key) => check_key(key).is_ok().then(|| of_key(owner, key)),
        None => is_valid(text).then(|| text.to_owned()),
    }
}

/// Refuses an invalid key.
///
/// # Errors
/// `invalid_field`: a key has 1 to [`THREAD_KEY_CHARS`] visible characters.
pub fn check_key(key: &str) -> Result<()> {
    let count = key.chars().count();
    if (1..=THREAD_KEY_CHARS).contains(&count) && key.chars().all(is_visible) {
        return Ok(());
    }
    Err(Error::field("key", format!("A key has 1 to {THREAD_KEY_CHARS} visible characters.")))
}

/// Whether a character is visible. U+FFFD replaces bytes that are not text, so it would give many addresses
/// one id.
fn is_visible(character: char) -> bool {
    let hidden = matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffd}' | '\u{e0000}'..='\u{e0fff}');
    !(character.is_whitespace() || character.is_control() || hidden)
}

/// The first bytes of a hash of texts separated by NUL.
fn first_bytes(texts: &[&str]) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(Sha256::digest(texts.join("\0"))).for_each(|(to, from)| *to = from);
    bytes
}

/// These bytes as a UUID. The version is given as the upper half of its byte.
fn uuid(mut bytes: [u8; 16], version: u8) -> String {
    for (at, keep, set) in [(6, 0x0f, version), (8, 0x3f, 0x80)] {
        if let Some(byte) = bytes.get_mut(at) {
            *byte = *byte & keep | set;
        }
    }
    let mut id = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            id.push('-');
        }
        for nibble in [byte >> 4, byte & 15] {
            id.extend(char::from_digit(u32::from(nibble), 16));
        }
    }
    id
}

/// Whether a text can be the id of a thread. Check it first: a request to an unknown object would create the
/// object.
pub fn is_valid(id: &str) -> bool {
    id.len() == 36
        && id.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            14 => matches!(byte, b'4' | b'8'),
            19 => matches!(byte, b'8' | b'9' | b'a' | b'b'),
            _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_bytes_become_a_uuid_of_version_4() {
        assert_eq!(from_random([0; 16]), "00000000-0000-4000-8000-000000000000");
        assert_eq!(from_random([0xff; 16]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        for byte in 0..=255 {
            assert!(is_valid(&from_random([byte; 16])));
        }
    }

    #[test]
    fn a_key_of_an_owner_is_one_id_and_no_other_owners() {
        let of = |owner: Option<&str>, key: &str| of_key(owner, key);
        // Documented elsewhere: SHA-256 of `thread-key`, NUL, the owner, NUL, the key.
        assert_eq!(of(Some("alice"), "chat-1"), "99f5b942-fa81-874f-ac29-cc5865b72ae2");
        assert_eq!(of(None, "chat-1"), "a06a6198-d504-8177-9f06-5942376fa28e");
        let ids = [
            of(None, "chat-1"),
            of(Some("alice"), "chat-1"),
            of(Some("alice"), "chat-2"),
            of(Some("bob"), "chat-1"),
            of(Some("alicechat"), "-1"),
            of_life(&of(Some("alice"), "chat-1"), 2),
            of_life(&of(Some("alice"), "chat-1"), 3),
        ];
        for (place, id) in ids.iter().enumerate() {
            assert!(is_valid(id) && is_of_key(id), "{id}");
            assert!(!ids.iter().skip(place + 1).any(|other| other == id), "{id}");
        }
        assert_eq!(of_life("x", 1), "x");
        assert!(!is_of_key(&from_random([0xff; 16])));
    }

    #[test]
    fn an_address_names_an_id_or_a_key() {
        let id = from_random([7; 16]);
        assert_eq!(named(&id, Some("alice")), Some(id));
        assert_eq!(named("key:chat-1", Some("alice")), Some(of_key(Some("alice"), "chat-1")));
        assert_eq!(named("key:chat-1", None), Some(of_key(None, "chat-1")));
        for text in ["", "key:", "key", "chat-1", "key: ", "key:a b", "KEY:chat-1", "owners"] {
            assert_eq!(named(text, None), None, "{text:?}");
        }
    }

    #[test]
    fn a_key_is_what_one_can_see() {
        let longest = "ü".repeat(255);
        for key in
            ["x", "chat-8Jx2", "a/b?c#d&e=%2F:+", "..", "größe", "ключ", "对话", "key:x", longest.as_str()]
        {
            assert!(check_key(key).is_ok(), "{key:?}");
        }
        let long = "x".repeat(256);
        for key in [
            "",
            " ",
            "a b",
            "a\tb",
            "a\nb",
            "a\0b",
            "\u{7f}",
            "\u{85}",
            "\u{a0}",
            "a\u{ad}b",
            "a\u{200b}b",
            "a\u{202e}b",
            "\u{feff}a",
            "a\u{fffd}",
            "\u{e0041}",
            long.as_str(),
        ] {
            let error = check_key(key).unwrap_err();
            assert_eq!(error.field.as_deref(), Some("key"), "{key:?}");
        }
    }

    #[test]
    fn what_is_no_id_is_told_apart() {
        let cases = [
            "",
            "x",
            "owners",
            "00000000-0000-1000-8000-000000000000",
            "00000000-0000-4000-c000-000000000000",
            "0000000000004000800000000000000000000",
            "FFFFFFFF-FFFF-4FFF-BFFF-FFFFFFFFFFFF",
            "00000000-0000-4000-8000-00000000000é",
        ];
        for id in cases {
            assert!(!is_valid(id), "{id}");
        }
    }
}
