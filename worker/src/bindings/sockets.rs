//! WebSockets that outlive the memory of their object.
//!
//! A frame's text crosses once, as a JavaScript string that is sent to all of its listeners. The crate `worker` takes Rust
//! text, and would copy it for each listener.

use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    /// `WebSocket`.
    #[derive(Clone)]
    pub(crate) type Socket;

    #[wasm_bindgen(method, catch)]
    pub(crate) fn send(this: &Socket, text: &JsValue) -> Result<(), JsValue>;
    #[wasm_bindgen(method, catch)]
    pub(crate) fn close(this: &Socket, code: u16, reason: &str) -> Result<(), JsValue>;
    #[wasm_bindgen(method, catch, js_name = serializeAttachment)]
    pub(crate) fn serialize_attachment(this: &Socket, value: &JsValue) -> Result<(), JsValue>;
    #[wasm_bindgen(method, catch, js_name = deserializeAttachment)]
    pub(crate) fn deserialize_attachment(this: &Socket) -> Result<JsValue, JsValue>;

    /// 1 if open; 2 if closed on this side and not yet confirmed by the client.
    #[wasm_bindgen(method, getter, js_name = readyState)]
    pub(crate) fn ready_state(this: &Socket) -> u16;

    /// `WebSocketPair`: the client's end is `0`, the object's is `1`.
    #[wasm_bindgen(js_name = WebSocketPair)]
    pub(crate) type SocketPair;

    #[wasm_bindgen(constructor, catch, js_class = "WebSocketPair")]
    pub(crate) fn new() -> Result<SocketPair, JsValue>;
    #[wasm_bindgen(method, structural, indexing_getter)]
    fn get(this: &SocketPair, end: u32) -> Socket;

    #[wasm_bindgen(js_name = WebSocketRequestResponsePair)]
    type AutoResponse;
    #[wasm_bindgen(constructor, catch, js_class = "WebSocketRequestResponsePair")]
    fn new(request: &str, response: &str) -> Result<AutoResponse, JsValue>;
}

impl SocketPair {
    /// The end that the client gets.
    pub(crate) fn client(&self) -> Socket {
        self.get(0)
    }

    /// The end that the object keeps.
    pub(crate) fn server(&self) -> Socket {
        self.get(1)
    }
}

/// The platform's automatic response to a message, which does not wake the object.
pub(crate) fn auto_response(request: &str, response: &str) -> Result<JsValue, JsValue> {
    AutoResponse::new(request, response).map(JsValue::from)
}
