//! The column `meta.fork`: the origin of a copied thread, and the state of the copy.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::protocols::responses::threads as responses;

/// Origin and state of a copied thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fork {
    /// The original thread.
    pub(crate) thread: String,
    /// Its generation.
    pub(crate) life: i64,
    /// Seq of the last copied message, the same in both threads; 0 if there is none.
    pub(crate) upto: i64,
    /// Id of that message in the original thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    pub(crate) state: ForkState,
}

/// The state of the copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ForkState {
    /// A job fetches it; the thread cannot be used yet.
    Copying,
    /// Complete: the thread is like any other.
    Copied,
    /// Failed for good, with the reason.
    Failed(String),
}

impl Fork {
    /// Parses the column.
    pub(super) fn parse(column: Option<&str>) -> Result<Option<Box<Fork>>> {
        column.map(crate::json::from_str).transpose().map_err(Error::internal)
    }

    pub(super) fn column(&self) -> Result<String> {
        serde_json::to_string(self).map_err(Error::internal)
    }

    /// The public form.
    pub(crate) fn response(&self) -> responses::Fork<'_> {
        let (state, error) = match &self.state {
            ForkState::Copying => (responses::ForkState::Copying, None),
            ForkState::Copied => (responses::ForkState::Copied, None),
            ForkState::Failed(why) => (responses::ForkState::Failed, Some(why.as_str())),
        };
        responses::Fork { thread_id: &self.thread, up_to: self.message.as_deref(), state, error }
    }
}
