//! MCP servers and their status.

use schemars::JsonSchema;

use super::Micros;

/// When a server's tools are listed.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum McpListing {
    /// By `bobbin mcp pull`.
    Pinned,
    /// At the first step of a run.
    Live,
}

/// What a call may change.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum McpTier {
    ReadOnly,
    SideEffecting,
    Privileged,
}

/// What a server calls itself.
#[derive(JsonSchema)]
pub(crate) struct McpServerInfo {
    name: String,
    version: String,
}

#[derive(JsonSchema)]
pub(crate) struct ShownMcpTool {
    /// Its name for models.
    name: String,
    /// Its name at the server.
    tool: String,
    description: String,
    tier: McpTier,
    /// When a person is asked before a call: `never`, `always`, `when`, or `on_failure`.
    approval: String,
}

/// What was wrong last.
#[derive(JsonSchema)]
pub(crate) struct McpFailure {
    at: Micros,
    code: String,
    message: String,
}

#[derive(JsonSchema)]
pub(crate) struct ShownMcpServer {
    /// Its name in the folder.
    name: String,
    /// Scheme, host and port, as the definition has them.
    url: String,
    list: McpListing,
    /// The protocol that it speaks, where that is known.
    protocol: Option<String>,
    server: Option<McpServerInfo>,
    /// By name.
    tools: Vec<ShownMcpTool>,
    /// The agents whose prompts lead to it.
    agents: Vec<String>,
    /// When it last answered well. May lag by a minute.
    last_success: Option<Micros>,
    last_error: Option<McpFailure>,
}

#[derive(JsonSchema)]
pub(crate) struct McpServers {
    servers: Vec<ShownMcpServer>,
}

/// A Client ID Metadata Document.
#[derive(JsonSchema)]
pub(crate) struct ClientDocument {
    client_name: String,
    client_uri: String,
    redirect_uris: Vec<String>,
    grant_types: Vec<String>,
    response_types: Vec<String>,
    token_endpoint_auth_method: String,
    application_type: String,
    /// The address of this document.
    client_id: String,
}
