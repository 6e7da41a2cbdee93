//! Messages of MCP over HTTP (docs/mcp-server.md), in the revision without sessions and in the older ones, whose
//! clients begin with `initialize`. Each message is served independently, in either revision.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::mcp_server::offers::capabilities;
use bobbin_definitions::definitions::Catalog;
use bobbin_definitions::json;

/// The revision in which each request is self-contained.
pub const MODERN: &str = "2026-07-28";
/// The newest revision with `initialize`.
const NEWEST_LEGACY: &str = "2025-11-25";
/// All supported revisions, newest first.
pub const VERSIONS: [&str; 4] = [MODERN, NEWEST_LEGACY, "2025-06-18", "2025-03-26"];

/// The extension with which clients poll long work.
pub const TASKS: &str = "io.modelcontextprotocol/tasks";
/// The field of `_meta` with a runtime's own id of the call.
pub const CALL: &str = "dev.bobbin/call";
/// Maximum characters of such an id, and of progress tokens.
const NAME_CHARS: usize = 200;
/// Maximum bytes of an id that is text.
const ID_BYTES: usize = 1_000;

/// The body is not JSON.
pub const PARSE_ERROR: i32 = -32_700;
/// Not a message of the protocol.
pub const INVALID_REQUEST: i32 = -32_600;
/// No such method.
pub const METHOD_NOT_FOUND: i32 = -32_601;
/// Invalid parameters of the method.
pub const INVALID_PARAMS: i32 = -32_602;
/// No such resource, in the older revisions.
const RESOURCE_NOT_FOUND: i32 = -32_002;
/// Internal error.
pub const INTERNAL: i32 = -32_603;
/// Headers and body contradict each other.
const HEADER_MISMATCH: i32 = -32_020;
/// The client has not declared a required capability.
const MISSING_CAPABILITY: i32 = -32_021;
/// An unsupported revision.
const UNSUPPORTED_VERSION: i32 = -32_022;

/// Headers that repeat fields of the body.
pub const HEADERS: &[&str] = &["mcp-protocol-version", "mcp-method", "mcp-name", "mcp-session-id", "accept"];

/// The method of a message that is a client's response to a request on a stream.
pub const RESPONSE: &str = "";
/// Prefix of session ids whose clients show forms. The id itself is the state of a session: it repeats what
/// `initialize` declared.
const WITH_FORMS: &str = "forms-";

/// The kind of revision that a client uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// Each request is self-contained.
    Modern,
    /// The client began with `initialize`, whose content is not known here.
    Legacy,
}

/// Capabilities of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// It shows forms to its user.
    pub forms: bool,
    /// It polls tasks.
    pub tasks: bool,
}

/// A message.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// `None` for a notification.
    pub id: Option<Value>,
    /// The method.
    pub method: String,
    /// Its parameters.
    pub params: Map<String, Value>,
    /// The client's kind of revision.
    pub era: Era,
    /// The client's capabilities.
    pub capabilities: Capabilities,
}

/// A response with a protocol error.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// HTTP status.
    pub status: u16,
    /// The message.
    pub body: Value,
}

impl Refusal {
    /// An error about a request with a known id, or without one.
    pub fn new(status: u16, id: Option<&Value>, code: i32, text: &str, data: Option<Value>) -> Refusal {
        let mut error = json!({ "code": code, "message": text });
        if let (Some(data), Some(fields)) = (data, error.as_object_mut()) {
            fields.insert("data".into(), data);
        }
        let mut body = json!({ "jsonrpc": "2.0", "error": error });
        if let (Some(id), Some(fields)) = (id, body.as_object_mut()) {
            fields.insert("id".into(), id.clone());
        }
        Refusal { status, body }
    }
}

