//! Definitions and records as plain data. [`crate::validate`] checks them against each other.
//!
//! * [`catalog`]: all definitions together; [`model`], [`prompt`], [`tool`], [`agent`], [`effect`],
//!   [`endpoint`], [`hook`], [`variable`]: one kind each.
//! * [`callable`]: the targets of names in a prompt's `tools`. [`subagent`]: an entry there for a subagent.
//!   `built_in`: tools without a definition. `execute_code`: the tool that runs a model's code.
//! * [`schema`]: the JSON Schemas of arguments. [`template`]: `{{env NAME}}` in URLs and headers. `form`:
//!   values with a short and a long form.
//! * [`graph`]: the definitions that an agent can reach, and all facts about a name.
//! * [`package`]: packages of agents, and the package of a name. [`references`]: references between
//!   definitions by name.
//! * [`settings`]: settings of the whole folder. [`retry`]: retries after failures. [`scrub`]: the treatment
//!   of texts that look like secrets. [`budget`]: limits on the usage of runs. [`approval`]: calls that need
//!   a person's approval; `ask_user`: the tool that asks people. [`context`]: the size of requests.
//! * [`mcp`]: servers whose tools prompts may use. [`offered`]: the offer to MCP clients besides agents.
//!   [`memory`]: memories that models search. [`runtime`]: the runtimes whose catalogs this one accepts.
//! * [`skill`]: texts that a model loads when they are of use. [`snapshot`]: the definitions at the start of
//!   a run, as one value.
//! * [`message`]: messages, tool calls and tool results. [`opaque`]: JSON that is sent back unchanged.
//!   [`finite`]: strict JSON.

pub mod agent;
pub mod approval;
pub mod ask_user;
pub mod budget;
pub mod built_in;
pub mod callable;
pub mod catalog;
pub mod context;
pub mod effect;
pub mod endpoint;
pub mod execute_code;
pub mod execute_code_options;
pub mod finite;
pub mod form;
pub mod graph;
pub mod hook;
pub mod mcp;
pub mod memory;
pub mod message;
pub mod model;
pub mod natives;
pub mod offered;
pub mod opaque;
pub mod package;
pub mod prompt;
pub mod references;
pub mod responses_api;
pub mod retry;
pub mod runtime;
pub mod schema;
pub mod scrub;
pub mod settings;
pub mod skill;
pub mod snapshot;
pub mod subagent;
pub mod template;
pub mod tier;
pub mod tool;
pub mod variable;

pub use crate::definitions::agent::{Agent, AgentKind, SessionTool, SideConfig};
pub use crate::definitions::approval::{Approval, Approvals};
pub use crate::definitions::callable::Callable;
pub use crate::definitions::catalog::{Catalog, Source, WEB_HTTP};
pub use crate::definitions::effect::Effect;
pub use crate::definitions::endpoint::{Endpoint, EndpointRoute, Method};
pub use crate::definitions::hook::{Hook, HookName};
pub use crate::definitions::mcp::listed::{Annotations, ListedTool, ListingInfo, PinnedList, ServerInfo};
pub use crate::definitions::mcp::{McpAuth, McpChoice, McpList, McpProtocol, McpServer, McpTool};
pub use crate::definitions::memory::{Fusion, Memory, MemoryEntry, MemoryScope, MemoryTool};
pub use crate::definitions::model::{Capabilities, Model, ModelKind, Provider};
pub use crate::definitions::offered::{McpOffer, OfferedResource};
pub use crate::definitions::package::{Package, Packages, ReferenceKind};
pub use crate::definitions::prompt::{Effort, Prompt, PromptPart, PromptText, Reasoning, ToolEntry};
pub use crate::definitions::retry::{Policy, Retry};
pub use crate::definitions::scrub::{Scrub, ScrubAction, ScrubCounts};
pub use crate::definitions::settings::{ResumeCheck, Settings, Strictness};
pub use crate::definitions::skill::{Activation, Skill, SkillHead};
pub use crate::definitions::snapshot::Snapshot;
pub use crate::definitions::subagent::{Immediate, ParentCommunication, ReceivingSide, Resumable, Workers};
pub use crate::definitions::tool::{Code, Http, Implementation, Tier, Tool};
pub use crate::definitions::variable::{Variable, VariableKind};
