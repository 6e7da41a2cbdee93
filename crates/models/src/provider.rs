//! Providers of models: how one is called, and the registry of their names in definitions (`provider`; spec
//! §4.1).
//!
//! This crate's providers are in one table. A crate that embeds this one can register its own. The engine
//! calls those with the same watchdogs, retries, fallbacks and logs:
//!
//! ```
//! use bobbin_models::{Delta, FinishReason};
//! bobbin_models::register("counting", |call| {
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

use crate::call::{ProviderCall, StreamedResponse};
use crate::registry::{Panic, Registry, contained};
use crate::{
    ChatRequest, Delta, ProviderError, ResponseMode, anthropic, demo, openai, responses, workers_ai,
};

/// Answers a request: sends the parts of the reply through the call, and returns when the reply is complete.
/// An error ends the attempt, and its code decides what happens next ([`ProviderError::retryable`],
/// [`ProviderError::moves_on`]). Dropped when the run is stopped, or when the model exceeds a time limit.
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

/// Names that definitions may use.
pub fn providers() -> Vec<&'static str> {
    NATIVES.with(Registry::names)
}

/// Whether this program has a provider with that name.
pub fn has_provider(name: &str) -> bool {
    NATIVES.with(|natives| natives.find(name)).is_some()
}

/// Starts the provider that a call names. An unknown provider is an error.
pub fn start(call: ProviderCall) -> LocalBoxFuture<'static, Result<(), ProviderError>> {
    match NATIVES.with(|natives| natives.find(call.provider.name())) {
        Some(native) => native(call),
        None => {
            let lack = format!("the provider \"{}\" is not part of this deployment", call.provider.name());
            Box::pin(std::future::ready(Err(ProviderError::not_set_up(&lack))))
        }
    }
}

/// Like `start`, but a panic ends only this call.
///
/// # Errors
/// The panic's message.
pub async fn run(call: ProviderCall) -> Result<Result<(), ProviderError>, Panic> {
    // Inside the future, because the function may panic before it returns one.
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

/// Sends a chat completion request, and repeats it without options that its model refuses at this address.
async fn adjusting(
    call: &ProviderCall,
    base_url: &str,
    ask: impl AsyncFn(&ChatRequest) -> Result<(), ProviderError>,
) -> Result<(), ProviderError> {
    let mut chat = openai::adjusted(&call.request, base_url);
    // Each adjustment changes the request once.
    for _ in openai::RefusedFeature::ALL {
        let error = match ask(&chat).await {
            Err(error) => error,
            Ok(()) => return Ok(()),
        };
        let refused = openai::RefusedFeature::ALL.into_iter().find(|refused| refused.is_meant(&error));
        let Some((refused, adjusted)) = refused.and_then(|of| Some((of, of.without(&chat)?))) else {
            return Err(error);
        };
        refused.remember(base_url, &call.request.model);
        call.door.adjusted(&refused.note(&call.request.model));
        chat = Cow::Owned(adjusted);
    }
    ask(&chat).await
}

/// Fetches the response to an earlier attempt, if the provider continued it after the process or the
/// connection was lost. Otherwise sends the request.
async fn ask_responses(call: &ProviderCall, base_url: &str, key: Option<&str>) -> Result<(), ProviderError> {
    let decoder = || Decoder::Responses(responses::Decoder::new(key));
    if let Some(id) = call.earlier.as_deref() {
        let state = responses::state(call, responses::fetch(base_url, key, id, ResponseMode::Whole)).await?;
        match state {
            responses::EarlierResponse::Lost => {}
            responses::EarlierResponse::Running => {
                call.door.adjusted(FETCHED);
                let request = responses::fetch(base_url, key, id, ResponseMode::Stream);
                return exchange(call, call.fetch(request).await?, decoder()).await;
            }
            responses::EarlierResponse::Over(body) => {
                call.door.adjusted(FETCHED);
                let (mut decoder, mut deltas) = (decoder(), Vec::new());
                let read = decoder.push(&body, &mut deltas).and_then(|()| decoder.finish(&mut deltas));
                call.send_all(&mut deltas).await;
                return read;
            }
        }
    }
    // In the background, the first response only says that it has begun: the rest needs a stream.
    let background = responses::is_in_background(&call.request);
    let answer = if background { ResponseMode::Stream } else { call.answer };
    let request = responses::request(&call.request, base_url, key, answer);
    exchange(call, call.fetch(request).await?, decoder()).await
}

/// Log text for a response that was fetched instead of requested again.
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

/// Decodes a response as it arrives.
async fn exchange(
    call: &ProviderCall,
    mut incoming: StreamedResponse,
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
            // A connection that breaks after the complete response loses nothing.
            None => decoder.finish(&mut deltas).map_err(|error| lost.unwrap_or(error)),
        };
        if decoder.events() > events {
            events = decoder.events();
            call.keep_alive();
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

/// Decoder of a response, for any provider of this crate.
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
    /// Decodes the next bytes of the body, and appends the deltas to `out`. Bytes without content (comments,
    /// half a chunk, empty deltas) append nothing, because a delta with [`Delta::is_payload`] ends the wait
    /// for the first chunk.
    ///
    /// # Errors
    /// An error that the provider reports in the stream, or unreadable data. The decoder must not be used
    /// afterwards.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<Delta>) -> Result<(), ProviderError> {
        match self {
            Decoder::Openai(decoder) => decoder.push(bytes, out),
            Decoder::Responses(decoder) => decoder.push(bytes, out),
            Decoder::Anthropic(decoder) => decoder.push(bytes, out),
        }
    }

    /// Number of events so far. Comments, which only keep a connection open, do not count.
    pub fn events(&self) -> u64 {
        match self {
            Decoder::Openai(decoder) => decoder.events(),
            Decoder::Responses(decoder) => decoder.events(),
            Decoder::Anthropic(decoder) => decoder.events(),
        }
    }

    /// Whether the provider has marked the end. Some keep the connection open, so the end of the body need
    /// not be awaited.
    pub fn is_done(&self) -> bool {
        match self {
            Decoder::Openai(decoder) => decoder.is_done(),
            Decoder::Responses(decoder) => decoder.is_done(),
            Decoder::Anthropic(decoder) => decoder.is_done(),
        }
    }

    /// Ends the body, and appends what was incomplete to `out`. Also for a body that broke off or stalled:
    /// after the finish reason the reply is complete, and only the usage may be missing.
    ///
    /// # Errors
    /// As for [`push`](Decoder::push), and `server_error` when the response is incomplete.
    pub fn finish(&mut self, out: &mut Vec<Delta>) -> Result<(), ProviderError> {
        match self {
            Decoder::Openai(decoder) => decoder.finish(out),
            Decoder::Responses(decoder) => decoder.finish(out),
            Decoder::Anthropic(decoder) => decoder.finish(out),
        }
    }
}
