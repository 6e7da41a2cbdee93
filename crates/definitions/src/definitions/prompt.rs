//! Prompts: a system prompt with the model, tools and settings of its steps (spec §5).

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
use crate::sorted::SortedMap;

/// A prompt (spec §5.1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Prompt {
    /// Its name; the file's name unless given.
    #[serde(default)]
    pub name: String,
    /// What a model reads when the prompt is listed as a tool.
    pub tool_description: String,
    /// The system prompt. In a Markdown file, the text below the front matter.
    pub prompt: PromptText,
    /// Name of the model.
    pub model: String,
    /// Whether earlier turns are sent; the current turn always is.
    #[serde(default, skip_serializing_if = "is_default")]
    pub include_chat: bool,
    /// Whether tool calls and results of earlier turns are sent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub include_past_tools: bool,
    /// Whether one reply may hold several calls. They run one after another all the same, unless `parallelReadOnly` is set.
    #[serde(default, skip_serializing_if = "is_default")]
    pub parallel_tool_calls: bool,
    /// Whether neighbouring calls of a reply run at the same time if their tools are of the tier `read_only`: six at most.
    /// Their results keep the order of the calls.
    #[serde(default, skip_serializing_if = "is_default")]
    pub parallel_read_only: bool,
    /// Whether the model may, must or must not call a tool.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tool_choice: ToolChoice,
    /// What the model may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolEntry>,
    /// Values it needs; only those of type `text` may be rendered by `env` parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
    /// Values that hold where nothing else gives one.
    #[serde(default, skip_serializing_if = "SortedMap::is_empty")]
    pub env: SortedMap<String, String>,
    /// How many of the newest messages keep their images.
    #[serde(default = "ten", skip_serializing_if = "is_ten")]
    pub recent_image_threshold: u32,
    /// Merged over the model's options.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub provider_options: Map<String, Value>,
    /// JSON Schema of the arguments when the prompt is called as a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Map<String, Value>>"))]
    pub required_schema: Option<Value>,
    /// How much the model is to reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Reasoning>,
    /// What the text of an answer is; plain text unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_format: Option<ResponseFormat>,
    /// Ids of hooks, instead of the agent's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<String>,
    /// Which calls people are asked about, besides what the agent and the folder say.
    #[serde(default, skip_serializing_if = "is_default")]
    pub approvals: Approvals,
    /// Its skills: `"*"`, or a list.
    #[serde(default, skip_serializing_if = "is_default")]
    pub skills: Skills,
    /// Memories that it uses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<MemoryEntry>,
    /// How what fails in its steps is tried again, where the run does not say.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retry: Retry,
    /// How much of its model's window a request may fill.
    #[serde(default, skip_serializing_if = "is_default")]
    pub context: ContextLimits,
    /// A summary that stands for the older messages of the thread: `true`, or how it is made. For prompts with `includeChat`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "context::summary")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<subagent::BoolOr<SummarySettings>>"))]
    pub summary: Option<SummarySettings>,
    /// Workers that its model leads: it makes subagents, and waits for several of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagents: Option<Workers>,
}

const fn ten() -> u32 {
    10
}

fn is_ten(n: &u32) -> bool {
    *n == ten()
}

/// The text of a prompt, whole or in parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "StringOrList<PromptPart>", into = "StringOrList<PromptPart>")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PromptText {
    /// As it is.
    Text(String),
    /// Joined without a separator.
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
    /// A text as it is.
    Text {
        /// The text.
        content: String,
    },
    /// Another prompt's text.
    Include {
        /// Its name.
        prompt: String,
    },
    /// A variable's value.
    Env {
        /// Its name. It must be declared with type `text`.
        property: String,
    },
}

/// What the text of an answer is (spec §4.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ResponseFormat {
    /// Any text.
    Text,
    /// JSON, to which the model is held; it must declare `supportsJsonMode`.
    Json {
        /// JSON Schema of the answer, an object's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Map<String, Value>>"))]
        schema: Option<Value>,
    },
}

