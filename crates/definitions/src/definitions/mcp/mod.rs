//! MCP servers whose tools prompts may have (docs/mcp.md): `agents/mcp/<name>.json`.

//!
//! `listed`: its tools as it lists them, and the tools of the catalog that they become. `schema`: schemas that are not of the
//! folder. `live`: the catalog with what servers list while threads run.

pub mod listed;
mod live;
pub mod schema;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::definitions::approval::Approval;
use crate::definitions::mcp::listed::ListingInfo;
use crate::definitions::retry::Policy;
use crate::definitions::scrub::Scrub;
use crate::definitions::template;
use crate::definitions::tool::Tier;
use crate::definitions::variable::{Variable, is_default};

/// What an entry of a prompt's `tools` begins with that means tools of a server: `mcp:linear`.
pub const PREFIX: &str = "mcp:";

/// The key for all tools that are not named.
pub const DEFAULT: &str = "default";

/// An MCP server whose tools prompts may use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpServer {
    /// The server's name, for prompts. Default: the name of its file.
    #[serde(default)]
    pub name: String,
    /// The server's address: `https`, or `http` for this machine in development. It may contain
    /// `{{env NAME}}`.
    pub url: String,
    /// The server's purpose, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The headers of each request. Values may contain `{{env NAME}}`.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(with = "std::collections::BTreeMap<String, String>"))]
    pub headers: BTreeMap<String, String>,
    /// The variables that the server needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
    /// The server's tools that prompts may use. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<McpChoice>,
    /// The arguments that the application sets, by tool. Models neither see nor set them. Texts may contain
    /// `{{env NAME}}`.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "std::collections::BTreeMap<String, Map<String, Value>>")
    )]
    pub provide: BTreeMap<String, Map<String, Value>>,
    /// The calls that need the approval of a person, by tool. `default` applies to all other tools. Default:
    /// `never`.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(with = "std::collections::BTreeMap<String, Approval>"))]
    pub approval: BTreeMap<String, Approval>,
    /// The tier of each tool: what a call may change. `default` applies to all other tools. Default:
    /// `side_effecting`.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(with = "std::collections::BTreeMap<String, Tier>"))]
    pub tier: BTreeMap<String, Tier>,
    /// For each tool, `true` if Bobbin may repeat a call after a crash in the middle of it. `default` applies
    /// to all other tools. Default: the server's hints (`readOnlyHint`, `idempotentHint`).
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(with = "std::collections::BTreeMap<String, bool>"))]
    pub idempotent: BTreeMap<String, bool>,
    /// The retry policy for failed calls. It applies if the run, the prompt and `bobbin.json` have no policy
    /// for MCP servers.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retry: Policy,
    /// The treatment of texts in results that look like secrets. It refines the setting in `bobbin.json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scrub: Option<Scrub>,
    /// The sign-in to the server, if a header is not enough. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<McpAuth>,
    /// The time limit of a call, in milliseconds, at most 600,000. After it the call fails. Default: 60,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The version of the protocol. Default: `auto`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub protocol: McpProtocol,
    /// The source of the list of tools. Default: `pinned`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub list: McpList,
    /// The server's facts about itself when its tools were listed. The compiler takes them from the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub pinned: Option<ListingInfo>,
}

impl McpServer {
    /// Whether a tool of it is one that prompts may have.
    pub fn offers(&self, tool: &str) -> bool {
        match &self.tools {
            None => true,
            Some(McpChoice::Allow(names)) => names.iter().any(|name| name == tool),
            Some(McpChoice::Block(names)) => names.iter().all(|name| name != tool),
        }
    }
}

