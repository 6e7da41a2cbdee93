//! Definitions and records as plain data. Whether they make sense together is checked in [`crate::validate`].
//!
//! * [`catalog`]: all definitions together; [`model`], [`prompt`], [`tool`], [`agent`], [`effect`], [`endpoint`], [`hook`],
//!   [`variable`]: one kind each.
//! * [`callable`]: what a name in a prompt's `tools` stands for. [`subagent`]: what an entry there says about a subagent.
//!   `built_in`: tools without a definition. `execute_code`: the one that runs a model's code.
//! * [`schema`]: the JSON Schemas of arguments. [`template`]: `{{env NAME}}` in URLs and headers. `form`: values with a short
//!   and a long form.
//! * [`graph`]: what an agent can reach, and what all definitions say about a name.
//! * [`package`]: packages of agents, and which package a name belongs to. [`references`]: what definitions refer to by name.
//! * [`settings`]: what holds for the whole folder. [`retry`]: how what fails is tried again. [`scrub`]: what becomes of
//!   texts that look like secrets. [`budget`]: what runs may use.
//!   [`approval`]: which calls people are asked about first; `ask_user`: the tool that asks them. [`context`]: how large requests are.
//! * [`mcp`]: servers whose tools prompts may have. [`offered`]: what clients of MCP are offered besides agents. [`memory`]: what models look things up in. [`runtime`]: which runtimes' catalogs this one takes.
//! * [`skill`]: texts that a model loads when they are of use. [`snapshot`]: what a run begins with, in one value.
//! * [`message`]: messages, tool calls and tool results. [`opaque`]: JSON that is sent back as it came. [`finite`]: strict
//!   JSON.

pub mod agent;
pub mod approval;
pub(crate) mod ask_user;
pub mod budget;
pub(crate) mod built_in;
pub mod callable;
pub mod catalog;
pub mod context;
pub mod effect;
pub mod endpoint;
pub(crate) mod execute_code;
pub mod finite;
pub(crate) mod form;
pub mod graph;
pub mod hook;
pub mod mcp;
pub mod memory;
pub mod message;
pub mod model;
pub mod offered;
pub mod opaque;
pub mod package;
pub mod prompt;
pub mod references;
pub mod retry;
pub mod runtime;
pub mod schema;
pub mod scrub;
pub mod settings;
pub mod skill;
pub mod snapshot;
pub mod subagent;
pub mod template;
pub mod tool;
pub mod variable;

pub use crate::spec::agent::{Agent, AgentKind, SessionTool, SideConfig};
pub use crate::spec::approval::{Approval, Approvals};
pub use crate::spec::callable::Callable;
pub use crate::spec::catalog::{Catalog, Source, WEB_HTTP};
pub use crate::spec::effect::Effect;
pub use crate::spec::endpoint::{Endpoint, EndpointRoute, Method};
pub use crate::spec::hook::{Hook, HookName};
pub use crate::spec::mcp::listed::{Annotations, ListedTool, Pinned, PinnedList, ServerInfo};
pub use crate::spec::mcp::{McpAuth, McpChoice, McpList, McpProtocol, McpServer, McpTool};
pub use crate::spec::memory::{Fusion, Memory, MemoryEntry, MemoryScope, MemoryTool};
pub use crate::spec::model::{Capabilities, Model, ModelKind, Provider};
pub use crate::spec::offered::{Offered, OfferedResource};
pub use crate::spec::package::{Package, Packages, Sought};
pub use crate::spec::prompt::{Effort, Prompt, PromptPart, PromptText, Reasoning, ToolEntry};
pub use crate::spec::retry::{Policy, Retry};
pub use crate::spec::scrub::{Scrub, ScrubAction, Scrubbed};
pub use crate::spec::settings::{ResumeCheck, Settings, Strictness};
pub use crate::spec::skill::{Activation, Skill, SkillHead};
pub use crate::spec::snapshot::Snapshot;
pub use crate::spec::subagent::{Immediate, ParentCommunication, Receives, Resumable, Workers};
pub use crate::spec::tool::{Code, Http, Implementation, Tier, Tool};
pub use crate::spec::variable::{Variable, VariableKind};
