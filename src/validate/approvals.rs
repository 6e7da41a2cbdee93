//! Approvals: of tools, and of what holds for all tools of a folder, an agent or a prompt.

use crate::limits::WAIT_MAX_US;
use crate::names::hint;
use crate::spec::approval::{Approvals, Mode, Remember};
use crate::spec::references::Kind;
use crate::spec::tool::Tool;
use crate::spec::{Callable, ask_user, execute_code};
use crate::validate::{Check, Place};

const MODES: [&str; 4] = ["never", "always", "when", "on_failure"];

impl Check<'_> {
    pub(crate) fn approval(&mut self, at: Place<'_>, tool: &Tool) {
        let Some(approval) = &tool.approval else { return };
        if let Some(text) = &approval.unknown {
            let hint = hint(text, &MODES);
            let modes = MODES.join(", ");
            return self.error(
                at,
                "approval",
                format!("there is no mode \"{text}\"{hint}; there are {modes}"),
            );
        }
        match (approval.mode, &approval.when) {
            (Mode::When, None) => {
                self.error(at, "approval.when", "missing: it says which arguments need an approval")
            }
            (Mode::When, Some(schema)) => {
                // Arguments are an object: it need not be said.
                let mut schema = schema.clone();
                if let Some(fields) = schema.as_object_mut() {
                    fields.entry("type").or_insert_with(|| "object".into());
                }
                self.schema(at, "approval.when", &schema);
            }
            (_, Some(_)) => self.error(at, "approval.when", "has a meaning with the mode \"when\" only"),
            (_, None) => {}
        }
        let names = |field: &str| -> Vec<String> {
            let properties = tool.args.as_ref().and_then(|args| args.get(field)?.as_object());
            properties.map(|properties| properties.keys().cloned().collect()).unwrap_or_default()
        };
        let known = names("properties");
        for (field, listed) in
            [("approval.edit", &approval.edit), ("approval.rememberBy", &approval.remember_by)]
        {
            for (index, name) in listed.iter().enumerate().filter(|(_, name)| !known.contains(name)) {
                let hint = hint(name, &known.iter().map(String::as_str).collect::<Vec<_>>());
                self.error(
                    at,
                    format!("{field}[{index}]"),
                    format!("the tool has no argument \"{name}\"{hint}"),
                );
            }
        }
        if !approval.remember_by.is_empty() && approval.remember == Remember::None {
            self.error(at, "approval.rememberBy", "has a meaning with `remember` only");
        }
        self.seconds(at, "approval.expiresAfterSeconds", approval.expires_after_seconds);
    }

    /// What an agent or a prompt says of all of its tools.
    pub(crate) fn approvals(&mut self, at: Place<'_>, approvals: &Approvals) {
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
            if !built_in && !matches!(self.catalog.callable(name), Some(Callable::Tool(_))) {
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

    pub(crate) fn seconds(&mut self, at: Place<'_>, field: &str, seconds: Option<u64>) {
        let most = WAIT_MAX_US / crate::limits::SECOND_US;
        if seconds.is_some_and(|seconds| {
            seconds == 0 || i64::try_from(seconds).map_or(true, |seconds| seconds > most)
        }) {
            self.error(at, field, format!("must be from 1 to {most} (30 days)"));
        }
    }
}