/// Parses a message. `header` is the value of one of [`HEADERS`].
///
/// # Errors
/// The message is invalid, or headers and body contradict each other.
pub fn parse(body: &str, header: &dyn Fn(&str) -> Option<String>) -> Result<Message, Refusal> {
    let refused = |id: Option<&Value>, code: i32, text: &str| Refusal::new(400, id, code, text, None);
    let body: Value = bobbin_definitions::json::from_str(body)
        .map_err(|_| refused(None, PARSE_ERROR, "The body is no JSON."))?;
    let Value::Object(mut fields) = body else {
        return Err(refused(None, INVALID_REQUEST, "The body is one message: batches are not served."));
    };
    let id = fields.remove("id");
    let fine = |id: &Value| is_name(id, ID_BYTES);
    let known = id.as_ref().filter(|id| fine(id));
    if id.is_some() && known.is_none() {
        return Err(refused(None, INVALID_REQUEST, "`id` is a short text or a whole number."));
    }
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(refused(known, INVALID_REQUEST, "`jsonrpc` is \"2.0\"."));
    }
    let answers = known.is_some() && (fields.contains_key("result") || fields.contains_key("error"));
    let (method, params) = match fields.remove("method") {
        Some(Value::String(method)) if method != RESPONSE => (method, fields.remove("params")),
        None if answers => (RESPONSE.to_owned(), fields.remove("result").filter(Value::is_object)),
        _ => return Err(refused(known, INVALID_REQUEST, "`method` is missing.")),
    };
    let params = match params {
        None | Some(Value::Null) => Map::new(),
        // Some clients send `null` for fields that they leave out, such as `cursor` and `arguments`.
        Some(Value::Object(mut params)) => {
            params.retain(|_, value| !value.is_null());
            params
        }
        Some(_) => return Err(refused(known, INVALID_PARAMS, "`params` is an object.")),
    };
    let mut message = Message { id, method, params, era: Era::Legacy, capabilities: Capabilities::default() };
    if message.id.is_some() {
        message.settle(header)?;
    }
    Ok(message)
}

impl Message {
    /// A value of `_meta`.
    pub fn meta(&self, name: &str) -> Option<&Value> {
        self.params.get("_meta")?.get(name)
    }

    /// The client runtime's id of this call, so that it is made once although it is repeated.
    pub fn call(&self) -> Option<&str> {
        let named = self.meta(CALL)?.as_str()?;
        (!named.is_empty() && named.chars().count() <= NAME_CHARS).then_some(named)
    }

    /// The token of progress notifications, if the client wants any.
    pub fn progress(&self) -> Option<Value> {
        self.meta("progressToken").filter(|token| is_name(token, NAME_CHARS)).cloned()
    }

    /// An error about this message, with its status.
    pub fn refuse(&self, code: i32, text: &str, data: Option<Value>) -> Refusal {
        let status = match (self.era, code) {
            (Era::Modern, METHOD_NOT_FOUND) => 404,
            (_, MISSING_CAPABILITY) => 400,
            _ => 200,
        };
        Refusal::new(status, self.id.as_ref(), code, text, data)
    }

    /// The error for a missing resource.
    pub fn no_resource(&self, uri: &str) -> Refusal {
        let code = if self.era == Era::Modern { INVALID_PARAMS } else { RESOURCE_NOT_FOUND };
        self.refuse(code, "There is no such resource.", Some(json!({ "uri": uri })))
    }

    /// The error for an unknown method.
    pub fn unknown(&self) -> Refusal {
        self.refuse(METHOD_NOT_FOUND, &format!("There is no method “{}”.", shortened(&self.method)), None)
    }

    /// The error for a client without the tasks extension.
    pub fn needs_tasks(&self) -> Refusal {
        let needed = json!({ "extensions": { TASKS: {} } });
        let text = "This needs the client's capability for tasks.";
        self.refuse(MISSING_CAPABILITY, text, Some(json!({ "requiredCapabilities": needed })))
    }

    /// A response to this message.
    pub fn answer(&self, result: Value) -> Value {
        answer(self.id.as_ref(), self.era, result)
    }

