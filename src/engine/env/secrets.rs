//! Keeps secrets out of everything that is stored, logged and sent: tool results, errors, log lines, events,
//! messages from code, responses of endpoints. All secrets that this object has seen count while it is in
//! memory, including replaced ones. Without secrets there is no cost. Texts of models are not redacted,
//! because models see no secrets.

use std::borrow::Cow;
use std::rc::Rc;

use serde_json::{Map, Value};

use crate::definitions::VariableKind;
use crate::definitions::message::ToolResult;
use crate::engine::export::config::{HEADERS, secrets as secrets_in};
use crate::engine::features::Variables;
use crate::env::{Redact, Redacted, Redactor, StoredValue, VariableSet};
use crate::error::{Error, Fault, Result};
use crate::host::Sql;
use crate::models::ProviderError;
use crate::sdk::NewMessage;
use crate::sdk::messages::{MessageUpdate, NewAttachment};
use crate::store::file_record::FileOptions;
use crate::store::state::State;
use crate::work::native::endpoint_call::EndpointAnswer;

impl Variables<'_> {
    /// The redactor of all known secrets.
    #[inline(never)]
    pub(crate) fn redactor(&self) -> Rc<Redactor> {
        let secrets = &self.ephemeral.env.secrets;
        if !secrets.whole.get() {
            self.gather();
        }
        secrets.redactor.borrow().clone()
    }

    #[inline(never)]
    fn gather(&self) {
        // The thread's values are unavailable during a transition and before the thread is loaded. The next
        // call adds them.
        let own = match self.state.try_borrow_mut() {
            Ok(mut state) => state
                .as_mut()
                .and_then(|state| self.own_set(state, self.host.sql()).ok())
                .map(|set| held_in(set)),
            Err(_) => None,
        };
        self.gather_with(own);
    }

    fn gather_with(&self, own: Option<Vec<(String, StoredValue)>>) {
        let secrets = &self.ephemeral.env.secrets;
        let declared = self.declared();
        let whole = own.is_some();
        let mut held: Vec<(String, StoredValue)> = Vec::new();
        self.ephemeral.env.levels.each(|name, value| held.push((name.to_owned(), value.clone())));
        held.extend(own.into_iter().flatten());
        let mut known = secrets.known.borrow_mut();
        for (name, held) in held {
            let Ok(value) = held.read() else { continue };
            let secret = (name, value.to_owned());
            if held.kind == VariableKind::Secret || declared.is_secret(&secret.0) {
                learn(&mut known, secret);
            } else {
                // The value is no longer a secret.
                known.retain(|known| *known != secret);
            }
        }
        for name in declared.secrets() {
            if let Some(value) = self.host.var(name) {
                learn(&mut known, (name.to_owned(), value));
            }
        }
        for value in self.host.var(HEADERS).iter().flat_map(|text| secrets_in(text)) {
            learn(&mut known, (HEADERS.to_owned(), value));
        }
        for (name, value) in declared.secret_values() {
            learn(&mut known, (name.to_owned(), value.to_owned()));
        }
        let named = known.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        *secrets.redactor.borrow_mut() = Rc::new(Redactor::new(named));
        secrets.whole.set(whole);
    }

    /// Adds a secret that is not a variable's value. It replaces the one with the same name.
    pub(crate) fn learn_secret(&self, name: &str, value: &str) {
        let secrets = &self.ephemeral.env.secrets;
        let mut known = secrets.known.borrow_mut();
        if known.iter().any(|(its, held)| its == name && held == value) {
            return;
        }
        known.retain(|(its, _)| its != name);
        known.push((name.to_owned(), value.to_owned()));
        drop(known);
        secrets.forget();
    }

    /// Redacts a text.
    #[inline(never)]
    pub(crate) fn redact(&self, text: String) -> String {
        self.redactor().owned(text)
    }

    /// Redacts any value, as required for storing, sending, logging and cutting.
    pub(crate) fn shown<T: Redact>(&self, told: T) -> Redacted<T> {
        self.redactor().shown(told)
    }

    /// Redacts a text during a transition.
    pub(crate) fn shown_within(&self, state: &mut State, sql: &dyn Sql, text: String) -> Result<Redacted> {
        self.learn_own(state, sql)?;
        Ok(self.shown(text))
    }

    /// Redacts a text during a transition.
    #[inline(never)]
    pub(crate) fn redact_within(&self, state: &mut State, sql: &dyn Sql, text: String) -> Result<String> {
        self.learn_own(state, sql)?;
        Ok(self.redact(text))
    }

    /// Loads the thread's values as secrets, during a transition. Includes the values that it replaces,
    /// because code may still use them.
    pub(super) fn learn_own(&self, state: &mut State, sql: &dyn Sql) -> Result<()> {
        if !self.ephemeral.env.secrets.whole.get() {
            let own = held_in(self.own_set(state, sql)?);
            self.gather_with(Some(own));
        }
        Ok(())
    }

    /// Removes values from the secrets, because definitions make the runtime show them.
    pub(crate) fn show(&self, values: &[String]) {
        let secrets = &self.ephemeral.env.secrets;
        secrets.known.borrow_mut().retain(|(_, known)| !values.contains(known));
        secrets.forget();
    }

    /// Redacts a tool's result before it is stored.
    #[inline(never)]
    pub(crate) fn redact_result(&self, result: ToolResult) -> ToolResult {
        let redactor = self.redactor();
        if redactor.is_empty() {
            return result;
        }
        // File bytes are not redacted, like those that a tool writes.
        let file = |part: Value| match part {
            Value::Object(mut fields) => {
                let data = fields.remove("data");
                let mut part = redactor.json(Value::Object(fields));
                if let (Some(fields), Some(data)) = (part.as_object_mut(), data) {
                    fields.insert("data".into(), data);
                }
                part
            }
            other => redactor.json(other),
        };
        ToolResult {
            result: result.result.map(|value| redactor.json(value)),
            error: result.error.map(|text| redactor.owned(text)),
            stack: result.stack.map(|text| redactor.owned(text)),
            subagent_id: result.subagent_id.map(|text| redactor.owned(text)),
            content: result.content.into_iter().map(file).collect(),
            attachments: result.attachments.into_iter().map(file).collect(),
            error_code: result.error_code.map(|text| redactor.owned(text)),
            error_data: result.error_data.map(|data| {
                data.into_iter().map(|(name, value)| (redactor.owned(name), redactor.json(value))).collect()
            }),
            ..result
        }
    }

    /// Redacts an error for a client.
    #[inline(never)]
    pub(crate) fn redact_error(&self, mut error: Error) -> Error {
        let redactor = self.redactor();
        let Fault { message, hint, field, .. } = &mut *error;
        for text in [Some(message), hint.as_mut(), field.as_mut()].into_iter().flatten() {
            *text = redactor.owned(std::mem::take(text));
        }
        error
    }

    /// Redacts a provider's error message, then shortens it.
    pub(crate) fn redacted_failure(&self, error: ProviderError) -> ProviderError {
        let redactor = self.redactor();
        error.cleaned(|text| redactor.owned(text))
    }

    /// Redacts JSON.
    #[inline(never)]
    pub(crate) fn redact_json(&self, value: serde_json::Value) -> serde_json::Value {
        self.redactor().json(value)
    }

    /// Writes a redacted line to the operator's log.
    #[inline(never)]
    pub(crate) fn log(&self, line: &str) {
        self.host.log(&self.redactor().text(line));
    }

    /// Writes a log line once while the object is in memory.
    #[inline(never)]
    pub(crate) fn log_once(&self, line: String) {
        let mut told = self.ephemeral.env.secrets.told.borrow_mut();
        if !told.contains(&line) {
            self.log(&line);
            told.push(line);
        }
    }
}

