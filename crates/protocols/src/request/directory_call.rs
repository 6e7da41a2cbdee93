//! Requests to a directory, and its responses. Threads send them through `Host::sibling`, the router through
//! a stub. Each request is one JSON text, and so is its response (a [`Reply`]).

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::request::between::{first_life, is_first_life};
use crate::request::{Query, Reply};
use bobbin_definitions::error::{Code, Error, Result};

/// Name of the directory of threads without an owner.
pub const OWNERLESS: &str = "null";
/// Name of the directory that lists the owners.
pub const ROOT: &str = "root";

/// Name of the directory object that lists the threads of `owner`.
pub fn name_of(owner: Option<&str>) -> String {
    owner.map_or_else(|| OWNERLESS.to_owned(), |id| format!("o:{id}"))
}

/// Name of the object to which the encrypted values in a directory are bound.
pub fn env_object(directory: &str) -> String {
    format!("directory {directory}")
}

/// A call to a directory. Threads repeat a call until they receive a response (at least once, in any order).
/// Everything that a thread sends carries its `version`, and an older version never overwrites a newer one.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case")]
pub enum DirectoryCall {
    /// Several calls, in their order. The response is that of the last call, or the first error.
    Several {
        /// Calls.
        calls: Vec<DirectoryCall>,
    },
    /// Binds an `Idempotency-Key` of `POST /threads` to the id of the thread that is about to be created. The
    /// first caller's id wins for 24 h. A different body under the same key is `idempotency_mismatch`.
    /// Returns `{"threadId": …}`.
    Claim {
        /// The key.
        key: String,
        /// A digest of the request's body.
        hash: String,
        /// The id to use if the key is new.
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
        /// The life of the thread ([`ThreadRow::life`]).
        #[serde(default = "first_life", skip_serializing_if = "is_first_life")]
        life: i64,
        /// Grows with each activity of the thread, in a sequence separate from that of the rows.
        version: i64,
        /// Whether a run is active.
        executing: bool,
        /// Microseconds since 1970.
        last_activity_us: i64,
        /// The newest message's text (cut to 200 characters here) and its time in microseconds; `None` keeps
        /// the stored one.
        last_message: Option<(String, i64)>,
        /// The reason for the failure, if the run has ended and failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failed: Option<String>,
    },
    /// A wait of a thread was opened or has ended.
    Wait {
        /// The wait.
        row: WaitRow,
    },
    /// `GET /api/waits`: the open waits.
    Waits {
        /// The request's query.
        query: Query,
    },
    /// The thread is deleted. The directory remembers its id, so that a late row does not restore it.
    Delete {
        /// The thread's id.
        id: String,
        /// The life of the thread ([`ThreadRow::life`]).
        #[serde(default = "first_life", skip_serializing_if = "is_first_life")]
        life: i64,
    },
    /// `GET /threads` (spec §27.1).
    List {
        /// The request's query.
        query: Query,
        /// The origin of the request's URL, for the icons of agents.
        #[serde(default)]
        origin: String,
        /// The only thread to list: the one with the requested key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        only: Option<String>,
    },
    /// A request about the values of variables of the owner or, in [`ROOT`], of the instance.
    Env {
        /// The name of this directory.
        directory: String,
        /// The request.
        ask: EnvAsk,
    },
    /// A request about a token for an MCP server: the owner's, that of a thread without an owner, or in
    /// [`ROOT`] the application's.
    Token {
        /// `<thread, or nothing>/<purpose>`.
        name: String,
        /// The request.
        ask: TokenAsk,
    },
    /// To [`ROOT`] only: the current number of an owner's threads.
    Owner {
        /// The owner; `None` for threads without one.
        owner: Option<String>,
        /// Threads, children included.
        threads: i64,
        /// Grows with each message of the same owner's directory.
        version: i64,
    },
    /// To [`ROOT`] only: the result of requests to an MCP server.
    McpTold {
        /// The result.
        report: McpReport,
    },
    /// To [`ROOT`] only: the reports about MCP servers, `{servers: [McpKnown]}`.
    McpKnown,
    /// To [`ROOT`] only: `GET /threads/owners`.
    Owners {
        /// The request's query.
        query: Query,
        /// The order of the owners.
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

/// A request about the values of variables.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvAsk {
    /// All values, encrypted: `{version, values}`. `values` is omitted if `version` is the given one.
    Rows(Option<i64>),
    /// `GET /envs/…`: the visible part of the values.
    Shown,
    /// `PATCH /envs/…`: changes the values; the request's body.
    Change(String),
}

/// A request about a token. Each returns `{version, token, taken}`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenAsk {
    /// Reads the current token.
    Read,
    /// Reserves the token for renewal by one caller, because a refresh token can often be used only once.
    /// `taken` if the version is still this one and no other caller has reserved it.
    Take {
        /// The version that the caller has.
        version: i64,
        /// The caller.
        by: String,
        /// The end of the reservation, in microseconds since 1970. Afterwards another caller may reserve the
        /// token.
        until_us: i64,
    },
    /// Stores a new token, or removes it. `taken` if the change is stored.
    Put {
        /// The caller that has reserved the token. A new sign-in needs no reservation.
        by: Option<String>,
        /// The token, encrypted.
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

/// One call for several texts, each of which holds a call.
pub fn together<'a>(calls: impl Iterator<Item = &'a str> + Clone) -> String {
    let mut rest = calls.clone();
    match (rest.next(), rest.next()) {
        (Some(only), None) => only.to_owned(),
        _ => format!(r#"{{"call":"several","calls":[{}]}}"#, calls.collect::<Vec<_>>().join(",")),
    }
}

/// The data of a thread in a directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadRow {
    /// The thread's id.
    pub id: String,
    /// The thread's current agent.
    pub agent_id: String,
    /// The owner whose directory this is; `None` in the ownerless one.
    pub owner: Option<String>,
    /// Tags, as the client set them.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Microseconds since 1970.
    pub created_at_us: i64,
    /// Microseconds since 1970; `None` while the thread exists.
    #[serde(default)]
    pub terminated_at_us: Option<i64>,
    /// Id of the parent thread, when this is a subagent's.
    #[serde(default)]
    pub parent: Option<String>,
    /// Grows with each change of the row.
    pub version: i64,
    /// The key that its creator gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The life of the thread among those with this id, from 1. The id of a key is used again after its
    /// thread was deleted. A report about an earlier life never applies to a later one.
    #[serde(default = "first_life", skip_serializing_if = "is_first_life")]
    pub life: i64,
}

/// The data of a wait in a directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitRow {
    /// The wait's id.
    pub id: String,
    /// The thread's id.
    pub thread: String,
    /// The life of the thread ([`ThreadRow::life`]).
    #[serde(default = "first_life", skip_serializing_if = "is_first_life")]
    pub life: i64,
    /// The kind of the wait: who must decide what.
    pub kind: String,
    /// The question, for people.
    pub title: String,
    /// Microseconds since 1970.
    pub created_at_us: i64,
    /// Microseconds since 1970.
    pub expires_at_us: i64,
    /// Whether it is open.
    pub open: bool,
}

