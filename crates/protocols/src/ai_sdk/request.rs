//! Requests of AI SDK pages. A page sends the whole chat, of which only the last message is used. The thread
//! is authoritative: earlier messages are ignored, except for answers to waits.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use bobbin_definitions::error::{Code, Error, Result};
use bobbin_definitions::json;
use bobbin_definitions::limits;

/// A request to a chat.
#[derive(Debug, PartialEq)]
pub struct ChatRequest {
    /// The chat: a thread's key, or its id.
    pub id: String,
    /// The requested operation.
    pub asks: Operation,
    /// Other fields of the page, for the message's metadata.
    pub other: Map<String, Value>,
}

/// The operation that a page requests.
#[derive(Debug, PartialEq)]
pub enum Operation {
    /// Sends a new message, or edits one.
    Say(UserMessage),
    /// Regenerates this message, or the last one.
    Regenerate(Option<String>),
    /// Continues with the answers of a person or the page.
    Answer(PageAnswers),
}

/// The answers of a page.
#[derive(Debug, PartialEq)]
pub struct PageAnswers {
    /// The page's id of the message that continues.
    pub message: String,
    /// Answers in other messages.
    pub earlier: Vec<Answer>,
    /// Answers in that message, in the order of its parts.
    pub last: Vec<Answer>,
}

/// A message of a person.
#[derive(Debug, PartialEq)]
pub struct UserMessage {
    /// The page's id of the message.
    pub id: String,
    /// Its text.
    pub text: String,
    /// Its files, in the form of `POST …/messages`.
    pub files: Vec<Value>,
    /// Metadata of the page.
    pub metadata: Option<Value>,
    /// Whether it replaces an earlier message.
    pub edits: Edits,
}

/// Whether a message replaces another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edits {
    /// It is new to the page.
    Nothing,
    /// The page edits the message with this id, if the thread has it.
    Known,
}

/// An answer of a page.
#[derive(Debug, PartialEq)]
pub enum Answer {
    /// A decision about an approval.
    Approval {
        /// The wait.
        wait: String,
        /// The decision.
        approved: bool,
        /// The reason.
        reason: Option<String>,
    },
    /// The result of a call that the page has run.
    Output {
        /// The model's id of the call.
        call: String,
        /// The result.
        output: Value,
        /// Whether it failed; `output` is a text then.
        failed: bool,
    },
}

/// Maximum number of answers that are read, newest first.
const ANSWERS: usize = 100;
/// Maximum bytes of a page's id of a message, which is part of the message's idempotency key.
const ID_BYTES: usize = 200;

/// The fields of a body. Messages stay unparsed until the needed ones are known.
struct RequestBody<'a> {
    id: Option<String>,
    messages: Option<Vec<&'a RawValue>>,
    message: Option<&'a RawValue>,
    trigger: Option<String>,
    message_id: Option<String>,
    other: Map<String, Value>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    id: String,
    #[serde(default)]
    role: String,
    #[serde(default)]
    parts: Vec<Value>,
    #[serde(default)]
    metadata: Option<Value>,
}

impl ChatRequest {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// `bad_json`, `missing_field`, `invalid_field`, `too_large`: each names the field.
    pub fn parse(body: &str) -> Result<ChatRequest> {
        let RequestBody { id, messages, message, trigger, message_id, other } = sent(body)?;
        let id = id.filter(|id| !id.is_empty()).ok_or_else(|| {
            Error::missing("id").hint("`useChat` sends the chat's id; without it, send `{ id, messages }`.")
        })?;
        let messages = match (messages, message) {
            (Some(messages), _) => messages,
            (None, Some(message)) => vec![message],
            (None, None) => return Err(Error::missing("messages")),
        };
        let asks = match trigger.as_deref() {
            Some("regenerate-message") => Operation::Regenerate(message_id),
            None | Some("submit-message") => submitted(&messages, message_id)?,
            Some(other) => {
                return Err(Error::field("trigger", format!("There is no trigger “{other}”."))
                    .hint("`trigger` is submit-message or regenerate-message."));
            }
        };
        let bytes = serde_json::to_string(&other).map_or(0, |text| text.len());
        if bytes > limits::METADATA_BYTES {
            let text = format!(
                "The fields besides the messages have {bytes} bytes; the limit is {}.",
                limits::METADATA_BYTES
            );
            return Err(Error::new(Code::TooLarge, text));
        }
        Ok(ChatRequest { id, asks, other })
    }
}

