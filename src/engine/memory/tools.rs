//! The tools of memories, and the scratchpad. A step of a prompt creates them; the prompt defines which
//! memories its model may use and how.

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::definitions::MemoryScope;
use crate::definitions::memory::{MemoryTool, ScratchpadTool};
use crate::definitions::message::ToolResult;
use crate::definitions::tool::{Implementation, Tool};
use crate::engine::definitions::Definitions;
use crate::engine::features::Memories;
use crate::engine::memory::log::SearchOrigin;
use crate::engine::memory::recall::{LabelledHit, hit_line};
use crate::error::{Error, Result};
use crate::json;
use crate::limits;
use crate::memory::MemoryStore;
use crate::memory::documents::{NewDocument, check_tags};
use crate::memory::notes::{NOTE, NoteChange};
use crate::memory::search::SearchQuery;
use crate::request::thread_id::from_random;
use crate::sdk::scope::{EntryMode, Scope};

/// The key of the scratchpad's value.
const PAD: &str = "bobbin.scratchpad";
/// The text of an empty scratchpad.
const EMPTY: &str = "The scratchpad is empty.";

/// The memory tools.
enum ToolKind {
    Memory(MemoryTool),
    Scratchpad(ScratchpadTool),
}

impl ToolKind {
    fn tool(tool: &Tool) -> Option<ToolKind> {
        let Implementation::Native(name) = &tool.run else { return None };
        let memory = MemoryTool::ALL.into_iter().find(|of| of.tool() == name).map(ToolKind::Memory);
        let pad = || ScratchpadTool::ALL.into_iter().find(|of| of.tool() == name).map(ToolKind::Scratchpad);
        memory.or_else(pad)
    }
}

/// Whether a tool is a memory tool.
pub(crate) fn is_of_memory(tool: &Tool) -> bool {
    ToolKind::tool(tool).is_some()
}

