//! The sign-in in a browser: the authorization URL, and valid callbacks (RFC 9207; PKCE, RFC 7636).

use std::collections::HashSet;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::mcp_client::oauth::discovery::{Issuer, Resource};
use crate::mcp_client::oauth::form;
use crate::mcp_client::oauth::grant::Client;
use bobbin_definitions::signing::same;

/// The data of a sign-in, needed for its callback. Stored encrypted until it is complete.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Login {
    /// The `state` that the callback must contain.
    pub state: String,
    /// The proof that this client started the sign-in (RFC 7636).
    pub verifier: String,
    /// The callback URL.
    pub redirect: String,
    /// The requested scopes.
    pub scope: String,
    /// The client that the user signs in to.
    pub client: Client,
    /// Whether the callback must name its issuer.
    pub names_issuer: bool,
}

/// The parameters of a callback.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Callback {
    /// The `state` of the sign-in.
    pub state: String,
    code: Option<String>,
    iss: Option<String>,
    error: Option<String>,
}

/// The reason why a sign-in failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignInError {
    /// The callback does not belong to this sign-in; ignore it.
    Foreign,
    /// The authorization server or the user refused.
    Denied,
}

/// Maximum bytes of a code.
const CODE_BYTES: usize = 8 << 10;

/// The scopes to request: those of the definition; else those of the challenge together with those of the
/// insufficient token; else all that the server lists.
pub fn scope(
    defined: &[String],
    challenged: Option<&str>,
    allowed: &str,
    resource: &Resource,
    issuer: &Issuer,
) -> String {
    const OFFLINE: &str = "offline_access";
    let mut scopes: Vec<&str> = Vec::new();
    match challenged {
        _ if !defined.is_empty() => scopes.extend(defined.iter().map(String::as_str)),
        Some(challenged) => scopes.extend(allowed.split(' ').chain(challenged.split(' '))),
        None => scopes.extend(resource.scopes.iter().map(String::as_str)),
    }
    // Some servers send a refresh token only with this scope.
    if defined.is_empty() && issuer.scopes_supported.iter().any(|scope| scope == OFFLINE) {
        scopes.push(OFFLINE);
    }
    let mut known = HashSet::new();
    scopes.retain(|scope| !scope.is_empty() && known.insert(*scope));
    scopes.join(" ")
}

/// Whether users can sign in at an authorization server.
///
/// # Errors
/// The reason, without a full stop.
pub fn can_be_signed_in_at(issuer: &Issuer) -> Result<(), String> {
    if !issuer.code_challenge_methods_supported.iter().any(|method| method == "S256") {
        return Err(format!("{} does not say that it knows PKCE with S256", issuer.issuer));
    }
    let endpoint = &issuer.authorization_endpoint;
    // A browser would follow other schemes, wherever they lead.
    let is_page = endpoint.starts_with("https://") || endpoint.starts_with("http://");
    let clean = endpoint.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'#' | b'\\'));
    if !is_page || !clean {
        return Err(format!("{} has no page where people sign in", issuer.issuer));
    }
    Ok(())
}

