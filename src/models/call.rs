//! What a provider is called with: one request, the means to reach the outside, and the way back for its reply.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::StreamExt;
use futures::future::LocalBoxFuture;
use futures::stream::LocalBoxStream;

use crate::host::ai::AiRequest;
use crate::host::http::{FetchError, Request, Response};
use crate::models::failure::BODY_BYTES;
use crate::models::{Answer, ChatRequest, Delta, ProviderError, Silence};
use crate::spec::Provider;

/// Parts of a reply that wait for the engine at most, before [`ProviderCall::send`] lets it take them.
const WAITING: usize = 64;

/// The content of an answer, as it arrives.
pub(crate) type Chunks = LocalBoxStream<'static, Result<Bytes, FetchError>>;

/// What the engine gives a provider of the outside.
pub(crate) trait ProviderCalls {
    fn now_us(&self) -> i64;
    fn fetch(&self, request: Request) -> LocalBoxFuture<'static, Result<Response, FetchError>>;
    fn ask_ai(&self, request: AiRequest) -> LocalBoxFuture<'static, Result<Response, FetchError>>;
    fn sleep_until(&self, us: i64) -> LocalBoxFuture<'static, ()>;
    /// Reads the rest of an answer that nobody waits for.
    fn drain(&self, rest: Chunks);
    /// Notes that the request was made again in another form, and why.
    fn adjusted(&self, why: &str);
}

/// One request to a provider.
pub struct ProviderCall {
    /// The provider, as the model's definition names it.
    pub provider: Provider,
    /// Name of the model's definition.
    pub definition: String,
    /// What is asked.
    pub request: Rc<ChatRequest>,
    /// How the answer is to come; a provider whose API knows one way only may answer in that.
    pub answer: Answer,
    /// The definition's `baseUrl` with its `{{env …}}` resolved and no slash at its end; `None` for the provider's own.
    pub base_url: Option<String>,
    /// The value that the definition's `apiKeyEnv` names. Taken out of whatever the provider says of a failure.
    pub api_key: Option<String>,
    /// Streams of this reply so far, with this one: retries, fallbacks and recoveries.
    pub stream: u32,
    /// What the provider calls the answer of an earlier attempt, which it has gone on with by itself.
    pub(crate) earlier: Option<String>,
    pub(crate) door: Rc<dyn ProviderCalls>,
    pub(crate) out: Rc<Out>,
}

impl ProviderCall {
    /// Hands over a part of the reply. Whoever listens is shown what came as soon as this provider waits for something.
    /// Anything but usage, the finish reason and the answer's name is the first chunk that is waited for.
    pub async fn send(&self, delta: Delta) {
        self.out.deltas.borrow_mut().push(delta);
        self.room().await;
    }

    /// Hands over several parts, which are taken out of the list.
    pub async fn send_all(&self, deltas: &mut Vec<Delta>) {
        self.out.deltas.borrow_mut().append(deltas);
        self.room().await;
    }

    /// Says that the model is there although it has nothing to tell yet: otherwise
    /// [`STALL_US`](crate::limits::STALL_US) without a part of the reply end the attempt.
    pub fn heard(&self) {
        self.out.heard.set(true);
    }

    /// Sends an HTTP request. No redirect is followed; dropping what comes cancels it.
    ///
    /// # Errors
    /// There was no answer, or not in time. Whatever the answer's status, it is one.
    pub async fn fetch(&self, request: Request) -> Result<Incoming, ProviderError> {
        let url = request.url.clone();
        let sent = self.door.fetch(request);
        self.answered(sent, url).await
    }

    /// Asks a model of the platform's own; the same else.
    pub(crate) async fn ask_ai(&self, request: AiRequest) -> Result<Incoming, ProviderError> {
        let sent = self.door.ask_ai(request);
        self.answered(sent, "Workers AI".to_owned()).await
    }

