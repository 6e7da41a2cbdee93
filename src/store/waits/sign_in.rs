//! The data of a wait for a sign-in to an MCP server.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::limits::SECOND_US;
use crate::store::waits::{Wait, WaitKind};

/// A sign-in that a run waits for. It is never shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SignInState {
    /// The directory that keeps the token.
    pub(crate) directory: String,
    /// The name of the token there.
    pub(crate) name: String,
    /// The version of the refused token. A later version is a new token.
    pub(crate) version: i64,
    /// The end of the wait. Until then the row's expiry is the time of the next poll.
    pub(crate) ends_us: i64,
    /// The sealed data that the browser's return is checked against.
    pub(crate) login: Value,
}

/// The shortest and the longest pause between polls for the token.
const PAUSE_US: (i64, i64) = (15 * SECOND_US, 1_800 * SECOND_US);

impl Wait {
    /// The time when it ends without a decision.
    pub(crate) fn deadline_us(&self) -> i64 {
        self.asked.sign_in.as_ref().map_or(self.expires_us, |asked| asked.ends_us)
    }

    /// Whether it waits for the token of this name in that directory.
    pub(crate) fn is_for_token(&self, directory: &str, name: &str) -> bool {
        self.kind == WaitKind::SignIn
            && self
                .asked
                .sign_in
                .as_ref()
                .is_some_and(|asked| asked.directory == directory && asked.name == name)
    }

    /// The next poll for a sign-in elsewhere: after a quarter of the time waited so far.
    pub(crate) fn next_look_us(&self, now: i64) -> i64 {
        let pause = ((now - self.created_us) / 4).clamp(PAUSE_US.0, PAUSE_US.1);
        (now + pause).min(self.deadline_us())
    }
}
