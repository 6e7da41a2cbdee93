//! Base64 from requests and code.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;

use crate::error::{Error, Result};

/// Padding is optional.
const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Decodes base64 in either alphabet (`+/` or the URL-safe `-_`), with or without line breaks and padding.
///
/// # Errors
/// The problem, as the end of a sentence.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, String> {
    let odd = |byte: u8| byte.is_ascii_whitespace() || byte == b'-' || byte == b'_';
    let plain: Cow<'_, [u8]> = match text.bytes().any(odd) {
        false => Cow::Borrowed(text.as_bytes()),
        true => {
            let letters = text.bytes().filter(|byte| !byte.is_ascii_whitespace());
            Cow::Owned(
                letters
                    .map(|byte| match byte {
                        b'-' => b'+',
                        b'_' => b'/',
                        other => other,
                    })
                    .collect(),
            )
        }
    };
    ENGINE.decode(plain).map_err(|error| format!("is not base64: {error}"))
}

/// Encodes bytes.
pub(crate) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Decodes strict base64.
pub(crate) fn bytes_of(text: &str) -> Result<Bytes> {
    STANDARD.decode(text).map(Bytes::from).map_err(|_| Error::field("data", "`data` is no base64."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_in_every_usual_form() {
        let bytes = vec![0xfb, 0xff, 0xfe, 0x01];
        for text in ["+//+AQ==", "-__-AQ==", "+//+AQ", "+//+\r\n AQ==\n", "\t-__-AQ"] {
            assert_eq!(decode(text), Ok(bytes.clone()), "{text:?}");
        }
        assert_eq!(decode(""), Ok(Vec::new()));
        for text in ["%", "A", "AA=A", "AAA\u{e9}", "AB"] {
            assert!(decode(text).is_err(), "{text:?}");
        }
        assert!(decode("AA*A").unwrap_err().contains("not base64"));
    }
}
