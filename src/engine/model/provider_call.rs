//! One request to the provider of a model: its access to the outside, the watchdogs on its first chunk and on
//! silence, and the stream to listeners.

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
    Chunks, Delta, ProviderCall, ProviderCalls, ProviderCode, ProviderError, Reply, ReplyBuilder, TimeoutKind,
};
use crate::store::log_record::{Attempt, Event};
use crate::store::runs::Step;
use crate::work::timeout::Deadline;

/// The time limits of a response, in microseconds.
#[derive(Clone, Copy)]
pub(in crate::engine) struct AttemptTimeouts {
    /// Until the first chunk.
    pub(in crate::engine) first_us: i64,
    /// Between chunks.
    pub(in crate::engine) stall_us: i64,
    /// For the whole attempt, if a policy sets it.
    pub(in crate::engine) attempt_us: Option<i64>,
}

/// An attempt whose response is being received.
pub(in crate::engine) struct Streaming<'a> {
    thread: &'a Thread,
    step: Step,
    builder: ReplyBuilder,
    /// Whether the reasoning is hidden from clients (spec §5.3).
    hidden: bool,
    patience: AttemptTimeouts,
    attempt: &'a mut Attempt,
    /// Whether a partly shown response may be replaced by another one.
    restartable: bool,
    /// When the last payload arrived.
    payload_us: i64,
    /// When the last text or call arrived, or the attempt began.
    content_us: i64,
    /// Whether this is a background response. Its id is stored as soon as it is known, unless it is the id of
    /// an earlier attempt.
    background: Background,
}

/// Whether the provider continues a response by itself.
enum Background {
    No,
    Yes {
        /// The provider's id of an earlier attempt's response.
        earlier: Option<String>,
    },
}

impl Background {
    /// Whether this id of a response is to be stored.
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
    pub(in crate::engine) fn new(
        thread: &'a Thread,
        step: Step,
        hidden: bool,
        patience: AttemptTimeouts,
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

    /// Marks the response as a background response.
    pub(in crate::engine) fn in_background(self, earlier: Option<String>) -> Streaming<'a> {
        Streaming { background: Background::Yes { earlier }, ..self }
    }

    /// Marks the response as one that must not be restarted.
    pub(in crate::engine) fn once(self) -> Streaming<'a> {
        Streaming { restartable: false, ..self }
    }

    /// Sends the request and receives the response until it ends or is silent for too long.
    pub(in crate::engine) async fn reply(
        mut self,
        call: ProviderCall,
    ) -> Result<Result<Reply, ProviderError>> {
        let host = &*self.thread.host;
        let (out, name) = (call.out.clone(), call.provider.clone());
        let AttemptTimeouts { first_us, stall_us, attempt_us } = self.patience;
        let begun = host.now_us();
        let end = attempt_us.map_or(i64::MAX, |us| begun + us);
        let reasoning_us = limits::REASONING_US.max(attempt_us.unwrap_or(0));
        self.content_us = begun;
        let mut watch = Deadline::new(host, end.min(begun + first_us));
        let mut running = self.thread.natives.provider(call);
        let mut heard_us = 0;
        loop {
            // The first chunk with payload has its own, longer limit.
            let silence = match self.attempt.first_us {
                None => TimeoutKind::FirstChunk,
                Some(_) => {
                    // A policy with a longer limit on silence allows empty events for as long.
                    let idle_us = limits::IDLE_EVENTS_US.max(stall_us);
                    let stalled_at = (heard_us + stall_us).min(self.payload_us + idle_us);
                    let reasoned_until = self.content_us + reasoning_us;
                    watch.until(stalled_at.min(reasoned_until).min(end));
                    if reasoned_until < stalled_at { TimeoutKind::Content } else { TimeoutKind::Stall }
                }
            };
            let ended = match watch.within(poll_fn(|cx| out.poll(running.as_mut(), cx))).await {
                Some(ended) => ended,
                None => {
                    let silence = if host.now_us() >= end { TimeoutKind::Attempt } else { silence };
                    // The provider is notified, because it may know that its response is complete.
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

    /// Stores the id of a background response before any of it is shown. After a crash, the next attempt
    /// fetches that response.
    fn named(&self, id: &str) -> Result<()> {
        if !self.background.is_new(id) {
            return Ok(());
        }
        let event = Event::in_background(self.attempt, &self.thread.variables().redact(id.to_owned()));
        let now = self.thread.host.now_us();
        self.thread.transition(|_, sql| event.insert(sql, now))
    }

    /// Adds deltas to the reply and sends their text to listeners, as one frame.
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
                // Stored before a client sees it, because after a crash the response must not be restarted.
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

    /// Sends new text to listeners; `from` is the offset of the text in the reply.
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

/// The provider's access to the outside: the host's, with counts and notes.
pub(in crate::engine) struct ProviderGateway {
    thread: Thread,
    /// The headers with the trace and the attempt's span, if models receive them.
    trace: Vec<(String, String)>,
    /// The last request's body, when bodies are logged.
    sent: RefCell<Option<Bytes>>,
    /// The reason why the request was repeated in another form.
    adjusted: RefCell<Option<String>>,
}

impl ProviderGateway {
    pub(in crate::engine) fn new(thread: Thread, step: Step, stream: u32) -> ProviderGateway {
        let trace =
            thread.traces().trace_of_attempt(step, stream).map(|trace| trace.headers()).unwrap_or_default();
        ProviderGateway { thread, trace, sent: RefCell::default(), adjusted: RefCell::default() }
    }

    pub(in crate::engine) fn why_adjusted(&self) -> Option<String> {
        self.adjusted.take()
    }

    pub(in crate::engine) fn sent(&self) -> Option<Bytes> {
        self.sent.take()
    }
}

impl ProviderCalls for ProviderGateway {
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
            let mut watch = Deadline::new(&*thread.host, thread.host.now_us() + limits::SECOND_US);
            while let Some(Some(Ok(_))) = watch.within(rest.next()).await {}
        }));
    }
}
