//! Parts of requests to models that later requests share.

use std::cell::{Cell, RefCell};

use crate::definitions::ToolEntry;
use crate::models::{CachedJson, ChatMessage, ToolDefinition};

/// See the module.
#[derive(Default)]
pub(in crate::engine) struct RequestParts {
    /// The tools that prompts offer, each built at the prompt's first request.
    pub(in crate::engine) offers: RefCell<Vec<Offers>>,
    /// System messages of the last requests.
    pub(in crate::engine) system: RefCell<Vec<CachedJson<ChatMessage>>>,
    /// Block of the last step whose history was halved.
    pub(in crate::engine) halved: Cell<Option<i64>>,
}

/// The tools of a prompt, for its requests.
#[derive(Clone, Debug)]
pub(crate) struct Offers {
    pub(crate) prompt: String,
    pub(crate) family: Family,
    pub(crate) tools: CachedJson<Vec<ToolDefinition>>,
}

/// The variable part of a prompt's tools; empty for a prompt without subagents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Family {
    /// Entries that are currently off, by index.
    pub(crate) off: Vec<usize>,
    /// The children that accept messages, in listed order.
    pub(crate) children: Vec<String>,
    /// The number of children beyond the listed ones.
    pub(crate) more: usize,
    /// The tools for managing workers that it offers.
    pub(crate) leads: Vec<&'static str>,
}

impl Family {
    /// The entries that are on.
    pub(crate) fn on<'a>(&self, entries: &'a [ToolEntry]) -> impl Iterator<Item = &'a ToolEntry> {
        let on = move |(place, entry)| (!self.off.contains(&place)).then_some(entry);
        entries.iter().enumerate().filter_map(on)
    }
}
