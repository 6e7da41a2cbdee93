use serde_json::Value;

use crate::redact::step_count;
use crate::scrub::*;
use bobbin_definitions::json;

const NAMED: &str = include_str!("../../../../tests/fixtures/scrub/named.txt");
const UNNAMED: &str = include_str!("../../../../tests/fixtures/scrub/unnamed.txt");
const CLEAN: &str = include_str!("../../../../tests/fixtures/scrub/clean.txt");

// The same in other formats. They were first collected without knowledge of the rules, which were then
// corrected; the last lines of each were added after that.
const NAMED_UNSEEN: &str = include_str!("../../../../tests/fixtures/scrub/named-unseen.txt");
const UNNAMED_UNSEEN: &str = include_str!("../../../../tests/fixtures/scrub/unnamed-unseen.txt");
const CLEAN_UNSEEN: &str = include_str!("../../../../tests/fixtures/scrub/clean-unseen.txt");

fn scrub() -> Rules {
    Rules::of(&Scrub::default(), None)
}

fn scrubbed(text: &str) -> String {
    Scrubber::new(&scrub()).text(text.to_owned())
}

/// A line of a list without marks: around its secrets, and against secret scanners of repositories. Also
/// returns the secrets.
fn line(marked: &str) -> (String, Vec<String>) {
    let marked = marked.replace('¦', "");
    let secrets = marked
        .split('«')
        .skip(1)
        .filter_map(|rest| rest.split_once('»'))
        .map(|(secret, _)| secret.to_owned());
    let secrets = secrets.collect();
    (marked.replace(['«', '»'], ""), secrets)
}

/// Lines whose secrets remain.
fn missed(list: &str) -> Vec<String> {
    let missed = |marked: &&str| {
        let (text, secrets) = line(marked);
        assert!(!secrets.is_empty(), "{marked}");
        let clean = scrubbed(&text);
        secrets.iter().any(|secret| clean.contains(secret.as_str()))
    };
    list.lines().filter(missed).map(|marked| format!("{marked}\n  {}", scrubbed(&line(marked).0))).collect()
}

/// Lines that have changed.
fn changed(list: &str) -> Vec<String> {
    let changed = list.lines().map(|text| (text, scrubbed(text))).filter(|(text, clean)| text != clean);
    changed.map(|(text, clean)| format!("{text}\n  {clean}")).collect()
}

#[test]
fn every_secret_with_a_name_is_found() {
    let missed = missed(NAMED);
    assert!(missed.is_empty(), "{}:\n{}", missed.len(), missed.join("\n"));
}

#[test]
fn secrets_without_a_name_are_found() {
    let (missed, all) = (missed(UNNAMED), UNNAMED.lines().count());
    assert!(NAMED.lines().count() + all >= 200);
    assert!(missed.len() * 20 <= all, "{} of {all}:\n{}", missed.len(), missed.join("\n"));
}

#[test]
fn lines_without_secrets_stay() {
    let (changed, all) = (changed(CLEAN), CLEAN.lines().count());
    assert!(all >= 500);
    assert!(changed.len() * 100 <= all, "{} of {all}:\n{}", changed.len(), changed.join("\n"));
}

#[test]
fn other_lists_come_out_alike() {
    let (missed_named, missed_other, changed) =
        (missed(NAMED_UNSEEN), missed(UNNAMED_UNSEEN), changed(CLEAN_UNSEEN));
    let (named, other, clean) =
        (NAMED_UNSEEN.lines().count(), UNNAMED_UNSEEN.lines().count(), CLEAN_UNSEEN.lines().count());
    assert!(named + other >= 200 && clean >= 500);
    let enough = missed_named.is_empty() && missed_other.len() * 20 <= other && changed.len() * 100 <= clean;
    let told = |what: &str, lines: &[String], all: usize| {
        format!("{what}: {} of {all}\n{}\n", lines.len(), lines.join("\n"))
    };
    let named = told("named", &missed_named, named);
    let other = told("others", &missed_other, other);
    assert!(enough, "{named}{other}{}", told("changed", &changed, clean));
}

