//! The two streams of a thread: `GET /stream`, a WebSocket that is passed through to the object, and `GET /events`,
//! server-sent events that the Worker bridges from such a socket (docs/http.md).

use bobbin::access::Caller;
use bobbin::host::Filter;
use bobbin::limits::{SSE_HEARTBEAT_MS, SSE_LIFE_MS, SSE_PATIENCE_MS};
use bobbin::request::Query;
use bobbin::{Code, Error, Result};
use wasm_bindgen::prelude::*;

use crate::answer::{self, Response};
use crate::auth::expires_ms;
use crate::bindings::{FetchInit, FetchResponse, Head, Namespace, date_now, thrown};
use crate::remote::{self, Answer};
use crate::sockets::Subscription;
use crate::upgrade::{HEADER, Listen};

#[wasm_bindgen(module = "/platform.js")]
extern "C" {
    #[wasm_bindgen(catch)]
    fn bridge(
        socket: &JsValue,
        ctx: &JsValue,
        life_ms: f64,
        heartbeat_ms: u32,
        patience_ms: u32,
        origin: Option<&str>,
    ) -> Result<Response, JsValue>;
}

/// Deepest level that a filter may ask for.
const DEPTH_MAX: u32 = 8;

/// What the client asks for.
pub(crate) struct EventsRequest<'a> {
    /// The thread's id.
    pub(crate) thread: &'a str,
    /// Who asks.
    pub(crate) caller: Caller,
    /// The request's query: `includeSilent`, `depth`, `reasoning`.
    pub(crate) query: &'a Query,
    /// A page's origin that may read the answer.
    pub(crate) origin: Option<&'a str>,
}

/// `GET /stream`.
pub(crate) async fn stream(threads: &Namespace, head: &Head, wanted: EventsRequest<'_>) -> Result<Response> {
    if !head.upgrade.as_deref().is_some_and(|upgrade| upgrade.eq_ignore_ascii_case("websocket")) {
        return Err(Error::field("upgrade", "This route is a WebSocket.")
            .hint("Connect with a WebSocket client, or read …/events for server-sent events."));
    }
    let origin = wanted.origin;
    let last = head.last_event_id.clone();
    let response = open(threads, wanted, false, last).await?;
    if response.web_socket().is_object() {
        // The platform joins the two sockets; this Worker has no part in it from here on.
        return Ok(JsValue::from(response).unchecked_into());
    }
    refused(response, origin).await
}

/// `GET /events`. `ctx` is the request's context, which lives as long as the stream.
pub(crate) async fn events(
    threads: &Namespace,
    head: &Head,
    ctx: &JsValue,
    wanted: EventsRequest<'_>,
) -> Result<Response> {
    let origin = wanted.origin;
    let life = expires_ms(&wanted.caller)
        .map_or(f64::from(SSE_LIFE_MS), |until| (until - date_now()).clamp(0.0, f64::from(SSE_LIFE_MS)));
    // A page's EventSource cannot set the header on its first connection, only a query.
    let last = head.last_event_id.clone().or_else(|| wanted.query.get("lastEventId").map(str::to_owned));
    let response = open(threads, wanted, true, last).await?;
    let socket = response.web_socket();
    if !socket.is_object() {
        return refused(response, origin).await;
    }
    bridge(&socket, ctx, life, SSE_HEARTBEAT_MS, SSE_PATIENCE_MS, origin)
        .map_err(|error| Error::internal(thrown(&error)))
}

/// Asks the object for a socket.
async fn open(
    threads: &Namespace,
    wanted: EventsRequest<'_>,
    events: bool,
    last_event_id: Option<String>,
) -> Result<FetchResponse> {
    let filter = Filter {
        silent: wanted.query.flag("includeSilent")?,
        depth: wanted.query.number("depth", 0, DEPTH_MAX)?,
        reasoning: wanted.query.flag("reasoning")?,
        items: wanted.query.flag("items")?,
        // Who says nothing is told.
        quiet: wanted.query.get("progress").is_some() && !wanted.query.flag("progress")?,
        events,
    };
    let until_ms = expires_ms(&wanted.caller);
    let subscription = Subscription { filter, until_ms };
    let listen = Listen { caller: wanted.caller, subscription, last_event_id };
    let pair = |name: &str, value: &str| js_sys::Array::of2(&name.into(), &value.into());
    let init = FetchInit::new();
    init.set_headers(&js_sys::Array::of2(&pair("upgrade", "websocket"), &pair(HEADER, &listen.to_header()?)));
    let stub = threads.get_by_name(wanted.thread).map_err(|error| Error::internal(thrown(&error)))?;
    stub.fetch("https://thread/", &init).await.map_err(|error| remote::lost(&error))
}

/// The object's error, as an answer of ours.
async fn refused(response: FetchResponse, origin: Option<&str>) -> Result<Response> {
    let status = response.status();
    let body = response.text().await.map_err(|error| remote::lost(&error))?;
    if status < 400 {
        return Err(Error::new(Code::Overloaded, "The thread opened no stream; try again."));
    }
    answer::of_answer(&Answer { status, retry_after: None, body }, origin)
        .map_err(|error| Error::internal(thrown(&error)))
}
