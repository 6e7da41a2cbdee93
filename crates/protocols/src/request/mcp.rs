//! Routes of clients of MCP.

use crate::request::route::not_allowed;
use bobbin_definitions::error::Result;

/// What a client of MCP asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpRoute {
    /// `POST /mcp`: a message.
    Post,
    /// `GET /.well-known/oauth-protected-resource`, and below it `/mcp`: who gives tokens. No credentials.
    Metadata,
}

impl McpRoute {
    /// The route of this path.
    pub(super) fn find(method: &str, segments: &[&str]) -> Result<Option<McpRoute>> {
        match (segments, method) {
            (
                [".well-known", "oauth-protected-resource"]
                | [".well-known", "oauth-protected-resource", "mcp"],
                _,
            ) => {
                if method == "GET" {
                    Ok(Some(McpRoute::Metadata))
                } else {
                    Err(not_allowed(method, "GET"))
                }
            }
            (["mcp"], "POST") => Ok(Some(McpRoute::Post)),
            (["mcp"], _) => Err(not_allowed(method, "POST")),
            _ => Ok(None),
        }
    }
}
