//! MCP servers and their status.

use schemars::JsonSchema;

use super::Micros;

/// When Bobbin lists the tools of a server.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum McpListing {
    /// Listed by `bobbin mcp pull`.
    Pinned,
    /// Listed at the first step of a run.
    Live,
}

/// What calls of a tool may change.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum McpTier {
    ReadOnly,
    SideEffecting,
    Privileged,
}

/// The name and version that a server reports.
#[derive(JsonSchema)]
pub(crate) struct McpServerInfo {
    name: String,
    version: String,
}

#[derive(JsonSchema)]
pub(crate) struct ShownMcpTool {
    /// The name of the tool for models.
    name: String,
    /// The name of the tool on the server.
    tool: String,
    description: String,
    tier: McpTier,
    /// When a call needs approval: `never`, `always`, `when`, or `on_failure`.
    approval: String,
}

/// The last failure of a server.
#[derive(JsonSchema)]
pub(crate) struct McpFailure {
    at: Micros,
    code: String,
    message: String,
}

#[derive(JsonSchema)]
pub(crate) struct ShownMcpServer {
    /// The name of its file.
    name: String,
    /// Scheme, host and port, as in the definition.
    url: String,
    list: McpListing,
    /// The protocol of the server, if it is known.
    protocol: Option<String>,
    server: Option<McpServerInfo>,
    /// Ordered by name.
    tools: Vec<ShownMcpTool>,
    /// The agents whose prompts use the server.
    agents: Vec<String>,
    /// The time of the last success. May lag by a minute.
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
