//! Patterns of paths (spec §16.2): `*` is any run of characters within a part, `**` any run at all, `?` one character
//! within a part; everything else is itself. A pattern that does not begin with `/` matches from any part on.

/// A pattern, ready to match.
pub(super) struct Glob {
    tokens: Vec<Token>,
}

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
    /// Reads a pattern; every text is one.
    pub(super) fn new(pattern: &str) -> Glob {
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
        Glob { tokens }
    }

    /// Whether a path matches. Takes time in proportion to path times pattern at most: all the places that a pattern can
    /// have come to are followed at once, so that nothing is ever tried again.
    pub(super) fn matches(&self, path: &str) -> bool {
        // The places before a token that the path so far can have led to; the last one is behind all tokens.
        let mut places = vec![false; self.tokens.len() + 1];
        let mut next = places.clone();
        if let Some(first) = places.first_mut() {
            *first = true;
        }
        self.skip_runs(&mut places);
        for c in path.chars() {
            next.fill(false);
            for (at, token) in self.tokens.iter().enumerate() {
                if places.get(at) != Some(&true) {
                    continue;
                }
                let to = match token {
                    Token::Char(expected) if *expected == c => at + 1,
                    Token::One if c != '/' => at + 1,
                    Token::Run if c != '/' => at,
                    Token::Any => at,
                    _ => continue,
                };
                if let Some(place) = next.get_mut(to) {
                    *place = true;
                }
            }
            self.skip_runs(&mut next);
            if !next.contains(&true) {
                return false;
            }
            std::mem::swap(&mut places, &mut next);
        }
        places.last() == Some(&true)
    }

    /// A run may be empty.
    fn skip_runs(&self, places: &mut [bool]) {
        for (at, token) in self.tokens.iter().enumerate() {
            if matches!(token, Token::Run | Token::Any)
                && places.get(at) == Some(&true)
                && let Some(place) = places.get_mut(at + 1)
            {
                *place = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, by trying everything.
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
            assert_eq!(Glob::new(pattern).matches(path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn every_pattern_does_what_its_definition_says() {
        // Every pattern of up to five of these, on every path of up to five of those.
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
                assert_eq!(glob.matches(&text), naive(&pattern, path), "{pattern:?} {text}");
            }
        }
    }

    #[test]
    fn no_pattern_takes_for_ever() {
        let pattern = "*a".repeat(250) + "b";
        assert!(!Glob::new(&pattern).matches(&("/".to_owned() + &"a".repeat(1_000))));
        let pattern = "**/".repeat(300) + "b";
        assert!(!Glob::new(&pattern).matches(&"/a".repeat(500)));
    }
}