/// The result of a request to an MCP server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpReport {
    /// The server's name in the catalog.
    pub server: String,
    /// Microseconds since 1970.
    pub at_us: i64,
    /// The error; `None` if the request succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<McpError>,
    /// The server's list, if the request was for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed: Option<McpListed>,
}

/// The list of a server that is requested while agents work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpListed {
    /// The server's revision of the protocol.
    pub protocol: String,
    /// Its tools: names, and the beginnings of their descriptions.
    pub tools: Vec<(String, String)>,
}

/// The error of a request to an MCP server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpError {
    /// For clients and programs.
    pub code: String,
    /// For people, without secrets.
    pub message: String,
}

/// The last reports about an MCP server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpKnown {
    /// The server's name in the catalog.
    pub server: String,
    /// The last success; microseconds since 1970.
    pub success_us: Option<i64>,
    /// The last failure; microseconds since 1970.
    pub failure_us: Option<i64>,
    /// The error of the last failure.
    pub error: Option<McpError>,
    /// The last list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed: Option<McpListed>,
}

impl DirectoryCall {
    /// The text of a call to a directory.
    ///
    /// # Errors
    /// No known error.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(Error::internal)
    }
}

/// Parses a directory's response for its caller. Returns `overloaded` if the text is not a response of a
/// directory (for example, of an object that was restarted meanwhile), so that the caller tries again.
pub fn answer(text: &str) -> Result<Reply> {
    bobbin_definitions::json::from_str(text).map_err(|error| {
        Error::new(Code::Overloaded, format!("The directory gave no readable answer: {error}."))
    })
}
