//! OpenAI's conversations: threads, with their messages as items. Items have the same ids as in responses. A
//! page of items never separates a reply from its calls.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::openai::call_id;
use crate::openai::errors::unsupported;
use crate::openai::item_id;
use crate::openai::response_items as items;
use crate::openai::response_request::history_of;
use crate::run_events::{Call, CallResult, calls_of, text_of};
use bobbin_definitions::error::{Code, Error, Result};
use bobbin_definitions::json;

/// The property of a thread with the metadata of OpenAI's clients.
const PROPERTY: &str = "openai";

/// The hint for clients that add an item which would start a run.
const ADD: &str = "Send it as `input` of a response with this `conversation`.";

/// A request for a new conversation.
#[derive(Debug, PartialEq)]
pub struct NewConversation {
    /// The requested agent.
    pub agent: Option<String>,
    /// Properties of the thread.
    pub properties: Value,
    /// Earlier messages, in the form of `history` of a new thread.
    pub history: Vec<Value>,
}

impl NewConversation {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// `bad_json`, `invalid_field`, `unsupported_parameter`.
    pub fn parse(body: &str) -> Result<NewConversation> {
        let fields = object(body)?;
        let metadata = metadata(&fields)?;
        let history = match fields.get("items") {
            None | Some(Value::Null) => Vec::new(),
            Some(items) => history_of(items)?,
        };
        let agent = metadata.get("agent").and_then(Value::as_str).map(str::to_owned);
        Ok(NewConversation { agent, properties: with_metadata(Map::new(), metadata), history })
    }
}

/// The properties of a thread after a request that changes its metadata.
///
/// # Errors
/// `bad_json`, `missing_field`, `invalid_field`.
pub fn changed(body: &str, properties: &Value) -> Result<Value> {
    let fields = object(body)?;
    if !fields.contains_key("metadata") {
        return Err(Error::missing("metadata"));
    }
    let known = properties.as_object().cloned().unwrap_or_default();
    Ok(with_metadata(known, metadata(&fields)?))
}

/// Items that are added without a run: messages of the role `system`, in the form of `POST …/messages`.
///
/// # Errors
/// `bad_json`, `missing_field`, `unsupported_parameter`.
pub fn added(body: &str) -> Result<Vec<Value>> {
    let fields = object(body)?;
    let listed = fields.get("items").ok_or_else(|| Error::missing("items"))?;
    let wrong = |item: &Value| !matches!(text_of(item, "role"), "system" | "developer");
    if let Some(at) = listed.as_array().and_then(|items| items.iter().position(wrong)) {
        let text = "Only what instructs is added by itself; what people say is answered.";
        return Err(unsupported(&format!("items[{at}]"), text).hint(ADD));
    }
    let messages = history_of(listed)?;
    if messages.is_empty() {
        return Err(Error::missing("items"));
    }
    Ok(messages)
}

/// A thread as a conversation. `thread` has the form of `GET /api/threads/:id`.
pub fn conversation(thread: &Value) -> Value {
    let metadata = thread.pointer(&format!("/properties/{PROPERTY}/metadata"));
    json!({
        "id": thread.get("id"), "object": "conversation", "created_at": thread.get("created_at"),
        "metadata": metadata.cloned().unwrap_or_else(|| json!({})),
    })
}

/// The response about a deleted conversation.
pub fn deleted(id: &str) -> Value {
    json!({ "id": id, "object": "conversation.deleted", "deleted": true })
}

/// A message with its items.
#[derive(Debug)]
struct Group {
    /// Its id as an item.
    id: String,
    items: Vec<Value>,
    /// Calls without a result.
    open: usize,
}

/// Settings for making items.
#[derive(Debug)]
pub struct ItemSettings<'a> {
    /// The thread.
    pub thread: &'a str,
    /// Tools that clients run.
    pub client_tools: &'a BTreeSet<String>,
}

