//! Tokens for servers whose definition has `auth` (docs/mcp.md). A token belongs to the owner, for all of the
//! owner's threads; to the thread if it has no owner; or to the application if that signs in itself. A
//! directory stores it encrypted and decides which thread renews it. Threads cache it in memory.

use std::cell::RefCell;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::definitions::retry::RetryOn;
use crate::definitions::{McpAuth, McpServer, template};
use crate::engine::features::McpClient;
use crate::engine::mcp::sealed_text::SealedText;
use crate::env::level;
use crate::error::{Error, Result};
use crate::host::Sibling;
use crate::limits::SECOND_US;
use crate::mcp_client::oauth::Challenge;
use crate::mcp_client::oauth::grant::{Client, Grant, KnownToken, NoToken, Token};
use crate::request::directory_call as call;
use crate::request::directory_call::{DirectoryCall, ROOT, TokenAsk};
use crate::signing::digest;
use crate::work::WorkContext;
use crate::work::mcp::auth::{discover, token};
use crate::work::mcp::{Address, RequestError, TransportError, UNAUTHORIZED, UNREACHABLE};

/// The time for which a thread may renew a token exclusively. Longer than a renewal can take.
const HOLD_US: i64 = 90 * SECOND_US;
/// The number of polls for a renewal by another thread, and the pauses between them.
const LOOKS: usize = 30;
const PAUSE_US: i64 = SECOND_US;

/// The token of a request, if there is one, and its version.
pub(super) struct Bearer {
    version: i64,
    access: Option<String>,
}

/// A token's renewal by this thread. Other calls of the thread wait, like other threads.
pub(super) struct RenewalGuard<'a> {
    names: &'a RefCell<Vec<String>>,
    name: &'a str,
}

impl<'a> RenewalGuard<'a> {
    /// Begins a renewal, unless one is in progress.
    pub(super) fn begin(names: &'a RefCell<Vec<String>>, name: &'a str) -> Option<RenewalGuard<'a>> {
        let mut all = names.borrow_mut();
        if all.iter().any(|other| other == name) {
            return None;
        }
        all.push(name.to_owned());
        Some(RenewalGuard { names, name })
    }
}

impl Drop for RenewalGuard<'_> {
    fn drop(&mut self) {
        self.names.borrow_mut().retain(|name| name != self.name);
    }
}

/// The location of a token.
pub(super) struct TokenRef {
    pub(super) directory: String,
    pub(super) name: String,
}

/// A directory's response.
#[derive(Deserialize)]
struct TokenResponse {
    version: i64,
    token: Option<String>,
    taken: bool,
}

/// The connection to a server, for signing in.
#[derive(Clone, Copy)]
pub(super) struct ServerConnection<'a> {
    pub(super) context: &'a dyn WorkContext,
    pub(super) server: &'a McpServer,
    pub(super) address: &'a Address,
    /// Values of variables.
    pub(super) env: &'a dyn Fn(&str) -> Option<String>,
}

/// A request for a token.
pub(super) struct TokenNeed<'a> {
    pub(super) signed: ServerConnection<'a>,
    /// The server's challenge, if it refused a request.
    pub(super) challenge: Option<&'a Challenge>,
    /// The token that the server refused.
    pub(super) refused: Option<&'a Bearer>,
}

impl TokenNeed<'_> {
    /// A request without challenge.
    pub(super) fn of(signed: ServerConnection<'_>) -> TokenNeed<'_> {
        TokenNeed { signed, challenge: None, refused: None }
    }

    pub(super) fn filled(&self, text: &str) -> Result<String, TransportError> {
        template::render(text, self.signed.env).map_err(|error| {
            let text = format!("The MCP server \"{}\" is not set up: {error}.", self.signed.server.name);
            TransportError::new(UNAUTHORIZED, text)
        })
    }

    /// The client's secret, if it has one.
    pub(super) fn secret(&self) -> Result<Option<String>, TransportError> {
        match &self.signed.server.auth {
            Some(McpAuth::ClientCredentials { client_secret, .. }) => self.filled(client_secret).map(Some),
            Some(McpAuth::Oauth { client_secret: Some(secret), .. }) => self.filled(secret).map(Some),
            _ => Ok(None),
        }
    }

    pub(super) fn trouble(&self, text: &str) -> TransportError {
        let text = format!("There is no token for the MCP server \"{}\": {text}.", self.signed.server.name);
        TransportError::new(UNAUTHORIZED, text)
    }
}

