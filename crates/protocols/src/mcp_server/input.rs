//! Questions of a thread to people, in the form that MCP clients show, and their answers.

use serde_json::{Map, Value};

use crate::run_events::text_of;
use bobbin_definitions::json;
use bobbin_definitions::text::first_bytes;

/// Maximum bytes of arguments in a form.
const ARGS_BYTES: usize = 4_000;

/// The form field with the approval.
const APPROVE: &str = "approve";
/// The form field with the reason.
const REASON: &str = "reason";
/// The form field with the answer to a question.
const ANSWER: &str = "answer";

/// The client's answer to a question.
#[derive(Clone, Debug, PartialEq)]
pub enum Reaction {
    /// A decision, in the form of `POST …/waits/:id`.
    Decided(Value),
    /// The form was closed without a decision.
    Closed,
    /// No valid answer. The question is sent again.
    Nothing,
}

/// The request that shows a wait; `None` if no form can.
pub fn request(wait: &Value) -> Option<Value> {
    let lines = [text_of(wait, "title"), text_of(wait, "reason")];
    let mut message = lines.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
    let schema = match text_of(wait, "kind") {
        "approval" => {
            message.push_str(&called(wait));
            json!({
                "type": "object",
                "properties": {
                    APPROVE: { "type": "boolean", "title": "Approve this call" },
                    REASON: { "type": "string", "title": "Why not", "description": "told to the agent if it is denied" },
                },
                "required": [APPROVE],
            })
        }
        "question" => {
            let mut answer = json!({ "type": "string", "title": "Answer" });
            if let Some(fields) = answer.as_object_mut() {
                match (choices(wait), is_free(wait)) {
                    ([], _) => {}
                    (choices, false) => {
                        fields.insert("enum".into(), json!(choices));
                    }
                    (choices, true) => {
                        let offered: Vec<&str> = choices.iter().filter_map(Value::as_str).collect();
                        let text = format!("For example: {}", offered.join("; "));
                        fields.insert("description".into(), text.into());
                    }
                }
            }
            json!({ "type": "object", "properties": { ANSWER: answer }, "required": [ANSWER] })
        }
        "elicitation" => wait.get("form")?.clone(),
        _ => return None,
    };
    if message.is_empty() {
        message.push_str("The agent waits for you.");
    }
    let params = json!({ "mode": "form", "message": message, "requestedSchema": schema });
    Some(json!({ "method": "elicitation/create", "params": params }))
}

/// The requests for all waits that forms can show, by the client's keys, and the waits' ids, by the same
/// keys.
pub fn requests(waits: &[Value]) -> (Map<String, Value>, Vec<(String, String)>) {
    let (mut requests, mut ids) = (Map::new(), Vec::new());
    for wait in waits {
        let Some(request) = request(wait) else { continue };
        // A tool names its questions. All other waits are keyed by their ids.
        let (id, name) = (text_of(wait, "id"), text_of(wait, "name"));
        let key = if name.is_empty() || requests.contains_key(name) { id } else { name };
        requests.insert(key.to_owned(), request);
        ids.push((key.to_owned(), id.to_owned()));
    }
    (requests, ids)
}

/// The call to approve. Arguments that are too long are replaced by a note.
fn called(wait: &Value) -> String {
    let Some(call) = wait.get("call").filter(|call| call.is_object()) else { return String::new() };
    let args = call.get("args").unwrap_or(&Value::Null).to_string();
    let shown = first_bytes(&args, ARGS_BYTES);
    let rest = args.len() - shown.len();
    let more =
        if rest == 0 { String::new() } else { format!(" … and {rest} bytes more, which are not shown") };
    format!("\n{}({shown}{more})", text_of(call, "tool"))
}

fn choices(wait: &Value) -> &[Value] {
    wait.get("choices").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn is_free(wait: &Value) -> bool {
    choices(wait).is_empty() || wait.get("freeText").and_then(Value::as_bool) == Some(true)
}

/// The client's answer to the request for a wait.
pub fn reaction(wait: &Value, response: Option<&Value>) -> Reaction {
    let Some(response) = response else { return Reaction::Nothing };
    match text_of(response, "action") {
        "cancel" => Reaction::Closed,
        "decline" => Reaction::Decided(json!({ "decision": "deny" })),
        "accept" => response
            .get("content")
            .and_then(|content| accepted(wait, content))
            .map_or(Reaction::Nothing, Reaction::Decided),
        _ => Reaction::Nothing,
    }
}

fn accepted(wait: &Value, content: &Value) -> Option<Value> {
    if text_of(wait, "kind") == "elicitation" {
        return content.is_object().then(|| json!({ "decision": "answer", "content": content }));
    }
    if text_of(wait, "kind") == "approval" {
        if content.get(APPROVE)?.as_bool()? {
            return Some(json!({ "decision": "approve" }));
        }
        let reason = text_of(content, REASON);
        return Some(match reason.trim() {
            "" => json!({ "decision": "deny" }),
            reason => json!({ "decision": "deny", "reason": reason }),
        });
    }
    let answer = content.get(ANSWER)?.as_str()?;
    match choices(wait).iter().position(|choice| choice.as_str() == Some(answer)) {
        Some(choice) => Some(json!({ "decision": "answer", "choice": choice })),
        None if is_free(wait) && !answer.trim().is_empty() => {
            Some(json!({ "decision": "answer", "text": answer }))
        }
        None => None,
    }
}

/// Open waits, for clients without forms.
pub fn pending(waits: &[Value]) -> Vec<Value> {
    let shown = |wait: &Value| {
        let mut shown = json!({ "id": wait.get("id"), "kind": wait.get("kind"), "title": wait.get("title") });
        if let Some(fields) = shown.as_object_mut() {
            for name in ["reason", "choices", "freeText", "allows", "by", "budget", "expiresAt"] {
                let known = wait.get(name).filter(|value| !value.is_null());
                fields.extend(known.map(|value| (name.to_owned(), value.clone())));
            }
            for name in ["tool", "args"] {
                let known = wait.get("call").and_then(|call| call.get(name));
                fields.extend(known.map(|value| (name.to_owned(), value.clone())));
            }
        }
        shown
    };
    waits.iter().map(shown).collect()
}

/// The same as text, with instructions.
pub fn told(thread: &str, waits: &[Value]) -> String {
    let mut text = "This waits for a person:\n".to_owned();
    for wait in waits {
        let what = match text_of(wait, "kind") {
            "approval" => "approval".to_owned(),
            "question" => "question".to_owned(),
            kind => kind.replace('_', " "),
        };
        let title = text_of(wait, "title");
        let title = if title.is_empty() { String::new() } else { format!(" – {title}") };
        text.push_str(&format!("- {what} {}{title}{}\n", text_of(wait, "id"), called(wait)));
    }
    text.push_str(&format!(
        "Show the person what is asked, pass on what they decide with thread_respond (thread {thread}), then read on \
         with thread_get."
    ));
    text
}
