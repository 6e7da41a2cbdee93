//! Native effects and their registry. A definition names one with `{"run": {"native": "name"}}`.
//!
//! Those of this crate stand in one table. A crate that embeds this one adds its own:
//!
//! ```
//! bobbin::effects::register("clear_cart", |call| {
//!     let cleared = call.state.set_value("cart", &serde_json::Value::Null);
//!     Box::pin(async move { cleared.map_err(|error| error.message) })
//! });
//! ```

use futures_util::future::LocalBoxFuture;
use serde_json::Value;

use crate::engine::{EffectCall, NewMessage};
use crate::registry::Registry;

/// What runs when a native effect is due. The error is a text for whoever reads the thread's effects.
///
/// It may run more than once for the same effect: [`EffectCall::idempotency_key`] is the same each time.
pub type Native = fn(EffectCall) -> LocalBoxFuture<'static, Result<(), String>>;

/// The effects of this crate.
const BUILT_IN: &[(&str, Native)] =
    &[("queue_message", |call| Box::pin(std::future::ready(queue_message(&call))))];

thread_local! {
    // Filled once when the program starts.
    static NATIVES: Registry<Native> = const { Registry::new(BUILT_IN) };
}

/// Adds a native effect, or replaces the one of that name. Call it when the program starts.
pub fn register(name: &'static str, native: Native) {
    NATIVES.with(|natives| natives.add(name, native));
}

/// The names that definitions may use.
pub fn names() -> Vec<&'static str> {
    NATIVES.with(Registry::names)
}

/// Runs a native effect. An unknown name is an error.
pub fn run(call: EffectCall) -> LocalBoxFuture<'static, Result<(), String>> {
    match NATIVES.with(|natives| natives.find(&call.native)) {
        Some(native) => native(call),
        None => {
            let text = format!("The native effect \"{}\" is not part of this deployment.", call.native);
            Box::pin(std::future::ready(Err(text)))
        }
    }
}

/// Queues `content` as a message, which starts a run: a reminder. One that was queued for this effect already, by an
/// attempt whose end was lost, is not queued again.
fn queue_message(call: &EffectCall) -> Result<(), String> {
    let Some(content) = call.args.get("content").and_then(Value::as_str) else {
        return Err("content: required but missing.".to_owned());
    };
    let silent = call.args.get("silent").and_then(Value::as_bool).unwrap_or(false);
    let message = NewMessage { silent, ..NewMessage::user(content) };
    call.state.queue_message_once(message, &call.idempotency_key).map(drop).map_err(|error| error.message)
}
