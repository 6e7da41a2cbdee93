//! Function tools: what a model reads about them, and what runs when it calls one (spec §6).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::definitions::approval::Approval;
use crate::definitions::form::StringOr;
use crate::definitions::mcp::McpTool;
use crate::definitions::retry::Policy;
use crate::definitions::scrub::Scrub;
use crate::definitions::variable::{Variable, is_default};

/// A function that models may call (spec §6.1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tool {
    /// The tool's name, for prompts and models: letters, digits, `_` and `-`, at most 64 characters. Default:
    /// the name of its file.
    #[serde(default)]
    pub name: String,
    /// The tool's purpose: what it does, when to use it, and what it returns. The model reads this text.
    pub description: String,
    /// The JSON Schema of the arguments. It describes an object and accepts a fixed set of keywords. Any
    /// other keyword is an error. Default: no arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Map<String, Value>>"))]
    pub args: Option<Value>,
    /// The implementation that runs.
    pub run: Implementation,
    /// The time limit of a call, in milliseconds, at most 600,000. After it the call fails. Default: 60,000
    /// for `http` and 900,000 for `native` and `code`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// If `true`, Bobbin may repeat a call with the same idempotency key after a crash in the middle of it.
    /// If `false`, Bobbin never repeats such a call, and the model reads that its outcome is unknown.
    /// Default: `false`, or `true` for a tool of the tier `read_only`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "bool"))]
    pub idempotent: Option<bool>,
    /// The tier: what a call may change. Default: `side_effecting`. Bobbin's own native tools have their own
    /// tiers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Tier"))]
    pub tier: Option<Tier>,
    /// The retry policy for failed calls. It applies if the run, the prompt and `bobbin.json` have no policy
    /// for tools. Only for `idempotent` tools.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retry: Policy,
    /// The variables that the tool needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
    /// The calls that need the approval of a person: `never`, `always`, `when`, `on_failure`, or an object.
    /// Default: `never`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// The treatment of texts in results that look like secrets. It refines the setting in `bobbin.json`.
    /// `keywords` can only be stricter. `entropy` may be `off`, for tools whose results consist of
    /// random-looking texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scrub: Option<Scrub>,
}

/// The changes that a call of a tool may make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Tier {
    /// A call changes nothing. Bobbin may repeat it, and may run it at the same time as other calls of this
    /// tier.
    ReadOnly,
    /// A call may change something.
    #[default]
    SideEffecting,
    /// A call may change more than most, such as one that runs code written by a model.
    Privileged,
}

impl Tier {
    /// As definitions and clients have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Tier::ReadOnly => "read_only",
            Tier::SideEffecting => "side_effecting",
            Tier::Privileged => "privileged",
        }
    }
}

impl Tool {
    /// Whether the client of the thread runs the tool.
    pub fn is_of_client(&self) -> bool {
        matches!(self.run, Implementation::Client(_))
    }
}

/// The implementation of a definition. All kinds of definitions use the same forms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Run"))]
pub enum Implementation {
    /// A function of the Worker, by its registered name.
    Native(String),
    /// A POST request to your server.
    Http(Http),
    /// A file of TypeScript or JavaScript that runs in the sandbox: its path from the definition's own
    /// folder, or an object.
    Code(Code),
    /// A call that a client of the thread runs, such as your page. The run is parked until the client sends
    /// the result.
    Client(Client),
    /// A tool of an MCP server of the folder. The compiler creates these from the server's list.
    #[cfg_attr(feature = "schema", schemars(skip))]
    Mcp(McpTool),
}

/// A call that a client runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Client {
    /// The time limit for the client's result, in seconds, at most 30 days. After it the call fails. Default:
    /// 600.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_after_seconds: Option<u64>,
}

/// Code that runs in the sandbox (docs/run-code.md).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "StringOr<CodeFields>", into = "CodeFields")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "StringOr<CodeFields>"))]
pub struct Code {
    /// The file. In a compiled catalog, its path below the folder of definitions.
    pub file: String,
    /// The engine that runs the code.
    pub engine: Engine,
    /// The maximum size of the heap, in bytes.
    pub memory_limit_bytes: Option<u64>,
    /// The hosts that `fetch` may reach: `name`, `name:port`, or `*.example.com` for all subdomains.
    pub allowed_hosts: Vec<String>,
}

/// The object form of `code`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CodeFields {
    /// The TypeScript or JavaScript file: its path from the definition's own folder.
    file: String,
    /// The engine that runs the code. `quickjs` enforces every limit. `v8` is faster, needs a Worker Loader
    /// binding, and has the exclusions in docs/run-code.md. Default: `quickjs`.
    #[serde(default, skip_serializing_if = "is_default")]
    engine: Engine,
    /// The maximum size of the heap, in bytes, at most 64 MB. Default: 16 MB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    memory_limit_bytes: Option<u64>,
    /// The hosts that `fetch` may reach: `name`, `name:port`, or `*.example.com` for all subdomains. Default:
    /// none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    allowed_hosts: Vec<String>,
}

impl From<StringOr<CodeFields>> for Code {
    fn from(form: StringOr<CodeFields>) -> Code {
        let short = |file| CodeFields {
            file,
            engine: Engine::default(),
            memory_limit_bytes: None,
            allowed_hosts: Vec::new(),
        };
        let CodeFields { file, engine, memory_limit_bytes, allowed_hosts } = match form {
            StringOr::String(file) => short(file),
            StringOr::Object(fields) => fields,
        };
        Code { file, engine, memory_limit_bytes, allowed_hosts }
    }
}

impl From<Code> for CodeFields {
    fn from(code: Code) -> CodeFields {
        let Code { file, engine, memory_limit_bytes, allowed_hosts } = code;
        CodeFields { file, engine, memory_limit_bytes, allowed_hosts }
    }
}

/// The address of an HTTP implementation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Http {
    /// The absolute URL. It may contain `{{env NAME}}`. In the scheme, host and port, only values of the
    /// deployment are used.
    pub url: String,
    /// The headers of the request. Values may contain `{{env NAME}}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

/// The engine that runs the code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Engine {
    /// QuickJS. It enforces every limit.
    #[default]
    Quickjs,
    /// The platform's own isolates, if they are bound. They are faster, with exclusions (docs/run-code.md).
    V8,
}

/// Whether a text can name a header (RFC 9110, 5.6.2).
pub fn is_header_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c))
}
