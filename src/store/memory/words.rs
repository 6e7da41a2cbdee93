//! Tokens and queries of the index over words.
//!
//! FTS5 treats everything between spaces and punctuation as one word. Chinese, Japanese, Thai, Lao, Khmer and
//! Burmese have no spaces between words, so that a sentence would be one word; Korean appends endings to
//! words. For these scripts, the index and the queries use overlapping pairs of letters. A pair begins at
//! every letter, and the last letter stands alone, so that a query of one letter finds all words that begin
//! with it.

use std::borrow::Cow;

use unicode_normalization::char::is_combining_mark;
use unicode_normalization::{UnicodeNormalization, is_nfc};

use crate::limits;

/// The text as it is indexed: composed, with letters of unspaced scripts in pairs.
pub(super) fn entered(text: &str) -> Cow<'_, str> {
    let composed = composed(text);
    // A NUL would end the text for FTS5.
    if !composed.contains(|letter| letter == '\0' || is_unspaced(letter)) {
        return composed;
    }
    let mut entered = String::with_capacity(composed.len() * 3);
    for part in parts(&composed) {
        match part {
            Part::Unspaced(run) => {
                for pair in pairs(run) {
                    entered.push(' ');
                    entered.push_str(pair);
                }
                entered.push(' ');
            }
            Part::Other(text) => {
                entered.extend(text.chars().map(|letter| if letter == '\0' { ' ' } else { letter }))
            }
        }
    }
    Cow::Owned(entered)
}

/// The query of the index for any word of a question; `None` if it has no words.
pub(crate) fn match_query(question: &str) -> Option<String> {
    let composed = composed(question);
    let mut terms: Vec<String> = Vec::new();
    // A pair of letters carries about half the information of a word.
    let mut left = 2 * limits::MEMORY_QUERY_WORDS;
    let mut add = |term: String, cost: usize| {
        if !terms.contains(&term) && left >= cost {
            left -= cost;
            terms.push(term);
        }
    };
    for part in parts(&composed) {
        match part {
            Part::Unspaced(run) => {
                let pairs = pairs(run);
                match pairs.split_last() {
                    Some((letter, [])) => add(format!("\"{letter}\" *"), 1),
                    Some((_, pairs)) => pairs.iter().for_each(|pair| add(format!("\"{pair}\""), 1)),
                    None => {}
                }
            }
            Part::Other(text) => {
                let words = text.split(|letter| !is_of_word(letter)).filter(|word| !word.is_empty());
                words.for_each(|word| add(format!("\"{}\"", word.to_lowercase()), 2));
            }
        }
    }
    (!terms.is_empty()).then(|| terms.join(" OR "))
}

/// Composes letters with their marks, because keyboards and file systems differ in that.
fn composed(text: &str) -> Cow<'_, str> {
    if is_nfc(text) { Cow::Borrowed(text) } else { Cow::Owned(text.nfc().collect()) }
}

enum Part<'t> {
    /// Letters of unspaced scripts, with their marks.
    Unspaced(&'t str),
    Other(&'t str),
}

fn parts(text: &str) -> impl Iterator<Item = Part<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let unspaced = is_unspaced(rest.chars().next()?);
        let ends = |letter: char| match unspaced {
            true => !is_unspaced(letter) && !is_combining_mark(letter),
            false => is_unspaced(letter),
        };
        let (part, after) = rest.split_at(rest.find(ends).unwrap_or(rest.len()));
        rest = after;
        Some(if unspaced { Part::Unspaced(part) } else { Part::Other(part) })
    })
}

/// Each letter of a run with the next one, and the last one alone. Marks stay with their letter.
fn pairs(run: &str) -> Vec<&str> {
    let letters = run.char_indices().filter(|(at, letter)| *at == 0 || !is_combining_mark(*letter));
    let starts: Vec<usize> = letters.map(|(at, _)| at).collect();
    let end_of = |at: usize| starts.get(at + 2).copied().unwrap_or(run.len());
    starts.iter().enumerate().filter_map(|(at, start)| run.get(*start..end_of(at))).collect()
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || is_combining_mark(letter)
}

