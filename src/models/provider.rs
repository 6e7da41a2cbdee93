//! Providers of models: how one is asked, and the registry that definitions name them from (`provider`; spec §4.1).
//!
//! Those of this crate stand in one table, a line each. A crate that embeds this one adds its own, which the engine asks
//! in the same way, with the same watchdogs, retries, fallbacks and logs:
//!
//! ```
//! use bobbin::models::{Delta, FinishReason};
//! bobbin::models::register("counting", |call| {
//!     Box::pin(async move {
//!         let messages = call.request.messages.len();
//!         call.send(Delta::Text(format!("You sent {messages} messages."))).await;
//!         call.send(Delta::Finish(FinishReason::Stop)).await;
//!         Ok(())
//!     })
//! });
//! ```

use std::borrow::Cow;

use futures::future::LocalBoxFuture;

use crate::models::call::{Incoming, ProviderCall};
use crate::models::{
    Answer, ChatRequest, Delta, ProviderError, anthropic, demo, openai, responses, workers_ai,
};
use crate::registry::{Panicked, Registry, contained};

/// What answers a request: it sends the parts of the reply through the call, and ends when the reply is complete. Its
/// error ends the attempt, and its code says what is done about it ([`ProviderError::retryable`],
/// [`ProviderError::moves_on`]). Dropped when the run is stopped, and when it is silent for too long.
pub type Native = fn(ProviderCall) -> LocalBoxFuture<'static, Result<(), ProviderError>>;

/// The providers of this crate.
const BUILT_IN: &[(&str, Native)] = &[
    ("anthropic", |call| Box::pin(ask_anthropic(call))),
    ("demo", |call| Box::pin(demo::answer_call(call))),
    ("openai", |call| Box::pin(ask_openai(call))),
    ("workers-ai", |call| Box::pin(ask_workers_ai(call))),
];

thread_local! {
    // Filled once when the program starts.
    static NATIVES: Registry<Native> = const { Registry::new(BUILT_IN) };
}

/// Adds a provider, or replaces the one of that name. Call it when the program starts.
pub fn register(name: &'static str, native: Native) {
    NATIVES.with(|natives| natives.add(name, native));
}

/// The names that definitions may use.
pub fn providers() -> Vec<&'static str> {
    NATIVES.with(Registry::names)
}

/// Whether this program has a provider of that name.
pub(crate) fn has_provider(name: &str) -> bool {
    NATIVES.with(|natives| natives.find(name)).is_some()
}

/// Starts the provider that a call names. One that this program does not have is an error.
pub fn start(call: ProviderCall) -> LocalBoxFuture<'static, Result<(), ProviderError>> {
    match NATIVES.with(|natives| natives.find(call.provider.name())) {
        Some(native) => native(call),
        None => {
            let lack = format!("the provider \"{}\" is not part of this deployment", call.provider.name());
            Box::pin(std::future::ready(Err(ProviderError::not_set_up(&lack))))
        }
    }
}

/// The same; a panic ends this call alone.
///
/// # Errors
/// What the panic said.
pub async fn run(call: ProviderCall) -> Result<Result<(), ProviderError>, Panicked> {
    // The function may panic before it gives a future.
    contained(async move { start(call).await }).await
}

async fn ask_openai(call: ProviderCall) -> Result<(), ProviderError> {
    let (base_url, key) = (call.base_url.as_deref().unwrap_or_default(), call.api_key.as_deref());
    if responses::speaks_responses(call.request.api, base_url) {
        return ask_responses(&call, base_url, key).await;
    }
    let ask = async |chat: &ChatRequest| {
        let request = openai::request(chat, base_url, key, call.answer);
        let decoder = Decoder::Openai(openai::Decoder::new(key));
        exchange(&call, call.fetch(request).await?, decoder).await
    };
    adjusting(&call, base_url, ask).await
}

/// Makes a request of chat completions again without what its model, at this address, refuses.
async fn adjusting(
    call: &ProviderCall,
    base_url: &str,
    ask: impl AsyncFn(&ChatRequest) -> Result<(), ProviderError>,
) -> Result<(), ProviderError> {
    let mut chat = openai::adjusted(&call.request, base_url);
    // Each adjustment changes the request once.
    for _ in openai::Refused::ALL {
        let error = match ask(&chat).await {
            Err(error) => error,
            Ok(()) => return Ok(()),
        };
        let refused = openai::Refused::ALL.into_iter().find(|refused| refused.is_meant(&error));
        let Some((refused, adjusted)) = refused.and_then(|of| Some((of, of.without(&chat)?))) else {
            return Err(error);
        };
        refused.remember(base_url, &call.request.model);
        call.door.adjusted(&refused.note(&call.request.model));
        chat = Cow::Owned(adjusted);
    }
    ask(&chat).await
}

