//! Answers of an AG-UI client, matched with the waits of the thread: the decisions that remain, and the reply
//! with which the run continues.

use std::collections::HashSet;

use serde_json::Value;

use crate::ag_ui::request::Answer;
use crate::open_waits::WaitIndex;
use crate::run_events::{seq_of, text_of};
use bobbin_definitions::error::{Code, Error, Result};
use bobbin_definitions::json;

/// The effects of a client's answers.
#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    /// In the form of `POST …/waits`.
    pub decisions: Vec<Value>,
    /// The newest reply whose calls had waits.
    pub reply: Option<String>,
}

impl Plan {
    /// Compares answers with the waits of their thread. Skips waits that are already answered, and results of
    /// calls whose interrupt is answered: CopilotKit also sends such an answer as a message for the call.
    ///
    /// # Errors
    /// `conflict`: the wait has another answer. `invalid_field`: the answer does not fit the wait.
    pub fn of(waits: &[Value], answers: &[Answer]) -> Result<Plan> {
        let mut plan = Plan::default();
        let asked = WaitIndex::of(waits);
        let resumed: HashSet<&str> = answers
            .iter()
            .filter_map(|answer| match answer {
                Answer::Interrupt { wait, .. } => Some(wait.as_str()),
                Answer::Result { .. } => None,
            })
            .collect();
        for (at, answer) in answers.iter().enumerate() {
            let about = match answer {
                Answer::Interrupt { wait, .. } => asked.wait(wait),
                Answer::Result { call, .. } => asked.of_call(call),
            };
            let Some(wait) = about else {
                match answer {
                    // Clients also send results of the server's own calls.
                    Answer::Result { .. } => continue,
                    Answer::Interrupt { .. } => {
                        let text = "The conversation has no interrupt of this id.";
                        return Err(Error::field(&format!("resume[{at}].interruptId"), text));
                    }
                }
            };
            if matches!(answer, Answer::Result { .. }) && resumed.contains(text_of(wait, "id")) {
                continue;
            }
            if text_of(wait, "state") == "open" {
                plan.decisions.push(decision(wait, answer)?);
            } else {
                agrees(wait, answer)?;
            }
            if let Some(reply) = wait.pointer("/call/messageId").and_then(Value::as_str)
                && plan.reply.as_deref().is_none_or(|known| seq_of(known) < seq_of(reply))
            {
                plan.reply = Some(reply.to_owned());
            }
        }
        Ok(plan)
    }
}

/// The schema of a wait's answer.
pub(super) fn response_schema(wait: &Value) -> Value {
    match text_of(wait, "kind") {
        "approval" => {
            let mut properties = json!({ "approved": { "type": "boolean" }, "reason": { "type": "string" } });
            if let (Some(edit), Some(fields)) =
                (wait.get("edit").and_then(Value::as_array), properties.as_object_mut())
            {
                let named = edit.iter().filter_map(|name| Some((name.as_str()?.to_owned(), json!({}))));
                let named: serde_json::Map<String, Value> = named.collect();
                let args = json!({ "type": "object", "properties": named, "additionalProperties": false });
                fields.insert("editedArgs".into(), args);
            }
            json!({ "type": "object", "properties": properties, "required": ["approved"] })
        }
        "question" => {
            let choices = wait.get("choices").and_then(Value::as_array).map_or(0, Vec::len);
            let mut properties = serde_json::Map::new();
            if choices == 0 || wait.get("freeText").and_then(Value::as_bool) == Some(true) {
                properties.insert("text".into(), json!({ "type": "string" }));
            }
            if choices > 0 {
                let choice = json!({ "type": "integer", "minimum": 0, "maximum": choices - 1 });
                properties.insert("choice".into(), choice);
            }
            json!({ "type": "object", "properties": properties, "minProperties": 1 })
        }
        "client_tool" => json!({}),
        "elicitation" => wait.get("form").cloned().unwrap_or_else(|| json!({ "type": "object" })),
        _ => json!({
            "type": "object", "properties": { "decision": { "enum": wait.get("allows") } }, "required": ["decision"],
        }),
    }
}

/// The data of a form of an MCP server, or that its page was visited.
fn filled_in(wait: &Value, id: &str, payload: &Value) -> Option<Value> {
    payload.as_object()?;
    Some(match wait.get("form") {
        Some(_) => json!({ "id": id, "decision": "answer", "content": payload }),
        None => json!({ "id": id, "decision": "answer" }),
    })
}

