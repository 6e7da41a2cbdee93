//! Prompts: a system prompt with the model, tools and settings of its steps (spec §5).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::definitions::approval::Approvals;
use crate::definitions::budget::Share;
use crate::definitions::catalog::Catalog;
use crate::definitions::context;
use crate::definitions::context::{ContextLimits, SummarySettings};
use crate::definitions::form::{StringOr, StringOrList};
use crate::definitions::mcp;
use crate::definitions::memory::MemoryEntry;
use crate::definitions::retry::Retry;
use crate::definitions::skill::Skills;
use crate::definitions::subagent;
use crate::definitions::subagent::{Immediate, Resumable, Workers};
use crate::definitions::variable::{Variable, VariableKind, is_default};

/// A prompt (spec §5.1): a system prompt with its model, its tools and the settings of its steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Prompt {
    /// The prompt's name. Default: the name of its file.
    #[serde(default)]
    pub name: String,
    /// The description of the prompt as a tool. The calling model reads it.
    pub tool_description: String,
    /// The system prompt. In a Markdown file, the text below the front matter.
    pub prompt: PromptText,
    /// The name of the model.
    pub model: String,
    /// If `true`, requests contain earlier turns. The current turn is always sent. Default: `false`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub include_chat: bool,
    /// If `true`, requests contain the tool calls and results of earlier turns. Default: `false`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub include_past_tools: bool,
    /// If `true`, one reply may contain several tool calls. They still run one after another, unless
    /// `parallelReadOnly` is set. Default: `false`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub parallel_tool_calls: bool,
    /// If `true`, neighbouring calls of one reply run at the same time if their tools have the tier
    /// `read_only`, at most six. Their results keep the order of the calls. Needs
    /// `parallelToolCalls`. Default: `false`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub parallel_read_only: bool,
    /// The rule for tool calls: the model decides, must not call a tool, or must call one. Default: `auto`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tool_choice: ToolChoice,
    /// The tools, prompts and agents that the model may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolEntry>,
    /// The variables that the prompt needs. `env` parts may render only those of type `text`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
    /// Default values of variables. Bobbin uses them if nothing else sets a value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The number of newest messages whose images are sent. An older image becomes a line of text. Default:
    /// 10.
    #[serde(default = "ten", skip_serializing_if = "is_ten")]
    pub recent_image_threshold: u32,
    /// Options for the provider. They are merged over the model's `providerOptions`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub provider_options: Map<String, Value>,
    /// The JSON Schema of the arguments when the prompt is called as a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Map<String, Value>>"))]
    pub required_schema: Option<Value>,
    /// The amount of reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Reasoning>,
    /// The format of the reply. Default: `{ "type": "text" }`, plain text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_format: Option<ResponseFormat>,
    /// The ids of hooks. They replace the agent's hooks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<String>,
    /// The prompt's approval settings: which tool calls need the approval of a person. They add to those of
    /// the agent and of `bobbin.json`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub approvals: Approvals,
    /// The prompt's skills: `"*"` for all, or a list.
    #[serde(default, skip_serializing_if = "is_default")]
    pub skills: Skills,
    /// The memories that the prompt uses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<MemoryEntry>,
    /// The retry policies for failures in the prompt's steps. The policies of the run have priority.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retry: Retry,
    /// The part of the model's context window that a request may fill.
    #[serde(default, skip_serializing_if = "is_default")]
    pub context: ContextLimits,
    /// A summary that replaces the older messages of the thread in requests: `true` for the defaults, or its
    /// settings. Needs `includeChat`. Default: no summary.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "context::summary")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<subagent::BoolOr<SummarySettings>>"))]
    pub summary: Option<SummarySettings>,
    /// The workers that the prompt's model leads: it creates subagents and waits for several of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagents: Option<Workers>,
}

const fn ten() -> u32 {
    10
}

fn is_ten(n: &u32) -> bool {
    *n == ten()
}

/// The text of a prompt, as one text or in parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "StringOrList<PromptPart>", into = "StringOrList<PromptPart>")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PromptText {
    /// One text, used unchanged.
    Text(String),
    /// Parts that are joined without a separator.
    Parts(Vec<PromptPart>),
}

