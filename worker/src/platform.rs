//! The Worker's bindings for an application's own Rust, through the crate `worker`.

use wasm_bindgen::prelude::*;
use worker::Env;

#[wasm_bindgen(module = "cloudflare:workers")]
extern "C" {
    /// The bindings of this deployment. They are the same for every object and request of an isolate, and belong to none of
    /// them, so that natives need not be handed them from the event that they run in.
    #[wasm_bindgen(thread_local_v2, js_name = env)]
    static BINDINGS: Env;
}

/// Everything that is bound to the Worker: KV, D1, R2, queues, services, Workers AI, variables and secrets.
///
/// ```ignore
/// let notes = bobbin_worker::platform().kv("NOTES")?;
/// notes.put("seen", "yes")?.execute().await?;
/// ```
///
/// What is written there is no part of the thread: it is not rolled back with it, and code that runs again after a crash
/// writes again.
pub fn platform() -> Env {
    BINDINGS.with(Env::clone)
}
