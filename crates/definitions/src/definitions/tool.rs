//! Function tools: what a model reads about them, and what runs when it calls one (spec §6).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::definitions::approval::Approval;
use crate::definitions::form::StringOr;
use crate::definitions::mcp::McpTool;
use crate::definitions::retry::Policy;
use crate::definitions::scrub::Scrub;
use crate::definitions::variable::{Variable, is_default};
use crate::sorted::SortedMap;

/// A function that models may call (spec §6.1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tool {
    /// Its name, for prompts and models; the file's name unless given. Letters, digits, `_` and `-`, at most 64.
    #[serde(default)]
    pub name: String,
    /// What it does, when to use it, and what it returns. The model reads this.
    pub description: String,
    /// JSON Schema of its arguments, an object at the top; without it there are none. The keywords are a closed list:
    /// the catalog says so where another is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Map<String, Value>>"))]
    pub args: Option<Value>,
    /// What runs.
    pub run: Implementation,
    /// Milliseconds after which a call counts as failed; for http, 60,000 unless given and 600,000 at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Whether a call may safely be made again, with the same idempotency key, when the runtime was lost in the
    /// middle of it. Otherwise such a call is never repeated and the model is told that its outcome is unknown. `false`
    /// unless given; of a `read_only` tool, `true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "bool"))]
    pub idempotent: Option<bool>,
    /// What a call may change: `side_effecting` unless given; native tools of Bobbin's have their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Tier"))]
    pub tier: Option<Tier>,
    /// How a call that failed is made again, where neither the run, the prompt nor the folder says; for `idempotent` tools.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retry: Policy,
    /// Values it needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
    /// Whether a person is asked before a call runs: `never`, unless given, `always`, `when`, `on_failure`, or an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// What becomes of texts in its results that look like secrets, beyond what `bobbin.json` says: `keywords` can only be
    /// stricter; `entropy` may be off, for results that consist of such texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scrub: Option<Scrub>,
}

/// What a call of a tool may change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Tier {
    /// Nothing that anybody could notice. So it may be made again, and at the same time as others of this tier.
    ReadOnly,
    /// Something.
    #[default]
    SideEffecting,
    /// More than most, such as code that a model has written.
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

/// An implementation, named the same way for everything that runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Run"))]
pub enum Implementation {
    /// A function of the Worker itself, by its registered name.
    Native(String),
    /// A POST to an address of yours.
    Http(Http),
    /// A file of yours, which runs in the sandbox: TypeScript or JavaScript. Its path, from the definition's own folder,
    /// or an object.
    Code(Code),
    /// Whoever reads the thread carries it out, and answers: the page, for example. The run is parked until then.
    Client(Client),
    /// A tool of an MCP server of the folder. The compiler makes these of a server's list.
    #[cfg_attr(feature = "schema", schemars(skip))]
    Mcp(McpTool),
}

/// A call that the client carries out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Client {
    /// Seconds until the call fails for want of an answer: 600 unless given, 30 days at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_after_seconds: Option<u64>,
}

/// What runs in the sandbox (docs/run-code.md).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "StringOr<CodeFields>", into = "CodeFields")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "StringOr<CodeFields>"))]
pub struct Code {
    /// The file; in a compiled catalog, by its path below the folder of definitions.
    pub file: String,
    /// What runs it.
    pub engine: Engine,
    /// Bytes of its heap.
    pub memory_limit_bytes: Option<u64>,
    /// Hosts, `name` or `name:port`, that its `fetch` may reach; `*.example.com` stands for all below it.
    pub allowed_hosts: Vec<String>,
}

/// The long form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CodeFields {
    /// A TypeScript or JavaScript file, by its path from the definition's own folder.
    file: String,
    /// What runs it: `quickjs`, unless given, where every limit holds; `v8`, faster, with the exclusions of
    /// docs/run-code.md, where a Worker Loader is bound.
    #[serde(default, skip_serializing_if = "is_default")]
    engine: Engine,
    /// Bytes of its heap; 16 MB unless given, 64 MB at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    memory_limit_bytes: Option<u64>,
    /// Hosts that its `fetch` may reach, `name` or `name:port`; `*.example.com` stands for all below it. None unless given.
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

/// Where an http tool is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Http {
    /// Absolute URL. May hold `{{env NAME}}`; in the scheme, host and port it is resolved from the deployment alone.
    pub url: String,
    /// Headers of the request; values may hold `{{env NAME}}`.
    #[serde(default, skip_serializing_if = "SortedMap::is_empty")]
    pub headers: SortedMap<String, String>,
}

/// What runs the code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Engine {
    /// QuickJS: every limit holds.
    #[default]
    Quickjs,
    /// The platform's own isolates, where they are bound: faster, with exclusions (docs/run-code.md).
    V8,
}

/// Whether a text can name a header (RFC 9110, 5.6.2).
pub fn is_header_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c))
}
