//! An authorization server, for MCP servers that want to know who asks. It refuses what a strict one refuses: a token that renews
//! others is good for once, and who uses it twice has lost all of that sign-in.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bobbin::host::http::Request;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::answer::Answer;

/// Where it is.
pub const ISSUER_URL: &str = "https://auth.test";
/// Where the server `shop` says who gives tokens for it.
pub const RESOURCE_URL: &str = "https://mcp.test/.well-known/oauth-protected-resource/shop";

/// The server.
pub struct Issuer {
    /// Seconds that a token counts.
    pub lasts: Cell<i64>,
    /// Requests for tokens, in order.
    pub asked: RefCell<Vec<BTreeMap<String, String>>>,
    /// Tokens that count.
    live: RefCell<BTreeSet<String>>,
    /// Those that renew, and whether they were used.
    renewing: RefCell<BTreeMap<String, bool>>,
    /// How often one of them was used again.
    pub reused: Cell<usize>,
    given: Cell<usize>,
    /// Codes that browsers took away: what they are bound to, until they are used.
    codes: RefCell<BTreeMap<String, Option<BTreeMap<String, String>>>>,
}

impl Default for Issuer {
    fn default() -> Issuer {
        Issuer {
            lasts: Cell::new(3600),
            asked: RefCell::default(),
            live: RefCell::default(),
            renewing: RefCell::default(),
            reused: Cell::new(0),
            given: Cell::new(0),
            codes: RefCell::default(),
        }
    }
}

impl Issuer {
    /// Whether a request shows a token that counts.
    pub fn knows(&self, authorization: Option<&str>) -> bool {
        let token = authorization.and_then(|value| value.strip_prefix("Bearer "));
        token.is_some_and(|token| self.live.borrow().contains(token))
    }

    /// No token counts any more.
    pub fn revoke(&self) {
        self.live.borrow_mut().clear();
    }

    /// The same, and nothing renews them.
    pub fn forget(&self) {
        self.revoke();
        self.renewing.borrow_mut().clear();
    }

    /// Somebody follows a link and signs in; what their browser brings back. A link that is not as it should be breaks the test.
    pub fn sign_in(&self, link: &str) -> Value {
        let query = link
            .strip_prefix(&format!("{ISSUER_URL}/authorize?"))
            .expect("it leads to the page of the issuer");
        let asked = form(query);
        for (field, value) in [
            ("response_type", "code"),
            ("code_challenge_method", "S256"),
            ("resource", "https://mcp.test/shop"),
            ("redirect_uri", "https://bobbin.test/api/oauth/callback"),
            ("client_id", "https://bobbin.test/.well-known/bobbin-client.json"),
        ] {
            assert_eq!(asked.get(field).map(String::as_str), Some(value), "{field} of {link}");
        }
        assert_eq!(asked["code_challenge"].len(), 43, "{link}");
        let code = format!("code-{}-of-the-issuer", self.codes.borrow().len() + 1);
        let state = asked["state"].clone();
        self.codes.borrow_mut().insert(code.clone(), Some(asked));
        json!({ "state": state, "code": code, "iss": ISSUER_URL })
    }

    /// What was bound to a code that is shown with these fields, the first time.
    fn redeem(&self, fields: &BTreeMap<String, String>) -> bool {
        let text = |name: &str| fields.get(name).cloned().unwrap_or_default();
        let mut codes = self.codes.borrow_mut();
        let Some(bound) = codes.get_mut(&text("code")) else { return false };
        let Some(bound) = bound.take() else {
            // Whoever shows one again may have stolen it.
            self.reused.set(self.reused.get() + 1);
            return false;
        };
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(text("code_verifier")));
        bound["code_challenge"] == challenge
            && bound["redirect_uri"] == text("redirect_uri")
            && bound["client_id"] == text("client_id")
    }

    /// The answer to a request, and what is wrong with it.
    pub(super) fn receive(&self, request: &Request) -> Option<(Answer, Vec<String>)> {
        if request.url == RESOURCE_URL {
            let said = json!({ "resource": "https://mcp.test/shop", "authorization_servers": [ISSUER_URL] });
            return Some((Answer::json(&said), Vec::new()));
        }
        match request.url.strip_prefix(ISSUER_URL)? {
            "/.well-known/oauth-authorization-server" => {
                let said = json!({ "issuer": ISSUER_URL, "token_endpoint": format!("{ISSUER_URL}/token"),
                    "authorization_endpoint": format!("{ISSUER_URL}/authorize"), "code_challenge_methods_supported": ["S256"],
                    "client_id_metadata_document_supported": true, "authorization_response_iss_parameter_supported": true });
                Some((Answer::json(&said), Vec::new()))
            }
            "/token" => Some(self.token(request)),
            path => Some((Answer::status(404, ""), vec![format!("the issuer has no {path}")])),
        }
    }

    fn token(&self, request: &Request) -> (Answer, Vec<String>) {
        let mut fields = form(&String::from_utf8_lossy(request.body.as_deref().unwrap_or_default()));
        let header =
            |name: &str| request.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str());
        let mut wrong = Vec::new();
        if header("content-type") != Some("application/x-www-form-urlencoded")
            || fields.get("resource").map(String::as_str) != Some("https://mcp.test/shop")
        {
            wrong.push(format!("a token is not asked for so: {fields:?}"));
        }
        let refused = |error: &str| Answer::status(400, json!({ "error": error }).to_string());
        let basic = format!("Basic {}", STANDARD.encode("app:s3cret"));
        let kind = fields.get("grant_type").cloned().unwrap_or_default();
        let text = |name: &str| fields.get(name).cloned().unwrap_or_default();
        let fine = match kind.as_str() {
            "client_credentials" => header("authorization") == Some(basic.as_str()),
            "authorization_code" => self.redeem(&fields),
            "refresh_token" => match self.renewing.borrow_mut().get_mut(&text("refresh_token")) {
                Some(used) if !*used => {
                    *used = true;
                    true
                }
                Some(_) => {
                    self.reused.set(self.reused.get() + 1);
                    self.live.borrow_mut().clear();
                    false
                }
                None => false,
            },
            _ => false,
        };
        fields.insert("ok".into(), fine.to_string());
        self.asked.borrow_mut().push(fields);
        if !fine {
            return (refused("invalid_grant"), wrong);
        }
        self.given.set(self.given.get() + 1);
        let number = self.given.get();
        let access = format!("access-{number}-of-the-issuer");
        self.live.borrow_mut().insert(access.clone());
        let mut said =
            json!({ "access_token": access, "token_type": "Bearer", "expires_in": self.lasts.get() });
        if kind != "client_credentials" {
            let refresh = format!("refresh-{number}-of-the-issuer");
            self.renewing.borrow_mut().insert(refresh.clone(), false);
            said["refresh_token"] = Value::from(refresh);
        }
        (Answer::json(&said).after(1_000_000), wrong)
    }
}

fn form(text: &str) -> BTreeMap<String, String> {
    let decode = |text: &str| {
        let mut bytes = Vec::new();
        let mut rest = text.as_bytes();
        while let Some((byte, tail)) = rest.split_first() {
            rest = tail;
            match (byte, tail.get(..2)) {
                (b'%', Some(hex)) => {
                    bytes.push(u8::from_str_radix(std::str::from_utf8(hex).unwrap(), 16).unwrap());
                    rest = &tail[2..];
                }
                (byte, _) => bytes.push(*byte),
            }
        }
        String::from_utf8(bytes).unwrap()
    };
    text.split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (decode(name), decode(value)))
        .collect()
}
