//! Access tokens of another system (docs/mcp-server.md): JSON Web Tokens of the issuer in `BOBBIN_OAUTH_ISSUER`.
//! This module checks the claims. The platform must verify the signature before a token is accepted.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use crate::access::{Caller, Scope, Via};
use bobbin_definitions::error::{Code, Error, Result};
use bobbin_definitions::json;
use bobbin_definitions::limits::SECOND_US;

/// Accepted algorithms. `none` is excluded, and so are HMACs, whose secret could be confused with a public
/// key.
const ALGORITHMS: [&str; 3] = ["RS256", "ES256", "EdDSA"];
/// Accepted difference between the clocks of two systems, seconds.
const LEEWAY_S: i64 = 30;
/// Maximum size of a token, bytes.
const TOKEN_BYTES: usize = 8 << 10;
/// Maximum length of a subject, characters.
const SUBJECT_CHARS: usize = 200;

/// The issuer and the audience of accepted tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuth {
    /// The issuer in tokens.
    pub issuer: String,
    /// The audience in tokens; the default is the requested address.
    audience: Option<String>,
}

/// The contents of a token whose signature is not verified yet.
#[derive(Clone, Debug, PartialEq)]
pub struct UnverifiedToken<'a> {
    /// The algorithm of the signature.
    pub algorithm: String,
    /// The id of the key.
    pub key: Option<String>,
    /// The signed part.
    pub signed: &'a str,
    /// The signature, base64url.
    pub signature: &'a str,
    /// The caller, if the signature is valid.
    pub caller: Caller,
}

impl OAuth {
    /// Reads `BOBBIN_OAUTH_ISSUER` and `BOBBIN_OAUTH_AUDIENCE`; `None` without an issuer. `dev`: a
    /// development server.
    ///
    /// # Errors
    /// `internal` for an issuer that is not an `https` address; a development server also accepts `http` on
    /// its own machine.
    pub fn from_vars(var: impl Fn(&str) -> Option<String>, dev: bool) -> Result<Option<OAuth>> {
        let named =
            |name: &str| var(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let Some(issuer) = named("BOBBIN_OAUTH_ISSUER") else { return Ok(None) };
        let local = ["http://127.0.0.1", "http://localhost"].into_iter().any(|local| {
            issuer.strip_prefix(local).is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/']))
        });
        let rest = issuer
            .strip_prefix("https://")
            .or_else(|| issuer.strip_prefix("http://").filter(|_| dev && local));
        if !rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(['?', '#', '@', ' ', '\\'])) {
            let text = "BOBBIN_OAUTH_ISSUER: it is an address that begins with https:// and has no query.";
            return Err(Error::internal(text));
        }
        Ok(Some(OAuth { issuer, audience: named("BOBBIN_OAUTH_AUDIENCE") }))
    }

    /// The audience that tokens for `resource` must have.
    pub fn audience<'a>(&'a self, resource: &'a str) -> &'a str {
        self.audience.as_deref().unwrap_or(resource)
    }

    /// The server's public address. `origin` is the address that it sees itself; a proxy may be in front of
    /// it.
    pub fn server<'a>(&'a self, origin: &'a str) -> &'a str {
        let named = self.audience.as_deref().and_then(|audience| audience.strip_suffix("/mcp"));
        named.filter(|named| named.contains("://")).unwrap_or(origin)
    }

    /// The metadata of a protected resource (RFC 9728).
    pub fn metadata(&self, resource: &str) -> Value {
        json!({
            "resource": self.audience(resource), "authorization_servers": [self.issuer],
            "bearer_methods_supported": ["header"], "resource_name": "Bobbin",
        })
    }

