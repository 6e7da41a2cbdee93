//! The outcome of a call for MCP clients: the result of a tool, the messages of a prompt, or the contents of
//! a resource.

use serde_json::Value;

use bobbin_definitions::json;

/// The target of a client's call, which one tool implements.
#[derive(Clone, Debug, PartialEq)]
pub enum CallTarget {
    /// A tool.
    Tool,
    /// A prompt, with its description.
    Prompt(String),
    /// A resource.
    Resource {
        /// Its address.
        uri: String,
        /// The type of its text.
        mime_type: String,
    },
}

/// The outcome: the result of a tool, or the content or error of a prompt or a resource.
///
/// `called` is the thread's record of the call: `{ failed, text, files }`.
///
/// # Errors
/// The call has failed, and the target is not a tool, whose result could say so.
pub fn result(of: &CallTarget, thread: &str, called: &Value) -> Result<Value, String> {
    let text = called.get("text").and_then(Value::as_str).unwrap_or_default();
    let failed = called.get("failed").and_then(Value::as_bool) != Some(false);
    let files = called.get("files").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    match of {
        CallTarget::Tool => Ok(of_tool(thread, text, failed, files)),
        _ if failed => Err(text.to_owned()),
        CallTarget::Prompt(description) => {
            Ok(json!({ "description": description, "messages": messages(thread, text, files) }))
        }
        CallTarget::Resource { uri, mime_type } => Ok(contents(uri, mime_type, text, files)),
    }
}

fn of_tool(thread: &str, text: &str, failed: bool, files: &[Value]) -> Value {
    let mut result = json!({ "content": content(thread, text, files), "isError": failed });
    if let (false, Ok(object @ Value::Object(_)), Some(fields)) =
        (failed, bobbin_definitions::json::from_str(text), result.as_object_mut())
    {
        fields.insert("structuredContent".into(), object);
    }
    result
}

/// Text first, unless there are only files.
fn content(thread: &str, text: &str, files: &[Value]) -> Vec<Value> {
    let text = (!text.is_empty() || files.is_empty()).then(|| json!({ "type": "text", "text": text }));
    text.into_iter().chain(files.iter().map(|file| part(thread, file))).collect()
}

fn part(thread: &str, file: &Value) -> Value {
    let of = |name: &str| file.get(name).and_then(Value::as_str).unwrap_or_default();
    let mime = of("mimeType");
    let kind = mime.split('/').next().unwrap_or_default();
    let uri = file_uri(thread, of("path"));
    match (kind, file.get("data"), file.get("text")) {
        ("image" | "audio", Some(data), _) => json!({ "type": kind, "data": data, "mimeType": mime }),
        (_, None, None) => {
            json!({ "type": "resource_link", "uri": uri, "name": of("name"), "mimeType": mime, "size": file.get("size") })
        }
        _ => json!({ "type": "resource", "resource": embedded(&uri, mime, file) }),
    }
}

