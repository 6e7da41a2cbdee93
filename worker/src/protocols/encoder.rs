//! Encoders of a feed into another protocol, for the bridge in JavaScript.

use std::cell::RefCell;

use bobbin::protocols::encode::Encode;
use wasm_bindgen::prelude::*;

/// An encoder, fed by the bridge.
#[wasm_bindgen]
pub struct Encoder(RefCell<Box<dyn Encode>>);

impl std::panic::RefUnwindSafe for Encoder {}
impl std::panic::UnwindSafe for Encoder {}

impl Encoder {
    pub(crate) fn new(encode: impl Encode + 'static) -> Encoder {
        Encoder(RefCell::new(Box::new(encode)))
    }
}

#[wasm_bindgen]
impl Encoder {
    /// Encodes frames of the feed for the client.
    pub fn push(&self, events: &str) -> std::result::Result<String, JsValue> {
        self.0.borrow_mut().push(events).map_err(|error| JsValue::from_str(&error.message))
    }

    /// Whether the response is complete.
    #[wasm_bindgen(getter)]
    pub fn over(&self) -> bool {
        self.0.borrow().is_over()
    }

    /// The status of the answer.
    #[wasm_bindgen(getter)]
    pub fn status(&self) -> u16 {
        self.0.borrow().status()
    }

    /// Interval of heartbeats, milliseconds; undefined for the default.
    #[wasm_bindgen(getter, js_name = beatMs)]
    pub fn beat_ms(&self) -> Option<u32> {
        self.0.borrow().beat_ms()
    }

    /// A heartbeat for an idle stream; undefined for a comment.
    pub fn beat(&self) -> Option<String> {
        self.0.borrow_mut().beat()
    }

    /// A call of the thread's object whose response is needed before the next output; undefined for none.
    pub fn asks(&self) -> Option<String> {
        self.0.borrow_mut().asks()
    }

    /// Encodes the object's response for the client.
    pub fn answered(&self, status: u16, body: &str) -> std::result::Result<String, JsValue> {
        self.0.borrow_mut().answered(status, body).map_err(|error| JsValue::from_str(&error.message))
    }

    /// A call of the thread's object for the case that the client disconnects; undefined for none.
    pub fn leaving(&self) -> Option<String> {
        self.0.borrow().leaving()
    }

    /// The whole response, JSON.
    pub fn whole(&self) -> String {
        self.0.borrow().whole().to_string()
    }

    /// Headers that are known only at the end: JSON, an array of pairs.
    pub fn headers(&self) -> String {
        serde_json::to_string(&self.0.borrow().headers()).unwrap_or_else(|_| "[]".to_owned())
    }
}
