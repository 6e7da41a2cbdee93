//! `execute_code`: a model's own code, with the prompt's other tools as functions (docs/run-code.md). Every
//! limit is enforced on this side; claims of the code are ignored.
//!
//! * `settings`: its limits; `limit_exceeded`: errors of limits. `declarations`: tools as TypeScript.
//!   `files`: files for a model's code.

pub(crate) mod declarations;
mod files;
mod limit_exceeded;

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use futures::future::{Either, select};
use futures::lock::Mutex;
use serde_json::{Map, Value as Json};

use crate::definitions::execute_code::NAME;
use crate::definitions::execute_code_options::Settings;
use crate::definitions::message::{ToolResult, ToolStatus};
use crate::json;
use crate::limits;
use crate::sandbox::{
    CodeError, CodeHandle, CodeResult, Exception, Form, Function, Log, Options, Status, Value,
};
use crate::sdk::ThreadState;
use crate::work::native::NativeCall;
use crate::work::native::tools::execute::limit_exceeded::LimitKind;

const FILENAME: &str = "code.ts";
/// The error of code that returned a function.
const NOT_CALLED: &str =
    "The code returned a function, which nothing has called. Call it: `return await main()`.";
/// The note for code that succeeded without any effect.
const NO_TRACE: &str = "The code ended without a result, without output, and without a call of a tool. Use `return` for the result.";
/// Bytes reserved for field names and notes.
const OUTPUT_REST: usize = 1024;

/// Runs the code of a call.
pub(super) async fn execute_code(call: NativeCall) -> ToolResult {
    let Some(code) = call.args.get("code").and_then(Json::as_str) else {
        return ToolResult::error("code: required but missing.");
    };
    let settings = match Settings::of(&call.options) {
        Ok(settings) => settings,
        Err(wrong) => {
            let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
            return ToolResult::error(format!("execute_code is not set up: {}", wrong.join("; ")));
        }
    };
    if code.len() as u64 > settings.max_code_size {
        let over = LimitKind::CodeSize(code.len());
        return over.result(over.text(&settings));
    }
    let offered = match call.state.offered() {
        Ok(names) => names,
        Err(error) => return ToolResult::error(error.into_message()),
    };
    let running = Rc::new(CodeCall {
        state: call.state.clone(),
        settings,
        calls: RefCell::default(),
        in_order: Mutex::new(()),
        over: Cell::new(None),
        execution: RefCell::default(),
    });
    let web = call.state.web(code, running.settings.allowed_hosts.clone());
    let source = format!("{}\n{}", unfenced(code), web.imports);
    let options = Options {
        form: Form::Body,
        filename: FILENAME.to_owned(),
        modules: web.modules,
        awaits_calls: true,
        ..Options::default()
    }
    .global("tools", running.tools(&offered))
    .global("files", files::door(&call.state, &running.settings.working_directory))
    .global(web.global.0, web.global.1);
    let execution = Rc::new(call.state.run_code(&source, options));
    *running.execution.borrow_mut() = Rc::downgrade(&execution);
    let limit_ms = running.settings.code_timeout_ms;
    let result = match select(execution.result(), (call.sleep)(limit_ms as i64 * 1_000)).await {
        Either::Left((result, time)) => {
            // Wait for calls that the code did not await, so that their outcome is known.
            if result.status == Status::Success
                && matches!(select(Box::pin(execution.calls_ended()), time).await, Either::Right(_))
            {
                running.end(LimitKind::Time);
            }
            result
        }
        Either::Right(((), result)) => {
            running.end(LimitKind::Time);
            result.await
        }
    };
    running.tool_result(&result)
}

struct CodeCall {
    state: ThreadState,
    settings: Settings,
    /// Names and outcomes, in order.
    calls: RefCell<Vec<Json>>,
    in_order: Mutex<()>,
    /// The limit that ended the code.
    over: Cell<Option<LimitKind>>,
    /// Weak: the sandbox holds these functions, and the code must end with the call that waits for it.
    execution: RefCell<Weak<CodeHandle>>,
}

impl CodeCall {
    fn tools(self: &Rc<Self>, offered: &[String]) -> Value {
        let function = |name: &String| {
            let (running, name) = (self.clone(), name.clone());
            let function = Function::new(&name.clone(), move |args| {
                let (running, name) = (running.clone(), name.clone());
                Box::pin(async move { running.call(&name, args).await })
            });
            (function.name().to_owned(), function.into())
        };
        Value::Object(offered.iter().filter(|name| *name != NAME).map(function).collect())
    }

    /// Ends the code; returns the reason.
    fn end(&self, over: LimitKind) -> String {
        let text = over.text(&self.settings);
        self.over.set(Some(over));
        if let Some(execution) = self.execution.borrow().upgrade() {
            execution.terminate(&text);
        }
        text
    }

    /// Makes a call of a tool: with a receipt, one at a time.
    async fn call(&self, name: &str, args: Vec<Value>) -> Result<Value, Exception> {
        if self.calls.borrow().len() as u64 >= self.settings.max_tool_calls {
            return Err(Exception::new(self.end(LimitKind::ToolCalls)));
        }
        let place = self.calls.borrow().len();
        self.calls.borrow_mut().push(json!({ "name": name, "status": "running" }));
        let _turn = self.in_order.lock().await;
        let args = args.into_iter().next().and_then(|args| args.to_json()).unwrap_or_else(|| json!({}));
        let result = self.state.invoke_tool(name, args).await?;
        if let Some(call) = self.calls.borrow_mut().get_mut(place) {
            *call = json!({ "name": name, "status": if result.status == ToolStatus::Success { "success" } else { "error" } });
        }
        match (result.status, &result.error_code) {
            (ToolStatus::Success, _) => Ok(Value::String(result.text())),
            (ToolStatus::Error, Some(code)) => {
                Err(Exception::new(format!("{}: {code}: {}", name, result.text())))
            }
            (ToolStatus::Error, None) => Err(Exception::new(format!("{name}: {}", result.text()))),
        }
    }

