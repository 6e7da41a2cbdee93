//! Server-sent events as the feed has them: one frame each.

use serde_json::Value;

use crate::error::{Error, Result};

/// The kind and the fields of one event of a feed.
///
/// # Errors
/// `internal`: it is none.
pub fn frame(event: &str) -> Result<(&str, Value)> {
    let mut kind = "";
    let mut data = None;
    for line in event.lines() {
        match line.split_once(": ") {
            Some(("event", name)) => kind = name,
            Some(("data", json)) => data = Some(json),
            _ => {}
        }
    }
    let data = data.ok_or_else(|| Error::internal("an event of a feed has no data"))?;
    Ok((kind, serde_json::from_str(data).map_err(Error::internal)?))
}

/// One event.
pub fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

/// What ends a stream for clients that look for it.
pub const DONE: &str = "data: [DONE]\n\n";
