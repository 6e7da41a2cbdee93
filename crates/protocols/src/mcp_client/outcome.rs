//! The meaning of a response to a call: a result, with its files.

use serde_json::{Map, Value};

use crate::mcp_client::elicit::InputRequired;
use crate::mcp_client::reader::RpcError;
use crate::mcp_client::{NO_METHOD, task};
use bobbin_definitions::definitions::message::{ToolResult, ToolStatus};
use bobbin_definitions::json;

/// Maximum characters of a file's name.
const NAME_CHARS: usize = 100;
/// Maximum characters of a media type.
const TYPE_CHARS: usize = 100;

/// The outcome of a call.
#[derive(Debug)]
pub enum Outcome {
    /// Its result.
    Done(Box<ToolResult>),
    /// It needs input from users.
    Input(InputRequired),
    /// It runs as a task: its id, and microseconds until the next poll.
    Task(String, i64),
}

/// Parses the result of `tools/call`.
///
/// # Errors
/// The unknown type of the result.
pub fn of_call(mut result: Map<String, Value>) -> Result<Outcome, String> {
    match result.remove("resultType") {
        None | Some(Value::Null) => {}
        Some(Value::String(kind)) if kind == "complete" => {}
        Some(Value::String(kind)) if kind == "input_required" => {
            return InputRequired::of(&mut result).map(Outcome::Input);
        }
        Some(Value::String(kind)) if kind == "task" => {
            return task::created(result).map(|(id, poll_us)| Outcome::Task(id, poll_us));
        }
        Some(kind) => return Err(format!("a result of the type {kind} was not asked for")),
    }
    Ok(Outcome::Done(Box::new(of_result(result))))
}

/// Converts a result: structured data with texts that add to it, or the texts alone; and the files.
pub fn of_result(mut result: Map<String, Value>) -> ToolResult {
    let is_error = result.get("isError") == Some(&Value::Bool(true));
    let parts = match result.remove("content") {
        Some(Value::Array(parts)) => parts,
        _ => Vec::new(),
    };
    let (mut texts, mut files) = (Vec::new(), Vec::new());
    for part in parts {
        take(part, &mut texts, &mut files);
    }
    let structured = result.remove("structuredContent").filter(|value| !value.is_null());
    let text = texts.join("\n");
    let given = if is_error {
        // Structured data explains the failure when there is no text.
        let said = structured.filter(|_| text.is_empty()).map_or(text, |value| value.to_string());
        ToolResult::error(if said.is_empty() {
            "The tool failed, and did not say why.".to_owned()
        } else {
            said
        })
    } else {
        match structured {
            Some(value) => with_texts(value, texts),
            None => ToolResult::success(text),
        }
    };
    ToolResult { attachments: files, ..given }
}

/// Structured data for code, and additional texts for the model.
fn with_texts(value: Value, mut texts: Vec<String>) -> ToolResult {
    let said = said_by(&value);
    texts.retain(|text| {
        let text = text.trim();
        let is_said = |text: &str| said.binary_search_by(|known| known.as_str().cmp(text)).is_ok();
        let as_json = || bobbin_definitions::json::from_str::<Value>(text).ok();
        !is_said(text) && !as_json().is_some_and(|json| json == value || is_said(&json.to_string()))
    });
    // Servers in Go send an empty object for no structured data.
    if !texts.is_empty() && value.as_object().is_some_and(Map::is_empty) {
        return ToolResult::success(texts.join("\n"));
    }
    if !texts.is_empty() {
        texts.insert(0, value.to_string());
    }
    let content = texts.into_iter().map(|text| json!({ "type": "text", "text": text })).collect();
    ToolResult { result: Some(value), content, ..ToolResult::success("") }
}

