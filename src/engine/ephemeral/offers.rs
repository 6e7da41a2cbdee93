//! What the requests of a prompt have in common, made once.

use crate::models::{CachedJson, ToolDefinition};
use crate::spec::ToolEntry;

/// What the requests of a prompt have in common.
#[derive(Clone, Debug)]
pub(crate) struct Offers {
    pub(crate) prompt: String,
    pub(crate) family: Family,
    pub(crate) tools: CachedJson<Vec<ToolDefinition>>,
}

/// What may change of a prompt's offers: nothing of one that lists no subagents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Family {
    /// Entries that are not there today, by their places.
    pub(crate) off: Vec<usize>,
    /// The children that may be written to, as they are listed.
    pub(crate) children: Vec<String>,
    /// How many more there are.
    pub(crate) more: usize,
    /// The tools for workers that it offers.
    pub(crate) leads: Vec<&'static str>,
}

impl Family {
    /// The entries that are there.
    pub(crate) fn on<'a>(&self, entries: &'a [ToolEntry]) -> impl Iterator<Item = &'a ToolEntry> {
        let on = move |(place, entry)| (!self.off.contains(&place)).then_some(entry);
        entries.iter().enumerate().filter_map(on)
    }
}
