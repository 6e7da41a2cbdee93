//! Requests of clients of OpenAI's chat completions. They always send the whole conversation. The thread has
//! most of it already; only the messages after the last reply are new.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::openai::errors::unsupported;
use bobbin_definitions::error::{Code, Error, Result};
use bobbin_definitions::json;

/// Maximum number of ignored options that are listed, and of their characters.
const IGNORED: usize = 32;
const IGNORED_CHARS: usize = 64;

/// Options that cannot be ignored, because the response would not be the one that the client requests.
const REFUSED: &[&str] = &["audio", "functions", "function_call", "web_search_options", "top_logprobs"];

/// The beginning of Open WebUI's default prompts for requests beside a chat.
const CHORE: &str = "### Task:";

/// Options that are supported, or that can be ignored without being listed.
const KNOWN: &[&str] = &[
    "model",
    "messages",
    "stream",
    "stream_options",
    "metadata",
    "user",
    "prompt_cache_key",
    "tools",
    "tool_choice",
    "n",
    "logprobs",
    "modalities",
    "response_format",
    "reasoning",
];

/// A request for a completion. Messages stay unparsed until the needed ones are known.
#[derive(Debug)]
pub struct CompletionRequest<'a> {
    /// The agent.
    pub model: String,
    /// Whether a stream is requested.
    pub stream: bool,
    /// Whether its last chunk has the usage.
    pub usage: bool,
    /// `metadata.thread_id`.
    pub thread: Option<String>,
    /// The id of the person.
    pub user: Option<String>,
    /// The key that conversations of one kind share.
    pub cache_key: Option<String>,
    /// Names of tools that the client would run.
    pub tools: Vec<String>,
    /// Ignored options.
    pub ignored: Vec<String>,
    messages: Vec<&'a RawValue>,
    /// Index of the first new message.
    new: usize,
}

/// The new content of a request.
#[derive(Debug, PartialEq)]
pub enum NewContent {
    /// A person's message.
    Said {
        /// Its text.
        text: String,
        /// Its files, in the form of `POST …/messages`.
        files: Vec<Value>,
    },
    /// Results of calls that the client has run: the model's ids and the results.
    Results(Vec<(String, String)>),
}

/// A person's messages with their answer.
#[derive(Debug, PartialEq)]
pub struct Turn {
    /// All texts before the answer.
    pub said: String,
    /// The answer, if it is one message without calls.
    pub answer: Option<String>,
}

/// Maximum number of turns that are compared with a thread.
const TURNS: usize = 50;

#[derive(Deserialize)]
struct RoleOf<'a> {
    #[serde(borrow)]
    role: std::borrow::Cow<'a, str>,
}

#[derive(Deserialize)]
struct Message {
    role: String,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    tool_calls: Option<Vec<Value>>,
    #[serde(default)]
    tool_call_id: Option<String>,
}

