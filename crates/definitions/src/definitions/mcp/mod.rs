//! MCP servers whose tools prompts may have (docs/mcp.md): `agents/mcp/<name>.json`.

//!
//! `listed`: its tools as it lists them, and the tools of the catalog that they become. `schema`: schemas that are not of the
//! folder. `live`: the catalog with what servers list while threads run.

pub mod listed;
mod live;
pub mod schema;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::definitions::approval::Approval;
use crate::definitions::mcp::listed::ListingInfo;
use crate::definitions::retry::Policy;
use crate::definitions::scrub::Scrub;
use crate::definitions::template;
use crate::definitions::tool::Tier;
use crate::definitions::variable::{Variable, is_default};
use crate::sorted::SortedMap;

/// What an entry of a prompt's `tools` begins with that means tools of a server: `mcp:linear`.
pub const PREFIX: &str = "mcp:";

/// What stands for all tools that are not named, in what is said of tools.
pub const DEFAULT: &str = "default";

/// An MCP server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpServer {
    /// Its name, for prompts; the file's name unless given.
    #[serde(default)]
    pub name: String,
    /// Its address: `https`, or `http` on this machine in development.
    pub url: String,
    /// What it is for. People read this.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Headers of each request; values may name variables, as `{{env NAME}}`.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(with = "std::collections::BTreeMap<String, String>"))]
    pub headers: SortedMap<String, String>,
    /// Values it needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
    /// Which of its tools there are: all unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<McpChoice>,
    /// Arguments by tool that the application fills in: no model is told of them. Texts may name variables, as `{{env NAME}}`.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "std::collections::BTreeMap<String, Map<String, Value>>")
    )]
    pub provide: SortedMap<String, Map<String, Value>>,
    /// Whether a person is asked before a call runs, by tool; `default` for the others.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(with = "std::collections::BTreeMap<String, Approval>"))]
    pub approval: SortedMap<String, Approval>,
    /// What a call may change, by tool; `default` for the others, which are `side_effecting` unless given.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(with = "std::collections::BTreeMap<String, Tier>"))]
    pub tier: SortedMap<String, Tier>,
    /// Whether a call may safely be made again, by tool; `default` for the others, of which the server's own hints
    /// (`readOnlyHint`, `idempotentHint`) count unless given.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(with = "std::collections::BTreeMap<String, bool>"))]
    pub idempotent: SortedMap<String, bool>,
    /// How a call that failed is made again, where neither the run, the prompt nor the folder says.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retry: Policy,
    /// What becomes of texts in its results that look like secrets, beyond what `bobbin.json` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scrub: Option<Scrub>,
    /// How it is signed in to, where a header is not enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<McpAuth>,
    /// Milliseconds after which a call counts as failed: 60,000 unless given and 600,000 at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Which protocol it speaks.
    #[serde(default, skip_serializing_if = "is_default")]
    pub protocol: McpProtocol,
    /// When its tools are listed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub list: McpList,
    /// What it said of itself when its tools were listed; the compiler takes it from the list.
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

/// Which of a server's tools there are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum McpChoice {
    /// These.
    Allow(Vec<String>),
    /// All others.
    Block(Vec<String>),
}

/// How a server is signed in to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum McpAuth {
    /// A person signs in, once the server asks for it.
    Oauth {
        /// What is asked for; unless given, what the server says.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        scopes: Vec<String>,
        /// The client's id, where the authorization server knows it already. May name a variable. Unless given, the address of this
        /// deployment's own description of itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client_id: Option<String>,
        /// Its secret: names a variable, as `{{env NAME}}`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client_secret: Option<String>,
        /// The authorization server, where the server names several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        issuer: Option<String>,
    },
    /// The application itself signs in, and nobody is asked.
    ClientCredentials {
        /// The client's id. May name a variable.
        client_id: String,
        /// Its secret: names a variable, as `{{env NAME}}`.
        client_secret: String,
        /// What is asked for; unless given, what the server says.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        scopes: Vec<String>,
        /// The authorization server, where the server names several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        issuer: Option<String>,
    },
}

/// Which protocol a server speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum McpProtocol {
    /// What it answers to: the newer one is tried first.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// That of sessions, from `initialize` on.
    #[serde(rename = "2025-11-25")]
    Legacy,
    /// That without.
    #[serde(rename = "2026-07-28")]
    Modern,
}

/// When a server's tools are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum McpList {
    /// By `bobbin mcp pull`, into `agents/mcp/<name>.tools.json`.
    #[default]
    Pinned,
    /// At the first step of a run.
    Live,
}

/// What a tool of an MCP server runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpTool {
    /// The server, by its name in the folder.
    pub server: String,
    /// The tool, by its name at the server.
    pub tool: String,
    /// Arguments that are put in when the call is made, whatever the model wrote there. Texts may hold `{{env NAME}}`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub provide: Map<String, Value>,
    /// Arguments that travel as headers, too: what follows `Mcp-Param-`, and a JSON pointer into the arguments.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(with = "std::collections::BTreeMap<String, String>"))]
    pub headers: SortedMap<String, String>,
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
