//! Native endpoints and their registry (spec §26). A definition names one with `{"run": {"native": "name"}}`.
//!
//! Those of this crate stand in one table, a line each. A crate that embeds this one adds its own:
//!
//! ```
//! use bobbin::thread::EndpointAnswer;
//! bobbin::endpoints::register("visits", |call| {
//!     let count = || -> bobbin::Result<EndpointAnswer> {
//!         let visits = call.state.get_value("visits")?.unwrap_or(0) + 1;
//!         call.state.set_value("visits", &visits)?;
//!         Ok(EndpointAnswer::json(200, &serde_json::json!({ "visits": visits })))
//!     };
//!     let answer = count();
//!     Box::pin(async move { answer })
//! });
//! ```

pub(crate) mod summary;
pub(crate) mod transcript;

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;

use crate::engine::{EndpointAnswer, EndpointCall, Panicked};
use crate::error::{Error, Result};
use crate::registry::Registry;

/// What runs when a native endpoint is asked. An error of the client's (`invalid_field`, `not_found`, …) is answered as
/// it is, with the status of its code; any other one is a failure, which the client is told no more of than an id.
pub type Native = fn(EndpointCall) -> LocalBoxFuture<'static, Result<EndpointAnswer>>;

/// The endpoints of this crate.
const BUILT_IN: &[(&str, Native)] = &[
    ("summary", |call| now(crate::work::native::endpoints::summary::summary(&call))),
    ("transcript", |call| now(crate::work::native::endpoints::transcript::transcript(&call))),
];

/// An answer that needs no waiting.
fn now(answer: Result<EndpointAnswer>) -> LocalBoxFuture<'static, Result<EndpointAnswer>> {
    Box::pin(std::future::ready(answer))
}

thread_local! {
    // Filled once when the program starts.
    static NATIVES: Registry<Native> = const { Registry::new(BUILT_IN) };
}

/// Adds a native endpoint, or replaces the one of that name. Call it when the program starts.
pub fn register(name: &'static str, native: Native) {
    NATIVES.with(|natives| natives.add(name, native));
}

/// The names that definitions may use.
pub fn names() -> Vec<&'static str> {
    NATIVES.with(Registry::names)
}

/// Runs a native endpoint. An unknown name is an error of code `internal`; a panic ends this call alone.
///
/// # Errors
/// What the panic said.
pub async fn run(call: EndpointCall) -> std::result::Result<Result<EndpointAnswer>, Panicked> {
    let Some(native) = NATIVES.with(|natives| natives.find(&call.native)) else {
        let text = format!("the native endpoint \"{}\" is not part of this deployment", call.native);
        return Ok(Err(Error::internal(text)));
    };
    // The function may panic before it gives a future.
    let running = AssertUnwindSafe(async move { native(call).await }).catch_unwind();
    running.await.map_err(Panicked::of)
}