#[test]
fn only_the_value_goes() {
    for (text, clean) in [
        ("DB_PASSWORD=hunter2 # old", "DB_PASSWORD=[REDACTED] # old"),
        ("a: 'b', password: 'hunter2', c: 'd'", "a: 'b', password: '[REDACTED]', c: 'd'"),
        ("?user=ann&token=abc123&page=2", "?user=ann&token=[REDACTED]&page=2"),
        (r#"say {\"password\": \"hunter2\", \"n\": 1}"#, r#"say {\"password\": \"[REDACTED]\", \"n\": 1}"#),
        ("Authorization: Bearer abc.def-123 next", "Authorization: Bearer [REDACTED] next"),
        ("The password is hunter2!x. Keep it.", "The password is [REDACTED]. Keep it."),
        ("postgres://app:pa55@db:5432/shop", "postgres://app:[REDACTED]@db:5432/shop"),
        ("token: |\n  ab12cd34ef\nnext: 1", "token: |\n  [REDACTED]\nnext: 1"),
        ("token: >-\n  ab12cd34ef\n", "token: >-\n  [REDACTED]\n"),
        ("<token>\n    ab12cd34ef\n</token>", "<token>\n    [REDACTED]\n</token>"),
        ("<token>\n    ab12cd34ef\n", "<token>\n    ab12cd34ef\n"),
        ("key 4eC39HqLyjWDarjtT1zdp7dcQ9== ok", "key [REDACTED:high-entropy] ok"),
        (
            "[redacted KEY] password=[redacted KEY] token=[REDACTED]",
            "[redacted KEY] password=[redacted KEY] token=[REDACTED]",
        ),
    ] {
        assert_eq!(scrubbed(text), clean);
        assert_eq!(scrubbed(clean), clean, "what was done stays");
    }
}

#[test]
fn blocks_of_private_keys_go_and_certificates_stay() {
    let body =
        "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\nq7VJTUt9Us8cKjMzEfYyjiWA4R4\n";
    let block =
        |label: &str| format!("before\n-----BEGIN {label}-----\n{body}-----END {label}-----\nafter 7");
    for label in ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"] {
        assert_eq!(scrubbed(&block(label)), "before\n[REDACTED]\nafter 7");
    }
    let public = block("CERTIFICATE");
    assert_eq!(scrubbed(&public), public);
    let cut = "x\n-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ";
    assert_eq!(scrubbed(cut), "x\n[REDACTED]");
    let line = format!("KEY='{}'", block("EC PRIVATE KEY").replace('\n', "\\n"));
    assert_eq!(scrubbed(&line), "KEY='before\\n[REDACTED]\\nafter 7'");
}

