//! Estimates of token counts, without a vocabulary, in one pass. Runs of characters of one class count by a
//! rate of the class. Words count by their length, and by how common their pairs of letters are in English,
//! which vocabularies cover best. JSON and code are estimated well through their many marks and digits.
//!
//! The rates were fitted to counts of two vocabularies over `tests/fixtures/tokens.jsonl`. They follow
//! `o200k_base` where the two differ: the older one needs up to three times as many tokens for some scripts.

use crate::bigrams::is_common;

/// The class of a character.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Small,
    Large,
    /// A Latin letter with a diacritic.
    Accented,
    Digit,
    Line,
    Blank,
    Mark,
    /// A letter of a script with spaced words.
    Script(Script),
    /// A character that counts by itself, at this rate.
    Single(u64),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Script {
    Cyrillic,
    Greek,
    Arabic,
    Indic,
}

// Rates, in hundredths of a token.
const WORD: u64 = 82;
/// Each letter of a word beyond the fourth.
const LONG: u64 = 9;
const LONG_FROM: u64 = 4;
/// A rare pair of letters.
const RARE: u64 = 58;
const ACCENT: u64 = 96;
/// A word that begins after a letter or digit: `camelCase`.
const HUMP: u64 = 9;
/// Up to three digits.
const DIGITS: u64 = 119;
const MARKS: u64 = 80;
/// Each mark after another.
const MARK: u64 = 10;
/// Several spaces, or one that is not part of a word.
const BLANKS: u64 = 84;
const LINES: u64 = 20;
const HAN: u64 = 93;
const HIRAGANA: u64 = 99;
const KATAKANA: u64 = 41;
const HANGUL: u64 = 93;
const EMOJI: u64 = 220;
const WIDE_MARK: u64 = 120;
/// Scripts without spaces between words.
const THAI: u64 = 50;
const OTHER: u64 = 150;

impl Script {
    /// Rates of a word, and of each of its letters.
    const fn rates(self) -> (u64, u64) {
        match self {
            Script::Cyrillic => (98, 18),
            Script::Greek => (86, 32),
            Script::Arabic => (172, 5),
            Script::Indic => (142, 5),
        }
    }
}

impl Class {
    const fn of(c: char) -> Class {
        match c {
            'a'..='z' => Class::Small,
            'A'..='Z' => Class::Large,
            '0'..='9' => Class::Digit,
            '\n' | '\r' => Class::Line,
            ' ' | '\t' => Class::Blank,
            '\0'..='\x7f' => Class::Mark,
            '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => Class::Accented,
            '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}' => Class::Script(Script::Greek),
            '\u{400}'..='\u{52f}' => Class::Script(Script::Cyrillic),
            '\u{590}'..='\u{77f}' => Class::Script(Script::Arabic),
            '\u{900}'..='\u{dff}' => Class::Script(Script::Indic),
            '\u{e00}'..='\u{eff}' => Class::Single(THAI),
            '\u{3040}'..='\u{309f}' => Class::Single(HIRAGANA),
            '\u{30a0}'..='\u{30ff}' => Class::Single(KATAKANA),
            '\u{ac00}'..='\u{d7af}' | '\u{1100}'..='\u{11ff}' => Class::Single(HANGUL),
            '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{2ffff}' => {
                Class::Single(HAN)
            }
            '\u{3000}'..='\u{303f}' | '\u{ff00}'..='\u{ffef}' => Class::Single(WIDE_MARK),
            '\u{2600}'..='\u{27bf}' | '\u{1f000}'.. => Class::Single(EMOJI),
            _ => Class::Single(OTHER),
        }
    }

    const fn is_latin(self) -> bool {
        matches!(self, Class::Small | Class::Large | Class::Accented)
    }
}

/// Counts the characters of a text.
#[derive(Default)]
struct Counter {
    hundredths: u64,
    last: Option<(Class, char)>,
    /// Characters in the current run of one class; letters of the current word.
    run: u64,
    /// Capitals at the beginning of the current word, if nothing else has followed.
    capitals: u64,
}

impl Counter {
    fn take(&mut self, c: char) {
        let class = Class::of(c);
        let last = self.last.map(|(class, _)| class);
        match class {
            _ if class.is_latin() => self.letter(class, c),
            Class::Digit => {
                self.begin(last != Some(Class::Digit));
                // A space joins a following word, but not a number.
                if self.run == 1 && last == Some(Class::Blank) {
                    self.hundredths += BLANKS;
                }
                self.hundredths += if self.run % 3 == 1 { DIGITS } else { 0 };
            }
            Class::Blank => {
                self.begin(last != Some(Class::Blank));
                self.hundredths += if self.run == 2 { BLANKS } else { 0 };
            }
            Class::Line => {
                self.begin(last != Some(Class::Line));
                self.hundredths += if self.run == 1 { LINES } else { 0 };
            }
            Class::Mark => {
                self.begin(last != Some(Class::Mark));
                self.hundredths += if self.run == 1 { MARKS } else { MARK };
            }
            Class::Script(script) => {
                self.begin(last != Some(class));
                let (word, letter) = script.rates();
                self.hundredths += letter + if self.run == 1 { word } else { 0 };
            }
            Class::Single(rate) => self.hundredths += rate,
            // Handled by the first arm.
            Class::Small | Class::Large | Class::Accented => {}
        }
        self.last = Some((class, c));
    }

    fn begin(&mut self, is_new: bool) {
        self.run = if is_new { 1 } else { self.run + 1 };
    }

