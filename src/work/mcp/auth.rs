//! Finds authorization servers, and requests tokens. URLs come from foreign servers, so the same restrictions
//! apply as to MCP servers. URLs on another host than the server's are treated as chosen by others, redirects
//! are not followed, and responses are limited in size.

use bytes::Bytes;
use futures::StreamExt;

use crate::host::http::{HeaderSelection, Request, is_same_place};
use crate::limits;
use crate::mcp_client::oauth::discovery::{Issuer, Resource};
use crate::mcp_client::oauth::grant::{Client, Grant, NoToken, Token};
use crate::mcp_client::oauth::{Challenge, discovery, grant, registration};
use crate::work::WorkContext;
use crate::work::outbound::{self, UrlOrigin, refused_in_clear};
use crate::work::timeout::Deadline;

/// Time limit of one request, in milliseconds.
const LIMIT_MS: u64 = 20_000;

/// The authorization server of a resource.
#[derive(Clone, Debug)]
pub(crate) struct AuthorizationServer {
    pub(crate) resource: Resource,
    pub(crate) issuer: Issuer,
}

/// Finds the authorization server of an MCP server. `wanted`: the issuer in its definition.
///
/// # Errors
/// The reason why none was found, without a full stop.
pub(crate) async fn discover(
    context: &dyn WorkContext,
    server: &str,
    challenge: &Challenge,
    wanted: Option<&str>,
) -> Result<AuthorizationServer, String> {
    let addresses = discovery::resource_addresses(server, challenge);
    let resource = first(context, server, &addresses, |body| discovery::resource(server, body)).await?;
    let issuer = match wanted {
        Some(wanted) => resource.issuers.iter().find(|issuer| *issuer == wanted).ok_or_else(|| {
            format!(
                "the server does not name {wanted}, which its definition asks for, but {}",
                resource.issuers.join(", ")
            )
        })?,
        // No order of preference is defined.
        None => resource.issuers.first().ok_or("it names no authorization server")?,
    };
    let addresses = discovery::issuer_addresses(issuer);
    let issuer = first(context, server, &addresses, |body| discovery::issuer(issuer, body)).await?;
    if let Some(place) = refused_in_clear(&**context.host(), &issuer.token_endpoint) {
        return Err(format!("{} is at {place}", issuer.issuer));
    }
    Ok(AuthorizationServer { resource, issuer })
}

/// Parses the first URL that responds with 200. If that response is invalid, the search ends.
async fn first<T>(
    context: &dyn WorkContext,
    server: &str,
    addresses: &[String],
    read: impl Fn(&[u8]) -> Result<T, String>,
) -> Result<T, String> {
    let mut failed = String::new();
    for address in addresses {
        let headers = vec![("accept".to_owned(), "application/json".to_owned())];
        let request = Request {
            method: "GET",
            url: address.clone(),
            headers,
            body: None,
            reads: HeaderSelection::Type,
        };
        match send(context, server, request).await {
            Ok((200, body)) => return read(&body).map_err(|why| format!("{address}: {why}")),
            Ok((status, _)) => failed = format!("{address}: http {status}"),
            Err(why) => failed = format!("{address}: {why}"),
        }
    }
    Err(failed)
}

/// Requests a token.
pub(crate) async fn token(
    context: &dyn WorkContext,
    client: &Client,
    grant: &Grant<'_>,
    (scope, secret): (&str, Option<&str>),
    before: Option<&Token>,
) -> Result<Token, NoToken> {
    let asked = client.asks(grant, scope, secret);
    let (headers, body) = (asked.headers.clone(), Some(Bytes::from(asked.body.clone())));
    let url = client.endpoint.clone();
    let request = Request { method: "POST", url, headers, body, reads: HeaderSelection::Type };
    let sent = send(context, &client.resource, request).await;
    let (status, body) = sent.map_err(|why| NoToken::Failed(format!("{}: {why}", client.endpoint)))?;
    let now = context.host().now_us();
    // Confidential parts of the request are removed from the server's texts.
    let unsaid = |text: &str| asked.unsaid(text);
    grant::token(client.clone(), (status, &body), &unsaid, now, scope, before)
}

/// Registers this deployment at an authorization server, as a client.
///
/// # Errors
/// The reason why it failed, without a full stop.
pub(crate) async fn register(
    context: &dyn WorkContext,
    found: &AuthorizationServer,
    origin: &str,
) -> Result<Client, String> {
    let AuthorizationServer { resource, issuer } = found;
    let url = issuer.registration_endpoint.clone().filter(|url| !url.is_empty());
    let url = url.ok_or_else(|| {
        format!("{} takes neither the address of a description nor registrations: the definition needs a `clientId`", issuer.issuer)
    })?;
    let method = registration::method_for(issuer).ok_or_else(|| {
        format!("{} wants clients to show who they are in a way that is not known here", issuer.issuer)
    })?;
    let body = crate::json!(registration::description(origin, method)).to_string();
    let headers =
        ["content-type", "accept"].map(|name| (name.to_owned(), "application/json".to_owned())).to_vec();
    let body = Some(Bytes::from(body));
    let request = Request { method: "POST", url: url.clone(), headers, body, reads: HeaderSelection::Type };
    let sent = send(context, &resource.resource, request).await;
    let (status, body) = sent.map_err(|why| format!("{url}: {why}"))?;
    registration::registered(issuer, (&resource.resource, origin), method, (status, &body))
        .map_err(|why| format!("{}: {why}", issuer.issuer))
}

/// Sends a request; returns status and body. Only the address of `server` was chosen by the deployment.
async fn send(context: &dyn WorkContext, server: &str, request: Request) -> Result<(u16, Vec<u8>), String> {
    if let Some(place) = refused_in_clear(&**context.host(), &request.url) {
        return Err(format!("{place}, which is not allowed here"));
    }
    context.counts_request();
    let chosen =
        if is_same_place(server, &request.url) { UrlOrigin::ByDeployment } else { UrlOrigin::ByOthers };
    let exchange = async {
        let sent = outbound::send(&**context.host(), request, chosen).await;
        let mut response = sent.map_err(|error| error.to_string())?;
        let mut body = Vec::new();
        while let Some(chunk) = response.body.next().await {
            body.extend_from_slice(&chunk.map_err(|error| error.to_string())?);
            if body.len() > limits::MCP_AUTH_BYTES {
                return Err(format!("more than {} bytes", limits::MCP_AUTH_BYTES));
            }
        }
        Ok((response.status, body))
    };
    let answered = Deadline::for_ms(&**context.host(), LIMIT_MS).within(exchange).await;
    answered.unwrap_or_else(|| Err(format!("no answer within {} s", LIMIT_MS / 1000)))
}
