//! A call that a reply or code makes: its implementation, its arguments, and the texts for calls that cannot
//! run (spec §7).

use crate::engine::thread::Thread;
use crate::sdk::scope::Scope;
use std::ops::Deref;

use serde_json::{Map, Value};

use crate::definitions::message::{ToolCall, ToolResult, ToolStatus};
use crate::definitions::tier::{may_repeat, tier};
use crate::definitions::{Callable, Catalog, Implementation, Prompt, Tier, Tool, schema};
use crate::engine::definitions::Definitions;
use crate::engine::handoff;
use crate::error::{Error, Result};
use crate::host::Sql;
use crate::limits;
use crate::models::ChatMessage;
use crate::request::fields::bounded;
use crate::sdk::messages::NewAttachment;
use crate::sdk::scope::Origin;
use crate::store::messages::{Row, SharedRow};
use crate::store::opening::Opening;
use crate::store::receipts;
use crate::store::receipts::{Kind, NewReceipt, Receipt, ReceiptData, ReceiptState};

/// A call of a reply, and everything that it is made in.
#[derive(Clone, Copy)]
pub(crate) struct ToolRun<'a> {
    pub(in crate::engine) thread: &'a Thread,
    pub(in crate::engine) scope: &'a Scope,
    pub(in crate::engine) definitions: &'a Definitions<'a>,
    /// The message with the call.
    pub(in crate::engine) reply: &'a SharedRow,
    pub(in crate::engine) call: &'a Call,
}

impl Deref for ToolRun<'_> {
    type Target = Thread;

    fn deref(&self) -> &Thread {
        self.thread
    }
}

/// A call of the open step's reply.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// Position in the reply.
    pub(in crate::engine) index: usize,
    /// Seq of its result, and id of its receipt.
    pub(in crate::engine) seq: i64,
    pub(in crate::engine) call: ToolCall,
}

impl Call {
    /// The call of a reply at a position.
    pub(in crate::engine) fn of(reply: &Row, index: usize) -> Option<Call> {
        reply.calls.get(index).map(|call| Call {
            index,
            seq: reply.seq + 1 + index as i64,
            call: call.clone(),
        })
    }
}

