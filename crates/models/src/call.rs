//! The input of a provider: one request, access to the network, and the channel for its reply.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::StreamExt;
use futures::future::LocalBoxFuture;
use futures::stream::LocalBoxStream;

use crate::ai::AiRequest;
use crate::failure::BODY_BYTES;
use crate::http::{FetchError, Request, Response};
use crate::{ChatRequest, Delta, ProviderError, ResponseMode, TimeoutKind};
use bobbin_definitions::definitions::Provider;

/// Maximum number of buffered parts of a reply before [`ProviderCall::send`] yields to the engine.
const WAITING: usize = 64;

/// The content of a response, as it arrives.
pub type Chunks = LocalBoxStream<'static, Result<Bytes, FetchError>>;

/// Services of the engine for a provider.
pub trait ProviderCalls {
    /// Microseconds since 1970.
    fn now_us(&self) -> i64;
    /// Sends a request.
    fn fetch(&self, request: Request) -> LocalBoxFuture<'static, Result<Response, FetchError>>;
    /// Calls a model of the platform.
    fn ask_ai(&self, request: AiRequest) -> LocalBoxFuture<'static, Result<Response, FetchError>>;
    /// Resolves at that time.
    fn sleep_until(&self, us: i64) -> LocalBoxFuture<'static, ()>;
    /// Reads the rest of a response that is not needed.
    fn drain(&self, rest: Chunks);
    /// Records that the request was repeated in another form, and why.
    fn adjusted(&self, why: &str);
}

/// One request to a provider.
pub struct ProviderCall {
    /// The provider, as the model's definition names it.
    pub provider: Provider,
    /// Name of the model's definition.
    pub definition: String,
    /// The request.
    pub request: Rc<ChatRequest>,
    /// How the response is to be delivered. A provider whose API has only one way may use that.
    pub answer: ResponseMode,
    /// The definition's `baseUrl`, with `{{env …}}` resolved and without a trailing slash; `None` for
    /// the provider's default.
    pub base_url: Option<String>,
    /// The value that the definition's `apiKeyEnv` names. It is removed from every error text of the
    /// provider.
    pub api_key: Option<String>,
    /// Number of streams of this reply so far, including this one: retries, fallbacks and recoveries.
    pub stream: u32,
    /// The provider's id of the response to an earlier attempt, which the provider continued in the
    /// background.
    pub earlier: Option<String>,
    /// The services of the engine.
    pub door: Rc<dyn ProviderCalls>,
    /// The parts of the reply that the engine has not read yet.
    pub out: Rc<ReplyChannel>,
}

impl ProviderCall {
    /// Passes on a part of the reply. Clients receive it as soon as this provider waits for something.
    /// Anything but usage, the finish reason and the response's id counts as the first chunk.
    pub async fn send(&self, delta: Delta) {
        self.out.deltas.borrow_mut().push(delta);
        self.room().await;
    }

    /// Passes on several parts, and empties the list.
    pub async fn send_all(&self, deltas: &mut Vec<Delta>) {
        self.out.deltas.borrow_mut().append(deltas);
        self.room().await;
    }

    /// Reports that the model is active, although it has not sent anything yet. Without this,
    /// [`STALL_US`](bobbin_definitions::limits::STALL_US) without a part of the reply ends the attempt.
    pub fn keep_alive(&self) {
        self.out.heard.set(true);
    }

    /// Sends an HTTP request. Redirects are not followed. Dropping the response cancels it.
    ///
    /// # Errors
    /// There was no response, or none in time. A response with any status is not an error.
    pub async fn fetch(&self, request: Request) -> Result<StreamedResponse, ProviderError> {
        let url = request.url.clone();
        let sent = self.door.fetch(request);
        self.answered(sent, url).await
    }

    /// Requests a model of the platform (Workers AI); otherwise like `fetch`.
    pub async fn ask_ai(&self, request: AiRequest) -> Result<StreamedResponse, ProviderError> {
        let sent = self.door.ask_ai(request);
        self.answered(sent, "Workers AI".to_owned()).await
    }