    /// Counts a Latin letter, which continues a word or begins one.
    fn letter(&mut self, class: Class, c: char) {
        let last = self.last.filter(|(last, _)| last.is_latin());
        let large = class == Class::Large;
        let goes_on = match last {
            None => false,
            // `HTTP`, before `parser`.
            Some((Class::Large, _)) if large => self.capitals > 0,
            Some(_) => !large,
        };
        if !goes_on {
            let joined = last.is_some() || self.last.is_some_and(|(last, _)| last == Class::Digit);
            self.hundredths += WORD + if joined { HUMP } else { 0 };
            (self.run, self.capitals) = (0, 0);
        } else if !large && self.capitals > 1 {
            // The last capital begins the next word.
            self.hundredths += WORD + HUMP;
            (self.run, self.capitals) = (1, 0);
        }
        self.run += 1;
        self.capitals = if large { self.capitals + 1 } else { 0 };
        if self.run > LONG_FROM {
            self.hundredths += LONG;
        }
        if class == Class::Accented {
            self.hundredths += ACCENT;
        }
        if let Some((_, before)) = last.filter(|_| goes_on)
            && let (Ok(first), Ok(second)) = (u8::try_from(before), u8::try_from(c))
            && first.is_ascii()
            && second.is_ascii()
            && !is_common(first, second)
        {
            self.hundredths += RARE;
        }
    }
}

/// Estimated number of tokens in a text.
pub fn tokens(text: &str) -> usize {
    let mut counter = Counter::default();
    text.chars().for_each(|c| counter.take(c));
    usize::try_from(counter.hundredths.div_ceil(100)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    const CORPUS: &str = include_str!("../../../tests/fixtures/tokens.jsonl");
    /// Scripts for which `cl100k_base` needs at least half as many tokens again as `o200k_base`: no rate fits
    /// both.
    const APART: [&str; 5] = ["Russian", "Greek", "Arabic", "Hindi", "Korean"];

    struct Text {
        kind: String,
        estimate: f64,
        o200k: f64,
        cl100k: f64,
    }

    fn corpus() -> Vec<Text> {
        let read = |line: &str| {
            let row: Value = crate::json::from_str(line).unwrap();
            Text {
                kind: row["kind"].as_str().unwrap().to_owned(),
                estimate: tokens(row["text"].as_str().unwrap()) as f64,
                o200k: row["o200k"].as_f64().unwrap(),
                cl100k: row["cl100k"].as_f64().unwrap(),
            }
        };
        CORPUS.lines().map(read).collect()
    }

    /// Median of the errors, share within a quarter for texts of at least 200 tokens, and the lowest error.
    fn judged(name: &str, pairs: &[(f64, f64)]) {
        let error = |(estimate, count): &(f64, f64)| estimate / count - 1.0;
        let mut errors: Vec<f64> = pairs.iter().map(|pair| error(pair).abs()).collect();
        errors.sort_by(f64::total_cmp);
        let median = errors[errors.len() / 2];
        let long: Vec<f64> = pairs.iter().filter(|(_, count)| *count >= 200.0).map(error).collect();
        let near = long.iter().filter(|error| error.abs() <= 0.25).count() as f64 / long.len() as f64;
        let lowest = pairs.iter().map(error).fold(0.0, f64::min);
        println!("{name}: median {median:.3}, {near:.3} of {} within 0.25, lowest {lowest:.3}", long.len());
        assert!(long.len() >= 40, "{name}: {} long texts", long.len());
        assert!(median <= 0.10, "{name}: the median error is {median}");
        assert!(near >= 0.95, "{name}: {near} of the long texts are within a quarter");
        assert!(lowest >= -0.35, "{name}: the lowest error is {lowest}");
    }

    #[test]
    fn estimates_are_near_to_the_counts_of_two_vocabularies() {
        let corpus = corpus();
        assert!(corpus.len() >= 300);
        let all: Vec<(f64, f64)> = corpus.iter().map(|text| (text.estimate, text.o200k)).collect();
        judged("o200k_base", &all);
        let together = corpus.iter().filter(|text| !APART.contains(&text.kind.as_str()));
        let together: Vec<(f64, f64)> = together.map(|text| (text.estimate, text.cl100k)).collect();
        judged("cl100k_base, where the two are near each other", &together);
    }

    /// A factor between a half and two for each kind of text.
    #[test]
    fn a_factor_for_each_kind_brings_the_older_vocabulary_near_as_well() {
        let corpus = corpus();
        let corrected = |text: &Text| {
            let alike = || corpus.iter().filter(|other| other.kind == text.kind);
            let counted: f64 = alike().map(|other| other.cl100k).sum();
            let estimated: f64 = alike().map(|other| other.estimate).sum();
            (text.estimate * (counted / estimated).clamp(0.5, 2.0), text.cl100k)
        };
        // Hindi needs more than three times as many, beyond the range of the factor.
        let pairs: Vec<(f64, f64)> =
            corpus.iter().filter(|text| text.kind != "Hindi").map(corrected).collect();
        judged("cl100k_base, corrected", &pairs);
    }

    #[test]
    fn the_estimate_of_parts_is_about_that_of_the_whole() {
        let text = "Some words, a number 12345, `code(x)` and 漢字.\n".repeat(200);
        let (head, tail) = text.split_at(text.len() / 2);
        assert!(tokens(head).abs_diff(tokens(&text) - tokens(tail)) <= 2);
        assert_eq!((tokens(""), tokens("a"), tokens("😀")), (0, 1, 3));
    }
}
