//! `GET /api/mcp`: the MCP servers of the catalog and their status. Values of variables are not shown:
//! addresses appear as in the definition.

use serde_json::Value;

use crate::definitions::graph::{Item, reach};
use crate::definitions::offered::is_of_tool;
use crate::definitions::tier::tier;
use crate::definitions::{Catalog, Implementation, ListedTool, McpList, McpProtocol, McpServer, Tool};
use crate::json;
use crate::mcp_client::oauth::registration::{PUBLIC_URL, description, document_address, public_origin};
use crate::protocols::responses::mcp::{
    ClientDocument, McpFailure, McpServers, ShownMcpServer, ShownMcpTool,
};
use crate::request::directory_call::McpKnown;

/// The servers, by name. `known`: the root's state, `{servers: [McpKnown]}`.
pub fn servers(catalog: &Catalog, known: &Value) -> Value {
    let known: Vec<McpKnown> = known
        .get("servers")
        .and_then(|known| crate::json::from_value(known.clone()).ok())
        .unwrap_or_default();
    let reached = reached(catalog);
    let shown = catalog.mcp.iter().map(|(name, server)| {
        let known = known.iter().find(|known| known.server == *name);
        let agents: Vec<&str> =
            reached.iter().filter(|(of, _)| of == name).map(|(_, agent)| *agent).collect();
        shown(catalog, server, agents, known)
    });
    json!(McpServers { servers: shown.collect() })
}

/// `GET /.well-known/bobbin-client.json`: the deployment's client metadata for the sign-in to MCP servers.
/// `asked`: the origin of the request, which is used if no variable sets another one.
pub fn client_document(var: &dyn Fn(&str) -> Option<String>, asked: &str) -> Value {
    let origin = public_origin(&var(PUBLIC_URL).unwrap_or_default()).unwrap_or_else(|_| asked.to_owned());
    json!(ClientDocument { metadata: description(&origin, "none"), client_id: document_address(&origin) })
}

fn shown<'a>(
    catalog: &Catalog,
    server: &'a McpServer,
    agents: Vec<&'a str>,
    known: Option<&'a McpKnown>,
) -> ShownMcpServer<'a> {
    let pinned = server.pinned.as_ref();
    let protocol = match (pinned.map(|pinned| pinned.protocol), server.protocol) {
        (None | Some(McpProtocol::Auto), McpProtocol::Auto) => None,
        (None | Some(McpProtocol::Auto), fixed) => Some(fixed),
        (spoken, _) => spoken,
    };
    let failed = known.and_then(|known| known.failure_us.zip(known.error.as_ref()));
    let pinned_tools = catalog.tools.values().filter_map(|tool| Some((tool, of(tool, &server.name)?)));
    let mut tools: Vec<ShownMcpTool> = pinned_tools.map(|(tool, own)| tool_of(tool, own)).collect();
    let listed = known.and_then(|known| known.listed.as_ref()).filter(|_| server.list == McpList::Live);
    tools.extend(listed.iter().flat_map(|listed| live(server, &listed.tools)));
    let protocol = protocol.map(McpProtocol::as_str);
    ShownMcpServer {
        name: &server.name,
        url: origin(&server.url),
        list: server.list,
        protocol: listed.map(|listed| listed.protocol.as_str()).or(protocol),
        server: pinned.map(|pinned| &pinned.server),
        tools,
        agents,
        last_success: known.and_then(|known| known.success_us),
        last_error: failed.map(|(at, error)| McpFailure { at, code: &error.code, message: &error.message }),
    }
}

/// Tools that the server listed last, filtered by its definition.
fn live(server: &McpServer, tools: &[(String, String)]) -> Vec<ShownMcpTool> {
    let listed = |(name, description): &(String, String)| ListedTool {
        name: name.clone(),
        description: Some(description.clone()),
        input_schema: json!({ "type": "object" }),
        ..ListedTool::default()
    };
    let listed: Vec<ListedTool> = tools.iter().map(listed).collect();
    let offered = server.offered(&listed).into_iter();
    offered.filter_map(|(_, listed, tool)| Some(tool_of(&tool.ok()?, &listed.name))).collect()
}

fn tool_of(tool: &Tool, own: &str) -> ShownMcpTool {
    ShownMcpTool {
        name: tool.name.clone(),
        tool: own.to_owned(),
        description: tool.description.clone(),
        tier: tier(tool),
        approval: tool.approval.as_ref().map(|approval| approval.mode).unwrap_or_default(),
    }
}

/// The server's own name of a tool, if the tool belongs to this server.
fn of<'c>(tool: &'c Tool, server: &str) -> Option<&'c str> {
    match &tool.run {
        Implementation::Mcp(of) if of.server == server => Some(&of.tool),
        _ => None,
    }
}

/// Servers, and agents whose own prompts use tools of them: each pair once.
fn reached(catalog: &Catalog) -> Vec<(&str, &str)> {
    let mut pairs = Vec::new();
    for agent in catalog.agents.values().filter(|agent| !is_of_tool(&agent.name)) {
        for found in reach(catalog, agent).iter().filter(|found| !found.handed) {
            let server = match found.item {
                Item::Server(server) => Some(&server.name),
                Item::Tool(Tool { run: Implementation::Mcp(of), .. }) => Some(&of.server),
                _ => None,
            };
            let pair = server.map(|server| (server.as_str(), agent.name.as_str()));
            pairs.extend(pair.filter(|pair| !pairs.contains(pair)));
        }
    }
    pairs
}

/// Scheme, host and port of an address, which may contain names of variables.
fn origin(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    if scheme.is_empty() { host.to_owned() } else { format!("{scheme}://{host}") }
}

#[cfg(test)]
mod tests {
    use super::origin;

    #[test]
    fn only_the_origin_of_an_address_is_shown() {
        for (url, shown) in [
            ("https://mcp.linear.app/mcp?key={{env KEY}}", "https://mcp.linear.app"),
            ("https://ann:word@a.example:8443/x", "https://a.example:8443"),
            ("{{env BASE}}/mcp", "{{env BASE}}"),
            ("https://{{env HOST}}#x", "https://{{env HOST}}"),
        ] {
            assert_eq!(origin(url), shown);
        }
    }
}