#[test]
fn json_is_looked_at_by_its_values_and_stays_as_it_was_printed() {
    for (text, clean) in [
        (
            "{ \"b\" : 1e400,\n \"password\" : \"a\\\"b\" , \"a\":[ ] }",
            "{ \"b\" : 1e400,\n \"password\" : \"[REDACTED]\" , \"a\":[ ] }",
        ),
        (
            r#"{"token":1234567890,"secret":7,"x":1234567890}"#,
            r#"{"token":"[REDACTED]","secret":7,"x":1234567890}"#,
        ),
        (
            r#"{"api_key":["a1","b2",null],"n":["a1"]}"#,
            r#"{"api_key":["[REDACTED]","[REDACTED]",null],"n":["a1"]}"#,
        ),
        (r#"{"name":"DB_PASSWORD","value":"hunter2"}"#, r#"{"name":"DB_PASSWORD","value":"[REDACTED]"}"#),
        (r#"{"name":"COLOUR","value":"red"}"#, r#"{"name":"COLOUR","value":"red"}"#),
        (r#"{"a":"password:","b":"c"}"#, r#"{"a":"password:","b":"c"}"#),
        (r#"{"log":"a\npassword=hunter2\nb"}"#, r#"{"log":"a\npassword=[REDACTED]\nb"}"#),
        (r#"{"inner":"{\"password\":\"hunter2\"}"}"#, r#"{"inner":"{\"password\":\"[REDACTED]\"}"}"#),
        (r#"{"password":{"min":12},"has_password":true}"#, r#"{"password":{"min":12},"has_password":true}"#),
        ("one\n{\"token\":\"a1b2\"}\ntwo", "one\n{\"token\":\"[REDACTED]\"}\ntwo"),
        (r#""token=a1b2c3""#, r#""token=[REDACTED]""#),
        (r#"{"half":"\ud83d","token":"a1b2"}"#, r#"{"half":"\ud83d","token":"[REDACTED]"}"#),
    ] {
        assert_eq!(scrubbed(text), clean);
    }
    let mut scrubber_rules = scrub();
    scrubber_rules.entropy = ScrubAction::Off;
    let value = json!({ "z": 1, "password": "hunter2", "a": ["4eC39HqLyjWDarjtT1zdp7dcQ9", 0.1, u64::MAX] });
    let mut scrubber = Scrubber::new(&scrubber_rules);
    let clean = scrubber.json(value);
    let expected =
        format!(r#"{{"z":1,"password":"[REDACTED]","a":["4eC39HqLyjWDarjtT1zdp7dcQ9",0.1,{}]}}"#, u64::MAX);
    assert_eq!(clean.to_string(), expected);
    assert_eq!(scrubber.replaced, ScrubCounts { keywords: 1, entropy: 0 });
}

#[test]
fn settings_say_what_is_done_and_tools_only_tighten() {
    let text = "password=hunter2 4eC39HqLyjWDarjtT1zdp7dcQ9 session_id=12";
    let of = |folder: Value, tool: Option<Value>| {
        let read = |value| bobbin_definitions::json::from_value::<Scrub>(value).unwrap();
        let rules = Rules::of(&read(folder), tool.map(read).as_ref());
        let mut scrubber = Scrubber::new(&rules);
        (scrubber.text(text.to_owned()), scrubber.replaced.total(), scrubber.reported.total())
    };
    let all = "password=[REDACTED] [REDACTED:high-entropy] session_id=12".to_owned();
    assert_eq!(of(json!({}), None), (all.clone(), 2, 0));
    assert_eq!(of(json!({ "keywords": "off", "entropy": "off" }), None), (text.to_owned(), 0, 0));
    assert_eq!(of(json!({ "keywords": "report", "entropy": "report" }), None), (text.to_owned(), 0, 2));
    assert_eq!(of(json!({ "keywords": "off" }), Some(json!({ "keywords": "redact" }))), (all.clone(), 2, 0));
    assert_eq!(
        of(json!({}), Some(json!({ "keywords": "off" }))),
        (all, 2, 0),
        "what is weaker has no effect"
    );
    let (kept, ..) = of(json!({}), Some(json!({ "entropy": "off", "extraKeywords": ["session-id"] })));
    assert_eq!(kept, "password=[REDACTED] 4eC39HqLyjWDarjtT1zdp7dcQ9 session_id=12");
    let (allowed, ..) = of(json!({ "allow": ["4eC39*"] }), None);
    assert_eq!(allowed, "password=[REDACTED] 4eC39HqLyjWDarjtT1zdp7dcQ9 session_id=12");

    let folder =
        bobbin_definitions::json::from_value(json!({ "keywords": "report", "allow": ["*"] })).unwrap();
    assert_eq!(Scrub::problems(&folder, None).len(), 1);
    let tool = Scrub {
        keywords: Some(ScrubAction::Off),
        extra_keywords: vec!["ü".into(), "ok".into()],
        ..Scrub::default()
    };
    let fields: Vec<String> = tool.problems(Some(&folder)).into_iter().map(|(field, _)| field).collect();
    assert_eq!(fields, ["keywords", "extraKeywords[0]"]);
}

/// A deterministic random number generator.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

/// Parts of texts with secrets, and parts that do not fit.
const PIECES: [&str; 46] = [
    "password",
    "token",
    "=",
    ": ",
    ":",
    "\"",
    "'",
    "`",
    "\\\"",
    "\\",
    "\\u00e9",
    "\\n",
    "\n",
    " ",
    "é",
    "😀",
    "{",
    "}",
    "[",
    "]",
    ",",
    "is ",
    "bearer ",
    "Authorization",
    "https://",
    "@",
    "/",
    "?",
    "&",
    "-----BEGIN PRIVATE KEY-----",
    "-----END ",
    "-----",
    "data:image/png;base64,",
    "[redacted ",
    "[REDACTED",
    "4eC39HqLyjWDarjtT1zdp7dcQ9",
    "AKIA",
    "eyJ",
    ".",
    "<",
    ">",
    "</",
    "--",
    "curl -u a:",
    "***",
    "1234567",
];

#[test]
fn any_text_stays_a_text_and_json_stays_json() {
    let mut dice = Dice(0x5EED_0101);
    for _ in 0..4_000 {
        let text: String = (0..dice.below(24)).map(|_| PIECES[dice.below(PIECES.len())]).collect();
        let clean = scrubbed(&text);
        assert_eq!(scrubbed(&clean), clean, "{text:?}");
        // The same within JSON: as a value, as the value of a secret field, and cut in unusual positions.
        let value = json!({ "a": text, "token": text, (text.clone()): [text, 1.5, null, { "b": text }] });
        let json = value.to_string();
        let read: Value = bobbin_definitions::json::from_str(&scrubbed(&json))
            .unwrap_or_else(|error| panic!("{error}: {json}"));
        assert_eq!(read, Scrubber::new(&scrub()).json(value), "{json}");
        let cut = dice.below(json.len() + 1);
        scrubbed(&String::from_utf8_lossy(&json.as_bytes()[..cut]));
    }
    for _ in 0..2_000 {
        let bytes: Vec<u8> = (0..dice.below(200)).map(|_| dice.below(256) as u8).collect();
        scrubbed(&String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn the_time_grows_with_the_text_alone() {
    let steps = |text: &str| {
        let before = step_count::total();
        scrubbed(text);
        step_count::total() - before
    };
    let patterns = [
        "a ",
        "aB3/",
        "password=",
        "password='",
        "password=\"",
        "password: \\\"",
        "password=a&b",
        "password=://",
        "token is ",
        "bearer a-b/",
        "authorization: x ",
        "authorization: x y",
        "--token ",
        "<token>",
        "<token>x</",
        "-----BEGIN ",
        "-----BEGIN A-----",
        "-----BEGIN PRIVATE KEY-----",
        "https://",
        "https://a:b",
        "https://a:b@",
        "://",
        "curl -u '",
        "-ghp_",
        "-eyJ",
        "/sk-",
        ".eyJ",
        "data:",
        "data:a/b,",
        "[redacted ",
        "[REDACTED",
        "{\"a\":",
        "[",
        "\"",
        "{\"token\":\"",
        "\\\\\"",
        "\n{",
        "\n[1]",
        "password=***",
        "password=a.b",
        "password = a(",
        "token: AbcDef",
        "é",
        "key-0123456789abcdef",
        "secret=https://secret=",
        "token: /a/",
        "password=[",
        "&a=",
        "-u \"",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-",
    ];
    for pattern in patterns {
        let of = |bytes: usize| steps(&pattern.repeat(bytes / pattern.len()));
        let (small, large) = (of(16 << 10), of(32 << 10));
        assert!(large <= small * 9 / 4 + 64, "{pattern:?}: {small}, {large}");
        assert!(large <= 100 << 15, "{pattern:?}: {large}");
    }
    // Patterns that are repeated many times, after and before a long text.
    let allowed = Rules::of(&Scrub { allow: vec!["sk-test*".into()], ..Scrub::default() }, None);
    let mut wrong = Vec::new();
    for (rules, before, pattern, behind) in [
        (&scrub(), "a ", "token=1 ", ""),
        (&scrub(), "", "token=&[(", ""),
        (&scrub(), "", "sk-1-", "-----BEGIN PRIVATE KEY-----"),
        (&allowed, "", "sk-test1-", ""),
        (&allowed, "https://a/", "sk-test1-", ""),
    ] {
        let of = |bytes: usize| {
            let half = |text: &str| text.repeat(bytes / 2 / text.len().max(1));
            let text = format!("{}{}{behind}", half(before), half(pattern));
            let begun = step_count::total();
            Scrubber::new(rules).text(text);
            step_count::total() - begun
        };
        let (small, large) = (of(16 << 10), of(32 << 10));
        if large > small * 9 / 4 + 64 || large > 200 << 15 {
            wrong.push(format!("{before:?} {pattern:?}: {small}, {large}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
    for pattern in ["password=", "{\"token\":\"a\",", "-ghp_", "x password: 'y'\n"] {
        let text = pattern.repeat((1 << 18) / pattern.len());
        assert!(steps(&text) <= 100 * text.len(), "{pattern:?}");
    }
}

#[test]
fn the_page_says_what_is_done() {
    let page = include_str!("../../../../docs/scrubbing.md");
    let blocks = |language: &str| -> Vec<&str> {
        page.split("```").filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n')).collect()
    };
    let texts = blocks("text");
    assert_eq!(scrubbed(texts[0]), texts[1]);
    let settings: Value = bobbin_definitions::json::from_str(blocks("json")[0]).unwrap();
    let settings: Scrub = bobbin_definitions::json::from_value(settings["scrub"].clone()).unwrap();
    assert!(settings.problems(None).is_empty() && settings.problems(Some(&Scrub::default())).is_empty());
    // Each way in which a value may follow a name, as a separate text.
    for way in
        texts[3].lines().flat_map(|line| line.split("  ")).map(str::trim).filter(|way| way.contains("value"))
    {
        let text =
            way.replace("scheme", "Bearer").replace("name", "api_key").replace("value", "hunter2-4711");
        assert!(!scrubbed(&text).contains("hunter2-4711"), "{text}");
    }
}
