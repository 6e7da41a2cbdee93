//! Requests to MCP servers. The client detects the era of a server, starts sessions when the server needs
//! them, and starts new ones when it has lost them. After that, each call is one request. A call that a
//! server may have read is never repeated, in another era or session either. Bytes and time are limited;
//! redirects are not followed.
//!
//! * Here: the conversation. `exchange`: one message and its response. `auth`: authorization servers and
//!   tokens.

pub(crate) mod auth;
mod exchange;

use serde_json::{Map, Value};

use crate::definitions::retry::RetryOn;
use crate::definitions::{McpProtocol, McpServer, template};
use crate::host::Host;
use crate::mcp_client::ask::{self, Ask, Asker};
use crate::mcp_client::oauth::Challenge;
use crate::mcp_client::reader::{RpcError, error_in};
use crate::mcp_client::{
    Era, LEGACY, MODERN, Refusal, Session, is_modern_error, lost_session, names_modern, refusal,
    wants_legacy, wants_modern,
};
use crate::work::WorkContext;
use crate::work::mcp::exchange::{Message, RefusedResponse, ServerResponse};
use crate::work::outbound::refused_in_clear;
use crate::work::timeout::Deadline;
use crate::{error, limits};

/// Maximum number of times that a request is sent during detection: in both eras, and in a new session.
const ROUNDS: usize = 4;

/// Stored facts about the protocol of a server, for one set of credentials.
pub(crate) trait SessionStore {
    /// The current session.
    fn session(&self) -> Option<Session>;

    /// Stores a new session, or that there is none any more.
    ///
    /// # Errors
    /// It could not be stored.
    fn store(&self, session: Option<&Session>) -> error::Result<()>;

    /// Whether it responded without sessions before, to this thread or another one, as far as this is in
    /// memory.
    fn is_modern(&self) -> bool;

    /// Records that it did.
    fn record_modern(&self);
}

/// A server, for one call.
pub(crate) struct Peer<'a> {
    pub(crate) context: &'a dyn WorkContext,
    /// The name in failures: the tool.
    pub(crate) subject: &'a str,
    pub(crate) address: &'a Address,
    /// Time limit for the whole call, in milliseconds.
    pub(crate) limit_ms: u64,
    pub(crate) asker: Asker,
    /// Headers with the trace.
    pub(crate) trace: Vec<(String, String)>,
    pub(crate) sessions: &'a dyn SessionStore,
}

/// The URL of a server, and the headers to send.
#[derive(Clone)]
pub(crate) struct Address {
    /// Its name in the catalog's folder.
    pub(crate) server: String,
    pub(crate) url: String,
    /// The definition's headers with their values; names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    protocol: McpProtocol,
    /// The protocol when its tools were pinned, which saves the detection.
    pinned: Option<McpProtocol>,
}

/// The reason why there is no response.
#[derive(Debug)]
pub(crate) struct TransportError {
    /// For clients and programs.
    pub(crate) code: &'static str,
    /// Description.
    pub(crate) text: String,
    /// Its name in a policy's `retryOn`; `None` when a repetition would fail again.
    pub(crate) may_pass: Option<RetryOn>,
    /// The server's demand for authorization, if that is the reason.
    pub(crate) challenge: Option<Box<Challenge>>,
}

/// The server does not respond, or responds with a failure.
pub(crate) const UNREACHABLE: &str = "mcp_unreachable";
/// A violation of the protocol, or one of its errors.
pub(crate) const PROTOCOL: &str = "mcp_protocol";
/// The server does not have the tool.
pub(crate) const TOOL_MISSING: &str = "mcp_tool_missing";
/// Credentials are missing or refused.
pub(crate) const UNAUTHORIZED: &str = "mcp_unauthorized";

/// The reason why a request has no result.
#[derive(Debug)]
pub(crate) enum RequestError {
    /// The server responded with an error.
    Rpc(RpcError),
    /// There was no valid response.
    Trouble(TransportError),
}

impl RequestError {
    /// The reason why there is no response.
    pub(crate) fn trouble(&self) -> Option<&TransportError> {
        match self {
            RequestError::Trouble(trouble) => Some(trouble),
            RequestError::Rpc(_) => None,
        }
    }
}

impl From<TransportError> for RequestError {
    fn from(trouble: TransportError) -> RequestError {
        RequestError::Trouble(trouble)
    }
}

impl TransportError {
    pub(crate) fn new(code: &'static str, text: String) -> TransportError {
        TransportError { code, text, may_pass: None, challenge: None }
    }

    /// Marks it as one that may succeed later.
    pub(crate) fn passing(self, kind: RetryOn) -> TransportError {
        TransportError { may_pass: Some(kind), ..self }
    }
}

