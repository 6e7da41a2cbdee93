//! The two streams of a thread: `GET /stream`, a WebSocket that is passed through to the object, and `GET /events`,
//! server-sent events that the Worker bridges from such a socket (docs/streams.md).

use bobbin::access::Caller;
use bobbin::engine::feed::{ENDED, FeedTarget};
use bobbin::host::Filter;
use bobbin::limits::{SSE_HEARTBEAT_MS, SSE_LIFE_MS, SSE_PATIENCE_MS};
use bobbin::request::Query;
use bobbin::{Code, Error, Result};
use wasm_bindgen::prelude::*;

use crate::answer::{self, Response};
use crate::auth::expires_ms;
use crate::bindings::{FetchInit, FetchResponse, Head, Namespace, date_now, thrown};
use crate::remote::{self, ObjectResponse};
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

#[wasm_bindgen(module = "/feed.js")]
extern "C" {
    #[wasm_bindgen(catch, js_name = feed)]
    fn feed_response(
        socket: &JsValue,
        objects: &Namespace,
        name: &str,
        header: &str,
        listen: &str,
        ctx: &JsValue,
        until_ms: f64,
        heartbeat_ms: u32,
        patience_ms: u32,
        origin: Option<&str>,
        extra: &str,
        encoder: JsValue,
    ) -> Result<Response, JsValue>;

    /// The run that an object's socket follows, if it has begun.
    #[wasm_bindgen(js_name = runOf)]
    fn run_of(response: &FetchResponse) -> Option<String>;

    #[wasm_bindgen(catch, js_name = answered)]
    async fn answered_response(
        socket: &JsValue,
        objects: &Namespace,
        name: &str,
        header: &str,
        listen: &str,
        ctx: &JsValue,
        until_ms: f64,
        heartbeat_ms: u32,
        patience_ms: u32,
        origin: Option<&str>,
        extra: &str,
        encoder: JsValue,
        how: &str,
        within_ms: f64,
    ) -> Result<JsValue, JsValue>;

    /// The same, and closes the socket.
    #[wasm_bindgen(js_name = runAlone)]
    fn run_and_close(response: &FetchResponse) -> Option<String>;

    #[wasm_bindgen(catch, js_name = whole)]
    fn whole_response(text: &str, origin: Option<&str>, extra: &str) -> Result<Response, JsValue>;
}

/// The header with the run of a response.
const RUN: &str = "x-bobbin-run";

/// Maximum depth of a filter.
const DEPTH_MAX: u32 = 8;

/// A client's request for events.
pub(crate) struct EventsRequest<'a> {
    /// The thread's id.
    pub(crate) thread: &'a str,
    /// The caller.
    pub(crate) caller: Caller,
    /// The request's query: `includeSilent`, `depth`, `reasoning`.
    pub(crate) query: &'a Query,
    /// A page's origin that may read the response.
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
        // The platform connects the two sockets. This Worker is not involved from here on.
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
    // An EventSource cannot set the header on its first connection, only a query.
    let last = head.last_event_id.clone().or_else(|| wanted.query.get("lastEventId").map(str::to_owned));
    if let Some(of) = feed_of(wanted.query)? {
        if last.as_deref().is_some_and(|id| id.starts_with(ENDED)) {
            // This status stops an EventSource from reconnecting.
            return answer::nothing(origin).map_err(|error| Error::internal(thrown(&error)));
        }
        let encoded = FeedEncoding { extra: Vec::new(), encoder: JsValue::UNDEFINED };
        return feed(threads, ctx, wanted, of, last, encoded).await;
    }
    let life = expires_ms(&wanted.caller)
        .map_or(f64::from(SSE_LIFE_MS), |until| (until - date_now()).clamp(0.0, f64::from(SSE_LIFE_MS)));
    let response = open(threads, wanted, true, last).await?;
    let socket = response.web_socket();
    if !socket.is_object() {
        return refused(response, origin).await;
    }
    bridge(&socket, ctx, life, SSE_HEARTBEAT_MS, SSE_PATIENCE_MS, origin)
        .map_err(|error| Error::internal(thrown(&error)))
}

