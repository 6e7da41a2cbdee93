//! Outgoing requests. Dropping the future or the body cancels them.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use bobbin::http::{Body, FetchError, Request, Response};
use bytes::Bytes;
use wasm_bindgen::prelude::*;

use crate::bindings::{self, AbortController, Chunks, FetchInit, Take, thrown};

type Result<T> = std::result::Result<T, FetchError>;

/// Sends a request and follows no redirect.
pub(crate) async fn fetch(request: Request) -> Result<Response<FetchBody>> {
    let failed = |error: JsValue| FetchError(thrown(&error));
    let cancel = Cancel { controller: AbortController::new().map_err(failed)?, ended: Cell::new(false) };
    let init = FetchInit::new();
    init.set_method(request.method);
    init.set_headers(&pairs(&request.headers));
    if let Some(body) = &request.body {
        init.set_body(&js_sys::Uint8Array::from(body.as_ref()));
    }
    init.set_redirect("manual");
    init.set_signal(&cancel.controller.signal());
    let response = bindings::fetch(&request.url, &init).await.map_err(failed)?;
    let headers = bindings::headers_of(&response).map_err(failed)?;
    let headers = serde_json::from_str(&headers).map_err(|error| FetchError(error.to_string()))?;
    let inbox = Rc::<Inbox>::default();
    let take = {
        let inbox = inbox.clone();
        Take::wrap_assert_unwind_safe(Box::new(move |chunk, error| inbox.put(chunk, error)))
    };
    let chunks = Chunks::new(&response, &take).map_err(failed)?;
    let body = FetchBody { chunks, _take: take, inbox, asked: false, cancel };
    Ok(Response { status: response.status(), headers, body })
}

fn pairs(headers: &[(String, String)]) -> js_sys::Array {
    let pair = |(name, value): &(String, String)| js_sys::Array::of2(&name.into(), &value.into());
    headers.iter().map(pair).collect()
}

/// Cancels its request when it is dropped, unless that has ended.
struct Cancel {
    controller: AbortController,
    ended: Cell<bool>,
}

impl Drop for Cancel {
    fn drop(&mut self) {
        if !self.ended.get() {
            // There is nobody to tell that a request which is no longer wanted could not be cancelled.
            let _ = self.controller.abort();
        }
    }
}

/// Where the JavaScript side puts what was read.
#[derive(Default)]
struct Inbox {
    /// The answer to the last question: a chunk, the end, or an error.
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

/// The body of an answer.
pub(crate) struct FetchBody {
    chunks: Chunks,
    /// Lives as long as the JavaScript side may call it.
    _take: Take,
    inbox: Rc<Inbox>,
    /// Whether a question is out. One outlives a `next` that was dropped; its answer is the next one's.
    asked: bool,
    cancel: Cancel,
}

impl Body for FetchBody {
    async fn next(&mut self) -> Option<Result<Bytes>> {
        if self.cancel.ended.get() {
            return None;
        }
        if !self.asked {
            if let Err(error) = self.chunks.next() {
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
            self.cancel.ended.set(true);
        }
        read.transpose()
    }
}

impl Drop for FetchBody {
    fn drop(&mut self) {
        // Before the closure goes: nothing may call it then.
        let _ = self.chunks.stop();
    }
}
