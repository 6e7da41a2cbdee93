//! Definitions and records as plain data.
//!
//! * [`catalog`]: all definitions together; [`model`], [`prompt`], [`tool`], [`agent`], [`effect`], [`endpoint`],
//!   [`hook`], [`variable`]: one kind each.
//! * [`callable`]: what a name in a prompt's `tools` stands for. [`subagent`]: what an entry there says about a
//!   subagent.
//! * [`schema`]: the JSON Schemas of arguments. [`template`]: `{{env NAME}}` in URLs and headers.
//! * [`graph`]: what an agent can reach, and what all definitions say about a name.
//! * [`validate`]: whether they make sense together.
//! * [`package`]: packages of agents, and which package a name belongs to. [`references`]: what definitions refer to by
//!   name.
//! * [`message`]: messages, tool calls and tool results. [`opaque`]: JSON that is sent back as it came. [`finite`]:
//!   strict JSON.

pub mod agent;
mod built_in;
pub mod callable;
pub mod catalog;
pub mod effect;
pub mod endpoint;
pub mod finite;
mod form;
pub mod graph;
pub mod hook;
pub mod message;
pub mod model;
pub mod opaque;
pub mod package;
pub mod prompt;
pub mod references;
pub mod schema;
pub mod subagent;
pub mod template;
pub mod tool;
pub mod validate;
pub mod variable;

pub use agent::{Agent, AgentKind, SessionTool, SideConfig};
pub use callable::Callable;
pub use catalog::{Catalog, Source, WEB_HTTP};
pub use effect::Effect;
pub use endpoint::{Endpoint, EndpointRoute, Method};
pub use hook::{Hook, HookName};
pub use model::{Capabilities, Model, Provider};
pub use package::{Package, Packages, Sought};
pub use prompt::{Effort, Prompt, PromptPart, PromptText, Reasoning, ToolEntry};
pub use subagent::{Immediate, ParentCommunication, Receives, Resumable};
pub use tool::{Code, Http, Run, Tool};
pub use variable::{Variable, VariableKind};