/// The run in a query.
fn feed_of(query: &Query) -> Result<Option<FeedTarget>> {
    match (query.get("run"), query.get("after")) {
        (Some(_), Some(_)) => {
            Err(Error::field("after", "`run` and `after` both say which run.").hint("Send one of the two."))
        }
        (Some(run), None) => Ok(Some(FeedTarget::Run(run.to_owned()))),
        (None, Some(message)) => Ok(Some(FeedTarget::Message(message.to_owned()))),
        (None, None) => Ok(None),
    }
}

/// The encoding of a feed.
pub(crate) struct FeedEncoding {
    /// More headers.
    pub(crate) extra: Vec<(String, String)>,
    /// The encoder of its frames; undefined for none.
    pub(crate) encoder: JsValue,
}

/// The feed of a run as a response that ends with it.
pub(crate) async fn feed(
    threads: &Namespace,
    ctx: &JsValue,
    wanted: EventsRequest<'_>,
    of: FeedTarget,
    last_event_id: Option<String>,
    encoded: FeedEncoding,
) -> Result<Response> {
    let EventsRequest { thread, caller, query, origin } = wanted;
    let until_ms = expires_ms(&caller);
    let filter = filter_of(query, true)?;
    let listen =
        Listen { caller, subscription: Subscription { filter, until_ms }, last_event_id, feed: Some(of) };
    let listen = listen.to_header()?;
    let response = ask(threads, thread, &listen).await?;
    let socket = response.web_socket();
    if !socket.is_object() {
        return refused(response, origin).await;
    }
    let run = run_of(&response).map(|run| (RUN.to_owned(), run));
    let extra: Vec<_> = encoded.extra.into_iter().chain(run).collect();
    let extra = serde_json::to_string(&extra).map_err(Error::internal)?;
    feed_response(
        &socket,
        threads,
        thread,
        HEADER,
        &listen,
        ctx,
        until_ms.unwrap_or(-1.0),
        SSE_HEARTBEAT_MS,
        SSE_PATIENCE_MS,
        origin,
        &extra,
        encoded.encoder,
    )
    .map_err(|error| Error::internal(thrown(&error)))
}

/// The form of a response that an encoder makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseForm {
    /// A stream, unless it fails before the first output.
    Streamed,
    /// As one JSON value at the end.
    Whole,
    /// One JSON value of the output so far.
    Now,
    /// One JSON value at the end, or after this number of milliseconds.
    Within(i64),
}

impl ResponseForm {
    /// The bridge's name of the form, and its maximum time in milliseconds.
    const fn told(self) -> (&'static str, f64) {
        match self {
            ResponseForm::Streamed => ("streamed", -1.0),
            ResponseForm::Whole => ("whole", -1.0),
            ResponseForm::Now => ("now", -1.0),
            ResponseForm::Within(ms) => ("whole", ms as f64),
        }
    }
}

