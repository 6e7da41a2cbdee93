//! Patterns of paths (spec §16.2): `*` matches any characters within a part, `**` any characters, `?` one
//! character within a part. Every other character matches itself. A pattern that does not begin with `/`
//! matches from any part on.
//!
//! All possible positions in the pattern are tracked at once, one bit each, so there is no backtracking. The
//! cost of a path is its characters times the words that the pattern's bits fill, for every pattern.

use std::collections::BTreeMap;
/// A compiled pattern.
pub(crate) struct Glob {
    /// Number of words in a set of positions.
    words: usize,
    /// The position after the whole pattern.
    end: usize,
    /// Positions before each character of the pattern.
    letters: BTreeMap<char, Places>,
    /// Positions before a `?`.
    ones: Places,
    /// Positions before a `*`.
    runs: Places,
    /// Positions before a `**`.
    any: Places,
}

/// A set of positions, one bit each, as long as the pattern needs.
type Places = Box<[u64]>;

const BITS: usize = u64::BITS as usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Char(char),
    /// One character, not `/`.
    One,
    /// Any run without `/`.
    Run,
    /// Any run.
    Any,
}

impl Glob {
    /// Parses a pattern; every text is valid.
    pub(crate) fn new(pattern: &str) -> Glob {
        let tokens = tokens(pattern);
        let words = tokens.len() / BITS + 1;
        let none = || vec![0_u64; words].into_boxed_slice();
        let mut glob = Glob {
            words,
            end: tokens.len(),
            letters: BTreeMap::new(),
            ones: none(),
            runs: none(),
            any: none(),
        };
        for (at, token) in tokens.into_iter().enumerate() {
            let places = match token {
                Token::Char(c) => glob.letters.entry(c).or_insert_with(none),
                Token::One => &mut glob.ones,
                Token::Run => &mut glob.runs,
                Token::Any => &mut glob.any,
            };
            if let Some(word) = places.get_mut(at / BITS) {
                *word |= 1 << (at % BITS);
            }
        }
        glob
    }

    /// Whether a path matches. Adds the number of steps to `work`: characters times words.
    pub(crate) fn matches(&self, path: &str, work: &mut u64) -> bool {
        let mut places = vec![0_u64; self.words];
        if let Some(first) = places.first_mut() {
            *first = 1;
        }
        self.skip_runs(&mut places);
        for c in path.chars() {
            *work += self.words as u64;
            if !self.step(&mut places, c) {
                return false;
            }
        }
        places.get(self.end / BITS).is_some_and(|word| word >> (self.end % BITS) & 1 == 1)
    }

    /// Advances by one character. Returns whether any position is left.
    fn step(&self, places: &mut [u64], c: char) -> bool {
        let letters = self.letters.get(&c);
        let (mut carry, mut left) = (0, 0);
        for (at, places) in places.iter_mut().enumerate() {
            let word = |set: &[u64]| set.get(at).copied().unwrap_or_default();
            let inside = |set: &[u64]| if c == '/' { 0 } else { word(set) };
            let goes_on = *places & (letters.map_or(0, |set| word(set)) | inside(&self.ones));
            let stays = *places & (word(&self.any) | inside(&self.runs));
            *places = goes_on << 1 | carry | stays;
            carry = goes_on >> (BITS - 1);
            left |= *places;
        }
        self.skip_runs(places);
        left != 0
    }

    /// Skips runs, which may be empty. No two are adjacent.
    fn skip_runs(&self, places: &mut [u64]) {
        let mut carry = 0;
        for (at, places) in places.iter_mut().enumerate() {
            let word = |set: &[u64]| set.get(at).copied().unwrap_or_default();
            let skipped = *places & (word(&self.any) | word(&self.runs));
            *places |= skipped << 1 | carry;
            carry = skipped >> (BITS - 1);
        }
    }
}

