//! The bodies of requests and answers, as types with schemas.
//!
//! An `Option` is a field that an answer always has and that may be `null`. A field that may be missing is
//! skipped if none.

pub(super) mod budgets;
pub(super) mod files;
pub(super) mod frames;
pub(super) mod memories;
pub(super) mod messages;
pub(super) mod threads;
pub(super) mod tokens;
pub(super) mod values;
pub(super) mod waits;

use serde_json::{Map, Value};

/// Any JSON object.
pub(super) type Object = Map<String, Value>;

/// Microseconds since 1970.
pub(super) type Micros = i64;
/// Seconds since 1970.
pub(super) type Seconds = i64;