impl McpServer {
    /// The variables that its fields name, each with the field where it stands.
    pub fn named_values(&self) -> Vec<(String, &str)> {
        let mut texts: Vec<(String, &str)> = vec![("url".to_owned(), &self.url)];
        texts
            .extend(self.headers.iter().map(|(header, value)| (format!("headers.{header}"), value.as_str())));
        let (id, secret) = match &self.auth {
            Some(McpAuth::ClientCredentials { client_id, client_secret, .. }) => {
                (Some(client_id), Some(client_secret))
            }
            Some(McpAuth::Oauth { client_id, client_secret, .. }) => {
                (client_id.as_ref(), client_secret.as_ref())
            }
            None => (None, None),
        };
        texts.extend(id.map(|text| ("auth.clientId".to_owned(), text.as_str())));
        texts.extend(secret.map(|text| ("auth.clientSecret".to_owned(), text.as_str())));
        for (tool, arguments) in &self.provide {
            for (argument, value) in arguments {
                texts_of(value, format!("provide.{tool}.{argument}"), &mut texts);
            }
        }
        let mut named = Vec::new();
        for (field, text) in texts {
            named.extend(template::names(text).into_iter().map(|name| (field.clone(), name)));
        }
        named
    }
}

/// The texts in a value, at any depth.
fn texts_of<'v>(value: &'v Value, field: String, texts: &mut Vec<(String, &'v str)>) {
    match value {
        Value::String(text) => texts.push((field, text)),
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.for_each(|(index, item)| texts_of(item, format!("{field}[{index}]"), texts));
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| texts_of(value, format!("{field}.{name}"), texts));
        }
        _ => {}
    }
}

/// The tools of a server that prompts may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum McpChoice {
    /// Only these tools, by the server's names.
    Allow(Vec<String>),
    /// All tools except these, by the server's names.
    Block(Vec<String>),
}

/// The sign-in to a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum McpAuth {
    /// A person signs in when the server requires it.
    Oauth {
        /// The requested scopes. Default: the scopes that the server names.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        scopes: Vec<String>,
        /// The client id, if the deployment is already registered at the authorization server. It may contain
        /// `{{env NAME}}`. Default: the address of the deployment's client metadata, or a new registration.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client_id: Option<String>,
        /// The client secret. It must name a variable, as `{{env NAME}}`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client_secret: Option<String>,
        /// The authorization server, if the server names several. Default: the first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        issuer: Option<String>,
    },
    /// The application signs in. No person is involved.
    ClientCredentials {
        /// The client id. It may contain `{{env NAME}}`.
        client_id: String,
        /// The client secret. It must name a variable, as `{{env NAME}}`.
        client_secret: String,
        /// The requested scopes. Default: the scopes that the server names.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        scopes: Vec<String>,
        /// The authorization server, if the server names several. Default: the first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        issuer: Option<String>,
    },
}

/// The version of the MCP protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum McpProtocol {
    /// The newest version that the server supports. Bobbin tries 2026-07-28 first.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// The version with sessions, which start with `initialize`.
    #[serde(rename = "2025-11-25")]
    Legacy,
    /// The version without sessions.
    #[serde(rename = "2026-07-28")]
    Modern,
}

impl McpProtocol {
    /// The form in definitions and for clients.
    pub const fn as_str(self) -> &'static str {
        match self {
            McpProtocol::Auto => "auto",
            McpProtocol::Legacy => "2025-11-25",
            McpProtocol::Modern => "2026-07-28",
        }
    }
}

/// The source of the list of a server's tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum McpList {
    /// A file, `agents/mcp/<name>.tools.json`, written by `bobbin mcp pull`.
    #[default]
    Pinned,
    /// The server. Bobbin requests the list at the first step of a run.
    Live,
}

/// The implementation of a tool of an MCP server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpTool {
    /// The server's name in the folder.
    pub server: String,
    /// The tool's name at the server.
    pub tool: String,
    /// The arguments that Bobbin sets in each call. They replace the model's values. Texts may contain
    /// `{{env NAME}}`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub provide: Map<String, Value>,
    /// The arguments that are also sent as headers. A key is the part of the header's name after
    /// `Mcp-Param-`. Its value is a JSON pointer into the arguments.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(with = "std::collections::BTreeMap<String, String>"))]
    pub headers: BTreeMap<String, String>,
}

/// Whether an address leads to this machine: `127.0.0.1`, `localhost` or `[::1]`, with any port.
pub fn is_loopback(url: &str) -> bool {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = authority.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or(rest, |(host, _)| host),
        None => authority.split(':').next().unwrap_or_default(),
    };
    ["127.0.0.1", "localhost", "::1"].iter().any(|local| host.eq_ignore_ascii_case(local))
}
