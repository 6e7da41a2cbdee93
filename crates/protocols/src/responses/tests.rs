use bobbin_definitions::json;
use serde::Serialize;

use super::budgets::{LentAmounts, LentShare, SharedAmounts};
use super::diagnostics::DueWork;
use super::frames::{ItemFrame, ItemType, MessageChunkFrame, RunEndedFrame, SnapshotFrame};
use super::mcp::{ClientDocument, ClientMetadata};
use super::messages::{Message, MessageChanged, MessageStatus, SubagentFacts};
use super::runs::{Artefact, OutcomeKind, RunOutcome, RunStatus};
use super::threads::ThreadState;
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

#[test]
fn a_frame_begins_with_its_type() {
    let chunk = MessageChunkFrame { message_id: "m".into(), depth: 0, chunk: "a", attempt: 1, offset: 2 };
    let expected =
        r#"{"type":"message_chunk","message_id":"m","depth":0,"chunk":"a","attempt":1,"offset":2}"#;
    assert_eq!(text(&chunk), expected);
    assert_eq!(json!(chunk).to_string(), expected);
    let item = ItemFrame {
        event: "completed",
        item_id: "m".into(),
        item_type: ItemType::McpToolCall,
        data: json!({}),
    };
    let expected = r#"{"type":"item","event":"completed","itemId":"m","itemType":"mcp_tool_call","data":{}}"#;
    assert_eq!(text(&item), expected);
    let snapshot = SnapshotFrame {
        messages: Vec::new(),
        has_more: false,
        partial: None,
        state: ThreadState::Idle,
        waits: None,
        progress: None,
    };
    let expected = r#"{"type":"snapshot","messages":[],"hasMore":false,"partial":null,"state":"idle"}"#;
    assert_eq!(text(&snapshot), expected);
    let ended = RunEndedFrame {
        run: None,
        outcome: Some(OutcomeKind::Stopped),
        reason: Some("stopped_by_user"),
        error: None,
        message_id: None,
        usage: None,
    };
    let expected = r#"{"type":"run_ended","run":null,"outcome":"stopped","reason":"stopped_by_user","error":null,"message_id":null,"usage":null}"#;
    assert_eq!(text(&ended), expected);
}

#[test]
fn due_work_has_only_the_fields_of_its_kind() {
    let run = DueWork { what: "run", at: Some(1), ..DueWork::default() };
    assert_eq!(text(&run), r#"{"what":"run","at":1}"#);
    let job = DueWork { what: "export", at: Some(1), tries: Some(Some(2)), error: Some(None), ..run };
    assert_eq!(text(&job), r#"{"what":"export","at":1,"tries":2,"error":null}"#);
    let wait = DueWork {
        what: "wait",
        subject: Some(Some("w_1")),
        kind: Some("approval"),
        at: Some(1),
        ..DueWork::default()
    };
    assert_eq!(text(&wait), r#"{"what":"wait","subject":"w_1","kind":"approval","at":1}"#);
}

#[test]
fn the_number_of_deleted_messages_is_absent_or_null_or_known() {
    let changed = |deleted| text(&MessageChanged { success: true, deleted, run: None });
    assert_eq!(changed(None), r#"{"success":true}"#);
    assert_eq!(changed(Some(None)), r#"{"success":true,"deleted":null}"#);
    assert_eq!(changed(Some(Some(2))), r#"{"success":true,"deleted":2}"#);
}

#[test]
fn the_address_of_a_client_document_is_its_last_field() {
    let metadata = ClientMetadata {
        client_name: "Bobbin",
        client_uri: "u",
        redirect_uris: vec!["r".into()],
        grant_types: &["authorization_code"],
        response_types: &["code"],
        token_endpoint_auth_method: "none",
        application_type: "web",
    };
    let expected = r#"{"client_name":"Bobbin","client_uri":"u","redirect_uris":["r"],"grant_types":["authorization_code"],"response_types":["code"],"token_endpoint_auth_method":"none","application_type":"web","client_id":"d"}"#;
    assert_eq!(text(&ClientDocument { metadata, client_id: "d".into() }), expected);
}