/// Texts that only repeat a structured result, sorted: all of it, a field, an item of a list, any string in
/// it. Servers in Python send each item of a list as a separate text, beside `{ "result": [...] }`.
fn said_by(value: &Value) -> Vec<String> {
    let mut said = vec![String::new(), value.to_string()];
    let mut below: Vec<(&Value, usize)> = vec![(value, 0)];
    while let Some((value, depth)) = below.pop() {
        match value {
            Value::String(text) => said.push(text.trim().to_owned()),
            // The whole is included already. Deeper values are only repeated as part of an item.
            _ if depth == 1 || depth == 2 => said.push(value.to_string()),
            _ => {}
        }
        match value {
            Value::Array(items) => below.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(fields) => below.extend(fields.values().map(|field| (field, depth + 1))),
            _ => {}
        }
    }
    said.sort_unstable();
    said
}

/// Reads one part of the content: a text, or a file.
fn take(part: Value, texts: &mut Vec<String>, files: &mut Vec<Value>) {
    let Value::Object(mut part) = part else { return };
    let kind = text(&mut part, "type").unwrap_or_default();
    match kind.as_str() {
        "text" => texts.extend(text(&mut part, "text")),
        "image" | "audio" => {
            let name = format!("{kind}-{}", files.len() + 1);
            files.extend(file(&mut part, "data", name));
        }
        "resource" => {
            let Some(Value::Object(mut resource)) = part.remove("resource") else { return };
            let name = text(&mut resource, "uri").unwrap_or_default();
            match text(&mut resource, "text") {
                Some(content) => texts.push(content),
                None => files.extend(file(&mut resource, "blob", file_name(&name, files.len() + 1))),
            }
        }
        "resource_link" => {
            let (name, uri) = (text(&mut part, "name"), text(&mut part, "uri").unwrap_or_default());
            let about = text(&mut part, "description").map(|about| format!(" ({about})")).unwrap_or_default();
            texts.push(name.map_or_else(|| format!("{uri}{about}"), |name| format!("{name}: {uri}{about}")));
        }
        _ => {
            part.insert("type".into(), kind.into());
            texts.push(Value::Object(part).to_string());
        }
    }
}

