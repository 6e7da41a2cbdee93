//! Whether a long text consists of words: names of functions and files, paths, cache keys. Pairs of letters
//! in random texts are unusual in any language.

use bobbin_definitions::bigrams::is_common;

/// Minimum usual pairs of letters, out of ten.
const USUAL_OF_TEN: usize = 6;

/// Whether its letters are words. Digits and separators may be between them.
pub(super) fn are_words(text: &[u8]) -> bool {
    let (mut letters, mut pieces, mut pairs, mut usual) = (0, 0, 0, 0);
    let mut last: u8 = 0;
    for byte in text {
        let hump = byte.is_ascii_uppercase() && last.is_ascii_lowercase();
        if byte.is_ascii_alphabetic() {
            letters += 1;
            if last.is_ascii_alphabetic() && !hump {
                pairs += 1;
                usual += usize::from(is_common(last, *byte));
            }
        }
        let same = (byte.is_ascii_alphabetic() && last.is_ascii_alphabetic() && !hump)
            || (byte.is_ascii_digit() && last.is_ascii_digit());
        pieces += usize::from(byte.is_ascii_alphanumeric() && !same);
        last = *byte;
    }
    let digits = text.iter().filter(|byte| byte.is_ascii_digit()).count();
    // Random texts alternate between letters and digits, and between cases, about every second character.
    letters > 0 && usual * 10 >= pairs * USUAL_OF_TEN && letters + digits >= pieces * 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_and_random_texts_are_not() {
        for text in [
            "getElementsByClassNameAndTagName",
            "convertUtf8StringToBase64String",
            "src/engine/subagents/context",
            "test_that_a_call_is_not_made_again_2",
            "AbstractSingletonProxyFactoryBean",
            "node_modules/typescript/lib",
            "Donaudampfschifffahrtsgesellschaft",
            "case-sensitive",
        ] {
            assert!(are_words(text.as_bytes()), "{text}");
        }
        for text in [
            "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY",
            "4eC39HqLyjWDarjtT1zdp7dc",
            "x8fk2lq9wz7pb4vn1mtr6sdh",
            "JBSWY3DPEHPK3PXPJBSWY3DP",
            "qzxwvkjhgfpdmtbrcnlxqzjw",
            "12345678",
            "",
        ] {
            assert!(!are_words(text.as_bytes()), "{text}");
        }
    }
}