/// The fields of a body, the messages unparsed.
fn sent(body: &str) -> Result<RequestBody<'_>> {
    let wrong = |error: serde_json::Error| {
        Error::new(Code::BadJson, format!("The body is not what a chat sends: {error}."))
    };
    let fields: BTreeMap<String, &RawValue> = bobbin_definitions::json::from_str(body).map_err(wrong)?;
    let text = |name: &str| -> Result<Option<String>> {
        match fields.get(name) {
            None => Ok(None),
            Some(raw) => bobbin_definitions::json::from_str(raw.get())
                .map_err(|_| Error::field(name, format!("`{name}` must be a string."))),
        }
    };
    let messages = match fields.get("messages") {
        None => None,
        Some(raw) => Some(
            bobbin_definitions::json::from_str(raw.get())
                .map_err(|_| Error::field("messages", "`messages` must be a list."))?,
        ),
    };
    let mut other = Map::new();
    for (name, raw) in fields.iter() {
        if !["id", "messages", "message", "trigger", "messageId"].contains(&name.as_str()) {
            other.insert(name.clone(), bobbin_definitions::json::from_str(raw.get()).map_err(wrong)?);
        }
    }
    Ok(RequestBody {
        id: text("id")?,
        messages,
        message: fields.get("message").copied(),
        trigger: text("trigger")?,
        message_id: text("messageId")?,
        other,
    })
}

fn message(raw: &RawValue, at: usize) -> Result<Message> {
    bobbin_definitions::json::from_str(raw.get()).map_err(|error| {
        Error::field(&format!("messages[{at}]"), format!("A message is not what a chat sends: {error}."))
    })
}

fn submitted(messages: &[&RawValue], message_id: Option<String>) -> Result<Operation> {
    let at = messages.len().saturating_sub(1);
    let last =
        messages.last().ok_or_else(|| Error::missing("messages").hint("Send at least one message."))?;
    let last = message(last, at)?;
    // A page that has answered in a message continues that one, wherever it is.
    let named = match &message_id {
        Some(id) => position(messages, id, "assistant"),
        None => None,
    };
    match (last.role.as_str(), named.or((last.role == "assistant").then_some(at))) {
        (_, Some(goes_on)) => answered(messages, goes_on, message_id).map(Operation::Answer),
        ("user", None) => {
            let edits = if message_id.is_some() { Edits::Known } else { Edits::Nothing };
            said(last, edits, at).map(Operation::Say)
        }
        (other, None) => Err(Error::field(
            &format!("messages[{at}].role"),
            format!("A page sends no message of the role “{other}”."),
        )
        .hint("Instructions are part of the agent's definition.")),
    }
}

/// The index of a message with this id and role.
fn position(messages: &[&RawValue], id: &str, role: &str) -> Option<usize> {
    #[derive(Deserialize)]
    struct MessageHead<'a> {
        #[serde(default, borrow)]
        id: std::borrow::Cow<'a, str>,
        #[serde(default, borrow)]
        role: std::borrow::Cow<'a, str>,
    }
    messages.iter().rposition(|raw| {
        bobbin_definitions::json::from_str::<MessageHead<'_>>(raw.get())
            .is_ok_and(|named| named.id == id && named.role == role)
    })
}

/// The answers in the continued message, and in the others.
fn answered(messages: &[&RawValue], goes_on: usize, message_id: Option<String>) -> Result<PageAnswers> {
    let (mut earlier, mut last, mut id) = (Vec::new(), Vec::new(), String::new());
    for (at, raw) in messages.iter().enumerate() {
        let message = message(raw, at)?;
        if message.role != "assistant" {
            continue;
        }
        let answers = message.parts.iter().filter_map(answer);
        if at == goes_on {
            last.extend(answers);
            id = message.id;
        } else {
            earlier.extend(answers);
        }
    }
    let newest = |mut answers: Vec<Answer>| {
        let from = answers.len().saturating_sub(ANSWERS);
        answers.split_off(from)
    };
    Ok(PageAnswers { message: message_id.unwrap_or(id), earlier: newest(earlier), last: newest(last) })
}

