//! Names of fields whose values are secret: `api_key`, `DB_PASSWORD`, `clientSecret`, `x-auth-token`.

/// Maximum bytes of a name that are checked, from its end.
const NAME_BYTES: usize = 64;

/// Suffixes of such names, in lower case and without separators.
const ENDINGS: [&[u8]; 15] = [
    b"token",
    b"password",
    b"passwd",
    b"passphrase",
    b"passcode",
    b"secret",
    b"secretkey",
    b"privatekey",
    b"apikey",
    b"accesskey",
    b"accountkey",
    b"authkey",
    b"signingkey",
    b"encryptionkey",
    b"masterkey",
];
/// Suffixes that must begin a word.
const WORDS: [&[u8]; 2] = [b"pass", b"pwd"];
/// Tokens that are positions in lists, and those of parsers.
const NO_SECRETS: [&[u8]; 14] = [
    b"pagetoken",
    b"nexttoken",
    b"continuationtoken",
    b"synctoken",
    b"cursortoken",
    b"prevtoken",
    b"previoustoken",
    b"starttoken",
    b"resumetoken",
    b"deltatoken",
    b"skiptoken",
    b"changetoken",
    b"unexpectedtoken",
    b"maxtoken",
];
/// Words that may follow them.
const TAILS: [&[u8]; 4] = [b"value", b"val", b"confirmation", b"base"];

/// Last two letters of names to check: names for [`meaning`], and other words before a secret.
const LASTS: [&[u8; 2]; 26] = [
    b"en", b"rd", b"wd", b"se", b"de", b"et", b"ey", b"ss", b"on", b"er", b"ue", b"al", b"by", b"rl", b"ql",
    b"mp", b"in", b"db", b"ch", b"dd", b"fy", b"te", b"mi", b"li", b"is", b"pt",
];

/// For each last letter, the possible letters before it, as bits.
const LAST: [u32; 32] = lasts();

#[allow(clippy::indexing_slicing, reason = "the compiler evaluates it")]
const fn lasts() -> [u32; 32] {
    let mut lasts = [0; 32];
    let mut at = 0;
    while at < LASTS.len() {
        let [first, second] = *LASTS[at];
        lasts[(second & 31) as usize] |= 1 << (first & 31);
        at += 1;
    }
    lasts
}

/// Whether a name needs a check, by its last two letters. Most words of a text do not.
pub(super) fn may_matter(name: &[u8]) -> bool {
    let [.., first, second] = name else { return true };
    if !(first.is_ascii_alphabetic() && second.is_ascii_alphabetic()) {
        return true;
    }
    LAST.get(usize::from(second & 31)).is_some_and(|firsts| firsts >> (first & 31) & 1 == 1)
}

/// The meaning of a name for its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameMeaning {
    /// The value is secret.
    Secret,
    /// The value is a scheme followed by a secret.
    Authorization,
}

/// The letters and digits of a name in lower case, with the starts of its words.
struct Letters {
    letters: [u8; NAME_BYTES],
    begins: [bool; NAME_BYTES],
    length: usize,
}

impl Letters {
    fn of(name: &[u8]) -> Letters {
        let mut all = Letters { letters: [0; NAME_BYTES], begins: [false; NAME_BYTES], length: 0 };
        let name = name.get(name.len().saturating_sub(NAME_BYTES)..).unwrap_or_default();
        let mut last = b'-';
        for byte in name {
            if !byte.is_ascii_alphanumeric() {
                last = *byte;
                continue;
            }
            let hump = byte.is_ascii_uppercase() && !last.is_ascii_uppercase();
            let (Some(letter), Some(begins)) =
                (all.letters.get_mut(all.length), all.begins.get_mut(all.length))
            else {
                break;
            };
            *letter = byte.to_ascii_lowercase();
            *begins =
                hump || !last.is_ascii_alphanumeric() || (last.is_ascii_digit() && !byte.is_ascii_digit());
            all.length += 1;
            last = *byte;
        }
        all
    }

    fn as_slice(&self) -> &[u8] {
        self.letters.get(..self.length).unwrap_or_default()
    }

    fn begins_at(&self, at: usize) -> bool {
        self.begins.get(at).copied().unwrap_or(false)
    }
}

/// Whether the value of a name is secret.
pub(super) fn meaning(name: &[u8], extra: &[Vec<u8>]) -> Option<NameMeaning> {
    let letters = Letters::of(name);
    let mut text = letters.as_slice();
    let word = |text: &[u8], ending: &[u8]| {
        text.ends_with(ending) && (text.len() == ending.len() || letters.begins_at(text.len() - ending.len()))
    };
    if extra.iter().any(|name| word(text, name)) {
        return Some(NameMeaning::Secret);
    }
    while let [rest @ .., b'0'..=b'9'] = text {
        text = rest;
    }
    for tail in TAILS {
        if let Some(rest) = text.strip_suffix(tail).filter(|rest| !rest.is_empty()) {
            text = rest;
        }
    }
    if word(text, b"authorization") {
        return Some(NameMeaning::Authorization);
    }
    let ends = |endings: &[&[u8]]| endings.iter().any(|ending| text.ends_with(ending));
    if ends(&NO_SECRETS) {
        return None;
    }
    let is = ends(&ENDINGS)
        || text == b"pwd"
        || WORDS.iter().any(|ending| word(text, ending) && text.len() > ending.len());
    is.then_some(NameMeaning::Secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_is_secret() {
        let extra = [b"sessionid".to_vec(), b"pin".to_vec()];
        for name in [
            "api_key",
            "apikey",
            "API-KEY",
            "x-api-key",
            "apiKey",
            "access_token",
            "GITHUB_TOKEN",
            "githubToken",
            "password",
            "DB_PASSWORD",
            "PGPASSWORD",
            "userPassword",
            "password2",
            "passwd",
            "clientSecret",
            "AWS_SECRET_ACCESS_KEY",
            "private_key",
            "session_id",
            "SESSION-ID",
            "user_pin",
            "DB_PASS",
            "smtpPass",
            "token_value",
            "Pwd",
            "csrf_token",
            "a_name_that_is_so_long_that_only_its_end_can_be_looked_at_x_password",
        ] {
            assert_eq!(meaning(name.as_bytes(), &extra), Some(NameMeaning::Secret), "{name}");
        }
        for name in [
            "tokens",
            "max_tokens",
            "token_count",
            "nextPageToken",
            "NextToken",
            "tokenizer",
            "passport",
            "pass",
            "compass",
            "secretary",
            "spin",
            "key",
            "public_key",
            "password_reset_url",
            "monkey",
            "",
            "2",
        ] {
            assert_eq!(meaning(name.as_bytes(), &extra), None, "{name}");
        }
        assert_eq!(meaning(b"Proxy-Authorization", &[]), Some(NameMeaning::Authorization));
        let all = ENDINGS.iter().chain(&WORDS).chain(&TAILS).copied();
        for name in all.chain([b"authorization".as_slice(), b"bearer", b"key", b"pass", b"by", b"value"]) {
            assert!(may_matter(name), "{}", name.escape_ascii());
        }
    }
}
