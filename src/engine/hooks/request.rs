//! Hooks of a request to a model. Their changes are sent and not stored, so a repeated request runs them
//! again, on the same stored messages.

use std::rc::Rc;

use serde_json::{Map, Value};

use crate::definitions::hook::HookName;
use crate::definitions::message::{Role, ToolCall, ToolStatus};
use crate::engine::calls::call::not_run;
use crate::engine::definitions::Definitions;
use crate::engine::features::Hooks;
use crate::engine::hooks::chain::{ChainControl, Subject};
use crate::engine::hooks::{BlockReason, Site, wrong};
use crate::env::Redactor;
use crate::error::Result;
use crate::json;
use crate::models::{CachedJson, ChatMessage, Part, fit};
use crate::store::messages::{Row, SharedRow};
use crate::store::runs::Step;
use crate::store::window::Entry;

/// The system prompt.
struct System {
    text: String,
    secrets: Rc<Redactor>,
}

impl Subject for System {
    fn args(&self) -> Vec<Value> {
        vec![self.text.as_str().into()]
    }

    fn take(&mut self, answer: Value) -> Result<ChainControl, String> {
        match answer {
            Value::Null => {}
            Value::String(text) => self.text = self.secrets.owned(text),
            other => return Err(wrong("a text or null", &other)),
        }
        Ok(ChainControl::Go)
    }
}

/// The stored messages of a request.
struct StoredMessages {
    thread_id: String,
    rows: Vec<SharedRow>,
    /// The secrets to redact in the hooks' changes; the rest is already stored.
    secrets: Rc<Redactor>,
}

impl Subject for StoredMessages {
    fn args(&self) -> Vec<Value> {
        vec![self.rows.iter().map(|row| row.to_json(&self.thread_id, false)).collect()]
    }

    fn take(&mut self, answer: Value) -> Result<ChainControl, String> {
        let messages = match answer {
            Value::Null => return Ok(ChainControl::Go),
            Value::Array(messages) => messages,
            other => return Err(wrong("a list of messages or null", &other)),
        };
        let mut rows: Vec<SharedRow> = Vec::with_capacity(messages.len());
        for message in &messages {
            let Value::Object(fields) = message else { return Err(wrong("messages in its list", message)) };
            let id = fields.get("id").and_then(Value::as_str);
            let known = self.rows.iter().find(|row| id == Some(row.id(&self.thread_id).as_str()));
            let before = rows.last().or(self.rows.first()).map_or(1, |row| row.seq);
            rows.push(match known {
                Some(row) if row.to_json(&self.thread_id, false) == *message => row.clone(),
                Some(row) => SharedRow::new(self.clean(changed(Row::clone(row), fields)?)),
                // A new message of the hook stays at its position.
                None => SharedRow::new(self.clean(changed(Row::new(before, Role::User, "", 0), fields)?)),
            });
        }
        self.rows = rows;
        Ok(ChainControl::Go)
    }
}

impl StoredMessages {
    /// Redacts the secrets in a row that a hook changed.
    fn clean(&self, mut row: Row) -> Row {
        let clean = |text: Option<String>| text.map(|text| self.secrets.owned(text));
        (row.content, row.name) = (clean(row.content), clean(row.name));
        row.tool_call_id = clean(row.tool_call_id);
        row.calls = row.calls.into_iter().map(|call| without(&self.secrets, call)).collect();
        row
    }
}

/// Redacts the secrets in a call.
fn without(secrets: &Redactor, call: ToolCall) -> ToolCall {
    ToolCall {
        id: secrets.owned(call.id),
        name: secrets.owned(call.name),
        arguments: secrets.owned(call.arguments),
        ..call
    }
}

