//! A call that a reply or code makes: what runs it, its arguments, and what is said where it cannot run (spec §7).

use serde_json::{Map, Value};

use crate::engine::definitions::Definitions;
use crate::engine::handoff;
use crate::engine::tool_call::{Receipt, abandon_within, ended, interrupted};
use crate::error::{Error, Result};
use crate::host::{Param, Sql};
use crate::limits;
use crate::models::ChatMessage;
use crate::request::fields::bounded;
use crate::sdk::messages::NewAttachment;
use crate::sdk::scope::Place;
use crate::spec::message::{ToolCall, ToolResult, ToolStatus};
use crate::spec::{Callable, Prompt, Run, Tool, schema};
use crate::store::messages::{Row, Shared};

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
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Work::Tool(Tool { run: Run::Native(_), .. }) => "native",
            Work::Tool(Tool { run: Run::Http(_), .. }) => "http",
            Work::Tool(Tool { run: Run::Code(_), .. }) => "code",
            Work::Prompt(_) => "prompt",
        }
    }

    /// Whether it may be run again, given how often it was started, and as what. What a prompt did before is in the
    /// thread.
    pub(crate) fn repeats(self, started: i64, kind: &str) -> bool {
        match self {
            Work::Tool(tool) => {
                kind != "prompt" && tool.idempotent && started < i64::from(limits::IDEMPOTENT_RUNS)
            }
            Work::Prompt(_) => kind == "prompt",
        }
    }
}

/// A call's result, still to be stored.
#[derive(Clone)]
pub(crate) struct Done {
    pub(crate) result: ToolResult,
    pub(crate) receipt: Receipt,
    pub(crate) state: &'static str,
    /// Where calls were made within it that may not have ended.
    pub(crate) within: Option<Place>,
}

impl Done {
    pub(crate) fn refused(text: String) -> Done {
        let receipt = Receipt::None("refused", None);
        Done { result: ToolResult::error(text), receipt, state: "failed", within: None }
    }

    pub(crate) fn refused_with(result: ToolResult) -> Done {
        Done { result, ..Done::refused(String::new()) }
    }

    /// The thread is handed off when the step is closed.
    pub(crate) fn handed(agent: &str, kept: Option<String>) -> Done {
        let result = ToolResult::success(handoff::told(agent));
        Done { result, receipt: Receipt::None(handoff::KIND, kept), state: "succeeded", within: None }
    }

    pub(crate) fn hands_off(&self) -> bool {
        matches!(self.receipt, Receipt::None(handoff::KIND, _)) && self.state == "succeeded"
    }

    /// The call was running when the process was lost, and must not run again.
    pub(crate) fn unknown(name: &str, place: Place) -> Done {
        let result = ToolResult::error(interrupted(name));
        Done { result, receipt: Receipt::Started, state: "indeterminate", within: Some(place) }
    }

    /// Whether it was called and gave an error.
    pub(crate) fn ran_and_failed(&self) -> bool {
        self.receipt == Receipt::Started && self.result.status == ToolStatus::Error
    }

    pub(crate) fn ran(result: ToolResult) -> Done {
        Done { state: ended(&result), result, receipt: Receipt::Started, within: None }
    }

    /// The files that its result brings. One that cannot be taken makes it an error.
    pub(crate) fn take_files(&mut self, name: &str) -> Vec<NewAttachment> {
        match files_of(name, &mut self.result) {
            Ok(files) => files,
            Err(result) => {
                self.becomes(result);
                Vec::new()
            }
        }
    }

    /// Another result in its place.
    pub(crate) fn becomes(&mut self, result: ToolResult) {
        if result.status != self.result.status && self.state != "indeterminate" && !self.hands_off() {
            self.state = ended(&result);
        }
        // What is stored for it already stays.
        let stored = std::mem::take(&mut self.result.stored);
        self.result = ToolResult { stored, ..result };
    }

    /// Closes its receipt, or writes the one of a call that never started.
    pub(crate) fn close(
        &self,
        sql: &dyn Sql,
        state: &str,
        reply: &Shared,
        call: &Call,
        error: Option<&str>,
        now: i64,
    ) -> Result<()> {
        if let Some(place) = self.within {
            abandon_within(sql, place, call.seq, now)?;
        }
        match &self.receipt {
            Receipt::Started => sql.run(
                "UPDATE calls SET state = ?, ended_us = ?, error = ?, result = NULL WHERE id = ?",
                &[Param::Text(state), Param::Int(now), error.into(), Param::Int(call.seq)],
            ),
            Receipt::None(kind, kept) => sql.run(
                "INSERT INTO calls (id, reply, call_id, name, kind, state, runs, started_us, ended_us, error, data)
                 VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?)",
                &[
                    Param::Int(call.seq),
                    Param::Int(reply.seq),
                    Param::Text(&call.call.id),
                    Param::Text(&call.call.name),
                    Param::Text(kind),
                    Param::Text(state),
                    Param::Int(now),
                    // A hand-off ends when it takes place.
                    (!self.hands_off()).then_some(now).into(),
                    error.into(),
                    kept.as_ref().into(),
                ],
            ),
        }
    }
}

/// The call's arguments, or what the model is told about them.
pub(crate) fn arguments(callable: Callable<'_>, call: &ToolCall) -> std::result::Result<Value, String> {
    let name = &call.name;
    callable
        .check(parsed(call)?)
        .map_err(|problems| format!("Invalid arguments for \"{name}\": {}", schema::lines(&problems)))
}

/// The same, unchecked.
pub(crate) fn parsed(call: &ToolCall) -> std::result::Result<Value, String> {
    // Models that call a tool without arguments often send nothing at all.
    let text = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
    let name = &call.name;
    serde_json::from_str(text)
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
        told.insert("error_code".into(), serde_json::json!(error_code));
        told.insert("error_data".into(), serde_json::json!(error_data));
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
pub(crate) fn files_of(
    name: &str,
    result: &mut ToolResult,
) -> std::result::Result<Vec<NewAttachment>, ToolResult> {
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
