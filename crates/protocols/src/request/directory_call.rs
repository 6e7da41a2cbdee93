//! Requests to a directory, and its answers. Threads send them through `Host::sibling`, the router through a stub; both
//! as one JSON text, answered with one JSON text (a [`Reply`]).

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::request::between::{first_life, is_first_life};
use crate::request::{Query, Reply};
use bobbin_definitions::error::{Code, Error, Result};

/// Name of the directory of threads that nobody owns.
pub const OWNERLESS: &str = "null";
/// Name of the directory that knows the owners.
pub const ROOT: &str = "root";

/// Name of the directory object that lists the threads of `owner`.
pub fn name_of(owner: Option<&str>) -> String {
    owner.map_or_else(|| OWNERLESS.to_owned(), |id| format!("o:{id}"))
}

/// What the values in a directory are bound to.
pub fn env_object(directory: &str) -> String {
    format!("directory {directory}")
}

/// A call to a directory. Threads repeat theirs until one is answered (at least once, in any order): everything a
/// thread sends carries its `version`, and an older one never overwrites a newer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case")]
pub enum DirectoryCall {
    /// These, in their order; the answer is that of the last, or the first error.
    Several {
        /// Calls.
        calls: Vec<DirectoryCall>,
    },
    /// Binds an `Idempotency-Key` of `POST /threads` to the id of the thread that is about to be created. The first
    /// caller's id wins for 24 h; another body under the same key is `idempotency_mismatch`. Answers
    /// `{"threadId": …}`.
    Claim {
        /// The key.
        key: String,
        /// A digest of the request's body.
        hash: String,
        /// The id to use when the key is new.
        thread_id: String,
    },
    /// The whole row of a thread.
    Upsert {
        /// The row.
        row: ThreadRow,
    },
    /// A run began or ended. May arrive before the row itself.
    Activity {
        /// The thread's id.
        id: String,
        /// Which thread of this id it is ([`ThreadRow::life`]).
        #[serde(default = "first_life", skip_serializing_if = "is_first_life")]
        life: i64,
        /// Grows with each activity of the thread; a sequence of its own, beside that of the rows.
        version: i64,
        /// Whether a run is active.
        executing: bool,
        /// Microseconds since 1970.
        last_activity_us: i64,
        /// The newest message's text (cut to 200 characters here) and its time in microseconds; `None` keeps what is
        /// known.
        last_message: Option<(String, i64)>,
        /// Why the run failed, when it has ended and did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failed: Option<String>,
    },
    /// A wait of a thread was opened, or is over.
    Wait {
        /// The wait.
        row: WaitRow,
    },
    /// `GET /api/waits`: those that are open.
    Waits {
        /// The request's query.
        query: Query,
    },
    /// The thread is gone. Its id is remembered, so that a late row does not bring it back.
    Delete {
        /// The thread's id.
        id: String,
        /// Which thread of this id it was ([`ThreadRow::life`]).
        #[serde(default = "first_life", skip_serializing_if = "is_first_life")]
        life: i64,
    },
    /// `GET /threads` (spec §27.1).
    List {
        /// The request's query.
        query: Query,
        /// The origin under which it was asked, for the icons of agents.
        #[serde(default)]
        origin: String,
        /// The only thread that is asked for: that of a key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        only: Option<String>,
    },
    /// About the values of variables of the owner or, to [`ROOT`], of the instance.
    Env {
        /// The name of this directory.
        directory: String,
        /// What is asked.
        ask: EnvAsk,
    },
    /// About a token for an MCP server: the owner's, a thread's that nobody owns, or in [`ROOT`] the application's.
    Token {
        /// `<thread, or nothing>/<what it is for>`.
        name: String,
        /// What is asked.
        ask: TokenAsk,
    },
    /// To [`ROOT`] only: how many threads an owner has now.
    Owner {
        /// The owner; `None` for threads without one.
        owner: Option<String>,
        /// Threads, children included.
        threads: i64,
        /// Grows with each message of the same owner's directory.
        version: i64,
    },
    /// To [`ROOT`] only: how requests to an MCP server went.
    McpTold {
        /// What is told.
        report: McpReport,
    },
    /// To [`ROOT`] only: what was told of MCP servers, `{servers: [McpKnown]}`.
    McpKnown,
    /// To [`ROOT`] only: `GET /threads/owners`.
    Owners {
        /// The request's query.
        query: Query,
        /// Which owners come first.
        #[serde(default)]
        order: OwnerOrder,
    },
}

/// The order of a list of owners.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnerOrder {
    /// By name, threads without an owner first.
    #[default]
    Name,
    /// The owner whose number of threads changed last comes first.
    Changed,
}

