//! Sessions with servers that use them. Each thread has its own, so that conversations do not share state at
//! the server. Cached in memory, and stored in a row, so that a restart costs no request.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::engine::mcp::sealed_text::SealedText;
use crate::engine::thread::Thread;
use crate::error::{Error, Result};
use crate::mcp_client::Session;
use crate::store::mcp;
use crate::work::mcp::{Address, SessionStore};

/// The known session with a server.
#[derive(Clone)]
pub(crate) struct KnownSession {
    principal: String,
    session: Option<Session>,
    /// Whether the server has responded without sessions.
    is_modern: bool,
}

impl KnownSession {
    /// The negotiated revision; `None` without a session.
    pub(super) fn version(&self) -> Option<String> {
        self.session.as_ref().map(|session| session.version.clone())
    }

    /// Whether the server has responded without sessions.
    pub(super) fn is_modern(&self) -> bool {
        self.is_modern
    }
}

/// The session in a row.
#[derive(Serialize, Deserialize)]
struct StoredSession {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<SealedText>,
    version: String,
}

/// The thread's sessions with one server.
pub(super) struct Sessions<'a> {
    thread: &'a Thread,
    server: &'a str,
    principal: String,
}

impl<'a> Sessions<'a> {
    pub(super) fn new(thread: &'a Thread, address: &'a Address) -> Sessions<'a> {
        Sessions { thread, server: &address.server, principal: principal(address) }
    }

    fn remember(&self, session: Option<Session>, is_modern: bool) {
        let known = KnownSession { principal: self.principal.clone(), session, is_modern };
        self.thread.ephemeral.mcp.sessions.borrow_mut().insert(self.server.to_owned(), known);
    }

    fn known(&self) -> Option<KnownSession> {
        let known = self.thread.ephemeral.mcp.sessions.borrow().get(self.server).cloned();
        known.filter(|known| known.principal == self.principal)
    }

    fn read(&self) -> Result<Option<Session>> {
        self.thread.read(|state, sql| {
            let Some(text) = mcp::session(sql, self.server, &self.principal)? else { return Ok(None) };
            let StoredSession { id, version } = crate::json::from_str(&text).map_err(Error::internal)?;
            let opened = id.map(|id| self.thread.mcp().unsealed(&state.meta.thread_id, self.server, id));
            // A session whose id cannot be decrypted is lost.
            Ok(match opened {
                None => Some(Session { id: None, version }),
                Some(Some(id)) => Some(Session { id: Some(id), version }),
                Some(None) => None,
            })
        })
    }
}

impl SessionStore for Sessions<'_> {
    fn session(&self) -> Option<Session> {
        if let Some(known) = self.known() {
            return known.session;
        }
        // On a read error begin a new session.
        let session = self.read().unwrap_or_else(|error| {
            self.thread
                .variables()
                .log(&format!("the session with the MCP server {} could not be read: {error}", self.server));
            None
        });
        self.remember(session.clone(), false);
        session
    }

    fn store(&self, session: Option<&Session>) -> Result<()> {
        self.thread.transition(|state, sql| {
            let thread = &state.meta.thread_id;
            let stored = |session: &Session| {
                let id = session.id.as_deref().map(|id| self.thread.mcp().sealed(thread, self.server, id));
                serde_json::to_string(&StoredSession { id, version: session.version.clone() })
            };
            let stored = session.map(stored).transpose().map_err(Error::internal)?;
            mcp::set_session(sql, self.server, &self.principal, stored.as_deref())
        })?;
        self.remember(session.cloned(), false);
        Ok(())
    }

    fn is_modern(&self) -> bool {
        let listed = || {
            let key = key_of_list(self.server, &self.principal);
            let process = self.thread.host.process();
            process.lists.borrow().iter().any(|list| list.is_modern && list.key == key)
        };
        self.known().is_some_and(|known| known.is_modern) || listed()
    }

    fn record_modern(&self) {
        self.remember(None, true);
    }
}

/// The thread's identity at a server: a hash of the address and the headers.
pub(super) fn principal(address: &Address) -> String {
    let mut digest = Sha256::new();
    digest.update(&address.url);
    for (name, value) in &address.headers {
        digest.update(format!("\0{name}\0{}\0{value}", value.len()));
    }
    hex(&digest.finalize())
}

/// The key of a list that objects of a process share.
pub(super) fn key_of_list(server: &str, principal: &str) -> String {
    format!("{server}\0{principal}")
}

/// The first half of a hash, in hexadecimal.
pub(super) fn hex(hash: &[u8]) -> String {
    hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
