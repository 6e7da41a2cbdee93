//! Routes of one memory, below `/api/threads/:id/memory/:name` and `/api/memory/:name`, and what the object of one that threads
//! share is asked.

use serde::{Deserialize, Serialize};

use crate::request::Query;
use bobbin_definitions::error::{Error, Result};

/// A route of one memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", content = "document", rename_all = "snake_case")]
pub enum MemoryRoute {
    /// `GET /`: what is in it, in numbers.
    Get,
    /// `DELETE /`: everything goes.
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
    /// `GET /logs`: requests for vectors that no run has made.
    Logs,
}

impl MemoryRoute {
    /// Whether it only reads.
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

/// The name of the object that holds a memory: of an owner, or of the instance. A memory's name has no slash, so the last one
/// says where it begins.
pub fn object_name(owner: Option<&str>, memory: &str) -> String {
    owner.map_or_else(|| format!("i/{memory}"), |owner| format!("o:{owner}/{memory}"))
}

/// What the object of a memory is called with: this as JSON, a line break, and what the [`MemoryAsk`] says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MemoryCall {
    /// The memory's name.
    pub memory: String,
    /// Whose it is; `None` for the instance's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// What is asked.
    pub ask: MemoryAsk,
}

impl MemoryCall {
    /// The first line of what the object is called with.
    ///
    /// # Errors
    /// None that is known of.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(Error::internal)
    }
}

/// What is asked of the object of a memory.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryAsk {
    /// A request over HTTP, with its body.
    Route {
        /// Its route.
        of: MemoryRoute,
        /// Its query.
        query: Query,
        /// Its `Idempotency-Key`.
        idempotency_key: Option<String>,
    },
    /// A thread looks something up: a search as JSON.
    Find,
    /// A thread wants to know what places hold today: numbers of their chunks as JSON.
    Look,
    /// A thread changes a note: a letter as JSON.
    Apply,
}
