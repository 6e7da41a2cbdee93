//! Threads.

use serde::Serialize;

/// The state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ThreadState {
    Idle,
    Running,
    Parked,
    Stopped,
    Terminated,
}
