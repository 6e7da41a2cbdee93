//! Messages of a thread of another deployment, sent with the request that creates its copy. They are whole
//! messages with calls and results, and each keeps its number. They are stored in the transaction that
//! creates the thread, and do not start a run.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::api::Api;
use crate::definitions::message::{Role, ToolCall, ToolStatus};
use crate::definitions::opaque::Opaque;
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::limits;
use crate::request::fields::{Body, bounded};
use crate::store::attachment::AttachmentRef;
use crate::store::file_path::FilePath;
use crate::store::fork::{Fork, ForkState};
use crate::store::messages::{Inbound, Row};
use crate::store::state::State;

/// Fields of a message, as in `GET …/messages`. Fields about subagents refer to those of the other thread.
const MESSAGE: &[&str] = &[
    "id",
    "role",
    "content",
    "name",
    "tool_calls",
    "tool_call_id",
    "tool_status",
    "created_at",
    "parent_id",
    "depth",
    "silent",
    "metadata",
    "attachments",
];

/// Maximum length of the name of a thread in another deployment, bytes.
const NAME_BYTES: usize = 255;

/// Maximum number of calls in a message: more than a model's reply has, because hooks may add some.
const CALLS: usize = 1_024;

/// The content with which a copy begins.
#[derive(Debug)]
pub(crate) struct ImportedMessages {
    /// The source thread, and the message up to which it was copied.
    pub(super) fork: Fork,
    rows: Vec<Row>,
}

/// Parses the `history` of a request whose `copied_from` names the source thread.
///
/// # Errors
/// `invalid_field`, `too_large`: each names the field.
pub(crate) fn copied(body: &mut Body, from: String, now: i64) -> Result<ImportedMessages> {
    if from.is_empty() || from.len() > NAME_BYTES || from.chars().any(char::is_control) {
        return Err(Error::field("copied_from", "`copied_from` is the id of a thread."));
    }
    let list = match body.take("history") {
        None => Vec::new(),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(Error::field("history", "`history` must be a list of messages.")),
    };
    let mut rows: Vec<Row> = Vec::new();
    let mut bytes = 0;
    let mut calls = ImportedCalls::default();
    let mut last = None;
    for (at, message) in list.into_iter().enumerate() {
        let Value::Object(fields) = message else {
            return Err(wrong(at, "", "A message of `history` is an object."));
        };
        let (row, id) = message_of(fields, at, now)?;
        if rows.last().is_some_and(|before| before.seq >= row.seq) {
            return Err(wrong(at, ".id", "Messages are in the order of the numbers in their ids."));
        }
        calls.take(&row, at)?;
        bytes += row.bytes();
        if bytes > limits::HISTORY_BYTES {
            let text = format!("`history` has at most {} bytes.", limits::HISTORY_BYTES);
            return Err(Error::new(Code::TooLarge, text).at("history"));
        }
        last = Some(id);
        rows.push(row);
    }
    calls.ensure_calls_answered()?;
    let upto = rows.last().map_or(0, |row| row.seq);
    Ok(ImportedMessages {
        fork: Fork { thread: from, life: 1, upto, message: last, state: ForkState::Copied },
        rows,
    })
}

impl Api<'_> {
    /// Stores the messages, inside the transaction that creates the thread.
    pub(super) fn store_copied(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        copied: &ImportedMessages,
        now: i64,
    ) -> Result<()> {
        for row in &copied.rows {
            row.insert(sql)?;
        }
        state.max_seq = state.max_seq.max(copied.fork.upto);
        self.outbox().post_earlier(state, sql, copied.rows.iter().rev().find(|row| row.is_visible()), now)?;
        // Copied messages must not enter memories that others read.
        self.memories().pass_over_copied(state, sql)
    }
}

/// The calls so far.
#[derive(Default)]
struct ImportedCalls {
    /// Calls without a result, each with the index of its message and its index there.
    open: HashMap<String, (usize, usize)>,
}

