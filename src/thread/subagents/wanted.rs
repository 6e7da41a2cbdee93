//! What a call wants of subagents, if it is one for them.

use serde_json::{Map, Value};

use super::letter::Words;
use super::spawn::{NewChild, Wanted};
use crate::spec::message::{ToolCall, ToolResult};
use crate::spec::{Agent, Callable, ToolEntry};
use crate::thread::Thread;
use crate::thread::host::Host;
use crate::thread::opening::Opening;
use crate::thread::step::Definitions;
use crate::thread::tool_call::arguments;

impl<H: Host> Thread<H> {
    /// What a call of the open step wants of subagents, or what is wrong with it; none when it is for something else.
    pub(in crate::thread) fn wanted<'a>(
        &'a self,
        definitions: &'a Definitions<'a>,
        listed: Option<&'a ToolEntry>,
        call: &ToolCall,
    ) -> Option<Result<Wanted<'a>, ToolResult>> {
        let entry = listed?;
        let callable = self.catalog.callable(&entry.name)?;
        let Callable::Subagent(agent, _) = callable else { return None };
        let _ = definitions;
        let args = match arguments(callable, call) {
            Ok(args) => args,
            Err(text) => return Some(Err(ToolResult::error(text))),
        };
        Some(Ok(Wanted::Create(direct(agent, entry, &args))))
    }
}

/// A child that a call of its agent's name makes.
pub(in crate::thread) fn direct<'a>(agent: &'a Agent, entry: &'a ToolEntry, args: &Value) -> NewChild<'a> {
    let Opening { message, attachments } = Opening::of(entry, args);
    let text = message.unwrap_or_else(|| serde_json::to_string_pretty(args).unwrap_or_default());
    NewChild {
        agent,
        entry,
        name: None,
        arguments: Map::new(),
        words: Words { text, files: attachments },
        begun: None,
    }
}
