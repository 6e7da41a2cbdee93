//! Tokens for browsers: `bbt_<payload>.<signature>`, both base64url. The payload is `{"scope":"thread:…","exp":…}`, the
//! signature is HMAC-SHA256 under `BOBBIN_TOKEN_SECRET` and nothing else, so that keys can be replaced without ending
//! sessions, and sessions ended without replacing keys.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::access::Scope;
use crate::limits::SECOND_US;
use crate::signing::{hmac_sha256, same};

/// What a token begins with. No API key is looked for behind it.
pub(crate) const PREFIX: &str = "bbt_";

/// A token that was just minted; the answer of `POST /api/tokens`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Minted {
    /// The token.
    pub token: String,
    /// What it is good for.
    pub scope: Scope,
    /// When it ends, seconds since 1970.
    pub expires_at: i64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Payload {
    scope: Scope,
    /// Seconds since 1970.
    exp: i64,
}

/// Why a token is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenError {
    #[error("The token is not valid.")]
    Invalid,
    #[error("The token has expired.")]
    Expired,
}

/// A token for a scope until `expires_at`, seconds since 1970.
pub(crate) fn mint(secret: &[u8], scope: &Scope, expires_at: i64) -> Minted {
    let payload = serde_json::json!({ "scope": scope, "exp": expires_at }).to_string();
    let signed = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(payload));
    let signature = URL_SAFE_NO_PAD.encode(hmac_sha256(secret, &[signed.as_bytes()]));
    Minted { token: format!("{signed}.{signature}"), scope: scope.clone(), expires_at }
}

/// The scope of a token, and when it ends in microseconds since 1970.
pub(crate) fn verify(secret: &[u8], token: &str, now_us: i64) -> Result<(Scope, i64), TokenError> {
    let (signed, signature) = token.split_once('.').ok_or(TokenError::Invalid)?;
    // The signature before anything else is looked at. Base64 with a second spelling of the same bytes is refused.
    let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| TokenError::Invalid)?;
    let signature = signature.try_into().map_err(|_| TokenError::Invalid)?;
    if !same(&hmac_sha256(secret, &[signed.as_bytes()]), &signature) {
        return Err(TokenError::Invalid);
    }
    let payload = signed.strip_prefix(PREFIX).and_then(|payload| URL_SAFE_NO_PAD.decode(payload).ok());
    let payload: Payload =
        payload.and_then(|json| serde_json::from_slice(&json).ok()).ok_or(TokenError::Invalid)?;
    let expires_us = payload.exp.checked_mul(SECOND_US).ok_or(TokenError::Invalid)?;
    if now_us >= expires_us { Err(TokenError::Expired) } else { Ok((payload.scope, expires_us)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"a secret of the tests, long enough";
    const EXPIRES_US: i64 = 1_795_300_060_000_000;

    fn token() -> String {
        mint(SECRET, &Scope::Owner("ali=ce, Ä".into()), EXPIRES_US / SECOND_US).token
    }

    #[test]
    fn a_token_carries_its_scope_until_it_ends() {
        let token = token();
        assert!(token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)), "{token}");
        let scope = Scope::Owner("ali=ce, Ä".into());
        assert_eq!(verify(SECRET, &token, EXPIRES_US - 1), Ok((scope, EXPIRES_US)));
        assert_eq!(verify(SECRET, &token, EXPIRES_US), Err(TokenError::Expired));
    }

    #[test]
    fn a_token_with_any_character_changed_is_no_token() {
        let token = token();
        for at in 0..token.len() {
            for other in ["A", "B", "_", "-", ".", "=", ""] {
                let changed = format!("{}{other}{}", &token[..at], &token[at + 1..]);
                if changed != token {
                    assert_eq!(verify(SECRET, &changed, 0), Err(TokenError::Invalid), "{changed}");
                }
            }
        }
        for end in 0..token.len() {
            assert_eq!(verify(SECRET, &token[..end], 0), Err(TokenError::Invalid));
        }
        assert_eq!(verify(SECRET, &format!("{token}A"), 0), Err(TokenError::Invalid));
        assert_eq!(verify(b"another secret", &token, 0), Err(TokenError::Invalid));
    }

    #[test]
    fn what_we_did_not_mean_is_no_token_even_if_signed() {
        for payload in [
            r#"{"scope":"king","exp":9999999999}"#,
            r#"{"scope":"admin"}"#,
            r#"{"scope":"admin","exp":9223372036854775807}"#,
            "x",
        ] {
            let signed = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(payload));
            let signature = URL_SAFE_NO_PAD.encode(hmac_sha256(SECRET, &[signed.as_bytes()]));
            assert_eq!(
                verify(SECRET, &format!("{signed}.{signature}"), 0),
                Err(TokenError::Invalid),
                "{payload}"
            );
        }
    }
}
