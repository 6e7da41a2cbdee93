//! Approvals of tools, and the approval settings of a folder, an agent or a prompt.

use serde_json::Value;

use crate::definitions::approval::{Approval, Approvals, Mode, Remember, TextPiece, text_pieces};
use crate::definitions::references::Kind;
use crate::definitions::schema::{DEPTH, required};
use crate::definitions::{Callable, ask_user, execute_code};
use crate::limits::WAIT_MAX_US;
use crate::names::hint;
use crate::validate::{Check, Subject};

const MODES: [&str; 4] = ["never", "always", "when", "on_failure"];

impl Check<'_> {
    /// Checks the approval in a field, such as `approval`, for calls with these arguments.
    pub(super) fn approval(
        &mut self,
        at: Subject<'_>,
        field: &str,
        approval: &Approval,
        args: Option<&Value>,
    ) {
        if let Some(text) = &approval.unknown {
            let hint = hint(text, &MODES);
            let modes = MODES.join(", ");
            return self.error(at, field, format!("there is no mode \"{text}\"{hint}; there are {modes}"));
        }
        match (approval.mode, &approval.when) {
            (Mode::When, None) => {
                let text = "missing: it says which arguments need an approval";
                self.error(at, format!("{field}.when"), text);
            }
            (Mode::When, Some(schema)) => {
                // The type defaults to `object`, because arguments are always one.
                let mut schema = schema.clone();
                if let Some(fields) = schema.as_object_mut() {
                    fields.entry("type").or_insert_with(|| "object".into());
                }
                self.schema(at, &format!("{field}.when"), &schema);
            }
            (_, Some(_)) => {
                self.error(at, format!("{field}.when"), "has a meaning with the mode \"when\" only");
            }
            (_, None) => {}
        }
        if let Some(known) = args.and_then(known_arguments) {
            for (inner, name) in named_arguments(approval) {
                if !known.contains(&name) {
                    let hint = hint(name, &known);
                    self.error(
                        at,
                        format!("{field}.{inner}"),
                        format!("the tool has no argument \"{name}\"{hint}"),
                    );
                }
            }
        }
        if !approval.remember_by.is_empty() && approval.remember == Remember::None {
            self.error(at, format!("{field}.rememberBy"), "has a meaning with `remember` only");
        }
        self.seconds(at, &format!("{field}.expiresAfterSeconds"), approval.expires_after_seconds);
    }

    /// Checks the approval settings of an agent or a prompt.
    pub(super) fn approvals(&mut self, at: Subject<'_>, approvals: &Approvals) {
        self.seconds(at, "approvals.expiresAfterSeconds", approvals.expires_after_seconds);
        if approvals.on_message.is_some() && at.kind == Kind::Prompt {
            self.error(
                at,
                "approvals.onMessage",
                "belongs to an agent, or to bobbin.json: a message is to the thread",
            );
        }
        for (index, name) in approvals.trusted.iter().enumerate() {
            let built_in = [ask_user::NAME, execute_code::NAME].contains(&name.as_str());
            let known = matches!(self.catalog.callable(name), Some(Callable::Tool(_))) || self.is_live(name);
            if !built_in && !known {
                let tools: Vec<&str> = self.catalog.tools.keys().map(String::as_str).collect();
                let hint = hint(name, &tools);
                self.error(
                    at,
                    format!("approvals.trusted[{index}]"),
                    format!("there is no tool \"{name}\"{hint}"),
                );
            }
        }
    }

    pub(super) fn seconds(&mut self, at: Subject<'_>, field: &str, seconds: Option<u64>) {
        let most = WAIT_MAX_US / crate::limits::SECOND_US;
        if seconds.is_some_and(|seconds| {
            seconds == 0 || i64::try_from(seconds).map_or(true, |seconds| seconds > most)
        }) {
            self.error(at, field, format!("must be from 1 to {most} (30 days)"));
        }
    }
}

/// The arguments in a schema; `None` when calls may have others: it lists none, or describes additional ones.
fn known_arguments(schema: &Value) -> Option<Vec<&str>> {
    let listed = schema.get("properties").and_then(Value::as_object).filter(|listed| !listed.is_empty())?;
    let closed = matches!(schema.get("additionalProperties"), None | Some(Value::Bool(false)));
    closed.then(|| listed.keys().map(String::as_str).collect())
}

/// The arguments that an approval names, each with its field in the approval.
fn named_arguments(approval: &Approval) -> Vec<(String, &str)> {
    let mut named = Vec::new();
    for (field, listed) in [("edit", &approval.edit), ("rememberBy", &approval.remember_by)] {
        let places = listed.iter().enumerate();
        named.extend(places.map(|(index, name)| (format!("{field}[{index}]"), name.as_str())));
    }
    for (field, text) in [("title", &approval.title), ("reason", &approval.reason)] {
        for piece in text.iter().flat_map(|text| text_pieces(text)) {
            if let TextPiece::Argument(name) = piece {
                named.push((field.to_owned(), name));
            }
        }
    }
    if let Some(when) = &approval.when {
        of_arguments(when, "when", 0, &mut named);
    }
    named
}

/// Collects arguments from a schema of all arguments, and from its branches. Nested properties are ignored.
fn of_arguments<'a>(schema: &'a Value, at: &str, depth: usize, named: &mut Vec<(String, &'a str)>) {
    let Some(schema) = schema.as_object().filter(|_| depth <= DEPTH) else { return };
    let properties = schema.get("properties").and_then(Value::as_object);
    for name in properties.into_iter().flat_map(|properties| properties.keys()) {
        named.push((format!("{at}.properties.{name}"), name));
    }
    for name in required(schema) {
        // Described arguments were reported above.
        if properties.is_none_or(|properties| !properties.contains_key(name)) {
            named.push((format!("{at}.required"), name));
        }
    }
    for keyword in ["anyOf", "oneOf"] {
        let branches = schema.get(keyword).and_then(Value::as_array).into_iter().flatten();
        for (index, branch) in branches.enumerate() {
            of_arguments(branch, &format!("{at}.{keyword}[{index}]"), depth + 1, named);
        }
    }
}
