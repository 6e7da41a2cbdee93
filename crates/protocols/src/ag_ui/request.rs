//! Requests of AG-UI clients. They always send the whole conversation, with an id for each message. The
//! thread has most of it already; only the messages after the last reply are new. Answers to interrupts are
//! sent beside the messages.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::openai::completion_request::file;
use bobbin_definitions::error::{Code, Error, Result};
use bobbin_definitions::json;
use bobbin_definitions::limits;

/// Maximum bytes of a client's ids of runs and messages, which are stored with the message.
const ID_BYTES: usize = 200;
/// Maximum number of answers to interrupts that are decided at once.
const ANSWERS: usize = 100;

/// A request for a run. Earlier messages stay unparsed.
#[derive(Debug)]
pub struct RunRequest<'a> {
    /// The conversation: a thread's key, or its id.
    pub thread: String,
    /// The client's id of the run.
    pub run: String,
    /// The client's id of the run that this one follows.
    pub parent: Option<String>,
    /// The new messages of a person, in order.
    pub said: Vec<UserMessage>,
    /// Answers to interrupts, and results of calls that the client has run.
    pub answers: Vec<Answer>,
    /// The page's context for the model.
    pub context: Option<String>,
    /// Properties that the page forwards to the agent, stored with the message.
    pub forwarded: Option<Value>,
    /// Names of the tools that the client would run.
    pub tools: Vec<String>,
    /// The client's version of the protocol.
    pub version: Version,
    messages: Vec<&'a RawValue>,
    /// Index after the last message of a person.
    last_user_message: usize,
    /// Index of the first new message.
    new: usize,
}

/// The client's version of the protocol. Clients send it from version 1.0 on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// A version before 1.0, or unknown. CopilotKit has such a client, which treats an end with additional
    /// fields as an error.
    #[default]
    Before1,
    /// 1.0 or later.
    From1,
}

impl Version {
    fn of(said: Option<&str>) -> Version {
        let major = said.and_then(|text| text.split('.').next()?.parse::<u32>().ok());
        if major.is_some_and(|major| major >= 1) { Version::From1 } else { Version::Before1 }
    }
}

/// A message of a person.
#[derive(Debug, PartialEq)]
pub struct UserMessage {
    /// The client's id of the message.
    pub id: String,
    /// Its text.
    pub text: String,
    /// Its files, in the form of `POST …/messages`.
    pub files: Vec<Value>,
}