    /// The result for the model. An exceeded limit is an error, even if the code caught it.
    fn tool_result(&self, ended: &CodeResult) -> ToolResult {
        let over = self.over.get();
        let (status, error) = match (over, &ended.error, &ended.result) {
            (_, Some(error), _) => (ended.status, Some(CodeError { stack: None, ..error.clone() })),
            (Some(over), None, _) => {
                (Status::Terminated, Some(CodeError::new("Terminated", over.text(&self.settings))))
            }
            (None, None, Value::Function(_)) => {
                (Status::Error, Some(CodeError::new("TypeError", NOT_CALLED)))
            }
            (None, None, _) => (ended.status, None),
        };
        let mut result = Map::new();
        result.insert("status".to_owned(), status.as_str().into());
        if let Some(error) = &error {
            result.insert("error".to_owned(), self.state.redact_json(json!(error)));
        }
        let calls = self.calls.borrow();
        if !calls.is_empty() {
            result.insert("toolCalls".to_owned(), Json::Array(calls.clone()));
        }
        // The whole result must fit into a message.
        let rest = Json::Object(result.clone()).to_string().len() + OUTPUT_REST;
        let most = usize::try_from(self.settings.max_output_size).unwrap_or(usize::MAX);
        let mut room = most.min(limits::CONTENT_BYTES.saturating_sub(rest));
        if status == Status::Success
            && let Some(value) = ended.result.to_json()
        {
            result.insert("result".to_owned(), cut(self.state.redact_json(value), &mut room));
        }
        let output = printed(ended);
        if error.is_none() && output.is_empty() && calls.is_empty() && !result.contains_key("result") {
            result.insert("note".to_owned(), NO_TRACE.into());
        }
        if !output.is_empty() {
            result.insert("output".to_owned(), cut(Json::String(self.state.redact(output)), &mut room));
        }
        let text = Json::Object(result).to_string();
        match (over, status) {
            (Some(over), _) => over.result(text),
            (None, Status::Success) => ToolResult::success(text),
            (None, _) => ToolResult::error(text),
        }
    }
}

/// Removes a Markdown fence around the code. Line numbers stay the same.
fn unfenced(code: &str) -> Cow<'_, str> {
    let inner = code.trim().strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    match inner.and_then(|inner| inner.split_once('\n')) {
        Some((language, inner)) if language.trim().chars().all(|char| char.is_ascii_alphanumeric()) => {
            let before = code.split("```").next().unwrap_or_default().matches('\n').count();
            Cow::Owned(format!("{}\n{inner}", "\n".repeat(before)))
        }
        _ => Cow::Borrowed(code),
    }
}

/// The console output, one line each.
fn printed(ended: &CodeResult) -> String {
    let line = |log: &Log| match log.level.as_str() {
        "log" | "info" | "debug" => log.text(),
        level => format!("[{level}] {}", log.text()),
    };
    let mut lines: Vec<String> = ended.logs.iter().map(line).collect();
    if ended.logs_cut {
        lines.push("[More was printed than is kept.]".to_owned());
    }
    lines.join("\n")
}

/// Cuts a value to the remaining room, as JSON for the model. A cut value becomes text with a note.
fn cut(value: Json, room: &mut usize) -> Json {
    let json = value.to_string();
    if json.len() <= *room {
        *room -= json.len();
        return value;
    }
    let text = match value {
        Json::String(text) => text,
        _ => json,
    };
    // Without the quotes.
    let mut left = room.saturating_sub(2);
    let fits = |char: &char| {
        let bytes = escaped(*char);
        let fits = bytes <= left;
        left = left.saturating_sub(bytes);
        fits
    };
    let kept: String = text.chars().take_while(fits).collect();
    *room = 0;
    Json::String(format!("{kept}\n[Cut off here: {} bytes in all (maxOutputSize).]", text.len()))
}

/// Bytes of a character in a JSON string.
fn escaped(char: char) -> usize {
    match char {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        other => other.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_taken_off() {
        for (code, taken) in [
            ("return 1", "return 1"),
            ("```ts\nreturn 1\n```", "\nreturn 1\n"),
            ("\n```\nreturn `a`\n```\n", "\n\nreturn `a`\n"),
            ("```typescript \r\nreturn 1```", "\nreturn 1"),
            ("```return 1```", "```return 1```"),
            ("``` a b\n```", "``` a b\n```"),
        ] {
            assert_eq!(unfenced(code), taken);
        }
    }

    #[test]
    fn what_is_too_long_is_cut_as_it_is_written() {
        for text in ["x".repeat(3000), "\u{1}".repeat(3000), "\"\n".repeat(1500), "\u{1f9f5}".repeat(900)] {
            for room in [0, 1, 7, 100, 1999] {
                let mut left = room;
                let Json::String(kept) = cut(Json::String(text.clone()), &mut left) else { panic!("a text") };
                let (kept, note) = kept.split_once("\n[Cut").unwrap();
                assert!(Json::from(kept).to_string().len() <= room.max(2), "{room}: {kept}");
                assert!(text.starts_with(kept) && note.contains(&format!(" {} bytes", text.len())), "{note}");
            }
        }
        let mut room = 10;
        assert_eq!(cut(json!([1, 2]), &mut room), json!([1, 2]));
        assert_eq!(cut(json!("é"), &mut room), json!("é"));
        assert_eq!(room, 1);
    }
}
