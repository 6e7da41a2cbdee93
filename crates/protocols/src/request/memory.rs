//! Routes of one memory, below `/api/threads/:id/memory/:name` and `/api/memory/:name`, and requests to the
//! object of a memory that threads share.

use serde::{Deserialize, Serialize};

use crate::request::Query;
use bobbin_definitions::error::{Error, Result};

/// A route of one memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", content = "document", rename_all = "snake_case")]
pub enum MemoryRoute {
    /// `GET /`: the counts of its contents.
    Get,
    /// `DELETE /`: deletes everything.
    Clear,
    /// `POST /documents`.
    AddDocument,
    /// `GET /documents`.
    ListDocuments,
    /// `GET /documents/:id`.
    GetDocument(String),
    /// `DELETE /documents/:id`.
    DeleteDocument(String),
    /// `POST /search`.
    Search,
    /// `GET /logs`: requests for vectors outside runs.
    Logs,
}

impl MemoryRoute {
    /// Whether the route only reads.
    pub const fn reads(&self) -> bool {
        matches!(
            self,
            MemoryRoute::Get
                | MemoryRoute::ListDocuments
                | MemoryRoute::GetDocument(_)
                | MemoryRoute::Search
                | MemoryRoute::Logs
        )
    }
}

/// The name of the object that holds a memory of an owner, or of the instance. A memory's name has no slash,
/// so it begins after the last one.
pub fn object_name(owner: Option<&str>, memory: &str) -> String {
    owner.map_or_else(|| format!("i/{memory}"), |owner| format!("o:{owner}/{memory}"))
}

/// The text of a call to the object of a memory: this as JSON, a line break, and the body of the
/// [`MemoryAsk`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MemoryCall {
    /// The memory's name.
    pub memory: String,
    /// The owner of the memory; `None` for the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The request.
    pub ask: MemoryAsk,
}

impl MemoryCall {
    /// The first line of a call to the object.
    ///
    /// # Errors
    /// No known error.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(Error::internal)
    }
}

/// A request to the object of a memory.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryAsk {
    /// An HTTP request, with its body.
    Route {
        /// Its route.
        of: MemoryRoute,
        /// Its query.
        query: Query,
        /// Its `Idempotency-Key`.
        idempotency_key: Option<String>,
    },
    /// A thread's search, as JSON.
    Find,
    /// A thread's request for the current texts of search results. The body has the numbers of their chunks,
    /// as JSON.
    Look,
    /// A thread's change of a note: a message between threads, as JSON.
    Apply,
}
