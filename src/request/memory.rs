//! Routes of one memory, below `/api/threads/:id/memory/:name` and `/api/memory/:name`.

use serde::{Deserialize, Serialize};

use crate::error::{Code, Error, Result};
use crate::request::route::not_allowed;

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
}

impl MemoryRoute {
    /// The route behind the memory's name.
    pub fn of(method: &str, rest: &[&str]) -> Result<MemoryRoute> {
        let (found, allowed) = match (rest, method) {
            ([], "GET") => (Some(MemoryRoute::Get), ""),
            ([], "DELETE") => (Some(MemoryRoute::Clear), ""),
            ([], _) => (None, "GET, DELETE"),
            (["documents"], "GET") => (Some(MemoryRoute::ListDocuments), ""),
            (["documents"], "POST") => (Some(MemoryRoute::AddDocument), ""),
            (["documents"], _) => (None, "GET, POST"),
            (["documents", id], "GET") => (Some(MemoryRoute::GetDocument((*id).to_owned())), ""),
            (["documents", id], "DELETE") => (Some(MemoryRoute::DeleteDocument((*id).to_owned())), ""),
            (["documents", _], _) => (None, "GET, DELETE"),
            (["search"], "POST") => (Some(MemoryRoute::Search), ""),
            (["search"], _) => (None, "POST"),
            _ => return Err(Error::new(Code::NotFound, "A memory has no such route.")),
        };
        found.ok_or_else(|| not_allowed(method, allowed))
    }

    /// Whether it only reads.
    pub const fn reads(&self) -> bool {
        matches!(
            self,
            MemoryRoute::Get | MemoryRoute::ListDocuments | MemoryRoute::GetDocument(_) | MemoryRoute::Search
        )
    }

    /// Whether it has a body.
    pub const fn has_body(&self) -> bool {
        matches!(self, MemoryRoute::AddDocument | MemoryRoute::Search)
    }

    /// The query parameters that it knows.
    pub const fn parameters(&self) -> &'static [&'static str] {
        match self {
            MemoryRoute::ListDocuments => &["limit", "cursor", "tag"],
            _ => &[],
        }
    }
}
