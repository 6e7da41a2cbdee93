//! The first message of a called prompt or agent, kept on the receipt of its call.

use serde::{Deserialize, Serialize};

/// The message that a prompt or an agent begins with when it is called (spec §5.4).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Opening {
    /// Its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// Paths of its files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) attachments: Vec<String>,
}
