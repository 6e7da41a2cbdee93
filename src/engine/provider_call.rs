//! One request to the provider of a model: what it is given of the outside, the watchdogs on its first chunk and on
//! silence, and its stream to whoever listens.

use std::cell::RefCell;
use std::future::poll_fn;

use bytes::Bytes;
use futures::future::LocalBoxFuture;
use futures::{FutureExt, StreamExt};

use crate::engine::thread::Thread;
use crate::error::Result;
use crate::host::ai::AiRequest;
use crate::host::http::{FetchError, Request, Response};
use crate::limits;
use crate::models::{
    Chunks, Delta, ProviderCall, ProviderCalls, ProviderCode, ProviderError, Reply, ReplyBuilder, Silence,
};
use crate::store::log::{Attempt, Event};
use crate::store::runs::Step;
use crate::work::timeout::Watch;

/// How long an answer is waited for, in microseconds.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    /// Until it begins.
    pub(crate) first_us: i64,
    /// While nothing comes.
    pub(crate) stall_us: i64,
    /// Altogether, where a policy says.
    pub(crate) attempt_us: Option<i64>,
}

/// An attempt that is being answered.
pub(crate) struct Streaming<'a> {
    thread: &'a Thread,
    step: Step,
    builder: ReplyBuilder,
    /// Whether nobody is to read the reasoning (spec §5.3).
    hidden: bool,
    patience: Patience,
    attempt: &'a mut Attempt,
    /// Whether what was shown of an answer may be replaced by another one.
    restartable: bool,
    /// When payload came last.
    payload_us: i64,
    /// When a text or a call came last, or the attempt began.
    content_us: i64,
    /// Whether the provider goes on with its answer by itself: then its name is stored as soon as it is told, unless it is that
    /// of an earlier attempt.
    background: Background,
}

/// Whether a provider goes on with an answer by itself.
enum Background {
    No,
    Yes {
        /// What it calls the answer of an earlier attempt.
        earlier: Option<String>,
    },
}

impl Background {
    /// Whether this name of an answer is to be stored.
    fn is_new(&self, id: &str) -> bool {
        match self {
            Background::No => false,
            Background::Yes { earlier } => {
                !id.is_empty() && id.len() <= limits::RESPONSE_NAME_BYTES && earlier.as_deref() != Some(id)
            }
        }
    }
}

impl<'a> Streaming<'a> {
    pub(crate) fn new(
        thread: &'a Thread,
        step: Step,
        hidden: bool,
        patience: Patience,
        attempt: &'a mut Attempt,
    ) -> Streaming<'a> {
        Streaming {
            thread,
            step,
            builder: ReplyBuilder::default(),
            hidden,
            patience,
            attempt,
            restartable: true,
            payload_us: 0,
            content_us: 0,
            background: Background::No,
        }
    }

    /// The same of an answer that its provider goes on with by itself.
    pub(crate) fn in_background(self, earlier: Option<String>) -> Streaming<'a> {
        Streaming { background: Background::Yes { earlier }, ..self }
    }

    /// The same of a model whose answers may not begin anew.
    pub(crate) fn once(self) -> Streaming<'a> {
        Streaming { restartable: false, ..self }
    }

    /// Asks the provider, and takes what it says until it ends or is silent for too long.
    pub(crate) async fn reply(mut self, call: ProviderCall) -> Result<Result<Reply, ProviderError>> {
        let host = &*self.thread.host;
        let (out, name) = (call.out.clone(), call.provider.clone());
        let Patience { first_us, stall_us, attempt_us } = self.patience;
        let begun = host.now_us();
        let end = attempt_us.map_or(i64::MAX, |us| begun + us);
        let reasoning_us = limits::REASONING_US.max(attempt_us.unwrap_or(0));
        self.content_us = begun;
        let mut watch = Watch::new(host, end.min(begun + first_us));
        let mut running = self.thread.natives.provider(call);
        let mut heard_us = 0;
        loop {
            // The first chunk that carries payload has its own, longer limit.
            let silence = match self.attempt.first_us {
                None => Silence::FirstChunk,
                Some(_) => {
                    // Who allows a longer silence allows as long a time of events that carry nothing.
                    let idle_us = limits::IDLE_EVENTS_US.max(stall_us);
                    let stalled_at = (heard_us + stall_us).min(self.payload_us + idle_us);
                    let reasoned_until = self.content_us + reasoning_us;
                    watch.until(stalled_at.min(reasoned_until).min(end));
                    if reasoned_until < stalled_at { Silence::Content } else { Silence::Stall }
                }
            };
            let ended = match watch.within(poll_fn(|cx| out.poll(running.as_mut(), cx))).await {
                Some(ended) => ended,
                None => {
                    let silence = if host.now_us() >= end { Silence::Attempt } else { silence };
                    // It is told, and may know that its answer is complete all the same.
                    out.fall_silent(silence);
                    let last = running.as_mut().now_or_never();
                    Some(last.unwrap_or(Ok(Err(ProviderError::timeout(silence)))))
                }
            };
            let (deltas, heard) = out.take();
            if let Err(error) = self.take(&deltas)? {
                return Ok(Err(error));
            }
            if heard {
                heard_us = host.now_us();
            }
            match ended {
                None => {}
                Some(Ok(Ok(()))) => return Ok(Ok(self.builder.finish())),
                Some(Ok(Err(error))) => return Ok(Err(error)),
                Some(Err(panicked)) => {
                    let text = format!("the provider \"{}\" panicked: {panicked}", name.name());
                    return Ok(Err(ProviderError::new(ProviderCode::Unknown, text)));
                }
            }
        }
    }

    /// The name of an answer that its provider goes on with by itself is stored before anything of it is shown: a process that is
    /// lost from here on fetches it.
    fn named(&self, id: &str) -> Result<()> {
        if !self.background.is_new(id) {
            return Ok(());
        }
        let event = Event::in_background(self.attempt, &self.thread.variables().redact(id.to_owned()));
        let now = self.thread.host.now_us();
        self.thread.transition(|_, sql| event.insert(sql, now))
    }

    /// Folds deltas into the reply and sends their text to whoever listens, as one frame.
    fn take(&mut self, deltas: &[Delta]) -> Result<Result<(), ProviderError>> {
        let mut text = String::new();
        let mut reasoning = String::new();
        let now = if deltas.is_empty() { 0 } else { self.thread.host.now_us() };
        for delta in deltas {
            match delta {
                Delta::Text(piece) => {
                    self.attempt.received += piece.len();
                    text.push_str(piece);
                }
                Delta::Reasoning(piece) => {
                    self.attempt.received += piece.len();
                    reasoning.push_str(piece);
                }
                Delta::CallArguments { text, .. } => self.attempt.received += text.len(),
                Delta::CallStart { .. } | Delta::CallExtra { .. } | Delta::Payload(_) => {}
                Delta::Usage(usage) => {
                    self.attempt.reported = Some(*usage);
                    continue;
                }
                Delta::Finish(_) => continue,
                Delta::Response { id, model } => {
                    self.attempt.response.take(id, model);
                    self.named(id)?;
                    continue;
                }
            }
            self.payload_us = now;
            if !matches!(delta, Delta::Reasoning(_) | Delta::Payload(_)) {
                self.content_us = now;
            }
            if self.attempt.first_us.is_none() && !self.restartable {
                // Before anybody sees it: a process that is lost from here on must not have it begun anew.
                self.thread.transition(|_, sql| Event::shown(self.attempt).insert(sql, self.payload_us))?;
            }
            self.attempt.first_us.get_or_insert(self.payload_us);
        }
        let from = self.builder.content().len();
        for delta in deltas {
            let pushed = match delta {
                Delta::Reasoning(text) if self.hidden => self.builder.count_reasoning(text.len()),
                delta => self.builder.push(delta),
            };
            if let Err(error) = pushed {
                return Ok(Err(error));
            }
        }
        self.show(from, &text, &reasoning)?;
        Ok(Ok(()))
    }

    /// Sends what came to whoever listens; `from` is where the text begins in the reply.
    fn show(&self, from: usize, text: &str, reasoning: &str) -> Result<()> {
        if self.attempt.purpose.is_some() {
            return Ok(());
        }
        if !text.is_empty() {
            match self.step.call {
                None => self.thread.stream_text(self.step.block, text)?,
                Some(_) => self.thread.stream_inner_text(self.step, self.attempt.stream, from, text)?,
            }
        }
        if !reasoning.is_empty() && !self.hidden {
            self.thread.stream_reasoning(self.step, reasoning)?;
        }
        Ok(())
    }
}

