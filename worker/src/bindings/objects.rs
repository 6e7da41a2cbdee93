//! Objects: this one's context, others by name, and the variables of the deployment.

use bobbin::host::ai::AI_BINDING;
use wasm_bindgen::prelude::*;

use super::{FetchInit, FetchResponse, IncomingRequest, Socket, Storage};

#[wasm_bindgen]
extern "C" {
    /// `DurableObjectState`.
    #[derive(Clone)]
    pub(crate) type ObjectState;

    #[wasm_bindgen(method, getter, catch)]
    pub(crate) fn storage(this: &ObjectState) -> Result<Storage, JsValue>;

    /// Keeps the object alive for this promise. The platform logs a rejection.
    #[wasm_bindgen(method, catch, js_name = waitUntil)]
    pub(crate) fn wait_until(this: &ObjectState, promise: &js_sys::Promise) -> Result<(), JsValue>;

    #[wasm_bindgen(method, catch, js_name = acceptWebSocket)]
    pub(crate) fn accept_web_socket(this: &ObjectState, socket: &Socket) -> Result<(), JsValue>;

    #[wasm_bindgen(method, catch, js_name = getWebSockets)]
    pub(crate) fn get_web_sockets(this: &ObjectState) -> Result<Vec<Socket>, JsValue>;

    #[wasm_bindgen(method, catch, js_name = setWebSocketAutoResponse)]
    pub(crate) fn set_web_socket_auto_response(this: &ObjectState, pair: &JsValue) -> Result<(), JsValue>;

    /// Time of the platform's last response to a `ping` of this socket: a `Date`, or null.
    #[wasm_bindgen(method, catch, js_name = getWebSocketAutoResponseTimestamp)]
    pub(crate) fn auto_response_time(this: &ObjectState, socket: &Socket) -> Result<JsValue, JsValue>;

    /// `DurableObjectNamespace`.
    #[derive(Clone)]
    pub(crate) type Namespace;

    #[wasm_bindgen(method, catch, js_name = getByName)]
    pub(crate) fn get_by_name(this: &Namespace, name: &str) -> Result<Stub, JsValue>;

    /// `R2Bucket`. The crate `worker` has it too, but would make every Worker larger, with a bucket or
    /// without.
    #[derive(Clone)]
    pub(crate) type Bucket;

    /// A stub of one of our objects. A call takes 71 µs; a request by `fetch` through the crate `worker` took 350 µs, and it
    /// wraps no remote calls (docs/decisions/003-a-shim-of-our-own.md).
    pub(crate) type Stub;

    /// The one remote call: `text` is the call's JSON, for a thread followed by a line break and the request's body.
    /// Resolves with `[status, retryAfter, body]`: a number, a number or undefined, a JSON text or undefined.
    #[wasm_bindgen(method, catch)]
    pub(crate) async fn call(this: &Stub, text: &JsValue) -> Result<JsValue, JsValue>;

    #[wasm_bindgen(method, catch)]
    pub(crate) async fn fetch(this: &Stub, url: &str, init: &FetchInit) -> Result<FetchResponse, JsValue>;
}

#[wasm_bindgen(module = "/platform.js")]
extern "C" {
    /// A call with the body of a request. Resolves as [`Stub::call`] does, with undefined if the body has
    /// more than `limit` bytes, and with the reason as text if it cannot be read.
    #[wasm_bindgen(catch)]
    pub(crate) async fn relay(
        objects: &Namespace,
        name: &str,
        head: &str,
        request: &IncomingRequest,
        limit: usize,
        known: bool,
    ) -> Result<JsValue, JsValue>;
}

/// The deployment's variables and bindings.
#[derive(Clone)]
pub(crate) struct Env(JsValue);

impl Env {
    pub(crate) fn new(env: JsValue) -> Env {
        Env(env)
    }

    /// A variable. Bindings that are not strings are ignored.
    pub(crate) fn var(&self, name: &str) -> Option<String> {
        js_sys::Reflect::get(&self.0, &JsValue::from_str(name)).ok()?.as_string()
    }

    /// The namespace of the threads' objects.
    pub(crate) fn threads(&self) -> Result<Namespace, JsValue> {
        self.namespace("THREADS")
    }

    /// The isolate Worker, if one is bound.
    pub(crate) fn isolate(&self) -> Option<JsValue> {
        let isolate = js_sys::Reflect::get(&self.0, &JsValue::from_str("ISOLATE")).ok()?;
        (!isolate.is_undefined()).then_some(isolate)
    }

    /// Workers AI, if it is bound.
    pub(crate) fn ai(&self) -> Option<JsValue> {
        let found = js_sys::Reflect::get(&self.0, &JsValue::from_str(AI_BINDING)).ok()?;
        found.is_object().then_some(found)
    }

    /// The namespace of the directories.
    pub(crate) fn directories(&self) -> Result<Namespace, JsValue> {
        self.namespace("DIRECTORY")
    }

    /// The bucket of the files, if one is bound.
    pub(crate) fn files(&self) -> Option<Bucket> {
        let found = js_sys::Reflect::get(&self.0, &JsValue::from_str("FILES")).ok()?;
        found.is_object().then(|| found.unchecked_into())
    }

    /// The namespace of the memories that threads share.
    pub(crate) fn memories(&self) -> Result<Namespace, JsValue> {
        self.namespace("MEMORY")
    }

    fn namespace(&self, binding: &str) -> Result<Namespace, JsValue> {
        let found = js_sys::Reflect::get(&self.0, &JsValue::from_str(binding))?;
        if found.is_object() {
            Ok(found.unchecked_into())
        } else {
            Err(js_sys::Error::new(&format!("The binding {binding} is missing in wrangler.toml.")).into())
        }
    }
}