/// Converts an answer into a decision.
fn decision(wait: &Value, answer: &Answer) -> Result<Value> {
    let (id, kind) = (text_of(wait, "id"), text_of(wait, "kind"));
    let payload = match answer {
        Answer::Result { output, .. } if kind == "question" => {
            return Ok(json!({ "id": id, "decision": "answer", "text": output }));
        }
        Answer::Result { output, failed, .. } => {
            return Ok(json!({ "id": id, "decision": "answer", "result": output, "isError": failed }));
        }
        Answer::Interrupt { payload: None, .. } => {
            let denies = wait.get("allows").and_then(Value::as_array);
            if denies.is_some_and(|allows| allows.iter().any(|one| one == "deny")) {
                return Ok(json!({ "id": id, "decision": "deny" }));
            }
            return Err(Error::field("resume", format!("The interrupt {id} cannot be given up.")));
        }
        Answer::Interrupt { payload: Some(payload), .. } => payload,
    };
    // A decision in the API's format is accepted for every kind.
    if let Some(mut fields) = payload.as_object().filter(|fields| fields.contains_key("decision")).cloned() {
        fields.insert("id".into(), id.into());
        return Ok(Value::Object(fields));
    }
    match kind {
        "approval" => approval(wait, payload),
        "question" => question(id, payload),
        "client_tool" => Some(json!({ "id": id, "decision": "answer", "result": payload })),
        "elicitation" => filled_in(wait, id, payload),
        _ => None,
    }
    .ok_or_else(|| {
        let text = format!("The `payload` for {id} is no answer to what was asked.");
        Error::field("resume", text).hint("It is held against the interrupt's `responseSchema`.")
    })
}

fn approved(payload: &Value) -> Option<bool> {
    payload.as_bool().or_else(|| payload.get("approved")?.as_bool())
}

fn approval(wait: &Value, payload: &Value) -> Option<Value> {
    let approved = approved(payload)?;
    let mut decision = json!({ "id": wait.get("id"), "decision": if approved { "approve" } else { "deny" } });
    let fields = decision.as_object_mut()?;
    if !approved {
        fields.extend(payload.get("reason").map(|reason| ("reason".to_owned(), reason.clone())));
    } else if let Some(edited) = payload.get("editedArgs").and_then(Value::as_object) {
        // Clients may send all arguments; unchanged ones are not edits.
        let was = |name: &str| wait.pointer("/call/args").and_then(|args| args.get(name));
        let changed = edited.iter().filter(|(name, value)| was(name) != Some(*value));
        let changed: serde_json::Map<String, Value> =
            changed.map(|(name, value)| (name.clone(), value.clone())).collect();
        if !changed.is_empty() {
            fields.insert("args".into(), Value::Object(changed));
        }
    }
    Some(decision)
}

fn question(id: &str, payload: &Value) -> Option<Value> {
    if let Some(text) = payload.as_str().or_else(|| payload.get("text")?.as_str()) {
        return Some(json!({ "id": id, "decision": "answer", "text": text }));
    }
    let choice = payload.get("choice").and_then(Value::as_u64)?;
    Some(json!({ "id": id, "decision": "answer", "choice": choice }))
}