/// Whether a letter belongs to a script without spaces between words, or is Korean.
pub(crate) fn is_unspaced(letter: char) -> bool {
    let of_script = matches!(u32::from(letter),
        // Thai, Lao; Burmese; Hangul jamo; Khmer.
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1100..=0x11FF | 0x1780..=0x17FF
        // Iteration marks; kana, Bopomofo, Hangul jamo; ideographs.
        | 0x3005..=0x3007 | 0x3041..=0x318F | 0x31A0..=0x31FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF
        // Hangul jamo, Burmese, Hangul, ideographs, half-width kana and Hangul.
        | 0xA960..=0xA97F | 0xA9E0..=0xA9FF | 0xAA60..=0xAA7F | 0xAC00..=0xD7FF | 0xF900..=0xFAFF | 0xFF66..=0xFFDC
        // Rare kana and ideographs.
        | 0x1B000..=0x1B16F | 0x20000..=0x3FFFF);
    of_script && letter.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_is_asked_for_any_word_once() {
        assert_eq!(
            match_query("How, HOW are \"refunds\" made?").as_deref(),
            Some("\"how\" OR \"are\" OR \"refunds\" OR \"made\"")
        );
        assert_eq!(match_query("?! …"), None);
        let long: String = (0..100).map(|n| format!("w{n} ")).collect();
        assert_eq!(match_query(&long).unwrap().matches(" OR ").count(), limits::MEMORY_QUERY_WORDS - 1);
        let long: String = ('一'..='龥').take(200).collect();
        assert_eq!(match_query(&long).unwrap().matches(" OR ").count(), 2 * limits::MEMORY_QUERY_WORDS - 1);
    }

    #[test]
    fn letters_without_blanks_are_entered_and_asked_for_in_pairs() {
        for (text, enters, asks) in [
            ("退款。", " 退款 款 。", "\"退款\""),
            ("猫", " 猫 ", "\"猫\" *"),
            ("返品は購入", " 返品 品は は購 購入 入 ", "\"返品\" OR \"品は\" OR \"は購\" OR \"購入\""),
            ("คืนเงิน", " คืน นเ เงิ งิน น ", "\"คืน\" OR \"นเ\" OR \"เงิ\" OR \"งิน\""),
            ("환불은 구매", " 환불 불은 은   구매 매 ", "\"환불\" OR \"불은\" OR \"구매\""),
            (
                "请参考RefundPolicy文档第12章",
                " 请参 参考 考 RefundPolicy 文档 档第 第 12 章 ",
                "\"请参\" OR \"参考\" OR \"refundpolicy\" OR \"文档\" OR \"档第\" OR \"12\" OR \"章\" *",
            ),
            ("a\0b", "a b", "\"a\" OR \"b\""),
            ("Refunds, é.", "Refunds, é.", "\"refunds\" OR \"é\""),
        ] {
            assert_eq!(entered(text), enters);
            assert_eq!(match_query(text).as_deref(), Some(asks));
        }
        assert!(matches!(entered("No pairs here."), Cow::Borrowed(_)));
    }

    #[test]
    fn decomposed_letters_are_those_that_are_composed() {
        for (decomposed, composed) in [
            ("re\u{301}sume\u{301}", "résumé"),
            ("Vie\u{323}\u{302}t", "Việt"),
            ("か\u{3099}く", "がく"),
            ("\u{1112}\u{116a}\u{11ab}", "환"),
        ] {
            assert_eq!(entered(decomposed), entered(composed));
            assert_eq!(match_query(decomposed), match_query(composed));
        }
        // Marks that do not compose with a letter stay in their word.
        assert_eq!(match_query("हिन्दी").as_deref(), Some("\"हिन्दी\""));
    }
}
