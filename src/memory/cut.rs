//! Chunking of texts: at a paragraph if possible, else at a sentence, else at a word.

use crate::definitions::memory::Chunking;
use crate::store::memory::words::is_unspaced;
use crate::text::boundary;

/// A part of a text, in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part<'t> {
    pub(super) start: usize,
    pub(super) len: usize,
    pub(super) text: &'t str,
}

/// The parts of a text, without spaces at their ends. Each begins with the end of the previous one.
pub(crate) fn cut(text: &str, chunking: Chunking) -> Vec<Part<'_>> {
    // Byte offsets of all characters, and of the end.
    let mut places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    places.push(text.len());
    let total = places.len() - 1;
    let slice = |from: usize, to: usize| {
        let (from, to) =
            (places.get(from).copied().unwrap_or_default(), places.get(to).copied().unwrap_or_default());
        text.get(from..to).unwrap_or_default()
    };
    let mut parts = Vec::new();
    let mut start = 0;
    while start < total {
        let most = (start + chunking.chars).min(total);
        let end = if most == total { total } else { start + end_of(slice(start, most)) };
        let whole = slice(start, end);
        let trimmed = whole.trim_start();
        let skipped = whole.chars().count() - trimmed.chars().count();
        let trimmed = trimmed.trim_end();
        if !trimmed.is_empty() {
            parts.push(Part { start: start + skipped, len: trimmed.chars().count(), text: trimmed });
        }
        if end == total {
            break;
        }
        // The next part begins at a word within the overlap.
        let from = end.saturating_sub(chunking.overlap).max(start + 1);
        let shared = slice(from, end);
        // Without spaces between words, any letter may begin a part.
        let blank = shared.chars().position(char::is_whitespace);
        let word = blank.or_else(|| shared.chars().position(is_unspaced));
        start = match word {
            Some(skip) if chunking.overlap > 0 => from + skip,
            _ => end,
        };
    }
    parts
}

/// Number of characters after which a text of maximum length is best cut, at its half or later.
fn end_of(text: &str) -> usize {
    let count = |bytes: usize| text.get(..bytes).unwrap_or_default().chars().count();
    let half = boundary(text, text.len() / 2);
    let rest = text.get(half..).unwrap_or_default();
    if let Some(at) = rest.rfind("\n\n") {
        return count(half + at + 2);
    }
    let mut sentence = None;
    let mut word = None;
    let mut before = ' ';
    for (at, letter) in rest.char_indices() {
        let ended = matches!(before, '.' | '!' | '?' | ':' | ';') && letter.is_whitespace();
        if ended || letter == '\n' || matches!(before, '。' | '！' | '？' | '；' | '：' | '｡' | '។' | '။')
        {
            sentence = Some(at);
        }
        if letter.is_whitespace() || matches!(before, '，' | '、' | '၊') {
            word = Some(at);
        }
        before = letter;
    }
    // A text without spaces is cut anywhere.
    sentence.or(word).filter(|at| half + at > 0).map_or_else(|| text.chars().count(), |at| count(half + at))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNKING: Chunking = Chunking { chars: 100, overlap: 20 };

    fn is_whole(text: &str, chunking: Chunking) -> Vec<Part<'_>> {
        let letters: Vec<char> = text.chars().collect();
        let parts = cut(text, chunking);
        let mut covered = 0;
        for part in &parts {
            assert_eq!(letters[part.start..part.start + part.len].iter().collect::<String>(), part.text);
            assert!(part.len <= chunking.chars, "{part:?}");
            let between: String = letters[covered.min(part.start)..part.start].iter().collect();
            assert_eq!(between.trim(), "", "nothing is lost before {part:?}");
            covered = part.start + part.len;
        }
        assert_eq!(letters[covered..].iter().collect::<String>().trim(), "");
        parts
    }

    #[test]
    fn nothing_is_lost_and_every_part_is_where_it_says() {
        let prose = "The shop opens at nine. Refunds are granted within thirty days! Who asks?\n\n".repeat(9);
        let words = "wörter und noch mehr Wörter ".repeat(40);
        let solid = "日本語".repeat(200);
        for text in [prose.as_str(), &words, &solid, "", "  \n ", "short", "x\n\ny"] {
            is_whole(text, CHUNKING);
            is_whole(text, Chunking { chars: 100, overlap: 0 });
        }
        assert!(cut("   ", CHUNKING).is_empty());
    }

    #[test]
    fn a_text_is_cut_at_paragraphs_then_sentences_then_words() {
        let paragraphs = format!("{}\n\n{}", "One two three. ".repeat(5), "Four five six. ".repeat(5));
        assert!(is_whole(&paragraphs, CHUNKING)[0].text.ends_with("three."));
        assert_eq!(is_whole(&paragraphs, CHUNKING)[0].len, 74);
        let sentences = "This is one sentence of a text. ".repeat(6);
        assert!(is_whole(&sentences, CHUNKING)[0].text.ends_with("text."));
        let words = "word ".repeat(60);
        assert!(
            is_whole(&words, CHUNKING)
                .iter()
                .all(|part| part.text.starts_with("word") && part.text.ends_with("word"))
        );
        let clauses = "客户需要提供收据，并说明原因，".repeat(20);
        let (last, others) = is_whole(&clauses, CHUNKING)
            .split_last()
            .map(|(last, others)| (last.len, others.to_vec()))
            .unwrap();
        assert!(last > 0 && others.iter().all(|part| part.text.ends_with('，')));
    }

    #[test]
    fn neighbours_share_the_overlap() {
        let words = "alpha beta gamma delta epsilon zeta eta theta iota kappa ".repeat(6);
        for text in [words, "退款将在三十天内处理".repeat(40), "คืนเงินภายในสามสิบวัน".repeat(20)]
        {
            let parts = is_whole(&text, CHUNKING);
            assert!(parts.len() > 3);
            for pair in parts.windows(2) {
                assert!(pair[1].start < pair[0].start + pair[0].len, "{pair:?}");
                assert!(pair[0].start + pair[0].len - pair[1].start <= CHUNKING.overlap);
            }
        }
    }
}
