//! Calls of a reply in the AI SDK's form: their arguments when they begin or are asked about, their results
//! once.
//!
//! A page runs every `tool-input-available` without `providerExecuted`. So that chunk is sent once, when the
//! page is to run the call. If such a call is shown for another reason, its arguments are sent as deltas,
//! which make the same part and start nothing.

use std::collections::HashMap;

use serde_json::Value;

use crate::ai_sdk::stream::{CallLocation, ContinuedMessage, Settings};
use bobbin_definitions::json;

/// A known call.
#[derive(Debug)]
struct KnownCall {
    name: String,
    /// The arguments of the model: JSON, or a text that is not JSON.
    input: Value,
    by: Executor,
    state: DisplayStage,
    /// Whether the client had it before this stream.
    had: CallOrigin,
    /// The last output that was shown of the call in progress.
    under_way: Option<Value>,
}

/// The side that runs a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Executor {
    Server,
    Page,
}

/// The message from which a client has a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallOrigin {
    Here,
    Before,
}

/// How much of a call was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DisplayStage {
    Nothing,
    /// Its arguments, in a form that no page runs.
    Draft,
    Input,
    Approval,
    Output,
}

/// The calls of the replies so far.
#[derive(Debug, Default)]
pub(super) struct CallTable(HashMap<String, KnownCall>);

impl CallTable {
    /// Adds the calls of a reply. Calls that the client already has in a continued message are not sent again
    /// if that would run them.
    pub(super) fn of_reply(
        &mut self,
        message: &Value,
        settings: &Settings,
        before: Option<&ContinuedMessage>,
    ) {
        if before.is_some_and(|continued| continued.calls == CallLocation::Elsewhere) {
            return;
        }
        let calls = message.get("tool_calls").and_then(Value::as_str);
        let calls: Vec<Value> =
            calls.and_then(|text| bobbin_definitions::json::from_str(text).ok()).unwrap_or_default();
        for call in calls {
            let text = |at: &str| call.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
            let (id, name) = (text("/id"), text("/function/name"));
            if id.is_empty() || self.0.contains_key(&id) {
                continue;
            }
            let (input, by) = input_of(text("/function/arguments"), settings.is_of_client(&name));
            let state = match before {
                Some(continued) if continued.asked.contains(&id) => DisplayStage::Draft,
                Some(_) if by == Executor::Page => DisplayStage::Input,
                _ => DisplayStage::Nothing,
            };
            let had = if before.is_some() { CallOrigin::Before } else { CallOrigin::Here };
            self.0.insert(id, KnownCall { name, input, by, state, had, under_way: None });
        }
    }

    /// The chunk with a call's arguments when the call begins or the page is to run it. `None` if it was
    /// sent, or the call is unknown.
    pub(super) fn input(&mut self, id: &str) -> Option<Value> {
        let by_page = |known: &KnownCall| known.state == DisplayStage::Draft && known.by == Executor::Page;
        let known =
            self.0.get_mut(id).filter(|known| known.state == DisplayStage::Nothing || by_page(known))?;
        known.state = DisplayStage::Input;
        let KnownCall { name, input, by, .. } = &*known;
        let mut chunk =
            json!({ "type": "tool-input-available", "toolCallId": id, "toolName": name, "input": input });
        if let Some(fields) = chunk.as_object_mut().filter(|_| *by == Executor::Server) {
            fields.insert("providerExecuted".into(), true.into());
        }
        Some(chunk)
    }

    /// The chunks with a call's arguments if the page is not to run it yet, or not any more.
    pub(super) fn draft(&mut self, id: &str) -> Vec<Value> {
        let Some(known) = self.0.get_mut(id).filter(|known| known.state == DisplayStage::Nothing) else {
            return Vec::new();
        };
        if known.by == Executor::Server {
            return self.input(id).into_iter().collect();
        }
        known.state = DisplayStage::Draft;
        let KnownCall { name, input, .. } = &*known;
        vec![
            json!({ "type": "tool-input-start", "toolCallId": id, "toolName": name }),
            json!({ "type": "tool-input-delta", "toolCallId": id, "inputTextDelta": input.to_string() }),
        ]
    }

    /// The chunk that requests an approval, only for a call whose arguments were shown.
    pub(super) fn approval(&mut self, id: &str, wait: &str, settings: &Settings) -> Option<Value> {
        let shown = |known: &&mut KnownCall| matches!(known.state, DisplayStage::Draft | DisplayStage::Input);
        let known = self.0.get_mut(id).filter(shown)?;
        known.state = DisplayStage::Approval;
        Some(match settings.approvals_as_data {
            false => json!({ "type": "tool-approval-request", "approvalId": wait, "toolCallId": id }),
            true => json!({
                "type": "data-approval", "id": wait,
                "data": { "approvalId": wait, "toolCallId": id, "toolName": known.name },
            }),
        })
    }

