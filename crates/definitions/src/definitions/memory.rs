//! Memories: what models look things up in (docs/memory.md). A definition says whose it is, how texts are cut and found, and
//! what comes in.

use serde::{Deserialize, Serialize};

use crate::definitions::built_in::native;
use crate::definitions::catalog::Catalog;
use crate::definitions::prompt::ToolEntry;
use crate::definitions::tool::{Tier, Tool};
use crate::definitions::variable::{is_default, is_true, yes};
use crate::json;

/// A memory that prompts refer to by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Memory {
    /// The memory's name in prompts and routes. Default: the name of its file.
    #[serde(default)]
    pub name: String,
    /// The memory's contents, for people and for the model.
    pub description: String,
    /// The scope of the memory: who shares it. Default: `thread`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub scope: MemoryScope,
    /// The name of a model of the kind `embedding`. Default: none, and texts are found only by their words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding: Option<String>,
    /// The size of chunks.
    #[serde(default, skip_serializing_if = "is_default")]
    pub chunk: Chunking,
    /// The search settings.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retrieval: Retrieval,
    /// The texts that the memory collects automatically.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sources: MemorySources,
    /// The limits of the memory.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: MemoryLimits,
}

/// The scope of a memory: who shares it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum MemoryScope {
    /// The memory belongs to one thread.
    #[default]
    Thread,
    /// The memory belongs to all threads of an owner.
    Owner,
    /// The memory belongs to all threads. Administrators write to it.
    Instance,
}

/// The size of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Chunking {
    /// The maximum length of a chunk, in characters. Default: 640.
    pub chars: usize,
    /// The number of characters that a chunk shares with the previous one. Default: 96.
    pub overlap: usize,
}

impl Default for Chunking {
    fn default() -> Chunking {
        Chunking { chars: 640, overlap: 96 }
    }
}

/// The search settings of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Retrieval {
    /// The maximum number of chunks that are inserted before a turn, 1 to 20. It is also the default number
    /// of results of a search over HTTP. Default: 8.
    pub top_k: usize,
    /// The weight of the similarity in meaning (vectors). Default: 0.7.
    pub vector_weight: f64,
    /// The weight of matching words. Default: 0.3.
    pub text_weight: f64,
    /// The method that combines both results into one score. Default: `weighted`.
    pub fusion: Fusion,
    /// The minimum score. Chunks with a lower score are left out. Default: 0.
    pub min_score: f64,
    /// The maximum number of tokens that are inserted before a turn. Default: 1,500.
    pub max_tokens: usize,
}

impl Default for Retrieval {
    fn default() -> Retrieval {
        Retrieval {
            top_k: 8,
            vector_weight: 0.7,
            text_weight: 0.3,
            fusion: Fusion::Weighted,
            min_score: 0.0,
            max_tokens: 1_500,
        }
    }
}

/// The method that combines two result lists into one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Fusion {
    /// The weighted sum of the scores. The scores of each list are first scaled to 0…1.
    #[default]
    Weighted,
    /// The weighted sum of 1 / (60 + rank). It needs no scaling.
    Rrf,
}

/// The texts that a memory collects automatically.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemorySources {
    /// If `true`, the memory collects the messages of users and models after each run. Default: `false`.
    #[serde(skip_serializing_if = "is_default")]
    pub messages: bool,
    /// The paths of thread files to collect, such as `/handbook/**`. Only for the scope `thread`. Default:
    /// none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// If `true`, models may save, change and delete notes. Default: `true`.
    #[serde(skip_serializing_if = "is_true")]
    pub notes: bool,
}

impl Default for MemorySources {
    fn default() -> MemorySources {
        MemorySources { messages: false, files: Vec::new(), notes: yes() }
    }
}

/// The limits of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryLimits {
    /// The maximum number of chunks. Default: 50,000.
    pub chunks: usize,
}

impl Default for MemoryLimits {
    fn default() -> MemoryLimits {
        MemoryLimits { chunks: crate::limits::MEMORY_CHUNKS }
    }
}

/// The use of a memory by a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryEntry {
    /// The name of the memory.
    pub name: String,
    /// If `true`, Bobbin searches the memory before a turn and inserts the results before the turn's
    /// messages. Default: `false`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub inject: bool,
    /// The actions that the model may perform on the memory. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<MemoryTool>,
}

/// An action of a model on a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum MemoryTool {
    /// The tool `memory_search`.
    Search,
    /// The tool `memory_save`.
    Save,
    /// The tool `memory_update`.
    Update,
    /// The tool `memory_delete`.
    Delete,
}

