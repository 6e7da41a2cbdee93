//! What a wait keeps for which somebody has to sign in to an MCP server.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::limits::SECOND_US;
use crate::store::waits::{Wait, WaitKind};

/// A sign-in that is waited for. Nobody is shown any of this.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AskedSignIn {
    /// The directory that keeps the token.
    pub(crate) directory: String,
    /// What it is called there.
    pub(crate) name: String,
    /// The one there that was not taken; a later one is another.
    pub(crate) version: i64,
    /// When nobody waits any longer; until then the row's end is when the directory is looked at next.
    pub(crate) ends_us: i64,
    /// What has to come back from a browser, sealed.
    pub(crate) login: Value,
}

/// The shortest and the longest pause before the next look at whether a token is there.
const PAUSE_US: (i64, i64) = (15 * SECOND_US, 1_800 * SECOND_US);

impl Wait {
    /// When it is over if nobody decides.
    pub(crate) fn ends_us(&self) -> i64 {
        self.asked.sign_in.as_ref().map_or(self.expires_us, |asked| asked.ends_us)
    }

    /// Whether it is for the token of this name in that directory.
    pub(crate) fn is_for_token(&self, directory: &str, name: &str) -> bool {
        self.kind == WaitKind::SignIn
            && self
                .asked
                .sign_in
                .as_ref()
                .is_some_and(|asked| asked.directory == directory && asked.name == name)
    }

    /// When it is looked at next whether somebody has signed in elsewhere: after a quarter of the time that was waited already.
    pub(crate) fn next_look_us(&self, now: i64) -> i64 {
        let pause = ((now - self.created_us) / 4).clamp(PAUSE_US.0, PAUSE_US.1);
        (now + pause).min(self.ends_us())
    }
}