    /// The chunk with the progress of a call, as an output that a later one replaces. Only for a call whose
    /// arguments were shown.
    pub(super) fn under_way(&mut self, id: &str, output: Value) -> Option<Value> {
        let shown =
            |known: &&mut KnownCall| matches!(known.state, DisplayStage::Input | DisplayStage::Approval);
        let known = self.0.get_mut(id).filter(shown).filter(|known| known.by == Executor::Server)?;
        if known.under_way.as_ref() == Some(&output) {
            return None;
        }
        known.under_way = Some(output.clone());
        Some(json!({
            "type": "tool-output-available", "toolCallId": id, "output": output, "preliminary": true,
            "providerExecuted": true,
        }))
    }

    /// The chunk with a call's result; `None` if the client does not know the call.
    pub(super) fn output(&mut self, id: &str, message: &Value, settings: &Settings) -> Option<Value> {
        let known = self
            .0
            .get_mut(id)
            .filter(|known| !matches!(known.state, DisplayStage::Nothing | DisplayStage::Output))?;
        let asked = message.pointer("/metadata/approval/decision").and_then(Value::as_str);
        let text = message.get("content").and_then(Value::as_str).unwrap_or_default();
        let failed = message.get("tool_status").and_then(Value::as_str) == Some("error");
        let of_server = known.by == Executor::Server;
        known.state = DisplayStage::Output;
        let mut chunk = match () {
            () if asked == Some("deny") && !settings.approvals_as_data => {
                return Some(json!({ "type": "tool-output-denied", "toolCallId": id }));
            }
            () if failed => json!({ "type": "tool-output-error", "toolCallId": id, "errorText": text }),
            () => {
                let output =
                    bobbin_definitions::json::from_str::<Value>(text).unwrap_or_else(|_| text.into());
                json!({ "type": "tool-output-available", "toolCallId": id, "output": output })
            }
        };
        if let Some(fields) = chunk.as_object_mut().filter(|_| of_server) {
            fields.insert("providerExecuted".into(), true.into());
        }
        Some(chunk)
    }

    /// The decided wait of a call, from its result's message, if the client did not have the call before.
    pub(super) fn decided(&mut self, id: &str, message: &Value, settings: &Settings) -> Option<Value> {
        let wait = message.pointer("/metadata/approval/id").and_then(Value::as_str)?;
        let here = self.0.get(id).is_some_and(|known| known.had == CallOrigin::Here);
        if settings.approvals_as_data || !here { None } else { self.approval(id, wait, settings) }
    }

    /// The decision about a call that this client was asked to approve, for the case that somebody else has
    /// decided, or another connection of the page. Clients of major 7 have a chunk for it.
    pub(super) fn answered(&self, id: &str, message: &Value, settings: &Settings) -> Option<Value> {
        let approval = message.pointer("/metadata/approval")?;
        let is_asked = self.0.get(id).is_some_and(|known| known.state == DisplayStage::Approval);
        if !is_asked || !settings.reset_step || settings.approvals_as_data {
            return None;
        }
        let approved = approval.get("decision").and_then(Value::as_str) == Some("approve");
        let mut chunk = json!({
            "type": "tool-approval-response", "approvalId": approval.get("id")?, "approved": approved,
        });
        let reason = approval.get("reason").filter(|reason| reason.is_string());
        if let (Some(reason), Some(fields)) = (reason, chunk.as_object_mut()) {
            fields.insert("reason".into(), reason.clone());
        }
        Some(chunk)
    }

    /// Whether the page runs this call, and was asked to or has done so.
    pub(super) fn is_of_page(&self, id: &str) -> bool {
        self.0.get(id).is_some_and(|known| known.by == Executor::Page && known.state != DisplayStage::Nothing)
    }
}

/// The arguments of the model, and the side that runs the call.
///
/// Invalid JSON becomes a text value. The three majors store `tool-input-error` in different fields, and a
/// history could match one of them only. No page may run such a call.
fn input_of(arguments: String, is_of_client: bool) -> (Value, Executor) {
    let parsed = match arguments.trim() {
        "" => Ok(json!({})),
        text => bobbin_definitions::json::from_str(text),
    };
    match parsed {
        Ok(input) if is_of_client => (input, Executor::Page),
        Ok(input) => (input, Executor::Server),
        Err(_) => (arguments.into(), Executor::Server),
    }
}