fn text(fields: &mut Map<String, Value>, name: &str) -> Option<String> {
    match fields.remove(name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// A file in the form of an attachment. `field` has its content in base64.
fn file(part: &mut Map<String, Value>, field: &str, name: String) -> Option<Value> {
    let data = text(part, field)?;
    let kind = text(part, "mimeType").filter(|kind| {
        let fine = |c: char| c.is_ascii_alphanumeric() || "/+-.;=_ ".contains(c);
        !kind.is_empty() && kind.len() <= TYPE_CHARS && kind.chars().all(fine)
    });
    let kind = kind.unwrap_or_else(|| "application/octet-stream".to_owned());
    // Subtypes are used as file extensions: `image/png`.
    let ending: String = kind
        .split_once('/')
        .map(|(_, ending)| ending.chars().take_while(char::is_ascii_alphanumeric).take(8).collect())
        .unwrap_or_default();
    let name = match (name.contains('.'), ending.as_str()) {
        (true, _) | (_, "" | "octet") => name,
        (false, ending) => format!("{name}.{ending}"),
    };
    Some(json!({ "name": name, "mimeType": kind, "data": data }))
}

/// A file name for a server's URI.
fn file_name(uri: &str, place: usize) -> String {
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    let last = path.rsplit('/').next().unwrap_or_default();
    let fine = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let name: String = last.chars().map(fine).take(NAME_CHARS).collect();
    match name.trim_matches(['.', '_']) {
        "" => format!("resource-{place}"),
        name => name.to_owned(),
    }
}

/// Whether an error says that the server has no such tool. The code alone is not enough, because tools use
/// any code.
pub fn is_missing(error: &RpcError, tool: &str) -> bool {
    match error.code {
        NO_METHOD => !error.asked && says_unknown(&error.message.to_lowercase()),
        -32602 => says_missing(&error.message, tool),
        _ => false,
    }
}

/// Like `is_missing`, for an error result, which some servers send instead.
pub fn result_is_missing(result: &ToolResult, tool: &str) -> bool {
    let text = result.error.as_deref().unwrap_or_default();
    result.status == ToolStatus::Error
        && text.len() < 512
        && (text.starts_with("MCP error -32602") || text.starts_with("Unknown tool"))
        && says_missing(text, tool)
}

fn says_missing(text: &str, tool: &str) -> bool {
    let text = text.to_lowercase();
    says_unknown(&text) && text.contains(&tool.to_lowercase())
}

/// `text` is in lower case.
fn says_unknown(text: &str) -> bool {
    let phrases = ["not found", "unknown tool", "unknown method", "no such", "there is no", "does not exist"];
    phrases.iter().any(|phrase| text.contains(phrase))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(result: Value) -> ToolResult {
        match of_call(result.as_object().unwrap().clone()).unwrap() {
            Outcome::Done(result) => *result,
            other => panic!("{other:?}"),
        }
    }

    fn content(parts: Value) -> ToolResult {
        done(json!({ "content": parts }))
    }

    #[test]
    fn texts_are_joined_and_what_is_structured_is_the_result() {
        let text = |text: &str| json!({ "type": "text", "text": text });
        assert_eq!(content(json!([text("a"), text("b")])).text(), "a\nb");
        assert_eq!(content(json!([])).text(), "");
        assert_eq!(done(json!({ "resultType": "complete", "content": [] })).text(), "");
        let structured = done(json!({ "content": [text("{ \"n\": 1 }")], "structuredContent": { "n": 1 } }));
        assert_eq!((structured.text(), structured.status), ("{\"n\":1}".to_owned(), ToolStatus::Success));
        let failed =
            done(json!({ "content": [text("no")], "isError": true, "structuredContent": { "n": 1 } }));
        assert_eq!((failed.text(), failed.status), ("no".to_owned(), ToolStatus::Error));
        assert_eq!(done(json!({ "isError": true, "structuredContent": { "n": 1 } })).text(), "{\"n\":1}");
        assert!(done(json!({ "isError": true })).text().contains("did not say why"));
    }

    #[test]
    fn texts_beside_what_is_structured_are_read_where_they_say_more() {
        let read = |structured: Value, content: Value| {
            let result = done(json!({ "content": content, "structuredContent": structured }));
            (result.text(), result.result.unwrap())
        };
        let text = |text: &str| json!({ "type": "text", "text": text });
        let link = json!({ "type": "resource_link", "uri": "file:///c", "name": "c" });
        let more = json!([text("Found 2 rows. Ask for page 2."), text("{\"count\":2}"), link]);
        let count = json!({ "count": 2 });
        assert_eq!(
            read(count.clone(), more),
            ("{\"count\":2}\nFound 2 rows. Ask for page 2.\nc: file:///c".to_owned(), count)
        );
        // Go's SDK; the Python package `mcp` 2.3.0 with a text, a number and a list; an agent of another
        // deployment.
        assert_eq!(read(json!({}), json!([text("All is well.")])).0, "All is well.");
        for (structured, texts) in [
            (json!({ "result": "You said: hi\n" }), json!([text("You said: hi")])),
            (json!({ "result": 3 }), json!([text("3")])),
            (json!({ "result": [{ "a": 1 }, "b"] }), json!([text("{\n  \"a\": 1\n}"), text("b"), text("")])),
            (json!({ "b": 1, "a": 2 }), json!([text("{\"a\":2,\"b\":1}")])),
            (json!({ "thread": "t", "reply": "Done." }), json!([text("Done.")])),
        ] {
            assert_eq!(read(structured.clone(), texts).0, structured.to_string());
        }
    }

    #[test]
    fn images_and_resources_are_files_and_links_are_texts() {
        let result = content(json!([
            { "type": "image", "data": "aW1n", "mimeType": "image/png" },
            { "type": "audio", "data": "c25k", "mimeType": "audio/wav" },
            { "type": "resource", "resource": { "uri": "file:///a/my report.pdf?x", "mimeType": "application/pdf", "blob": "cGRm" } },
            { "type": "resource", "resource": { "uri": "https://a.example/", "blob": "eA==" } },
            { "type": "resource", "resource": { "uri": "file:///b.txt", "text": "inside" } },
            { "type": "resource_link", "uri": "file:///c", "name": "c", "description": "more" },
            { "type": "resource_link", "uri": "file:///d" },
            { "type": "hologram", "x": 1 },
            { "type": "image", "mimeType": "image/png" },
            "loose",
        ]));
        let named: Vec<(&str, &str, &str)> = result
            .attachments
            .iter()
            .map(|file| {
                let text = |name: &str| file[name].as_str().unwrap();
                (text("name"), text("mimeType"), text("data"))
            })
            .collect();
        assert_eq!(
            named,
            [
                ("image-1.png", "image/png", "aW1n"),
                ("audio-2.wav", "audio/wav", "c25k"),
                ("my_report.pdf", "application/pdf", "cGRm"),
                ("resource-4", "application/octet-stream", "eA=="),
            ]
        );
        let text = result.text();
        let lines: Vec<&str> = text.split('\n').collect();
        assert_eq!(lines[..3], ["inside", "c: file:///c (more)", "file:///d"]);
        assert!(lines[3].contains("hologram"));
    }

    #[test]
    fn names_and_kinds_of_files_hold_nothing_odd() {
        let of = |uri: &str, kind: &str| {
            let resource = json!({ "uri": uri, "mimeType": kind, "blob": "eA==" });
            let result = content(json!([{ "type": "resource", "resource": resource }]));
            let file = result.attachments[0].clone();
            (file["name"].as_str().unwrap().to_owned(), file["mimeType"].as_str().unwrap().to_owned())
        };
        assert_eq!(of("x:///../..", "a\r\nb"), ("resource-1".into(), "application/octet-stream".into()));
        assert_eq!(of("x:/\u{1b}[2J", &"x".repeat(200)), ("2J".into(), "application/octet-stream".into()));
        assert_eq!(of(&"é".repeat(300), "image/svg+xml").0, "resource-1.svg");
    }

    #[test]
    fn an_unknown_type_of_result_is_none() {
        for kind in ["task", "input_required", "later"] {
            assert!(of_call(json!({ "resultType": kind }).as_object().unwrap().clone()).is_err(), "{kind}");
        }
    }

    #[test]
    fn a_tool_that_is_not_there_is_told_from_one_that_fails() {
        let error = |code, message: &str| RpcError { code, message: message.into(), ..RpcError::default() };
        assert!(is_missing(&error(-32602, "Unknown tool: find"), "find"));
        assert!(is_missing(&error(-32602, "Tool find not found"), "find"));
        assert!(is_missing(&error(-32601, "Method not found"), "find"));
        assert!(!is_missing(&RpcError { asked: true, ..error(-32601, "Method not found") }, "find"));
        for said in ["The account is closed", "This client does not offer that.", ""] {
            assert!(!is_missing(&error(-32601, said), "find"), "{said}");
        }
        // server-everything 2026.8.31, for a tool that supports only tasks.
        assert!(!is_missing(&error(-32601, "Tool find requires task augmentation"), "find"));
        assert!(!is_missing(&error(-32602, "Invalid arguments for find"), "find"));
        assert!(!is_missing(&error(-32603, "find not found"), "find"));
        assert!(result_is_missing(&ToolResult::error("MCP error -32602: Tool find not found"), "find"));
        assert!(!result_is_missing(&ToolResult::error("The file find was not found"), "find"));
        assert!(!result_is_missing(&ToolResult::success("Unknown tool: find"), "find"));
    }
}
