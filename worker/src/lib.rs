//! A stand-in for the Worker: it answers through every path of the tool chain and the shim, and fails in
//! every way the shim has to survive.
#![cfg(target_arch = "wasm32")]

use std::cell::Cell;

use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(resolve: &js_sys::Function, ms: u32);
}

async fn sleep(ms: u32) {
    let promise = js_sys::Promise::new(&mut |resolve, _| set_timeout(&resolve, ms));
    let _ = wasm_bindgen_futures::JsFuture::from(promise).await;
}

/// A thread.
#[wasm_bindgen]
pub struct ThreadObject {
    calls: Cell<u32>,
    catalog: usize,
}

impl std::panic::RefUnwindSafe for ThreadObject {}
impl std::panic::UnwindSafe for ThreadObject {}

#[wasm_bindgen]
impl ThreadObject {
    /// `ctx` and `env` as the platform gives them, and the text of catalog.json.
    #[wasm_bindgen(constructor)]
    pub fn new(_ctx: JsValue, _env: JsValue, catalog: &str) -> ThreadObject {
        ThreadObject { calls: Cell::new(0), catalog: catalog.len() }
    }

    /// A WebSocket upgrade.
    pub async fn fetch(&self, _request: JsValue) -> Result<JsValue, JsValue> {
        Err(JsValue::from_str("not yet"))
    }

    /// The alarm.
    pub async fn alarm(&self, _info: JsValue) {}

    /// Every remote call.
    pub async fn call(&self, json: String) -> Result<String, JsValue> {
        self.calls.set(self.calls.get() + 1);
        match json.as_str() {
            "slow" => sleep(700).await,
            "panic" => {
                sleep(5).await;
                None::<u8>.ok_or(()).map_err(|()| ()).unwrap_or_else(|()| panics());
            }
            "trap" => {
                sleep(5).await;
                core::arch::wasm32::unreachable()
            }
            "deep" => {
                std::hint::black_box(deep(1));
            }
            _ => {}
        }
        Ok(format!("call {} with {json:?}, catalog of {} bytes", self.calls.get(), self.catalog))
    }

    /// A message on a hibernating socket.
    #[wasm_bindgen(js_name = webSocketMessage)]
    pub async fn web_socket_message(&self, _socket: JsValue, _message: JsValue) {}

    /// The end of a hibernating socket.
    #[wasm_bindgen(js_name = webSocketClose)]
    pub async fn web_socket_close(&self, _socket: JsValue, _code: u16, _reason: String, _clean: bool) {}

    /// A broken hibernating socket.
    #[wasm_bindgen(js_name = webSocketError)]
    pub async fn web_socket_error(&self, _socket: JsValue, _error: JsValue) {}
}

#[allow(clippy::panic)]
fn panics() -> u8 {
    panic!("a panic")
}

#[allow(unconditional_recursion, clippy::indexing_slicing)]
fn deep(n: u64) -> u64 {
    let a = [n; 64];
    deep(n + 1) + std::hint::black_box(a)[3]
}

/// The directory.
#[wasm_bindgen]
pub struct DirectoryObject {}

#[wasm_bindgen]
impl DirectoryObject {
    /// `ctx` and `env` as the platform gives them, and the text of catalog.json.
    #[wasm_bindgen(constructor)]
    pub fn new(_ctx: JsValue, _env: JsValue, _catalog: &str) -> DirectoryObject {
        DirectoryObject {}
    }

    /// Every remote call.
    pub async fn call(&self, json: String) -> Result<String, JsValue> {
        Ok(json)
    }
}

#[wasm_bindgen]
extern "C" {
    type Namespace;
    #[wasm_bindgen(method, catch, js_name = getByName)]
    fn get_by_name(this: &Namespace, name: &str) -> Result<Stub, JsValue>;
    type Stub;
    #[wasm_bindgen(method, catch)]
    async fn call(this: &Stub, json: &str) -> Result<JsValue, JsValue>;
}

/// Every request: `/<object>/<what to call it with>`.
#[wasm_bindgen]
pub async fn fetch(
    request: worker::web_sys::Request,
    env: JsValue,
    _ctx: JsValue,
    _catalog: &str,
) -> Result<worker::web_sys::Response, JsValue> {
    let url = request.url();
    let mut path = url.split('/').skip(3);
    let (object, call) = (path.next().unwrap_or_default(), path.next().unwrap_or_default());
    let threads: Namespace = js_sys::Reflect::get(&env, &"THREADS".into())?.unchecked_into();
    let answer = threads.get_by_name(object)?.call(call).await?;
    worker::web_sys::Response::new_with_opt_str(answer.as_string().as_deref())
}

/// Answers as soon as the executor runs tasks; the shim's watch asks for it.
#[wasm_bindgen]
pub async fn probe() {}
