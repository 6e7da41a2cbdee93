//! Approvals in the files of tools: a message for each mistake.

use serde_json::{Value, json};

use super::*;

const ARGS: &str =
    r#"{ "type": "object", "properties": { "amount": { "type": "number" }, "to": { "type": "string" } } }"#;

/// The messages about a tool with this approval, without the file that each begins with.
fn of(approval: Value) -> Vec<String> {
    of_tool(Some(serde_json::from_str(ARGS).unwrap()), approval)
}

fn of_tool(args: Option<Value>, approval: Value) -> Vec<String> {
    let mut tool =
        json!({ "description": "Pays.", "run": { "http": { "url": "https://bank.example.com/pay" } } });
    tool["approval"] = approval;
    if let Some(args) = args {
        tool["args"] = args;
    }
    let told = told_of("tools/pay.json", &tool.to_string());
    told.iter().map(|line| line.strip_prefix("tools/pay.json: error in ").unwrap().to_owned()).collect()
}

#[test]
fn what_is_right_is_not_complained_about() {
    let long = json!({ "mode": "when", "title": "Pay {{args.amount}} EUR to {{args.to}}", "reason": "Money.", "edit": ["amount"],
        "when": { "properties": { "amount": { "exclusiveMinimum": 100 } }, "required": ["amount"] },
        "by": "admin", "remember": "thread", "rememberBy": ["to"], "expiresAfterSeconds": 60, "onExpiry": "fail" });
    for approval in
        [json!("never"), json!("always"), json!("on_failure"), json!({}), json!({ "mode": "always" }), long]
    {
        assert_eq!(of(approval.clone()), [""; 0], "{approval}");
    }
    // A schema below an argument's property, or a text that only resembles a placeholder, names no argument.
    let within = json!({ "mode": "when", "title": "{{to}} {{args.to", "when": { "properties": { "to": { "properties": { "x": {} } } } } });
    assert_eq!(of(within), [""; 0]);
}

#[test]
fn a_mode_that_does_not_exist_is_told_with_those_that_do() {
    assert_eq!(
        of(json!("alway")),
        [
            "approval: there is no mode \"alway\"; did you mean \"always\"?; there are never, always, when, on_failure"
        ]
    );
    assert_eq!(
        of(json!({ "mode": "alway" })),
        ["approval.mode: \"alway\" is not known here; did you mean \"always\"?"]
    );
    assert_eq!(
        of(json!({ "mode": "sometimes" })),
        ["approval.mode: \"sometimes\" is not known here; there are never, always, when, on_failure"]
    );
}

#[test]
fn a_condition_belongs_to_its_mode() {
    assert_eq!(of(json!("when")), ["approval.when: missing: it says which arguments need an approval"]);
    assert_eq!(
        of(json!({ "mode": "always", "when": { "properties": { "to": {} } } })),
        ["approval.when: has a meaning with the mode \"when\" only"]
    );
    assert_eq!(
        of(json!({ "mode": "when", "when": { "properties": { "to": { "pattern": "a" } } } })),
        [
            "approval.when.properties.to.pattern: `pattern` is not supported: describe the form in `description`, and check it in the tool"
        ]
    );
}

#[test]
fn fields_and_words_that_do_not_exist_are_told() {
    for (approval, expected) in [
        (json!({ "mode": "always", "titel": "x" }), "approval.titel: unknown field; did you mean `title`?"),
        (
            json!({ "mode": "always", "decisions": [] }),
            "approval.decisions: unknown field; there are mode, when, title, reason, edit, by, remember, rememberBy, expiresAfterSeconds, onExpiry",
        ),
        (
            json!({ "mode": "always", "by": "nobody" }),
            "approval.by: \"nobody\" is not known here; there are thread, owner, admin",
        ),
        (
            json!({ "mode": "always", "remember": "ever" }),
            "approval.remember: \"ever\" is not known here; there are none, run, thread",
        ),
        (
            json!({ "mode": "always", "onExpiry": "approve" }),
            "approval.onExpiry: \"approve\" is not known here; there are deny, fail",
        ),
    ] {
        assert_eq!(of(approval.clone()), [expected], "{approval}");
    }
}

#[test]
fn values_of_another_type_are_told() {
    for (approval, expected) in [
        (json!(true), "approval: expected a name or an object, got true"),
        (json!(["always"]), "approval: expected a name or an object, got a list"),
        (json!({ "mode": 1 }), "approval.mode: expected a string, got 1"),
        (json!({ "mode": "always", "title": 1 }), "approval.title: expected a string, got 1"),
        (json!({ "mode": "always", "reason": [] }), "approval.reason: expected a string, got a list"),
        (
            json!({ "mode": "always", "edit": "amount" }),
            "approval.edit: expected a list, got the text \"amount\"",
        ),
        (json!({ "mode": "always", "edit": [1] }), "approval.edit[0]: expected a string, got 1"),
    ] {
        assert_eq!(of(approval.clone()), [expected], "{approval}");
    }
}