/// A response in another protocol, derived from the feed of a run; otherwise the thread's own response.
pub(crate) async fn answered(
    threads: &Namespace,
    ctx: &JsValue,
    wanted: EventsRequest<'_>,
    of: FeedTarget,
    how: ResponseForm,
    encoded: FeedEncoding,
) -> Result<std::result::Result<Response, ObjectResponse>> {
    let EventsRequest { thread, caller, query, origin } = wanted;
    let until_ms = expires_ms(&caller);
    // An encoder ends a response at the same pause when it is read again later.
    let filter = Filter { waits: true, ..filter_of(query, true)? };
    let subscription = Subscription { filter, until_ms };
    let listen = Listen { caller, subscription, last_event_id: None, feed: Some(of) }.to_header()?;
    let response = ask(threads, thread, &listen).await?;
    let socket = response.web_socket();
    if !socket.is_object() {
        let status = response.status();
        let body = response.text().await.map_err(|error| remote::lost(&error))?;
        return Ok(Err(ObjectResponse { status: status.max(400), retry_after: None, body }));
    }
    let extra = serde_json::to_string(&encoded.extra).map_err(Error::internal)?;
    let (how, within_ms) = how.told();
    let answered = answered_response(
        &socket,
        threads,
        thread,
        HEADER,
        &listen,
        ctx,
        until_ms.unwrap_or(-1.0),
        SSE_HEARTBEAT_MS,
        SSE_PATIENCE_MS,
        origin,
        &extra,
        encoded.encoder,
        how,
        within_ms,
    )
    .await;
    let answered = answered.map_err(|error| Error::internal(thrown(&error)))?;
    Ok(Ok(answered.unchecked_into()))
}

/// The run of a feed, if it has begun; `None` if the feed does not exist.
pub(crate) async fn run_alone(
    threads: &Namespace,
    wanted: EventsRequest<'_>,
    of: FeedTarget,
) -> Result<Option<String>> {
    let subscription = Subscription { filter: filter_of(wanted.query, true)?, until_ms: None };
    let listen = Listen { caller: wanted.caller, subscription, last_event_id: None, feed: Some(of) };
    let response = ask(threads, wanted.thread, &listen.to_header()?).await?;
    Ok(if response.web_socket().is_object() { run_and_close(&response) } else { None })
}

/// A complete response of server-sent events.
pub(crate) fn whole(text: &str, origin: Option<&str>, extra: &[(String, String)]) -> Result<Response> {
    let extra = serde_json::to_string(extra).map_err(Error::internal)?;
    whole_response(text, origin, &extra).map_err(|error| Error::internal(thrown(&error)))
}

/// Parses the filter of a query.
fn filter_of(query: &Query, events: bool) -> Result<Filter> {
    Ok(Filter {
        silent: query.flag("includeSilent")?,
        depth: query.number("depth", 0, DEPTH_MAX)?,
        reasoning: query.flag("reasoning")?,
        items: query.flag("items")?,
        // Progress is shown by default.
        quiet: query.get("progress").is_some() && !query.flag("progress")?,
        waits: false,
        events,
        feed: None,
    })
}

/// Requests a socket from the object.
async fn open(
    threads: &Namespace,
    wanted: EventsRequest<'_>,
    events: bool,
    last_event_id: Option<String>,
) -> Result<FetchResponse> {
    let filter = filter_of(wanted.query, events)?;
    let until_ms = expires_ms(&wanted.caller);
    let subscription = Subscription { filter, until_ms };
    let listen = Listen { caller: wanted.caller, subscription, last_event_id, feed: None };
    ask(threads, wanted.thread, &listen.to_header()?).await
}

async fn ask(threads: &Namespace, thread: &str, listen: &str) -> Result<FetchResponse> {
    let pair = |name: &str, value: &str| js_sys::Array::of2(&name.into(), &value.into());
    let init = FetchInit::new();
    init.set_headers(&js_sys::Array::of2(&pair("upgrade", "websocket"), &pair(HEADER, listen)));
    let stub = threads.get_by_name(thread).map_err(|error| Error::internal(thrown(&error)))?;
    stub.fetch("https://thread/", &init).await.map_err(|error| remote::lost(&error))
}

/// The object's error as the Worker's response.
async fn refused(response: FetchResponse, origin: Option<&str>) -> Result<Response> {
    let status = response.status();
    let body = response.text().await.map_err(|error| remote::lost(&error))?;
    if status < 400 {
        return Err(Error::new(Code::Overloaded, "The thread opened no stream; try again."));
    }
    answer::of_answer(&ObjectResponse { status, retry_after: None, body }, origin)
        .map_err(|error| Error::internal(thrown(&error)))
}
