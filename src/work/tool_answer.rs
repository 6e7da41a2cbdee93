//! The meaning of the response of a tool that is not native: a `ToolResult`, or a text.

use serde_json::Value as Json;

use crate::definitions::message::ToolResult;
use crate::json;

/// The fields of a [`ToolResult`] that a tool may set.
const FIELDS: [&str; 9] = [
    "status",
    "result",
    "error",
    "error_code",
    "error_data",
    "stack",
    "content",
    "attachments",
    "subagent_id",
];

/// Converts a response to a result. `text` is the response as JSON, for the model.
///
/// Many APIs wrap their responses, as JSend does: `{ "status": "success", "data": … }`. So an object is a
/// [`ToolResult`] only if it has no other fields and each has its type. Any other object becomes the text of
/// the result, so that nothing in it is lost; `"status": "error"` makes it an error.
pub(super) fn tool_result(answer: &Json, text: String) -> ToolResult {
    if let Json::String(text) = answer {
        return ToolResult::success(text.as_str());
    }
    let of_ours = || json::from_str(&text).ok();
    if has_only_our_fields(answer)
        && let Some(result) = of_ours()
    {
        return result;
    }
    match answer.get("status").and_then(Json::as_str) {
        Some("error") => ToolResult::error(text),
        _ => ToolResult::success(text),
    }
}

/// The types of the other fields are checked when they are parsed.
fn has_only_our_fields(answer: &Json) -> bool {
    let Json::Object(fields) = answer else { return false };
    let is_file =
        |file: &Json| ["path", "data"].iter().any(|name| file.get(*name).is_some_and(Json::is_string));
    let files = fields.get("attachments").and_then(Json::as_array);
    fields.keys().all(|name| FIELDS.contains(&name.as_str()))
        && files.is_none_or(|files| files.iter().all(is_file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definitions::message::ToolStatus;

    fn read(answer: &Json) -> ToolResult {
        tool_result(answer, answer.to_string())
    }

    #[test]
    fn an_object_with_our_fields_alone_is_a_result() {
        for (answer, status, text) in [
            (json!({ "status": "success", "result": "done" }), ToolStatus::Success, "done"),
            (
                json!({ "status": "success", "result": { "a": 1 }, "error": null }),
                ToolStatus::Success,
                "{\"a\":1}",
            ),
            (json!({ "status": "success" }), ToolStatus::Success, ""),
            (json!({ "status": "error", "error": "no", "error_code": "x" }), ToolStatus::Error, "no"),
            (
                json!({ "status": "success", "content": [{ "type": "text", "text": "a" }] }),
                ToolStatus::Success,
                "a",
            ),
            (
                json!({ "status": "success", "result": "b", "attachments": [{ "path": "/a" }] }),
                ToolStatus::Success,
                "b",
            ),
        ] {
            let result = read(&answer);
            assert_eq!((result.status, result.text().as_str()), (status, text), "{answer}");
        }
    }

    #[test]
    fn nothing_of_any_other_object_is_lost() {
        for (answer, status) in [
            (json!({ "status": "success", "data": { "temperature": 21 } }), ToolStatus::Success),
            (json!({ "status": "success", "result": "a", "total": 3 }), ToolStatus::Success),
            (json!({ "status": "success", "content": "a text" }), ToolStatus::Success),
            (
                json!({ "status": "success", "attachments": [{ "url": "http://a.example" }] }),
                ToolStatus::Success,
            ),
            (json!({ "status": "error", "message": "No such city" }), ToolStatus::Error),
            (json!({ "status": "error", "error": { "reason": "No such city" } }), ToolStatus::Error),
            (json!({ "status": "success", "stored": [] }), ToolStatus::Success),
            (json!({ "status": "fail", "data": null }), ToolStatus::Success),
            (json!({ "status": 200 }), ToolStatus::Success),
            (json!({ "error": "no status" }), ToolStatus::Success),
            (json!([1, 2]), ToolStatus::Success),
        ] {
            let result = read(&answer);
            assert_eq!((result.status, result.text()), (status, answer.to_string()));
        }
        assert_eq!(read(&json!("a text")).text(), "a text");
    }
}