/// The address of a thread's file.
pub fn file_uri(thread: &str, path: &str) -> String {
    let path = path.trim_start_matches('/');
    let mut uri = format!("thread://{thread}/files/");
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                uri.push(char::from(byte))
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

fn embedded(uri: &str, mime_type: &str, file: &Value) -> Value {
    match (file.get("text"), file.get("data")) {
        (Some(text), _) => json!({ "uri": uri, "mimeType": mime_type, "text": text }),
        (None, data) => json!({ "uri": uri, "mimeType": mime_type, "blob": data }),
    }
}

/// The tool's own messages, `{ messages: [{ role, content }] }`, or its result as a person's message.
fn messages(thread: &str, text: &str, files: &[Value]) -> Vec<Value> {
    let message = |role: &str, content: Value| json!({ "role": role, "content": content });
    let own = bobbin_definitions::json::from_str::<Value>(text).ok();
    if let Some(Value::Array(own)) = own.as_ref().and_then(|own| own.get("messages")) {
        let own = own.iter().map(|one| {
            let role = if one.get("role").and_then(Value::as_str) == Some("assistant") {
                "assistant"
            } else {
                "user"
            };
            let text = one.get("content").and_then(Value::as_str).unwrap_or_default();
            message(role, json!({ "type": "text", "text": text }))
        });
        return own.chain(files.iter().map(|file| message("user", part(thread, file)))).collect();
    }
    content(thread, text, files).into_iter().map(|part| message("user", part)).collect()
}

fn contents(uri: &str, mime_type: &str, text: &str, files: &[Value]) -> Value {
    let text = (!text.is_empty() || files.is_empty())
        .then(|| json!({ "uri": uri, "mimeType": mime_type, "text": text }));
    let files = files
        .iter()
        .map(|file| embedded(uri, file.get("mimeType").and_then(Value::as_str).unwrap_or_default(), file));
    json!({ "contents": text.into_iter().chain(files).collect::<Vec<_>>() })
}

/// The transcript of a thread, from its messages' rows.
pub fn transcript(rows: &[Value], older: bool) -> String {
    let mut text = if older { "(What was said before is left out.)\n\n".to_owned() } else { String::new() };
    for row in rows {
        let of = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default();
        let (role, content) = (of("role"), of("content"));
        if matches!(role, "user" | "assistant") && !content.is_empty() {
            text.push_str(&format!("## {role}\n\n{content}\n\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called() -> Value {
        json!({ "failed": false, "text": "{\"found\":2}", "files": [
            { "name": "a.png", "mimeType": "image/png", "path": "/a b.png", "size": 3, "data": "AAAA" },
            { "name": "b.txt", "mimeType": "text/plain", "path": "/b.txt", "size": 2, "text": "hi" },
            { "name": "c.zip", "mimeType": "application/zip", "path": "/c.zip", "size": 9000000 },
        ] })
    }

    #[test]
    fn what_a_tool_gives_is_content() {
        let result = result(&CallTarget::Tool, "t", &called()).unwrap();
        let kinds: Vec<&str> =
            result["content"].as_array().unwrap().iter().map(|part| part["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["text", "image", "resource", "resource_link"]);
        assert_eq!(result["structuredContent"], json!({ "found": 2 }));
        assert_eq!(
            result["content"][2]["resource"],
            json!({ "uri": "thread://t/files/b.txt", "mimeType": "text/plain", "text": "hi" })
        );
        assert_eq!(result["content"][3]["uri"], "thread://t/files/c.zip");
        let failed = json!({ "failed": true, "text": "{\"found\":2}", "files": [] });
        let result = super::result(&CallTarget::Tool, "t", &failed).unwrap();
        assert_eq!((&result["isError"], result.get("structuredContent")), (&json!(true), None));
    }

    #[test]
    fn a_prompt_has_messages_and_a_resource_contents() {
        let prompt = CallTarget::Prompt("d".into());
        let made = result(&prompt, "t", &called()).unwrap();
        assert_eq!(made["messages"].as_array().unwrap().len(), 4);
        let own = json!({ "failed": false, "text": "{\"messages\":[{\"role\":\"assistant\",\"content\":\"Well.\"}]}", "files": [] });
        assert_eq!(
            result(&prompt, "t", &own).unwrap()["messages"],
            json!([{ "role": "assistant", "content": { "type": "text", "text": "Well." } }])
        );
        let resource = CallTarget::Resource { uri: "a://b".into(), mime_type: "text/markdown".into() };
        let read = result(&resource, "t", &json!({ "failed": false, "text": "# A", "files": [] })).unwrap();
        assert_eq!(
            read,
            json!({ "contents": [{ "uri": "a://b", "mimeType": "text/markdown", "text": "# A" }] })
        );
        assert_eq!(result(&resource, "t", &json!({ "failed": true, "text": "No." })), Err("No.".to_owned()));
    }
}