impl ItemSettings<'_> {
    /// A page of items, from messages in their order. `more`: there are further messages.
    pub fn page(&self, rows: &[Value], more: bool, newest_first: bool, limit: usize) -> Value {
        let mut groups = self.groups(rows);
        let mut has_more = more;
        // The results of the last one's calls are on the next page, so it moves there too.
        if more && !newest_first && groups.len() > 1 && groups.last().is_some_and(|last| last.open > 0) {
            groups.pop();
        }
        if newest_first {
            groups.reverse();
        }
        let (mut data, mut last) = (Vec::new(), None);
        for mut group in groups {
            if data.len() >= limit {
                has_more = true;
                break;
            }
            if newest_first {
                group.items.reverse();
            }
            data.extend(group.items);
            last = Some(group.id);
        }
        let first = data.first().and_then(|item| item.get("id")).cloned();
        json!({ "object": "list", "data": data, "first_id": first, "last_id": last, "has_more": has_more })
    }

    /// The item of one message.
    pub fn item(&self, row: &Value) -> Option<Value> {
        let group = self.groups(std::slice::from_ref(row)).into_iter().next()?;
        group.items.into_iter().find(|item| item.get("id").and_then(Value::as_str) == Some(group.id.as_str()))
    }

    fn groups(&self, rows: &[Value]) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        let mut pending: Vec<(Call, usize)> = Vec::new();
        for row in rows {
            let id = item_id::of_message("msg", self.thread, text_of(row, "id"));
            let written = row.pointer("/metadata/prompt").is_some();
            match text_of(row, "role") {
                "tool" => {
                    if let (Some(group), Some(result)) = (groups.last_mut(), result_of(row, &mut pending)) {
                        self.close(group, result);
                    }
                }
                "user" if !written => {
                    let items = vec![said(&id, "user", row)];
                    groups.push(Group { id, items, open: 0 });
                }
                "system" => {
                    let items = vec![said(&id, "system", row)];
                    groups.push(Group { id, items, open: 0 });
                }
                _ => groups.push(self.reply(id, row, &mut pending)),
            }
        }
        groups
    }

    fn reply(&self, id: String, row: &Value, pending: &mut Vec<(Call, usize)>) -> Group {
        let calls = calls_of(row);
        let content = text_of(row, "content");
        let mut listed = Vec::new();
        if !content.is_empty() || calls.is_empty() {
            listed.push(items::message(&id, "completed", &[items::text(content)]));
        }
        pending.clear();
        for call in calls {
            listed.push(match self.client_tools.contains(&call.name) {
                true => items::function_call(&call, self.thread, "completed"),
                false => items::server_call(&call, self.thread, None),
            });
            pending.push((call, listed.len() - 1));
        }
        Group { id, items: listed, open: pending.len() }
    }

    /// Adds the result of a call.
    fn close(&self, group: &mut Group, (call, place, result): (Call, usize, CallResult)) {
        group.open = group.open.saturating_sub(1);
        if self.client_tools.contains(&call.name) {
            let id = call_id::told(&call.id, self.thread);
            group.items.push(json!({
                "id": item_id::in_thread(&format!("fco_{}", call.id), self.thread), "type": "function_call_output", "call_id": id, "output": result.text,
                "status": "completed",
            }));
        } else if let Some(item) = group.items.get_mut(place) {
            *item = items::server_call(&call, self.thread, Some(&result));
        }
    }
}

/// The call of a result, its index, and the result.
fn result_of(row: &Value, pending: &mut Vec<(Call, usize)>) -> Option<(Call, usize, CallResult)> {
    let id = text_of(row, "tool_call_id");
    let at = pending.iter().position(|(call, _)| call.id == id)?;
    let (call, place) = pending.remove(at);
    let result = CallResult {
        text: text_of(row, "content").to_owned(),
        failed: text_of(row, "tool_status") == "error",
        wait: row.pointer("/metadata/approval/id").and_then(Value::as_str).map(str::to_owned),
        ..CallResult::default()
    };
    Some((call, place, result))
}

/// A message that was not written by a model.
fn said(id: &str, role: &str, row: &Value) -> Value {
    let text = json!({ "type": "input_text", "text": text_of(row, "content") });
    let files = row.get("attachments").and_then(Value::as_array).into_iter().flatten();
    let files = files.map(|file| json!({ "type": "input_file", "filename": file.get("name") }));
    let content: Vec<Value> = std::iter::once(text).chain(files).collect();
    json!({ "id": id, "type": "message", "role": role, "status": "completed", "content": content })
}

fn object(body: &str) -> Result<Map<String, Value>> {
    if body.is_empty() {
        return Ok(Map::new());
    }
    bobbin_definitions::json::from_str(body)
        .map_err(|error| Error::new(Code::BadJson, format!("The body is no JSON object: {error}.")))
}

fn metadata(fields: &Map<String, Value>) -> Result<Map<String, Value>> {
    match fields.get("metadata") {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(metadata)) if metadata.values().all(Value::is_string) => Ok(metadata.clone()),
        Some(_) => Err(Error::field("metadata", "`metadata` is an object of texts.")),
    }
}

fn with_metadata(mut properties: Map<String, Value>, metadata: Map<String, Value>) -> Value {
    properties.insert(PROPERTY.into(), json!({ "metadata": metadata }));
    Value::Object(properties)
}
