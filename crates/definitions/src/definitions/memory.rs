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
    /// Its name in prompts and routes; the file's name unless given.
    #[serde(default)]
    pub name: String,
    /// What is in it, for people and for the model.
    pub description: String,
    /// Whose it is; the thread's own unless given.
    #[serde(default, skip_serializing_if = "is_default")]
    pub scope: MemoryScope,
    /// Name of a model of kind `embedding`. Without one, texts are found by their words alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding: Option<String>,
    /// How texts are cut.
    #[serde(default, skip_serializing_if = "is_default")]
    pub chunk: Chunking,
    /// How they are found.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retrieval: Retrieval,
    /// What comes in by itself.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sources: MemorySources,
    /// How much it holds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: MemoryLimits,
}

/// Whose a memory is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum MemoryScope {
    /// The thread's own.
    #[default]
    Thread,
    /// That of all threads of an owner.
    Owner,
    /// Everybody's, written by administrators.
    Instance,
}

/// How texts are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Chunking {
    /// Characters of a chunk at most.
    pub chars: usize,
    /// Characters that a chunk shares with the one before it.
    pub overlap: usize,
}

impl Default for Chunking {
    fn default() -> Chunking {
        Chunking { chars: 640, overlap: 96 }
    }
}

/// How texts are found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Retrieval {
    /// Chunks that are put before the model, at most.
    pub top_k: usize,
    /// How much it counts that the meaning is near.
    pub vector_weight: f64,
    /// How much it counts that the words are the same.
    pub text_weight: f64,
    /// How both come to one score.
    pub fusion: Fusion,
    /// What scores less is left out.
    pub min_score: f64,
    /// Tokens that are put before the model, at most.
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

/// How two lists come to one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Fusion {
    /// Each list is scaled to 0…1; then the weighted sum.
    #[default]
    Weighted,
    /// By places: the weighted sum of 1 / (60 + place). Needs no scale.
    Rrf,
}

/// What comes into a memory by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemorySources {
    /// What people and models say, once the run has ended.
    #[serde(skip_serializing_if = "is_default")]
    pub messages: bool,
    /// Files of the thread with these paths, such as `/handbook/**`; only of the scope `thread`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// What the model's tools save.
    #[serde(skip_serializing_if = "is_true")]
    pub notes: bool,
}

impl Default for MemorySources {
    fn default() -> MemorySources {
        MemorySources { messages: false, files: Vec::new(), notes: yes() }
    }
}

/// How much a memory holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryLimits {
    /// Chunks.
    pub chunks: usize,
}

impl Default for MemoryLimits {
    fn default() -> MemoryLimits {
        MemoryLimits { chunks: crate::limits::MEMORY_CHUNKS }
    }
}

/// How a prompt uses a memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryEntry {
    /// Name of the memory.
    pub name: String,
    /// Whether what fits the messages of a turn is put before them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub inject: bool,
    /// What the model may do with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<MemoryTool>,
}

/// What a model may do with a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum MemoryTool {
    /// `memory_search`.
    Search,
    /// `memory_save`.
    Save,
    /// `memory_update`.
    Update,
    /// `memory_delete`.
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
                self.tools.entry(tool.tool().to_owned(), || memory_tool(tool));
            }
        }
        for tool in ScratchpadTool::ALL {
            if self.prompts.values().any(|prompt| prompt.tool(tool.tool()).is_some()) {
                self.tools.entry(tool.tool().to_owned(), || scratchpad_tool(tool));
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
