//! Searches for many texts at once, in time that depends only on the length of the searched text.
//!
//! A first pass finds which first eight bytes occur at all. Only texts that begin so are then searched, in
//! one more pass ([`automaton`](super::automaton)), or in a few when they are very long. Common prefixes and
//! repetitions do not matter.

use std::rc::Rc;

use crate::redact::automaton::Automaton;
use crate::redact::step_count;

/// Minimum bytes of a text, and the length of the first pass's keys.
pub const LEAST_BYTES: usize = 8;
/// Size of the first pass's table, as a power of two.
const TABLE_BITS: u32 = 16;
/// A text to search for, and its secret.
#[derive(Debug)]
pub struct Needle {
    pub(super) text: Rc<[u8]>,
    /// Index of the secret.
    pub secret: usize,
}

/// An occurrence of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) secret: usize,
}

/// The texts to search for.
#[derive(Debug, Default)]
pub struct Finder {
    /// First bytes of the needles, and the needles; both sorted.
    keys: Vec<(u64, Vec<Needle>)>,
    /// Bit set of hashes of first bytes; empty without needles.
    table: Vec<u64>,
}

impl Finder {
    /// Adds a text. Texts below [`LEAST_BYTES`] are ignored, because they would match by chance.
    pub fn add(&mut self, text: Rc<[u8]>, secret: usize) {
        let Some(key) = text.first_chunk().map(|first| u64::from_be_bytes(*first)) else { return };
        match self.keys.binary_search_by_key(&key, |(key, _)| *key) {
            Ok(place) => {
                let Some((_, alike)) = self.keys.get_mut(place) else { return };
                if let Err(place) = alike.binary_search_by(|known| known.text.cmp(&text)) {
                    alike.insert(place, Needle { text, secret });
                }
            }
            Err(place) => self.keys.insert(place, (key, vec![Needle { text, secret }])),
        }
        if self.table.is_empty() {
            self.table = vec![0; 1 << (TABLE_BITS - 6)];
        }
        let (word, bit) = place_of(key);
        if let Some(word) = self.table.get_mut(word) {
            *word |= bit;
        }
    }

    /// All occurrences, with overlaps merged. Also a prefix of at least [`LEAST_BYTES`] at the end of `text`,
    /// which may be a secret that was cut.
    pub fn find(&self, text: &[u8]) -> Vec<Span> {
        let mut spans = Vec::new();
        let mut present = self.present(text).peekable();
        while present.peek().is_some() {
            Automaton::new(&mut present, text.len()).search(text, &mut spans);
        }
        spans
    }

    /// The needles whose first bytes occur, sorted.
    fn present(&self, text: &[u8]) -> impl Iterator<Item = &Needle> {
        let mut seen = vec![false; self.keys.len()];
        if !self.table.is_empty() && text.len() >= LEAST_BYTES {
            let mut window = 0u64;
            step_count::add(text.len());
            for (at, byte) in text.iter().enumerate() {
                window = (window << 8) | u64::from(*byte);
                let (word, bit) = place_of(window);
                if self.table.get(word).is_none_or(|word| word & bit == 0) || at + 1 < LEAST_BYTES {
                    continue;
                }
                let key = self.keys.binary_search_by_key(&window, |(key, _)| *key);
                if let Some(seen) = key.ok().and_then(|key| seen.get_mut(key)) {
                    *seen = true;
                }
            }
        }
        self.keys.iter().zip(seen).filter(|(_, seen)| *seen).flat_map(|((_, needles), _)| needles)
    }
}