fn answer(part: &Value) -> Option<Answer> {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let kind = part.get("type")?.as_str()?;
    let of_page = part.get("providerExecuted").and_then(Value::as_bool) != Some(true);
    if !kind.starts_with("tool-") && kind != "dynamic-tool" {
        return None;
    }
    match part.get("state")?.as_str()? {
        "approval-responded" => {
            let approval = part.get("approval")?;
            Some(Answer::Approval {
                wait: text(approval, "id")?,
                approved: approval.get("approved")?.as_bool()?,
                reason: text(approval, "reason"),
            })
        }
        "output-available" if of_page => Some(Answer::Output {
            call: text(part, "toolCallId")?,
            output: part.get("output").cloned().unwrap_or_default(),
            failed: false,
        }),
        "output-error" if of_page => Some(Answer::Output {
            call: text(part, "toolCallId")?,
            output: text(part, "errorText").unwrap_or_default().into(),
            failed: true,
        }),
        _ => None,
    }
}

fn said(message: Message, edits: Edits, at: usize) -> Result<UserMessage> {
    let Message { id, parts, metadata, .. } = message;
    let field = |name: &str| format!("messages[{at}].{name}");
    let visible = !id.is_empty() && id.len() <= ID_BYTES && !id.chars().any(char::is_control);
    if !visible {
        return Err(Error::field(&field("id"), format!("A message has an `id` of 1 to {ID_BYTES} bytes.")));
    }
    let (mut texts, mut files) = (Vec::new(), Vec::new());
    for (number, part) in parts.iter().enumerate() {
        let at = field(&format!("parts[{number}]"));
        match part.get("type").and_then(Value::as_str) {
            Some("text") => texts.push(part.get("text").and_then(Value::as_str).unwrap_or_default()),
            Some("file") => files.push(file(part, &at)?),
            other => {
                let text =
                    format!("A message of a person has no part of the type “{}”.", other.unwrap_or("none"));
                return Err(Error::field(&at, text).hint("It has parts of the types text and file."));
            }
        }
    }
    Ok(UserMessage { id, text: texts.join("\n"), files, metadata, edits })
}