/// A row with the hook's fields.
fn changed(mut row: Row, fields: &Map<String, Value>) -> Result<Row, String> {
    let text = |name: &str| match fields.get(name) {
        None => Ok(None),
        Some(Value::Null) => Ok(Some(None)),
        Some(Value::String(text)) => Ok(Some(Some(text.clone()))),
        Some(other) => Err(wrong(&format!("a text as `{name}`"), other)),
    };
    if let Some(role) = text("role")?.flatten() {
        row.role = Role::parse(&role).ok_or_else(|| format!("it gave a message the role “{role}”"))?;
    }
    row.content = text("content")?.unwrap_or(row.content);
    row.name = text("name")?.unwrap_or(row.name);
    row.tool_call_id = text("tool_call_id")?.unwrap_or(row.tool_call_id);
    if let Some(calls) = fields.get("tool_calls") {
        let calls = calls_of(calls)?;
        if wire(&calls) != wire(&row.calls) {
            row.calls = with_places(&row.calls, calls);
        }
    }
    let bare = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    if fields.get("attachments").is_some_and(bare) {
        row.attachments.clear();
    }
    Ok(row)
}

/// The calls that a hook returned. Calls that it left out keep their positions, because the provider's data
/// refers to positions.
fn with_places(before: &[ToolCall], mut given: Vec<ToolCall>) -> Vec<ToolCall> {
    let kept = |call: &ToolCall| match given.iter().position(|other| other.id == call.id) {
        Some(place) => ToolCall { extra_content: call.extra_content.clone(), ..given.remove(place) },
        None => ToolCall::dropped(&call.name),
    };
    let mut calls: Vec<ToolCall> = before.iter().map(kept).collect();
    calls.append(&mut given);
    calls
}

fn wire(calls: &[ToolCall]) -> Vec<Value> {
    calls.iter().filter(|call| !call.is_dropped()).map(ToolCall::to_wire).collect()
}

/// Calls in the format for clients: a list, or its JSON as a string.
fn calls_of(value: &Value) -> Result<Vec<ToolCall>, String> {
    let parsed: Value;
    let list = match value {
        Value::Null => return Ok(Vec::new()),
        Value::String(text) => {
            parsed = crate::json::from_str(text)
                .map_err(|_| "it gave `tool_calls` that are no JSON".to_owned())?;
            &parsed
        }
        list => list,
    };
    let Some(calls) = list.as_array() else { return Err(wrong("a list as `tool_calls`", list)) };
    let read = |call: &Value| {
        let text = |pointer: &str| call.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let id = text("/id").filter(|id| !id.is_empty())?;
        let (name, arguments) = (text("/function/name")?, text("/function/arguments")?);
        Some(ToolCall { id, name, arguments, extra_content: None })
    };
    let calls: Option<Vec<ToolCall>> = calls.iter().map(read).collect();
    calls.ok_or_else(|| "it gave a call without `id`, `function.name` or `function.arguments`".to_owned())
}

/// The messages of a request, in the form for the model.
struct ModelMessages {
    messages: Vec<CachedJson<ChatMessage>>,
    blocked: Option<String>,
    /// The secrets to redact in the hooks' changes.
    secrets: Rc<Redactor>,
}

impl ModelMessages {
    fn form(&self) -> Vec<Value> {
        let mut images = 0;
        self.messages.iter().map(|message| form(message, &mut images)).collect()
    }
}

impl Subject for ModelMessages {
    fn args(&self) -> Vec<Value> {
        vec![Value::Array(self.form())]
    }

    fn take(&mut self, answer: Value) -> Result<ChainControl, String> {
        let given = match answer {
            Value::Null => return Ok(ChainControl::Go),
            Value::Array(given) => given,
            Value::Object(fields) => {
                let error = match fields.get("error") {
                    Some(Value::String(error)) => error.clone(),
                    _ => "it gave no reason".to_owned(),
                };
                if fields.get("block") != Some(&Value::Bool(true)) {
                    return Err(error);
                }
                self.blocked = Some(self.secrets.owned(error));
                return Ok(ChainControl::Stop);
            }
            other => return Err(wrong("a list of messages, an error or null", &other)),
        };
        let form = self.form();
        let mut messages = Vec::with_capacity(given.len());
        // Nearly all messages are returned unchanged and in order.
        let mut expected = 0;
        for value in &given {
            let same = |place: &usize| form.get(*place) == Some(value);
            let place = Some(expected).filter(same).or_else(|| (0..form.len()).find(same));
            messages.push(match place.and_then(|place| self.messages.get(place)) {
                Some(message) => message.clone(),
                None => self.read(value)?.into(),
            });
            expected = place.map_or(expected, |place| place) + 1;
        }
        self.messages = repaired(&messages);
        Ok(ChainControl::Go)
    }
}

