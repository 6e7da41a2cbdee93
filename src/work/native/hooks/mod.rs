//! Native hooks and their registry (spec §9). A definition names one with `{"run": {"native": "name"}}`.
//!
//! This crate's hooks are in one table. A crate that embeds this one can register its own:
//!
//! ```
//! // For `after_system_message`: returns the text with an additional line.
//! bobbin::hooks::register("sign", |call| {
//!     let text = call.args[0].as_str().unwrap_or_default();
//!     let text = format!("{text}\nThe thread is {}.", call.thread_id);
//!     Box::pin(async move { Ok(text.into()) })
//! });
//! ```
//!
//! * `prompt`, `history`, `results`: hooks for `after_system_message`, for `filter_messages`, and for tool
//!   results.

mod history;
mod prompt;
mod results;

use futures::future::LocalBoxFuture;
use serde_json::Value;

use crate::work::native::hook_call::HookCall;
use crate::work::native::registry::registry;

/// Runs when a native hook is due. It returns the value of the hook's kind; `null` changes nothing, or drops
/// the call, depending on the kind. The error is a text for readers of the thread's log.
///
/// It may run more than once for the same event; [`HookCall::hook_call_id`] is the same each time.
pub type Native = fn(HookCall) -> LocalBoxFuture<'static, Result<Value, String>>;

/// The hooks of this crate.
const BUILT_IN: &[(&str, Native)] = &[
    ("date_in_prompt", |call| {
        now(crate::work::native::hooks::prompt::date_in_prompt(&call.args, call.now_us))
    }),
    ("keep_last_20", |call| now(crate::work::native::hooks::history::keep_last(&call.args, 20))),
    ("limit_results", |call| now(crate::work::native::hooks::results::limit_results(&call.args))),
];

/// A result without waiting.
fn now(answer: Result<Value, String>) -> LocalBoxFuture<'static, Result<Value, String>> {
    Box::pin(std::future::ready(answer))
}

registry!(Native, BUILT_IN, "a native hook");

/// Runs a native hook. An unknown name is a failure.
pub async fn run(call: HookCall) -> Result<Value, String> {
    match find(&call.native) {
        Some(native) => native(call).await,
        None => Err(format!("the native hook \"{}\" is not part of this deployment", call.native)),
    }
}
