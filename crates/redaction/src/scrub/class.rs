//! Classes of bytes, in one lookup: the scrubber skips most of a text with it.

/// Part of a name, except `-`.
pub(super) const NAME: u8 = 1;
/// Stops the search for names.
pub(super) const NAMES: u8 = 2;
/// Part of a text that may look random.
pub(super) const RUN: u8 = 4;
/// Stops the search for such texts.
pub(super) const RUNS: u8 = 8;
/// Part of a token with a known prefix, or of such a text.
pub(super) const TOKEN: u8 = 16;

const CLASSES: [u8; 256] = classes();

#[allow(clippy::indexing_slicing, reason = "the compiler evaluates it")]
const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        let alphanumeric = byte.is_ascii_alphanumeric();
        let name = alphanumeric || byte == b'_';
        let run = alphanumeric || matches!(byte, b'+' | b'/' | b'_' | b'-');
        let mut class = 0;
        if name {
            class |= NAME;
        }
        if name || matches!(byte, b'\n' | b'-' | b':') {
            class |= NAMES;
        }
        if run {
            class |= RUN;
        }
        if run || matches!(byte, b'[' | b'\\' | b':') {
            class |= RUNS;
        }
        if run || byte == b'.' {
            class |= TOKEN;
        }
        classes[byte as usize] = class;
        byte += 1;
    }
    classes
}

/// Whether a byte has a class.
#[inline]
pub(super) fn is(byte: u8, class: u8) -> bool {
    CLASSES.get(usize::from(byte)).is_some_and(|classes| classes & class != 0)
}
