//! Hooks around one message: before and after it is stored, before and after it is changed.

use std::rc::Rc;

use serde_json::{Map, Value};

use crate::definitions::hook::HookName;
use crate::definitions::message::Role;
use crate::engine::cycle::accept::Input;
use crate::engine::definitions::Definitions;
use crate::engine::features::Hooks;
use crate::engine::hooks::chain::{ChainControl, Subject};
use crate::engine::hooks::{Site, wrong};
use crate::env::Redactor;
use crate::error::{Code, Error, Result};
use crate::limits;
use crate::sdk::messages::MessageUpdate;
use crate::sdk::scope::HookMode;
use crate::store::children::Child;
use crate::store::messages::{Row, SharedRow};
use crate::store::side::Side;
use crate::store::state::State;
use crate::store::window::Replay;

/// A message to be stored. Hooks may change its `content`, `metadata` and `silent`.
pub(super) struct CreatedMessage {
    thread_id: String,
    pub(super) row: Row,
    /// The secrets to redact in the hooks' changes.
    secrets: Rc<Redactor>,
}

impl CreatedMessage {
    pub(super) fn new(thread_id: &str, row: Row, secrets: Rc<Redactor>) -> CreatedMessage {
        CreatedMessage { thread_id: thread_id.to_owned(), row, secrets }
    }
}

impl Subject for CreatedMessage {
    fn args(&self) -> Vec<Value> {
        let mut message = self.row.to_json(&self.thread_id, false);
        if self.row.seq == 0 {
            // It gets its id when it is stored.
            message.as_object_mut().and_then(|fields| fields.insert("id".into(), Value::Null));
        }
        vec![message]
    }

    fn take(&mut self, answer: Value) -> Result<ChainControl, String> {
        let fields = match answer {
            Value::Null => return Ok(ChainControl::Go),
            Value::Object(fields) => fields,
            other => return Err(wrong("a message or null", &other)),
        };
        let mut row = self.row.clone();
        match fields.get("content") {
            None | Some(Value::Null) => {}
            // Unchanged text keeps what its sender may write.
            Some(Value::String(text)) if row.content.as_ref() == Some(text) => {}
            Some(Value::String(text)) => row.content = Some(self.secrets.owned(text.clone())),
            Some(other) => return Err(wrong("a text as `content`", other)),
        }
        match fields.get("silent") {
            None | Some(Value::Null) => {}
            Some(Value::Bool(silent)) => row.silent = *silent,
            Some(other) => return Err(wrong("true or false as `silent`", other)),
        }
        match fields.get("metadata") {
            None | Some(Value::Null) => {}
            Some(Value::Object(metadata)) => row.metadata = written(&self.row, metadata, &self.secrets)?,
            Some(other) => return Err(wrong("an object as `metadata`", other)),
        }
        let length = |row: &Row| row.content.as_ref().map_or(0, String::len);
        if length(&row) > limits::CONTENT_BYTES.max(length(&self.row)) {
            return Err(format!("it gave a message of {} bytes", length(&row)));
        }
        if row.role != Role::Tool && !row.is_reply() && row.is_blank() {
            return Err("it left a message without content".to_owned());
        }
        self.row = row;
        Ok(ChainControl::Go)
    }
}

/// Metadata for the row; unchanged entries stay as they were written.
fn written(row: &Row, metadata: &Map<String, Value>, secrets: &Redactor) -> Result<Option<String>, String> {
    let before = row.metadata();
    if before == *metadata {
        return Ok(row.metadata.clone());
    }
    let clean = |(name, value): (&String, &Value)| match before.get(name) == Some(value) {
        true => (name.clone(), value.clone()),
        false => (secrets.owned(name.clone()), secrets.json(value.clone())),
    };
    let text = Value::Object(metadata.iter().map(clean).collect()).to_string();
    let most = limits::METADATA_BYTES.max(row.metadata.as_ref().map_or(0, String::len));
    match text.len() {
        bytes if bytes > most => Err(format!("it gave `metadata` of {bytes} bytes")),
        _ => Ok((!metadata.is_empty()).then_some(text)),
    }
}

/// A change to a message.
struct MessageEdit {
    id: String,
    update: MessageUpdate,
    secrets: Rc<Redactor>,
}

impl Subject for MessageEdit {
    fn args(&self) -> Vec<Value> {
        vec![self.id.as_str().into(), self.update.to_json()]
    }