impl ImportedCalls {
    fn take(&mut self, row: &Row, at: usize) -> Result<()> {
        if row.role == Role::Tool {
            let id = row.tool_call_id.as_deref().unwrap_or_default();
            return match self.open.remove(id) {
                Some(_) => Ok(()),
                None => {
                    let text = "A result belongs to a call before it that has no other.";
                    Err(wrong(at, ".tool_call_id", text))
                }
            };
        }
        for (place, call) in row.calls.iter().enumerate() {
            if call.id.is_empty() || self.open.insert(call.id.clone(), (at, place)).is_some() {
                return Err(wrong(at, ".tool_calls", "Each call has an id of its own."));
            }
        }
        Ok(())
    }

    fn ensure_calls_answered(&self) -> Result<()> {
        match self.open.iter().min_by_key(|(_, place)| **place) {
            None => Ok(()),
            Some((id, (at, _))) => Err(wrong(*at, ".tool_calls", &format!("The call “{id}” has no result."))),
        }
    }
}

/// A message, and its id in the other thread.
fn message_of(fields: Map<String, Value>, at: usize, now: i64) -> Result<(Row, String)> {
    let place = |error: Error| match &error.field {
        Some(field) => {
            let field = format!("history[{at}].{field}");
            error.at(field)
        }
        None => error,
    };
    let mut body = Body::of(fields).known(MESSAGE).map_err(place)?;
    let id = body.string("id").map_err(place)?.unwrap_or_default();
    let seq = number(&id).ok_or_else(|| wrong(at, ".id", "`id` ends with the message's number."))?;
    let role = body.string("role").map_err(place)?;
    let role = role.as_deref().and_then(Role::parse);
    let role = role.ok_or_else(|| wrong(at, ".role", "`role` is user, assistant, system or tool."))?;
    let content = body.string("content").map_err(place)?;
    if content.as_ref().is_some_and(|content| content.len() > limits::CONTENT_BYTES) {
        let text = format!("`content` has more than {} bytes.", limits::CONTENT_BYTES);
        return Err(Error::new(Code::TooLarge, text).at(format!("history[{at}].content")));
    }
    let metadata = body.object("metadata").map_err(place)?.unwrap_or_default();
    bounded("metadata", &Value::Object(metadata.clone())).map_err(place)?;
    let parent = body.string("parent_id").map_err(place)?;
    let parent = parent.as_deref().and_then(number).filter(|parent| *parent < seq);
    let depth = body.whole("depth").map_err(place)?.unwrap_or(0);
    let row = Row {
        inbound: inbound(role, &metadata),
        content,
        name: body.string("name").map_err(place)?,
        calls: calls_of(body.string("tool_calls").map_err(place)?, role, at)?,
        tool_call_id: body.string("tool_call_id").map_err(place)?.filter(|_| role == Role::Tool),
        status: status_of(body.string("tool_status").map_err(place)?.as_deref(), role, at)?,
        parent,
        depth: u32::try_from(depth).ok().filter(|depth| *depth <= limits::CALL_DEPTH).unwrap_or(0),
        silent: body.flag("silent").map_err(place)?,
        metadata: (!metadata.is_empty()).then(|| Value::Object(metadata).to_string()),
        attachments: attachments_of(body.take("attachments"), at)?,
        ..Row::new(seq, role, "", body.whole("created_at").map_err(place)?.unwrap_or(now))
    };
    Ok((row, id))
}

/// The number at the end of a message's id.
fn number(id: &str) -> Option<i64> {
    let number = id.rsplit('_').next()?.parse().ok()?;
    (1..=limits::COPIED_SEQ).contains(&number).then_some(number)
}

/// The origin of the message in the other thread: a reply has the prompt that wrote it.
fn inbound(role: Role, metadata: &Map<String, Value>) -> Inbound {
    let written = metadata.contains_key("status_kind") || metadata.contains_key("prompt");
    match role {
        Role::User if !written => Inbound::Triggers,
        Role::System if !written => Inbound::Stored,
        _ => Inbound::Step,
    }
}

/// A call in the format of the API.
#[derive(Deserialize)]
struct Wire {
    id: String,
    function: Function,
    #[serde(default)]
    extra_content: Option<Opaque>,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    arguments: String,
}