impl MemoryTool {
    /// All of them.
    pub const ALL: [MemoryTool; 4] =
        [MemoryTool::Search, MemoryTool::Save, MemoryTool::Update, MemoryTool::Delete];

    /// The name of the tool.
    pub const fn tool(self) -> &'static str {
        match self {
            MemoryTool::Search => "memory_search",
            MemoryTool::Save => "memory_save",
            MemoryTool::Update => "memory_update",
            MemoryTool::Delete => "memory_delete",
        }
    }
}

/// What a model may do with the page of notes that a thread has beside its memories; `bobbin.scratchpad` is where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScratchpadTool {
    /// `scratchpad_read`.
    Read,
    /// `scratchpad_write`.
    Write,
    /// `scratchpad_clear`.
    Clear,
}

impl ScratchpadTool {
    /// All of them.
    pub const ALL: [ScratchpadTool; 3] = [ScratchpadTool::Read, ScratchpadTool::Write, ScratchpadTool::Clear];

    /// The name of the tool.
    pub const fn tool(self) -> &'static str {
        match self {
            ScratchpadTool::Read => "scratchpad_read",
            ScratchpadTool::Write => "scratchpad_write",
            ScratchpadTool::Clear => "scratchpad_clear",
        }
    }
}

impl Catalog {
    /// Adds the tools of memories, and lists them where a prompt says that its model has them.
    pub fn add_memory_tools(&mut self) {
        for tool in MemoryTool::ALL {
            let mut used = false;
            for prompt in self.prompts.values_mut() {
                if prompt.memory.iter().any(|entry| entry.tools.contains(&tool)) {
                    used = true;
                    if prompt.tool(tool.tool()).is_none() {
                        prompt.tools.push(ToolEntry::unlisted(tool.tool()));
                    }
                }
            }
            if used {
                self.tools.entry(tool.tool().to_owned()).or_insert_with(|| memory_tool(tool));
            }
        }
        for tool in ScratchpadTool::ALL {
            if self.prompts.values().any(|prompt| prompt.tool(tool.tool()).is_some()) {
                self.tools.entry(tool.tool().to_owned()).or_insert_with(|| scratchpad_tool(tool));
            }
        }
    }
}

fn memory_tool(tool: MemoryTool) -> Tool {
    let text = |description: &str| json!({ "type": "string", "description": description });
    let tags =
        json!({ "type": "array", "items": { "type": "string" }, "description": "Labels in small letters." });
    let memory = text("Which memory, where there are several.");
    let content = text("What is to be kept, whole in itself.");
    let (description, properties, required) = match tool {
        MemoryTool::Search => (
            "Looks for what was kept: documents and notes. Cite what you use by its mark, such as [m1].",
            json!({ "query": text("What is looked for."), "top_k": { "type": "integer", "minimum": 1, "maximum": 20, "description": "Results at most; 5 unless given." }, "tags": tags, "memory": memory }),
            json!(["query"]),
        ),
        MemoryTool::Save => (
            "Keeps a note that is found again later, also in other conversations where the memory is shared.",
            json!({ "content": content, "title": text("A title."), "tags": tags, "memory": memory }),
            json!(["content"]),
        ),
        MemoryTool::Update => (
            "Replaces the text of a note.",
            json!({ "id": text("The note's id."), "content": content, "memory": memory }),
            json!(["id", "content"]),
        ),
        MemoryTool::Delete => {
            ("Forgets a note.", json!({ "id": text("The note's id."), "memory": memory }), json!(["id"]))
        }
    };
    let args = json!({ "type": "object", "properties": properties, "required": required });
    let tier = (tool == MemoryTool::Search).then_some(Tier::ReadOnly);
    // Each has the same outcome however often it is made: a note has the id of its call.
    Tool { tier, idempotent: Some(true), ..native(tool.tool(), description, args) }
}

fn scratchpad_tool(tool: ScratchpadTool) -> Tool {
    let items = json!({ "type": "array", "items": { "type": "string" }, "maxItems": crate::limits::SCRATCHPAD_ITEMS, "description": "Lines of at most 240 characters." });
    let (description, args) = match tool {
        ScratchpadTool::Write => (
            "Writes the scratchpad: short lines about the work at hand. What it held before is replaced.",
            json!({ "type": "object", "properties": { "items": items }, "required": ["items"] }),
        ),
        ScratchpadTool::Clear => ("Empties the scratchpad.", json!({ "type": "object", "properties": {} })),
        ScratchpadTool::Read => ("Reads the scratchpad.", json!({ "type": "object", "properties": {} })),
    };
    let tier = (tool == ScratchpadTool::Read).then_some(Tier::ReadOnly);
    Tool { tier, idempotent: Some(true), ..native(tool.tool(), description, args) }
}
