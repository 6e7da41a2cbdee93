//! The world outside: requests, time, chance, the log.

use std::pin::Pin;
use std::task::{Context, Poll};

use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

#[wasm_bindgen]
extern "C" {
    /// `RequestInit`.
    #[wasm_bindgen(extends = js_sys::Object)]
    pub(crate) type FetchInit;

    #[wasm_bindgen(method, setter)]
    pub(crate) fn set_headers(this: &FetchInit, pairs: &js_sys::Array);

    /// `Response`.
    pub(crate) type FetchResponse;

    #[wasm_bindgen(method, getter)]
    pub(crate) fn status(this: &FetchResponse) -> u16;
    /// The socket of an accepted upgrade; null otherwise.
    #[wasm_bindgen(method, getter, js_name = webSocket)]
    pub(crate) fn web_socket(this: &FetchResponse) -> JsValue;
    #[wasm_bindgen(method, catch)]
    pub(crate) async fn text(this: &FetchResponse) -> Result<JsValue, JsValue>;

    /// Milliseconds since 1970.
    #[wasm_bindgen(js_namespace = Date, js_name = now)]
    pub(crate) fn date_now() -> f64;

    /// One line for the operator.
    #[wasm_bindgen(js_namespace = console)]
    pub(crate) fn log(line: &str);

    /// What `Promise.withResolvers` returns.
    type Resolvers;
    #[wasm_bindgen(js_namespace = Promise, js_name = withResolvers)]
    fn with_resolvers() -> Resolvers;
    #[wasm_bindgen(method, getter)]
    fn promise(this: &Resolvers) -> js_sys::Promise;
    #[wasm_bindgen(method, getter)]
    fn resolve(this: &Resolvers) -> js_sys::Function;

    #[wasm_bindgen(catch, js_name = setTimeout)]
    fn set_timeout(callback: &js_sys::Function, ms: f64) -> Result<JsValue, JsValue>;
    #[wasm_bindgen(catch, js_name = clearTimeout)]
    fn clear_timeout(id: &JsValue) -> Result<(), JsValue>;
}

/// Takes a chunk, or an error, or with neither the end.
pub(crate) type Take = Closure<dyn FnMut(Option<Vec<u8>>, Option<String>)>;

#[wasm_bindgen(module = "/platform.js")]
extern "C" {
    /// A request to elsewhere and its answer: one object on the JavaScript side, so that headers take one crossing each way,
    /// as with incoming requests (see [`super::Head`]). The crate `worker` makes one for each header.
    pub(crate) type Outgoing;

    /// Sends it. `headers` is a JSON array of pairs.
    #[wasm_bindgen(constructor, catch)]
    pub(crate) fn new(
        method: &str,
        url: &str,
        headers: &str,
        body: Option<js_sys::Uint8Array>,
        take: &Take,
    ) -> Result<Outgoing, JsValue>;
    /// Asks a model of Workers AI instead: `gateway` is a JSON object, or empty.
    #[wasm_bindgen(constructor, catch)]
    pub(crate) fn of_model(
        method: &str,
        model: &str,
        gateway: &str,
        input: js_sys::Uint8Array,
        take: &Take,
        ai: &JsValue,
    ) -> Result<Outgoing, JsValue>;
    /// Resolves with the status of the answer, a line break, and its headers as `headers` are given. Of an answer
    /// that did not fail only `content-type`, unless `all` are wanted.
    #[wasm_bindgen(method, catch)]
    pub(crate) async fn head(this: &Outgoing, all: bool) -> Result<JsValue, JsValue>;
    /// Asks for the next chunk, which `take` will be given.
    #[wasm_bindgen(method, catch)]
    pub(crate) fn next(this: &Outgoing) -> Result<(), JsValue>;
    /// Lets go of `take`, and cancels what has not come to its end.
    #[wasm_bindgen(method, catch)]
    pub(crate) fn leave(this: &Outgoing, cancel: bool) -> Result<(), JsValue>;
}

impl FetchInit {
    /// An empty one.
    pub(crate) fn new() -> FetchInit {
        js_sys::Object::new().unchecked_into()
    }
}

/// Random bytes of the platform.
pub(crate) fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    if getrandom::fill(&mut bytes).is_err() {
        // The one way to fail: the platform gives none outside of an event, where nothing of ours runs. Ids of zeros would be
        // worse than a panic.
        std::panic::resume_unwind(Box::new("the platform gives random bytes only within an event"));
    }
    bytes
}

/// A timer, cleared when it is dropped.
pub(crate) struct Timer {
    id: JsValue,
    fired: JsFuture,
}

impl Timer {
    /// The longest wait that the platform's timers know.
    const MAX_MS: f64 = 2_147_483_647.0;

    /// Fires in so many milliseconds, at most 24 days.
    pub(crate) fn after(ms: f64) -> Result<Timer, JsValue> {
        let resolvers = with_resolvers();
        let id = set_timeout(&resolvers.resolve(), ms.clamp(0.0, Timer::MAX_MS))?;
        Ok(Timer { id, fired: JsFuture::from(resolvers.promise()) })
    }
}

impl Future for Timer {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.fired).poll(context).map(|_| ())
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // Clearing one that has fired does nothing, and nothing else can fail.
        let _ = clear_timeout(&self.id);
    }
}
