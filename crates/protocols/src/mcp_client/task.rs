//! Long-running calls (`io.modelcontextprotocol/tasks`): the server returns a task, which is polled.

use serde_json::{Map, Value};

use crate::mcp_client::ask::Ask;
use crate::mcp_client::elicit::{InputRequest, InputRequired};
use crate::mcp_client::reader::{RpcError, rpc_error};
use bobbin_definitions::json;
use bobbin_definitions::limits;

/// Maximum bytes of a task's id.
const ID_BYTES: usize = 512;

/// The state of a task.
#[derive(Debug, PartialEq)]
pub enum Progress {
    /// Running; the value is the microseconds until the next poll.
    Working(i64),
    /// Waiting for input from users.
    Input(Vec<InputRequest>, i64),
    /// Complete, with the result of the call.
    Completed(Map<String, Value>),
    /// Failed.
    Failed(RpcError),
    /// Cancelled.
    Cancelled,
}

/// The task in a response to a call: its id, and microseconds until the first poll.
///
/// # Errors
/// It has no id.
pub fn created(mut result: Map<String, Value>) -> Result<(String, i64), String> {
    let poll_us = poll_us(&result);
    match result.remove("taskId") {
        Some(Value::String(id)) if !id.is_empty() && id.len() <= ID_BYTES => Ok((id, poll_us)),
        _ => Err("a task has no name".to_owned()),
    }
}

/// Parses the result of `tasks/get`.
///
/// # Errors
/// The reason why it is invalid.
pub fn progress(mut task: Map<String, Value>) -> Result<Progress, String> {
    let poll_us = poll_us(&task);
    let status = task.get("status").and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(match status.as_str() {
        "working" => Progress::Working(poll_us),
        "input_required" => Progress::Input(InputRequired::asked(task.remove("inputRequests"))?, poll_us),
        "completed" => match task.remove("result") {
            Some(Value::Object(result)) => Progress::Completed(result),
            _ => return Err("a task that is completed has no result".to_owned()),
        },
        "failed" => Progress::Failed(task.remove("error").and_then(rpc_error).unwrap_or_default()),
        "cancelled" => Progress::Cancelled,
        other => return Err(format!("a task has the status `{other}`")),
    })
}

/// The server's poll interval, within bounds.
fn poll_us(task: &Map<String, Value>) -> i64 {
    let ms = task.get("pollIntervalMs").and_then(Value::as_f64).unwrap_or(0.0);
    let us = (ms * 1000.0).clamp(0.0, 1e15) as i64;
    let us = if us == 0 { limits::MCP_POLL_US } else { us };
    us.clamp(limits::SECOND_US, limits::MCP_POLL_MAX_US)
}

fn about(method: &'static str, id: &str) -> Ask {
    let mut params = Map::new();
    params.insert("taskId".into(), id.into());
    Ask { name: Some(id.to_owned()), ..Ask::of(method, params) }
}

/// Polls a task.
pub fn get(id: &str) -> Ask {
    about("tasks/get", id)
}

/// Sends the users' answers.
pub fn update(id: &str, responses: Value) -> Ask {
    let mut ask = about("tasks/update", id);
    ask.params.insert("inputResponses".into(), responses);
    ask
}

/// Cancels a task.
pub fn cancel(id: &str) -> Ask {
    about("tasks/cancel", id)
}

/// The capability of a client that supports tasks.
pub fn capability() -> Value {
    json!({ "io.modelcontextprotocol/tasks": {} })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_task_is_asked_for_as_often_as_its_server_wishes_within_bounds() {
        for (ms, us) in [
            (json!(null), limits::MCP_POLL_US),
            (json!(1), limits::SECOND_US),
            (json!(5000), 5_000_000),
            (json!(1e18), limits::MCP_POLL_MAX_US),
            (json!(-5), limits::MCP_POLL_US),
        ] {
            let task = of(json!({ "taskId": "t", "status": "working", "pollIntervalMs": ms }));
            assert_eq!(created(task.clone()), Ok(("t".to_owned(), us)), "{ms}");
            assert_eq!(progress(task), Ok(Progress::Working(us)), "{ms}");
        }
        assert!(created(of(json!({ "status": "working" }))).is_err());
    }

    #[test]
    fn how_far_a_task_is_is_read_by_its_status() {
        let task = |more: Value| {
            let mut task = of(json!({ "taskId": "t" }));
            task.extend(of(more));
            progress(task)
        };
        assert_eq!(
            task(json!({ "status": "completed", "result": { "content": [] } })),
            Ok(Progress::Completed(of(json!({ "content": [] }))))
        );
        assert!(
            matches!(task(json!({ "status": "failed", "error": { "code": -32603, "message": "no" } })), Ok(Progress::Failed(error)) if error.code == -32603)
        );
        assert_eq!(task(json!({ "status": "cancelled" })), Ok(Progress::Cancelled));
        let form =
            json!({ "method": "elicitation/create", "params": { "message": "?", "requestedSchema": {} } });
        assert!(
            matches!(task(json!({ "status": "input_required", "inputRequests": { "a": form } })), Ok(Progress::Input(asked, _)) if asked.len() == 1)
        );
        assert!(task(json!({ "status": "completed" })).is_err());
        assert!(task(json!({ "status": "asleep" })).is_err());
    }

    #[test]
    fn requests_about_a_task_name_it() {
        for (ask, method) in [
            (get("t"), "tasks/get"),
            (update("t", json!({ "a": {} })), "tasks/update"),
            (cancel("t"), "tasks/cancel"),
        ] {
            assert_eq!((ask.method, ask.name.as_deref()), (method, Some("t")));
            assert_eq!(ask.params["taskId"], "t");
        }
        assert_eq!(update("t", json!({ "a": {} })).params["inputResponses"], json!({ "a": {} }));
    }
}
