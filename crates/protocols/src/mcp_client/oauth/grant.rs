//! Requests for tokens, and the tokens.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::mcp_client::oauth::discovery::Issuer;
use crate::mcp_client::oauth::{escape, form};
use bobbin_definitions::limits::SECOND_US;
use bobbin_definitions::text::first_bytes;

/// A token is renewed this long before its end, which leaves time for a call to arrive.
const MARGIN_US: i64 = 30 * SECOND_US;
/// Lifetime of a token without a stated one.
const UNSAID_US: i64 = 3_600 * SECOND_US;
/// Maximum bytes of a token.
const TOKEN_BYTES: usize = 16 << 10;

/// An OAuth client at an authorization server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    /// The issuer of the tokens.
    pub issuer: String,
    /// The token endpoint.
    pub endpoint: String,
    /// The client's id.
    pub id: String,
    /// The resource of the tokens.
    pub resource: String,
    /// Whether the secret is sent in the form instead of a header.
    #[serde(default)]
    pub in_form: bool,
    /// Its secret, if it registered and received one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Its registered redirect URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect: Option<String>,
}

/// A stored token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// The access token.
    pub access: String,
    /// The refresh token, if one was issued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh: Option<String>,
    /// Microseconds since 1970.
    pub ends_us: i64,
    /// Its scopes, as granted or else as requested.
    #[serde(default)]
    pub scope: String,
    /// The client that it was issued to.
    pub client: Client,
}

/// The current token and its version.
#[derive(Clone, Default)]
pub struct KnownToken {
    /// Increases with each token.
    pub version: i64,
    /// The token, if there is one.
    pub token: Option<Token>,
}

impl Token {
    /// Whether it will still be valid when a request with it arrives.
    pub fn counts(&self, now: i64) -> bool {
        now < self.ends_us.saturating_sub(MARGIN_US)
    }
}

/// The grant for a token.
pub enum Grant<'a> {
    /// A refresh token.
    Refresh {
        /// The token.
        token: &'a str,
    },
    /// The client's secret.
    Client,
    /// The code from a browser, and the proof that this client started the sign-in (RFC 7636).
    Code {
        /// The code.
        code: &'a str,
        /// The proof.
        verifier: &'a str,
        /// The redirect URL that the sign-in began with.
        redirect: &'a str,
    },
}

impl Grant<'_> {
    /// The confidential parts.
    fn told(&self) -> Vec<&str> {
        match self {
            Grant::Refresh { token } => vec![token],
            Grant::Client => Vec::new(),
            Grant::Code { code, verifier, .. } => vec![code, verifier],
        }
    }
}

/// A request for a token: headers and body.
pub struct TokenRequest {
    /// The headers; names in lower case.
    pub headers: Vec<(String, String)>,
    /// The form.
    pub body: String,
    /// Confidential parts, in each form in which they were sent.
    secrets: Vec<String>,
}

impl TokenRequest {
    /// Removes the confidential parts from a text of the server.
    pub fn unsaid(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "…"))
    }
}

impl Client {
    /// A client of an authorization server.
    pub fn of(issuer: &Issuer, id: String, resource: String) -> Client {
        // Without a list of methods only the header is allowed (RFC 8414, 2).
        let methods = issuer.token_endpoint_auth_methods_supported.as_deref();
        let in_form =
            methods.is_some_and(|methods| methods.iter().all(|method| method != "client_secret_basic"));
        Client {
            issuer: issuer.issuer.clone(),
            endpoint: issuer.token_endpoint.clone(),
            id,
            resource,
            in_form,
            secret: None,
            redirect: None,
        }
    }

    /// The request for a token.
    pub fn asks(&self, grant: &Grant<'_>, scope: &str, secret: Option<&str>) -> TokenRequest {
        let mut fields = match grant {
            Grant::Refresh { token } => vec![("grant_type", "refresh_token"), ("refresh_token", *token)],
            Grant::Client => vec![("grant_type", "client_credentials")],
            Grant::Code { code, verifier, redirect } => vec![
                ("grant_type", "authorization_code"),
                ("code", *code),
                ("redirect_uri", *redirect),
                ("code_verifier", *verifier),
            ],
        };
        fields.push(("resource", &self.resource));
        if matches!(grant, Grant::Client) && !scope.is_empty() {
            fields.push(("scope", scope));
        }
        let mut headers = vec![
            ("content-type".to_owned(), "application/x-www-form-urlencoded".to_owned()),
            ("accept".to_owned(), "application/json".to_owned()),
        ];
        let secret = secret.or(self.secret.as_deref());
        let mut secrets = Vec::new();
        for told in grant.told().into_iter().chain(secret).filter(|told| !told.is_empty()) {
            let mut sent = String::new();
            escape(told, &mut sent);
            secrets.extend([sent, told.to_owned()]);
        }
        match secret {
            Some(secret) if !self.in_form => {
                let mut both = String::new();
                escape(&self.id, &mut both);
                both.push(':');
                escape(secret, &mut both);
                let shown = STANDARD.encode(both);
                headers.push(("authorization".to_owned(), format!("Basic {shown}")));
                secrets.push(shown);
            }
            Some(secret) => fields.extend([("client_id", self.id.as_str()), ("client_secret", secret)]),
            None => fields.push(("client_id", &self.id)),
        }
        // Longest first, because one secret may contain another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        TokenRequest { headers, body: form(&fields), secrets }
    }
}

/// The reason why there is no token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoToken {
    /// The grant is no longer valid.
    Denied(String),
    /// A later attempt may succeed.
    Failed(String),
}