    /// Determines the kind of revision, and refuses contradictions.
    fn settle(&mut self, header: &dyn Fn(&str) -> Option<String>) -> Result<(), Refusal> {
        let named = self.meta("io.modelcontextprotocol/protocolVersion").cloned();
        let shown = header("mcp-protocol-version");
        let is_legacy = |version: &String| version != MODERN && VERSIONS.contains(&version.as_str());
        if named.is_none() && shown.as_ref().is_none_or(is_legacy) {
            self.capabilities.forms = header("mcp-session-id").is_some_and(|id| id.starts_with(WITH_FORMS));
            return Ok(());
        }
        self.era = Era::Modern;
        let bad = |code: i32, text: &str| Refusal::new(400, self.id.as_ref(), code, text, None);
        if self.method == RESPONSE {
            return Err(bad(INVALID_REQUEST, "Nothing is asked of clients on streams of this revision."));
        }
        let unsupported = |requested: &str| {
            let data = json!({ "supported": VERSIONS, "requested": shortened(requested) });
            let text = "This revision of the protocol is not served.";
            Refusal::new(400, self.id.as_ref(), UNSUPPORTED_VERSION, text, Some(data))
        };
        let version = match (named, &shown) {
            (Some(Value::String(version)), _) => version,
            (_, Some(shown)) if shown != MODERN => return Err(unsupported(shown)),
            _ => {
                let text = "`_meta` must have `io.modelcontextprotocol/protocolVersion`.";
                return Err(bad(INVALID_PARAMS, text));
            }
        };
        match shown {
            None => return Err(bad(HEADER_MISMATCH, "The header MCP-Protocol-Version is missing.")),
            Some(shown) if shown != version => {
                let text = "The header MCP-Protocol-Version is not what `_meta` has.";
                return Err(bad(HEADER_MISMATCH, text));
            }
            Some(_) if version != MODERN => return Err(unsupported(&version)),
            Some(_) => {}
        }
        let Some(Value::Object(able)) = self.meta("io.modelcontextprotocol/clientCapabilities") else {
            let text = "`_meta` must have `io.modelcontextprotocol/clientCapabilities`.";
            return Err(bad(INVALID_PARAMS, text));
        };
        let capabilities = Capabilities {
            forms: able.get("elicitation").is_some_and(shows_forms),
            tasks: able.get("extensions").and_then(|of| of.get(TASKS)).is_some_and(Value::is_object),
        };
        if header("mcp-method").as_deref() != Some(self.method.as_str()) {
            return Err(bad(HEADER_MISMATCH, "The header Mcp-Method is not the method of the body."));
        }
        if let Some(name) = self.named().and_then(Value::as_str)
            && header("mcp-name").and_then(|shown| decoded(&shown)).as_deref() != Some(name)
        {
            return Err(bad(HEADER_MISMATCH, "The header Mcp-Name is not what the body names."));
        }
        self.capabilities = capabilities;
        Ok(())
    }

    /// The value that the header `Mcp-Name` repeats.
    fn named(&self) -> Option<&Value> {
        self.params.get(match self.method.as_str() {
            "tools/call" | "prompts/get" => "name",
            "resources/read" => "uri",
            "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
            _ => return None,
        })
    }
}