impl<'a> CompletionRequest<'a> {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// `bad_json`, `missing_field`, `invalid_field`, `unsupported_parameter`: each names the field.
    pub fn parse(body: &'a str) -> Result<CompletionRequest<'a>> {
        let fields: BTreeMap<String, &'a RawValue> =
            bobbin_definitions::json::from_str(body).map_err(|error| {
                Error::new(Code::BadJson, format!("The body is not a request for a completion: {error}."))
            })?;
        let options = Options(&fields);
        options.refuse_completions()?;
        let model = options
            .text("model")?
            .ok_or_else(|| Error::missing("model").hint("GET /v1/models lists them."))?;
        let messages: Vec<&RawValue> = match fields.get("messages") {
            None => return Err(Error::missing("messages")),
            Some(raw) => bobbin_definitions::json::from_str(raw.get())
                .map_err(|_| Error::field("messages", "`messages` must be a list."))?,
        };
        let mut new = messages.len();
        for (at, raw) in messages.iter().enumerate().rev() {
            if role(raw, at)? == "assistant" {
                break;
            }
            new = at;
        }
        let metadata = options.value("metadata")?;
        let stream_options = options.value("stream_options")?;
        Ok(CompletionRequest {
            model,
            stream: options.flag("stream")?,
            usage: stream_options.get("include_usage").and_then(Value::as_bool) == Some(true),
            thread: metadata.get("thread_id").and_then(Value::as_str).map(str::to_owned),
            user: options.text("user")?,
            cache_key: options.text("prompt_cache_key")?,
            tools: options.tools()?,
            ignored: options.ignored(KNOWN, REFUSED),
            messages,
            new,
        })
    }

    /// Messages before the new ones, in the form of `history` of a new thread. Instructions are first,
    /// wherever they are in the list.
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
            let text = match read.role.as_str() {
                "system" | "developer" => text_of(&read.content, at)?,
                "user" => earlier(&read.content, at)?,
                "assistant" => answered(&read, at)?,
                "tool" => format!("[Result of a call] {}", text_of(&read.content, at)?),
                other => return Err(no_role(other, at)),
            };
            let role = match read.role.as_str() {
                "system" | "developer" => "system",
                "assistant" => "assistant",
                _ => "user",
            };
            if !text.trim().is_empty() {
                history.push(json!({ "role": role, "content": text }));
            }
        }
        Ok(history)
    }

    /// The last answered turns before the new messages.
    ///
    /// # Errors
    /// `invalid_field`: a message is invalid.
    pub fn turns(&self) -> Result<Vec<Turn>> {
        let mut turns: Vec<Turn> = Vec::new();
        let (mut said, mut answers) = (Vec::new(), Vec::new());
        let mut before = self.messages.iter().enumerate().take(self.new).rev().peekable();
        while let Some((at, raw)) = before.next() {
            let read = message(raw, at)?;
            match read.role.as_str() {
                "user" => said.push(earlier(&read.content, at)?),
                "assistant" => answers.push(read),
                _ => {}
            }
            let begins = match before.peek() {
                None => true,
                Some((at, raw)) => matches!(&*role(raw, *at)?, "assistant" | "tool"),
            };
            if begins && !said.is_empty() {
                said.reverse();
                let answer = match answers.as_slice() {
                    [one] if one.tool_calls.as_ref().is_none_or(Vec::is_empty) => {
                        Some(text_of(&one.content, at)?)
                    }
                    _ => None,
                };
                turns.push(Turn { said: said.join("\n\n"), answer });
                (said, answers) = (Vec::new(), Vec::new());
                if turns.len() == TURNS {
                    break;
                }
            }
        }
        turns.reverse();
        Ok(turns)
    }

    /// Whether this is Open WebUI's own request, such as for a chat's title: one text without earlier
    /// messages, and no stream.
    pub fn is_utility_request(&self, new: &NewContent) -> bool {
        self.new == 0
            && !self.stream
            && matches!(new, NewContent::Said { text, .. } if text.trim_start().starts_with(CHORE))
    }

    /// Parses the messages after the last reply.
    ///
    /// # Errors
    /// `invalid_field`, `missing_field`: there are none, or they are not messages of a person or results.
    pub fn new_messages(&self) -> Result<NewContent> {
        let (mut texts, mut files, mut results) = (Vec::new(), Vec::new(), Vec::new());
        for (at, raw) in self.messages.iter().enumerate().skip(self.new) {
            let read = message(raw, at)?;
            match read.role.as_str() {
                "user" => texts.push(said(&read.content, at, &mut files)?),
                "system" | "developer" => {}
                "tool" => {
                    let call = read
                        .tool_call_id
                        .clone()
                        .ok_or_else(|| Error::missing(&place(at, ".tool_call_id")))?;
                    results.push((call, text_of(&read.content, at)?));
                }
                other => return Err(no_role(other, at)),
            }
        }
        if !texts.is_empty() {
            return Ok(NewContent::Said { text: texts.join("\n\n"), files });
        }
        if results.is_empty() {
            let text = "The last message is no user's, so there is nothing to answer.";
            return Err(Error::field("messages", text).hint("Send what the person says last."));
        }
        Ok(NewContent::Results(results))
    }
}

/// The fields of a body.
pub(super) struct Options<'a, 'b>(pub(super) &'b BTreeMap<String, &'a RawValue>);

impl Options<'_, '_> {
    pub(super) fn value(&self, name: &str) -> Result<Value> {
        self.0.get(name).map_or(Ok(Value::Null), |raw| {
            bobbin_definitions::json::from_str(raw.get())
                .map_err(|_| Error::field(name, format!("`{name}` is no JSON.")))
        })
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<String>> {
        match self.value(name)? {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text).filter(|text| !text.is_empty())),
            _ => Err(Error::field(name, format!("`{name}` must be a string."))),
        }
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool> {
        match self.value(name)? {
            Value::Null => Ok(false),
            Value::Bool(flag) => Ok(flag),
            _ => Err(Error::field(name, format!("`{name}` must be true or false."))),
        }
    }

    /// Refuses unsupported options, unless their values have no effect.
    pub(super) fn refuse(&self, names: &[&str]) -> Result<()> {
        for name in names {
            if !asks_nothing(&self.value(name)?) {
                return Err(unsupported(name, &format!("Bobbin has no `{name}`.")));
            }
        }
        Ok(())
    }

