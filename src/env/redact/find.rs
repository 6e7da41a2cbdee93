//! Searches for many texts at once, in time that depends only on the length of the searched text.
//!
//! One pass notes which of the texts' first eight bytes occur at all; only those texts are then searched for one by one,
//! by an algorithm (Knuth, Morris, Pratt) that reads each byte once, whatever repetitions there are.

use std::rc::Rc;

use crate::env::redact::work;

/// Bytes that a text has at least, and that the first pass looks for.
pub(crate) const LEAST_BYTES: usize = 8;
/// Entries of the table that the first pass asks, as a power of two.
const TABLE_BITS: u32 = 16;

/// A text that is looked for, and whose it is.
#[derive(Debug)]
struct Needle {
    text: Rc<[u8]>,
    /// Place of the secret.
    secret: usize,
}

/// Where a secret stands in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) secret: usize,
}

/// Texts to look for.
#[derive(Debug, Default)]
pub(crate) struct Finder {
    needles: Vec<Needle>,
    /// First bytes of the needles, in order, and which of these begin so.
    keys: Vec<(u64, Vec<usize>)>,
    /// Which hashes of first bytes there are; empty while nothing is looked for.
    table: Vec<u64>,
}

impl Finder {
    /// Looks for one more text. Shorter ones than [`LEAST_BYTES`] would be found by chance and are left out.
    pub(crate) fn add(&mut self, text: Rc<[u8]>, secret: usize) {
        let Some(key) = text.first_chunk().map(|first| u64::from_be_bytes(*first)) else { return };
        let needle = self.needles.len();
        match self.keys.binary_search_by_key(&key, |(key, _)| *key) {
            Ok(place) => {
                let known = |place: &usize| self.needles.get(*place).is_some_and(|known| known.text == text);
                let Some((_, needles)) = self.keys.get_mut(place) else { return };
                if needles.iter().any(known) {
                    return;
                }
                needles.push(needle);
            }
            Err(place) => self.keys.insert(place, (key, vec![needle])),
        }
        if self.table.is_empty() {
            self.table = vec![0; 1 << (TABLE_BITS - 6)];
        }
        let (word, bit) = place_of(key);
        if let Some(word) = self.table.get_mut(word) {
            *word |= bit;
        }
        self.needles.push(Needle { text, secret });
    }

    /// Every place of every text; and a beginning of one, of [`LEAST_BYTES`] or more, where `text` ends in it: that may
    /// be a secret that somebody else has cut.
    pub(crate) fn find(&self, text: &[u8]) -> Vec<Span> {
        let mut spans = Vec::new();
        for needle in self.present(text).into_iter().filter_map(|place| self.needles.get(place)) {
            search(&needle.text, text, &mut |start, end| {
                spans.push(Span { start, end, secret: needle.secret });
            });
        }
        spans
    }

    /// The needles whose first bytes occur.
    fn present(&self, text: &[u8]) -> Vec<usize> {
        let mut found: Vec<usize> = Vec::new();
        if self.table.is_empty() || text.len() < LEAST_BYTES {
            return found;
        }
        let mut seen = vec![false; self.keys.len()];
        let mut window = 0u64;
        work::add(text.len());
        for (at, byte) in text.iter().enumerate() {
            window = (window << 8) | u64::from(*byte);
            let (word, bit) = place_of(window);
            if self.table.get(word).is_none_or(|word| word & bit == 0) || at + 1 < LEAST_BYTES {
                continue;
            }
            let Ok(key) = self.keys.binary_search_by_key(&window, |(key, _)| *key) else { continue };
            if let Some(seen) = seen.get_mut(key).filter(|seen| !**seen) {
                *seen = true;
                found.extend(self.keys.get(key).into_iter().flat_map(|(_, needles)| needles));
            }
        }
        found
    }
}

/// Word and bit of a key in the table.
fn place_of(key: u64) -> (usize, u64) {
    let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - TABLE_BITS);
    ((hash >> 6) as usize, 1 << (hash & 63))
}

/// Every place of `needle` that does not overlap the one before, and its beginning at the end.
fn search(needle: &[u8], text: &[u8], found: &mut dyn FnMut(usize, usize)) {
    // For each length of a beginning, the next shorter one that it ends in.
    let mut shorter = vec![0usize; needle.len()];
    let step = |shorter: &[usize], mut matched: usize, byte: u8| {
        loop {
            work::add(1);
            if needle.get(matched) == Some(&byte) {
                return matched + 1;
            }
            match matched {
                0 => return 0,
                more => matched = shorter.get(more - 1).copied().unwrap_or(0),
            }
        }
    };
    let mut matched = 0;
    for (at, byte) in needle.iter().enumerate().skip(1) {
        matched = step(&shorter, matched, *byte);
        if let Some(place) = shorter.get_mut(at) {
            *place = matched;
        }
    }
    matched = 0;
    for (at, byte) in text.iter().enumerate() {
        matched = step(&shorter, matched, *byte);
        if matched == needle.len() {
            found(at + 1 - matched, at + 1);
            matched = 0;
        }
    }
    if matched >= LEAST_BYTES {
        found(text.len() - matched, text.len());
    }
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
        assert_eq!(found(&["12345678", "123456789"], "0123456789"), [(1, 9, 0), (1, 10, 1)]);
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
    fn what_repeats_is_searched_in_time_that_grows_with_the_text() {
        let mut finder = Finder::default();
        finder.add([vec![b'a'; 5_000], b"b".to_vec()].concat().into(), 0);
        finder.add(vec![b'a'; 5_000].into(), 1);
        let text = vec![b'a'; 1 << 20];
        let before = work::done();
        finder.find(&text);
        let steps = work::done() - before;
        assert!(steps <= 6 * text.len(), "{steps} steps");
    }
}
