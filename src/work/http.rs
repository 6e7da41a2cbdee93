//! Requests of `run.http`, for all kinds of work (docs/tools.md): one signed POST with limits on the
//! response's size and time. Redirects are not followed, and private targets are refused unless the
//! deployment lists them.

use std::borrow::Cow;

use bytes::Bytes;
use futures::StreamExt;
use serde_json::Value;

use crate::definitions::retry::RetryOn;
use crate::definitions::{Http, template};
use crate::host::Host;
use crate::host::http::{HeaderSelection, Request};
use crate::text::decoded;
use crate::work::outbound::{self, UrlOrigin};
use crate::work::timeout::Deadline;
use crate::work::{Failure, WorkContext};
use crate::{limits, signing};

/// A request, sent once.
pub(super) struct SignedPost<'a> {
    /// The name of the work, for messages.
    pub(super) name: &'a str,
    pub(super) http: &'a Http,
    /// Milliseconds; 60,000 by default and 600,000 at most.
    pub(super) timeout_ms: Option<u64>,
    pub(super) idempotency_key: &'a str,
    /// Headers with the trace and the current span.
    pub(super) trace: Vec<(String, String)>,
    /// Microseconds since 1970; part of the signature.
    pub(super) now_us: i64,
    /// Sent as JSON.
    pub(super) body: Value,
}

/// A response.
#[derive(Debug)]
pub(crate) struct PostResponse {
    pub(super) status: u16,
    /// Only `content-type`; all headers for a response other than 2xx.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl PostResponse {
    /// The body, decoded with the charset of its `content-type`.
    pub(super) fn text(&self) -> Cow<'_, str> {
        let content_type = self.headers.iter().find(|(name, _)| name == "content-type");
        decoded(&self.body, content_type.map_or("", |(_, value)| value))
    }

    /// The error text of a response other than 2xx, without secrets.
    pub(super) fn refusal(&self, context: &dyn WorkContext, name: &str) -> Option<String> {
        match self.status {
            200..300 => None,
            300..400 => Some(format!("http {} from {name}: a redirect, which is not followed", self.status)),
            status => {
                let said =
                    context.without_secrets(self.text().into_owned()).cut(limits::HTTP_TOOL_ERROR_BYTES);
                Some(format!("http {status} from {name}: {said}"))
            }
        }
    }
}

/// Sends the request once. `env` resolves the variables in its URL and headers.
pub(super) async fn post_signed(
    context: &dyn WorkContext,
    post: SignedPost<'_>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<PostResponse, Failure> {
    context.ready(post.http).await?;
    let request = request(context, &post, env).map_err(Failure::Failed)?;
    let limit_ms = post.timeout_ms.unwrap_or((limits::HTTP_TOOL_US / 1000) as u64);
    let limit_ms = limit_ms.min(limits::HTTP_TOOL_MAX_MS);
    context.counts_request();
    let exchange = exchange(&**context.host(), post.name, request);
    let answer = Deadline::for_ms(&**context.host(), limit_ms).within(exchange).await;
    answer.ok_or(Failure::Late(limit_ms))?
}

fn request(
    context: &dyn WorkContext,
    post: &SignedPost<'_>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Request, String> {
    let name = post.name;
    let deployment = |variable: &str| context.deployment_variable(variable);
    let unset = |error: template::Error| format!("\"{name}\" is not set up: {error}");
    let url = template::render_url(&post.http.url, &deployment, env).map_err(unset)?;
    if let Some(what) = outbound::refused(&**context.host(), &url) {
        return Err(format!("\"{name}\" points to {what}, which is not allowed here."));
    }
    let body = post.body.to_string();
    let mut headers = vec![
        ("content-type".to_owned(), "application/json".to_owned()),
        ("idempotency-key".to_owned(), post.idempotency_key.to_owned()),
    ];
    headers.extend(post.trace.iter().cloned());
    if let Some(secret) = context.host().var("BOBBIN_SIGNING_SECRET") {
        let signature = signing::sign(&secret, post.now_us / limits::SECOND_US, body.as_bytes());
        headers.push(("x-bobbin-signature".to_owned(), signature));
    }
    for (header, value) in &post.http.headers {
        let value = template::render(value, env).map_err(unset)?;
        let header = header.to_ascii_lowercase();
        headers.retain(|(other, _)| *other != header);
        headers.push((header, value));
    }
    Ok(Request { method: "POST", url, headers, body: Some(Bytes::from(body)), reads: HeaderSelection::Type })
}

async fn exchange(host: &dyn Host, name: &str, request: Request) -> Result<PostResponse, Failure> {
    let network = |text| Failure::MayPass(RetryOn::Network, text);
    let sent = outbound::send(host, request, UrlOrigin::ByDeployment).await;
    let mut response = sent.map_err(|error| network(format!("\"{name}\" could not be reached: {error}")))?;
    let mut body = Vec::new();
    while let Some(chunk) = response.body.next().await {
        let chunk = chunk.map_err(|error| network(format!("The answer of \"{name}\" broke off: {error}")))?;
        if body.len() + chunk.len() > limits::HTTP_TOOL_BYTES {
            let limit = limits::HTTP_TOOL_BYTES;
            let text = format!("The answer of \"{name}\" is over {limit} bytes, the limit.");
            return Err(Failure::Failed(text));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(PostResponse { status: response.status, headers: response.headers, body })
}
