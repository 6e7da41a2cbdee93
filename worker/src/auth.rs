//! Authentication of requests, and browser tokens. Passes the deployment's variables and the request's
//! headers to [`bobbin::access`], which decides.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use bobbin::access::links::{EXPIRES, FileLink, LIFE, Links, SIGNATURE};
use bobbin::access::oauth::OAuth;
use bobbin::access::{Access, Body, Caller, Credential, DevRequest, NewToken, Scope, Via, dev_guard};
use bobbin::limits::{SECOND_US, TOKEN_TTL_S};
use bobbin::request::surfaces::Surfaces;
use bobbin::request::{
    BodyRule, Query, Route, StreamRoute, ThreadRequest, ThreadRoute, cors, fields, thread_id,
};
use bobbin::{Code, Error, Result};
use serde_json::Value;
use wasm_bindgen::prelude::*;

use crate::bindings::{Env, Head, date_now, log, thrown};
use crate::router::call_thread;

/// Microseconds in a millisecond.
const MS_US: f64 = 1_000.0;

/// Number of origins whose refusal is logged.
const REFUSED_MAX: usize = 20;

thread_local! {
    // The variables of an isolate never change.
    static CONFIG: OnceCell<Rc<Config>> = const { OnceCell::new() };
    static REFUSED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Access rules from the deployment's variables.
pub(crate) struct Config {
    /// `BOBBIN_DEV=1`: a developer's own machine.
    pub(crate) dev: bool,
    /// `BOBBIN_ALLOWED_ORIGINS`.
    pub(crate) allowed_origins: String,
    /// `BOBBIN_SURFACES`.
    pub(crate) surfaces: Result<Surfaces>,
    access: Result<Access>,
    /// The issuer whose access tokens clients of MCP may use.
    pub(crate) oauth: Result<Option<OAuth>>,
}

impl Config {
    /// Whether a page of this origin may read responses. A development server also allows pages of other
    /// servers on this machine. If no credentials are required, `*` has no effect, because any page that the
    /// developer has open could then use the server.
    pub(crate) fn allows(&self, origin: &str) -> bool {
        if self.dev && cors::is_loopback(origin) {
            true
        } else if self.is_open() {
            cors::names(&self.allowed_origins, origin)
        } else {
            cors::allows(&self.allowed_origins, origin)
        }
    }

    /// The signer of links to files on a server, if it can make any.
    pub(crate) fn links(&self, origin: &str) -> Option<Links> {
        self.access.as_ref().ok()?.links(origin, now_us())
    }

    /// The key for state that clients return, if there is one.
    pub(crate) fn secret(&self) -> Option<Vec<u8>> {
        self.access.as_ref().ok()?.secret()
    }

    /// Whether this is a development server without credentials.
    fn is_open(&self) -> bool {
        self.dev && self.access.as_ref().is_ok_and(Access::is_open)
    }

    /// Reads the variables, once per isolate.
    pub(crate) fn of(env: &Env) -> Rc<Config> {
        let read = || {
            Rc::new(Config {
                dev: is_dev(env),
                allowed_origins: env.var("BOBBIN_ALLOWED_ORIGINS").unwrap_or_default(),
                surfaces: Surfaces::parse(env.var("BOBBIN_SURFACES").as_deref(), is_dev(env))
                    .map_err(|error| Error::internal(format!("BOBBIN_SURFACES: {error}."))),
                access: Access::from_vars(|name| env.var(name)),
                oauth: OAuth::from_vars(|name| env.var(name), is_dev(env)),
            })
        };
        CONFIG.with(|config| config.get_or_init(read).clone())
    }
}

/// Whether this is a developer's own machine: `BOBBIN_DEV=1`, which only `npm start` passes.
pub(crate) fn is_dev(env: &Env) -> bool {
    env.var("BOBBIN_DEV").as_deref() == Some("1")
}

/// Refuses requests that a development server must not serve. `rule` is the body's, of a route that exists.
pub(crate) fn guard(config: &Config, head: &Head, rule: Option<BodyRule>) -> Result<()> {
    if !config.dev {
        return Ok(());
    }
    let empty = !head.has_body || head.content_length == Some(0);
    let guarded = dev_guard(&DevRequest {
        host: head.host.as_deref(),
        origin: head.origin.as_deref().filter(|origin| !config.allows(origin)),
        content_type: head.content_type.as_deref(),
        body: match rule {
            _ if empty => Body::None,
            Some(BodyRule::Streamed) => Body::File,
            _ => Body::Json,
        },
    });
    if let (Err(error), Some(origin)) = (&guarded, &head.origin)
        && !config.allows(origin)
    {
        log_refused(origin, error);
    }
    guarded
}

/// Logs why a page gets no response, once for each origin. A browser shows only that the request failed.
fn log_refused(origin: &str, error: &Error) {
    let first = REFUSED.with_borrow_mut(|known| {
        let first = known.len() < REFUSED_MAX && !known.iter().any(|other| other == origin);
        if first {
            known.push(origin.to_owned());
        }
        first
    });
    if first {
        let hint = error.hint.as_deref().unwrap_or_default();
        log(&format!("A page of {origin:?} was refused. {} {hint}", error.message));
    }
}

/// The caller of the request.
pub(crate) fn authenticate(config: &Config, head: &Head, query: &Query, route: &Route) -> Result<Caller> {
    let access = config.access.as_ref().map_err(Clone::clone)?;
    if let (Route::Stream(thread, StreamRoute::GetFile(path) | StreamRoute::HeadFile(path)), None) =
        (route, &head.authorization)
        && let (Some(expires), Some(signature)) = (query.get(EXPIRES), query.get(SIGNATURE))
    {
        let link = FileLink { life: query.get(LIFE), expires, signature };
        return access.of_file_link(thread, path, link, now_us());
    }
    // Only on routes where a browser cannot set a header, because addresses end up in logs.
    let in_query = matches!(route, Route::Follow(..));
    let credential = match (&head.authorization, query.get("token").filter(|_| in_query)) {
        (Some(header), _) => Credential::Header(header),
        (None, Some(token)) => Credential::Query(token),
        (None, None) => Credential::None,
    };
    access.authenticate(credential, now_us())
}

/// The caller of a request to `resource`, where access tokens of another issuer are also accepted. If there
/// is an issuer, every caller must authenticate.
pub(crate) async fn authenticate_mcp(config: &Config, head: &Head, resource: &str) -> Result<Caller> {
    let access = config.access.as_ref().map_err(Clone::clone)?;
    let oauth = config.oauth.as_ref().map_err(Clone::clone)?;
    let credential = head.authorization.as_deref().map_or(Credential::None, Credential::Header);
    let known = access.authenticate(credential, now_us());
    let Some(oauth) = oauth else { return known };
    match (&known, &head.authorization) {
        (Ok(Caller { via: Via::Development, .. }), None) => {
            return Err(Error::new(Code::Unauthenticated, "No credentials.")
                .hint("Send an access token of the issuer that the metadata of this resource names."));
        }
        (Ok(Caller { via: Via::Key | Via::Token { .. }, .. }), _) | (_, None) => return known,
        _ => {}
    }
    let shown = head.authorization.as_deref().and_then(|header| header.split_once(' '));
    let token =
        shown.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map_or("", |(_, token)| token);
    let Some(claimed) = oauth.read(token, resource, now_us())? else { return known };
    let (algorithm, key) = (&claimed.algorithm, claimed.key.as_deref());
    let signed = verified(&oauth.issuer, algorithm, key, claimed.signed, claimed.signature).await;
    let signed = signed.map_err(|error| Error::internal(thrown(&error)))?.as_string().unwrap_or_default();
    match signed.as_str() {
        "yes" => Ok(claimed.caller),
        "no" => Err(Error::new(Code::Unauthenticated, "The access token is not signed by its issuer.")),
        why => {
            log(&format!("an access token could not be checked: {why}"));
            Err(Error::new(Code::Overloaded, "The access token cannot be checked now.").retry_after(5))
        }
    }
}

#[wasm_bindgen(module = "/oauth.js")]
extern "C" {
    #[wasm_bindgen(catch)]
    async fn verified(
        issuer: &str,
        algorithm: &str,
        kid: Option<&str>,
        signed: &str,
        signature: &str,
    ) -> Result<JsValue, JsValue>;
}

/// Expiry of the caller's credentials, milliseconds since 1970.
pub(crate) fn expires_ms(caller: &Caller) -> Option<f64> {
    caller.expires_us().map(|us| us as f64 / MS_US)
}

/// `POST /tokens` with `{"scope": "thread:…", "ttl": seconds}`; `ttl` is [`TOKEN_TTL_S`] unless given.
pub(crate) async fn mint(config: &Config, env: &Env, caller: &Caller, body: &str) -> Result<NewToken> {
    let mut wanted = fields::Body::parse(body)?.known(&["scope", "ttl"])?;
    let scope = wanted.take("scope").ok_or_else(|| Error::missing("scope"))?;
    let scope: Scope = scope.as_str().and_then(|scope| scope.parse().ok()).ok_or_else(|| {
        Error::field("scope", "`scope` is `admin`, `owner:<id>`, `thread:<id>` or `wait:<thread>/<wait>`.")
    })?;
    let ttl_s = match wanted.take("ttl") {
        None => TOKEN_TTL_S,
        // Other values are out of bounds too, and `Access::mint` reports the bounds.
        Some(ttl) => ttl.as_u64().unwrap_or(0),
    };
    let access = config.access.as_ref().map_err(Clone::clone)?;
    let thread_owner = match (&caller.scope, &scope) {
        (Scope::Owner(owner), Scope::Thread(id)) if is_theirs(env, caller, id).await? => Some(owner.as_str()),
        (Scope::Owner(owner), Scope::Wait(id, wait)) if may_decide(env, caller, id, wait).await? => {
            Some(owner.as_str())
        }
        _ => None,
    };
    let life = match &scope {
        Scope::Thread(id) if thread_id::is_of_key(id) => life_of(env, caller, id).await?,
        _ => None,
    };
    access.mint(caller, &scope, thread_owner, life, ttl_s, now_us())
}

/// The caller of a link, and the first characters of a hash of its token.
pub(crate) fn of_link(config: &Config, token: &str) -> Result<Caller> {
    config.access.as_ref().map_err(Clone::clone)?.of_link(token, now_us())
}

/// The first characters of a hash of the credentials, for the log of decisions.
pub(crate) fn fingerprint(credentials: &str) -> String {
    bobbin::signing::fingerprint(credentials)
}

/// Whether the caller may read the thread, which the thread decides.
async fn is_theirs(env: &Env, caller: &Caller, id: &str) -> Result<bool> {
    Ok(asked(env, caller, id, ThreadRoute::Get).await?.is_some())
}

/// Whether the caller may read the thread and decide its wait. A link grants no more than its minter may do.
///
/// # Errors
/// `not_found` for a wait that the thread does not have, `forbidden` for one that admins decide.
async fn may_decide(env: &Env, caller: &Caller, id: &str, wait: &str) -> Result<bool> {
    let Some(found) = asked(env, caller, id, ThreadRoute::GetWait(wait.to_owned())).await? else {
        // A thread of another owner is reported as missing; for their own, callers receive the actual error.
        return match is_theirs(env, caller, id).await? {
            true => Err(Error::new(Code::NotFound, "There is no such wait in this thread.")
                .hint("GET …/waits lists them.")),
            false => Ok(false),
        };
    };
    match found.pointer("/wait/by").and_then(Value::as_str) {
        Some("owner" | "thread") => Ok(true),
        _ => Err(Error::new(Code::Forbidden, "This is for an admin to decide.")
            .hint(format!("The scope of these credentials is `{}`.", caller.scope))),
    }
}

/// Which of the threads with this id it is, or `None` if the caller has no such thread.
async fn life_of(env: &Env, caller: &Caller, id: &str) -> Result<Option<i64>> {
    let found = asked(env, caller, id, ThreadRoute::Diagnostics).await?;
    Ok(found.and_then(|told| told.get("life")?.as_i64()))
}

/// The thread's response to the caller, or `None` if it responds that it does not exist.
async fn asked(env: &Env, caller: &Caller, id: &str, route: ThreadRoute) -> Result<Option<Value>> {
    if !thread_id::is_valid(id) {
        return Ok(None);
    }
    let request = ThreadRequest {
        thread_id: id.to_owned(),
        life: None,
        caller: caller.clone(),
        route,
        query: Query::default(),
        idempotency_key: None,
        headers: Vec::new(),
        body: String::new(),
    };
    let answer = call_thread(env, id, &request, "").await?;
    match answer.status {
        200 => {
            let text = answer.body.as_string().unwrap_or_default();
            bobbin::json::from_str(&text).map(Some).map_err(Error::internal)
        }
        404 => Ok(None),
        status => Err(Error::internal(format!("a thread answered {status} when it was asked for its owner"))),
    }
}

fn now_us() -> i64 {
    // Milliseconds are whole; the product is exact far beyond the year 10,000.
    date_now() as i64 * (SECOND_US / 1_000)
}
