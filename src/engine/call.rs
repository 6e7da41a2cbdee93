//! A call that a reply or code makes: what runs it, its arguments, and what is said where it cannot run (spec §7).

use serde_json::{Map, Value};

use crate::engine::definitions::Definitions;
use crate::engine::handoff;
use crate::error::{Error, Result};
use crate::host::Sql;
use crate::limits;
use crate::models::ChatMessage;
use crate::request::fields::bounded;
use crate::sdk::messages::NewAttachment;
use crate::sdk::scope::Origin;
use crate::spec::message::{ToolCall, ToolResult, ToolStatus};
use crate::spec::{Callable, Catalog, Implementation, Prompt, Tier, Tool, schema};
use crate::store::messages::{Row, Shared};
use crate::store::opening::Opening;
use crate::store::receipts;
use crate::store::receipts::{Kind, NewReceipt, Receipt, ReceiptData, ReceiptState};
use crate::work::tier::{may_repeat, tier};

/// A call of the open step's reply.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// Place in the reply.
    pub(crate) index: usize,
    /// Seq of its result, and id of its receipt.
    pub(crate) seq: i64,
    pub(crate) call: ToolCall,
}

impl Call {
    /// A call of a reply, by its place.
    pub(crate) fn of(reply: &Row, index: usize) -> Option<Call> {
        reply.calls.get(index).map(|call| Call {
            index,
            seq: reply.seq + 1 + index as i64,
            call: call.clone(),
        })
    }
}

