//! Foreign texts that the thread stores, such as the id of a session. They are encrypted if the deployment
//! has keys, and bound to the thread and their purpose.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::engine::features::McpClient;
use crate::env::EncryptedValue;

/// A stored text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum SealedText {
    /// The id of the key, and the nonce with the ciphertext in base64.
    Encrypted { key: String, sealed: String },
    /// The deployment has no keys.
    Plain(String),
}

impl McpClient<'_> {
    /// Seals a text. `what`: its purpose, which must match to open it.
    pub(super) fn sealed(&self, thread: &str, what: &str, text: &str) -> SealedText {
        let keys = self.variables().keys().unwrap_or_default();
        match keys.seal(self.host.random(), &context(thread, what), text) {
            Ok(EncryptedValue { key, bytes }) => {
                SealedText::Encrypted { key, sealed: STANDARD.encode(bytes) }
            }
            Err(_) => SealedText::Plain(text.to_owned()),
        }
    }

    /// Opens a text; `None` if its key is gone.
    pub(super) fn unsealed(&self, thread: &str, what: &str, sealed: SealedText) -> Option<String> {
        match sealed {
            SealedText::Plain(text) => Some(text),
            SealedText::Encrypted { key, sealed } => {
                let bytes = STANDARD.decode(sealed).ok()?;
                let opened = self
                    .variables()
                    .keys()
                    .ok()?
                    .open(&EncryptedValue { key, bytes }, &context(thread, what));
                opened
                    .map_err(|error| {
                        self.variables().log_once(format!("what was kept for a server is lost: {error}"))
                    })
                    .ok()
            }
        }
    }
}

/// The binding of a sealed text.
fn context(thread: &str, what: &str) -> String {
    format!("thread {thread}\0mcp\0{what}")
}