/// A response to the request with this id.
pub(super) fn answer(id: Option<&Value>, era: Era, mut result: Value) -> Value {
    if let (Era::Modern, Some(fields)) = (era, result.as_object_mut()) {
        fields.entry("resultType").or_insert_with(|| "complete".into());
        let meta = fields.entry("_meta").or_insert_with(|| json!({}));
        if let Some(meta) = meta.as_object_mut() {
            meta.insert("io.modelcontextprotocol/serverInfo".into(), server());
        }
    }
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// The server's name and version.
fn server() -> Value {
    json!({ "name": "bobbin", "version": env!("CARGO_PKG_VERSION") })
}

/// Instructions for a model that has these tools.
const INSTRUCTIONS: &str = "Each ask_ tool is an agent. A conversation is a thread: give its id again to go on with it. Where something \
     waits for a person, show them what is asked, and pass on what they say with thread_respond.";

/// A resource that clients must not cache.
pub fn fresh(mut contents: Value) -> Value {
    if let Some(fields) = contents.as_object_mut() {
        fields.insert("ttlMs".into(), 0.into());
        fields.insert("cacheScope".into(), "private".into());
    }
    contents
}

/// Cache lifetime of a list, milliseconds.
const LIST_MS: u32 = 300_000;

/// A list that clients may cache.
pub fn cached(mut list: Value) -> Value {
    if let Some(fields) = list.as_object_mut() {
        fields.insert("ttlMs".into(), LIST_MS.into());
        fields.insert("cacheScope".into(), "private".into());
    }
    list
}

/// The result of `server/discover`.
pub fn discovered(catalog: &Catalog) -> Value {
    let mut capabilities = capabilities(catalog);
    if let Some(fields) = capabilities.as_object_mut() {
        fields.insert("extensions".into(), json!({ TASKS: {} }));
    }
    cached(json!({
        "supportedVersions": VERSIONS,
        "capabilities": capabilities,
        "instructions": INSTRUCTIONS,
    }))
}

/// The result of `initialize`: the revision that the client requests, or the newest that it may support.
pub fn initialized(message: &Message, catalog: &Catalog) -> Value {
    let wanted = message.params.get("protocolVersion").and_then(Value::as_str);
    let version = wanted.filter(|version| *version != MODERN && VERSIONS.contains(version));
    json!({
        "protocolVersion": version.unwrap_or(NEWEST_LEGACY),
        "capabilities": capabilities(catalog),
        "serverInfo": server(),
        "instructions": INSTRUCTIONS,
    })
}

/// The id of the session that `initialize` begins; `None` for a client without forms.
pub fn session(message: &Message, random: &str) -> Option<String> {
    let able = message.params.get("capabilities")?.get("elicitation")?;
    (message.method == "initialize" && shows_forms(able)).then(|| format!("{WITH_FORMS}{random}"))
}

/// Whether an elicitation capability includes forms, which is the default without a mode.
fn shows_forms(elicitation: &Value) -> bool {
    elicitation.as_object().is_some_and(|modes| modes.contains_key("form") || !modes.contains_key("url"))
}

/// Whether the value is a text of at most this number of bytes, or an integer.
fn is_name(value: &Value, bytes: usize) -> bool {
    value.as_str().map_or(value.is_i64() || value.is_u64(), |text| text.len() <= bytes)
}

/// The value of a header, which is in Base64 if it is not plain text.
fn decoded(shown: &str) -> Option<String> {
    let shown = shown.trim_matches([' ', '\t']);
    match shown.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(coded) => String::from_utf8(STANDARD.decode(coded).ok()?).ok(),
        None => Some(shown.to_owned()),
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(64).collect()
}

/// The response formats that a client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepts {
    /// A stream whose last event is the response.
    Stream,
    /// Either, without an explicit request for a stream.
    Json,
    /// A stream only.
    StreamAlone,
}

impl Accepts {
    /// Parses the header `Accept`; `None` if it allows neither.
    pub fn of(header: Option<&str>) -> Option<Accepts> {
        let Some(header) = header.filter(|header| !header.trim().is_empty()) else {
            return Some(Accepts::Json);
        };
        let refused = |range: &str| {
            range.split(';').skip(1).any(|part| {
                part.trim().strip_prefix("q=").is_some_and(|q| q.parse::<f32>().is_ok_and(|q| q <= 0.0))
            })
        };
        let named = |wanted: &[&str]| {
            header.split(',').any(|range| {
                let kind = range.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
                wanted.contains(&kind.as_str()) && !refused(range)
            })
        };
        let json = named(&["application/json", "application/*", "*/*"]);
        match (named(&["text/event-stream"]), json) {
            (true, true) => Some(Accepts::Stream),
            (true, false) => Some(Accepts::StreamAlone),
            (false, true) => Some(Accepts::Json),
            (false, false) if named(&["text/*"]) => Some(Accepts::StreamAlone),
            (false, false) => None,
        }
    }
}
