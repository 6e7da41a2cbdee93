//! Memories, their embedding models, and the prompts that use them.

use std::collections::BTreeSet;

use crate::definitions::memory::{Memory, MemoryScope, MemoryTool};
use crate::definitions::model::{Model, ModelKind, Provider};
use crate::definitions::package::SEPARATOR;
use crate::definitions::prompt::Prompt;
use crate::definitions::references::Kind;
use crate::limits;
use crate::names::{nearest, wrong_memory};
use crate::validate::{Check, Subject};

impl Check<'_> {
    pub(super) fn memories(&mut self) {
        for (name, memory) in &self.catalog.memories {
            let at = Subject { kind: Kind::Memory, name };
            let own = match self.catalog.packages.of(name) {
                Some(_) => name.split_once(SEPARATOR).map_or(name.as_str(), |(_, own)| own),
                None => name,
            };
            if let Some(wrong) = wrong_memory(own) {
                self.error(at, "name", wrong);
            }
            if memory.description.trim().is_empty() {
                self.error(at, "description", "empty: a model cannot know what is in the memory");
            }
            let used = || {
                self.catalog
                    .prompts
                    .values()
                    .any(|prompt| prompt.memory.iter().any(|entry| entry.name == *name))
            };
            if (memory.sources.messages || !memory.sources.files.is_empty()) && !used() {
                let text =
                    "nothing comes in by itself: a prompt that an agent speaks with has to list the memory";
                self.warning(at, "sources", text);
            }
            self.retrieval(at, memory);
            self.memory_sources(at, memory);
            if let Some(model) = &memory.embedding {
                self.reference(at, "embedding", Kind::Model, model);
                if self.catalog.models.get(model).is_some_and(|model| model.kind != ModelKind::Embedding) {
                    let text = format!("the model \"{model}\" gives answers: its `kind` must be `embedding`");
                    self.error(at, "embedding", text);
                }
            }
        }
    }

    fn retrieval(&mut self, at: Subject<'_>, memory: &Memory) {
        let (chunk, retrieval) = (memory.chunk, memory.retrieval);
        if !(limits::CHUNK_CHARS_MIN..=limits::CHUNK_CHARS_MAX).contains(&chunk.chars) {
            let (least, most) = (limits::CHUNK_CHARS_MIN, limits::CHUNK_CHARS_MAX);
            self.error(at, "chunk.chars", format!("must be from {least} to {most}"));
        }
        if chunk.overlap * 2 > chunk.chars {
            self.error(at, "chunk.overlap", "must be at most half of `chars`");
        }
        if retrieval.top_k == 0 || retrieval.top_k > limits::RECALL_TOP_K_MAX {
            self.error(at, "retrieval.topK", format!("must be from 1 to {}", limits::RECALL_TOP_K_MAX));
        }
        let weights = [("vectorWeight", retrieval.vector_weight), ("textWeight", retrieval.text_weight)];
        for (field, weight) in weights {
            if !weight.is_finite() || weight < 0.0 {
                self.error(at, format!("retrieval.{field}"), "must not be negative");
            }
        }
        if weights.iter().all(|(_, weight)| *weight == 0.0) {
            self.error(at, "retrieval", "one of `vectorWeight` and `textWeight` must be more than 0");
        }
        if !retrieval.min_score.is_finite() || retrieval.min_score < 0.0 {
            self.error(at, "retrieval.minScore", "must not be negative");
        }
        if retrieval.max_tokens == 0 || retrieval.max_tokens > limits::RECALL_TOKENS_MAX {
            self.error(at, "retrieval.maxTokens", format!("must be from 1 to {}", limits::RECALL_TOKENS_MAX));
        }
        if memory.limits.chunks == 0 || memory.limits.chunks > limits::MEMORY_CHUNKS {
            self.error(at, "limits.chunks", format!("must be from 1 to {}", limits::MEMORY_CHUNKS));
        }
    }

    fn memory_sources(&mut self, at: Subject<'_>, memory: &Memory) {
        let sources = &memory.sources;
        if sources.messages && memory.scope == MemoryScope::Instance {
            let text =
                "everybody's memory is written by administrators: what is said in threads does not come in";
            self.error(at, "sources.messages", text);
        }
        if !sources.files.is_empty() && memory.scope != MemoryScope::Thread {
            let text = "files are a thread's own: only a memory of the scope `thread` takes them in";
            self.error(at, "sources.files", text);
        }
        if sources.files.len() > limits::MEMORY_PATTERNS {
            let most = limits::MEMORY_PATTERNS;
            self.error(
                at,
                "sources.files",
                format!("{} patterns; at most {most} are allowed", sources.files.len()),
            );
        }
        for (index, pattern) in sources.files.iter().enumerate() {
            if pattern.is_empty() || pattern.len() > limits::FILE_PATTERN_BYTES {
                let most = limits::FILE_PATTERN_BYTES;
                self.error(at, format!("sources.files[{index}]"), format!("must have 1 to {most} bytes"));
            }
        }
    }

    /// Checks a model's settings for vectors.
    pub(super) fn embeds(&mut self, at: Subject<'_>, model: &Model) {
        let of_embedding = [
            ("dimensions", model.dimensions.is_some()),
            ("queryPrefix", model.query_prefix.is_some()),
            ("documentPrefix", model.document_prefix.is_some()),
            ("batch", model.batch.is_some()),
        ];
        if model.kind == ModelKind::Chat {
            for (field, _) in of_embedding.into_iter().filter(|(_, given)| *given) {
                self.error(at, field, "is for models whose `kind` is `embedding`");
            }
            return;
        }
        if !matches!(model.provider, Provider::Openai | Provider::Demo) {
            self.error(at, "provider", "vectors come from the providers openai and demo");
        }
        if model.dimensions.is_some_and(|n| n == 0 || n > limits::EMBEDDING_DIMENSIONS) {
            let most = limits::EMBEDDING_DIMENSIONS;
            self.error(at, "dimensions", format!("must be from 1 to {most}"));
        }
        if model.provider == Provider::Demo && model.dimensions.is_some_and(|n| n != 256) {
            self.error(at, "dimensions", "the demo provider gives vectors of 256 numbers");
        }
        if model.batch.is_some_and(|n| n == 0 || n > limits::EMBEDDING_BATCH_MAX) {
            let most = limits::EMBEDDING_BATCH_MAX;
            self.error(at, "batch", format!("must be from 1 to {most}"));
        }
        if !model.fallbacks.is_empty() {
            self.error(at, "fallbacks", "vectors of different models cannot be compared");
        }
    }

    /// Checks the memories of a prompt.
    pub(super) fn memory_of(&mut self, at: Subject<'_>, prompt: &Prompt) {
        let mut seen = BTreeSet::new();
        for (index, entry) in prompt.memory.iter().enumerate() {
            let field = format!("memory[{index}]");
            self.reference(at, &field, Kind::Memory, &entry.name);
            if !seen.insert(&entry.name) {
                self.error(at, &field, format!("\"{}\" is listed twice", entry.name));
            }
            let Some(memory) = self.catalog.memories.get(&entry.name) else { continue };
            let writes = entry.tools.iter().any(|tool| *tool != MemoryTool::Search);
            if writes && memory.scope == MemoryScope::Instance {
                let text = "everybody's memory is written by administrators: its only tool is `search`";
                self.error(at, format!("{field}.tools"), text);
            } else if writes && !memory.sources.notes {
                let text = format!("\"{}\" takes no notes (`sources.notes`)", entry.name);
                self.error(at, format!("{field}.tools"), text);
            }
            let takes = memory.sources.messages || !memory.sources.files.is_empty();
            if !entry.inject && entry.tools.is_empty() && !takes {
                self.warning(at, &field, "has no effect: neither `inject` nor `tools` is set");
            }
        }
        for (index, entry) in prompt.tools.iter().enumerate() {
            let known = MemoryTool::ALL.into_iter().find(|tool| tool.tool() == entry.name);
            let offered = |tool| prompt.memory.iter().any(|entry| entry.tools.contains(&tool));
            if known.is_some_and(|tool| !offered(tool)) {
                let text = format!("\"{}\" is offered by `memory`, which names the memory", entry.name);
                self.error(at, format!("tools[{index}]"), text);
            }
        }
        if self.catalog.models.get(&prompt.model).is_some_and(|model| model.kind == ModelKind::Embedding) {
            let chat: Vec<&str> = self
                .catalog
                .models
                .values()
                .filter(|model| model.kind == ModelKind::Chat)
                .map(|model| model.name.as_str())
                .collect();
            let hint = nearest(&prompt.model, &chat).map(|near| format!("; did you mean \"{near}\"?"));
            let text = format!(
                "the model \"{}\" gives vectors, not answers{}",
                prompt.model,
                hint.unwrap_or_default()
            );
            self.error(at, "model", text);
        }
    }
}