/// The callables that run for some time: a tool, or a prompt.
#[derive(Clone, Copy)]
pub(crate) enum Executable<'a> {
    Tool(&'a Tool),
    Prompt(&'a Prompt),
}

impl<'a> Executable<'a> {
    /// The executable of a callable; agents have none.
    pub(in crate::engine) fn of(callable: Callable<'a>) -> Option<Executable<'a>> {
        match callable {
            Callable::Tool(tool) => Some(Executable::Tool(tool)),
            Callable::Prompt(prompt) => Some(Executable::Prompt(prompt)),
            Callable::Agent(..) | Callable::Subagent(..) => None,
        }
    }

    /// The kind in receipts.
    pub(in crate::engine) const fn kind(self) -> Kind {
        match self {
            Executable::Tool(Tool { run: Implementation::Native(_), .. }) => Kind::Native,
            Executable::Tool(Tool { run: Implementation::Http(_), .. }) => Kind::Http,
            Executable::Tool(Tool { run: Implementation::Code(_), .. }) => Kind::Code,
            Executable::Tool(Tool { run: Implementation::Client(_), .. }) => Kind::Client,
            Executable::Tool(Tool { run: Implementation::Mcp(_), .. }) => Kind::Mcp,
            Executable::Prompt(_) => Kind::Prompt,
        }
    }

    /// Whether it may run again, given the earlier runs on its receipt. A prompt continues from what it has
    /// stored.
    pub(in crate::engine) fn repeats(self, earlier: &Receipt) -> bool {
        match self {
            Executable::Tool(_) if earlier.task().is_some() => true,
            Executable::Tool(tool) => {
                earlier.kind != Kind::Prompt
                    && may_repeat(tool)
                    && earlier.runs < i64::from(limits::IDEMPOTENT_RUNS)
            }
            Executable::Prompt(_) => earlier.kind == Kind::Prompt,
        }
    }
}

/// The receipt that the database has of a call before its outcome is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine) enum StoredReceipt {
    /// No receipt: the call was refused, or done at once.
    None { kind: Kind, opening: Option<Opening> },
    /// Its state is started.
    Started,
    /// Its state is waiting. The call never ran: its result came from outside.
    Waited,
}

/// The outcome of a call, still to be stored.
#[derive(Clone)]
pub(crate) struct CallOutcome {
    pub(in crate::engine) result: ToolResult,
    pub(in crate::engine) stored_receipt: StoredReceipt,
    pub(in crate::engine) state: ReceiptState,
    /// The origin of this call, if its inner calls may not have ended.
    pub(in crate::engine) open_inner_calls: Option<Origin>,
    /// The approval, for the metadata of its result.
    pub(in crate::engine) approval: Option<Value>,
}

impl CallOutcome {
    /// A call that waited and whose result came from outside.
    pub(in crate::engine) fn answered(result: ToolResult) -> CallOutcome {
        let state = ReceiptState::ended(result.status);
        CallOutcome {
            result,
            stored_receipt: StoredReceipt::Waited,
            state,
            open_inner_calls: None,
            approval: None,
        }
    }

    pub(in crate::engine) fn refused(text: String) -> CallOutcome {
        CallOutcome::refused_with(ToolResult::error(text))
    }

    pub(in crate::engine) fn refused_with(result: ToolResult) -> CallOutcome {
        let stored_receipt = StoredReceipt::None { kind: Kind::Refused, opening: None };
        CallOutcome {
            result,
            stored_receipt,
            state: ReceiptState::Failed,
            open_inner_calls: None,
            approval: None,
        }
    }

    /// A hand-off. It takes effect when the step is closed.
    pub(in crate::engine) fn handed(agent: &str, opening: Opening) -> CallOutcome {
        let opening = (!opening.is_empty()).then_some(opening);
        CallOutcome {
            result: ToolResult::success(handoff::result_text(agent)),
            stored_receipt: StoredReceipt::None { kind: Kind::Handoff, opening },
            state: ReceiptState::Succeeded,
            open_inner_calls: None,
            approval: None,
        }
    }

    pub(in crate::engine) fn hands_off(&self) -> bool {
        matches!(self.stored_receipt, StoredReceipt::None { kind: Kind::Handoff, .. })
            && self.state == ReceiptState::Succeeded
    }

    /// A call that was running when the process crashed, and must not run again.
    pub(in crate::engine) fn unknown(name: &str, origin: &Origin) -> CallOutcome {
        CallOutcome {
            result: ToolResult::error(interrupted(name)),
            stored_receipt: StoredReceipt::Started,
            state: ReceiptState::Indeterminate,
            open_inner_calls: Some(origin.clone()),
            approval: None,
        }
    }

    /// Whether it ran and returned an error.
    pub(in crate::engine) fn ran_and_failed(&self) -> bool {
        self.stored_receipt == StoredReceipt::Started && self.result.status == ToolStatus::Error
    }

    pub(in crate::engine) fn ran(result: ToolResult) -> CallOutcome {
        let state = ReceiptState::ended(result.status);
        CallOutcome {
            state,
            result,
            stored_receipt: StoredReceipt::Started,
            open_inner_calls: None,
            approval: None,
        }
    }

    /// The files of its result. A file that cannot be accepted turns the result into an error.
    pub(in crate::engine) fn take_files(&mut self, name: &str) -> Vec<NewAttachment> {
        match files_of(name, &mut self.result) {
            Ok(files) => files,
            Err(result) => {
                self.replace_result(result);
                Vec::new()
            }
        }
    }

    /// Replaces the result.
    pub(in crate::engine) fn replace_result(&mut self, result: ToolResult) {
        let known = self.state != ReceiptState::Indeterminate;
        if result.status != self.result.status && known && !self.hands_off() {
            self.state = ReceiptState::ended(result.status);
        }
        // Files that are stored already stay, and so does the mark that it was scrubbed.
        let stored = std::mem::take(&mut self.result.stored);
        self.result = ToolResult { stored, scrubbed: self.result.scrubbed, ..result };
    }

    /// Closes its receipt, or writes one for a call that never started.
    pub(in crate::engine) fn close(
        &self,
        sql: &dyn Sql,
        state: ReceiptState,
        reply: &SharedRow,
        call: &Call,
        error: Option<&str>,
        now: i64,
    ) -> Result<()> {
        if let Some(origin) = &self.open_inner_calls {
            abandon_inner(sql, origin, call.seq, reply.seq, now)?;
        }
        match &self.stored_receipt {
            StoredReceipt::Started | StoredReceipt::Waited => {
                receipts::close(sql, call.seq, state, error, now, self.result.scrubbed)
            }
            StoredReceipt::None { kind, opening } => {
                let ToolCall { id, name, .. } = &call.call;
                let scrubbed = self.result.scrubbed;
                let data = ReceiptData { opening: opening.clone(), scrubbed, ..ReceiptData::default() };
                // A hand-off ends when it takes effect.
                let ended_us = (!self.hands_off()).then_some(now);
                let started = NewReceipt::started(call.seq, reply.seq, id, name, *kind, now);
                NewReceipt { state, runs: 0, ended_us, error, data, ..started }.insert(sql)
            }
        }
    }
}

/// The tier of a call by the current definitions; `None` if the callable no longer exists.
pub(in crate::engine) fn tier_of_call(catalog: &Catalog, call: &Receipt) -> Option<Tier> {
    match (call.kind, catalog.callable(&call.name)) {
        (_, Some(Callable::Tool(tool))) => Some(tier(tool)),
        // These may call anything.
        (Kind::Subagent, None) | (_, Some(_)) => Some(Tier::SideEffecting),
        (_, None) => None,
    }
}

/// Closes the receipts of inner calls that a call left open. `reply`: the reply of that call, or 0 if it has
/// none.
pub(in crate::engine) fn abandon_inner(
    sql: &dyn Sql,
    origin: &Origin,
    receipt: i64,
    reply: i64,
    now: i64,
) -> Result<()> {
    match origin {
        Origin::Step => receipts::abandon_since(sql, receipt, reply, now),
        _ => receipts::abandon_within(sql, receipt, now),
    }
}

/// The text for a call that was running when the process crashed.
pub(in crate::engine) fn interrupted(name: &str) -> String {
    format!(
        "The runtime restarted while \"{name}\" was running. It may or may not have taken effect. Check before trying again."
    )
}

/// The checked arguments of a call, or the error text for the model.
pub(in crate::engine) fn arguments(callable: Callable<'_>, call: &ToolCall) -> Result<Value, String> {
    let name = &call.name;
    callable
        .check(parsed(call)?)
        .map_err(|problems| format!("Invalid arguments for \"{name}\": {}", schema::lines(&problems)))
}

/// The arguments of a call, unchecked.
pub(in crate::engine) fn parsed(call: &ToolCall) -> Result<Value, String> {
    // Models that call a tool without arguments often send nothing at all.
    let text = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
    let name = &call.name;
    crate::json::from_str(text)
        .map_err(|error| format!("The arguments for \"{name}\" are not valid JSON: {error}."))
}

/// The text for a tool that the prompt does not list ([`Thread::is_off`]).
pub(in crate::engine) fn off(definitions: &Definitions<'_>, name: &str) -> String {
    format!("\"{name}\" is off here: the prompt \"{}\" does not list it.", definitions.prompt.name)
}

/// The text for calls that are nested too deeply.
pub(in crate::engine) fn too_deep(name: &str) -> String {
    format!("\"{name}\" was not called: calls within calls go {} deep at most.", limits::CALL_DEPTH)
}

/// The text for the model in place of a result that does not exist.
const NOT_RUN: &str = "Not run: the run was stopped.";

/// The message in place of the result of a call that has none.
pub(in crate::engine) fn not_run(call: &ToolCall) -> ChatMessage {
    ChatMessage::Tool {
        call_id: call.id.clone(),
        name: call.name.clone(),
        content: NOT_RUN.to_owned(),
        status: ToolStatus::Error,
        images: Vec::new(),
    }
}

/// The metadata of a result for clients: the code and data of a failure, and the subagent that it is about.
pub(in crate::engine) fn result_metadata(result: &ToolResult) -> Option<String> {
    let ToolResult { error_code, error_data, subagent_id, .. } = result;
    let mut metadata = Map::new();
    if error_code.is_some() || error_data.is_some() {
        metadata.insert("error_code".into(), crate::json!(error_code));
        metadata.insert("error_data".into(), crate::json!(error_data));
    }
    if let Some(reference) = subagent_id {
        metadata.insert("subagent_id".into(), reference.clone().into());
    }
    if metadata.is_empty() {
        return None;
    }
    let metadata = Value::Object(metadata);
    // It must be readable within the limits of requests.
    bounded("error_data", &metadata).is_ok().then(|| metadata.to_string())
}

/// The files of a result; an error result if one of them cannot be accepted.
#[expect(clippy::result_large_err, reason = "an error result is made once in a call, and read by a model")]
pub(in crate::engine) fn files_of(
    name: &str,
    result: &mut ToolResult,
) -> Result<Vec<NewAttachment>, ToolResult> {
    crate::sdk::attachment_input::listed(result.take_files()).map_err(|error| no_files(name, &error))
}

/// The error result for files that cannot be stored. The tool itself has run.
pub(in crate::engine) fn no_files(name: &str, error: &Error) -> ToolResult {
    let field = error.field.as_ref().map_or(String::new(), |field| format!("{field}: "));
    ToolResult::error(format!(
        "\"{name}\" has run, but the files of its result could not be stored. {field}{}",
        error.message
    ))
}