/// Refuses an answer that contradicts the decision.
fn agrees(wait: &Value, answer: &Answer) -> Result<()> {
    let Answer::Interrupt { payload, .. } = answer else { return Ok(()) };
    if text_of(wait, "kind") != "approval" {
        return Ok(());
    }
    let said = payload.as_ref().map_or(Some(false), approved);
    let same = match text_of(wait, "decision") {
        "approve" => said != Some(false),
        "deny" => said != Some(true),
        // The wait has ended by itself, so a cancellation does not contradict it.
        _ => said == Some(false),
    };
    if same {
        return Ok(());
    }
    Err(Error::new(Code::Conflict, "This was decided otherwise already.")
        .at("resume")
        .hint("Read the conversation again: GET …/ag-ui?threadId=…"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(kind: &str, number: u32, state: &str, decision: &str) -> Value {
        json!({
            "id": format!("w_t_{number}"), "kind": kind, "state": state, "decision": decision,
            "allows": if kind == "retry" { json!(["retry"]) } else { json!(["approve", "deny"]) },
            "call": { "id": format!("c{number}"), "messageId": format!("m_t_{number}"), "args": { "amount": 5, "to": "Ann" } },
        })
    }

    fn interrupt(number: u32, payload: Option<Value>) -> Answer {
        Answer::Interrupt { wait: format!("w_t_{number}"), payload }
    }

    fn decided(kind: &str, payload: Option<Value>) -> Result<Value> {
        let plan = Plan::of(&[wait(kind, 1, "open", "")], &[interrupt(1, payload)])?;
        Ok(plan.decisions.first().cloned().unwrap_or_default())
    }

    #[test]
    fn an_answer_is_a_decision_of_its_kind() {
        for (kind, payload, decision) in [
            ("approval", Some(json!(true)), json!({ "decision": "approve" })),
            (
                "approval",
                Some(json!({ "approved": true, "editedArgs": { "amount": 1, "to": "Ann" } })),
                json!({ "decision": "approve", "args": { "amount": 1 } }),
            ),
            (
                "approval",
                Some(json!({ "approved": false, "reason": "no" })),
                json!({ "decision": "deny", "reason": "no" }),
            ),
            ("approval", None, json!({ "decision": "deny" })),
            ("question", Some(json!("blue")), json!({ "decision": "answer", "text": "blue" })),
            ("question", Some(json!({ "choice": 1 })), json!({ "decision": "answer", "choice": 1 })),
            ("client_tool", Some(json!({ "a": 1 })), json!({ "decision": "answer", "result": { "a": 1 } })),
            ("retry", Some(json!({ "decision": "retry" })), json!({ "decision": "retry" })),
        ] {
            let mut wanted = decision;
            wanted["id"] = "w_t_1".into();
            assert_eq!(decided(kind, payload).unwrap(), wanted, "{kind}");
        }
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for (kind, payload) in [
            ("approval", Some(json!({}))),
            ("approval", Some(Value::Null)),
            ("approval", Some(json!({ "approved": "yes" }))),
            ("question", Some(json!(5))),
            ("retry", None),
        ] {
            assert_eq!(decided(kind, payload).unwrap_err().code, Code::InvalidField, "{kind}");
        }
        let unknown = Plan::of(&[], &[interrupt(1, None)]).unwrap_err();
        assert_eq!(unknown.field.as_deref(), Some("resume[0].interruptId"));
    }

    #[test]
    fn what_was_answered_is_passed_over_unless_it_was_answered_otherwise() {
        let waits = [wait("approval", 1, "decided", "approve"), wait("approval", 2, "open", "")];
        let answers = [interrupt(1, Some(json!(true))), interrupt(2, Some(json!(true)))];
        let plan = Plan::of(&waits, &answers).unwrap();
        assert_eq!(plan.decisions, [json!({ "id": "w_t_2", "decision": "approve" })]);
        assert_eq!(plan.reply.as_deref(), Some("m_t_2"), "the newest");
        let other = Plan::of(&waits, &[interrupt(1, None)]).unwrap_err();
        assert_eq!(other.code, Code::Conflict);
    }

    #[test]
    fn results_are_for_calls_that_are_left_to_the_client() {
        let result =
            |call: &str| Answer::Result { call: call.into(), output: "Lisbon".into(), failed: false };
        let plan = Plan::of(&[wait("client_tool", 1, "open", "")], &[result("c1"), result("other")]).unwrap();
        let wanted = json!({ "id": "w_t_1", "decision": "answer", "result": "Lisbon", "isError": false });
        assert_eq!(plan.decisions, [wanted]);
    }
    #[test]
    fn a_result_beside_the_answer_to_its_interrupt_is_passed_over() {
        for kind in ["question", "client_tool"] {
            let waits = [wait(kind, 1, "open", "")];
            let answers = [
                Answer::Result { call: "c1".into(), output: "{}".into(), failed: false },
                interrupt(1, Some(json!({ "text": "the blue one" }))),
            ];
            let plan = Plan::of(&waits, &answers).unwrap();
            assert_eq!(plan.decisions.len(), 1, "{kind}");
            assert!(plan.decisions[0].to_string().contains("the blue one"), "{kind}");
        }
    }
}
