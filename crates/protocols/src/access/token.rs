//! Browser tokens: `bbt_<payload>.<signature>`, both base64url. The payload is
//! `{"scope":"thread:…","exp":…}`. The signature is HMAC-SHA256 under `BOBBIN_TOKEN_SECRET` only, so that
//! keys and sessions can be revoked independently.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::access::Scope;
use bobbin_definitions::limits::SECOND_US;
use bobbin_definitions::signing::{hmac_sha256, same};

/// Prefix of every token. A credential with it is never looked up as an API key.
pub const PREFIX: &str = "bbt_";

/// A new token, the response of `POST /api/tokens`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Token"))]
pub struct NewToken {
    /// The token.
    pub token: String,
    /// Its scope, such as `owner:alice`.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub scope: Scope,
    /// End of its validity, seconds since 1970.
    pub expires_at: i64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Payload {
    scope: Scope,
    /// Seconds since 1970.
    exp: i64,
    /// Generation of the scope's thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    life: Option<i64>,
}

/// The contents of a valid token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenClaims {
    pub(super) scope: Scope,
    /// End of its validity, microseconds since 1970.
    pub expires_us: i64,
    /// Generation of the scope's thread ([`crate::access::Via::Token`]).
    pub life: Option<i64>,
}

/// The reason why a token is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TokenError {
    #[error("The token is not valid.")]
    Invalid,
    #[error("The token has expired.")]
    Expired,
}

/// Mints a token for a scope until `expires_at`, seconds since 1970.
pub fn mint(secret: &[u8], scope: &Scope, expires_at: i64) -> NewToken {
    mint_for(secret, scope, None, expires_at)
}

/// Mints a token for one generation of the scope's thread.
pub fn mint_for(secret: &[u8], scope: &Scope, life: Option<i64>, expires_at: i64) -> NewToken {
    let mut payload = bobbin_definitions::json!({ "scope": scope, "exp": expires_at });
    if let (Some(life), Some(fields)) = (life, payload.as_object_mut()) {
        fields.insert("life".into(), life.into());
    }
    let payload = payload.to_string();
    let signed = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(payload));
    let signature = URL_SAFE_NO_PAD.encode(hmac_sha256(secret, &[signed.as_bytes()]));
    NewToken { token: format!("{signed}.{signature}"), scope: scope.clone(), expires_at }
}

/// Verifies a token and returns its contents.
pub(super) fn verify(secret: &[u8], token: &str, now_us: i64) -> Result<TokenClaims, TokenError> {
    let (signed, signature) = token.split_once('.').ok_or(TokenError::Invalid)?;
    // Verify the signature first. The decoder refuses a second spelling of the same bytes.
    let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| TokenError::Invalid)?;
    let signature = signature.try_into().map_err(|_| TokenError::Invalid)?;
    if !same(&hmac_sha256(secret, &[signed.as_bytes()]), &signature) {
        return Err(TokenError::Invalid);
    }
    let payload = signed.strip_prefix(PREFIX).and_then(|payload| URL_SAFE_NO_PAD.decode(payload).ok());
    let payload: Payload = payload
        .and_then(|json| bobbin_definitions::json::from_slice(&json).ok())
        .ok_or(TokenError::Invalid)?;
    let expires_us = payload.exp.checked_mul(SECOND_US).ok_or(TokenError::Invalid)?;
    let Payload { scope, life, .. } = payload;
    if now_us >= expires_us { Err(TokenError::Expired) } else { Ok(TokenClaims { scope, expires_us, life }) }
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
        let said = |life| Ok(TokenClaims { scope: scope.clone(), expires_us: EXPIRES_US, life });
        assert_eq!(verify(SECRET, &token, EXPIRES_US - 1), said(None));
        let of_a_life = mint_for(SECRET, &scope, Some(2), EXPIRES_US / SECOND_US).token;
        assert_eq!(verify(SECRET, &of_a_life, EXPIRES_US - 1), said(Some(2)));
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
