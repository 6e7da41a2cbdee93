//! Maps a call to its subagent action, if it is a call for subagents.

use serde_json::Value;

use crate::definitions::message::{ToolCall, ToolResult};
use crate::definitions::subagent::{CREATE, OF_WORKERS, SPAWN, is_tool};
use crate::definitions::{Callable, ToolEntry};
use crate::engine::calls::call::{arguments, parsed};
use crate::engine::definitions::Definitions;
use crate::engine::features::Delegates;
use crate::engine::features::Subagents;
use crate::engine::subagents::arguments;
use crate::engine::subagents::arguments::agent;
use crate::engine::subagents::call::SubagentCall;
use crate::engine::subagents::delegates;
use crate::error::Result;

impl Subagents<'_> {
    /// The subagent action of a call, or its error result; `None` when the call is for something else.
    /// `listed`: the prompt's entry, or the entry for calls from code.
    pub(crate) fn wanted<'a>(
        &'a self,
        definitions: &'a Definitions<'a>,
        listed: Option<&'a ToolEntry>,
        call: &ToolCall,
    ) -> Result<Option<Result<SubagentCall<'a>, ToolResult>>> {
        let name = call.name.as_str();
        if OF_WORKERS.contains(&name) {
            return self.wanted_of_workers(definitions, listed.is_some(), call).map(Some);
        }
        if is_tool(name) {
            return self.wanted_of_tool(definitions, listed.is_some(), call).map(Some);
        }
        let Some(entry) = listed else { return Ok(None) };
        let Some(callable @ Callable::Subagent(agent, _)) = self.catalog.callable(name) else {
            return Ok(None);
        };
        if !self.is_on(definitions, entry) {
            return Ok(Some(Err(ToolResult::error(self.unknown_tool(definitions, name)?))));
        }
        let new = match arguments(callable, call) {
            _ if entry.resumable.is_some() => arguments::direct(agent, entry, &Value::Null),
            Ok(args) => arguments::direct(agent, entry, &args),
            Err(text) => Err(ToolResult::error(text)),
        };
        Ok(Some(new.map(|new| SubagentCall::Create(Box::new(new)))))
    }

    /// The action of a call to the runtime's own subagent tools. A model has them if its prompt lists agents
    /// for them; code always does.
    fn wanted_of_tool<'a>(
        &'a self,
        definitions: &'a Definitions<'a>,
        by_code: bool,
        call: &ToolCall,
    ) -> Result<Result<SubagentCall<'a>, ToolResult>> {
        let family = self.family(definitions)?;
        let entries: Vec<&ToolEntry> = family.on(&definitions.prompt.tools).collect();
        let offered =
            |entry: &&ToolEntry| entry.resumable.is_some() && agent(&self.catalog, &entry.name).is_some();
        if !by_code && !entries.iter().any(offered) {
            return Ok(Err(ToolResult::error(self.unknown_tool(definitions, &call.name)?)));
        }
        let args = match parsed(call) {
            Ok(args) => args,
            Err(text) => return Ok(Err(ToolResult::error(text))),
        };
        Ok(match call.name.as_str() {
            CREATE => arguments::create(&self.catalog, &entries, &args)
                .map(|new| SubagentCall::Create(Box::new(new))),
            _ => arguments::message(&args),
        })
    }

    /// The action of a call to the worker tools. A model has them if its prompt enables them; code always
    /// does.
    fn wanted_of_workers<'a>(
        &'a self,
        definitions: &'a Definitions<'a>,
        by_code: bool,
        call: &ToolCall,
    ) -> Result<Result<SubagentCall<'a>, ToolResult>> {
        let offered = self.delegates().leads(definitions.prompt)?;
        let name = call.name.as_str();
        if !by_code && !offered.contains(&name) {
            return Ok(Err(ToolResult::error(self.unknown_tool(definitions, name)?)));
        }
        if !self.delegates().permits(name)? {
            return Ok(Err(ToolResult::error(Delegates::not_permitted(name))));
        }
        let workers = definitions.prompt.workers().filter(|_| offered.contains(&SPAWN));
        Ok(delegates::arguments::of_call(&self.catalog, workers, call))
    }

    /// The error text for a name that is not callable here.
    pub(crate) fn unknown_tool(&self, definitions: &Definitions<'_>, name: &str) -> Result<String> {
        let offers = self.model_context().offers(definitions)?;
        let available: Vec<&str> = offers.iter().map(|offer| offer.name.as_str()).collect();
        let available = if available.is_empty() { "none".to_owned() } else { available.join(", ") };
        Ok(format!("There is no tool \"{name}\" here. Available: {available}."))
    }
}
