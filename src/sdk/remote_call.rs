//! Calls of members of other threads, in transit.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::error::{Code, Error, Result};
use crate::limits;
use crate::sandbox::{BinaryKind, Value};
use crate::store::base64_text::{base64, bytes_of};

/// A value in transit between two threads.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WireValue {
    /// JSON.
    Json(Json),
    /// Bytes, in base64.
    Bytes(String),
}

impl WireValue {
    pub(crate) fn of(value: Value) -> Result<WireValue> {
        match value {
            Value::Binary(_, bytes) if bytes.len() > limits::REMOTE_BYTES => {
                let limit = limits::REMOTE_BYTES;
                let text =
                    format!("{} bytes are too many for another thread; the limit is {limit}.", bytes.len());
                Err(Error::new(Code::TooLarge, text))
            }
            Value::Binary(_, bytes) => Ok(WireValue::Bytes(base64(&bytes))),
            other => Ok(WireValue::Json(other.to_json().unwrap_or_default())),
        }
    }

    pub(crate) fn value(self) -> Result<Value> {
        match self {
            WireValue::Json(json) => Ok(json.into()),
            WireValue::Bytes(text) => Ok(Value::Binary(BinaryKind::ArrayBuffer, bytes_of(&text)?)),
        }
    }
}

/// A call of a member of another thread.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct MemberCall {
    pub(crate) method: String,
    #[serde(default)]
    pub(crate) args: Vec<WireValue>,
    /// The calling code's package. Names in the call are looked up there first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) package: Option<String>,
    /// Whether the calling code is read-only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) only_reads: bool,
}
