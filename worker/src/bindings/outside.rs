//! Outgoing requests, time, randomness, the log.

use wasm_bindgen::prelude::*;

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

    #[wasm_bindgen(catch, js_name = setTimeout)]
    fn set_timeout(callback: &js_sys::Function, ms: f64) -> Result<JsValue, JsValue>;
    #[wasm_bindgen(catch, js_name = clearTimeout)]
    fn clear_timeout(id: &JsValue) -> Result<(), JsValue>;
}

/// Receives a chunk or an error; with neither, the end.
pub(crate) type ChunkCallback = Closure<dyn FnMut(Option<Vec<u8>>, Option<String>)>;

#[wasm_bindgen(module = "/platform.js")]
extern "C" {
    /// An outgoing request with its response: one JavaScript object, so that headers take one crossing each
    /// way, as with incoming requests (see [`super::Head`]). The crate `worker` makes one for each header.
    pub(crate) type Outgoing;

    /// Sends a request. `headers` is a JSON array of pairs.
    #[wasm_bindgen(constructor, catch)]
    pub(crate) fn new(
        method: &str,
        url: &str,
        headers: &str,
        body: Option<js_sys::Uint8Array>,
        take: &ChunkCallback,
    ) -> Result<Outgoing, JsValue>;
    /// Calls a model of Workers AI instead. `gateway` is a JSON object, or empty.
    #[wasm_bindgen(constructor, catch)]
    pub(crate) fn of_model(
        method: &str,
        model: &str,
        gateway: &str,
        input: js_sys::Uint8Array,
        take: &ChunkCallback,
        ai: &JsValue,
    ) -> Result<Outgoing, JsValue>;
    /// Resolves with the status, a line break, and the headers in the form of `headers`. A successful
    /// response has only `content-type`, unless `all` are requested.
    #[wasm_bindgen(method, catch)]
    pub(crate) async fn head(this: &Outgoing, all: bool) -> Result<JsValue, JsValue>;
    /// Requests the next chunk, which `take` receives.
    #[wasm_bindgen(method, catch)]
    pub(crate) fn next(this: &Outgoing) -> Result<(), JsValue>;
    /// Releases `take`. With `cancel`, cancels the request or the rest of its response.
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
        // The only possible failure: the platform has no randomness outside an event, where our code does not
        // run. Ids of zeros would be worse than a panic.
        std::panic::resume_unwind(Box::new("the platform gives random bytes only within an event"));
    }
    bytes
}

/// A timer, cleared when it is dropped.
pub(crate) struct Timer(JsValue);

impl Timer {
    /// Maximum delay of the platform's timers.
    const MAX_MS: f64 = 2_147_483_647.0;

    /// Calls `rings` in `ms` milliseconds, at most 24 days. The closure must outlive the timer.
    pub(crate) fn after(rings: &Closure<dyn FnMut()>, ms: f64) -> Result<Timer, JsValue> {
        Ok(Timer(set_timeout(rings.as_ref().unchecked_ref(), ms.clamp(0.0, Timer::MAX_MS))?))
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // Clearing a timer that has fired has no effect, and nothing else can fail.
        let _ = clear_timeout(&self.0);
    }
}