    async fn answered(
        &self,
        mut sent: LocalBoxFuture<'static, Result<Response, FetchError>>,
        url: String,
    ) -> Result<StreamedResponse, ProviderError> {
        let answered = poll_fn(|cx| match self.out.silent.get() {
            Some(silence) => Poll::Ready(Err(ProviderError::timeout(silence))),
            None => sent
                .as_mut()
                .poll(cx)
                .map_err(|error| ProviderError::network(&error, &url, self.api_key.as_deref().as_slice())),
        });
        let Response { status, headers, body } = answered.await?;
        let (door, out, key) = (self.door.clone(), self.out.clone(), self.api_key.clone());
        Ok(StreamedResponse { status, headers, body, url, key, door, out })
    }

    /// Microseconds since 1970.
    pub fn now_us(&self) -> i64 {
        self.door.now_us()
    }

    /// Waits for `us` microseconds.
    pub async fn sleep(&self, us: i64) {
        self.sleep_until(self.door.now_us() + us).await;
    }

    /// Waits until a time, in microseconds since 1970.
    pub async fn sleep_until(&self, us: i64) {
        self.door.sleep_until(us).await;
    }

    /// Yields to the engine when many parts are buffered. This bounds endless replies.
    async fn room(&self) {
        let mut waited = false;
        poll_fn(|_| match waited || self.out.deltas.borrow().len() < WAITING {
            true => Poll::Ready(()),
            // The engine takes the parts before it polls again.
            false => {
                waited = true;
                Poll::Pending
            }
        })
        .await;
    }
}

/// A response over HTTP whose content is still arriving.
pub struct StreamedResponse {
    /// HTTP status.
    pub status: u16,
    /// Names in lower case. A 2xx response has only those that the request's
    /// [`Reads`](crate::http::Reads) names.
    pub headers: Vec<(String, String)>,
    body: Chunks,
    url: String,
    key: Option<String>,
    door: Rc<dyn ProviderCalls>,
    out: Rc<ReplyChannel>,
}

impl StreamedResponse {
    /// Whether the status is 2xx.
    pub fn is_ok(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The next bytes; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<Bytes, ProviderError>> {
        let StreamedResponse { body, out, url, key, .. } = self;
        let next = poll_fn(|cx| match out.silent.get() {
            Some(silence) => Poll::Ready(Some(Err(ProviderError::timeout(silence)))),
            None => body.poll_next_unpin(cx).map(|next| {
                let failed = |error| ProviderError::network(&error, url, key.as_deref().as_slice());
                next.map(|chunk| chunk.map_err(failed))
            }),
        });
        next.await
    }

    /// The failure that a response other than 2xx reports, by its status and content.
    pub async fn refusal(mut self) -> ProviderError {
        let mut body = Vec::new();
        while body.len() < BODY_BYTES {
            match self.next().await {
                Some(Ok(chunk)) => body.extend_from_slice(&chunk),
                // The part that was read has to explain the status.
                Some(Err(_)) | None => break,
            }
        }
        let (key, now) = (self.key.as_deref(), self.door.now_us());
        ProviderError::from_response(self.status, &self.headers, &body, key.as_slice(), now)
    }

    /// Reads the rest in the background, so that the connection can be reused. The time for this is
    /// limited, because some servers keep it open.
    pub fn drain(self) {
        self.door.drain(self.body);
    }
}

/// The channel of a reply to the engine.
#[derive(Default)]
pub struct ReplyChannel {
    deltas: RefCell<Vec<Delta>>,
    /// Whether the model was active since the engine last looked.
    heard: Cell<bool>,
    /// Set when the engine stops waiting.
    silent: Cell<Option<TimeoutKind>>,
}

impl ReplyChannel {
    /// Takes the buffered parts. The flag is whether the model was active.
    pub fn take(&self) -> (Vec<Delta>, bool) {
        let deltas = std::mem::take(&mut *self.deltas.borrow_mut());
        let heard = self.heard.take() || !deltas.is_empty();
        (deltas, heard)
    }

    /// Ends every wait for the network with a time-out.
    pub fn fall_silent(&self, silence: TimeoutKind) {
        self.silent.set(Some(silence));
    }

    /// Polls a provider until it has sent something (`None`), or has ended (with its result).
    pub fn poll<T>(
        &self,
        running: Pin<&mut (impl Future<Output = T> + ?Sized)>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<T>> {
        match running.poll(cx) {
            Poll::Ready(ended) => Poll::Ready(Some(ended)),
            Poll::Pending if self.heard.get() || !self.deltas.borrow().is_empty() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}
