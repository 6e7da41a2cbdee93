use base64::engine::general_purpose::{STANDARD, URL_SAFE};

use crate::redact::*;
use bobbin_definitions::json;

const KEY: &str = "s3cr\"t/ke y+ü\nend";

fn redactor() -> Redactor {
    Redactor::new([
        ("KEY", KEY),
        ("LONG", "longer-s3cret-value"),
        ("PART", "s3cret-value"),
        ("SHORT", "1234567"),
    ])
}

#[test]
fn a_secret_goes_in_every_form() {
    let redactor = redactor();
    assert_eq!(redactor.text(&format!("a {KEY} b")), "a [redacted KEY] b");
    assert_eq!(redactor.text(&json!({ "k": KEY }).to_string()), r#"{"k":"[redacted KEY]"}"#);
    assert_eq!(redactor.text("/x?k=s3cr%22t%2Fke%20y%2B%C3%BC%0Aend&b"), "/x?k=[redacted KEY]&b");
    assert_eq!(redactor.text("k=s3cr%22t%2Fke+y%2B%C3%BC%0Aend"), "k=[redacted KEY]");
    for around in ["", "u", "us", "user:"] {
        for text in [STANDARD.encode(format!("{around}{KEY}")), URL_SAFE.encode(format!("{around}{KEY}!"))] {
            assert!(redactor.text(&text).contains("[redacted KEY]"), "{around}: {text}");
        }
    }
}

#[test]
fn the_longest_goes_first_short_ones_and_other_texts_stay() {
    let redactor = redactor();
    assert_eq!(redactor.text("longer-s3cret-value, s3cret-value"), "[redacted LONG], [redacted PART]");
    assert!(matches!(redactor.text("1234567 is short"), Cow::Borrowed("1234567 is short")));
    assert!(Redactor::new([("SHORT", "1234567"), ("BLANK", "          ")]).is_empty());
    assert_eq!(Redactor::new([("PEM", "0123456789\n")]).text("0123456789"), "[redacted PEM]");
    assert_eq!(
        redactor.json(json!({ "a": ["s3cret-value", 1, null], "s3cret-value": true })),
        json!({ "a": ["[redacted PART]", 1, null], "[redacted PART]": true })
    );
    assert!(!format!("{redactor:?}").contains("s3cret"));
}

// ---- every encoder --------------------------------------------------------------------------------------------

/// A deterministic random number generator.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }

    fn text(&mut self, alphabet: &str, length: usize) -> String {
        let all: Vec<char> = alphabet.chars().collect();
        (0..length).map(|_| all[self.below(all.len())]).collect()
    }
}