impl McpClient<'_> {
    /// Sends a request with a token if the server's definition has `auth`. A request that was refused for its
    /// token did not run. It is sent once more if there is another token.
    pub(super) async fn signed(
        &self,
        signed: &ServerConnection<'_>,
        send: impl AsyncFn(&Address) -> Result<Map<String, Value>, RequestError>,
    ) -> Result<Map<String, Value>, RequestError> {
        if signed.server.auth.is_none() {
            return send(signed.address).await;
        }
        let first = TokenNeed::of(*signed);
        let shown = self.mcp_token(&first).await?;
        let answer = send(&with_bearer(signed.address, &shown)).await;
        let Err(RequestError::Trouble(TransportError { challenge: Some(challenge), .. })) = &answer else {
            return answer;
        };
        let refused = Some(&shown).filter(|shown| shown.access.is_some());
        let again = TokenNeed { challenge: Some(challenge), refused, ..first };
        let other = self.mcp_token(&again).await?;
        let mut answer = match other.access {
            None => answer,
            Some(_) => send(&with_bearer(signed.address, &other)).await,
        };
        if let Err(RequestError::Trouble(TransportError { challenge: Some(challenge), .. })) = &mut answer {
            challenge.version = other.version;
        }
        answer
    }

    /// The thread's identity at a server by its token; `None` without `auth`.
    pub(super) fn bearer_of(&self, signed: &ServerConnection<'_>) -> Result<Option<String>, TransportError> {
        let Some(auth) = &signed.server.auth else { return Ok(None) };
        let place = self.token_place(auth, &TokenNeed::of(*signed))?;
        Ok(Some(digest(&[&place.directory, &place.name])))
    }

    /// The token for a request. `None` inside if the server must send a challenge first, or a person must
    /// sign in.
    async fn mcp_token(&self, wanted: &TokenNeed<'_>) -> Result<Bearer, TransportError> {
        let Some(auth) = &wanted.signed.server.auth else { return Ok(Bearer { version: 0, access: None }) };
        let failed =
            |error: Error| TransportError::new(UNREACHABLE, error.into_message()).passing(RetryOn::Network);
        let place = self.token_place(auth, wanted)?;
        let cached = self.ephemeral.mcp.tokens.borrow().get(&place.name).cloned();
        // After a refusal another thread may have a newer token in the directory. Without keys the directory
        // stores none.
        let asks = wanted.refused.is_some() && level::are_kept(&*self.host);
        let mut known = match cached.filter(|_| !asks) {
            Some(known) => known,
            None => self.ask_token(&place, TokenAsk::Read).await.map_err(failed)?.0,
        };
        for _ in 0..LOOKS {
            let refused = wanted.refused.is_some_and(|refused| refused.version >= known.version);
            if let Some(token) =
                known.token.as_ref().filter(|token| !refused && token.counts(self.host.now_us()))
            {
                let bearer = Bearer { version: known.version, access: Some(token.access.clone()) };
                return Ok(self.keep_token(&place, known, bearer));
            }
            // Renewal within the same sign-in would not extend its rights.
            let more = refused && wanted.challenge.is_some_and(Challenge::wants_more);
            let can = match (auth, &known.token) {
                (McpAuth::Oauth { .. }, Some(token)) => token.refresh.is_some() && !more,
                (McpAuth::Oauth { .. }, None) => false,
                (McpAuth::ClientCredentials { .. }, known) => known.is_some() || wanted.challenge.is_some(),
            };
            if !can {
                return Ok(Bearer { version: known.version, access: None });
            }
            // A missing value prevents a renewal, but does not invalidate the token.
            wanted.secret()?;
            if let Some(renewing) = RenewalGuard::begin(&self.ephemeral.mcp.renewing, &place.name) {
                // After a crash the same thread may continue at once.
                let by = self.read(|state, _| Ok(state.meta.stem.clone())).map_err(failed)?;
                let until_us = self.host.now_us() + HOLD_US;
                let take = TokenAsk::Take { version: known.version, by: by.clone(), until_us };
                let (now, taken) = self.ask_token(&place, take).await.map_err(failed)?;
                if taken {
                    return self.renew_token(&place, wanted, known, by).await;
                }
                drop(renewing);
                if now.version != known.version {
                    known = now;
                    continue;
                }
            }
            wanted.signed.context.sleep()(PAUSE_US).await;
            known = self.ask_token(&place, TokenAsk::Read).await.map_err(failed)?.0;
        }
        let text = format!(
            "The token for the MCP server \"{}\" is being renewed elsewhere.",
            wanted.signed.server.name
        );
        Err(TransportError::new(UNREACHABLE, text).passing(RetryOn::Network))
    }

    /// Renews a token that this thread has reserved.
    async fn renew_token(
        &self,
        place: &TokenRef,
        wanted: &TokenNeed<'_>,
        known: KnownToken,
        by: String,
    ) -> Result<Bearer, TransportError> {
        let asked = self.new_token(wanted, known.token.as_ref()).await;
        let (put, told) = match asked {
            Ok(token) => (Some(token), None),
            Err(NoToken::Denied(text)) => (None, Some(wanted.trouble(&text))),
            // Keep the old token. The next request tries again.
            Err(NoToken::Failed(text)) => {
                (known.token, Some(wanted.trouble(&text).passing(RetryOn::Network)))
            }
        };
        let stored = self.put_token(place, Some(by), put.clone()).await;
        let version = stored.unwrap_or_else(|error| {
            self.variables().log(&format!("a token could not be stored: {error}"));
            known.version
        });
        match (told, put) {
            (None, Some(token)) => {
                let bearer = Bearer { version, access: Some(token.access.clone()) };
                Ok(self.keep_token(place, KnownToken { version, token: Some(token) }, bearer))
            }
            // A person has to sign in again.
            (Some(_), None) if matches!(wanted.signed.server.auth, Some(McpAuth::Oauth { .. })) => {
                self.ephemeral.mcp.tokens.borrow_mut().remove(&place.name);
                Ok(Bearer { version, access: None })
            }
            (Some(trouble), _) => Err(trouble),
            (None, None) => Ok(Bearer { version, access: None }),
        }
    }

    /// Requests a token that replaces the known one.
    async fn new_token(&self, wanted: &TokenNeed<'_>, known: Option<&Token>) -> Result<Token, NoToken> {
        let denied = |trouble: TransportError| NoToken::Denied(trouble.text);
        let secret = wanted.secret().map_err(denied)?;
        match &wanted.signed.server.auth {
            Some(McpAuth::ClientCredentials { client_id, scopes, issuer, .. }) => {
                let scope = scopes.join(" ");
                let client = match known {
                    Some(known) => known.client.clone(),
                    None => {
                        let id = wanted.filled(client_id).map_err(denied)?;
                        self.client(wanted, id, issuer.as_deref()).await.map_err(NoToken::Failed)?
                    }
                };
                let asked = wanted
                    .challenge
                    .and_then(|challenge| challenge.scope.clone())
                    .filter(|_| scope.is_empty());
                let scope = asked.unwrap_or(scope);
                token(wanted.signed.context, &client, &Grant::Client, (&scope, secret.as_deref()), known)
                    .await
            }
            _ => {
                let Some((known, refresh)) = known.and_then(|known| Some((known, known.refresh.as_deref()?)))
                else {
                    return Err(NoToken::Denied("nobody has signed in".to_owned()));
                };
                let grant = Grant::Refresh { token: refresh };
                let said = (known.scope.as_str(), secret.as_deref());
                token(wanted.signed.context, &known.client, &grant, said, Some(known)).await
            }
        }
    }

    /// The application's OAuth client at the authorization server of a server.
    async fn client(
        &self,
        wanted: &TokenNeed<'_>,
        id: String,
        issuer: Option<&str>,
    ) -> Result<Client, String> {
        let none = Challenge::default();
        let challenge = wanted.challenge.unwrap_or(&none);
        let found = discover(wanted.signed.context, &wanted.signed.address.url, challenge, issuer).await?;
        Ok(Client::of(&found.issuer, id, found.resource.resource))
    }

    /// The location of a token. Address and client are part of its name, so that another one uses another
    /// token.
    pub(super) fn token_place(
        &self,
        auth: &McpAuth,
        wanted: &TokenNeed<'_>,
    ) -> Result<TokenRef, TransportError> {
        let failed = |error: Error| TransportError::new(UNREACHABLE, error.into_message());
        let (server, url) = (&wanted.signed.server.name, &wanted.signed.address.url);
        let (thread, owner) = self
            .read(|state, _| Ok((state.meta.thread_id.clone(), state.meta.owner.clone())))
            .map_err(failed)?;
        Ok(match auth {
            McpAuth::ClientCredentials { client_id, .. } => {
                let name = format!("/{server}/{}", digest(&[url, &wanted.filled(client_id)?]));
                TokenRef { directory: ROOT.to_owned(), name }
            }
            McpAuth::Oauth { client_id, issuer, .. } => {
                let id = client_id.as_deref().map(|id| wanted.filled(id)).transpose()?.unwrap_or_default();
                let name = format!("{server}/{}", digest(&[url, &id, issuer.as_deref().unwrap_or_default()]));
                match owner {
                    Some(_) => {
                        TokenRef { directory: call::name_of(owner.as_deref()), name: format!("/{name}") }
                    }
                    None => {
                        TokenRef { directory: call::OWNERLESS.to_owned(), name: format!("{thread}/{name}") }
                    }
                }
            }
        })
    }

    /// Stores a token, or its removal. Returns the new version.
    pub(super) async fn put_token(
        &self,
        place: &TokenRef,
        by: Option<String>,
        token: Option<Token>,
    ) -> Result<i64> {
        // Without keys nothing is stored: each thread has its own token, in memory.
        let kept = token.as_ref().filter(|_| level::are_kept(&*self.host));
        let text = kept.map(serde_json::to_string).transpose().map_err(Error::internal)?;
        let sealed =
            text.map(|text| serde_json::to_string(&self.sealed(&place.directory, &place.name, &text)));
        let token = sealed.transpose().map_err(Error::internal)?;
        Ok(self.ask_token(place, TokenAsk::Put { by, token }).await?.0.version)
    }

    pub(super) async fn ask_token(&self, place: &TokenRef, ask: TokenAsk) -> Result<(KnownToken, bool)> {
        let asked = DirectoryCall::Token { name: place.name.clone(), ask };
        let asked = serde_json::to_string(&asked).map_err(Error::internal)?;
        let text = self.host.sibling(Sibling::Directory(place.directory.clone()), asked).await?;
        let reply = call::answer(&text)?;
        let body = reply.body.as_ref().filter(|_| reply.status == 200);
        let body = body.ok_or_else(|| Error::internal(format!("the directory answered {}", reply.status)))?;
        let TokenResponse { version, token, taken } =
            crate::json::from_str(body.get()).map_err(Error::internal)?;
        // A token that cannot be decrypted or parsed counts as missing.
        let token = token.and_then(|sealed| {
            let sealed: SealedText = crate::json::from_str(&sealed).ok()?;
            crate::json::from_str(&self.unsealed(&place.directory, &place.name, sealed)?).ok()
        });
        Ok((KnownToken { version, token }, taken))
    }

    /// Caches a token and redacts it from everything that is shown.
    fn keep_token(&self, place: &TokenRef, known: KnownToken, bearer: Bearer) -> Bearer {
        self.has_token(place, known);
        bearer
    }

    /// Caches and redacts a token before its first use.
    pub(super) fn has_token(&self, place: &TokenRef, known: KnownToken) {
        if let Some(token) = &known.token {
            self.variables().learn_secret(&place.name, &token.access);
        }
        self.ephemeral.mcp.tokens.borrow_mut().insert(place.name.clone(), known);
    }
}

fn with_bearer(address: &Address, bearer: &Bearer) -> Address {
    address.with_bearer(bearer.access.as_deref())
}
