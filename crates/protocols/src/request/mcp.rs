//! Routes of clients of MCP.

/// What a client of MCP asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpRoute {
    /// `POST /mcp`: a message.
    Post,
    /// `GET /.well-known/oauth-protected-resource`, and below it `/mcp`: who gives tokens. No credentials.
    Metadata,
}
