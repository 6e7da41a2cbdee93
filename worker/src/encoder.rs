//! Encoders of a feed into another protocol, for the bridge in JavaScript.

use std::cell::RefCell;

use bobbin::api::wire::encode::Encode;
use wasm_bindgen::prelude::*;

/// It, fed by the bridge.
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
    /// What frames of the feed are for the client.
    pub fn push(&self, events: &str) -> std::result::Result<String, JsValue> {
        self.0.borrow_mut().push(events).map_err(|error| JsValue::from_str(&error.message))
    }

    /// Whether it has said the last thing.
    #[wasm_bindgen(getter)]
    pub fn over(&self) -> bool {
        self.0.borrow().is_over()
    }

    /// The status of the answer.
    #[wasm_bindgen(getter)]
    pub fn status(&self) -> u16 {
        self.0.borrow().status()
    }

    /// How often a client is told something, milliseconds; undefined for as often as is usual.
    #[wasm_bindgen(getter, js_name = beatMs)]
    pub fn beat_ms(&self) -> Option<u32> {
        self.0.borrow().beat_ms()
    }

    /// What a client is told that has been told nothing for a while; undefined where a comment does.
    pub fn beat(&self) -> Option<String> {
        self.0.borrow_mut().beat()
    }

    /// A call of the thread's object whose answer is needed before anything else is said; undefined for none.
    pub fn asks(&self) -> Option<String> {
        self.0.borrow_mut().asks()
    }

    /// What the object has answered, as what is said to the client.
    pub fn answered(&self, status: u16, body: &str) -> std::result::Result<String, JsValue> {
        self.0.borrow_mut().answered(status, body).map_err(|error| JsValue::from_str(&error.message))
    }

    /// A call of the thread's object that is due when the client has gone; undefined for none.
    pub fn leaving(&self) -> Option<String> {
        self.0.borrow().leaving()
    }

    /// The answer as a whole, JSON.
    pub fn whole(&self) -> String {
        self.0.borrow().whole().to_string()
    }

    /// Headers that only the end tells: JSON, an array of pairs.
    pub fn headers(&self) -> String {
        serde_json::to_string(&self.0.borrow().headers()).unwrap_or_else(|_| "[]".to_owned())
    }
}