    /// Refuses options that would change the response.
    fn refuse_completions(&self) -> Result<()> {
        self.refuse(REFUSED)?;
        if self.value("n")?.as_i64().is_some_and(|n| n != 1) {
            return Err(unsupported("n", "There is one answer to a message: `n` is 1."));
        }
        if self.flag("logprobs")? {
            return Err(unsupported("logprobs", "Bobbin has no `logprobs`."));
        }
        if self.value("modalities")?.as_array().is_some_and(|list| list.iter().any(|one| one != "text")) {
            return Err(unsupported("modalities", "Answers are text."));
        }
        let form = self.value("response_format")?;
        if form.get("type").and_then(Value::as_str).is_some_and(|kind| kind != "text") {
            let text = "An answer's form is the definition's to say: `response_format` is text.";
            return Err(unsupported("response_format", text));
        }
        Ok(())
    }

    fn tools(&self) -> Result<Vec<String>> {
        let tools = self.value("tools")?;
        tools.as_array().into_iter().flatten().map(tool_name).collect()
    }

    /// Names of the ignored options.
    pub(super) fn ignored(&self, known: &[&str], refused: &[&str]) -> Vec<String> {
        let plain = |name: &&String| {
            name.chars().count() <= IGNORED_CHARS
                && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
        };
        let names = self.0.keys();
        let names = names.filter(|name| !known.contains(&name.as_str()) && !refused.contains(&name.as_str()));
        names.filter(plain).take(IGNORED).cloned().collect()
    }
}

/// The name of a tool that the client would run.
pub(super) fn tool_name(tool: &Value) -> Result<String> {
    let name = tool.pointer("/function/name").or_else(|| tool.get("name")).and_then(Value::as_str);
    name.map(str::to_owned).ok_or_else(|| unsupported("tools", "Tools are functions with a name."))
}

/// Whether the value of an option has the same effect as leaving it out. (`function_call` selects from
/// `functions`. Without these, its two values that name no function select nothing.)
fn asks_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => matches!(text.as_str(), "" | "none" | "auto"),
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) => false,
    }
}

fn place(at: usize, name: &str) -> String {
    format!("messages[{at}]{name}")
}

fn no_role(role: &str, at: usize) -> Error {
    let shown: String = role.chars().take(40).collect();
    Error::field(&place(at, ".role"), format!("There is no role “{shown}”."))
        .hint("Roles are system, developer, user, assistant and tool.")
}

fn wrong(at: usize, error: &serde_json::Error) -> Error {
    Error::field(&place(at, ""), format!("This is no message: {error}."))
}

fn role<'a>(raw: &'a RawValue, at: usize) -> Result<std::borrow::Cow<'a, str>> {
    let RoleOf { role } = bobbin_definitions::json::from_str(raw.get()).map_err(|error| wrong(at, &error))?;
    Ok(role)
}

fn message(raw: &RawValue, at: usize) -> Result<Message> {
    bobbin_definitions::json::from_str(raw.get()).map_err(|error| wrong(at, &error))
}

/// The text of a content that may only have text.
fn text_of(content: &Value, at: usize) -> Result<String> {
    parts(content, at, |part, _| Ok(part.get("text").and_then(Value::as_str).unwrap_or_default().to_owned()))
}

/// An earlier message of a person. Parts that are not text are replaced by a note.
fn earlier(content: &Value, at: usize) -> Result<String> {
    parts(content, at, |part, kind| {
        Ok(match kind {
            "text" => part.get("text").and_then(Value::as_str).unwrap_or_default().to_owned(),
            "image_url" => "[image]".to_owned(),
            _ => "[file]".to_owned(),
        })
    })
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
fn said(content: &Value, at: usize, files: &mut Vec<Value>) -> Result<String> {
    parts(content, at, |part, kind| match kind {
        "text" => Ok(part.get("text").and_then(Value::as_str).unwrap_or_default().to_owned()),
        "image_url" => {
            let url = part.pointer("/image_url/url").and_then(Value::as_str).unwrap_or_default();
            files.push(file(url, None, &place(at, ".content"))?);
            Ok(String::new())
        }
        "file" => {
            let text = |name: &str| part.pointer(&format!("/file/{name}")).and_then(Value::as_str);
            files.push(file(
                text("file_data").unwrap_or_default(),
                text("filename"),
                &place(at, ".content"),
            )?);
            Ok(String::new())
        }
        other => {
            let shown: String = other.chars().take(40).collect();
            let text = format!("A message of a person has no part of the type “{shown}”.");
            Err(Error::field(&place(at, ".content"), text).hint("It has text, image_url and file."))
        }
    })
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

/// A file of a message.
///
/// # Errors
/// `invalid_field`: it is a link. Links are not fetched.
pub(crate) fn file(url: &str, name: Option<&str>, place: &str) -> Result<Value> {
    let found = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    let (kind, data) = found.ok_or_else(|| {
        let shown: String = url.chars().take(60).collect();
        let text = format!("A file comes as a `data:` address in base64, not as “{shown}”.");
        Error::field(place, text).hint("Links are not fetched.")
    })?;
    let name = name.map_or_else(|| kind.replace('/', "."), str::to_owned);
    Ok(json!({ "name": name, "mimeType": kind, "data": data }))
}