    fn take(&mut self, answer: Value) -> Result<ChainControl, String> {
        if !answer.is_null() && !answer.is_object() {
            return Err(wrong("the changes or null", &answer));
        }
        let mut update = self.update.clone();
        match answer.get("content") {
            None => {}
            Some(Value::String(text)) if text.trim().is_empty() || text.len() > limits::CONTENT_BYTES => {
                return Err(format!("it gave a `content` of {} bytes", text.len()));
            }
            Some(Value::String(text)) if self.update.content.as_ref() == Some(text) => {}
            Some(Value::String(text)) => update.content = Some(self.secrets.owned(text.clone())),
            Some(other) => return Err(wrong("a text as `content`", other)),
        }
        match answer.get("silent") {
            None | Some(Value::Null) => {}
            Some(Value::Bool(silent)) => update.silent = Some(*silent),
            Some(other) => return Err(wrong("true or false as `silent`", other)),
        }
        match answer.get("metadata") {
            None | Some(Value::Null) => {}
            Some(Value::Object(metadata)) if self.update.metadata.as_ref() == Some(metadata) => {}
            Some(Value::Object(metadata)) => {
                let secrets = &self.secrets;
                let clean = metadata.clone().into_iter();
                let clean = clean.map(|(name, value)| (secrets.owned(name), secrets.json(value)));
                update.metadata = Some(clean.collect());
            }
            Some(other) => return Err(wrong("an object as `metadata`", other)),
        }
        self.update = update;
        Ok(ChainControl::Go)
    }
}

impl Hooks<'_> {
    /// `before_create_message` for a row of the open step.
    pub(crate) async fn before_create(&self, definitions: &Definitions<'_>, row: Row) -> Result<Row> {
        if !self.has_hooks(definitions, &[HookName::BeforeCreateMessage]) {
            return Ok(row);
        }
        let at = Site::run(definitions, row.seq);
        let thread_id = self.read(|state, _| Ok(state.meta.stem.clone()))?;
        let mut created = CreatedMessage::new(&thread_id, row.clone(), self.variables().redactor());
        self.transform(&at, HookName::BeforeCreateMessage, &mut created).await?;
        Ok(fitting(&row, created.row))
    }

    /// `after_create_message` for a row of the open step.
    pub(crate) async fn after_create(&self, definitions: &Definitions<'_>, row: &SharedRow) -> Result<()> {
        if !self.has_hooks(definitions, &[HookName::AfterCreateMessage]) {
            return Ok(());
        }
        let message = self.read(|state, _| Ok(row.to_json(&state.meta.stem, false)))?;
        self.observe(&Site::run(definitions, row.seq), HookName::AfterCreateMessage, &[message]).await
    }

    /// Whether children start only after `after_subagent_created`. Read in the transition that creates a
    /// child.
    pub(crate) fn holds_children(&self, state: &State) -> bool {
        let side = state.active().map_or(Side::A, |run| run.side);
        let definitions = self.definitions_of(&state.meta.agent, side);
        definitions.is_some_and(|found| self.has_hooks(&found, &[HookName::AfterSubagentCreated]))
    }

    /// Runs `after_subagent_created` with the registry's entry. The child exists, and starts afterwards.
    pub(crate) async fn run_created_hooks(&self, reference: &str) -> Result<()> {
        let Some(definitions) = self.definitions()? else { return Ok(()) };
        let child = self.read_mut(|state, sql| {
            Ok(state.child(sql, reference)?.filter(Child::is_open).map(|child| child.to_json()))
        })?;
        let Some(child) = child else { return Ok(()) };
        let at = Site::beside(&definitions, reference.to_owned());
        self.observe(&at, HookName::AfterSubagentCreated, &[child]).await
    }

    /// Stores a message of code in the thread, which starts no run (spec §35.16). Returns its id.
    /// `after_create_message` runs with the drain that takes it in, as for every message from outside.
    ///
    /// # Errors
    /// `hook_failed` if a `before_create_message` fails (spec §9.1).
    pub(crate) async fn inject(&self, mut input: Input, hooked: HookMode) -> Result<String> {
        if hooked == HookMode::ByHook {
            input.hooks_are_done();
            return self.add_message(input, None);
        }
        let Some(definitions) = self.definitions()? else { return self.add_message(input, None) };
        let hooks = self.hooks_for(&definitions, HookName::BeforeCreateMessage);
        if hooks.is_empty() {
            return self.add_message(input, None);
        }
        let thread_id =
            self.read(|state, _| state.ensure_not_terminated().map(|()| state.meta.stem.clone()))?;
        let random: String = self.host.random().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        let at = Site::change(&definitions, format!("new-{random}"), hooked);
        let mut created =
            CreatedMessage::new(&thread_id, input.draft(self.host.now_us()), self.variables().redactor());
        for hook in hooks {
            let answer = self.call_hook(&at, hook, created.args()).await?;
            if let Err(error) = answer.and_then(|answer| created.take(answer)) {
                self.hook_failed(&at, hook, &error)?;
                let text = format!("The hook “{}” failed, so the message was not stored: {error}.", hook.id);
                return Err(Error::new(Code::HookFailed, text));
            }
        }
        input.becomes(created.row);
        input.hooks_are_done();
        self.add_message(input, None)
    }

    /// Runs `before_update_message`. Returns the change to make.
    pub(crate) async fn before_update(
        &self,
        definitions: &Definitions<'_>,
        id: &str,
        update: MessageUpdate,
        hooked: HookMode,
    ) -> Result<MessageUpdate> {
        if !self.has_hooks(definitions, &[HookName::BeforeUpdateMessage]) {
            return Ok(update);
        }
        // Each change has its own place, numbered by the next stored edit.
        let place = self.read(|state, _| place_of_edit(id, state.meta.edits + 1))?;
        let at = Site::change(definitions, place, hooked);
        let mut updates = MessageEdit { id: id.to_owned(), update, secrets: self.variables().redactor() };
        self.transform(&at, HookName::BeforeUpdateMessage, &mut updates).await?;
        Ok(updates.update)
    }

    /// Runs `after_update_message`.
    pub(crate) async fn after_update(
        &self,
        definitions: &Definitions<'_>,
        row: &SharedRow,
        hooked: HookMode,
    ) -> Result<()> {
        if !self.has_hooks(definitions, &[HookName::AfterUpdateMessage]) {
            return Ok(());
        }
        let (place, message) = self.read(|state, _| {
            let thread = &state.meta.stem;
            Ok((place_of_edit(&row.id(thread), state.meta.edits)?, row.to_json(thread, state.is_queued(row))))
        })?;
        self.observe(&Site::change(definitions, place, hooked), HookName::AfterUpdateMessage, &[message])
            .await
    }
}