/// Parses the token in a response. `before` is the token that it replaces, whose refresh token may stay
/// valid. `unsaid` removes confidential parts from a text of the response.
pub fn token(
    client: Client,
    (status, body): (u16, &[u8]),
    unsaid: &dyn Fn(&str) -> String,
    now: i64,
    asked: &str,
    before: Option<&Token>,
) -> Result<Token, NoToken> {
    let said: Value = bobbin_definitions::json::from_slice(body).unwrap_or_default();
    let text = |field: &str| said.get(field).and_then(Value::as_str);
    if status != 200 {
        // The text is untrusted: only these fields, cut to a readable length.
        let word = |text: &str| {
            first_bytes(&unsaid(text), 200).chars().filter(|c| !c.is_control()).collect::<String>()
        };
        let code = text("error").map(word).unwrap_or_default();
        let told = match text("error_description").map(word) {
            Some(more) => format!("http {status} {code}: {more}"),
            None => format!("http {status} {code}").trim_end().to_owned(),
        };
        return Err(match code.as_str() {
            "invalid_grant"
            | "invalid_client"
            | "unauthorized_client"
            | "invalid_scope"
            | "invalid_target" => NoToken::Denied(told),
            _ => NoToken::Failed(told),
        });
    }
    let fits = |token: &&str| {
        !token.is_empty() && token.len() <= TOKEN_BYTES && token.bytes().all(|byte| byte.is_ascii_graphic())
    };
    let bearer = text("token_type").is_some_and(|kind| kind.eq_ignore_ascii_case("bearer"));
    let Some(access) = text("access_token").filter(fits).filter(|_| bearer) else {
        return Err(NoToken::Failed("the answer has no bearer token".to_owned()));
    };
    let seconds = said.get("expires_in").and_then(|value| {
        let number = value.as_i64();
        number.or_else(|| value.as_str()?.parse().ok())
    });
    let lasts = seconds.map_or(UNSAID_US, |seconds| seconds.clamp(0, 366 * 86_400) * SECOND_US);
    let refresh = text("refresh_token").filter(|token| token.len() <= TOKEN_BYTES).map(str::to_owned);
    Ok(Token {
        access: access.to_owned(),
        refresh: refresh.or_else(|| before?.refresh.clone()),
        ends_us: now.saturating_add(lasts),
        scope: text("scope").unwrap_or(asked).to_owned(),
        client,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bobbin_definitions::json;

    fn client(methods: Value) -> Client {
        let issuer = json!({ "issuer": "https://auth.example", "token_endpoint": "https://auth.example/token",
            "token_endpoint_auth_methods_supported": methods });
        Client::of(
            &bobbin_definitions::json::from_value(issuer).unwrap(),
            "a b".into(),
            "https://a.example/mcp".into(),
        )
    }

    #[test]
    fn a_client_says_who_it_is_as_the_authorization_server_wants() {
        let basic = client(json!(["client_secret_post", "client_secret_basic"])).asks(
            &Grant::Client,
            "x y",
            Some("s:1"),
        );
        assert_eq!(
            basic.body,
            "grant_type=client_credentials&resource=https%3A%2F%2Fa.example%2Fmcp&scope=x%20y"
        );
        assert_eq!(basic.headers[2].1, format!("Basic {}", STANDARD.encode("a%20b:s%3A1")));
        let said = basic.unsaid(&format!("{:?} was shown, s:1 or s%3A1", basic.headers));
        assert!(!said.contains("s:1") && !said.contains("s%3A1"), "{said}");
        assert!(!said.contains(&STANDARD.encode("a%20b:s%3A1")) && said.contains("was shown"), "{said}");
        let refresh = Grant::Refresh { token: "r" };
        let in_form = client(json!(["client_secret_post"])).asks(&refresh, "", Some("s"));
        assert!(in_form.body.ends_with("&client_id=a%20b&client_secret=s") && in_form.headers.len() == 2);
        let public = client(Value::Null).asks(&refresh, "x", None);
        assert_eq!(
            public.body,
            "grant_type=refresh_token&refresh_token=r&resource=https%3A%2F%2Fa.example%2Fmcp&client_id=a%20b"
        );
    }

    #[test]
    fn an_answer_is_a_token_or_says_why_not() {
        let read = |status: u16, body: Value, before: Option<&Token>| {
            let answer = (status, body.to_string());
            let answer = (answer.0, answer.1.as_bytes());
            token(client(Value::Null), answer, &str::to_owned, 1_000_000, "asked", before)
        };
        let first = read(
            200,
            json!({ "access_token": "a", "token_type": "bearer", "expires_in": 60, "refresh_token": "r" }),
            None,
        )
        .ok()
        .unwrap();
        assert_eq!(
            (first.ends_us, first.scope.as_str(), first.refresh.as_deref()),
            (61_000_000, "asked", Some("r"))
        );
        assert!(first.counts(30_999_999) && !first.counts(31_000_000));
        let second =
            read(200, json!({ "access_token": "b", "token_type": "Bearer", "scope": "less" }), Some(&first))
                .ok()
                .unwrap();
        assert_eq!((second.refresh.as_deref(), second.scope.as_str()), (Some("r"), "less"));
        let denied =
            read(400, json!({ "error": "invalid_grant", "error_description": "used\u{7}" }), None).err();
        assert_eq!(denied, Some(NoToken::Denied("http 400 invalid_grant: used".into())));
        for (status, body) in [
            (503, json!({})),
            (400, json!({ "error": "temporarily_unavailable" })),
            (200, json!({ "access_token": "a", "token_type": "dpop" })),
            (200, json!({ "access_token": "a\nb", "token_type": "bearer" })),
            (200, json!({ "token_type": "bearer" })),
        ] {
            assert!(matches!(read(status, body.clone(), None), Err(NoToken::Failed(_))), "{body}");
        }
    }
}
