//! Requests of clients of OpenAI's responses: new items or the whole conversation, and the response or
//! conversation that it continues.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::openai::completion_request::{Options, file, tool_name};
use crate::openai::errors::unsupported;
use crate::openai::item_id;
use crate::openai::response_items::LABEL;
use crate::request::history;
use crate::run_events::text_of;
use bobbin_definitions::error::{Code, Error, Result};
use bobbin_definitions::json;

/// The type of an item that only refers to another one.
const REFERENCE: &str = "item_reference";

/// Options that cannot be ignored, because the response would not be the one that the client requests.
const REFUSED: &[&str] = &["prompt", "top_logprobs"];

/// Options that are supported, or that can be ignored without being listed.
const KNOWN: &[&str] = &[
    "model",
    "input",
    "instructions",
    "stream",
    "stream_options",
    "background",
    "store",
    "metadata",
    "conversation",
    "previous_response_id",
    "tools",
    "tool_choice",
    "text",
    "reasoning",
    "include",
    "prompt_cache_key",
    "user",
];

/// A request for a response.
#[derive(Debug)]
pub struct ResponseRequest {
    /// The agent.
    pub model: String,
    /// Whether a stream is requested.
    pub stream: bool,
    /// Whether the request returns at once, so that the result is read later.
    pub background: bool,
    /// Whether the response is kept.
    pub store: bool,
    /// Whether reasoning is requested.
    pub reasoning: bool,
    /// The requested conversation: a thread's id or key.
    pub conversation: Option<String>,
    /// The response that it follows.
    pub previous: Option<String>,
    /// The last item before the new ones, if it is a reference.
    pub referred: Option<Reference>,
    /// Names of tools that the client would run.
    pub tools: Vec<String>,
    /// Whether the client declares the server's tools, and therefore supports approvals.
    pub approves: bool,
    /// Ignored options.
    pub ignored: Vec<String>,
    /// Fields of the response that repeat the request.
    pub asked: Value,
    /// Instructions for this request.
    pub instructions: Option<String>,
    /// The new content.
    pub new: NewInput,
    /// Earlier messages, in the form of `history` of a new thread.
    history: Vec<Value>,
    /// The first reference among the items.
    first_reference: Option<Reference>,
}

/// An item that only refers to another one.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    at: usize,
    id: String,
}

impl Reference {
    fn of(at: usize, item: &Value) -> Option<Reference> {
        (text_of(item, "type") == REFERENCE).then(|| Reference { at, id: text_of(item, "id").to_owned() })
    }

    /// The location of the other item.
    ///
    /// # Errors
    /// `invalid_field`: it does not exist.
    pub fn place(&self) -> Result<item_id::ItemLocation> {
        item_id::place_of(&self.id).ok_or_else(|| self.missing())
    }

    /// The error for a missing item.
    pub fn missing(&self) -> Error {
        let shown: String = self.id.chars().take(80).collect();
        Error::field(&format!("input[{}].id", self.at), format!("There is no item “{shown}” here.")).hint(
            "Send the item itself, or name the conversation. The AI SDK sends items with `store: false`.",
        )
    }
}

/// The new content of a request.
#[derive(Debug, Default, PartialEq)]
pub struct NewInput {
    /// A person's text.
    pub text: String,
    /// Its files, in the form of `POST …/messages`.
    pub files: Vec<Value>,
    /// Results of calls that the client has run: the ids of the calls and the results.
    pub results: Vec<(String, String)>,
    /// Decisions of people: the wait, whether it is approved, and the reason.
    pub approvals: Vec<(String, bool, Option<String>)>,
}

impl NewInput {
    /// Whether there is a message of a person.
    pub fn says(&self) -> bool {
        !self.text.trim().is_empty() || !self.files.is_empty()
    }
}

