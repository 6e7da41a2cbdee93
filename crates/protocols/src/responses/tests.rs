use bobbin_definitions::json;
use serde::Serialize;

use super::budgets::{LentAmounts, LentShare, SharedAmounts};
use super::messages::{Message, MessageStatus, SubagentFacts};
use super::runs::{Artefact, OutcomeKind, RunOutcome, RunStatus};
use super::waits::{DecisionScope, OnExpiry, Wait, WaitKind, WaitState};

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

#[test]
fn the_fields_of_a_wait_are_in_the_order_of_the_response() {
    let choices = ["a".to_owned()];
    let wait = Wait {
        id: "w_1".into(),
        kind: WaitKind::Question,
        state: WaitState::Open,
        thread_id: "t",
        run: None,
        batch: None,
        call: None,
        title: "?",
        reason: None,
        allows: vec!["answer"],
        by: DecisionScope::Thread,
        created_at: 1,
        expires_at: 2,
        on_expiry: OnExpiry::Deny,
        decision: None,
        decided_at: None,
        decided_by: None,
        edit: None,
        choices: Some(&choices),
        free_text: Some(true),
        budget: None,
        name: None,
        server: None,
        form: None,
        url: None,
        agent_ids: None,
        wanted: None,
    };
    let expected = r#"{"id":"w_1","kind":"question","state":"open","threadId":"t","run":null,"batch":null,"call":null,"title":"?","reason":null,"allows":["answer"],"by":"thread","createdAt":1,"expiresAt":2,"onExpiry":"deny","decision":null,"decidedAt":null,"decidedBy":null,"choices":["a"],"freeText":true}"#;
    assert_eq!(text(&wait), expected);
}

#[test]
fn flattened_amounts_come_before_the_subagent() {
    let amounts = |cost: f64| SharedAmounts { cost_usd: json!(cost), tokens: 1, model_calls: 2 };
    let children = vec![LentShare { granted: amounts(1.0), id: "t".into(), spent: amounts(0.5) }];
    let expected = r#"{"costUsd":0.0,"tokens":1,"modelCalls":2,"children":[{"costUsd":1.0,"tokens":1,"modelCalls":2,"id":"t","spent":{"costUsd":0.5,"tokens":1,"modelCalls":2}}]}"#;
    assert_eq!(text(&LentAmounts { total: amounts(0.0), children }), expected);
}

#[test]
fn a_message_has_the_data_of_its_subagent_only_if_the_registry_has_it() {
    let mut message = Message {
        id: "m_1".into(),
        role: bobbin_definitions::definitions::message::Role::User,
        content: Some("a"),
        name: None,
        tool_calls: None,
        tool_call_id: None,
        tool_status: None,
        status: MessageStatus::Completed,
        created_at: 1,
        parent_id: None,
        depth: 0,
        silent: false,
        metadata: super::Object::new(),
        attachments: Vec::new(),
        subagent_id: Some("s".into()),
        subagent: None,
    };
    let head = r#"{"id":"m_1","role":"user","content":"a","name":null,"tool_calls":null,"tool_call_id":null,"tool_status":null,"status":"completed","created_at":1,"parent_id":null,"depth":0,"silent":false,"metadata":{},"attachments":[],"subagent_id":"s""#;
    assert_eq!(text(&message), format!("{head}}}"));
    message.subagent = Some(SubagentFacts {
        subagent_name: "n",
        subagent_title: None,
        subagent_description: "",
        subagent_status: "idle",
        subagent_resumable: true,
        subagent_blocking: false,
        subagent_thread_name: None,
        subagent_spawn_group_id: None,
    });
    let facts = r#","subagent_name":"n","subagent_title":null,"subagent_description":"","subagent_status":"idle","subagent_resumable":true,"subagent_blocking":false,"subagent_thread_name":null,"subagent_spawn_group_id":null}"#;
    assert_eq!(text(&message), format!("{head}{facts}"));
    assert_eq!(json!(message).to_string(), format!("{head}{facts}"));
}

#[test]
fn an_outcome_distinguishes_null_from_absent_fields() {
    let outcome = RunOutcome {
        run: Some("r_1".into()),
        status: RunStatus::Running,
        message: None,
        outcome: None::<OutcomeKind>,
        reason: Some(None),
        artefact: Artefact { message: None, files: json!([]), result: None },
        token: None,
        error: None,
        diagnostics: Vec::new(),
        usage: None,
        result: None,
        pause_kind: None,
        waiting_for: None,
        waits: Vec::new(),
        started_at: Some(1),
        ended_at: Some(None),
        trace: None,
        truncated: None,
    };
    let expected = r#"{"run":"r_1","status":"running","message":null,"outcome":null,"reason":null,"artefact":{"message":null,"files":[],"result":null},"token":null,"error":null,"diagnostics":[],"usage":null,"waits":[],"startedAt":1,"endedAt":null}"#;
    assert_eq!(text(&outcome), expected);
}