/// An answer that the provider went on with, while this process was lost or the connection broken, is fetched; else it is asked
/// for.
async fn ask_responses(call: &ProviderCall, base_url: &str, key: Option<&str>) -> Result<(), ProviderError> {
    let decoder = || Decoder::Responses(responses::Decoder::new(key));
    if let Some(id) = call.earlier.as_deref() {
        let state = responses::state(call, responses::fetch(base_url, key, id, Answer::Whole)).await?;
        match state {
            responses::Earlier::Lost => {}
            responses::Earlier::Running => {
                call.door.adjusted(FETCHED);
                let request = responses::fetch(base_url, key, id, Answer::Stream);
                return exchange(call, call.fetch(request).await?, decoder()).await;
            }
            responses::Earlier::Over(body) => {
                call.door.adjusted(FETCHED);
                let (mut decoder, mut deltas) = (decoder(), Vec::new());
                let read = decoder.push(&body, &mut deltas).and_then(|()| decoder.finish(&mut deltas));
                call.send_all(&mut deltas).await;
                return read;
            }
        }
    }
    // Such a server answers at once that it has begun: only a stream tells more.
    let background = responses::is_in_background(&call.request);
    let answer = if background { Answer::Stream } else { call.answer };
    let request = responses::request(&call.request, base_url, key, answer);
    exchange(call, call.fetch(request).await?, decoder()).await
}

/// What the log says of an answer that was not asked for again.
const FETCHED: &str = "the answer of an earlier attempt was fetched, not asked for again";

async fn ask_anthropic(call: ProviderCall) -> Result<(), ProviderError> {
    let (base_url, key) = (call.base_url.as_deref().unwrap_or_default(), call.api_key.as_deref());
    let request = anthropic::request(&call.request, base_url, key, call.answer);
    let decoder = Decoder::Anthropic(anthropic::Decoder::new(key));
    exchange(&call, call.fetch(request).await?, decoder).await
}

async fn ask_workers_ai(call: ProviderCall) -> Result<(), ProviderError> {
    let ask = async |chat: &ChatRequest| {
        let request = workers_ai::request(chat, call.answer);
        exchange(&call, call.ask_ai(request).await?, Decoder::Openai(openai::Decoder::new(None))).await
    };
    adjusting(&call, workers_ai::ADDRESS, ask).await
}

/// An answer, as it is decoded.
async fn exchange(
    call: &ProviderCall,
    mut incoming: Incoming,
    mut decoder: Decoder,
) -> Result<(), ProviderError> {
    if !incoming.is_ok() {
        return Err(incoming.refusal().await);
    }
    let mut deltas = Vec::new();
    let mut events = 0;
    loop {
        let (chunk, lost) = match incoming.next().await {
            Some(Ok(chunk)) => (Some(chunk), None),
            Some(Err(error)) => (None, Some(error)),
            None => (None, None),
        };
        let decoded = match &chunk {
            Some(bytes) => decoder.push(bytes, &mut deltas),
            // A connection that was lost after the answer was complete has lost nothing.
            None => decoder.finish(&mut deltas).map_err(|error| lost.unwrap_or(error)),
        };
        if decoder.events() > events {
            events = decoder.events();
            call.heard();
        }
        call.send_all(&mut deltas).await;
        decoded?;
        if chunk.is_some() && decoder.is_done() {
            incoming.drain();
        } else if chunk.is_some() {
            continue;
        }
        return Ok(());
    }
}

/// Decodes a provider's answer, whichever of those of this crate it is.
#[derive(Debug)]
pub enum Decoder {
    /// Chat completions.
    Openai(openai::Decoder),
    /// Responses.
    Responses(responses::Decoder),
    /// Anthropic's messages.
    Anthropic(anthropic::Decoder),
}

impl Decoder {
    /// Takes the next bytes of the body and appends what they say to `out`. Bytes that say nothing (comments, half a
    /// chunk, deltas without content) append nothing: a delta with [`Delta::is_payload`] ends the wait for the first
    /// chunk.
    ///
    /// # Errors
    /// What the provider reports in the stream, or what cannot be read. The decoder is of no use afterwards.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<Delta>) -> Result<(), ProviderError> {
        match self {
            Decoder::Openai(decoder) => decoder.push(bytes, out),
            Decoder::Responses(decoder) => decoder.push(bytes, out),
            Decoder::Anthropic(decoder) => decoder.push(bytes, out),
        }
    }

    /// Events that have come. Comments, which keep a connection open, are none.
    pub fn events(&self) -> u64 {
        match self {
            Decoder::Openai(decoder) => decoder.events(),
            Decoder::Responses(decoder) => decoder.events(),
            Decoder::Anthropic(decoder) => decoder.events(),
        }
    }

    /// Whether the provider has said that nothing follows: some keep the connection open, and its end need not be
    /// waited for.
    pub fn is_done(&self) -> bool {
        match self {
            Decoder::Openai(decoder) => decoder.is_done(),
            Decoder::Responses(decoder) => decoder.is_done(),
            Decoder::Anthropic(decoder) => decoder.is_done(),
        }
    }

    /// The body has ended; what was still open is appended to `out`. May be called as well when it broke off or fell
    /// silent: after the finish reason the answer is complete, only what tells the cost may be missing.
    ///
    /// # Errors
    /// As for [`push`](Decoder::push), and `server_error` when the answer is not complete.
    pub fn finish(&mut self, out: &mut Vec<Delta>) -> Result<(), ProviderError> {
        match self {
            Decoder::Openai(decoder) => decoder.finish(out),
            Decoder::Responses(decoder) => decoder.finish(out),
            Decoder::Anthropic(decoder) => decoder.finish(out),
        }
    }
}