impl ResponseRequest {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// `bad_json`, `missing_field`, `invalid_field`, `unsupported_parameter`: each names the field.
    pub fn parse(body: &str) -> Result<ResponseRequest> {
        let fields: BTreeMap<String, &RawValue> =
            bobbin_definitions::json::from_str(body).map_err(|error| {
                Error::new(Code::BadJson, format!("The body is not a request for a response: {error}."))
            })?;
        let options = Options(&fields);
        refuse(&options)?;
        let model = options
            .text("model")?
            .ok_or_else(|| Error::missing("model").hint("GET /v1/models lists them."))?;
        let instructions = options.text("instructions")?;
        let (previous, conversation) = (options.text("previous_response_id")?, conversation(&options)?);
        if previous.is_some() && conversation.is_some() {
            let text = "`previous_response_id` and `conversation` both say which conversation.";
            return Err(Error::field("conversation", text).hint("Send one of the two."));
        }
        let Input { history, first_reference, referred, new } = input(&items(&options)?)?;
        let (tools, approves) = tools(&options.value("tools")?)?;
        let summary = options.value("reasoning")?;
        let wants = |name: &str| summary.get(name).is_some_and(|value| !value.is_null());
        let store = options.value("store")? != json!(false);
        let background = options.flag("background")?;
        let metadata = options.value("metadata")?;
        Ok(ResponseRequest {
            stream: options.flag("stream")?,
            background,
            store,
            reasoning: wants("summary") || wants("generate_summary"),
            referred,
            tools,
            approves,
            ignored: options.ignored(KNOWN, REFUSED),
            asked: json!({
                "background": background, "store": store, "instructions": instructions, "metadata": metadata,
                "previous_response_id": previous,
            }),
            model,
            conversation,
            previous,
            history,
            first_reference,
            instructions,
            new,
        })
    }

    /// Earlier messages, in the form of `history` of a new thread.
    ///
    /// # Errors
    /// `invalid_field`: a part of them is in another thread, and only referred to.
    pub fn history(&self) -> Result<Vec<Value>> {
        match &self.first_reference {
            None => Ok(self.history.clone()),
            Some(reference) => Err(Error::field(
                &format!("input[{}]", reference.at),
                "A conversation does not begin with references to another one.",
            )
            .hint("Send the items themselves, or name the conversation that they are in.")),
        }
    }
}

/// Parses the `input`. Lists with more items than the limit of a new thread are refused before parsing,
/// because that takes long and delays other requests.
fn items(options: &Options<'_, '_>) -> Result<Value> {
    let list = options
        .0
        .get("input")
        .and_then(|raw| bobbin_definitions::json::from_str::<Vec<&RawValue>>(raw.get()).ok());
    match list.map(|items| items.len()) {
        Some(items) if items > history::MESSAGES => {
            let text = format!("`input` has {items} items; the limit is {}.", history::MESSAGES);
            Err(Error::new(Code::TooLarge, text).at("input"))
        }
        _ => options.value("input"),
    }
}

fn refuse(options: &Options<'_, '_>) -> Result<()> {
    options.refuse(REFUSED)?;
    let form = options.value("text")?;
    if form.pointer("/format/type").and_then(Value::as_str).is_some_and(|kind| kind != "text") {
        let text = "An answer's form is the definition's to say: `text.format` is text.";
        return Err(unsupported("text", text));
    }
    Ok(())
}

fn conversation(options: &Options<'_, '_>) -> Result<Option<String>> {
    match options.value("conversation")? {
        Value::Null => Ok(None),
        Value::String(id) => Ok(Some(id)),
        Value::Object(fields) => match fields.get("id") {
            Some(Value::String(id)) => Ok(Some(id.clone())),
            _ => Err(Error::field("conversation", "`conversation` is a name, or `{ \"id\": … }`.")),
        },
        _ => Err(Error::field("conversation", "`conversation` is a name, or `{ \"id\": … }`.")),
    }
}