/// Redacts the fields of an object.
fn fields(secrets: &Redactor, fields: Map<String, Value>) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (secrets.owned(name), secrets.json(value))).collect()
}

/// Redacts the metadata of a file, but not its bytes.
impl Redact for FileOptions {
    fn without(self, secrets: &Redactor) -> FileOptions {
        FileOptions { metadata: self.metadata.map(|metadata| fields(secrets, metadata)), ..self }
    }
}

impl Redact for NewAttachment {
    fn without(self, secrets: &Redactor) -> NewAttachment {
        let text = |text: String| secrets.owned(text);
        match self {
            NewAttachment::Path { path, description } => {
                NewAttachment::Path { path: text(path), description: description.map(text) }
            }
            NewAttachment::Inline { name, mime_type, data, options, description } => NewAttachment::Inline {
                name: text(name),
                mime_type: text(mime_type),
                data,
                options: options.without(secrets),
                description: description.map(text),
            },
        }
    }
}

/// Redacts a message from code, because models read it.
impl Redact for NewMessage {
    fn without(self, secrets: &Redactor) -> NewMessage {
        if secrets.is_empty() {
            return self;
        }
        NewMessage {
            content: secrets.owned(self.content),
            metadata: fields(secrets, self.metadata),
            attachments: self.attachments.into_iter().map(|file| file.without(secrets)).collect(),
            ..self
        }
    }
}

impl Redact for MessageUpdate {
    fn without(self, secrets: &Redactor) -> MessageUpdate {
        MessageUpdate {
            content: self.content.map(|text| secrets.owned(text)),
            metadata: self.metadata.map(|metadata| fields(secrets, metadata)),
            ..self
        }
    }
}

/// Redacts headers and body.
impl Redact for EndpointAnswer {
    fn without(mut self, secrets: &Redactor) -> EndpointAnswer {
        if secrets.is_empty() {
            return self;
        }
        // A redaction contains `[`, which no header name may. Drop headers whose name changes.
        self.headers.retain(|(name, _)| matches!(secrets.text(name), Cow::Borrowed(_)));
        for (_, value) in &mut self.headers {
            *value = secrets.owned(std::mem::take(value));
        }
        if let Some(clean) = secrets.bytes(&self.body) {
            self.body = clean.into();
        }
        self
    }
}

fn held_in(set: &VariableSet) -> Vec<(String, StoredValue)> {
    set.iter().map(|(name, value)| (name.to_owned(), value.clone())).collect()
}

fn learn(known: &mut Vec<(String, String)>, secret: (String, String)) {
    if !known.contains(&secret) {
        known.push(secret);
    }
}
