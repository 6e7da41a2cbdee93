//! Answers of a page, matched with the waits of the thread: the decisions that remain, and the reply with
//! which the page's message continues.

use serde_json::Value;

use crate::ai_sdk::request::{Answer, PageAnswers};
use crate::ai_sdk::stream::{CallLocation, ContinuedMessage};
use crate::open_waits::WaitIndex;
use crate::run_events::seq_of;
use bobbin_definitions::error::{Code, Error, Result};
use bobbin_definitions::json;

/// The effects of a page's answers.
#[derive(Debug)]
pub struct Plan {
    /// In the form of `POST …/waits`.
    pub decisions: Vec<Value>,
    /// The message's continuation; without a reply if none of its calls had a wait.
    pub goes_on: ContinuedMessage,
}

impl Plan {
    /// Compares answers with the waits of their thread. Skips waits that are already answered.
    ///
    /// # Errors
    /// `conflict`: the wait has another answer.
    pub fn of(waits: &[Value], given: &PageAnswers) -> Result<Plan> {
        let goes_on = ContinuedMessage { message: given.message.clone(), ..ContinuedMessage::default() };
        let mut plan = Plan { decisions: Vec::new(), goes_on };
        let asked = WaitIndex::of(waits);
        for (answers, calls) in [(&given.earlier, CallLocation::Elsewhere), (&given.last, CallLocation::Here)]
        {
            for answer in answers {
                let about = match answer {
                    Answer::Approval { wait, .. } => asked.wait(wait),
                    Answer::Output { call, .. } => asked.of_call(call),
                };
                let Some(wait) = about else { continue };
                let is_open = text_of(wait, "state") == "open";
                match is_open {
                    true => plan.decisions.push(decision(wait, answer)),
                    false => agrees(wait, answer)?,
                }
                // A call of an earlier message continues here only if it is decided by this request.
                if is_open || calls == CallLocation::Here {
                    plan.goes_on.at(wait, answer, calls);
                }
            }
        }
        Ok(plan)
    }
}

impl ContinuedMessage {
    /// Continues with the newest reply that had a wait.
    fn at(&mut self, wait: &Value, answer: &Answer, calls: CallLocation) {
        let text = |at: &str| wait.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        let reply = text("/call/messageId");
        if reply.is_empty() || seq_of(&reply) < seq_of(&self.reply) {
            return;
        }
        if reply != self.reply {
            self.asked.clear();
        }
        (self.reply, self.calls) = (reply, calls);
        if matches!(answer, Answer::Approval { .. }) {
            self.asked.insert(text("/call/id"));
        }
    }
}

/// Converts an answer into a decision.
fn decision(wait: &Value, answer: &Answer) -> Value {
    let id = wait.get("id");
    match answer {
        Answer::Approval { approved: true, .. } => json!({ "id": id, "decision": "approve" }),
        Answer::Approval { reason: Some(reason), .. } => {
            json!({ "id": id, "decision": "deny", "reason": reason })
        }
        Answer::Approval { .. } => json!({ "id": id, "decision": "deny" }),
        Answer::Output { output, .. } if text_of(wait, "kind") == "question" => {
            let text = output.as_str().map_or_else(|| output.to_string(), str::to_owned);
            json!({ "id": id, "decision": "answer", "text": text })
        }
        Answer::Output { output, failed, .. } => {
            json!({ "id": id, "decision": "answer", "result": output, "isError": failed })
        }
    }
}

/// Refuses an answer that contradicts the decision.
fn agrees(wait: &Value, answer: &Answer) -> Result<()> {
    let Answer::Approval { approved, .. } = answer else { return Ok(()) };
    let same = match text_of(wait, "decision") {
        "approve" => *approved,
        "deny" => !*approved,
        // The wait has ended by itself.
        _ => false,
    };
    if same {
        return Ok(());
    }
    Err(Error::new(Code::Conflict, "This was decided otherwise already.")
        .at("messages")
        .hint("Read the chat again: GET …/chat/:id."))
}

fn text_of<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(kind: &str, number: u32, state: &str, reply: &str) -> Value {
        json!({ "id": format!("w_t_{number}"), "kind": kind, "state": state, "decision": if state == "open" { "" } else { "approve" },
            "call": { "id": format!("c{number}"), "messageId": reply } })
    }

    fn approval(number: u32, approved: bool) -> Answer {
        Answer::Approval { wait: format!("w_t_{number}"), approved, reason: None }
    }

    fn output(number: u32) -> Answer {
        Answer::Output { call: format!("c{number}"), output: json!({ "a": 1 }), failed: false }
    }

    fn given(earlier: Vec<Answer>, last: Vec<Answer>) -> PageAnswers {
        PageAnswers { message: "ui".into(), earlier, last }
    }

    #[test]
    fn what_is_open_is_decided_and_goes_on() {
        let waits = [wait("approval", 2, "open", "m_t_9"), wait("client_tool", 1, "decided", "m_t_2")];
        let plan = Plan::of(&waits, &given(vec![output(1)], vec![approval(2, true)])).unwrap();
        assert_eq!(plan.decisions, [json!({ "id": "w_t_2", "decision": "approve" })]);
        assert_eq!((plan.goes_on.reply.as_str(), plan.goes_on.calls), ("m_t_9", CallLocation::Here));
        assert!(plan.goes_on.asked.contains("c2"));
    }

    #[test]
    fn an_answer_in_an_earlier_message_counts() {
        let waits = [wait("approval", 1, "open", "m_t_2")];
        let plan = Plan::of(&waits, &given(vec![approval(1, false)], Vec::new())).unwrap();
        assert_eq!(plan.decisions, [json!({ "id": "w_t_1", "decision": "deny" })]);
        assert_eq!((plan.goes_on.reply.as_str(), plan.goes_on.calls), ("m_t_2", CallLocation::Elsewhere));
    }

    #[test]
    fn what_was_answered_is_passed_over_unless_it_was_answered_otherwise() {
        let waits = [wait("approval", 1, "decided", "m_t_2")];
        let again = Plan::of(&waits, &given(Vec::new(), vec![approval(1, true)])).unwrap();
        assert_eq!((again.decisions.len(), again.goes_on.reply.as_str()), (0, "m_t_2"));
        let other = Plan::of(&waits, &given(Vec::new(), vec![approval(1, false)])).unwrap_err();
        assert_eq!(other.code, Code::Conflict);
        // A closed wait in an earlier message does not continue.
        let earlier = Plan::of(&waits, &given(vec![approval(1, true)], Vec::new())).unwrap();
        assert_eq!(earlier.goes_on.reply, "");
        // Answers without a wait are ignored.
        let none = Plan::of(&[], &given(vec![approval(1, true)], vec![output(2)])).unwrap();
        assert_eq!((none.decisions.len(), none.goes_on.reply.as_str()), (0, ""));
    }

    #[test]
    fn a_message_goes_on_with_its_newest_reply() {
        let waits = [wait("client_tool", 2, "open", "m_t_259"), wait("client_tool", 1, "decided", "m_t_2")];
        let plan = Plan::of(&waits, &given(Vec::new(), vec![output(1), output(2)])).unwrap();
        assert_eq!(plan.goes_on.reply, "m_t_259");
        assert_eq!(
            plan.decisions,
            [json!({ "id": "w_t_2", "decision": "answer", "result": { "a": 1 }, "isError": false })]
        );
        assert!(plan.goes_on.asked.is_empty(), "a page has what it carries out");
    }
}
