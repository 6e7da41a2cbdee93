//! Ids of threads: random UUIDs, so that nobody can guess one. The name of an object is the id of its thread.

/// The id made of these random bytes (UUID version 4).
pub fn from_random(mut bytes: [u8; 16]) -> String {
    for (at, keep, set) in [(6, 0x0f, 0x40), (8, 0x3f, 0x80)] {
        if let Some(byte) = bytes.get_mut(at) {
            *byte = *byte & keep | set;
        }
    }
    let mut id = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            id.push('-');
        }
        for nibble in [byte >> 4, byte & 15] {
            id.extend(char::from_digit(u32::from(nibble), 16));
        }
    }
    id
}

/// Whether a text can be the id of a thread. What cannot names no object: asking one would create it.
pub fn is_valid(id: &str) -> bool {
    id.len() == 36
        && id.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            14 => byte == b'4',
            19 => matches!(byte, b'8' | b'9' | b'a' | b'b'),
            _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_bytes_become_a_uuid_of_version_4() {
        assert_eq!(from_random([0; 16]), "00000000-0000-4000-8000-000000000000");
        assert_eq!(from_random([0xff; 16]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        for byte in 0..=255 {
            assert!(is_valid(&from_random([byte; 16])));
        }
    }

    #[test]
    fn what_is_no_id_is_told_apart() {
        let cases = [
            "",
            "x",
            "owners",
            "00000000-0000-1000-8000-000000000000",
            "00000000-0000-4000-c000-000000000000",
            "0000000000004000800000000000000000000",
            "FFFFFFFF-FFFF-4FFF-BFFF-FFFFFFFFFFFF",
            "00000000-0000-4000-8000-00000000000é",
        ];
        for id in cases {
            assert!(!is_valid(id), "{id}");
        }
    }
}
