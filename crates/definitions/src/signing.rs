//! Signatures of requests to HTTP tools, so that a tool can verify that a call is authentic and recent
//! (`x-bobbin-signature: t=1795300000,v1=<hex>`), and the keyed hash that they share with browser tokens.

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

/// The header that carries a signature.
pub const HEADER: &str = "x-bobbin-signature";
/// Allowed difference between a signature's time and a receiver's clock, seconds.
pub const TOLERANCE_S: i64 = 300;

/// The value of [`HEADER`] for a body sent at `t` (seconds since 1970): HMAC-SHA256 of `<t>.<body>`, in
/// hexadecimal.
pub fn sign(secret: &str, t: i64, body: &[u8]) -> String {
    let mut value = format!("t={t},v1=");
    for byte in hmac_sha256(secret.as_bytes(), &[t.to_string().as_bytes(), b".", body]) {
        for digit in [byte >> 4, byte & 15] {
            value.extend(char::from_digit(u32::from(digit), 16));
        }
    }
    value
}

/// The reason why a signature is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The header is not `t=<seconds>,v1=<64 hexadecimal digits>`.
    #[error("the signature is malformed")]
    Malformed,
    /// Its time is more than [`TOLERANCE_S`] away.
    #[error("the signature is too old, or the clocks differ")]
    Expired,
    /// Made with another secret, or for another body.
    #[error("the signature does not match")]
    Mismatch,
}

/// Verifies the value of [`HEADER`] against the received body, at `now_s` (seconds since 1970), as a receiver
/// does. One of several `v1` must match, so that a secret can be replaced.
pub fn verify(secret: &str, header: &str, body: &[u8], now_s: i64) -> Result<(), SignatureError> {
    let (mut t, mut signatures) = (None, Vec::new());
    for part in header.split(',') {
        match part.trim().split_once('=') {
            Some(("t", seconds)) => t = Some(seconds.parse::<i64>().map_err(|_| SignatureError::Malformed)?),
            Some(("v1", hex)) => signatures.push(unhex(hex).ok_or(SignatureError::Malformed)?),
            _ => {}
        }
    }
    let t = t.filter(|_| !signatures.is_empty()).ok_or(SignatureError::Malformed)?;
    if now_s.abs_diff(t) > TOLERANCE_S.unsigned_abs() {
        return Err(SignatureError::Expired);
    }
    let right = hmac_sha256(secret.as_bytes(), &[t.to_string().as_bytes(), b".", body]);
    let matches = signatures.iter().fold(false, |found, given| found | same(given, &right));
    if matches { Ok(()) } else { Err(SignatureError::Mismatch) }
}

/// The 32 bytes of a hexadecimal text of 64 digits.
pub fn unhex(hex: &str) -> Option<[u8; 32]> {
    let mut digits = hex.chars().map(|digit| digit.to_digit(16));
    let mut bytes = [0; 32];
    for byte in &mut bytes {
        *byte = u8::try_from(digits.next()?? << 4 | digits.next()??).ok()?;
    }
    digits.next().is_none().then_some(bytes)
}

/// HMAC-SHA256 over the concatenated parts.
pub fn hmac_sha256(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    // The key as one block: a longer one is hashed, a shorter one is padded with zeros.
    let mut block = [0; 64];
    let hashed;
    let key = if key.len() > block.len() {
        hashed = Sha256::digest(key);
        &hashed[..]
    } else {
        key
    };
    for (to, from) in block.iter_mut().zip(key) {
        *to = *from;
    }
    let mut mac = <Hmac<Sha256> as Mac>::new(&block.into());
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

/// Compares two hashes in constant time.
pub fn same(left: &[u8; 32], right: &[u8; 32]) -> bool {
    let difference = left.iter().zip(right).fold(0, |difference, (l, r)| difference | (l ^ r));
    std::hint::black_box(difference) == 0
}

/// The first eight hexadecimal digits of a text's SHA-256: enough to distinguish credentials, too few to
/// recover them.
pub fn fingerprint(text: &str) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(text.as_bytes()).iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

/// A digest that identifies texts: 128 bits of a hash, in hexadecimal. The texts are separated by NULs.
pub fn digest(texts: &[&str]) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(texts.join("\0")).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "a secret of the tests";
    const BODY: &[u8] = br#"{"name":"lookup"}"#;
    const T: i64 = 1_795_300_000;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn the_hash_is_that_of_the_standard() {
        // RFC 4231, cases 1, 2 and 6 (a key longer than a block).
        for (key, data, expected) in [
            (
                &[0x0b; 20][..],
                &b"Hi There"[..],
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            ),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                &[0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ] {
            assert_eq!(hex(&hmac_sha256(key, &[data])), expected);
            let (left, right) = data.split_at(data.len() / 2);
            assert_eq!(hex(&hmac_sha256(key, &[left, right])), expected, "in parts");
        }
    }

    #[test]
    fn a_receiver_accepts_what_was_signed() {
        let header = sign(SECRET, T, BODY);
        assert!(header.starts_with("t=1795300000,v1=") && header.len() == 16 + 64, "{header}");
        for now_s in [T - 300, T, T + 300] {
            assert_eq!(verify(SECRET, &header, BODY, now_s), Ok(()), "{now_s}");
        }
        let both = format!("{},{}", sign("the next secret", T, BODY), header.split_once(',').unwrap().1);
        assert_eq!(verify(SECRET, &both, BODY, T), Ok(()), "while a secret is replaced");
    }

    #[test]
    fn a_receiver_refuses_anything_else() {
        use SignatureError::*;
        let header = sign(SECRET, T, BODY);
        let (time, signature) = header.split_once(',').unwrap();
        assert_eq!(verify(SECRET, &header, BODY, T + 301), Err(Expired));
        assert_eq!(verify(SECRET, &header, BODY, T - 301), Err(Expired));
        assert_eq!(verify(SECRET, &header, BODY, i64::MIN), Err(Expired));
        assert_eq!(verify(SECRET, &header, b"{}", T), Err(Mismatch));
        assert_eq!(verify("another", &header, BODY, T), Err(Mismatch));
        assert_eq!(verify(SECRET, &format!("t={},{signature}", T + 1), BODY, T), Err(Mismatch));
        for malformed in
            ["", time, signature, &format!("{header}0"), "t=now,v1=00", &header.replace("v1=", "v1=x")]
        {
            assert_eq!(verify(SECRET, malformed, BODY, T), Err(Malformed), "{malformed}");
        }
    }
}
