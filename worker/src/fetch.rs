//! Outgoing requests. Dropping the future or the body cancels them.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use bobbin::host::ai::{AI_BINDING, AiRequest};
use bobbin::host::http::{FetchError, HeaderSelection, Request, Response, is_plain};
use bytes::Bytes;
use futures::stream;
use wasm_bindgen::prelude::*;

use crate::bindings::{ChunkCallback, Outgoing, thrown};

type Result<T> = std::result::Result<T, FetchError>;

/// Sends a request without following redirects. A URL whose host the platform could parse differently from
/// the check is refused.
pub(crate) async fn fetch(request: Request) -> Result<Response> {
    if !is_plain(&request.url) {
        let text = "the address is not plain http or https with a host in ASCII";
        return Err(FetchError(format!("{}: {text}", authority(&request.url))));
    }
    let headers = json(&request.headers)?;
    let sent = request.body.as_ref().map(copied);
    let send = |take: &ChunkCallback| Outgoing::new(request.method, &request.url, &headers, sent, take);
    answered(authority(&request.url), request.reads == HeaderSelection::All, send).await
}

/// Calls a model of Workers AI.
pub(crate) async fn ask_ai(ai: Option<JsValue>, request: AiRequest) -> Result<Response> {
    let Some(ai) = ai else { return Err(FetchError(format!("the binding {AI_BINDING} is not there"))) };
    let (gateway, input) = (request.gateway.as_deref().unwrap_or_default(), copied(&request.input));
    let ask = |take: &ChunkCallback| Outgoing::of_model("POST", &request.model, gateway, input, take, &ai);
    answered(&request.model, false, ask).await
}

/// Copied out of wasm memory, which may move during the request.
fn copied(body: &Bytes) -> js_sys::Uint8Array {
    js_sys::Uint8Array::from(body.as_ref())
}

/// The response to a request whose chunks arrive through a closure. `whom`: the name in errors.
async fn answered(
    whom: &str,
    all: bool,
    send: impl FnOnce(&ChunkCallback) -> std::result::Result<Outgoing, JsValue>,
) -> Result<Response> {
    let failed = |error: JsValue| FetchError(format!("{whom}: {}", thrown(&error)));
    let inbox = Rc::<Inbox>::default();
    let take = {
        let inbox = inbox.clone();
        ChunkCallback::wrap_assert_unwind_safe(Box::new(move |chunk, error| inbox.put(chunk, error)))
    };
    let outgoing = send(&take).map_err(failed)?;
    let body = FetchBody { outgoing, _take: take, inbox, asked: false, ended: false };
    let (status, headers) = head_of(&body.outgoing.head(all).await.map_err(failed)?)?;
    let body =
        Box::pin(stream::unfold(
            body,
            |mut body| async move { body.next().await.map(|chunk| (chunk, body)) },
        ));
    Ok(Response { status, headers, body })
}

/// Host and port of a URL. The rest may contain secrets.
fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

/// Parses the head of a response from platform.js: the status, a line break, the headers as JSON.
pub(crate) fn head_of(head: &JsValue) -> Result<(u16, Vec<(String, String)>)> {
    let head = head.as_string().unwrap_or_default();
    let (status, headers) = head.split_once('\n').unwrap_or_default();
    let status = status.parse().map_err(|_| FetchError(format!("no status: {status}")))?;
    let headers = bobbin::json::from_str(headers).map_err(|error| FetchError(error.to_string()))?;
    Ok((status, headers))
}

fn json(headers: &[(String, String)]) -> Result<String> {
    serde_json::to_string(headers).map_err(|error| FetchError(error.to_string()))
}

/// Receives data from the JavaScript side.
#[derive(Default)]
struct Inbox {
    /// The result of the last read: a chunk, the end, or an error.
    read: RefCell<Option<Result<Option<Bytes>>>>,
    waker: RefCell<Option<Waker>>,
}

impl Inbox {
    fn put(&self, chunk: Option<Vec<u8>>, error: Option<String>) {
        let read = match error {
            Some(error) => Err(FetchError(error)),
            None => Ok(chunk.map(Bytes::from)),
        };
        self.read.replace(Some(read));
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// The body of a response.
struct FetchBody {
    outgoing: Outgoing,
    /// Kept as long as the JavaScript side may call it.
    _take: ChunkCallback,
    inbox: Rc<Inbox>,
    /// Whether a read is in progress. It survives a dropped `next`, and the following `next` gets its result.
    asked: bool,
    /// Whether the body has ended.
    ended: bool,
}

impl FetchBody {
    async fn next(&mut self) -> Option<Result<Bytes>> {
        if self.ended {
            return None;
        }
        if !self.asked {
            if let Err(error) = self.outgoing.next() {
                return Some(Err(FetchError(thrown(&error))));
            }
            self.asked = true;
        }
        let read = poll_fn(|context| match self.inbox.read.take() {
            Some(read) => Poll::Ready(read),
            None => {
                self.inbox.waker.replace(Some(context.waker().clone()));
                Poll::Pending
            }
        });
        let read = read.await;
        self.asked = false;
        if !matches!(read, Ok(Some(_))) {
            self.ended = true;
        }
        read.transpose()
    }
}

impl Drop for FetchBody {
    fn drop(&mut self) {
        // Must come before the closure is dropped, because nothing may call it afterwards. If the
        // cancellation fails, the error cannot be reported from here.
        let _ = self.outgoing.leave(!self.ended);
    }
}
