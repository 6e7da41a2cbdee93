//! MCP servers and their status (docs/mcp.md).

use bobbin_definitions::definitions::approval::Mode;
use bobbin_definitions::definitions::{McpList, ServerInfo, Tier};
use serde::Serialize;

use super::Micros;

/// A tool of an MCP server.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShownMcpTool {
    /// The name of the tool for models.
    pub name: String,
    /// The name of the tool on the server.
    pub tool: String,
    /// The description for models.
    pub description: String,
    /// The changes that a call may make.
    pub tier: Tier,
    /// When a call needs approval: `never`, `always`, `when`, or `on_failure`.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub approval: Mode,
}

/// The last failure of a server.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpFailure<'a> {
    /// The time, in microseconds since 1970.
    pub at: Micros,
    /// A code for programs (docs/mcp.md).
    pub code: &'a str,
    /// The error, for people.
    pub message: &'a str,
}

/// An MCP server of the definitions.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShownMcpServer<'a> {
    /// The name of its file.
    pub name: &'a str,
    /// Scheme, host and port, as in the definition.
    pub url: String,
    /// The source of the list of its tools.
    pub list: McpList,
    /// The protocol of the server. `null` while it is unknown.
    pub protocol: Option<&'a str>,
    /// The name and version of the server. `null` if the list of its tools is not in a file.
    pub server: Option<&'a ServerInfo>,
    /// Ordered by name.
    pub tools: Vec<ShownMcpTool>,
    /// The agents whose prompts use the server.
    pub agents: Vec<&'a str>,
    /// The time of the last success, in microseconds since 1970. May lag by a minute. `null` before the first.
    pub last_success: Option<Micros>,
    /// The last failure. `null` before the first.
    pub last_error: Option<McpFailure<'a>>,
}

/// The MCP servers of the definitions.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpServers<'a> {
    /// Ordered by name.
    pub servers: Vec<ShownMcpServer<'a>>,
}

/// The metadata of a deployment as an OAuth client.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClientMetadata<'a> {
    /// The name of the client.
    pub client_name: &'static str,
    /// The address of the deployment.
    pub client_uri: &'a str,
    /// The addresses to which a browser returns.
    pub redirect_uris: Vec<String>,
    /// The grants that the client uses.
    pub grant_types: &'static [&'static str],
    /// The responses that the client expects.
    pub response_types: &'static [&'static str],
    /// How the client authenticates at the token endpoint.
    pub token_endpoint_auth_method: &'a str,
    /// `web` for an address with https, otherwise `native`.
    pub application_type: &'static str,
}

/// A Client ID Metadata Document.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClientDocument<'a> {
    /// The metadata of the client.
    #[serde(flatten)]
    pub metadata: ClientMetadata<'a>,
    /// The address of this document.
    pub client_id: String,
}
