//! The deployment's credentials, and authentication of requests.

use crate::access::keys::Keys;
use crate::access::links::{FileLink, Links};
use crate::access::token::{NewToken, PREFIX, TokenClaims};
use crate::access::{Action, Caller, Scope, ThreadRef, Via, links, token};
use bobbin_definitions::error::{Code, Error, Result};
use bobbin_definitions::limits::{SECOND_US, TOKEN_TTL_S, WAIT_TOKEN_S};

/// A `BOBBIN_TOKEN_SECRET` shorter than this can be guessed.
pub const MINIMUM_SECRET_BYTES: usize = 16;

/// The credentials that this deployment accepts.
#[derive(Clone, Debug)]
pub struct Access {
    keys: Keys,
    token_secret: Option<Vec<u8>>,
    open: bool,
}

/// The credentials of a request. A router passes the query's token only on `/stream` and `/events`, where a
/// browser cannot set a header. An API key is not accepted in the query, because addresses end up in logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credential<'a> {
    /// Nothing.
    None,
    /// The `authorization` header.
    Header(&'a str),
    /// The `token` of the query.
    Query(&'a str),
}

impl Access {
    /// Reads `BOBBIN_API_KEYS`, `BOBBIN_TOKEN_SECRET` and `BOBBIN_DEV`. With `BOBBIN_DEV=1` and no keys,
    /// every request is an admin's (behind [`dev_guard`](crate::access::dev_guard)). With keys, a development
    /// server requires them too.
    ///
    /// # Errors
    /// `internal` for an invalid variable; nothing is served then. The message names the entry, but not the
    /// key.
    pub fn from_vars(var: impl Fn(&str) -> Option<String>) -> Result<Access> {
        let keys = Keys::parse(&var("BOBBIN_API_KEYS").unwrap_or_default())
            .map_err(|error| Error::internal(format!("BOBBIN_API_KEYS: {error}.")))?;
        let token_secret =
            var("BOBBIN_TOKEN_SECRET").filter(|secret| !secret.is_empty()).map(String::into_bytes);
        if token_secret.as_ref().is_some_and(|secret| secret.len() < MINIMUM_SECRET_BYTES) {
            return Err(Error::internal(format!(
                "BOBBIN_TOKEN_SECRET: it must have at least {MINIMUM_SECRET_BYTES} characters."
            )));
        }
        let open = keys.is_empty() && var("BOBBIN_DEV").as_deref() == Some("1");
        Ok(Access { keys, token_secret, open })
    }

    /// Authenticates a link to a file ([`links::bearer`]) at `now_us`. `path` is decoded.
    ///
    /// # Errors
    /// `unauthenticated`.
    pub fn of_file_link(&self, thread: &str, path: &str, query: FileLink<'_>, now_us: i64) -> Result<Caller> {
        let secret = self.token_secret.as_deref().ok_or_else(|| unauthenticated("The link is not valid."))?;
        links::bearer(secret, thread, path, query, now_us)
    }

    /// The maker of links to files. Without a secret there is none, except on an open development server.
    pub fn links(&self, origin: &str, now_us: i64) -> Option<Links> {
        match &self.token_secret {
            Some(secret) => Some(Links::new(origin, secret, now_us)),
            None => self.open.then(|| Links::unsigned(origin)),
        }
    }

    /// The secret for signing data that clients return. An open development server uses a constant, as it has
    /// no secrets.
    pub fn secret(&self) -> Option<Vec<u8>> {
        self.token_secret.clone().or_else(|| self.open.then(|| b"development".to_vec()))
    }

    /// Whether no credentials are required: a development server without keys.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Authenticates a request at `now_us` (microseconds since 1970).
    ///
    /// # Errors
    /// `unauthenticated`; the message never contains the credentials.
    pub fn authenticate(&self, credential: Credential<'_>, now_us: i64) -> Result<Caller> {
        let development = || Caller { scope: Scope::Admin, via: Via::Development };
        match credential {
            Credential::None if self.open => Ok(development()),
            Credential::None if self.keys.is_empty() => {
                Err(unauthenticated("This deployment has no API keys.")
                    .hint("Set the secret BOBBIN_API_KEYS, such as `<a long random key>=admin`."))
            }
            Credential::None => {
                Err(unauthenticated("No credentials.").hint("Send `authorization: Bearer <key>`."))
            }
            Credential::Query(token) => self.token(token, now_us),
            Credential::Header(header) => {
                let given =
                    header.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
                let known = given.and_then(|(_, key)| self.keys.scope(key));
                match (given, known) {
                    (_, Some(scope)) => Ok(Caller { scope: scope.clone(), via: Via::Key }),
                    (Some((_, token)), None) if token.starts_with(PREFIX) => self.token(token, now_us),
                    // Some clients always send a key.
                    _ if self.open => Ok(development()),
                    (Some(_), None) => Err(unauthenticated("The API key is not known.")),
                    (None, None) => Err(unauthenticated("The authorization header is not `Bearer <key>`.")),
                }
            }
        }
    }

    /// Authenticates a link: the bearer of a token for one wait.
    ///
    /// # Errors
    /// `invalid_token` for a token that is forged, expired or has another scope.
    pub fn of_link(&self, token: &str, now_us: i64) -> Result<Caller> {
        match self.token(token, now_us) {
            Ok(caller) if matches!(caller.scope, Scope::Wait(..)) => Ok(caller),
            _ => Err(Error::new(Code::InvalidToken, "This link is not valid, or has ended.")
                .at("token")
                .hint("Ask for a new one: POST /api/tokens with the scope `wait:<thread>/<wait>`.")),
        }
    }

    fn token(&self, token: &str, now_us: i64) -> Result<Caller> {
        let secret =
            self.token_secret.as_deref().ok_or_else(|| unauthenticated("The token is not valid."))?;
        let TokenClaims { scope, expires_us, life } =
            token::verify(secret, token, now_us).map_err(|error| unauthenticated(&error.to_string()))?;
        Ok(Caller { scope, via: Via::Token { expires_us, life } })
    }

    /// Mints a token with a scope inside the caller's: for an admin any scope, for an owner its own and its
    /// threads. For the scope of a thread, `thread_owner` is that thread's owner, which the calling code has
    /// looked up (not needed for an admin), and `life` its generation, if there may be several
    /// ([`Via::Token`]). `ttl_s` is the token's lifetime in seconds, at most [`TOKEN_TTL_S`], or
    /// [`WAIT_TOKEN_S`] for a wait; `now_us` the time in microseconds since 1970.
    ///
    /// # Errors
    /// `forbidden` for a token's bearer and for a scope outside the caller's, `thread_not_found` for a thread
    /// of someone else, `invalid_field` for an invalid lifetime.
    pub fn mint(
        &self,
        caller: &Caller,
        scope: &Scope,
        thread_owner: Option<&str>,
        life: Option<i64>,
        ttl_s: u64,
        now_us: i64,
    ) -> Result<NewToken> {
        caller.may(&Action::MintToken, None)?;
        match (&caller.scope, scope) {
            (Scope::Admin, _) => {}
            (Scope::Owner(_), Scope::Thread(id) | Scope::Wait(id, _)) => {
                caller.may(&Action::ReadThread, Some(ThreadRef { id, owner: thread_owner, life: 1 }))?;
            }
            (own, asked) if own == asked => {}
            (own, _) => {
                return Err(Error::new(Code::Forbidden, "A token's scope lies inside its minter's.")
                    .hint(format!("The key's scope is `{own}`.")));
            }
        }
        // A link in a mail may be read days later.
        let most = if matches!(scope, Scope::Wait(..)) { WAIT_TOKEN_S } else { TOKEN_TTL_S };
        let ttl_s =
            i64::try_from(ttl_s).ok().filter(|ttl| *ttl > 0 && ttl.unsigned_abs() <= most).ok_or_else(
                || Error::field("ttl", format!("`ttl` is a whole number of seconds from 1 to {most}.")),
            )?;
        let secret = self.token_secret.as_deref().ok_or_else(|| {
            Error::new(Code::Forbidden, "This deployment mints no tokens.")
                .hint("Set the secret BOBBIN_TOKEN_SECRET to a long random text.")
        })?;
        Ok(token::mint_for(secret, scope, life, now_us.div_euclid(SECOND_US) + ttl_s))
    }
}

fn unauthenticated(message: &str) -> Error {
    Error::new(Code::Unauthenticated, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_US: i64 = 1_795_300_000_500_000;
    const SECRET: &str = "a secret of the tests";

    fn access(vars: &[(&str, &str)]) -> Result<Access> {
        Access::from_vars(|name| vars.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned()))
    }

    fn served() -> Access {
        access(&[
            ("BOBBIN_API_KEYS", "root-key=admin,alices-key=owner:alice,threads-key=thread:t1"),
            ("BOBBIN_TOKEN_SECRET", SECRET),
        ])
        .unwrap()
    }

    fn by(access: &Access, key: &str) -> Caller {
        access.authenticate(Credential::Header(&format!("Bearer {key}")), NOW_US).unwrap()
    }

    #[test]
    fn a_key_is_who_it_says() {
        let access = served();
        for (header, scope) in [
            ("Bearer root-key", "admin"),
            ("bearer alices-key", "owner:alice"),
            ("BEARER threads-key", "thread:t1"),
        ] {
            let caller = access.authenticate(Credential::Header(header), NOW_US).unwrap();
            assert_eq!(
                (caller.scope.to_string().as_str(), caller.via, caller.expires_us()),
                (scope, Via::Key, None)
            );
        }
        for header in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer  root-key",
            "Bearer root-key ",
            "root-key",
            "Basic root-key",
            "Bearer root-ke",
            "Bearer wrong",
        ] {
            let error = access.authenticate(Credential::Header(header), NOW_US).unwrap_err();
            assert_eq!(error.code, Code::Unauthenticated, "{header:?}");
            assert!(!format!("{error:?}").contains("root-ke"), "{error:?}");
        }
        assert_eq!(access.authenticate(Credential::None, NOW_US).unwrap_err().message, "No credentials.");
        assert!(access.authenticate(Credential::Query("root-key"), NOW_US).is_err(), "no key in an address");
    }

    #[test]
    fn without_keys_nothing_is_served_but_in_development() {
        for vars in
            [&[][..], &[("BOBBIN_API_KEYS", " , ")], &[("BOBBIN_DEV", "0")], &[("BOBBIN_DEV", "true")]]
        {
            let access = access(vars).unwrap();
            for credential in [Credential::None, Credential::Header("Bearer x"), Credential::Query("x")] {
                let error = access.authenticate(credential, NOW_US).unwrap_err();
                assert_eq!(error.code, Code::Unauthenticated, "{vars:?} {credential:?}");
            }
        }
        let open = access(&[("BOBBIN_DEV", "1")]).unwrap();
        for credential in [Credential::None, Credential::Header("Bearer x"), Credential::Header("x")] {
            let caller = open.authenticate(credential, NOW_US).unwrap();
            assert_eq!((caller.scope, caller.via), (Scope::Admin, Via::Development));
        }
        assert!(
            open.authenticate(Credential::Query("x"), NOW_US).is_err(),
            "a wrong token is wrong everywhere"
        );
        assert!(open.authenticate(Credential::Header("Bearer bbt_x.y"), NOW_US).is_err());
        let closed = access(&[("BOBBIN_DEV", "1"), ("BOBBIN_API_KEYS", "k=admin")]).unwrap();
        assert!(closed.authenticate(Credential::None, NOW_US).is_err(), "keys that are set are asked for");
    }

    #[test]
    fn variables_that_make_no_sense_serve_nothing() {
        for (vars, message) in [
            (
                ("BOBBIN_API_KEYS", "k1=admin,hush"),
                "BOBBIN_API_KEYS: entry 2 has no scope: write `key=scope`.",
            ),
            (("BOBBIN_TOKEN_SECRET", "hush"), "BOBBIN_TOKEN_SECRET: it must have at least 16 characters."),
        ] {
            let error = access(&[vars, ("BOBBIN_DEV", "1")]).unwrap_err();
            assert_eq!((error.code, error.message.as_str()), (Code::Internal, message));
        }
    }

    #[test]
    fn a_token_is_good_for_its_scope_and_its_time() {
        let access = served();
        let scope = Scope::Thread("t1".into());
        let minted =
            access.mint(&by(&access, "alices-key"), &scope, Some("alice"), None, 60, NOW_US).unwrap();
        assert_eq!(minted.expires_at, 1_795_300_060);
        let end_us = 1_795_300_060_000_000;
        let bearer = format!("Bearer {}", minted.token);
        for credential in [Credential::Header(&bearer), Credential::Query(&minted.token)] {
            let caller = access.authenticate(credential, NOW_US).unwrap();
            assert_eq!(
                caller,
                Caller { scope: scope.clone(), via: Via::Token { expires_us: end_us, life: None } }
            );
            assert_eq!(caller.expires_us(), Some(end_us));
            let error = access.authenticate(credential, end_us).unwrap_err();
            assert_eq!(
                (error.code, error.message.as_str()),
                (Code::Unauthenticated, "The token has expired.")
            );
        }
        let other = self::access(&[("BOBBIN_TOKEN_SECRET", "another secret of the tests")]).unwrap();
        assert_eq!(
            other.authenticate(Credential::Query(&minted.token), NOW_US).unwrap_err().message,
            "The token is not valid."
        );
        let json = serde_json::to_value(&minted).unwrap();
        assert_eq!((&json["scope"], &json["expires_at"]), (&"thread:t1".into(), &1_795_300_060_i64.into()));
    }

    #[test]
    fn a_tokens_scope_lies_inside_its_minters() {
        let access = served();
        let ok = None;
        let (forbidden, hidden) = (Some(Code::Forbidden), Some(Code::ThreadNotFound));
        for (key, scope, owner, expected) in [
            ("root-key", "admin", None, ok),
            ("root-key", "owner:bob", None, ok),
            ("root-key", "thread:t9", None, ok),
            ("alices-key", "owner:alice", None, ok),
            ("alices-key", "thread:t1", Some("alice"), ok),
            ("alices-key", "thread:t1", Some("bob"), hidden),
            ("alices-key", "thread:t1", None, hidden),
            ("alices-key", "owner:bob", None, forbidden),
            ("alices-key", "admin", None, forbidden),
            ("threads-key", "thread:t1", Some("alice"), forbidden),
        ] {
            let minted = access.mint(&by(&access, key), &scope.parse().unwrap(), owner, None, 60, NOW_US);
            assert_eq!(minted.err().map(|error| error.code), expected, "{key} {scope} {owner:?}");
        }
    }

    #[test]
    fn no_token_without_a_secret_beyond_an_hour_or_from_a_token() {
        let access = served();
        let admin = by(&access, "root-key");
        for ttl_s in [0, 3_601, u64::MAX] {
            let error = access.mint(&admin, &Scope::Admin, None, None, ttl_s, NOW_US).unwrap_err();
            assert_eq!((error.code, error.field.as_deref()), (Code::InvalidField, Some("ttl")), "{ttl_s}");
        }
        let minted = access.mint(&admin, &Scope::Admin, None, None, 3_600, NOW_US).unwrap();
        let bearer = by(&access, &minted.token);
        let error = access.mint(&bearer, &Scope::Admin, None, None, 60, NOW_US).unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (Code::Forbidden, "A token mints no token."));
        let without = self::access(&[("BOBBIN_API_KEYS", "root-key=admin")]).unwrap();
        assert_eq!(
            without.mint(&admin, &Scope::Admin, None, None, 60, NOW_US).unwrap_err().code,
            Code::Forbidden
        );
    }

    #[test]
    fn a_link_is_good_for_one_wait_for_a_week() {
        const DAY_US: i64 = 86_400_000_000;
        let access = served();
        let scope = Scope::Wait("t1".into(), "w_t1_1".into());
        let owner = by(&access, "alices-key");
        let minted = access.mint(&owner, &scope, Some("alice"), None, 604_800, NOW_US).unwrap();
        for days in [0, 2, 6] {
            let caller = access.of_link(&minted.token, NOW_US + days * DAY_US).unwrap();
            assert_eq!(caller.scope, scope, "{days} days later");
            let wait = |id| Action::Wait { id };
            let of = |id| Some(ThreadRef { id, owner: Some("alice"), life: 1 });
            assert!(caller.may(&wait("w_t1_1"), of("t1")).is_ok());
            for (action, thread) in [
                (wait("w_t1_2"), of("t1")),
                (wait("w_t1_1"), of("t2")),
                (Action::ReadThread, of("t1")),
                (Action::Send, of("t1")),
                (Action::StopContinue, of("t1")),
                (Action::Stream, of("t1")),
                (Action::Manage, of("t1")),
            ] {
                let error = caller.may(&action, thread).unwrap_err();
                assert_eq!(error.code, Code::ThreadNotFound, "{action:?}");
            }
            assert!(
                caller.may(&Action::MintToken, None).is_err() && caller.may(&Action::Catalog, None).is_err()
            );
        }
        let of_thread =
            access.mint(&owner, &Scope::Thread("t1".into()), Some("alice"), None, 60, NOW_US).unwrap();
        let changed = minted.token.replace("bbt_", "bbt_x");
        for (token, at_us) in [
            (minted.token.as_str(), NOW_US + 7 * DAY_US),
            (changed.as_str(), NOW_US),
            (of_thread.token.as_str(), NOW_US),
            ("root-key", NOW_US),
            ("", NOW_US),
        ] {
            let error = access.of_link(token, at_us).unwrap_err();
            assert_eq!((error.code, error.field.as_deref()), (Code::InvalidToken, Some("token")), "{token}");
        }
        for ttl_s in [0, 604_801] {
            let error = access.mint(&owner, &scope, Some("alice"), None, ttl_s, NOW_US).unwrap_err();
            assert_eq!(error.field.as_deref(), Some("ttl"), "{ttl_s}");
        }
        let error = access.mint(&owner, &scope, Some("bob"), None, 60, NOW_US).unwrap_err();
        assert_eq!(error.code, Code::ThreadNotFound, "somebody else's");
    }
}