impl From<StringOrList<PromptPart>> for PromptText {
    fn from(form: StringOrList<PromptPart>) -> PromptText {
        match form {
            StringOrList::String(text) => PromptText::Text(text),
            StringOrList::List(parts) => PromptText::Parts(parts),
        }
    }
}

impl From<PromptText> for StringOrList<PromptPart> {
    fn from(text: PromptText) -> StringOrList<PromptPart> {
        match text {
            PromptText::Text(text) => StringOrList::String(text),
            PromptText::Parts(parts) => StringOrList::List(parts),
        }
    }
}

/// A part of a prompt (spec §5.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PromptPart {
    /// A text, used unchanged.
    Text {
        /// The text.
        content: String,
    },
    /// The text of another prompt.
    Include {
        /// The name of the other prompt.
        prompt: String,
    },
    /// The value of a variable.
    Env {
        /// The name of the variable. It must be declared with type `text`.
        property: String,
    },
}

/// The format of a reply (spec §4.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ResponseFormat {
    /// Plain text.
    Text,
    /// JSON. The model must declare `supportsJsonMode`.
    Json {
        /// The JSON Schema that the reply must match. It describes an object. Default: any JSON.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Map<String, Value>>"))]
        schema: Option<Value>,
    },
}

/// The amount of reasoning (spec §5.3).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reasoning {
    /// The reasoning effort as a level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// The reasoning effort as a number of tokens, for providers that count in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// If `true`, the text of the reasoning is neither streamed nor stored. Default: `false`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub exclude: bool,
    /// If `true`, requests contain the reasoning of earlier turns. Only the prompt and the model that wrote
    /// it receive it. Default: `false`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub include: bool,
}

/// A level of reasoning effort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Effort {
    /// Level 33 of 100.
    Low,
    /// Level 66 of 100.
    Medium,
    /// Level 100 of 100.
    High,
}

impl Effort {
    /// From 0 to 100 (spec §4.2).
    pub const fn level(self) -> u8 {
        match self {
            Effort::Low => 33,
            Effort::Medium => 66,
            Effort::High => 100,
        }
    }
}

/// A tool, prompt or agent that the model may call (spec §5.4). In a file, its name is enough.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "StringOr<ToolEntryObject>", into = "StringOr<ToolEntryObject>")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolEntry {
    /// The name of the tool, prompt or agent. `mcp:NAME` means the tools of the MCP server `NAME`
    /// ([`ToolEntry::mcp`]).
    pub name: String,
    /// For an MCP server: the names of its tools to include. Default: all.
    pub tools: Option<Vec<String>>,
    /// Values that only calls of this tool see. They have priority over all others (spec §35.1). Only for
    /// function tools.
    pub env: BTreeMap<String, String>,
    /// Options that Bobbin passes to the tool with every call. The model does not see them. Only for function
    /// tools.
    pub options: Map<String, Value>,
    /// For a prompt: if `true`, the result contains the text of its reply. Default: `true`.
    pub include_text_response: Option<bool>,
    /// For a prompt: if `true`, the result contains the calls that it made, with their results. Default:
    /// `true`.
    pub include_tool_calls: Option<bool>,
    /// For a prompt: if `true`, the result contains the errors of its calls. Default: `true`.
    pub include_errors: Option<bool>,
    /// For a prompt or an agent: the argument that becomes the first user message. Default for prompts and
    /// subagents: all arguments, as JSON.
    pub init_user_message_property: Option<String>,
    /// For a prompt or an agent: the argument that names the files of the first message. Its value is a path
    /// or a list of paths.
    pub init_attachments_property: Option<String>,
    /// For a subagent: the argument that becomes its name.
    pub init_agent_name_property: Option<String>,
    /// For a subagent: if `true`, a call waits for the result ([`ToolEntry::blocks`]). If `false`, the result
    /// arrives as a message. Default: `true`.
    pub blocking: Option<bool>,
    /// For a subagent: the name of a variable. The entry exists only while its value is `true`, `1` or `yes`.
    pub optional: Option<String>,
    /// For a subagent: it starts when the prompt becomes active, without a call.
    pub immediate: Option<Immediate>,
    /// For a subagent: it can receive more messages. Otherwise it is called like a tool and ends with its
    /// result.
    pub resumable: Option<Resumable>,
    /// For a subagent: the maximum share of its parent's budget that it may hold at a time.
    pub budget: Option<Share>,
}