impl ModelMessages {
    /// A message that the hook added or changed.
    fn read(&self, value: &Value) -> Result<ChatMessage, String> {
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        let content = self.secrets.owned(text("content").unwrap_or_default().to_owned());
        Ok(match text("role").and_then(Role::parse) {
            Some(Role::System) => ChatMessage::System(content),
            Some(Role::User) => ChatMessage::User(match value.get("content") {
                Some(Value::Array(parts)) => self.parts(parts)?,
                _ => vec![Part::Text(content)],
            }),
            Some(Role::Assistant) => {
                let calls = calls_of(value.get("tool_calls").unwrap_or(&Value::Null))?;
                self.assistant(content, calls)
            }
            Some(Role::Tool) => {
                let call_id = self.secrets.owned(text("tool_call_id").unwrap_or_default().to_owned());
                // Keep its images: hooks see only the text of results.
                let known = self.messages.iter().find_map(|message| match &**message {
                    ChatMessage::Tool { call_id: known, status, images, .. } if *known == call_id => {
                        Some((*status, images.clone()))
                    }
                    _ => None,
                });
                let (status, images) = known.unwrap_or((ToolStatus::Success, Vec::new()));
                let name = self.secrets.owned(text("name").unwrap_or_default().to_owned());
                ChatMessage::Tool { call_id, name, content, status, images }
            }
            None => return Err("it gave a message without a `role`".to_owned()),
        })
    }

    /// A reply: the existing one with these calls and a new text, or a new one of the hook.
    fn assistant(&self, words: String, calls: Vec<ToolCall>) -> ChatMessage {
        let made = |message: &&CachedJson<ChatMessage>| {
            matches!(&***message, ChatMessage::Assistant { tool_calls, .. }
                if !calls.is_empty() && wire(tool_calls) == wire(&calls))
        };
        let mut message = match self.messages.iter().find(made) {
            Some(message) => ChatMessage::clone(message),
            None => {
                let tool_calls = calls.into_iter().map(|call| without(&self.secrets, call)).collect();
                ChatMessage::Assistant { content: String::new(), tool_calls, payload: Vec::new() }
            }
        };
        if let ChatMessage::Assistant { content, .. } = &mut message {
            *content = words;
        }
        message
    }

    fn parts(&self, parts: &[Value]) -> Result<Vec<Part>, String> {
        let images = || {
            let parts = self.messages.iter().flat_map(|message| match &**message {
                ChatMessage::User(parts) => &parts[..],
                _ => &[],
            });
            parts.filter(|part| matches!(part, Part::Image { .. }))
        };
        let read = |part: &Value| match part.get("type").and_then(Value::as_str) {
            Some("text") => Some(Part::Text(self.secrets.owned(part.get("text")?.as_str()?.to_owned()))),
            Some("image") => images().nth(usize::try_from(part.get("image")?.as_u64()?).ok()?).cloned(),
            _ => None,
        };
        let parts: Option<Vec<Part>> = parts.iter().map(read).collect();
        parts.ok_or_else(|| "it gave a part that is neither a text nor an image of the request".to_owned())
    }
}

/// A message in the form for hooks. Images are not copied: each is a number.
fn form(message: &ChatMessage, images: &mut usize) -> Value {
    match message {
        ChatMessage::System(content) => json!({ "role": "system", "content": content }),
        ChatMessage::User(parts) => match &parts[..] {
            [Part::Text(text)] => json!({ "role": "user", "content": text }),
            parts => {
                let part = |part: &Part| match part {
                    Part::Text(text) => json!({ "type": "text", "text": text }),
                    Part::Image { media_type, .. } => {
                        *images += 1;
                        json!({ "type": "image", "mediaType": media_type, "image": *images - 1 })
                    }
                };
                json!({ "role": "user", "content": parts.iter().map(part).collect::<Value>() })
            }
        },
        ChatMessage::Assistant { content, tool_calls, .. } => {
            let mut message = json!({ "role": "assistant", "content": content });
            if let Some(fields) = message.as_object_mut().filter(|_| !tool_calls.is_empty()) {
                fields.insert("tool_calls".into(), tool_calls.iter().map(ToolCall::to_wire).collect());
            }
            message
        }
        ChatMessage::Tool { call_id, name, content, .. } => {
            json!({ "role": "tool", "tool_call_id": call_id, "name": name, "content": content })
        }
    }
}