/// What a provider is given of the outside: the host's, counted and noted.
pub(crate) struct Outside {
    thread: Thread,
    /// The headers that name the trace and the attempt's span, where models are told of them.
    trace: Vec<(String, String)>,
    /// The last request's body, when bodies are logged.
    sent: RefCell<Option<Bytes>>,
    /// Why the request was made again in another form.
    adjusted: RefCell<Option<String>>,
}

impl Outside {
    pub(crate) fn new(thread: Thread, step: Step, stream: u32) -> Outside {
        let trace =
            thread.traces().trace_of_attempt(step, stream).map(|trace| trace.headers()).unwrap_or_default();
        Outside { thread, trace, sent: RefCell::default(), adjusted: RefCell::default() }
    }

    pub(crate) fn why_adjusted(&self) -> Option<String> {
        self.adjusted.take()
    }

    pub(crate) fn sent(&self) -> Option<Bytes> {
        self.sent.take()
    }
}

impl ProviderCalls for Outside {
    fn now_us(&self) -> i64 {
        self.thread.host.now_us()
    }

    fn fetch(&self, mut request: Request) -> LocalBoxFuture<'static, Result<Response, FetchError>> {
        if self.thread.logs_bodies() {
            self.sent.replace(request.body.clone());
        }
        request.headers.extend(self.trace.iter().cloned());
        let outgoing = &self.thread.ephemeral.outgoing;
        outgoing.set(outgoing.get() + 1);
        self.thread.host.fetch(request)
    }

    fn ask_ai(&self, request: AiRequest) -> LocalBoxFuture<'static, Result<Response, FetchError>> {
        if self.thread.logs_bodies() {
            self.sent.replace(Some(request.input.clone()));
        }
        let outgoing = &self.thread.ephemeral.outgoing;
        outgoing.set(outgoing.get() + 1);
        self.thread.host.ask_ai(request)
    }

    fn sleep_until(&self, us: i64) -> LocalBoxFuture<'static, ()> {
        self.thread.host.sleep_until(us)
    }

    fn adjusted(&self, why: &str) {
        self.thread.variables().log(why);
        self.adjusted.replace(Some(why.to_owned()));
    }

    fn drain(&self, mut rest: Chunks) {
        let thread = self.thread.clone();
        self.thread.host.spawn(Box::pin(async move {
            let mut watch = Watch::new(&*thread.host, thread.host.now_us() + limits::SECOND_US);
            while let Some(Some(Ok(_))) = watch.within(rest.next()).await {}
        }));
    }
}