#[derive(Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(inline, extend("anyOf" = [{ "required": ["name"] }, { "required": ["mcp"] }]))
)]
struct ToolEntryObject {
    /// The name of the tool, prompt or agent. `mcp:NAME` means the tools of the MCP server `NAME`.
    #[serde(default)]
    name: String,
    /// The name of an MCP server, instead of `name`. The entry means its tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mcp: Option<String>,
    /// For an MCP server: the names of its tools to include, as the server lists them. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<String>>,
    /// Values that only calls of this tool see. They have priority over all others. Only for function tools.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    env: BTreeMap<String, String>,
    /// Options that Bobbin passes to the tool with every call. The model does not see them. Only for function
    /// tools.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    options: Map<String, Value>,
    /// For a prompt: if `true`, the result contains the text of its reply. Default: `true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    include_text_response: Option<bool>,
    /// For a prompt: if `true`, the result contains the calls that it made, with their results. Default:
    /// `true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    include_tool_calls: Option<bool>,
    /// For a prompt: if `true`, the result contains the errors of its calls. Default: `true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    include_errors: Option<bool>,
    /// For a prompt or an agent: the argument that becomes the first user message. Default for prompts and
    /// subagents: all arguments, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    init_user_message_property: Option<String>,
    /// For a prompt or an agent: the argument that names the files of the first message. Its value is a path
    /// or a list of paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    init_attachments_property: Option<String>,
    /// For a subagent: the argument that becomes its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    init_agent_name_property: Option<String>,
    /// For a subagent: if `true`, a call waits for the result. If `false`, the result arrives as a message.
    /// Default: `true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    blocking: Option<bool>,
    /// For a subagent: the name of a variable. The entry exists only while its value is `true`, `1` or `yes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    optional: Option<String>,
    /// For a subagent: `true`, or an object with the variables for its name, its first message and its
    /// values. The subagent starts when the prompt becomes active, without a call.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "subagent::immediate")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<subagent::BoolOr<Immediate>>"))]
    immediate: Option<Immediate>,
    /// For a subagent: `false`, or an object with the settings. With an object, the subagent can receive more
    /// messages. Otherwise it is called like a tool and ends with its result. Default: `false`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "subagent::resumable")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<subagent::FalseOr<Resumable>>"))]
    resumable: Option<Resumable>,
    /// For a subagent: the maximum share of its caller's budget that one subagent may hold at a time.
    /// Default: a quarter of the remaining budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    budget: Option<Share>,
}

impl From<StringOr<ToolEntryObject>> for ToolEntry {
    fn from(form: StringOr<ToolEntryObject>) -> ToolEntry {
        match form {
            StringOr::String(name) => ToolEntry::unlisted(subagent::undotted(&name)),
            StringOr::Object(o) => ToolEntry {
                name: match &o.mcp {
                    Some(server) if o.name.is_empty() => format!("{}{server}", mcp::PREFIX),
                    _ => subagent::undotted(&o.name).to_owned(),
                },
                tools: o.tools,
                env: o.env,
                options: o.options,
                include_text_response: o.include_text_response,
                include_tool_calls: o.include_tool_calls,
                include_errors: o.include_errors,
                init_user_message_property: o.init_user_message_property,
                init_attachments_property: o.init_attachments_property,
                init_agent_name_property: o.init_agent_name_property,
                blocking: o.blocking,
                optional: o.optional,
                immediate: o.immediate,
                resumable: o.resumable,
                budget: o.budget,
            },
        }
    }
}

impl From<ToolEntry> for StringOr<ToolEntryObject> {
    fn from(e: ToolEntry) -> StringOr<ToolEntryObject> {
        let name = ToolEntryObject { name: e.name.clone(), ..ToolEntryObject::default() };
        let object = ToolEntryObject {
            name: e.name,
            mcp: None,
            tools: e.tools,
            env: e.env,
            options: e.options,
            include_text_response: e.include_text_response,
            include_tool_calls: e.include_tool_calls,
            include_errors: e.include_errors,
            init_user_message_property: e.init_user_message_property,
            init_attachments_property: e.init_attachments_property,
            init_agent_name_property: e.init_agent_name_property,
            blocking: e.blocking,
            optional: e.optional,
            immediate: e.immediate,
            resumable: e.resumable,
            budget: e.budget,
        };
        if object == name { StringOr::String(name.name) } else { StringOr::Object(object) }
    }
}