/// Names of tools that the client would run, and whether it declares the server's own tools. Clients see
/// those as tools of an MCP server: they must declare its label with an address, and reject a request for an
/// approval under another label.
fn tools(tools: &Value) -> Result<(Vec<String>, bool)> {
    let (mut names, mut approves) = (Vec::new(), false);
    for tool in tools.as_array().into_iter().flatten() {
        match text_of(tool, "type") {
            "mcp" if text_of(tool, "server_label") == LABEL => approves = true,
            "mcp" => {
                let text = format!(
                    "The server's own tools are those of the MCP server “{LABEL}”; there is no other."
                );
                return Err(
                    unsupported("tools", &text).hint("Give the agent the MCP server in its definition.")
                );
            }
            _ => names.push(tool_name(tool)?),
        }
    }
    Ok((names, approves))
}

/// The parsed items of a request.
#[derive(Default)]
struct Input {
    /// Earlier messages, in the form of `history` of a new thread.
    history: Vec<Value>,
    first_reference: Option<Reference>,
    /// The last item before the new ones, if it is a reference.
    referred: Option<Reference>,
    new: NewInput,
}

/// Splits the items into earlier and new ones, which are those after the last item of a model.
fn input(input: &Value) -> Result<Input> {
    let items = match input {
        Value::String(text) => {
            let new = NewInput { text: text.clone(), ..NewInput::default() };
            return Ok(Input { new, ..Input::default() });
        }
        Value::Array(items) => items,
        Value::Null => return Err(Error::missing("input")),
        _ => return Err(Error::field("input", "`input` is text, or a list of items.")),
    };
    let made = items.iter().rposition(is_made);
    let (history, new) = parted(items, made.map_or(0, |at| at + 1), "input")?;
    let referred = made.and_then(|at| Reference::of(at, items.get(at)?));
    let first_reference = items.iter().enumerate().find_map(|(at, item)| Reference::of(at, item));
    if !new.says() && new.results.is_empty() && new.approvals.is_empty() {
        return Err(Error::field("input", "The last item is no user's, so there is nothing to answer.")
            .hint("Send what the person says last."));
    }
    Ok(Input { history, first_reference, referred, new })
}

/// Earlier items, in the form of `history` of a new thread.
///
/// # Errors
/// `invalid_field`, `unsupported_parameter`: an item is invalid.
pub(super) fn history_of(items: &Value) -> Result<Vec<Value>> {
    let wrong = || Error::field("items", "`items` is a list of items.");
    let items = items.as_array().ok_or_else(wrong)?;
    parted(items, items.len(), "items").map(|(history, _)| history)
}

/// Splits the items into earlier ones and new ones, from index `from` on. `field` names the list.
fn parted(items: &[Value], from: usize, field: &str) -> Result<(Vec<Value>, NewInput)> {
    let place = |at: usize| format!("{field}[{at}]");
    let (mut history, mut new, mut texts) = (Vec::new(), NewInput::default(), Vec::new());
    for (at, item) in items.iter().enumerate() {
        let role = text_of(item, "role");
        match text_of(item, "type") {
            "" | "message" if matches!(role, "system" | "developer") => {
                history.push(json!({ "role": "system", "content": content(item, &place(at), None)? }));
            }
            "" | "message" if at >= from && role == "user" => {
                texts.push(content(item, &place(at), Some(&mut new.files))?)
            }
            "" | "message" if matches!(role, "user" | "assistant") => {
                history.push(json!({ "role": role, "content": content(item, &place(at), None)? }));
            }
            "function_call_output" if at >= from => {
                new.results.push((text_of(item, "call_id").to_owned(), output(item, &place(at))?));
            }
            "mcp_approval_response" if at >= from => new.approvals.push((
                text_of(item, "approval_request_id").to_owned(),
                item.get("approve").and_then(Value::as_bool) == Some(true),
                item.get("reason").and_then(Value::as_str).map(str::to_owned),
            )),
            "function_call" | "mcp_call" => {
                let text = format!("[Call of {}] {}", text_of(item, "name"), text_of(item, "arguments"));
                history.push(json!({ "role": "assistant", "content": text }));
            }
            "function_call_output" => {
                let text = format!("[Result of a call] {}", output(item, &place(at))?);
                history.push(json!({ "role": "user", "content": text }));
            }
            "reasoning" | "mcp_approval_request" | "mcp_approval_response" | "mcp_list_tools" => {}
            // The thread has the item.
            REFERENCE if field == "input" => {}
            other => {
                let shown: String = if other.is_empty() { role } else { other }.chars().take(40).collect();
                let text = format!("There is no item “{shown}” here.");
                return Err(unsupported(&place(at), &text));
            }
        }
    }
    new.text = texts.join("\n\n");
    history.retain(|message| !text_of(message, "content").trim().is_empty());
    Ok((history, new))
}