/// Word and bit of a key in the table.
fn place_of(key: u64) -> (usize, u64) {
    let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - TABLE_BITS);
    ((hash >> 6) as usize, 1 << (hash & 63))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(needles: &[&str], text: &str) -> Vec<(usize, usize, usize)> {
        let mut finder = Finder::default();
        needles.iter().enumerate().for_each(|(at, needle)| finder.add(needle.as_bytes().into(), at));
        let mut spans: Vec<_> =
            finder.find(text.as_bytes()).iter().map(|span| (span.start, span.end, span.secret)).collect();
        spans.sort_unstable();
        spans
    }

    #[test]
    fn every_text_is_found_wherever_it_stands() {
        assert_eq!(found(&["abcdefgh"], "abcdefgh"), [(0, 8, 0)]);
        assert_eq!(found(&["abcdefgh"], "xabcdefghabcdefgh"), [(1, 9, 0), (9, 17, 0)]);
        assert_eq!(found(&["aaaaaaaab"], "aaaaaaaaaaab"), [(3, 12, 0)]);
        assert_eq!(found(&["abcabcabcd"], "abcabcabcabcd"), [(3, 13, 0)]);
        assert_eq!(found(&["12345678", "123456789"], "0123456789"), [(1, 10, 1)]);
        assert_eq!(found(&["short", "abcdefgh"], "short abcdefg abcdefgx"), []);
    }

    #[test]
    fn a_beginning_counts_where_the_text_ends_in_it() {
        assert_eq!(found(&["abcdefghijkl"], "key abcdefghi"), [(4, 13, 0)]);
        let mut finder = Finder::default();
        finder.add(b"abcdefghijkl".as_slice().into(), 0);
        assert_eq!(finder.find(b"abcdefghi or"), []);
    }

    #[test]
    fn what_overlaps_is_one_place_and_what_follows_another() {
        assert_eq!(found(&["aaaaaaaa"], "aaaaaaaaaaaa b"), [(0, 12, 0)]);
        assert_eq!(found(&["abcdefgh", "efghijklm", "cdefghij"], "abcdefghijklm"), [(0, 13, 1)]);
        assert_eq!(found(&["abcdefghxx", "bcdefghxy"], "abcdefghxy"), [(1, 10, 1)]);
        assert_eq!(found(&["aaaaaaaaab", "aaaaaaaab", "aaaaaaaaac"], "aaaaaaaaaaac"), [(2, 12, 2)]);
    }

    #[test]
    fn many_needles_are_found_as_each_by_itself_would_be() {
        // Two letters, so that needles share prefixes, contain each other and end with each other's prefixes.
        let mut state = 7_u32;
        let mut letters = |length: usize| -> String {
            (0..length)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    if state >> 30 == 0 { 'b' } else { 'a' }
                })
                .collect()
        };
        for round in 0..200 {
            let needles: Vec<String> = (0..20).map(|n| letters(8 + n % 9)).collect();
            let text = letters(60 + round % 7);
            let mut covered = vec![false; text.len()];
            for needle in &needles {
                let starts = (0..text.len()).filter(|start| text[*start..].starts_with(needle.as_str()));
                starts.for_each(|start| covered[start..start + needle.len()].fill(true));
                for length in LEAST_BYTES..needle.len() {
                    if text.ends_with(&needle[..length]) {
                        covered[text.len() - length..].fill(true);
                    }
                }
            }
            let mut ours = vec![false; text.len()];
            let needles: Vec<&str> = needles.iter().map(String::as_str).collect();
            for (start, end, _) in found(&needles, &text) {
                ours[start..end].fill(true);
            }
            assert_eq!(ours, covered, "{needles:?} in {text}");
        }
    }

    #[test]
    fn needles_that_are_too_long_for_one_pass_are_found_in_several() {
        let needles: Vec<String> = (0..12).map(|n| format!("{n:08}").repeat(7_500)).collect();
        let needles: Vec<&str> = needles.iter().map(String::as_str).collect();
        assert_eq!(found(&needles, &needles.join("-")).len(), 12);
    }

    #[test]
    fn the_time_grows_with_the_text_and_with_the_needles_and_not_with_both() {
        let steps = |needles: usize, text: usize| {
            let mut finder = Finder::default();
            for n in 0..needles {
                finder.add([vec![b'a'; 1_000], n.to_string().into_bytes()].concat().into(), n);
            }
            let text = vec![b'a'; text];
            let before = step_count::total();
            finder.find(&text);
            step_count::total() - before
        };
        for (needles, text) in [(1, 1 << 20), (200, 1 << 20), (1_000, 1 << 20), (200, 1 << 10)] {
            let steps = steps(needles, text);
            assert!(steps <= 4 * text + 4_000 * needles, "{needles} needles, {text} bytes: {steps} steps");
        }
    }
}
