//! One message to a server, and its response.

use bytes::Bytes;
use futures::StreamExt;
use serde_json::{Map, Value};

use crate::definitions::retry::RetryOn;
use crate::host::Host;
use crate::host::http::{FetchError, HeaderSelection, Request, Response};
use crate::limits;
use crate::mcp_client::Era;
use crate::mcp_client::ask::{self, Ask, answer_to};
use crate::mcp_client::reader::{InvalidResponse, Reader, ResumePoint, RpcError, ServerMessage};
use crate::work::mcp::{PROTOCOL, Peer, RequestError, TransportError, UNREACHABLE};
use crate::work::outbound::{self, UrlOrigin};

/// Maximum number of the server's own requests that are answered during one response.
const ANSWERED: usize = 16;

/// Maximum number of resumptions of a stream for one request.
const RESUMED: usize = 32;

/// A serialized message.
pub(super) struct Message {
    pub(super) id: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

/// The response.
pub(super) enum ServerResponse {
    Result(Map<String, Value>),
    Error(RpcError),
    /// A status other than 2xx.
    Refused(RefusedResponse),
}

/// A response other than 2xx.
pub(super) struct RefusedResponse {
    pub(super) status: u16,
    /// The beginning of the body.
    pub(super) body: Vec<u8>,
    /// The id of the request.
    pub(super) id: String,
    /// `WWW-Authenticate`.
    pub(super) challenge: Option<String>,
}

/// An id that is unique among all requests to a server.
pub(super) fn request_id(host: &dyn Host) -> String {
    format!("{:032x}", u128::from_be_bytes(host.random()))
}

impl Peer<'_> {
    /// Sends a request and reads its response.
    pub(super) async fn exchange(&self, ask: &Ask, era: &Era) -> Result<ServerResponse, RequestError> {
        let message = self.message(ask, Some(era));
        let id = message.id.clone();
        let response = self.send(message, HeaderSelection::Type).await?;
        self.read(response, id, era).await
    }

    /// The same for `initialize`, whose response headers contain the session.
    pub(super) async fn send_for_session(
        &self,
        message: Message,
    ) -> Result<(ServerResponse, Option<String>), RequestError> {
        let id = message.id.clone();
        let response = self.send(message, HeaderSelection::All).await?;
        let session = response.header("mcp-session-id").map(str::to_owned);
        Ok((self.read(response, id, &Era::Modern).await?, session))
    }

    /// Sends a notification, which has no response.
    pub(super) async fn notify(&self, era: &Era, body: String) -> Result<(), RequestError> {
        let headers = self.with_own(ask::headers(Some(era)));
        // The response does not matter: the next request shows whether the server accepted it.
        self.send(Message { id: String::new(), headers, body }, HeaderSelection::Type).await.map(drop)
    }

    async fn send(&self, message: Message, reads: HeaderSelection) -> Result<Response, RequestError> {
        self.context.counts_request();
        let request = Request {
            method: "POST",
            url: self.address.url.clone(),
            headers: message.headers,
            body: Some(Bytes::from(message.body)),
            reads,
        };
        let sent = outbound::send(&**self.context.host(), request, UrlOrigin::ByDeployment).await;
        sent.map_err(|error| self.network(format_args!("could not be reached: {error}")))
    }

    fn network(&self, what: std::fmt::Arguments<'_>) -> RequestError {
        let text = format!("The MCP server \"{}\" {what}", self.address.server);
        TransportError::new(UNREACHABLE, text).passing(RetryOn::Network).into()
    }

    fn broken(&self, broken: &InvalidResponse) -> RequestError {
        let server = &self.address.server;
        match broken {
            // It may have been lost in transit.
            InvalidResponse::Ended => self.network(format_args!("broke off its answer")),
            InvalidResponse::TooLarge | InvalidResponse::TooMany | InvalidResponse::Malformed(_) => {
                TransportError::new(PROTOCOL, format!("The answer of the MCP server \"{server}\" {broken}."))
                    .into()
            }
        }
    }