fn tokens(pattern: &str) -> Vec<Token> {
    let mut tokens = Vec::with_capacity(pattern.len() + 2);
    if !pattern.starts_with('/') {
        tokens.extend([Token::Any, Token::Char('/')]);
    }
    for c in pattern.chars() {
        match (c, tokens.last_mut()) {
            ('*', Some(last @ (Token::Run | Token::Any))) => *last = Token::Any,
            ('*', _) => tokens.push(Token::Run),
            ('?', _) => tokens.push(Token::One),
            (c, _) => tokens.push(Token::Char(c)),
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        Glob::new(pattern).matches(path, &mut 0)
    }

    /// The definition, by exhaustive search.
    fn naive(pattern: &[char], path: &[char]) -> bool {
        match pattern {
            [] => path.is_empty(),
            ['*', '*', rest @ ..] => (0..=path.len()).any(|n| naive(rest, &path[n..])),
            ['*', rest @ ..] => {
                (0..=path.len()).take_while(|n| !path[..*n].contains(&'/')).any(|n| naive(rest, &path[n..]))
            }
            ['?', rest @ ..] => path.first().is_some_and(|c| *c != '/') && naive(rest, &path[1..]),
            [c, rest @ ..] => path.first() == Some(c) && naive(rest, &path[1..]),
        }
    }

    #[test]
    fn patterns_match_what_people_mean() {
        for (pattern, path, expected) in [
            ("*.md", "/a/b.md", true),
            ("*.md", "/b.md", true),
            ("*.md", "/a.md/b", false),
            ("/*.md", "/a/b.md", false),
            ("/*.md", "/b.md", true),
            ("/**.md", "/a/b.md", true),
            ("/**/*.md", "/a/c/b.md", true),
            ("b?.txt", "/a/bü.txt", true),
            ("b?c", "/b/c", false),
            ("a/b", "/x/a/b", true),
            ("a/b", "/xa/b", false),
            ("**", "/anything/at/all", true),
            ("", "/a", false),
            ("", "/", true),
            ("/a/*", "/a/", true),
            ("[a]", "/a", false),
            ("[a]", "/[a]", true),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn every_pattern_does_what_its_definition_says() {
        // All patterns of up to five of these tokens, on all paths of up to five of those.
        let words = |alphabet: &[char], length: usize| {
            let mut words: Vec<Vec<char>> = vec![Vec::new()];
            let mut from = 0;
            for _ in 0..length {
                let upto = words.len();
                for at in from..upto {
                    for c in alphabet {
                        let mut word = words[at].clone();
                        word.push(*c);
                        words.push(word);
                    }
                }
                from = upto;
            }
            words
        };
        let paths = words(&['a', '/', 'b'], 4);
        for mut pattern in words(&['a', '*', '/', '?'], 5) {
            // Three and more in a row are `**`.
            while let Some(at) = pattern.windows(3).position(|three| three == ['*', '*', '*']) {
                pattern.remove(at);
            }
            pattern.insert(0, '/');
            let glob = Glob::new(&pattern.iter().collect::<String>());
            for path in &paths {
                let text: String = path.iter().collect();
                assert_eq!(glob.matches(&text, &mut 0), naive(&pattern, path), "{pattern:?} {text}");
            }
        }
    }

    #[test]
    fn patterns_of_many_words_match_as_short_ones_do() {
        // Covers every boundary where a bit moves from one word to the next.
        for length in 55..75 {
            let text = "a".repeat(length);
            for (pattern, path, expected) in [
                (format!("/{text}b"), format!("/{text}b"), true),
                (format!("/{text}*b"), format!("/{text}b"), true),
                (format!("/{text}*b"), format!("/{text}aaab"), true),
                (format!("/{text}*b"), format!("/{text}/b"), false),
                (format!("/{text}**b"), format!("/{text}/x/b"), true),
                (format!("/{}b", "?".repeat(length)), format!("/{text}b"), true),
                (format!("/{}b", "?".repeat(length)), format!("/{text}ab"), false),
                (format!("{text}/c"), format!("/x/{text}/c"), true),
                (format!("/{}c", "*a".repeat(length)), format!("/{text}c"), true),
                (format!("/{}c", "*a".repeat(length)), format!("/{}c", &text[1..]), false),
            ] {
                assert_eq!(matches(&pattern, &path), expected, "{pattern} {path}");
            }
        }
    }

    #[test]
    fn no_pattern_costs_more_than_its_words_for_each_character() {
        for pattern in [
            "a?".repeat(490) + "x",
            "**a".repeat(330),
            "*a".repeat(499) + "b",
            "**/".repeat(330) + "b",
            "*?".repeat(500),
            "?".repeat(1_000),
            "/".repeat(1_000),
            "**".to_owned(),
        ] {
            for path in
                ["/".to_owned() + &"a".repeat(1_000), "/a".repeat(500), "/".to_owned() + &"ab".repeat(500)]
            {
                let mut work = 0;
                let _either_way = Glob::new(&pattern).matches(&path, &mut work);
                assert!(work <= 1_001 * 16, "{work} steps for {pattern}");
            }
        }
    }
}
