//! Common pairs of letters in English words and in names in code. Random texts have other pairs, and so do
//! words of other languages.

/// For each letter, the letters that often follow it, as bits.
const FOLLOWERS: [u32; 26] = [
    0x11e_bd4e, 0x012_4911, 0x01a_4d91, 0x016_4119, 0x0af_b97d, 0x010_4931, 0x006_2190, 0x008_4111,
    0x22e_f87f, 0x000_0000, 0x004_0110, 0x11c_4919, 0x000_c113, 0x03c_615d, 0x07e_fd2f, 0x01e_c911,
    0x010_0000, 0x13e_755d, 0x01c_c195, 0x11e_4195, 0x00e_b916, 0x000_0111, 0x002_6191, 0x008_8000,
    0x000_0000, 0x000_0000,
];

/// Whether two ASCII letters, in any case, often follow one another.
pub fn is_common(first: u8, second: u8) -> bool {
    let place = |letter: u8| usize::from((letter | 0x20).wrapping_sub(b'a'));
    FOLLOWERS.get(place(first)).is_some_and(|followers| followers >> place(second).min(31) & 1 == 1)
}