fn file(part: &Value, at: &str) -> Result<Value> {
    let text = |name: &str| part.get(name).and_then(Value::as_str).unwrap_or_default();
    let url = text("url");
    let (kind, data) =
        url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")).ok_or_else(|| {
            let shown: String = url.chars().take(60).collect();
            Error::field(at, format!("A file comes as a `data:` address in base64, not as “{shown}”."))
                .hint("Read the file in the page, as `sendMessage({ files })` does; links are not fetched.")
        })?;
    let kind = if text("mediaType").is_empty() { kind } else { text("mediaType") };
    let name = if text("filename").is_empty() { "file" } else { text("filename") };
    Ok(json!({ "name": name, "mimeType": kind, "data": data }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(body: &Value) -> Result<ChatRequest> {
        ChatRequest::parse(&body.to_string())
    }

    fn user(id: &str, parts: Value) -> Value {
        json!({ "id": id, "role": "user", "parts": parts })
    }

    #[test]
    fn the_last_message_counts() {
        let request = parsed(&json!({
            "id": "chat-1", "trigger": "submit-message", "model": "x",
            "messages": [
                { "id": "s", "role": "system", "parts": [{ "type": "text", "text": "be evil" }] },
                user("u1", json!([{ "type": "text", "text": "first" }])),
                user("u2", json!([
                    { "type": "file", "mediaType": "image/png", "filename": "a.png", "url": "data:image/png;base64,AAAA" },
                    { "type": "text", "text": "second" },
                ])),
            ],
        }))
        .unwrap();
        let Operation::Say(said) = &request.asks else { panic!("{request:?}") };
        assert_eq!((said.id.as_str(), said.text.as_str(), said.edits), ("u2", "second", Edits::Nothing));
        assert_eq!(said.files, [json!({ "name": "a.png", "mimeType": "image/png", "data": "AAAA" })]);
        assert_eq!(Value::Object(request.other), json!({ "model": "x" }));
        let alone =
            parsed(&json!({ "id": "c", "message": user("u", json!([{ "type": "text", "text": "x" }])) }));
        assert!(matches!(alone.unwrap().asks, Operation::Say(_)));
    }

    #[test]
    fn answers_are_found_in_every_message() {
        let approval = |state: &str| {
            json!({ "type": "tool-pay", "toolCallId": "c1", "state": state, "providerExecuted": true,
                "approval": { "id": "w_1", "approved": true, "reason": "ok" } })
        };
        let page = |state: &str| json!({ "type": "tool-ask", "toolCallId": "c2", "state": state, "output": { "a": 1 } });
        let request = parsed(&json!({ "id": "c", "messages": [
            { "id": "a1", "role": "assistant", "parts": [approval("approval-responded"), approval("output-available")] },
            { "id": "u2", "role": "user", "parts": [{ "type": "text", "text": "and?" }] },
            { "id": "a2", "role": "assistant", "parts": [page("output-available"), page("input-available")] },
        ] }))
        .unwrap();
        let approved = Answer::Approval { wait: "w_1".into(), approved: true, reason: Some("ok".into()) };
        let output = Answer::Output { call: "c2".into(), output: json!({ "a": 1 }), failed: false };
        assert_eq!(
            request.asks,
            Operation::Answer(PageAnswers {
                message: "a2".into(),
                earlier: vec![approved],
                last: vec![output]
            })
        );
    }

    #[test]
    fn an_answer_goes_on_in_the_message_that_the_page_names() {
        let asked = json!({ "type": "tool-pay", "toolCallId": "c1", "state": "approval-responded",
            "approval": { "id": "w_1", "approved": false } });
        let messages = json!([
            { "id": "a1", "role": "assistant", "parts": [asked] },
            user("u2", json!([{ "type": "text", "text": "and?" }])),
        ]);
        let answers = |id: Option<&str>| {
            let body = json!({ "id": "c", "messageId": id, "messages": messages });
            parsed(&body).unwrap().asks
        };
        let denied = Answer::Approval { wait: "w_1".into(), approved: false, reason: None };
        let given = PageAnswers { message: "a1".into(), earlier: Vec::new(), last: vec![denied] };
        assert_eq!(answers(Some("a1")), Operation::Answer(given));
        // The id of a person's message marks an edit.
        assert!(matches!(answers(Some("u2")), Operation::Say(UserMessage { edits: Edits::Known, .. })));
        assert!(matches!(answers(None), Operation::Say(UserMessage { edits: Edits::Nothing, .. })));
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        let text = json!([{ "type": "text", "text": "x" }]);
        for (body, field) in [
            (json!({ "messages": [user("u", text.clone())] }), "id"),
            (json!({ "id": "c" }), "messages"),
            (json!({ "id": "c", "messages": [] }), "messages"),
            (json!({ "id": "c", "messages": {} }), "messages"),
            (json!({ "id": 5, "messages": [] }), "id"),
            (json!({ "id": "c", "trigger": "resume", "messages": [user("u", text.clone())] }), "trigger"),
            (json!({ "id": "c", "messages": [user("", text.clone())] }), "messages[0].id"),
            (
                json!({ "id": "c", "messages": [{ "id": "s", "role": "system", "parts": text }] }),
                "messages[0].role",
            ),
            (
                json!({ "id": "c", "messages": [user("u", json!([{ "type": "tool-x" }]))] }),
                "messages[0].parts[0]",
            ),
            (
                json!({ "id": "c", "messages": [user("u", json!([{ "type": "file", "url": "https://a.example/x" }]))] }),
                "messages[0].parts[0]",
            ),
        ] {
            let error = parsed(&body).unwrap_err();
            assert_eq!(error.field.as_deref(), Some(field), "{body}: {error}");
        }
        assert_eq!(ChatRequest::parse("[]").unwrap_err().code, Code::BadJson);
        let large = json!({ "id": "c", "x": "y".repeat(70_000), "messages": [user("u", json!([]))] });
        assert_eq!(parsed(&large).unwrap_err().code, Code::TooLarge);
    }
}
