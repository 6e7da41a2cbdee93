//! The column `meta.fork`: what a thread is a copy of, and whether all of it is here.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::json;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fork {
    /// The thread that it is a copy of.
    pub(crate) thread: String,
    /// Which thread in that place it is.
    pub(crate) life: i64,
    /// Seq of the last message that is copied, there and here; 0 where there is none.
    pub(crate) upto: i64,
    /// The id of that message there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    pub(crate) state: ForkState,
}

/// How far it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ForkState {
    /// A job fetches it, and nobody can do anything with the thread yet.
    Copying,
    /// It is a thread like any other.
    Copied,
    /// It never will be, and why.
    Failed(String),
}

impl Fork {
    /// As the column has it.
    pub(crate) fn parse(column: Option<&str>) -> Result<Option<Box<Fork>>> {
        column.map(crate::json::from_str).transpose().map_err(Error::internal)
    }

    /// The column.
    pub(crate) fn column(&self) -> Result<String> {
        serde_json::to_string(self).map_err(Error::internal)
    }

    /// As clients see it.
    pub(crate) fn to_json(&self) -> Value {
        let (state, error) = match &self.state {
            ForkState::Copying => ("copying", None),
            ForkState::Copied => ("copied", None),
            ForkState::Failed(why) => ("failed", Some(why)),
        };
        json!({ "threadId": self.thread, "upTo": self.message, "state": state, "error": error })
    }
}
