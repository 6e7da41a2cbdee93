//! Validation of approvals: of what holds for all tools of an agent or a prompt.

use serde_json::{Value, json};

use super::validate::complaints;

#[test]
fn what_holds_for_all_tools_is_looked_at_too() {
    let of = |pointer: &str, approvals: Value| complaints(&[(pointer, approvals)]);
    let [unknown] = of("/agents/helper/approvals", json!({ "trusted": ["lokup"] })).try_into().unwrap();
    assert!(
        unknown.contains("approvals.trusted[0]: there is no tool \"lokup\"; did you mean \"lookup\"?"),
        "{unknown}"
    );
    let [place] = of("/prompts/helper/approvals", json!({ "onMessage": "deny" })).try_into().unwrap();
    assert!(place.contains("approvals.onMessage: belongs to an agent, or to bobbin.json"), "{place}");
    let [long] =
        of("/agents/helper/approvals", json!({ "expiresAfterSeconds": 9_000_000 })).try_into().unwrap();
    assert!(long.contains("approvals.expiresAfterSeconds: must be from 1 to 2592000"), "{long}");
    let all = json!({ "policy": "unless-trusted", "trusted": ["lookup", "ask_user"], "onMessage": "deny", "expiresAfterSeconds": 60 });
    assert_eq!(of("/agents/helper/approvals", all), [""; 0]);
}

#[test]
fn a_title_and_a_reason_name_arguments_of_the_tool() {
    let schema = json!({ "type": "object", "properties": { "amount": { "type": "number" } } });
    let tool = |title: &str, reason: &str| {
        let approval = json!({ "mode": "always", "title": title, "reason": reason });
        let tool = json!({ "description": "Pays.", "args": schema, "run": { "native": "clock" }, "approval": approval });
        complaints(&[("/tools/lookup", tool)])
    };
    assert_eq!(tool("Pay {{args.amount}}", "It is {{args.amount}}."), [""; 0]);
    let [title] = tool("Pay {{args.amont}}", "?").try_into().unwrap();
    assert!(title.contains("approval.title: the tool has no argument \"amont\""), "{title}");
    let [reason] = tool("Pay", "{{args.why}}").try_into().unwrap();
    assert!(reason.contains("approval.reason: the tool has no argument \"why\""), "{reason}");
}