impl Login {
    /// The authorization URL.
    pub fn address(&self, issuer: &Issuer) -> String {
        let endpoint = &issuer.authorization_endpoint;
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier.as_bytes()));
        let mut fields = vec![
            ("response_type", "code"),
            ("client_id", &self.client.id),
            ("redirect_uri", &self.redirect),
            ("state", &self.state),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", &self.client.resource),
        ];
        if !self.scope.is_empty() {
            fields.push(("scope", &self.scope));
        }
        let join = if endpoint.contains('?') { '&' } else { '?' };
        format!("{endpoint}{join}{}", form(&fields))
    }

    /// The code of a callback, after all checks.
    pub fn code<'c>(&self, callback: &'c Callback) -> Result<&'c str, SignInError> {
        let named = match &callback.iss {
            Some(iss) => *iss == self.client.issuer,
            None => !self.names_issuer,
        };
        if !self.is_of(&callback.state) || !named {
            return Err(SignInError::Foreign);
        }
        if callback.error.is_some() {
            return Err(SignInError::Denied);
        }
        let fits = |code: &&str| (1..=CODE_BYTES).contains(&code.len());
        callback.code.as_deref().filter(fits).ok_or(SignInError::Foreign)
    }

    /// Whether this is the sign-in's state, compared in constant time.
    pub fn is_of(&self, state: &str) -> bool {
        let hash = |text: &str| -> [u8; 32] { Sha256::digest(text.as_bytes()).into() };
        same(&hash(state), &hash(&self.state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bobbin_definitions::json;
    use serde_json::Value;

    fn issuer(more: &Value) -> Issuer {
        let mut said = json!({ "issuer": "https://auth.example", "token_endpoint": "https://auth.example/t",
            "authorization_endpoint": "https://auth.example/a?x=1", "code_challenge_methods_supported": ["S256"] });
        for (field, value) in more.as_object().unwrap() {
            said[field] = value.clone();
        }
        bobbin_definitions::json::from_value(said).unwrap()
    }

    fn login(names_issuer: bool) -> Login {
        let client = Client::of(
            &issuer(&json!({})),
            "https://b.example/c.json".into(),
            "https://a.example/mcp".into(),
        );
        // The verifier of RFC 7636, appendix B.
        Login {
            state: "s".into(),
            verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".into(),
            redirect: "https://b.example/cb".into(),
            scope: "read".into(),
            client,
            names_issuer,
        }
    }

    #[test]
    fn somebody_is_sent_with_all_that_binds_the_answer() {
        assert_eq!(
            login(false).address(&issuer(&json!({}))),
            "https://auth.example/a?x=1&response_type=code&client_id=https%3A%2F%2Fb.example%2Fc.json&redirect_uri=https%3A%2F%2Fb.example%2Fcb\
             &state=s&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&resource=https%3A%2F%2Fa.example%2Fmcp&scope=read"
        );
    }

    #[test]
    fn nobody_is_sent_where_the_answer_could_be_stolen() {
        assert!(can_be_signed_in_at(&issuer(&json!({}))).is_ok());
        for lacks in [
            json!({ "code_challenge_methods_supported": ["plain"] }),
            json!({ "code_challenge_methods_supported": [] }),
            json!({ "authorization_endpoint": "" }),
            json!({ "authorization_endpoint": "javascript://localhost/%0aalert(1)" }),
            json!({ "authorization_endpoint": "https://auth.example/a#x" }),
            json!({ "authorization_endpoint": "https://auth.example/a\nb" }),
        ] {
            assert!(can_be_signed_in_at(&issuer(&lacks)).is_err(), "{lacks}");
        }
    }

    #[test]
    fn an_answer_counts_only_if_it_is_to_this_question() {
        let came = |state: &str, iss: Option<&str>| Callback {
            state: state.into(),
            code: Some("c".into()),
            iss: iss.map(str::to_owned),
            error: None,
        };
        assert_eq!(login(false).code(&came("s", None)), Ok("c"));
        assert_eq!(login(true).code(&came("s", Some("https://auth.example"))), Ok("c"));
        for (names, callback) in [
            (false, came("other", None)),
            (false, came("", None)),
            (false, came("s", Some("https://evil.example"))),
            (false, came("s", Some("https://auth.example/"))),
            (true, came("s", None)),
            (false, Callback { code: None, ..came("s", None) }),
            (false, Callback { code: Some("c".repeat(CODE_BYTES + 1)), ..came("s", None) }),
            // An error from another server is ignored, too.
            (false, Callback { error: Some("x".into()), ..came("s", Some("https://evil.example")) }),
        ] {
            assert_eq!(
                login(names).code(&callback),
                Err(SignInError::Foreign),
                "{} {:?}",
                callback.state,
                callback.iss
            );
        }
        let denied = Callback { error: Some("access_denied".into()), code: None, ..came("s", None) };
        assert_eq!(login(false).code(&denied), Err(SignInError::Denied));
    }

    #[test]
    fn as_little_as_possible_is_asked_for() {
        let offline = issuer(&json!({ "scopes_supported": ["offline_access"] }));
        let plain = issuer(&json!({}));
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let of =
            |scopes: &[&str]| Resource { resource: String::new(), issuers: Vec::new(), scopes: list(scopes) };
        let all = of(&["a", "b"]);
        assert_eq!(scope(&list(&["x"]), Some("y"), "z", &all, &offline), "x");
        assert_eq!(scope(&[], Some("y"), "", &all, &plain), "y");
        // Scopes that were granted before are requested again.
        assert_eq!(scope(&[], Some("y z"), "x y", &all, &plain), "x y z");
        assert_eq!(scope(&[], None, "x", &all, &offline), "a b offline_access");
        assert_eq!(scope(&[], None, "", &of(&[]), &plain), "");
    }
}
