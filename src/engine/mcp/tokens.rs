//! Tokens for servers whose definition has `auth` (docs/mcp.md). They are the owner's, for all of their threads; a thread's own where
//! nobody owns it; the application's where it signs in itself. A directory keeps them, sealed, and says who renews one; threads ask
//! for them, renew them, and have them in memory.

use std::cell::RefCell;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::engine::features::McpClient;
use crate::engine::mcp::sealed::Sealed;
use crate::env::level;
use crate::error::{Error, Result};
use crate::host::Sibling;
use crate::limits::SECOND_US;
use crate::mcp::oauth::Challenge;
use crate::mcp::oauth::grant::{Client, Grant, KnownToken, NoToken, Token};
use crate::request::directory_call as call;
use crate::request::directory_call::{DirectoryCall, ROOT, TokenAsk};
use crate::signing::digest;
use crate::spec::retry::RetryOn;
use crate::spec::{McpAuth, McpServer, template};
use crate::work::Surroundings;
use crate::work::mcp::auth::{discover, token};
use crate::work::mcp::{Address, Failed, Trouble, UNAUTHORIZED, UNREACHABLE};

/// How long a thread that renews a token has it alone: longer than that can take.
const HOLD_US: i64 = 90 * SECOND_US;
/// Looks at whether somebody else has renewed it, and the pauses between them.
const LOOKS: usize = 30;
const PAUSE_US: i64 = SECOND_US;

/// The token that a request shows, if there is one, and which one that is.
pub(super) struct Bearer {
    version: i64,
    access: Option<String>,
}

/// That a call of this thread renews a token. Others of it wait, as other threads do.
pub(super) struct Renewing<'a> {
    names: &'a RefCell<Vec<String>>,
    name: &'a str,
}

impl<'a> Renewing<'a> {
    /// Unless there is one already.
    pub(super) fn begin(names: &'a RefCell<Vec<String>>, name: &'a str) -> Option<Renewing<'a>> {
        let mut all = names.borrow_mut();
        if all.iter().any(|other| other == name) {
            return None;
        }
        all.push(name.to_owned());
        Some(Renewing { names, name })
    }
}

impl Drop for Renewing<'_> {
    fn drop(&mut self) {
        self.names.borrow_mut().retain(|name| name != self.name);
    }
}

/// Where a token is kept.
pub(super) struct Place {
    pub(super) directory: String,
    pub(super) name: String,
}

/// What a directory answers.
#[derive(Deserialize)]
struct Answer {
    version: i64,
    token: Option<String>,
    taken: bool,
}

/// A server, as a request signs in to it.
#[derive(Clone, Copy)]
pub(crate) struct Signed<'a> {
    pub(crate) around: &'a dyn Surroundings,
    pub(crate) server: &'a McpServer,
    pub(crate) address: &'a Address,
    /// Values of variables.
    pub(crate) env: &'a dyn Fn(&str) -> Option<String>,
}

/// What is asked for a token.
pub(super) struct TokenWanted<'a> {
    pub(super) signed: Signed<'a>,
    /// What the server said when it did not take one, or wanted one.
    pub(super) challenge: Option<&'a Challenge>,
    /// The one that it did not take.
    pub(super) refused: Option<&'a Bearer>,
}

impl TokenWanted<'_> {
    /// What a call asks of.
    pub(super) fn of(signed: Signed<'_>) -> TokenWanted<'_> {
        TokenWanted { signed, challenge: None, refused: None }
    }

    pub(super) fn filled(&self, text: &str) -> Result<String, Trouble> {
        template::render(text, self.signed.env).map_err(|error| {
            let text = format!("The MCP server \"{}\" is not set up: {error}.", self.signed.server.name);
            Trouble::new(UNAUTHORIZED, text)
        })
    }

    /// The client's secret, if it has one.
    pub(super) fn secret(&self) -> Result<Option<String>, Trouble> {
        match &self.signed.server.auth {
            Some(McpAuth::ClientCredentials { client_secret, .. }) => self.filled(client_secret).map(Some),
            Some(McpAuth::Oauth { client_secret: Some(secret), .. }) => self.filled(secret).map(Some),
            _ => Ok(None),
        }
    }

    pub(super) fn trouble(&self, text: &str) -> Trouble {
        let text = format!("There is no token for the MCP server \"{}\": {text}.", self.signed.server.name);
        Trouble::new(UNAUTHORIZED, text)
    }
}

