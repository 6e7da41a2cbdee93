//! The Worker's request to a thread's object for a socket.

use bobbin::access::Caller;
use bobbin::engine::feed::FeedTarget;
use bobbin::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::sockets::Subscription;

/// The header that carries a [`Listen`]. Only the Worker can reach an object, so only it can set this.
pub(crate) const HEADER: &str = "x-bobbin-listen";

/// A request to listen.
#[derive(Serialize, Deserialize)]
pub(crate) struct Listen {
    /// The caller.
    pub(crate) caller: Caller,
    /// The filter, and the expiry.
    pub(crate) subscription: Subscription,
    /// The position to resume from.
    pub(crate) last_event_id: Option<String>,
    /// A single run to follow.
    #[serde(default)]
    pub(crate) feed: Option<FeedTarget>,
}

impl Listen {
    /// Encodes it as a header's value.
    pub(crate) fn to_header(&self) -> Result<String> {
        serde_json::to_string(self).map(|json| ascii(&json)).map_err(Error::internal)
    }

    /// Parses a header's value.
    pub(crate) fn parse(header: &str) -> Result<Listen> {
        bobbin::json::from_str(header).map_err(|error| Error::internal(format!("{HEADER}: {error}")))
    }
}

/// JSON in ASCII, because headers allow nothing else.
pub(crate) fn ascii(json: &str) -> String {
    let mut ascii = String::with_capacity(json.len());
    for c in json.chars() {
        // JSON allows DEL unescaped, but headers do not.
        if c.is_ascii() && c != '\u{7f}' {
            ascii.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                ascii.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    ascii
}
