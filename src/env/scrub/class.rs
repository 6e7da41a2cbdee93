//! What each byte may be a part of, in one look: a scrubber passes over most of a text without a second one.

/// Of a name, `-` apart.
pub(super) const NAME: u8 = 1;
/// Something that a look for names stops at.
pub(super) const NAMES: u8 = 2;
/// Of a text that may look random.
pub(super) const RUN: u8 = 4;
/// Something that a look for such texts stops at.
pub(super) const RUNS: u8 = 8;
/// Of a token that its first letters give away, or of such a text.
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

/// Whether a byte is of a class.
#[inline]
pub(super) fn is(byte: u8, class: u8) -> bool {
    CLASSES.get(usize::from(byte)).is_some_and(|classes| classes & class != 0)
}
