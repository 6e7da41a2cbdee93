//! Calls of other tools. A model may choose only tools that its prompt allows, but code may call any tool. So
//! the entry's `options` list the permitted ones: `{ "name": "call_each", "options": { "tools": ["lookup"] }
//! }`.

use serde_json::{Map, Value};

use crate::definitions::message::{ToolResult, ToolStatus};
use crate::json;
use crate::work::native::NativeCall;

/// Maximum number of calls of `call_each`.
const MOST: usize = 100;

/// Queues a call of `tool` with `args`, to be made after the calls of the step.
pub(super) fn call_later(call: &NativeCall) -> ToolResult {
    let tool = match allowed(&call.args, &call.options) {
        Ok(tool) => tool,
        Err(text) => return ToolResult::error(text),
    };
    let args = call.args.get("args").cloned().unwrap_or_else(|| json!({}));
    match call.state.queue_tool(tool, args) {
        Ok(_) => ToolResult::success(format!("\"{tool}\" is called after the calls of this step.")),
        Err(error) => ToolResult::error(error.into_message()),
    }
}

/// Calls `tool` once for each object of arguments in `list`, in order; returns the results, numbered. A
/// failure does not stop the others, and the result is then an error with the number of failures.
pub(super) async fn call_each(call: NativeCall) -> ToolResult {
    let (tool, list) = match allowed(&call.args, &call.options).and_then(|tool| Ok((tool, list(&call.args)?)))
    {
        Ok(wanted) => wanted,
        Err(text) => return ToolResult::error(text),
    };
    let mut results = Vec::with_capacity(list.len());
    for args in list {
        match call.state.invoke_tool(tool, args.clone()).await {
            Ok(result) => results.push(result),
            Err(error) => return ToolResult::error(error.into_message()),
        }
    }
    joined(&results)
}

/// The tool in the arguments, if the entry's options allow it.
fn allowed<'a>(args: &'a Value, options: &Map<String, Value>) -> Result<&'a str, String> {
    let tool = args.get("tool").and_then(Value::as_str).ok_or("tool: required but missing.")?;
    let listed = options.get("tools").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let names: Vec<&str> = listed.iter().filter_map(Value::as_str).collect();
    match names.contains(&tool) {
        true => Ok(tool),
        false if names.is_empty() => Err("No tool may be called here.".to_owned()),
        false => Err(format!("\"{tool}\" may not be called here. Allowed: {}.", names.join(", "))),
    }
}

fn list(args: &Value) -> Result<&[Value], String> {
    let list = args.get("list").and_then(Value::as_array).ok_or("list: required but missing.")?;
    match list.len() {
        0..=MOST => Ok(list),
        more => Err(format!("list: expected at most {MOST} items, got {more}.")),
    }
}

fn joined(results: &[ToolResult]) -> ToolResult {
    let lines: Vec<String> =
        results.iter().enumerate().map(|(at, result)| format!("{}. {}", at + 1, result.text())).collect();
    let failed = results.iter().filter(|result| result.status == ToolStatus::Error).count();
    match failed {
        0 if lines.is_empty() => ToolResult::success("The list is empty: nothing was called."),
        0 => ToolResult::success(lines.join("\n")),
        _ => ToolResult::error(format!("{failed} of {} calls failed.\n{}", lines.len(), lines.join("\n"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_calls_only_what_its_prompt_allows() {
        let allowed = |args: Value, options: Value| {
            let options = options.as_object().cloned().unwrap_or_default();
            allowed(&args, &options).map(str::to_owned)
        };
        let options = json!({ "tools": ["look", "count"] });
        assert_eq!(allowed(json!({ "tool": "look" }), options.clone()), Ok("look".into()));
        for (args, options, text) in [
            (
                json!({ "tool": "pay" }),
                options.clone(),
                "\"pay\" may not be called here. Allowed: look, count.",
            ),
            (json!({}), options, "tool: required but missing."),
            (json!({ "tool": "look" }), json!({}), "No tool may be called here."),
            (json!({ "tool": "look" }), json!({ "tools": "look" }), "No tool may be called here."),
        ] {
            assert_eq!(allowed(args, options), Err(text.into()));
        }
    }

    #[test]
    fn a_list_has_its_limit() {
        let of = |count: usize| json!({ "list": vec![json!({}); count] });
        assert_eq!(list(&of(MOST)).map(<[Value]>::len), Ok(MOST));
        assert_eq!(list(&of(MOST + 1)), Err("list: expected at most 100 items, got 101.".into()));
        assert_eq!(list(&json!({ "list": "x" })), Err("list: required but missing.".into()));
    }

    #[test]
    fn results_are_numbered_and_a_failure_shows() {
        let (fine, bad) = (ToolResult::success("done"), ToolResult::error("no luck"));
        for (results, status, text) in [
            (vec![], ToolStatus::Success, "The list is empty: nothing was called."),
            (vec![fine.clone(), fine.clone()], ToolStatus::Success, "1. done\n2. done"),
            (vec![fine, bad], ToolStatus::Error, "1 of 2 calls failed.\n1. done\n2. no luck"),
        ] {
            let result = joined(&results);
            assert_eq!((result.status, result.text().as_str()), (status, text));
        }
    }
}
