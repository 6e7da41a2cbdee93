//! Native hooks and their registry (spec §9). A definition names one with `{"run": {"native": "name"}}`.
//!
//! Those of this crate stand in one table, a line each. A crate that embeds this one adds its own:
//!
//! ```
//! // For `after_system_message`: the text, and a line more.
//! bobbin::hooks::register("sign", |call| {
//!     let text = call.args[0].as_str().unwrap_or_default();
//!     let text = format!("{text}\nThe thread is {}.", call.thread_id);
//!     Box::pin(async move { Ok(text.into()) })
//! });
//! ```

pub(crate) mod history;
pub(crate) mod prompt;
pub(crate) mod results;

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use serde_json::Value;

use crate::engine::{HookCall, Panicked};
use crate::registry::Registry;

/// What runs when a native hook is due. It gives what the hook's kind asks for; `null` changes nothing, or drops the
/// call, where the kind says so. The error is a text for whoever reads the thread's log.
///
/// It may run more than once for the same event: [`HookCall::hook_call_id`] is the same each time.
pub type Native = fn(HookCall) -> LocalBoxFuture<'static, Result<Value, String>>;

/// The hooks of this crate.
const BUILT_IN: &[(&str, Native)] = &[
    ("date_in_prompt", |call| {
        now(crate::work::native::hooks::prompt::date_in_prompt(&call.args, call.now_us))
    }),
    ("keep_last_20", |call| now(crate::work::native::hooks::history::keep_last(&call.args, 20))),
    ("limit_results", |call| now(crate::work::native::hooks::results::limit_results(&call.args))),
];

/// An answer that needs no waiting.
fn now(answer: Result<Value, String>) -> LocalBoxFuture<'static, Result<Value, String>> {
    Box::pin(std::future::ready(answer))
}

thread_local! {
    // Filled once when the program starts.
    static NATIVES: Registry<Native> = const { Registry::new(BUILT_IN) };
}

/// Adds a native hook, or replaces the one of that name. Call it when the program starts.
pub fn register(name: &'static str, native: Native) {
    NATIVES.with(|natives| natives.add(name, native));
}

/// The names that definitions may use.
pub fn names() -> Vec<&'static str> {
    NATIVES.with(Registry::names)
}

/// Runs a native hook. An unknown name is a failure; a panic ends this call alone.
///
/// # Errors
/// What the panic said.
pub async fn run(call: HookCall) -> Result<Result<Value, String>, Panicked> {
    let Some(native) = NATIVES.with(|natives| natives.find(&call.native)) else {
        return Ok(Err(format!("the native hook \"{}\" is not part of this deployment", call.native)));
    };
    // The function may panic before it gives a future.
    let running = AssertUnwindSafe(async move { native(call).await }).catch_unwind();
    running.await.map_err(Panicked::of)
}
