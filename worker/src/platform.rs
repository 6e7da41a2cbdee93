//! The Worker's bindings for an application's own Rust, through the crate `worker`.

use wasm_bindgen::prelude::*;
use worker::Env;

#[wasm_bindgen(module = "cloudflare:workers")]
extern "C" {
    /// The bindings of this deployment. They are the same for every object and request of an isolate, so
    /// natives can use them without getting them from their event.
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
/// Writes to bindings are not part of the thread. They are not rolled back with it, and code that runs again
/// after a crash repeats them.
pub fn platform() -> Env {
    BINDINGS.with(Env::clone)
}