    /// Parses and checks the claims of a token at `now_us`; `None` if it is not a JSON Web Token.
    ///
    /// # Errors
    /// `unauthenticated`: unsupported algorithm, other issuer, other resource, expired, or not valid yet.
    pub fn read<'a>(
        &self,
        token: &'a str,
        resource: &str,
        now_us: i64,
    ) -> Result<Option<UnverifiedToken<'a>>> {
        let Some((signed, signature)) = token.rsplit_once('.') else { return Ok(None) };
        let Some((header, claims)) = signed.split_once('.').filter(|(_, claims)| !claims.contains('.'))
        else {
            return Ok(None);
        };
        let wrong = |text: &str| Error::new(Code::Unauthenticated, text);
        let unreadable = || wrong("The access token cannot be read.");
        if token.len() > TOKEN_BYTES {
            return Err(unreadable());
        }
        let header = part(header).ok_or_else(unreadable)?;
        let algorithm = header.get("alg").and_then(Value::as_str).unwrap_or_default();
        if header.get("crit").is_some() || !ALGORITHMS.contains(&algorithm) {
            return Err(wrong("The access token is not signed in a way that is taken.")
                .hint(format!("Signatures are {}.", ALGORITHMS.join(", "))));
        }
        let claims = part(claims).ok_or_else(unreadable)?;
        if claims.get("iss").and_then(Value::as_str) != Some(&self.issuer) {
            return Err(wrong("The access token is of another issuer."));
        }
        let audience = self.audience(resource);
        let is_for_us = match claims.get("aud") {
            Some(Value::String(named)) => named == audience,
            Some(Value::Array(named)) => named.iter().any(|named| named.as_str() == Some(audience)),
            _ => false,
        };
        if !is_for_us {
            return Err(wrong("The access token is for another resource."));
        }
        let seconds = |claim: &Value| claim.as_f64().map(|claim| claim.clamp(0.0, 1e11) as i64);
        let ends_s = claims.get("exp").and_then(seconds).ok_or_else(unreadable)?;
        let now_s = now_us / SECOND_US;
        if ends_s + LEEWAY_S <= now_s {
            return Err(wrong("The access token has expired."));
        }
        if claims
            .get("nbf")
            .is_some_and(|begins| seconds(begins).is_none_or(|begins| begins - LEEWAY_S > now_s))
        {
            return Err(wrong("The access token is not valid yet."));
        }
        let subject = claims.get("sub").and_then(Value::as_str).unwrap_or_default();
        let fits = subject.chars().count() <= SUBJECT_CHARS;
        let scope = format!("owner:{subject}").parse::<Scope>().ok().filter(|_| fits);
        let scope = scope.ok_or_else(|| wrong("The access token does not say whose it is."))?;
        let via = Via::Token { expires_us: (ends_s + LEEWAY_S) * SECOND_US, life: None };
        let caller = Caller { scope, via };
        let key = header.get("kid").and_then(Value::as_str).map(str::to_owned);
        Ok(Some(UnverifiedToken { algorithm: algorithm.to_owned(), key, signed, signature, caller }))
    }
}

