//! Requests whose bodies are streamed between the client and an object, and responses with any headers and
//! bodies. Complements the calls of `remote`, which carry short JSON. Only the current piece is held in
//! memory.

use std::cell::RefCell;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::task::{Poll, Waker};

use bobbin::host::http::{self, Body, FetchError};
use bobbin::request::{Content, RawResponse, Reply};
use bobbin::{Error, Result};
use bytes::Bytes;
use futures::stream::{self, LocalBoxStream};
use futures::{FutureExt, StreamExt};
use js_sys::{Promise, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::answer::{self, Response};
use crate::bindings::{ChunkCallback, IncomingRequest, Namespace, ObjectState, log, thrown};
use crate::fetch::head_of;
use crate::lifecycle::{promise, told};
use crate::remote::given_up;
use crate::upgrade::ascii;

/// The header that carries the call, a [`bobbin::request::ThreadRequest`]. Only the Worker can reach an object, so only it
/// can set this.
pub(crate) const HEADER: &str = "x-bobbin-call";

#[wasm_bindgen(module = "/platform.js")]
extern "C" {
    #[wasm_bindgen(catch, js_name = forward)]
    async fn forward_call(
        objects: &Namespace,
        name: &str,
        header: &str,
        call: &str,
        request: &IncomingRequest,
        origin: Option<&str>,
    ) -> Result<JsValue, JsValue>;

    /// A request to another object, in JavaScript.
    type ObjectRequest;
    #[wasm_bindgen(constructor, catch)]
    fn new(objects: &Namespace, name: &str, header: &str, call: &str) -> Result<ObjectRequest, JsValue>;
    /// Resolves with the head of the response, in the form of [`head_of`].
    #[wasm_bindgen(method, catch)]
    async fn head(this: &ObjectRequest) -> Result<JsValue, JsValue>;
    /// The response. It has a `body`, as a request does.
    #[wasm_bindgen(method, getter)]
    fn answer(this: &ObjectRequest) -> IncomingRequest;
    /// Cancels the request, unless its response has arrived.
    #[wasm_bindgen(method, catch)]
    fn leave(this: &ObjectRequest) -> Result<(), JsValue>;

    #[wasm_bindgen(catch)]
    fn served(status: u16, headers: &str, bytes: Option<Uint8Array>) -> Result<Response, JsValue>;

    #[wasm_bindgen(catch)]
    fn poured(
        status: u16,
        headers: &str,
        length: f64,
        flow: Flow,
        ctx: &ObjectState,
    ) -> Result<Response, JsValue>;
}

#[wasm_bindgen(module = "/bodies.js")]
extern "C" {
    /// The bodies that an object is reading.
    #[derive(Clone)]
    pub(crate) type Readers;
    #[wasm_bindgen(constructor)]
    pub(crate) fn new() -> Readers;

    /// The body of a request, in JavaScript.
    type BodyReader;
    #[wasm_bindgen(constructor, catch)]
    fn new(
        request: &IncomingRequest,
        take: &ChunkCallback,
        readers: Option<&Readers>,
    ) -> Result<BodyReader, JsValue>;
    #[wasm_bindgen(method, catch)]
    fn next(this: &BodyReader) -> Result<(), JsValue>;
    #[wasm_bindgen(method, catch)]
    fn leave(this: &BodyReader) -> Result<(), JsValue>;
    #[wasm_bindgen(method, catch)]
    fn cancel(this: &BodyReader) -> Result<(), JsValue>;
    #[wasm_bindgen(method, catch)]
    async fn discard(this: &BodyReader) -> Result<JsValue, JsValue>;
    /// The reason for which it was abandoned, if it was.
    #[wasm_bindgen(method, getter)]
    fn why(this: &BodyReader) -> String;
}

/// Sends a request to a thread's object, its body as a stream, and returns the response. `call` is in ASCII;
/// `origin` may read the response.
pub(crate) async fn forward(
    objects: &Namespace,
    name: &str,
    call: &str,
    request: &IncomingRequest,
    origin: Option<&str>,
) -> Result<Response, JsValue> {
    forward_call(objects, name, HEADER, call, request, origin).await.map(JsCast::unchecked_into)
}

/// A JavaScript exception as an error of the core.
pub(crate) fn failed(error: JsValue) -> FetchError {
    FetchError(thrown(&error))
}

/// Sends a request of a streamed route, as JSON and without a body, to a thread's object.
pub(crate) async fn ask(threads: &Namespace, id: &str, call: &str) -> Result<http::Response, FetchError> {
    let call = ascii(call);
    let asking = RequestGuard(ObjectRequest::new(threads, id, HEADER, &call).map_err(failed)?);
    let (status, headers) = head_of(&asking.0.head().await.map_err(failed)?)?;
    let body = IncomingBody::of(&asking.0.answer(), None).map_err(failed)?.pieces();
    Ok(http::Response { status, headers, body })
}

struct RequestGuard(ObjectRequest);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        // An error cannot be reported from here.
        let _ = self.0.leave();
    }
}