impl Memories<'_> {
    /// The result of a call of a memory tool.
    pub(crate) async fn memory_tool(
        &self,
        definitions: &Definitions<'_>,
        inside: &Scope,
        tool: &Tool,
        args: &Value,
    ) -> ToolResult {
        let done = match ToolKind::tool(tool) {
            Some(ToolKind::Memory(MemoryTool::Search)) => {
                self.search_by_tool(definitions, inside, args).await
            }
            Some(ToolKind::Memory(of)) => self.write_by_tool(definitions, inside, of, args).await,
            Some(ToolKind::Scratchpad(of)) => self.scratchpad(inside, of, args),
            None => return ToolResult::error("This is no tool of a memory."),
        };
        match done {
            Ok(text) => ToolResult::success(text),
            Err(error) => {
                let hint = error.hint.clone().map(|hint| format!(" {hint}")).unwrap_or_default();
                ToolResult::error(format!("{}{hint}", error.into_message()))
            }
        }
    }

    /// The memory that a call names.
    fn memory_of<'d>(
        &self,
        definitions: &'d Definitions<'_>,
        tool: MemoryTool,
        args: &Value,
    ) -> Result<&'d str> {
        let entries = definitions.prompt.memory.iter().filter(|entry| entry.tools.contains(&tool));
        let names: Vec<&str> = entries.map(|entry| entry.name.as_str()).collect();
        match (args.get("memory").and_then(Value::as_str), names.as_slice()) {
            (None | Some(""), [only]) => Ok(only),
            (Some(wanted), _) if names.contains(&wanted) => {
                names.iter().find(|name| **name == wanted).copied().ok_or_else(|| Error::missing("memory"))
            }
            (_, []) => Err(Error::field("memory", "This prompt lets its model do that with no memory.")),
            _ => Err(Error::field("memory", format!("memory: one of {}.", names.join(", ")))),
        }
    }

    async fn search_by_tool(
        &self,
        definitions: &Definitions<'_>,
        inside: &Scope,
        args: &Value,
    ) -> Result<String> {
        let name = self.memory_of(definitions, MemoryTool::Search, args)?;
        let top_k = args.get("top_k").and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
        let wanted = SearchQuery {
            query: text(args, "query")?,
            top_k: top_k.unwrap_or(limits::SEARCH_TOP_K).clamp(1, limits::RECALL_TOP_K_MAX),
            tags: tags(args)?,
            ..SearchQuery::default()
        };
        // A call that is entered again was interrupted by a crash.
        let by = (SearchOrigin::Call(inside.receipt), u32::from(inside.entered == EntryMode::Again));
        let found = self.search_in_time(definitions, name, wanted, by).await.map_err(|why| {
            Error::field("memory", format!("Nothing could be looked up: {why} Trying again later may help."))
        })?;
        if found.hits.is_empty() {
            return Ok("Nothing was found.".to_owned());
        }
        let first = self.record_tool_hits(name, &found.hits)?;
        let lines = (first..).zip(found.hits).map(|(n, hit)| {
            let id = if hit.source == NOTE { hit.key.clone() } else { hit.document.clone() };
            let score = hit.score;
            let labelled = LabelledHit { label: format!("m{n}"), memory: name.to_owned(), hit };
            format!("{}\n(id {id}, score {score:.2})", hit_line(&labelled))
        });
        Ok(lines.collect::<Vec<_>>().join("\n\n"))
    }

    async fn write_by_tool(
        &self,
        definitions: &Definitions<'_>,
        inside: &Scope,
        tool: MemoryTool,
        args: &Value,
    ) -> Result<String> {
        inside.writes("change a memory")?;
        let name = self.memory_of(definitions, tool, args)?;
        let memory = self.memory(name)?;
        let change = match tool {
            MemoryTool::Save => NoteChange::Save(note(format!("note-{}", self.note_id(inside)?), args)?),
            MemoryTool::Update => NoteChange::Update { id: text(args, "id")?, text: content(args)? },
            MemoryTool::Delete | MemoryTool::Search => NoteChange::Delete { id: text(args, "id")? },
        };
        match memory.scope {
            MemoryScope::Thread => MemoryStore::new(self.0, &self.catalog, memory).change_note(change),
            MemoryScope::Owner | MemoryScope::Instance => {
                let thread = self.read(|state, _| Ok(state.meta.stem.clone()))?;
                // A repeated call gets the same key.
                let key = format!("{thread}/{}/{}", inside.key, tool.tool());
                self.write_note(memory, key, change).await
            }
        }
    }

    /// An id for a note. A repeated call gets the same id.
    fn note_id(&self, inside: &Scope) -> Result<String> {
        let thread = self.read(|state, _| Ok(state.meta.stem.clone()))?;
        let digest = Sha256::digest(format!("{thread}/{}/note", inside.key).as_bytes());
        let mut bytes = [0_u8; 16];
        bytes.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
        Ok(from_random(bytes))
    }

    fn scratchpad(&self, inside: &Scope, tool: ScratchpadTool, args: &Value) -> Result<String> {
        match tool {
            ScratchpadTool::Read => {
                let kept = self.key_values().value(PAD)?;
                let lines =
                    kept.as_ref().and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
                let lines: Vec<&str> = lines.collect();
                Ok(if lines.is_empty() { EMPTY.to_owned() } else { lines.join("\n") })
            }
            ScratchpadTool::Clear => {
                inside.writes("write the scratchpad")?;
                self.key_values().set_value(PAD, &Value::Null)?;
                Ok(EMPTY.to_owned())
            }
            ScratchpadTool::Write => {
                inside.writes("write the scratchpad")?;
                self.write_scratchpad(args)
            }
        }
    }

    fn write_scratchpad(&self, args: &Value) -> Result<String> {
        let Some(Value::Array(items)) = args.get("items") else { return Err(Error::missing("items")) };
        let lines: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
        if lines.len() != items.len() || lines.len() > limits::SCRATCHPAD_ITEMS {
            return Err(Error::field("items", format!("items: at most {} texts.", limits::SCRATCHPAD_ITEMS)));
        }
        let too_long = lines.iter().any(|line| line.chars().count() > limits::SCRATCHPAD_CHARS);
        if too_long || lines.iter().map(|line| line.len()).sum::<usize>() > limits::SCRATCHPAD_BYTES {
            let (chars, bytes) = (limits::SCRATCHPAD_CHARS, limits::SCRATCHPAD_BYTES);
            let text = format!("items: each has at most {chars} characters, all together {bytes} bytes.");
            return Err(Error::field("items", text));
        }
        self.key_values().set_value(PAD, &json!(lines))?;
        Ok(format!("The scratchpad has {} lines.", lines.len()))
    }
}

fn text(args: &Value, name: &str) -> Result<String> {
    match args.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty()) {
        Some(text) => Ok(text.to_owned()),
        None => Err(Error::missing(name)),
    }
}

fn tags(args: &Value) -> Result<Vec<String>> {
    let given = args.get("tags").and_then(Value::as_array);
    let tags = given.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>();
    check_tags(&tags)?;
    Ok(tags)
}

fn content(args: &Value) -> Result<String> {
    let text = text(args, "content")?;
    if text.len() > limits::NOTE_BYTES {
        let (has, most) = (text.len(), limits::NOTE_BYTES);
        return Err(Error::field("content", format!("content: has {has} bytes; a note has at most {most}.")));
    }
    Ok(text)
}

fn note(key: String, args: &Value) -> Result<NewDocument> {
    let title = args.get("title").and_then(Value::as_str).filter(|title| !title.is_empty());
    let title = title.map(|title| title.chars().take(limits::DOCUMENT_NAME_CHARS).collect());
    Ok(NewDocument {
        key,
        source: NOTE.to_owned(),
        title,
        tags: tags(args)?,
        text: content(args)?,
        ..NewDocument::default()
    })
}