fn part(text: &str) -> Option<Value> {
    bobbin_definitions::json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok().filter(Value::is_object)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_S: i64 = 1_795_300_000;
    const RESOURCE: &str = "https://bobbin.example/mcp";

    fn oauth(vars: &[(&str, &str)], dev: bool) -> Result<Option<OAuth>> {
        let var =
            |name: &str| vars.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        OAuth::from_vars(var, dev)
    }

    fn issuer() -> OAuth {
        oauth(&[("BOBBIN_OAUTH_ISSUER", "https://id.example/tenant")], false).unwrap().unwrap()
    }

    fn token(header: &Value, claims: &Value) -> String {
        let coded = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        format!("{}.{}.c2ln", coded(header), coded(claims))
    }

    fn claims(field: &str, value: Value) -> Value {
        let mut claims = json!({
            "iss": "https://id.example/tenant", "aud": RESOURCE, "exp": NOW_S + 60, "sub": "alice",
        });
        claims[field] = value;
        claims
    }

    fn read(header: Value, claims: &Value) -> Result<Option<Caller>> {
        let token = token(&header, claims);
        Ok(issuer().read(&token, RESOURCE, NOW_S * SECOND_US)?.map(|claimed| claimed.caller))
    }

    #[test]
    fn a_token_is_its_subjects() {
        for (field, value) in [
            ("aud", json!(RESOURCE)),
            ("aud", json!(["https://other.example", RESOURCE])),
            ("nbf", json!(NOW_S)),
            ("nbf", json!(NOW_S + LEEWAY_S)),
            ("exp", json!(NOW_S - LEEWAY_S + 1)),
            ("exp", json!(NOW_S as f64 + 0.5)),
        ] {
            let caller =
                read(json!({ "alg": "ES256", "kid": "k" }), &claims(field, value.clone())).unwrap().unwrap();
            assert_eq!(caller.scope, Scope::Owner("alice".into()), "{field} {value}");
        }
        for text in ["", "key", "bbt_a.b", "a.b.c.d"] {
            assert_eq!(issuer().read(text, RESOURCE, 0), Ok(None), "{text:?} is no such token");
        }
    }

    #[test]
    fn what_a_token_must_not_say() {
        let alg = |alg: &str| json!({ "alg": alg });
        for (header, field, value) in [
            (alg("none"), "sub", json!("alice")),
            (alg("HS256"), "sub", json!("alice")),
            (alg("rs256"), "sub", json!("alice")),
            (json!({}), "sub", json!("alice")),
            (json!({ "alg": "RS256", "crit": ["b64"] }), "sub", json!("alice")),
            (alg("RS256"), "iss", json!("https://id.example/tenant/")),
            (alg("RS256"), "iss", json!(null)),
            (alg("RS256"), "aud", json!("https://bobbin.example")),
            (alg("RS256"), "aud", json!([])),
            (alg("RS256"), "aud", json!({ "a": RESOURCE })),
            (alg("RS256"), "exp", json!(NOW_S - LEEWAY_S)),
            (alg("RS256"), "exp", json!("never")),
            (alg("RS256"), "exp", json!(null)),
            (alg("RS256"), "nbf", json!(NOW_S + LEEWAY_S + 1)),
            (alg("RS256"), "sub", json!("")),
            (alg("RS256"), "sub", json!(" alice")),
            (alg("RS256"), "sub", json!("a\nb")),
            (alg("RS256"), "sub", json!(7)),
            (alg("RS256"), "sub", json!("a".repeat(201))),
        ] {
            let refused = read(header.clone(), &claims(field, value.clone()));
            assert_eq!(refused.unwrap_err().code, Code::Unauthenticated, "{header} {field} {value}");
        }
        assert!(issuer().read(&format!("{}.a.b", "a".repeat(9_000)), RESOURCE, 0).is_err());
        assert!(issuer().read("a.b.c", RESOURCE, 0).is_err());
    }

    #[test]
    fn an_issuer_is_an_address() {
        assert_eq!(oauth(&[("BOBBIN_OAUTH_ISSUER", " ")], false), Ok(None));
        for (issuer, dev, fine) in [
            ("https://id.example", false, true),
            ("http://id.example", true, false),
            ("http://127.0.0.1:7", true, true),
            ("http://127.0.0.1:7", false, false),
            ("http://localhost.example", true, false),
            ("https://", false, false),
            ("https://id.example?a", false, false),
            ("https://a@id.example", false, false),
            ("id.example", false, false),
        ] {
            assert_eq!(oauth(&[("BOBBIN_OAUTH_ISSUER", issuer)], dev).is_ok(), fine, "{issuer}");
        }
        for (audience, server) in
            [("https://a.example/mcp", "https://a.example"), ("mine", "http://b"), ("/mcp", "http://b")]
        {
            let named = [("BOBBIN_OAUTH_ISSUER", "https://id.example"), ("BOBBIN_OAUTH_AUDIENCE", audience)];
            assert_eq!(oauth(&named, false).unwrap().unwrap().server("http://b"), server);
        }
        let named = [("BOBBIN_OAUTH_ISSUER", "https://id.example"), ("BOBBIN_OAUTH_AUDIENCE", "mine")];
        let metadata = oauth(&named, false).unwrap().unwrap().metadata(RESOURCE);
        assert_eq!(
            (&metadata["resource"], &metadata["authorization_servers"]),
            (&json!("mine"), &json!(["https://id.example"]))
        );
    }
}