/// The body of a request as the core reads it. A clone is the same body.
#[derive(Clone)]
pub(crate) struct IncomingBody(Rc<OpenBody>);

struct OpenBody {
    incoming: BodyReader,
    /// Kept as long as the JavaScript side may call it.
    _take: ChunkCallback,
    inbox: Rc<Inbox>,
}

/// Receives data from the JavaScript side.
#[derive(Default)]
struct Inbox {
    read: RefCell<Option<Result<Option<Bytes>, FetchError>>>,
    waker: RefCell<Option<Waker>>,
}

impl IncomingBody {
    /// The body of this request, not read yet. A client's body is one of the `readers` of its object.
    pub(crate) fn of(request: &IncomingRequest, readers: Option<&Readers>) -> Result<IncomingBody, JsValue> {
        let inbox = Rc::<Inbox>::default();
        let filled = inbox.clone();
        let take = ChunkCallback::wrap_assert_unwind_safe(Box::new(move |piece: Option<Vec<u8>>, error| {
            let read = match error {
                Some(error) => Err(FetchError(error)),
                None => Ok(piece.map(Bytes::from)),
            };
            filled.read.replace(Some(read));
            if let Some(waker) = filled.waker.take() {
                waker.wake();
            }
        }));
        let incoming = BodyReader::new(request, &take, readers)?;
        Ok(IncomingBody(Rc::new(OpenBody { incoming, _take: take, inbox })))
    }

    /// The body as a stream. Dropping the stream stops fetching.
    pub(crate) fn pieces(self) -> Body {
        Box::pin(stream::unfold(CancelOnDrop(self), |mut wanted| async move {
            wanted.0.next().await.map(|piece| (piece, wanted))
        }))
    }

    /// The body as a stream for the core. The rest that it leaves is [`IncomingBody::discard`]ed.
    pub(crate) fn stream(self) -> Body {
        Box::pin(stream::unfold(self, |mut body| async move { body.next().await.map(|piece| (piece, body)) }))
    }

    /// The reason for which it was abandoned, if it was.
    pub(crate) fn given_up(&self) -> Option<Error> {
        given_up(&self.0.incoming.why())
    }

    /// Reads the rest, within bounds.
    pub(crate) async fn discard(&self) {
        if let Err(error) = self.0.incoming.discard().await {
            log(&format!("a body was not read to its end: {}", thrown(&error)));
        }
    }
}

impl IncomingBody {
    async fn next(&mut self) -> Option<Result<Bytes, FetchError>> {
        if let Err(error) = self.0.incoming.next() {
            return Some(Err(FetchError(thrown(&error))));
        }
        let inbox = &self.0.inbox;
        let read = poll_fn(|context| match inbox.read.take() {
            Some(read) => Poll::Ready(read),
            None => {
                inbox.waker.replace(Some(context.waker().clone()));
                Poll::Pending
            }
        });
        read.await.transpose()
    }
}