/// An answer of the client.
#[derive(Debug, PartialEq)]
pub enum Answer {
    /// To an interrupt.
    Interrupt {
        /// The wait.
        wait: String,
        /// The answer; `None` if the interrupt was cancelled.
        payload: Option<Value>,
    },
    /// The result of a call that the client has run.
    Result {
        /// The model's id of the call.
        call: String,
        /// The result.
        output: String,
        /// Whether it failed.
        failed: bool,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestBody<'a> {
    #[serde(default)]
    thread_id: Option<String>,
    #[serde(default)]
    run_id: Option<String>,
    #[serde(default)]
    parent_run_id: Option<String>,
    #[serde(default, borrow)]
    messages: Option<Vec<&'a RawValue>>,
    #[serde(default)]
    tools: Option<Vec<ToolName>>,
    #[serde(default)]
    context: Option<Vec<ContextItem>>,
    #[serde(default)]
    forwarded_props: Option<Value>,
    #[serde(default)]
    resume: Option<Vec<ResumeEntry>>,
    #[serde(default)]
    protocol_version: Option<String>,
}

#[derive(Deserialize)]
struct ToolName {
    name: String,
}

#[derive(Deserialize)]
struct ContextItem {
    description: String,
    value: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResumeEntry {
    interrupt_id: String,
    status: Status,
    #[serde(default)]
    payload: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Resolved,
    Cancelled,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    #[serde(default)]
    id: String,
    #[serde(default)]
    role: String,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    tool_calls: Option<Vec<Value>>,
    #[serde(default)]
    tool_call_id: Option<String>,
    #[serde(default)]
    error: Option<String>,
}

impl Answer {
    fn of(ResumeEntry { interrupt_id: wait, status, payload }: ResumeEntry) -> Answer {
        let payload = match status {
            Status::Resolved => Some(payload.unwrap_or_default()),
            Status::Cancelled => None,
        };
        Answer::Interrupt { wait, payload }
    }
}

impl<'a> RunRequest<'a> {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// `bad_json`, `missing_field`, `invalid_field`, `too_large`: each names the field.
    pub fn parse(body: &'a str) -> Result<RunRequest<'a>> {
        let sent: RequestBody<'a> = bobbin_definitions::json::from_str(body)
            .map_err(|error| Error::new(Code::BadJson, format!("The body is no RunAgentInput: {error}.")))?;
        let messages = sent.messages.ok_or_else(|| Error::missing("messages"))?;
        let read = MessageCounts::of(&messages)?;
        let mut request = RunRequest {
            thread: sent.thread_id.filter(|id| !id.is_empty()).ok_or_else(|| Error::missing("threadId"))?,
            run: id("runId", sent.run_id.unwrap_or_default())?,
            parent: sent.parent_run_id.map(|run| id("parentRunId", run)).transpose()?,
            said: Vec::new(),
            answers: Vec::new(),
            context: context(&sent.context.unwrap_or_default()),
            forwarded: sent.forwarded_props.filter(|props| !is_empty(props)),
            tools: sent.tools.unwrap_or_default().into_iter().map(|tool| tool.name).collect(),
            version: Version::of(sent.protocol_version.as_deref()),
            messages,
            last_user_message: read.said,
            new: read.new,
        };
        let bytes = request.forwarded.as_ref().map_or(0, |props| props.to_string().len());
        if bytes > limits::METADATA_BYTES {
            let text =
                format!("`forwardedProps` has {bytes} bytes; the limit is {}.", limits::METADATA_BYTES);
            return Err(Error::new(Code::TooLarge, text).at("forwardedProps"));
        }
        request.read_new()?;
        request.answers.extend(sent.resume.unwrap_or_default().into_iter().map(Answer::of));
        if request.answers.len() > ANSWERS {
            return Err(Error::field("resume", format!("At most {ANSWERS} answers are taken at once.")));
        }
        Ok(request)
    }

    /// Parses the messages after the last reply.
    fn read_new(&mut self) -> Result<()> {
        for (at, raw) in self.messages.iter().enumerate().skip(self.new) {
            let read = message(raw, at)?;
            match read.role.as_str() {
                "user" => {
                    let mut files = Vec::new();
                    let text = said_now(&read.content, at, &mut files)?;
                    self.said.push(UserMessage { id: id(&place(at, ".id"), read.id)?, text, files });
                }
                "tool" => {
                    let call = read.tool_call_id.ok_or_else(|| Error::missing(&place(at, ".toolCallId")))?;
                    let failed = read.error.is_some();
                    let told = text_of(&read.content, at)?;
                    let output = if told.is_empty() { read.error.unwrap_or_default() } else { told };
                    self.answers.push(Answer::Result { call, output, failed });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Earlier messages, in the form of `history` of a new thread.
    ///
    /// # Errors
    /// `invalid_field`: a message is invalid.
    pub fn history(&self) -> Result<Vec<Value>> {
        let mut history = Vec::new();
        for (at, raw) in self.messages.iter().enumerate() {
            let read = message(raw, at)?;
            let instructs = matches!(read.role.as_str(), "system" | "developer");
            if at >= self.new && !instructs {
                continue;
            }
            let (role, text) = match read.role.as_str() {
                "system" | "developer" => ("system", text_of(&read.content, at)?),
                "user" => ("user", earlier(&read.content, at)?),
                "assistant" => ("assistant", answered(&read, at)?),
                "tool" => ("user", format!("[Result of a call] {}", text_of(&read.content, at)?)),
                // Reasoning, and other content of pages.
                _ => continue,
            };
            if !text.trim().is_empty() {
                history.push(json!({ "role": role, "content": text }));
            }
        }
        Ok(history)
    }

    /// The messages that the client has.
    ///
    /// # Errors
    /// `invalid_field`: a message is invalid.
    pub fn held(&self, until: HistoryLimit<'_>) -> Result<ClientMessages> {
        let upto = match until {
            HistoryLimit::All => self.messages.len(),
            HistoryLimit::LastSaid => self.last_user_message,
            HistoryLimit::Reply(reply) => self.behind(reply)?,
        };
        let (held, forgotten) = self.messages.split_at_checked(upto).unwrap_or_default();
        let texts: Vec<&str> = held.iter().map(|raw| raw.get()).collect();
        let results = Results::of(held)?;
        Ok(ClientMessages { messages: texts.join(","), results, afresh: !forgotten.is_empty() })
    }

    /// Index of the first of the client's messages after a reply and its results, which come from an
    /// interrupted stream.
    fn behind(&self, reply: &str) -> Result<usize> {
        let mut found = false;
        for (at, raw) in self.messages.iter().enumerate() {
            let head: Head<'_> =
                bobbin_definitions::json::from_str(raw.get()).map_err(|error| wrong(at, &error))?;
            if found && head.role != "tool" {
                return Ok(at);
            }
            found |= head.id == reply;
        }
        Ok(self.messages.len())
    }
}

/// The limit up to which a client's messages are valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryLimit<'a> {
    /// All of them.
    All,
    /// Up to the last message of a person. The rest is sent again.
    LastSaid,
    /// Up to this reply and the results of its calls.
    Reply(&'a str),
}

/// Messages that a client has.
#[derive(Debug, Default)]
pub struct ClientMessages {
    /// In the client's form, JSON separated by commas: the beginning of a snapshot.
    pub messages: String,
    /// Results of calls that are among them.
    pub results: Results,
    /// Whether the client has more messages, which it must discard.
    pub afresh: bool,
}

/// Results of calls that a client has. Clients add their own messages: besides an answer to an interrupt,
/// CopilotKit sends that answer as the result of the call, which it is not.
#[derive(Clone, Debug, Default)]
pub struct Results {
    calls: BTreeSet<String>,
    /// Calls, with the ids and the texts of their results.
    same: BTreeSet<(String, String)>,
}

impl Results {
    fn of(messages: &[&RawValue]) -> Result<Results> {
        let (mut calls, mut same) = (Vec::new(), Vec::new());
        for (at, raw) in messages.iter().enumerate() {
            let head: Head<'_> =
                bobbin_definitions::json::from_str(raw.get()).map_err(|error| wrong(at, &error))?;
            if head.role != "tool" {
                continue;
            }
            let read = message(raw, at)?;
            let (call, text) = (read.tool_call_id.unwrap_or_default(), text_of(&read.content, at)?);
            calls.push(call.clone());
            same.extend([(call.clone(), read.id), (call, text)]);
        }
        Ok(Results { calls: calls.into_iter().collect(), same: same.into_iter().collect() })
    }

    /// Whether there is a message for this call, with any content.
    pub(super) fn has_any(&self, call: &str) -> bool {
        self.calls.contains(call)
    }

    /// Whether the client has the result of a call: the message itself, or the same text under its own id.
    pub(super) fn has(&self, call: &str, id: &str, text: &str) -> bool {
        let has = |what: &str| self.same.contains(&(call.to_owned(), what.to_owned()));
        has(id) || has(text)
    }
}

/// The fields that are needed of every message.
#[derive(Default)]
struct MessageCounts {
    said: usize,
    new: usize,
}

impl MessageCounts {
    fn of(messages: &[&RawValue]) -> Result<MessageCounts> {
        let mut read = MessageCounts::default();
        for (at, raw) in messages.iter().enumerate() {
            let head: Head<'_> =
                bobbin_definitions::json::from_str(raw.get()).map_err(|error| wrong(at, &error))?;
            match &*head.role {
                "assistant" => read.new = at + 1,
                "user" => read.said = at + 1,
                "tool" | "system" | "developer" | "reasoning" | "activity" => {}
                other => {
                    let shown: String = other.chars().take(40).collect();
                    let text = format!("There is no role “{shown}”.");
                    return Err(Error::field(&place(at, ".role"), text));
                }
            }
        }
        Ok(read)
    }
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(default, borrow)]
    id: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    role: std::borrow::Cow<'a, str>,
}

fn id(field: &str, id: String) -> Result<String> {
    match id.len() {
        0 => Err(Error::missing(field)),
        1..=ID_BYTES => Ok(id),
        _ => Err(Error::field(field, format!("`{field}` has at most {ID_BYTES} bytes."))),
    }
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(Map::is_empty)
}

/// A page's context as a text for the model.
fn context(told: &[ContextItem]) -> Option<String> {
    let lines = told.iter().map(|ContextItem { description, value }| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("- {description}: {value}")
    });
    let lines: Vec<String> = lines.collect();
    (!lines.is_empty()).then(|| format!("What the person sees now:\n{}", lines.join("\n")))
}

fn place(at: usize, name: &str) -> String {
    format!("messages[{at}]{name}")
}

fn wrong(at: usize, error: &serde_json::Error) -> Error {
    Error::field(&place(at, ""), format!("This is no message: {error}."))
}

fn message(raw: &RawValue, at: usize) -> Result<Message> {
    bobbin_definitions::json::from_str(raw.get()).map_err(|error| wrong(at, &error))
}

/// The text of a content. Other parts are ignored.
fn text_of(content: &Value, at: usize) -> Result<String> {
    parts(content, at, |part, _| Ok(text_in(part)))
}

/// An earlier message of a person. Parts that are not text are replaced by a note.
fn earlier(content: &Value, at: usize) -> Result<String> {
    parts(content, at, |part, kind| Ok(if kind == "text" { text_in(part) } else { format!("[{kind}]") }))
}

/// An earlier reply. Calls become notes, because the model needs to know of them.
fn answered(message: &Message, at: usize) -> Result<String> {
    let mut texts = vec![text_of(&message.content, at)?];
    for call in message.tool_calls.iter().flatten() {
        let text = |name: &str| {
            call.pointer(&format!("/function/{name}")).and_then(Value::as_str).unwrap_or_default()
        };
        texts.push(format!("[Call of {}] {}", text("name"), text("arguments")));
    }
    texts.retain(|text| !text.is_empty());
    Ok(texts.join("\n"))
}

/// A new message of a person.
fn said_now(content: &Value, at: usize, files: &mut Vec<Value>) -> Result<String> {
    parts(content, at, |part, kind| match kind {
        "text" => Ok(text_in(part)),
        "image" | "audio" | "video" | "document" => {
            let of = |name: &str| part.pointer(&format!("/source/{name}")).and_then(Value::as_str);
            let (value, kind) = (of("value").unwrap_or_default(), of("mimeType").unwrap_or_default());
            let url = match of("type") {
                Some("data") => format!("data:{kind};base64,{value}"),
                _ => value.to_owned(),
            };
            let name = part.pointer("/metadata/filename").and_then(Value::as_str);
            files.push(file(&url, name, &place(at, ".content"))?);
            Ok(String::new())
        }
        other => {
            let shown: String = other.chars().take(40).collect();
            let text = format!("A message of a person has no part of the type “{shown}”.");
            Err(Error::field(&place(at, ".content"), text)
                .hint("It has text, image, audio, video and document."))
        }
    })
}

fn text_in(part: &Value) -> String {
    part.get("text").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn parts(content: &Value, at: usize, mut one: impl FnMut(&Value, &str) -> Result<String>) -> Result<String> {
    match content {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => {
            let mut texts = Vec::new();
            for part in parts {
                let text = one(part, part.get("type").and_then(Value::as_str).unwrap_or_default())?;
                if !text.is_empty() {
                    texts.push(text);
                }
            }
            Ok(texts.join("\n"))
        }
        _ => Err(Error::field(&place(at, ".content"), "`content` is text, or a list of parts.")),
    }
}