fn calls_of(text: Option<String>, role: Role, at: usize) -> Result<Vec<ToolCall>> {
    let Some(text) = text else { return Ok(Vec::new()) };
    if role == Role::Tool {
        return Err(wrong(at, ".tool_calls", "A result has no calls."));
    }
    let wires: Vec<Wire> = crate::json::from_str(&text)
        .map_err(|_| wrong(at, ".tool_calls", "`tool_calls` is a list of calls, as JSON in a text."))?;
    if wires.len() > CALLS {
        return Err(wrong(at, ".tool_calls", &format!("A message has at most {CALLS} calls.")));
    }
    let call = |wire: Wire| ToolCall {
        id: wire.id,
        name: wire.function.name,
        arguments: wire.function.arguments,
        extra_content: wire.extra_content,
    };
    Ok(wires.into_iter().map(call).collect())
}

fn status_of(text: Option<&str>, role: Role, at: usize) -> Result<Option<ToolStatus>> {
    match (role, text) {
        (Role::Tool, None | Some("success")) => Ok(Some(ToolStatus::Success)),
        (Role::Tool, Some("error")) => Ok(Some(ToolStatus::Error)),
        (_, None) => Ok(None),
        _ => Err(wrong(at, ".tool_status", "`tool_status` is success or error, and of results.")),
    }
}

/// Files that must exist in the thread at these paths.
fn attachments_of(list: Option<Value>, at: usize) -> Result<Vec<AttachmentRef>> {
    let Some(list) = list else { return Ok(Vec::new()) };
    let list: Vec<AttachmentRef> = crate::json::from_value(list)
        .map_err(|error| wrong(at, ".attachments", &format!("These are no attachments: {error}.")))?;
    if list.len() > limits::ATTACHMENTS {
        return Err(wrong(at, ".attachments", &format!("A message has at most {}.", limits::ATTACHMENTS)));
    }
    for file in &list {
        FilePath::parse("path", &file.path)
            .map_err(|error| error.at(format!("history[{at}].attachments")))?;
    }
    Ok(list)
}

fn wrong(at: usize, field: &str, text: &str) -> Error {
    Error::field(&format!("history[{at}]{field}"), text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn refused(messages: Vec<Value>) -> Option<(String, String)> {
        let mut body =
            Body::of(Map::from_iter([("history".to_owned(), json!(messages))])).known(&["history"]).unwrap();
        let error = copied(&mut body, "t".to_owned(), 0).err()?;
        Some((error.field.clone().unwrap_or_default(), error.message.clone()))
    }

    fn reply(seq: usize, calls: &[&str]) -> Value {
        let call = |id: &&str| json!({ "id": id, "function": { "name": "f", "arguments": "{}" } });
        let calls = json!(calls.iter().map(call).collect::<Vec<_>>()).to_string();
        json!({ "id": format!("m_{seq}"), "role": "assistant", "content": "a", "tool_calls": calls })
    }

    fn result(seq: usize, call: &str) -> Value {
        json!({ "id": format!("m_{seq}"), "role": "tool", "tool_call_id": call, "content": "x" })
    }

    #[test]
    fn every_call_has_one_result_in_any_order() {
        let told = |messages: Vec<Value>| refused(messages).map(|(field, _)| field);
        assert_eq!(
            told(vec![
                reply(1, &["a", "b"]),
                result(2, "b"),
                result(3, "a"),
                reply(4, &["a"]),
                result(5, "a")
            ]),
            None
        );
        assert_eq!(told(vec![reply(1, &["a", "a"])]).as_deref(), Some("history[0].tool_calls"));
        assert_eq!(told(vec![reply(1, &["a"]), reply(2, &["a"])]).as_deref(), Some("history[1].tool_calls"));
        let twice = vec![reply(1, &["a"]), result(2, "a"), result(3, "a")];
        assert_eq!(told(twice).as_deref(), Some("history[2].tool_call_id"));
        let (field, text) = refused(vec![reply(1, &["c"]), reply(2, &["b", "a"]), result(3, "c")]).unwrap();
        assert_eq!((field.as_str(), text.as_str()), ("history[1].tool_calls", "The call “b” has no result."));
        let many: Vec<String> = (0..=CALLS).map(|n| format!("c{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(refused(vec![reply(1, &many)]).unwrap().1.contains("at most 1024"));
    }
}