struct CancelOnDrop(IncomingBody);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        // An error cannot be reported from here.
        let _ = self.0.0.incoming.cancel();
    }
}

impl Drop for OpenBody {
    fn drop(&mut self) {
        // Must come before the closure is dropped, because nothing may call it afterwards. It cannot fail.
        let _ = self.incoming.leave();
    }
}

/// The response in the platform's form.
pub(crate) fn respond(answer: RawResponse, ctx: &ObjectState) -> Result<Response, JsValue> {
    let RawResponse { status, headers, content } = answer;
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.and_then(|(_, length)| length.parse::<f64>().ok());
    let headers = serde_json::to_string(&headers).map_err(|error| JsValue::from_str(&error.to_string()))?;
    match content {
        Content::Empty => served(status, &headers, None),
        Content::Bytes(bytes) => served(status, &headers, Some(Uint8Array::from(bytes.as_ref()))),
        Content::Stream(stream) => poured(status, &headers, length.unwrap_or(-1.0), Flow::of(stream), ctx),
    }
}

/// The body of a response, piece by piece.
#[wasm_bindgen]
pub struct Flow(Rc<RefCell<Option<BodyStream>>>);

struct BodyStream {
    stream: LocalBoxStream<'static, Result<Bytes>>,
    /// Data that did not fit into the last piece.
    left: Bytes,
}

impl std::panic::RefUnwindSafe for Flow {}
impl std::panic::UnwindSafe for Flow {}

impl Flow {
    /// A body of these pieces.
    pub(crate) fn of(stream: LocalBoxStream<'static, Result<Bytes>>) -> Flow {
        Flow(Rc::new(RefCell::new(Some(BodyStream { stream, left: Bytes::new() }))))
    }
}

#[wasm_bindgen]
impl Flow {
    /// Fills `piece` from its start and resolves with how many bytes it put there; 0 at the end. Rejects when the body
    /// breaks off.
    pub fn next(&self, piece: Uint8Array) -> Promise {
        let slot = self.0.clone();
        promise(async move {
            // Taken out of the slot meanwhile, so that a panic leaves none behind and a cancelled read drops
            // it with its future.
            let Some(mut pouring) = slot.borrow_mut().take() else { return Ok(0.into()) };
            while pouring.left.is_empty() {
                match AssertUnwindSafe(pouring.stream.next()).catch_unwind().await {
                    Ok(Some(Ok(made))) => pouring.left = made,
                    Ok(None) => return Ok(0.into()),
                    Ok(Some(Err(error))) => return Err(broken(&error.message)),
                    Err(panic) => return Err(broken(told(&*panic))),
                }
            }
            let length = pouring.left.len().min(piece.length() as usize);
            let part = pouring.left.split_to(length);
            piece.subarray(0, length as u32).copy_from(&part);
            slot.replace(Some(pouring));
            Ok((length as f64).into())
        })
    }
}

fn broken(why: &str) -> JsValue {
    log(&format!("an answer broke off: {why}"));
    JsValue::from_str(why)
}

/// Whether this is an internal error, whose details are not for clients. An endpoint's own 500 has a text for
/// clients.
pub(crate) fn is_internal(served: &RawResponse) -> bool {
    match &served.content {
        Content::Bytes(body) => served.status == 500 && body.starts_with(br#"{"error":{"code":"internal""#),
        Content::Empty | Content::Stream(_) => false,
    }
}

/// An internal error without details, unless `dev` is set.
pub(crate) fn without_details(served: RawResponse, dev: bool) -> RawResponse {
    let text = match &served.content {
        Content::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Content::Empty | Content::Stream(_) => String::new(),
    };
    let body = serde_json::value::RawValue::from_string(text).ok();
    answer::without_details(Reply { status: served.status, retry_after: None, body }, dev).into()
}