/// What is asked about values of variables.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvAsk {
    /// All of them, encrypted: `{version, values}`, the latter left out when this is the version.
    Rows(Option<i64>),
    /// `GET /envs/…`: what may be shown of them.
    Shown,
    /// `PATCH /envs/…`: to change them; the request's body.
    Change(String),
}

/// What is asked about a token. All are answered with `{version, token, taken}`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenAsk {
    /// Which one there is.
    Read,
    /// To renew it, alone: what renews a token can often be used once. `taken` if it is still this version and nobody else is at it.
    Take {
        /// The version that is known.
        version: i64,
        /// Who asks.
        by: String,
        /// Until when, in microseconds since 1970; then somebody else may.
        until_us: i64,
    },
    /// There is a new one, or none any more. `taken` if it is stored now.
    Put {
        /// Who has taken it; whoever has signed in need not.
        by: Option<String>,
        /// Sealed.
        token: Option<String>,
    },
}

impl DirectoryCall {
    /// A [`DirectoryCall::Claim`] for a request with this body.
    pub fn claim(key: impl Into<String>, body: &str, thread_id: impl Into<String>) -> DirectoryCall {
        let digest = Sha256::digest(body.as_bytes());
        let hash = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        DirectoryCall::Claim { key: key.into(), hash, thread_id: thread_id.into() }
    }
}

/// One call for texts that hold a call each.
pub fn together<'a>(calls: impl Iterator<Item = &'a str> + Clone) -> String {
    let mut rest = calls.clone();
    match (rest.next(), rest.next()) {
        (Some(only), None) => only.to_owned(),
        _ => format!(r#"{{"call":"several","calls":[{}]}}"#, calls.collect::<Vec<_>>().join(",")),
    }
}

/// What a directory keeps of a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadRow {
    /// The thread's id.
    pub id: String,
    /// The agent it runs now.
    pub agent_id: String,
    /// The owner whose directory this is; `None` in the ownerless one.
    pub owner: Option<String>,
    /// Tags, as the client set them.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Microseconds since 1970.
    pub created_at_us: i64,
    /// Microseconds since 1970; `None` while it lives.
    #[serde(default)]
    pub terminated_at_us: Option<i64>,
    /// Id of the parent thread, when this is a subagent's.
    #[serde(default)]
    pub parent: Option<String>,
    /// Grows with each change of the row.
    pub version: i64,
    /// What its creator calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Which thread of this id it is, from 1: the id of a key is used again after its thread was deleted. What is told of an
    /// earlier one is never taken for the later one's.
    #[serde(default = "first_life", skip_serializing_if = "is_first_life")]
    pub life: i64,
}

/// What a directory keeps of a wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitRow {
    /// The wait's id.
    pub id: String,
    /// The thread's id.
    pub thread: String,
    /// Which thread of this id it is ([`ThreadRow::life`]).
    #[serde(default = "first_life", skip_serializing_if = "is_first_life")]
    pub life: i64,
    /// Who is asked what.
    pub kind: String,
    /// What is asked.
    pub title: String,
    /// Microseconds since 1970.
    pub created_at_us: i64,
    /// Microseconds since 1970.
    pub expires_at_us: i64,
    /// Whether it is open.
    pub open: bool,
}

/// How a request to an MCP server went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpReport {
    /// The server's name in the catalog.
    pub server: String,
    /// Microseconds since 1970.
    pub at_us: i64,
    /// What was wrong with it; `None` when it answered well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<McpError>,
    /// What it has listed, if that is what was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed: Option<McpListed>,
}

/// What a server has listed that is asked while agents work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpListed {
    /// The revision of the protocol that it speaks.
    pub protocol: String,
    /// Its tools: names, and the beginnings of their descriptions.
    pub tools: Vec<(String, String)>,
}

/// What was wrong with a request to an MCP server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpError {
    /// For clients and programs.
    pub code: String,
    /// In words, without secrets.
    pub message: String,
}

/// What is known of an MCP server by what was told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpKnown {
    /// The server's name in the catalog.
    pub server: String,
    /// When it last answered well; microseconds since 1970.
    pub success_us: Option<i64>,
    /// When it last did not.
    pub failure_us: Option<i64>,
    /// What was wrong then.
    pub error: Option<McpError>,
    /// What it listed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed: Option<McpListed>,
}

impl DirectoryCall {
    /// What a directory is called with.
    ///
    /// # Errors
    /// None that is known of.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(Error::internal)
    }
}

/// A directory's answer as text, read by the one who asked: its reply, or `overloaded` when it is none that a
/// directory gives (an object that was restarted while it answered), so that the caller asks again.
pub fn answer(text: &str) -> Result<Reply> {
    bobbin_definitions::json::from_str(text).map_err(|error| {
        Error::new(Code::Overloaded, format!("The directory gave no readable answer: {error}."))
    })
}