fn percent(text: &str, kept: &str, lower: bool, plus: bool) -> String {
    let one = |byte: u8| match char::from(byte) {
        ' ' if plus => "+".to_owned(),
        c if c.is_ascii_alphanumeric() || kept.contains(c) => c.to_string(),
        _ if lower => format!("%{byte:02x}"),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}

fn units(text: &str, kept: impl Fn(char) -> bool) -> String {
    let mut pair = [0; 2];
    let mut out = String::new();
    for c in text.chars() {
        if kept(c) {
            out.push(c);
        } else {
            c.encode_utf16(&mut pair).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        }
    }
    out
}

fn json_text(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn entities(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

fn lines(text: &str, width: usize, end: &str) -> String {
    text.as_bytes().chunks(width).map(|line| std::str::from_utf8(line).unwrap()).collect::<Vec<_>>().join(end)
}

fn quoted_printable(text: &str) -> String {
    let mut out = String::new();
    let mut column = 0;
    for byte in text.bytes() {
        let piece = match byte {
            b'!'..=b'<' | b'>'..=b'~' | b' ' => char::from(byte).to_string(),
            _ => format!("={byte:02X}"),
        };
        if column + piece.len() > 20 {
            out.push_str("=\r\n");
            column = 0;
        }
        column += piece.len();
        out.push_str(&piece);
    }
    out
}

type Encoder = (&'static str, fn(&str) -> String);

/// Encodings of a text; those before the first `base64` may be applied twice.
const ENCODERS: [Encoder; 20] = [
    ("as it is", str::to_owned),
    ("encodeURIComponent", |text| percent(text, "-_.!~*'()", false, false)),
    ("URLSearchParams", |text| percent(text, "*-._", false, true)),
    ("Python's quote", |text| percent(text, "_.-~/", false, false)),
    ("Python's quote_plus", |text| percent(text, "_.-~", false, true)),
    ("percent in lower case", |text| percent(text, "-_.~", true, false)),
    ("every byte in percent", |text| text.bytes().map(|byte| format!("%{byte:02X}")).collect()),
    ("JSON", json_text),
    ("JSON in ASCII", |text| units(&json_text(text), |c| c.is_ascii())),
    ("PHP's JSON", |text| units(&json_text(text), |c| c.is_ascii()).replace('/', "\\/")),
    ("Go's JSON", |text| units(&json_text(text), |c| !"<>&".contains(c))),
    ("HTML", entities),
    ("base64", |text| STANDARD.encode(text)),
    ("base64 for URLs", |text| URL_SAFE.encode(text)),
    ("base64 without padding", |text| URL_SAFE_NO_PAD.encode(text)),
    ("base64 in lines", |text| lines(&STANDARD.encode(text), 12, "\r\n")),
    ("base64 in lines in JSON", |text| json_text(&lines(&STANDARD.encode(text), 12, "\n"))),
    ("hexadecimal", |text| text.bytes().map(|byte| format!("{byte:02x}")).collect()),
    ("hexadecimal, upper case", |text| text.bytes().map(|byte| format!("{byte:02X}")).collect()),
    ("quoted-printable", quoted_printable),
];
/// Number of encodings that may be applied twice.
const TWICE: usize = 12;

const ALPHABET: &str = "abcXYZ019 +/=%\\\"'<>&;#!~*()_-.:{}u\u{e9}\u{1f600}";

/// Asserts that the redacted `text` contains nothing of the secret.
fn assert_gone(redactor: &Redactor, text: &str, told: &str) {
    let clean = redactor.text(text);
    assert!(clean.contains("[redacted KEY]"), "{told}\n{text}\n{clean}");
}

#[test]
fn every_encoder_is_seen_through_whatever_stands_around() {
    let mut dice = Dice(0x5EED_0001);
    for _ in 0..400 {
        let length = 8 + dice.below(30);
        let secret = dice.text(ALPHABET, length);
        let redactor = Redactor::new([("KEY", secret.as_str())]);
        if redactor.is_empty() {
            continue;
        }
        let (before, after) = (dice.below(9), dice.below(9));
        let around = |dice: &mut Dice, length| dice.text(ALPHABET, length);
        let text = format!("{}{secret}{}", around(&mut dice, before), around(&mut dice, after));
        for (name, encode) in &ENCODERS {
            // Text around the secret can continue its last escape only where two kinds meet.
            let mixed =
                ["URLSearchParams", "Python's quote_plus", "HTML"].contains(name) || name.contains("lines");
            let text = if mixed { format!("key: {secret} ok") } else { text.clone() };
            if mixed && (bare(&secret).len() < 14 || secret.trim() != secret) {
                continue;
            }
            assert_gone(&redactor, &encode(&text), &format!("{name}: {secret}"));
        }
    }
}

#[test]
fn encoders_may_be_chained() {
    let mut dice = Dice(0x5EED_0002);
    for _ in 0..100 {
        let length = 16 + dice.below(20);
        let secret = dice.text(ALPHABET, length);
        if bare(secret.trim()).len() < 14 {
            continue;
        }
        let redactor = Redactor::new([("KEY", secret.as_str())]);
        for (outer, second) in &ENCODERS[..TWICE] {
            for (inner, first) in &ENCODERS {
                let text = second(&first(&format!("key: {} ok", secret.trim())));
                // No decoder can read the result of these combinations.
                let lost = *inner == "quoted-printable" || (inner.contains("lines") && *outer != "JSON");
                if !lost {
                    assert_gone(&redactor, &text, &format!("{outer} of {inner}: {secret}"));
                }
            }
        }
    }
}

#[test]
fn a_secret_of_eight_characters_is_found_in_base64_at_every_place() {
    let redactor = Redactor::new([("KEY", "p@ss/w0r")]);
    for before in 0..6 {
        for after in 0..4 {
            let text = format!("{}p@ss/w0r{}", "u".repeat(before), "x".repeat(after));
            for encoded in [STANDARD.encode(&text), URL_SAFE.encode(&text)] {
                assert!(redactor.text(&encoded).contains("[redacted KEY]"), "{text}: {encoded}");
            }
        }
    }
}

#[test]
fn what_holds_no_secret_stays_as_it_is() {
    let mut dice = Dice(0x5EED_0003);
    for _ in 0..300 {
        let length = 8 + dice.below(4);
        let secret = dice.text("ab", length);
        let redactor = Redactor::new([("KEY", secret.as_str())]);
        let length = dice.below(60);
        let text = dice.text("ab c", length) + "!";
        let clean = redactor.text(&text);
        assert_eq!(clean.contains("[redacted KEY]"), text.contains(&secret), "{secret}: {text}");
        assert!(!clean.contains(&secret), "{secret}: {text}");
    }
    let redactor = Redactor::new([("PIN", "12345678"), ("WORD", "correct horse")]);
    for text in
        ["1\n2\n3\n4\n5\n6\n7\n8\n", "1234 5678", "correct\nhorse", "100% & a=b; \\q C:\\new\\url +1 =3D", ""]
    {
        assert!(matches!(redactor.text(text), Cow::Borrowed(_)), "{text}");
    }
}

#[test]
fn a_secret_that_was_cut_elsewhere_and_a_number_are_found() {
    let redactor = Redactor::new([("KEY", "canary-4711-token"), ("PIN", "12345678")]);
    assert_eq!(redactor.text("bad key canary-47"), "bad key [redacted KEY]");
    assert_eq!(redactor.text("bad key canary"), "bad key canary");
    assert_eq!(redactor.json(json!([12_345_678, 7, 1.5])), json!(["[redacted PIN]", 7, 1.5]));
    assert_eq!(redactor.bytes(b"\xff canary-4711-token \xfe").unwrap(), b"\xff [redacted KEY] \xfe");
}

#[test]
fn the_time_grows_with_the_text_alone() {
    let secrets: Vec<(String, String)> =
        (0..200).map(|n| (format!("KEY_{n}"), format!("sk-proj-{n:03}-{}", "aB3/".repeat(20)))).collect();
    let few = Redactor::new(secrets.iter().take(1).map(|(name, value)| (name.as_str(), value.as_str())));
    let many = Redactor::new(secrets.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    let line = "{\"a\": \"b\\\\u00e9 100% %2F &amp; x=3D\"}\n";
    let steps = |redactor: &Redactor, text: &str| {
        let before = step_count::total();
        redactor.text(text);
        step_count::total() - before
    };
    let text = line.repeat((1 << 18) / line.len());
    assert!(steps(&few, &text) <= 16 * text.len());
    assert_eq!(steps(&few, &text), steps(&many, &text), "secrets that are not there cost nothing");
    let nested = "%25".repeat(1 << 16);
    assert!(steps(&few, &nested) <= 16 * nested.len());
    let alike = Redactor::new([("A", "aaaaaaaaaaaaaaaab")]);
    let text = "a".repeat(1 << 18);
    assert!(steps(&alike, &text) <= 16 * text.len());
    let values: Vec<String> = (0..199).map(|n| format!("{}{n}", "a".repeat(1_000))).collect();
    let alike = Redactor::new(values.iter().map(|value| ("KEY", value.as_str())));
    let text = format!("\\ % =3D\n{}", "a".repeat(1 << 20));
    assert!(steps(&alike, &text) <= 32 * text.len(), "{} steps", steps(&alike, &text));
}