impl Address {
    /// The address of a server, with the values that its definition names.
    ///
    /// # Errors
    /// A value is missing, or the address is not permitted; a full sentence.
    pub(crate) fn of(
        server: &McpServer,
        context: &dyn WorkContext,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Address, String> {
        let deployment = |variable: &str| context.deployment_variable(variable);
        let url = url(server, &**context.host(), &deployment, env)?;
        let mut headers = Vec::with_capacity(server.headers.len());
        for (header, value) in &server.headers {
            let value = template::render(value, env).map_err(|error| unset(server, &error))?;
            headers.push((header.to_ascii_lowercase(), value));
        }
        Ok(Address {
            server: server.name.clone(),
            url,
            headers,
            protocol: server.protocol,
            pinned: server.pinned.as_ref().map(|pinned| pinned.protocol),
        })
    }
}

impl Address {
    /// The address with a token.
    #[must_use]
    pub(crate) fn with_bearer(&self, token: Option<&str>) -> Address {
        let mut address = self.clone();
        let shown = token.map(|token| ("authorization".to_owned(), format!("Bearer {token}")));
        address.headers.extend(shown);
        address
    }
}

/// The URL of a server.
///
/// # Errors
/// As [`Address::of`].
pub(crate) fn url(
    server: &McpServer,
    host: &dyn Host,
    deployment: &dyn Fn(&str) -> Option<String>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let name = &server.name;
    let url = template::render_url(&server.url, deployment, env).map_err(|error| unset(server, &error))?;
    match refused_in_clear(host, &url) {
        Some(where_) => Err(format!("The MCP server \"{name}\" is at {where_}, which is not allowed here.")),
        None => Ok(url),
    }
}

fn unset(server: &McpServer, error: &template::Error) -> String {
    format!("The MCP server \"{}\" is not set up: {error}.", server.name)
}

impl Peer<'_> {
    /// Sends a request and returns its result.
    pub(crate) async fn ask(&self, ask: &Ask) -> Result<Map<String, Value>, RequestError> {
        let mut watch = Deadline::for_ms(&**self.context.host(), self.limit_ms);
        let answer = watch.within(self.converse(ask)).await;
        answer.unwrap_or_else(|| {
            let text = format!("{} did not answer within {} s.", self.subject, self.limit_ms as f64 / 1000.0);
            Err(TransportError::new(UNREACHABLE, text).passing(RetryOn::Timeout).into())
        })
    }

    async fn converse(&self, ask: &Ask) -> Result<Map<String, Value>, RequestError> {
        let auto = self.address.protocol == McpProtocol::Auto;
        let mut session = self.sessions.session();
        let mut modern = match self.address.protocol {
            McpProtocol::Modern => true,
            McpProtocol::Legacy => false,
            McpProtocol::Auto => session.is_none() && self.address.pinned != Some(McpProtocol::Legacy),
        };
        let (mut turned, mut renewed) = (false, false);
        // A call must not be used for detection: it could be executed, and its response could look like a
        // refusal.
        let known = self.address.pinned == Some(McpProtocol::Modern) || self.sessions.is_modern();
        if auto && modern && ask.acts() && !known {
            modern = self.speaks_modern().await?;
            turned = true;
        }
        for _ in 0..ROUNDS {
            if modern {
                match self.without_session(ask, auto && !turned).await? {
                    Some(result) => return Ok(result),
                    None => (modern, turned) = (false, true),
                }
                continue;
            }
            let known = match session.take() {
                Some(known) => known,
                None => self.initialize().await?,
            };
            let had_id = known.id.is_some();
            match self.exchange(ask, &Era::Legacy(known)).await? {
                ServerResponse::Result(result) => return Ok(result),
                ServerResponse::Error(error) => return Err(RequestError::Rpc(error)),
                ServerResponse::Refused(refused) => {
                    let wants_modern = auto && !turned && wants_modern(refused.status, &refused.body);
                    if wants_modern && (!ask.acts() || self.speaks_modern().await?) {
                        self.learn(None)?;
                        (modern, turned) = (true, true);
                    } else if had_id && !renewed && lost_session(refused.status, &refused.body, &refused.id) {
                        renewed = true;
                    } else {
                        return Err(self.refused(refused));
                    }
                }
            }
        }
        let text = format!(
            "The MCP server \"{}\" takes requests neither of {MODERN} nor of {LEGACY}.",
            self.address.server
        );
        Err(TransportError::new(PROTOCOL, text).into())
    }

    /// Sends a request in the modern era. `None` when it was not executed and the server requires a session;
    /// only if `may_turn`.
    async fn without_session(
        &self,
        ask: &Ask,
        may_turn: bool,
    ) -> Result<Option<Map<String, Value>>, RequestError> {
        let mut repeated = false;
        loop {
            let failed = match self.exchange(ask, &Era::Modern).await? {
                ServerResponse::Result(result) => {
                    self.sessions.record_modern();
                    return Ok(Some(result));
                }
                ServerResponse::Error(error) if may_turn && wants_legacy(&error) => RequestError::Rpc(error),
                ServerResponse::Error(error) => return Err(RequestError::Rpc(error)),
                ServerResponse::Refused(refused) => {
                    match refusal(refused.status, &refused.body, &refused.id, ask.acts()) {
                        Some(Refusal::Legacy) if may_turn => self.refused(refused),
                        Some(Refusal::Again) if !repeated => {
                            repeated = true;
                            continue;
                        }
                        _ => return Err(self.refused(refused)),
                    }
                }
            };
            // The response may come from a gateway, or from the tool. `server/discover` decides whether the
            // call may be repeated.
            return if ask.acts() && self.speaks_modern().await? { Err(failed) } else { Ok(None) };
        }
    }