/// Repairs the messages of a hook for the provider: each call is followed by its result, no result lacks its
/// call, no id occurs twice, no message is empty, and the last message is not the model's own.
fn repaired(messages: &[CachedJson<ChatMessage>]) -> Vec<CachedJson<ChatMessage>> {
    let mut results: Vec<&CachedJson<ChatMessage>> =
        messages.iter().filter(|message| matches!(&***message, ChatMessage::Tool { .. })).collect();
    let mut out: Vec<CachedJson<ChatMessage>> = Vec::with_capacity(messages.len() + 1);
    for message in messages {
        let (content, tool_calls) = match &**message {
            ChatMessage::Assistant { content, tool_calls, .. } => (content, tool_calls),
            ChatMessage::Tool { .. } => continue,
            ChatMessage::User(parts) if parts.iter().all(is_blank) => continue,
            ChatMessage::System(_) | ChatMessage::User(_) => {
                out.push(message.clone());
                continue;
            }
        };
        if tool_calls.is_empty() && content.trim().is_empty() {
            continue;
        }
        out.push(message.clone());
        for call in tool_calls {
            let answers = |result: &&CachedJson<ChatMessage>| matches!(&***result, ChatMessage::Tool { call_id, .. } if *call_id == call.id);
            out.push(match results.iter().position(answers) {
                Some(place) => results.remove(place).clone(),
                None => not_run(call).into(),
            });
        }
    }
    fit(&mut out);
    out
}

fn is_blank(part: &Part) -> bool {
    matches!(part, Part::Text(text) if text.trim().is_empty())
}

impl Hooks<'_> {
    /// Runs `after_system_message` on the rendered prompt.
    pub(crate) async fn after_system(
        &self,
        definitions: &Definitions<'_>,
        step: Step,
        text: String,
    ) -> Result<String> {
        if !self.has_hooks(definitions, &[HookName::AfterSystemMessage]) {
            return Ok(text);
        }
        let mut system = System { text, secrets: self.variables().redactor() };
        let at = Site::run(definitions, step.block);
        self.transform(&at, HookName::AfterSystemMessage, &mut system).await?;
        Ok(system.text)
    }

    /// Runs `filter_messages` on the messages from the cut on; `None` leaves them unchanged.
    pub(crate) async fn filtered(
        &self,
        definitions: &Definitions<'_>,
        step: Step,
        cut: i64,
    ) -> Result<Option<Vec<Entry>>> {
        if !self.has_hooks(definitions, &[HookName::FilterMessages]) {
            return Ok(None);
        }
        let secrets = self.variables().redactor();
        let mut stored = self.read(|state, _| {
            let entries = state.window.as_ref().map_or(&[] as &[Entry], |window| window.since(cut));
            let entries = entries.iter().take_while(|entry| entry.row.seq < step.block);
            let rows = entries.map(|entry| entry.row.clone()).collect();
            Ok(StoredMessages { thread_id: state.meta.stem.clone(), rows, secrets })
        })?;
        let at = Site::run(definitions, step.block);
        self.transform(&at, HookName::FilterMessages, &mut stored).await?;
        Ok(Some(stored.rows.into_iter().map(Entry::of).collect()))
    }

    /// Runs `prefilter_llm_history` on the whole request.
    pub(crate) async fn prefiltered(
        &self,
        definitions: &Definitions<'_>,
        step: Step,
        messages: Vec<CachedJson<ChatMessage>>,
    ) -> Result<Result<Vec<CachedJson<ChatMessage>>, BlockReason>> {
        if !self.has_hooks(definitions, &[HookName::PrefilterLlmHistory]) {
            return Ok(Ok(messages));
        }
        let mut sent = ModelMessages { messages, blocked: None, secrets: self.variables().redactor() };
        let at = Site::run(definitions, step.block);
        self.transform(&at, HookName::PrefilterLlmHistory, &mut sent).await?;
        Ok(match sent.blocked {
            Some(why) => {
                Err(BlockReason(format!("A hook stopped this run before its model was called: {why}")))
            }
            None => Ok(sent.messages),
        })
    }
}