impl ToolEntry {
    /// The entry of something that no prompt lists: what code calls by its name.
    pub fn unlisted(name: &str) -> ToolEntry {
        ToolEntry { name: name.to_owned(), ..ToolEntry::default() }
    }

    /// The MCP server whose tools it stands for, if it does. The compiler leaves it to those whose tools are listed live.
    pub fn mcp(&self) -> Option<&str> {
        self.name.strip_prefix(mcp::PREFIX)
    }

    /// Whether a call of a subagent waits for what it answers.
    pub fn blocks(&self) -> bool {
        self.blocking.unwrap_or(true)
    }
}

impl Prompt {
    /// The system prompt: parts joined without a separator, included prompts rendered in their place.
    ///
    /// An `env` part renders only a name that is declared `text` in the `variables` of the prompt it stands in, or of
    /// one that includes it, and declared `secret` by none of them; anything else is an empty string, as is a name
    /// without a value. `env` gives the thread's values; where it has none, the `env` of these prompts does, the
    /// outermost first. An include that does not exist leaves a note in brackets (spec §5.2).
    pub fn render(&self, catalog: &Catalog, env: &dyn Fn(&str) -> Option<String>) -> String {
        let mut out = String::new();
        Rendering { catalog, env }.prompt(&mut vec![self], &mut out);
        out
    }

    /// The workers that its model leads, if it does.
    pub fn workers(&self) -> Option<&Workers> {
        self.subagents.as_ref().filter(|workers| workers.enabled)
    }

    /// The entry of that name in `tools`.
    pub fn tool(&self, name: &str) -> Option<&ToolEntry> {
        self.tools.iter().find(|entry| entry.name == name)
    }

    /// Its parts; none when it is a plain text.
    pub fn parts(&self) -> &[PromptPart] {
        match &self.prompt {
            PromptText::Text(_) => &[],
            PromptText::Parts(parts) => parts,
        }
    }

    /// The kind of variable that it declares under a name.
    pub fn declares(&self, name: &str) -> Option<VariableKind> {
        self.variables.iter().find(|variable| variable.name == name).map(|variable| variable.kind)
    }
}

/// Whether an `env` part may render a name, given the prompt it stands in and those that include it.
pub fn may_render(path: &[&Prompt], name: &str) -> bool {
    let declared = |kind| path.iter().any(|prompt| prompt.declares(name) == Some(kind));
    declared(VariableKind::Text) && !declared(VariableKind::Secret)
}

struct Rendering<'a> {
    catalog: &'a Catalog,
    env: &'a dyn Fn(&str) -> Option<String>,
}

impl<'a> Rendering<'a> {
    /// Renders the last prompt of `path`, which holds those that include it before it.
    fn prompt(&self, path: &mut Vec<&'a Prompt>, out: &mut String) {
        let Some(prompt) = path.last().copied() else { return };
        if let PromptText::Text(text) = &prompt.prompt {
            out.push_str(text);
        }
        for part in prompt.parts() {
            match part {
                PromptPart::Text { content } => out.push_str(content),
                PromptPart::Env { property } => out.push_str(&self.value(path, property)),
                PromptPart::Include { prompt: name } => match self.catalog.prompts.get(name) {
                    // A cycle is a catalog error; should one get here, it ends here.
                    Some(included) if path.iter().all(|outer| outer.name != included.name) => {
                        path.push(included);
                        self.prompt(path, out);
                        path.pop();
                    }
                    _ => out.push_str(&format!("[prompt not available: {name}]")),
                },
            }
        }
    }

    fn value(&self, path: &[&Prompt], name: &str) -> String {
        if !may_render(path, name) || self.catalog.is_secret(name) {
            return String::new();
        }
        let default = || path.iter().find_map(|prompt| prompt.env.get(name).cloned());
        (self.env)(name).or_else(default).unwrap_or_default()
    }
}

/// The rule for tool calls of the model (spec §4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The model must not call a tool.
    None,
    /// The model must call a tool.
    Required,
}
