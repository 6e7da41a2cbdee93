//! Native effects and their registry. A definition names one with `{"run": {"native": "name"}}`.
//!
//! This crate's effects are in one table. A crate that embeds this one can register its own:
//!
//! ```
//! bobbin::effects::register("clear_cart", |call| {
//!     let cleared = call.state.set_value("cart", &serde_json::Value::Null);
//!     Box::pin(async move { cleared.map_err(|error| error.into_message()) })
//! });
//! ```

use futures::future::LocalBoxFuture;
use serde_json::Value;

use crate::sdk::NewMessage;
use crate::work::native::EffectCall;
use crate::work::native::registry::registry;

/// Runs when a native effect is due. The error is a text for readers of the thread's effects.
///
/// It may run more than once for the same effect; [`EffectCall::idempotency_key`] is the same each time.
pub type Native = fn(EffectCall) -> LocalBoxFuture<'static, Result<(), String>>;

/// The effects of this crate.
const BUILT_IN: &[(&str, Native)] =
    &[("queue_message", |call| Box::pin(std::future::ready(queue_message(&call))))];

registry!(Native, BUILT_IN, "a native effect");

/// Runs a native effect. An unknown name is an error.
pub async fn run(call: EffectCall) -> Result<(), String> {
    match find(&call.native) {
        Some(native) => native(call).await,
        None => Err(format!("The native effect \"{}\" is not part of this deployment.", call.native)),
    }
}

/// Queues `content` as a message, which starts a run: a reminder. If a lost attempt has already queued it for
/// this effect, it is not queued again.
fn queue_message(call: &EffectCall) -> Result<(), String> {
    let Some(content) = call.args.get("content").and_then(Value::as_str) else {
        return Err("content: required but missing.".to_owned());
    };
    let silent = call.args.get("silent").and_then(Value::as_bool).unwrap_or(false);
    let message = NewMessage { silent, ..NewMessage::user(content) };
    call.state
        .queue_message_once(message, &call.idempotency_key)
        .map(drop)
        .map_err(|error| error.into_message())
}