#[test]
fn a_duration_is_from_a_second_to_thirty_days() {
    for seconds in [0, 2_592_001, u64::MAX] {
        assert_eq!(
            of(json!({ "mode": "always", "expiresAfterSeconds": seconds })),
            ["approval.expiresAfterSeconds: must be from 1 to 2592000 (30 days)"]
        );
    }
    for (seconds, got) in [(json!(-1), "-1"), (json!(1.5), "1.5"), (json!("1 d"), "the text \"1 d\"")] {
        assert_eq!(
            of(json!({ "mode": "always", "expiresAfterSeconds": seconds })),
            [format!(
                "approval.expiresAfterSeconds: expected a whole number that is not negative, got {got}"
            )]
        );
    }
    for seconds in [1, 2_592_000] {
        assert_eq!(of(json!({ "mode": "always", "expiresAfterSeconds": seconds })), [""; 0]);
    }
}

#[test]
fn arguments_that_the_tool_does_not_have_are_told_wherever_they_are_named() {
    for (approval, expected) in [
        (
            json!({ "mode": "always", "title": "Pay {{args.amuont}} to {{args.to}}" }),
            "approval.title: the tool has no argument \"amuont\"; did you mean \"amount\"?",
        ),
        (
            json!({ "mode": "always", "title": "Pay {{args.}}" }),
            "approval.title: the tool has no argument \"\"; there are amount, to",
        ),
        (
            json!({ "mode": "when", "when": { "properties": { "currency": { "const": "EUR" } } } }),
            "approval.when.properties.currency: the tool has no argument \"currency\"; there are amount, to",
        ),
        (
            json!({ "mode": "when", "when": { "anyOf": [{ "properties": { "to": {} } }, { "oneOf": [{ "properties": { "too": {} } }] }] } }),
            "approval.when.anyOf[1].oneOf[0].properties.too: the tool has no argument \"too\"; did you mean \"to\"?",
        ),
        (
            json!({ "mode": "always", "edit": ["amount", "note"] }),
            "approval.edit[1]: the tool has no argument \"note\"; there are amount, to",
        ),
        (
            json!({ "mode": "always", "remember": "run", "rememberBy": ["tos"] }),
            "approval.rememberBy[0]: the tool has no argument \"tos\"; did you mean \"to\"?",
        ),
    ] {
        assert_eq!(of(approval.clone()), [expected], "{approval}");
    }
    assert_eq!(
        of(json!({ "mode": "when", "when": { "required": ["note"] } })),
        [
            "approval.when.required: names `note`, which is not among the properties",
            "approval.when.required: the tool has no argument \"note\"; there are amount, to",
        ]
    );
}

#[test]
fn a_tool_that_takes_any_argument_may_be_asked_about_any() {
    let approval = json!({ "mode": "when", "title": "Send {{args.subject}}", "when": { "properties": { "subject": {} } },
        "edit": ["subject"], "remember": "run", "rememberBy": ["to"] });
    for args in [
        None,
        Some(json!({ "type": "object" })),
        Some(json!({ "type": "object", "properties": {} })),
        Some(json!({ "type": "object", "properties": { "x": {} }, "additionalProperties": true })),
        Some(
            json!({ "type": "object", "properties": { "x": {} }, "additionalProperties": { "type": "string" } }),
        ),
    ] {
        assert_eq!(of_tool(args.clone(), approval.clone()), [""; 0], "{args:?}");
    }
    let closed = json!({ "type": "object", "properties": { "x": {} }, "additionalProperties": false });
    assert_eq!(
        of_tool(Some(closed), json!({ "mode": "always", "title": "{{args.subject}}" })),
        ["approval.title: the tool has no argument \"subject\"; there are x"]
    );
}

#[test]
fn what_is_remembered_by_needs_to_be_remembered() {
    assert_eq!(
        of(json!({ "mode": "always", "rememberBy": ["to"] })),
        ["approval.rememberBy: has a meaning with `remember` only"]
    );
}

#[test]
fn the_built_in_tool_that_asks_cannot_be_replaced() {
    let told = told_of(
        "tools/ask_user.json",
        r#"{ "description": "d", "run": { "native": "clock" }, "approval": "always" }"#,
    );
    assert!(told.len() == 1 && told[0].starts_with("tools/ask_user.json: error in name: "), "{told:?}");
}