impl McpClient<'_> {
    /// Sends a request with a token, where the server's definition has `auth`. What a server refuses for its token did not run: it is
    /// sent once more with another one, if there is one.
    pub(crate) async fn signed(
        &self,
        signed: &Signed<'_>,
        send: impl AsyncFn(&Address) -> Result<Map<String, Value>, Failed>,
    ) -> Result<Map<String, Value>, Failed> {
        if signed.server.auth.is_none() {
            return send(signed.address).await;
        }
        let first = TokenWanted::of(*signed);
        let shown = self.mcp_token(&first).await?;
        let answer = send(&with_bearer(signed.address, &shown)).await;
        let Err(Failed::Trouble(Trouble { challenge: Some(challenge), .. })) = &answer else { return answer };
        let refused = Some(&shown).filter(|shown| shown.access.is_some());
        let again = TokenWanted { challenge: Some(challenge), refused, ..first };
        let other = self.mcp_token(&again).await?;
        let mut answer = match other.access {
            None => answer,
            Some(_) => send(&with_bearer(signed.address, &other)).await,
        };
        if let Err(Failed::Trouble(Trouble { challenge: Some(challenge), .. })) = &mut answer {
            challenge.version = other.version;
        }
        answer
    }

    /// Who the thread is to a server by its token; `None` where it has none.
    pub(crate) fn bearer_of(&self, signed: &Signed<'_>) -> Result<Option<String>, Trouble> {
        let Some(auth) = &signed.server.auth else { return Ok(None) };
        let place = self.token_place(auth, &TokenWanted::of(*signed))?;
        Ok(Some(digest(&[&place.directory, &place.name])))
    }

    /// The token that a request shows; none where the server has to ask for one first, or somebody to sign in.
    async fn mcp_token(&self, wanted: &TokenWanted<'_>) -> Result<Bearer, Trouble> {
        let Some(auth) = &wanted.signed.server.auth else { return Ok(Bearer { version: 0, access: None }) };
        let failed = |error: Error| Trouble::new(UNREACHABLE, error.into_message()).passing(RetryOn::Network);
        let place = self.token_place(auth, wanted)?;
        let cached = self.ephemeral.tokens.borrow().get(&place.name).cloned();
        // Another thread may know more than this one, of which something was refused; but who keeps nothing knows nothing.
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
            // Another one of the same sign-in would allow no more.
            let more = refused && wanted.challenge.is_some_and(Challenge::wants_more);
            let can = match (auth, &known.token) {
                (McpAuth::Oauth { .. }, Some(token)) => token.refresh.is_some() && !more,
                (McpAuth::Oauth { .. }, None) => false,
                (McpAuth::ClientCredentials { .. }, known) => known.is_some() || wanted.challenge.is_some(),
            };
            if !can {
                return Ok(Bearer { version: known.version, access: None });
            }
            // One that cannot be renewed for want of a value is not lost by that.
            wanted.secret()?;
            if let Some(renewing) = Renewing::begin(&self.ephemeral.renewing, &place.name) {
                // After a crash the same thread goes on at once.
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
            wanted.signed.around.sleep()(PAUSE_US).await;
            known = self.ask_token(&place, TokenAsk::Read).await.map_err(failed)?.0;
        }
        let text = format!(
            "The token for the MCP server \"{}\" is being renewed elsewhere.",
            wanted.signed.server.name
        );
        Err(Trouble::new(UNREACHABLE, text).passing(RetryOn::Network))
    }

    /// Renews a token that this thread has alone.
    async fn renew_token(
        &self,
        place: &Place,
        wanted: &TokenWanted<'_>,
        known: KnownToken,
        by: String,
    ) -> Result<Bearer, Trouble> {
        let asked = self.new_token(wanted, known.token.as_ref()).await;
        let (put, told) = match asked {
            Ok(token) => (Some(token), None),
            Err(NoToken::Denied(text)) => (None, Some(wanted.trouble(&text))),
            // The old one may do another time: who is next asks again.
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
            // Somebody has to sign in again.
            (Some(_), None) if matches!(wanted.signed.server.auth, Some(McpAuth::Oauth { .. })) => {
                self.ephemeral.tokens.borrow_mut().remove(&place.name);
                Ok(Bearer { version, access: None })
            }
            (Some(trouble), _) => Err(trouble),
            (None, None) => Ok(Bearer { version, access: None }),
        }
    }

    /// Asks for a token in the place of the one that is known.
    async fn new_token(&self, wanted: &TokenWanted<'_>, known: Option<&Token>) -> Result<Token, NoToken> {
        let denied = |trouble: Trouble| NoToken::Denied(trouble.text);
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
                token(wanted.signed.around, &client, &Grant::Client, (&scope, secret.as_deref()), known).await
            }
            _ => {
                let Some((known, refresh)) = known.and_then(|known| Some((known, known.refresh.as_deref()?)))
                else {
                    return Err(NoToken::Denied("nobody has signed in".to_owned()));
                };
                let grant = Grant::Refresh { token: refresh };
                let said = (known.scope.as_str(), secret.as_deref());
                token(wanted.signed.around, &known.client, &grant, said, Some(known)).await
            }
        }
    }

    /// The application as a client of whoever gives tokens for a server.
    async fn client(
        &self,
        wanted: &TokenWanted<'_>,
        id: String,
        issuer: Option<&str>,
    ) -> Result<Client, String> {
        let none = Challenge::default();
        let challenge = wanted.challenge.unwrap_or(&none);
        let found = discover(wanted.signed.around, &wanted.signed.address.url, challenge, issuer).await?;
        Ok(Client::of(&found.issuer, id, found.resource.resource))
    }

    /// A token for another address, or another client, is another one.
    pub(super) fn token_place(&self, auth: &McpAuth, wanted: &TokenWanted<'_>) -> Result<Place, Trouble> {
        let failed = |error: Error| Trouble::new(UNREACHABLE, error.into_message());
        let (server, url) = (&wanted.signed.server.name, &wanted.signed.address.url);
        let (thread, owner) = self
            .read(|state, _| Ok((state.meta.thread_id.clone(), state.meta.owner.clone())))
            .map_err(failed)?;
        Ok(match auth {
            McpAuth::ClientCredentials { client_id, .. } => {
                let name = format!("/{server}/{}", digest(&[url, &wanted.filled(client_id)?]));
                Place { directory: ROOT.to_owned(), name }
            }
            McpAuth::Oauth { client_id, issuer, .. } => {
                let id = client_id.as_deref().map(|id| wanted.filled(id)).transpose()?.unwrap_or_default();
                let name = format!("{server}/{}", digest(&[url, &id, issuer.as_deref().unwrap_or_default()]));
                match owner {
                    Some(_) => Place { directory: call::name_of(owner.as_deref()), name: format!("/{name}") },
                    None => Place { directory: call::OWNERLESS.to_owned(), name: format!("{thread}/{name}") },
                }
            }
        })
    }

    /// Stores a token, or that there is none any more. The version that it is.
    pub(super) async fn put_token(
        &self,
        place: &Place,
        by: Option<String>,
        token: Option<Token>,
    ) -> Result<i64> {
        // A deployment without keys keeps none: each thread has its own, in memory.
        let kept = token.as_ref().filter(|_| level::are_kept(&*self.host));
        let text = kept.map(serde_json::to_string).transpose().map_err(Error::internal)?;
        let sealed =
            text.map(|text| serde_json::to_string(&self.sealed(&place.directory, &place.name, &text)));
        let token = sealed.transpose().map_err(Error::internal)?;
        Ok(self.ask_token(place, TokenAsk::Put { by, token }).await?.0.version)
    }

    pub(super) async fn ask_token(&self, place: &Place, ask: TokenAsk) -> Result<(KnownToken, bool)> {
        let asked = DirectoryCall::Token { name: place.name.clone(), ask };
        let asked = serde_json::to_string(&asked).map_err(Error::internal)?;
        let text = self.host.sibling(Sibling::Directory(place.directory.clone()), asked).await?;
        let reply = call::answer(&text)?;
        let body = reply.body.as_ref().filter(|_| reply.status == 200);
        let body = body.ok_or_else(|| Error::internal(format!("the directory answered {}", reply.status)))?;
        let Answer { version, token, taken } = crate::json::from_str(body.get()).map_err(Error::internal)?;
        // One that cannot be opened or read any more is none.
        let token = token.and_then(|sealed| {
            let sealed: Sealed = crate::json::from_str(&sealed).ok()?;
            crate::json::from_str(&self.unsealed(&place.directory, &place.name, sealed)?).ok()
        });
        Ok((KnownToken { version, token }, taken))
    }

    /// Keeps a token in memory, and out of all that is shown.
    fn keep_token(&self, place: &Place, known: KnownToken, bearer: Bearer) -> Bearer {
        self.has_token(place, known);
        bearer
    }

    /// The same of one that a request is still to be made with.
    pub(super) fn has_token(&self, place: &Place, known: KnownToken) {
        if let Some(token) = &known.token {
            self.variables().learn_secret(&place.name, &token.access);
        }
        self.ephemeral.tokens.borrow_mut().insert(place.name.clone(), known);
    }
}

fn with_bearer(address: &Address, bearer: &Bearer) -> Address {
    address.with_bearer(bearer.access.as_deref())
}