    /// Whether the server supports the modern protocol, according to `server/discover`, which has no side
    /// effects.
    async fn speaks_modern(&self) -> Result<bool, RequestError> {
        let ask = Ask::discover();
        let mut repeated = false;
        let is_modern = loop {
            let refused = match self.exchange(&ask, &Era::Modern).await? {
                ServerResponse::Result(result) => break names_modern(&result),
                ServerResponse::Error(error) => break is_modern_error(200, &error),
                ServerResponse::Refused(refused) => refused,
            };
            match refusal(refused.status, &refused.body, &refused.id, false) {
                None => return Err(self.refused(refused)),
                Some(Refusal::Again) if !repeated => repeated = true,
                Some(_) => {
                    let error = error_in(&refused.body).map(|(error, _)| error);
                    break error.is_some_and(|error| is_modern_error(refused.status, &error));
                }
            }
        };
        if is_modern {
            self.sessions.record_modern();
        }
        Ok(is_modern)
    }

    /// Starts a session.
    async fn initialize(&self) -> Result<Session, RequestError> {
        let message = self.message(&Ask::initialize(), None);
        let (came, id) = self.send_for_session(message).await?;
        let result = match came {
            ServerResponse::Result(result) => result,
            ServerResponse::Error(error) => return Err(RequestError::Rpc(error)),
            ServerResponse::Refused(refused) => return Err(self.refused(refused)),
        };
        let version = result.get("protocolVersion").and_then(Value::as_str).unwrap_or(LEGACY);
        let fits = |text: &str| {
            !text.is_empty() && text.len() <= 512 && text.bytes().all(|byte| byte.is_ascii_graphic())
        };
        if !fits(version) || id.as_deref().is_some_and(|id| !fits(id)) {
            let text = format!(
                "The MCP server \"{}\" began a session with a name that no header can carry.",
                self.address.server
            );
            return Err(TransportError::new(PROTOCOL, text).into());
        }
        let session = Session { id, version: version.to_owned() };
        self.learn(Some(&session))?;
        self.notify(&Era::Legacy(session.clone()), ask::initialized()).await?;
        Ok(session)
    }

    fn learn(&self, session: Option<&Session>) -> Result<(), RequestError> {
        let failed = |error: error::Error| TransportError::new(UNREACHABLE, error.into_message());
        Ok(self.sessions.store(session).map_err(failed)?)
    }

    fn message(&self, ask: &Ask, era: Option<&Era>) -> Message {
        let id = exchange::request_id(&**self.context.host());
        let (headers, body) = ask.written(&id, era, &self.asker);
        Message { id, headers: self.with_own(headers), body }
    }

    /// Adds the headers of the trace and the definition. The protocol's headers take precedence.
    fn with_own(&self, mut headers: Vec<(String, String)>) -> Vec<(String, String)> {
        for (name, value) in self.trace.iter().chain(&self.address.headers) {
            if headers.iter().all(|(known, _)| known != name) {
                headers.push((name.clone(), value.clone()));
            }
        }
        headers
    }

    /// The failure for a refused request.
    fn refused(&self, refused: RefusedResponse) -> RequestError {
        let server = &self.address.server;
        let said = error_in(&refused.body).filter(|_| !matches!(refused.status, 401 | 403 | 500..));
        if let Some((error, _)) = said {
            return RequestError::Rpc(error);
        }
        let status = refused.status;
        let said = || {
            let body = String::from_utf8_lossy(&refused.body).into_owned();
            self.context.without_secrets(body).cut(limits::HTTP_TOOL_ERROR_BYTES).to_string()
        };
        let trouble = match status {
            300..=399 => TransportError::new(
                UNREACHABLE,
                format!("http {status} from the MCP server \"{server}\": a redirect, which is not followed"),
            ),
            401 | 403 => {
                let text = format!(
                    "http {status} from the MCP server \"{server}\": the credentials that its definition sends in `headers` are missing, or they are not taken. {}",
                    said()
                );
                let challenge = Challenge::of(refused.challenge.as_deref().unwrap_or_default());
                let lacks = status == 401 || challenge.error.as_deref() == Some("insufficient_scope");
                let challenge = lacks.then(|| Box::new(challenge));
                TransportError { challenge, ..TransportError::new(UNAUTHORIZED, text) }
            }
            _ => TransportError::new(
                UNREACHABLE,
                format!("http {status} from the MCP server \"{server}\": {}", said()),
            ),
        };
        match RetryOn::of_status(status) {
            Some(kind) => trouble.passing(kind),
            None => trouble,
        }
        .into()
    }
}