    async fn answered(
        &self,
        mut sent: LocalBoxFuture<'static, Result<Response, FetchError>>,
        url: String,
    ) -> Result<Incoming, ProviderError> {
        let answered = poll_fn(|cx| match self.out.silent.get() {
            Some(silence) => Poll::Ready(Err(ProviderError::timeout(silence))),
            None => sent
                .as_mut()
                .poll(cx)
                .map_err(|error| ProviderError::network(&error, &url, self.api_key.as_deref().as_slice())),
        });
        let Response { status, headers, body } = answered.await?;
        let (door, out, key) = (self.door.clone(), self.out.clone(), self.api_key.clone());
        Ok(Incoming { status, headers, body, url, key, door, out })
    }

    /// Microseconds since 1970.
    pub fn now_us(&self) -> i64 {
        self.door.now_us()
    }

    /// Waits so many microseconds.
    pub async fn sleep(&self, us: i64) {
        self.sleep_until(self.door.now_us() + us).await;
    }

    /// Waits until a time, in microseconds since 1970.
    pub async fn sleep_until(&self, us: i64) {
        self.door.sleep_until(us).await;
    }

    /// Lets the engine take what is there, when that is much: it bounds replies that have no end.
    async fn room(&self) {
        let mut waited = false;
        poll_fn(|_| match waited || self.out.deltas.borrow().len() < WAITING {
            true => Poll::Ready(()),
            // The engine takes what is there before it polls again.
            false => {
                waited = true;
                Poll::Pending
            }
        })
        .await;
    }
}

/// An answer over HTTP, whose content is still to come.
pub struct Incoming {
    /// HTTP status.
    pub status: u16,
    /// Names in lower case. Of an answer of 2xx those that the request's [`Reads`](crate::host::http::Reads) names.
    pub headers: Vec<(String, String)>,
    body: Chunks,
    url: String,
    key: Option<String>,
    door: Rc<dyn ProviderCalls>,
    out: Rc<Out>,
}

impl Incoming {
    /// Whether the status is one of success.
    pub fn is_ok(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The next bytes; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<Bytes, ProviderError>> {
        let Incoming { body, out, url, key, .. } = self;
        let next = poll_fn(|cx| match out.silent.get() {
            Some(silence) => Poll::Ready(Some(Err(ProviderError::timeout(silence)))),
            None => body.poll_next_unpin(cx).map(|next| {
                let failed = |error| ProviderError::network(&error, url, key.as_deref().as_slice());
                next.map(|chunk| chunk.map_err(failed))
            }),
        });
        next.await
    }

    /// The failure that an answer other than 2xx tells, by its status and content.
    pub async fn refusal(mut self) -> ProviderError {
        let mut body = Vec::new();
        while body.len() < BODY_BYTES {
            match self.next().await {
                Some(Ok(chunk)) => body.extend_from_slice(&chunk),
                // What was read so far explains the status as well as it can.
                Some(Err(_)) | None => break,
            }
        }
        let (key, now) = (self.key.as_deref(), self.door.now_us());
        ProviderError::from_response(self.status, &self.headers, &body, key.as_slice(), now)
    }

    /// Leaves the rest to be read beside, so that the connection can be used again; not for long, as some servers keep it
    /// open.
    pub fn drain(self) {
        self.door.drain(self.body);
    }
}

/// The way of a reply to the engine.
#[derive(Default)]
pub(crate) struct Out {
    deltas: RefCell<Vec<Delta>>,
    /// Whether the model was heard of since the engine looked.
    heard: Cell<bool>,
    /// Once nothing more is waited for.
    silent: Cell<Option<Silence>>,
}

impl Out {
    /// What came, and whether anything was heard.
    pub(crate) fn take(&self) -> (Vec<Delta>, bool) {
        let deltas = std::mem::take(&mut *self.deltas.borrow_mut());
        let heard = self.heard.take() || !deltas.is_empty();
        (deltas, heard)
    }

    /// Whoever waits for the outside is told that nothing comes any more.
    pub(crate) fn fall_silent(&self, silence: Silence) {
        self.silent.set(Some(silence));
    }

    /// Goes on with a provider until it has told something, or has ended: then with what it ended with.
    pub(crate) fn poll<T>(
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
