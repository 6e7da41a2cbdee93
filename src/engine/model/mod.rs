//! Requests of a step to its model.
//!
//! * `model_call`: attempts, fallbacks and pauses. `provider_call`: one request and its timeouts. `attempts`: how
//!   many a step has made. `retry`: retry policies.
//! * `replay`: data that providers want back with their replies. `cancel`: cancels the response of a provider
//!   after a stop.

pub(in crate::engine) mod attempts;
pub(in crate::engine) mod cancel;
pub(in crate::engine) mod model_call;
pub(in crate::engine) mod provider_call;
pub(in crate::engine) mod replay;
pub(in crate::engine) mod retry;
