//! The meaning of an AG-UI request that repeats a person's message: a retry of the request, an edit of the
//! text, or a regeneration of the reply. The protocol does not say which. The run's id shows whether the same
//! request was sent before.

use serde_json::{Map, Value};

use crate::ag_ui::message::{is_called, is_run_of, kept, runs_of};
use crate::ag_ui::request::RunRequest;
use crate::run_events::text_of;
use bobbin_definitions::error::{Error, Result};

/// A message of the thread that is sent again.
#[derive(Debug, PartialEq)]
pub struct Revision {
    /// The thread's id of it.
    pub message: String,
    /// The change before it is answered again; `None` if the same request was made before.
    pub change: Option<Change>,
}

/// The change of a message.
#[derive(Debug, PartialEq)]
pub struct Change {
    /// Whether the text changes, not only the reply.
    pub is_edit: bool,
    /// In the form of `PATCH …/messages/:id`.
    pub body: Value,
}

/// If the last message of a request is one of these rows: the revision that it requests.
///
/// # Errors
/// `invalid_field`: a changed text with files.
pub fn revision(rows: &[Value], request: &RunRequest<'_>) -> Result<Option<Revision>> {
    let known = request.said.last().and_then(|last| rows.iter().rev().find(|row| is_called(row, &last.id)));
    let Some(row) = known else { return Ok(None) };
    let message = text_of(row, "id").to_owned();
    if is_run_of(row, &request.run) {
        return Ok(Some(Revision { message, change: None }));
    }
    let said = || request.said.iter().filter(|said| is_called(row, &said.id));
    let texts: Vec<&str> = said().map(|said| said.text.as_str()).collect();
    let text = texts.join("\n\n");
    let is_edit = text != text_of(row, "content");
    if is_edit && said().any(|said| !said.files.is_empty()) {
        let text = "A message that is sent again with its id has another text; its files are what they were.";
        return Err(Error::field("messages", text).hint("Send files with a new message."));
    }
    let ids: Vec<&str> = said().map(|said| said.id.as_str()).collect();
    let metadata = kept(&ids, &request.run, &runs_of(row), request.forwarded.as_ref());
    let mut body = Map::new();
    body.insert("metadata".into(), metadata);
    if is_edit {
        body.insert("content".into(), text.into());
    }
    Ok(Some(Revision { message, change: Some(Change { is_edit, body: Value::Object(body) }) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bobbin_definitions::error::Code;
    use bobbin_definitions::json;

    fn row() -> Value {
        json!({ "id": "m_t_1", "role": "user", "content": "Hi",
            "metadata": { "ag_ui": { "messages": ["u1"], "run": "run-2", "earlier": ["run-1"] } } })
    }

    fn asked(run: &str, messages: &Value) -> Result<Option<Revision>> {
        let body = json!({ "threadId": "chat-1", "runId": run, "messages": messages }).to_string();
        revision(&[row()], &RunRequest::parse(&body)?)
    }

    fn said(id: &str, text: &str) -> Value {
        json!([{ "id": id, "role": "user", "content": text }])
    }

    #[test]
    fn a_run_that_is_known_is_a_request_that_was_made_before() {
        for (run, text) in [("run-1", "Hi"), ("run-2", "Hi"), ("run-1", "Hello")] {
            let again = asked(run, &said("u1", text)).unwrap();
            assert_eq!(again, Some(Revision { message: "m_t_1".into(), change: None }), "{run} {text}");
        }
        assert_eq!(asked("run-3", &said("u2", "Hi")).unwrap(), None, "it is new");
    }

    #[test]
    fn another_run_wants_another_answer_or_has_another_text() {
        for id in ["u1", "m_t_1"] {
            let anew = asked("run-3", &said(id, "Hi")).unwrap().unwrap().change.unwrap();
            let earlier = ["run-1", "run-2"];
            let metadata = json!({ "ag_ui": { "messages": [id], "run": "run-3", "earlier": earlier } });
            assert_eq!((anew.is_edit, anew.body), (false, json!({ "metadata": metadata })));
        }
        let edit = asked("run-3", &said("u1", "Hello")).unwrap().unwrap().change.unwrap();
        assert_eq!((edit.is_edit, &edit.body["content"]), (true, &json!("Hello")));
    }

    #[test]
    fn an_edit_brings_no_files() {
        let file = json!({ "type": "image", "source": { "type": "data", "value": "aGk=", "mimeType": "image/png" } });
        let messages = |text: &str| {
            let content = json!([{ "type": "text", "text": text }, file]);
            json!([{ "id": "u1", "role": "user", "content": content }])
        };
        let refused = asked("run-3", &messages("Hello")).unwrap_err();
        assert_eq!((refused.code, refused.field.as_deref()), (Code::InvalidField, Some("messages")));
        assert!(asked("run-3", &messages("Hi")).unwrap().is_some(), "another answer leaves them");
    }
}
