//! The bodies of requests, as types with schemas. Those of responses are in `bobbin_protocols::responses`.

pub(super) mod budgets;
pub(super) mod files;
pub(super) mod memories;
pub(super) mod messages;
pub(super) mod threads;
pub(super) mod tokens;
pub(super) mod values;
pub(super) mod waits;

use serde_json::{Map, Value};

/// Any JSON object.
pub(super) type Object = Map<String, Value>;

/// Seconds since 1970.
pub(super) type Seconds = i64;