/// How much a model is to reason (spec §5.3).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reasoning {
    /// In words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// In tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Whether nobody is to read the reasoning: its text is neither streamed nor stored.
    #[serde(default, skip_serializing_if = "is_default")]
    pub exclude: bool,
    /// Whether the reasoning of earlier turns is sent again, to the prompt and model that wrote it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub include: bool,
}

/// An effort of reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Effort {
    /// Level 33 of 100.
    Low,
    /// Level 66.
    Medium,
    /// Level 100.
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

/// Something that a prompt's model may call (spec §5.4). In a file, its name alone will do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "StringOr<ToolEntryObject>", into = "StringOr<ToolEntryObject>")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolEntry {
    /// The tool, prompt or agent; `mcp:NAME` for tools of the MCP server of that name ([`ToolEntry::mcp`]).
    pub name: String,
    /// Of an MCP server's entry: which of its tools; all unless given.
    pub tools: Option<Vec<String>>,
    /// Values that only these calls see, above all others (spec §35.1); for function tools.
    pub env: SortedMap<String, String>,
    /// Handed to the tool with every call; for function tools.
    pub options: Map<String, Value>,
    /// Whether the result of a prompt holds its text; it does unless this is `false`.
    pub include_text_response: Option<bool>,
    /// Whether it holds the calls that the prompt made, with their results; it does unless this is `false`.
    pub include_tool_calls: Option<bool>,
    /// Whether it says what went wrong when one of them failed; it does unless this is `false`.
    pub include_errors: Option<bool>,
    /// The argument whose value is the user message that a prompt or an agent begins with.
    pub init_user_message_property: Option<String>,
    /// The argument that names the files of that message: a path or a list of paths.
    pub init_attachments_property: Option<String>,
    /// The argument that gives a subagent its name.
    pub init_agent_name_property: Option<String>,
    /// Whether a call of a subagent waits for what it answers ([`ToolEntry::blocks`]).
    pub blocking: Option<bool>,
    /// The variable that must say `true`, `1` or `yes` for the subagent to be there at all.
    pub optional: Option<String>,
    /// Begun when the prompt becomes active, without a call.
    pub immediate: Option<Immediate>,
    /// Can be written to again; otherwise the subagent is called like a tool and ends with its answer.
    pub resumable: Option<Resumable>,
    /// What a subagent may hold of its parent's budget at a time.
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
    /// The tool, prompt or agent; `mcp:NAME` for tools of an MCP server.
    #[serde(default)]
    name: String,
    /// Instead of a name: the MCP server whose tools these are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mcp: Option<String>,
    /// Of an MCP server: which of its tools, by their names there; all unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<String>>,
    /// Values that only these calls see, above all others; for function tools.
    #[serde(default, skip_serializing_if = "SortedMap::is_empty")]
    env: SortedMap<String, String>,
    /// Handed to the tool with every call; for function tools.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    options: Map<String, Value>,
    /// Whether the result of a prompt holds its text; it does unless this is `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    include_text_response: Option<bool>,
    /// Whether it holds the calls that the prompt made, with their results; it does unless this is `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    include_tool_calls: Option<bool>,
    /// Whether it says what went wrong when one of them failed; it does unless this is `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    include_errors: Option<bool>,
    /// The argument whose value is the user message that a prompt or an agent begins with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    init_user_message_property: Option<String>,
    /// The argument that names the files of that message: a path or a list of paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    init_attachments_property: Option<String>,
    /// The argument that gives a subagent its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    init_agent_name_property: Option<String>,
    /// Whether a call of a subagent waits for what it answers; it does unless this is `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    blocking: Option<bool>,
    /// The variable that must say `true`, `1` or `yes` for the subagent to be there at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    optional: Option<String>,
    /// Whether the subagent begins when the prompt becomes active, without a call: `true`, or which variables name and
    /// instruct it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "subagent::immediate")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<subagent::BoolOr<Immediate>>"))]
    immediate: Option<Immediate>,
    /// How the subagent can be written to again; unless given it is called like a tool and ends with its answer.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "subagent::resumable")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<subagent::FalseOr<Resumable>>"))]
    resumable: Option<Resumable>,
    /// What one subagent may hold of the budget of the run that calls it, at a time.
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

/// Whether the model must call a tool (spec §4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// It must not.
    None,
    /// It must.
    Required,
}
