//! Bobbin on Cloudflare: the stateless Worker, the three classes of Durable Objects, and the engine's host.
//! Compiles to wasm only. `shim.js` beside it has the JavaScript classes that the platform constructs.
//!
//! # Layout
//!
//! * [`fetch`]: every request. `auth` authenticates it, `router` matches and answers it. `create`, `every_owner` and
//!   `events`: routes with several calls to objects. `sign_in`: the browser's return from a sign-in.
//! * [`objects`]: threads, directories and shared memories, for the shim's classes. `host`, `sql`, `fetch`,
//!   `sockets`, `clock` (timers): their platform. `remote`: calls between the Worker and objects; `upgrade`:
//!   the call for a socket. `streamed`: requests and responses with streamed bodies. `bucket`: content in a
//!   bucket. `sandbox`: code that runs in the isolate Worker.
//! * `protocols`: the protocols of other systems, a folder each: `ai_sdk`, `openai`, `ag_ui`, `mcp_server`.
//! * `answer`: responses. `bindings`: the platform's JavaScript objects. `lifecycle`: the wasm instance.
//! * `platform` (a feature): the Worker's bindings, for an application's own Rust.
//!
//! A crate of your own may depend on this one, register native tools, and be built in its place.
#![cfg(target_arch = "wasm32")]

mod answer;
mod auth;
mod bindings;
mod bucket;
mod clock;
mod create;
mod events;
mod every_owner;
mod fetch;
mod host;
pub mod lifecycle;
pub mod objects;
#[cfg(feature = "platform")]
mod platform;
mod protocols;
mod remote;
mod router;
mod sandbox;
mod sign_in;
mod sockets;
mod sql;
mod streamed;
mod upgrade;

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

pub use answer::Response;
#[cfg(feature = "platform")]
pub use platform::platform;
/// The crate whose [`worker::Env`] [`platform`] returns, for the names of its types.
#[cfg(feature = "platform")]
pub use worker;

#[wasm_bindgen(module = "/bodies.js")]
extern "C" {
    /// A promise if the rest of the request's body must still be read, otherwise undefined.
    #[wasm_bindgen(catch)]
    fn leftover(request: &JsValue) -> Result<JsValue, JsValue>;
}

/// Every request. `env` and `ctx` are the platform's, `catalog` the text of catalog.json. Resolves with a `Response`.
#[wasm_bindgen]
pub fn fetch(request: JsValue, env: JsValue, ctx: JsValue, catalog: JsValue) -> js_sys::Promise {
    lifecycle::promise(async move {
        let request_body = request.clone();
        let answered = AssertUnwindSafe(router::answer(request, env, ctx, catalog)).catch_unwind().await;
        let response = match answered {
            Ok(response) => response,
            Err(panic) => {
                answer::of_error(bobbin::Error::internal(lifecycle::told(&*panic)), None, None, false)
            }
        };
        // If a request's body was not read, its connection would be closed before the client has seen the
        // response. So the response waits until the body is read.
        if let Ok(reading) = leftover(&request_body)?.dyn_into::<js_sys::Promise>() {
            // It ends within its bounds, and never rejects.
            let _ = JsFuture::from(reading).await;
        }
        response.map(JsValue::from)
    })
}