/// What takes its time: a function, or a prompt.
#[derive(Clone, Copy)]
pub(crate) enum Work<'a> {
    Tool(&'a Tool),
    Prompt(&'a Prompt),
}

impl<'a> Work<'a> {
    /// That of a callable; agents have none.
    pub(crate) fn of(callable: Callable<'a>) -> Option<Work<'a>> {
        match callable {
            Callable::Tool(tool) => Some(Work::Tool(tool)),
            Callable::Prompt(prompt) => Some(Work::Prompt(prompt)),
            Callable::Agent(..) | Callable::Subagent(..) => None,
        }
    }

    /// As receipts name it.
    pub(crate) const fn kind(self) -> Kind {
        match self {
            Work::Tool(Tool { run: Implementation::Native(_), .. }) => Kind::Native,
            Work::Tool(Tool { run: Implementation::Http(_), .. }) => Kind::Http,
            Work::Tool(Tool { run: Implementation::Code(_), .. }) => Kind::Code,
            Work::Tool(Tool { run: Implementation::Client(_), .. }) => Kind::Client,
            Work::Tool(Tool { run: Implementation::Mcp(_), .. }) => Kind::Mcp,
            Work::Prompt(_) => Kind::Prompt,
        }
    }

    /// Whether it may be run again, given what its receipt says of earlier runs. What a prompt did before is in the thread.
    pub(crate) fn repeats(self, earlier: &Receipt) -> bool {
        match self {
            Work::Tool(_) if earlier.task().is_some() => true,
            Work::Tool(tool) => {
                earlier.kind != Kind::Prompt
                    && may_repeat(tool)
                    && earlier.runs < i64::from(limits::IDEMPOTENT_RUNS)
            }
            Work::Prompt(_) => earlier.kind == Kind::Prompt,
        }
    }
}

/// Whether a call has a receipt already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    /// It has none: it was refused, or done at once.
    Never { kind: Kind, opening: Option<Opening> },
    /// Its receipt says that it started.
    Started,
    /// Its receipt says that it waited, and it never ran: somebody else has said what its result is.
    Waited,
}

/// What a call came to, still to be stored.
#[derive(Clone)]
pub(crate) struct CallOutcome {
    pub(crate) result: ToolResult,
    pub(crate) begun: Begun,
    pub(crate) state: ReceiptState,
    /// What made it, where calls were made within it that may not have ended.
    pub(crate) open_inner_calls: Option<Origin>,
    /// What its result's metadata says of an approval that it had.
    pub(crate) approval: Option<Value>,
}

impl CallOutcome {
    /// One that waited and was answered.
    pub(crate) fn answered(result: ToolResult) -> CallOutcome {
        let state = ReceiptState::ended(result.status);
        CallOutcome { result, begun: Begun::Waited, state, open_inner_calls: None, approval: None }
    }

    pub(crate) fn refused(text: String) -> CallOutcome {
        CallOutcome::refused_with(ToolResult::error(text))
    }

    pub(crate) fn refused_with(result: ToolResult) -> CallOutcome {
        let begun = Begun::Never { kind: Kind::Refused, opening: None };
        CallOutcome { result, begun, state: ReceiptState::Failed, open_inner_calls: None, approval: None }
    }

    /// The thread is handed off when the step is closed.
    pub(crate) fn handed(agent: &str, opening: Opening) -> CallOutcome {
        let opening = (!opening.is_empty()).then_some(opening);
        CallOutcome {
            result: ToolResult::success(handoff::told(agent)),
            begun: Begun::Never { kind: Kind::Handoff, opening },
            state: ReceiptState::Succeeded,
            open_inner_calls: None,
            approval: None,
        }
    }

    pub(crate) fn hands_off(&self) -> bool {
        matches!(self.begun, Begun::Never { kind: Kind::Handoff, .. })
            && self.state == ReceiptState::Succeeded
    }

    /// The call was running when the process was lost, and must not run again.
    pub(crate) fn unknown(name: &str, origin: &Origin) -> CallOutcome {
        CallOutcome {
            result: ToolResult::error(interrupted(name)),
            begun: Begun::Started,
            state: ReceiptState::Indeterminate,
            open_inner_calls: Some(origin.clone()),
            approval: None,
        }
    }

    /// Whether it was called and gave an error.
    pub(crate) fn ran_and_failed(&self) -> bool {
        self.begun == Begun::Started && self.result.status == ToolStatus::Error
    }

    pub(crate) fn ran(result: ToolResult) -> CallOutcome {
        let state = ReceiptState::ended(result.status);
        CallOutcome { state, result, begun: Begun::Started, open_inner_calls: None, approval: None }
    }

    /// The files that its result brings. One that cannot be taken makes it an error.
    pub(crate) fn take_files(&mut self, name: &str) -> Vec<NewAttachment> {
        match files_of(name, &mut self.result) {
            Ok(files) => files,
            Err(result) => {
                self.replace_result(result);
                Vec::new()
            }
        }
    }

    /// Another result in its place.
    pub(crate) fn replace_result(&mut self, result: ToolResult) {
        let known = self.state != ReceiptState::Indeterminate;
        if result.status != self.result.status && known && !self.hands_off() {
            self.state = ReceiptState::ended(result.status);
        }
        // What is stored for it already stays, and so does what is known of it.
        let stored = std::mem::take(&mut self.result.stored);
        self.result = ToolResult { stored, scrubbed: self.result.scrubbed, ..result };
    }

    /// Closes its receipt, or writes the one of a call that never started.
    pub(crate) fn close(
        &self,
        sql: &dyn Sql,
        state: ReceiptState,
        reply: &Shared,
        call: &Call,
        error: Option<&str>,
        now: i64,
    ) -> Result<()> {
        if let Some(origin) = &self.open_inner_calls {
            abandon_inner(sql, origin, call.seq, reply.seq, now)?;
        }
        match &self.begun {
            Begun::Started | Begun::Waited => {
                receipts::close(sql, call.seq, state, error, now, self.result.scrubbed)
            }
            Begun::Never { kind, opening } => {
                let ToolCall { id, name, .. } = &call.call;
                let scrubbed = self.result.scrubbed;
                let data = ReceiptData { opening: opening.clone(), scrubbed, ..ReceiptData::default() };
                // A hand-off ends when it takes place.
                let ended_us = (!self.hands_off()).then_some(now);
                let started = NewReceipt::started(call.seq, reply.seq, id, name, *kind, now);
                NewReceipt { state, runs: 0, ended_us, error, data, ..started }.insert(sql)
            }
        }
    }
}

/// What a call may have changed, by today's definitions; `None` where they do not know what was called.
pub(crate) fn tier_of_call(catalog: &Catalog, call: &Receipt) -> Option<Tier> {
    match (call.kind, catalog.callable(&call.name)) {
        (_, Some(Callable::Tool(tool))) => Some(tier(tool)),
        // Whatever these call.
        (Kind::Subagent, None) | (_, Some(_)) => Some(Tier::SideEffecting),
        (_, None) => None,
    }
}

/// Closes the receipts of calls within a call that has ended without them. `reply`: of that call, or 0 where no reply has it.
pub(crate) fn abandon_inner(
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

/// What is told of a call that was running when the process was lost.
pub(crate) fn interrupted(name: &str) -> String {
    format!(
        "The runtime restarted while \"{name}\" was running. It may or may not have taken effect. Check before trying again."
    )
}

/// The call's arguments, or what the model is told about them.
pub(crate) fn arguments(callable: Callable<'_>, call: &ToolCall) -> Result<Value, String> {
    let name = &call.name;
    callable
        .check(parsed(call)?)
        .map_err(|problems| format!("Invalid arguments for \"{name}\": {}", schema::lines(&problems)))
}

/// The same, unchecked.
pub(crate) fn parsed(call: &ToolCall) -> Result<Value, String> {
    // Models that call a tool without arguments often send nothing at all.
    let text = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
    let name = &call.name;
    crate::json::from_str(text)
        .map_err(|error| format!("The arguments for \"{name}\" are not valid JSON: {error}."))
}

/// What is told where [`Thread::is_off`].
pub(crate) fn off(definitions: &Definitions<'_>, name: &str) -> String {
    format!("\"{name}\" is off here: the prompt \"{}\" does not list it.", definitions.prompt.name)
}

/// What is told where calls are nested too deeply.
pub(crate) fn too_deep(name: &str) -> String {
    format!("\"{name}\" was not called: calls within calls go {} deep at most.", limits::CALL_DEPTH)
}

/// The model is told this instead of a result that does not exist.
pub(crate) const NOT_RUN: &str = "Not run: the run was stopped.";

/// What stands for the result of a call that has none.
pub(crate) fn not_run(call: &ToolCall) -> ChatMessage {
    ChatMessage::Tool {
        call_id: call.id.clone(),
        name: call.name.clone(),
        content: NOT_RUN.to_owned(),
        status: ToolStatus::Error,
        images: Vec::new(),
    }
}

/// What clients are told of a result besides its text: of a failure its code and data, and the subagent that it is about.
pub(crate) fn told(result: &ToolResult) -> Option<String> {
    let ToolResult { error_code, error_data, subagent_id, .. } = result;
    let mut told = Map::new();
    if error_code.is_some() || error_data.is_some() {
        told.insert("error_code".into(), crate::json!(error_code));
        told.insert("error_data".into(), crate::json!(error_data));
    }
    if let Some(reference) = subagent_id {
        told.insert("subagent_id".into(), reference.clone().into());
    }
    if told.is_empty() {
        return None;
    }
    let told = Value::Object(told);
    // It must be possible to read it again.
    bounded("error_data", &told).is_ok().then(|| told.to_string())
}

/// The files that a result brings; an error result when one of them cannot be taken.
#[expect(clippy::result_large_err, reason = "an error result is made once in a call, and read by a model")]
pub(crate) fn files_of(name: &str, result: &mut ToolResult) -> Result<Vec<NewAttachment>, ToolResult> {
    crate::sdk::given::listed(result.take_files()).map_err(|error| no_files(name, &error))
}

/// What is told of files that cannot be stored. The tool has done what it does.
pub(crate) fn no_files(name: &str, error: &Error) -> ToolResult {
    let field = error.field.as_ref().map_or(String::new(), |field| format!("{field}: "));
    ToolResult::error(format!(
        "\"{name}\" has run, but the files of its result could not be stored. {field}{}",
        error.message
    ))
}
