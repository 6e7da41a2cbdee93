//! Native endpoints and their registry (spec §26). A definition names one with `{"run": {"native": "name"}}`.
//!
//! This crate's endpoints are in one table. A crate that embeds this one can register its own:
//!
//! ```
//! use bobbin::engine::EndpointAnswer;
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
//!
//! * `summary`: an overview of a thread. `transcript`: the conversation as Markdown.

mod summary;
mod transcript;

use futures::future::LocalBoxFuture;

use crate::error::{Error, Result};
use crate::work::native::endpoint_call::{EndpointAnswer, EndpointCall};
use crate::work::native::registry::registry;

/// Answers a request. A client error (`invalid_field`, `not_found`, …) is sent with the status of its code.
/// For any other error the client receives only an id.
pub type Native = fn(EndpointCall) -> LocalBoxFuture<'static, Result<EndpointAnswer>>;

/// The endpoints of this crate.
const BUILT_IN: &[(&str, Native)] = &[
    ("summary", |call| now(crate::work::native::endpoints::summary::summary(&call))),
    ("transcript", |call| now(crate::work::native::endpoints::transcript::transcript(&call))),
];

/// A response without waiting.
fn now(answer: Result<EndpointAnswer>) -> LocalBoxFuture<'static, Result<EndpointAnswer>> {
    Box::pin(std::future::ready(answer))
}

registry!(Native, BUILT_IN, "a native endpoint");

/// Runs a native endpoint. An unknown name is an error of code `internal`.
pub async fn run(call: EndpointCall) -> Result<EndpointAnswer> {
    match find(&call.native) {
        Some(native) => native(call).await,
        None => {
            let text = format!("the native endpoint \"{}\" is not part of this deployment", call.native);
            Err(Error::internal(text))
        }
    }
}