/// The hooks' version of a message. If the text has changed, the provider's data is dropped, unless all of it
/// precedes the text: a provider may require it while its calls are answered.
pub(super) fn fitting(before: &Row, mut after: Row) -> Row {
    if after.content != before.content {
        let replay = Replay::read(before).filter(|_| !before.calls.is_empty());
        if !replay.is_some_and(|replay| replay.blocks.iter().all(|block| block.text == 0)) {
            after.reasoning = None;
        }
    }
    after
}

/// `<seq>.u<number of the edit>`.
fn place_of_edit(id: &str, edit: i64) -> Result<String> {
    let seq = id.rsplit_once('_').map_or(id, |(_, seq)| seq);
    Ok(format!("{seq}.u{edit}"))
}

#[cfg(test)]
mod tests {
    use crate::json;

    use super::*;
    use crate::store::messages::Inbound;

    fn created(role: Role) -> CreatedMessage {
        let metadata = Some(r#"{"a":1}"#.to_owned());
        let inbound = if role == Role::User { Inbound::Triggers } else { Inbound::Step };
        CreatedMessage::new(
            "thread",
            Row { inbound, metadata, ..Row::new(7, role, "text", 5) },
            Rc::default(),
        )
    }

    #[test]
    fn what_a_hook_may_make_of_a_message() {
        let cases = [
            (json!(null), "text", false, r#"{"a":1}"#),
            (json!({}), "text", false, r#"{"a":1}"#),
            (json!({ "content": "more", "role": "system", "id": "x" }), "more", false, r#"{"a":1}"#),
            (json!({ "silent": true, "content": null, "metadata": { "a": 1 } }), "text", true, r#"{"a":1}"#),
            (json!({ "metadata": { "b": 2 } }), "text", false, r#"{"b":2}"#),
        ];
        for (answer, content, silent, metadata) in cases {
            let mut created = created(Role::User);
            assert_eq!(created.take(answer.clone()), Ok(ChainControl::Go));
            let row = created.row;
            assert_eq!(
                (row.seq, row.role, row.content.as_deref(), row.silent, row.metadata.as_deref()),
                (7, Role::User, Some(content), silent, Some(metadata)),
                "{answer}"
            );
        }
        let mut created = created(Role::User);
        created.take(json!({ "metadata": {} })).unwrap();
        assert_eq!(created.row.metadata, None);
    }

    #[test]
    fn what_it_may_not_changes_nothing() {
        let long = "x".repeat(limits::CONTENT_BYTES + 1);
        let heavy = "x".repeat(limits::METADATA_BYTES);
        for answer in [
            json!("text"),
            json!([]),
            json!({ "content": 7 }),
            json!({ "content": "more", "silent": "yes" }),
            json!({ "content": "more", "metadata": [] }),
            json!({ "content": " " }),
            json!({ "content": long }),
            json!({ "metadata": { "x": heavy } }),
        ] {
            let mut created = created(Role::User);
            assert!(created.take(answer).is_err());
            assert_eq!((created.row.content.as_deref(), created.row.silent), (Some("text"), false));
        }
        assert_eq!(created(Role::Assistant).take(json!({ "content": "" })), Ok(ChainControl::Go));
    }

    #[test]
    fn what_a_hook_may_make_of_a_change() {
        let changed = |answer: Value| {
            let mut updates = MessageEdit { id: "m_1".into(), update: "text".into(), secrets: Rc::default() };
            updates.take(answer).map(|_| updates.update.to_json())
        };
        assert_eq!(changed(json!(null)), Ok(json!({ "content": "text" })));
        assert_eq!(changed(json!({})), Ok(json!({ "content": "text" })));
        let more = json!({ "content": "more", "silent": true, "metadata": { "a": 1 } });
        assert_eq!(changed(more.clone()), Ok(more));
        for wrong in [
            json!("more"),
            json!({ "content": null }),
            json!({ "content": "" }),
            json!([]),
            json!({ "silent": "yes" }),
            json!({ "metadata": [] }),
        ] {
            assert!(changed(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