/// Whether an item is the output of a model or of the server.
fn is_made(item: &Value) -> bool {
    match text_of(item, "type") {
        "" | "message" => text_of(item, "role") == "assistant",
        kind => {
            matches!(kind, REFERENCE | "function_call" | "reasoning" | "mcp_call" | "mcp_approval_request")
        }
    }
}

/// The text of a message. Files are collected if they are allowed, otherwise replaced by notes.
fn content(item: &Value, place: &str, mut files: Option<&mut Vec<Value>>) -> Result<String> {
    let parts = match item.get("content") {
        Some(Value::String(text)) => return Ok(text.clone()),
        Some(Value::Array(parts)) => parts,
        _ => return Err(Error::field(place, "`content` is text, or a list of parts.")),
    };
    let mut texts = Vec::new();
    for part in parts {
        match (text_of(part, "type"), &mut files) {
            ("input_text" | "output_text" | "text" | "refusal", _) => {
                let name = if part.get("text").is_some() { "text" } else { "refusal" };
                texts.push(text_of(part, name).to_owned());
            }
            ("input_image", Some(files)) => {
                let url = text_of(part, "image_url");
                files.push(file(url, None, place)?);
            }
            ("input_file", Some(files)) => {
                let name = part.get("filename").and_then(Value::as_str);
                files.push(file(text_of(part, "file_data"), name, place)?);
            }
            ("input_image", None) => texts.push("[image]".to_owned()),
            ("input_file", None) => texts.push("[file]".to_owned()),
            (other, _) => {
                let shown: String = other.chars().take(40).collect();
                return Err(unsupported(place, &format!("There is no part “{shown}” here.")));
            }
        }
    }
    texts.retain(|text| !text.is_empty());
    Ok(texts.join("\n"))
}

/// The result of a call.
fn output(item: &Value, place: &str) -> Result<String> {
    match item.get("output") {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(parts)) => {
            let texts: Vec<&str> = parts.iter().map(|part| text_of(part, "text")).collect();
            Ok(texts.join("\n"))
        }
        _ => Err(Error::field(place, "`output` is text, or a list of parts.")),
    }
}

/// The id of a response: its thread and the message that it answers.
pub fn response_id(thread: &str, message: &str) -> String {
    format!("resp_{}_{}", thread.replace('-', ""), message.trim_start_matches("m_"))
}

/// The thread and the message in the id of a response; `None` if the id is not ours.
pub fn parse_id(id: &str) -> Option<(String, String)> {
    let (thread, message) = id.strip_prefix("resp_")?.split_at_checked(32)?;
    let message = format!("m{message}");
    let plain = message.chars().all(|c| c.is_ascii_hexdigit() || matches!(c, '_' | 'm'));
    let thread = dashed(thread).filter(|_| plain && message.len() <= 40)?;
    Some((thread, message))
}

/// A thread's id with its dashes restored.
pub fn dashed(hex: &str) -> Option<String> {
    let part = |from: usize, to: usize| hex.get(from..to);
    let id = [part(0, 8)?, part(8, 12)?, part(12, 16)?, part(16, 20)?, part(20, 32)?].join("-");
    crate::request::thread_id::is_valid(&id).then_some(id)
}