    async fn read(
        &self,
        mut response: Response,
        id: String,
        era: &Era,
    ) -> Result<ServerResponse, RequestError> {
        if !(200..300).contains(&response.status) {
            let challenge = response.header("www-authenticate").map(str::to_owned);
            let mut body = Vec::new();
            // The body may break off; the refusal is already certain.
            while let Some(Ok(chunk)) = response.body.next().await {
                body.extend_from_slice(&chunk);
                if body.len() > limits::HTTP_TOOL_BYTES {
                    break;
                }
            }
            return Ok(ServerResponse::Refused(RefusedResponse {
                status: response.status,
                body,
                id,
                challenge,
            }));
        }
        let mut reader = Reader::new(response.header("content-type"), &id);
        let mut answered = 0;
        for _ in 0..=RESUMED {
            let ended = match self.through(&mut response, &mut reader, era, &mut answered).await {
                Ok(Some(came)) => return Ok(came),
                Ok(None) => self.broken(&InvalidResponse::Ended),
                Err(failed) => failed,
            };
            let may_resume = matches!(&ended, RequestError::Trouble(trouble) if trouble.may_pass == Some(RetryOn::Network));
            let place = reader.place().filter(|_| may_resume && matches!(era, Era::Legacy(_)));
            let Some(place) = place else { return Err(ended) };
            match self.resume(era, place).await {
                Some(again) => response = again,
                None => return Err(ended),
            }
            reader.resumed();
        }
        Err(self.broken(&InvalidResponse::Ended))
    }

    /// Reads a response until it contains the result, or ends.
    async fn through(
        &self,
        response: &mut Response,
        reader: &mut Reader,
        era: &Era,
        answered: &mut usize,
    ) -> Result<Option<ServerResponse>, RequestError> {
        let broke = |error: FetchError| self.network(format_args!("broke off its answer: {error}"));
        while let Some(chunk) = response.body.next().await {
            let said = reader.push(&chunk.map_err(broke)?).map_err(|wrong| self.broken(&wrong))?;
            if let Some(came) = self.take(said, era, answered).await? {
                return Ok(Some(came));
            }
        }
        let said = reader.finish().map_err(|wrong| self.broken(&wrong))?;
        self.take(said, era, answered).await
    }

    /// Resumes a stream that ended before its response, for servers with sessions (2025-11-25, transports:
    /// resumability). `None` if the server does not support it.
    async fn resume(&self, era: &Era, place: ResumePoint) -> Option<Response> {
        let host = self.context.host();
        host.sleep_until(host.now_us() + i64::try_from(place.after_ms).unwrap_or_default() * 1000).await;
        let mut headers = ask::headers(Some(era));
        headers.retain(|(name, _)| !matches!(name.as_str(), "content-type" | "accept"));
        headers.push(("accept".to_owned(), "text/event-stream".to_owned()));
        headers.push(("last-event-id".to_owned(), place.id));
        self.context.counts_request();
        let url = self.address.url.clone();
        let headers = self.with_own(headers);
        let request = Request { method: "GET", url, headers, body: None, reads: HeaderSelection::Type };
        let response = outbound::send(&**host, request, UrlOrigin::ByDeployment).await.ok()?;
        let streams =
            response.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
        (response.status == 200 && streams).then_some(response)
    }

    /// Finds the response among the messages. In a session, requests of the server are answered, because it
    /// would wait.
    async fn take(
        &self,
        said: Vec<ServerMessage>,
        era: &Era,
        answered: &mut usize,
    ) -> Result<Option<ServerResponse>, RequestError> {
        for said in said {
            match said {
                ServerMessage::Answer(Ok(result)) => return Ok(Some(ServerResponse::Result(result))),
                ServerMessage::Answer(Err(error)) => {
                    return Ok(Some(ServerResponse::Error(RpcError { asked: *answered > 0, ..error })));
                }
                ServerMessage::Asks(id, method) if matches!(era, Era::Legacy(_)) && *answered < ANSWERED => {
                    *answered += 1;
                    self.notify(era, answer_to(&id, &method)).await?;
                }
                ServerMessage::Asks(..) => {}
            }
        }
        Ok(None)
    }
}
