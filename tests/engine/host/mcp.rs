//! MCP servers of both eras, as the test scripts them. Each looks hard at what it is sent, and complains of whatever a strict server
//! would refuse.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bobbin::host::http::Request;
use bytes::Bytes;
use serde_json::{Value, json};

use super::answer::{Answer, Piece};

/// Where they are, each by its name.
pub const MCP_URL: &str = "https://mcp.test/";
/// The protocol without sessions.
pub const MODERN: &str = "2026-07-28";
/// The last one with sessions.
pub const LEGACY: &str = "2025-11-25";

/// The field of `_meta` with the key of a call.
const CALL: &str = "dev.bobbin/call";

/// A request that reached a server.
#[derive(Clone, Debug)]
pub struct McpRequest {
    /// The server's name.
    pub server: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// `tools/call`, …; empty for an answer to something that the server asked.
    pub method: String,
    /// Its parameters.
    pub params: Value,
    /// The whole body.
    pub body: Value,
}

impl McpRequest {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    /// The arguments of a call.
    pub fn args(&self) -> &Value {
        &self.params["arguments"]
    }
}

/// What a server makes of a call.
pub enum Gives {
    /// It acts, and this is the result.
    Result(Value),
    /// It does nothing but answer so.
    Only(Value),
    /// It begins a task of this name.
    Task(&'static str),
    /// An error of the protocol.
    Error(i64, String),
    /// It acts, and whatever this is comes back.
    Raw(Answer),
}

impl Gives {
    /// A result with a text.
    pub fn text(text: &str) -> Gives {
        Gives::Result(json!({ "content": [{ "type": "text", "text": text }] }))
    }
}

/// What a server makes of a call; the number tells how often its tool was called before.
pub type Script = Rc<dyn Fn(&McpRequest, usize) -> Gives>;

/// What a server answers to a request that it does not let in.
pub type Guard = Rc<dyn Fn(&McpRequest) -> Option<Answer>>;
/// What it says of a task.
pub type TaskScript = Rc<dyn Fn(&McpRequest, usize) -> Gives>;

/// What a server answers to `tools/list`.
pub type Lists = Rc<dyn Fn(&McpRequest, usize) -> Gives>;

/// How a server speaks.
#[derive(Clone)]
pub struct Server {
    /// What it makes of calls.
    pub script: Script,
    /// What it answers to `tools/list`; by its cursor, and how often it was asked before.
    pub lists: Lists,
    /// Whether it wants sessions.
    pub legacy: bool,
    /// Whether it answers in events, after others, one of which is a request of its own where it has sessions.
    pub events: bool,
    /// How long a call takes, in microseconds.
    pub takes_us: i64,
    /// Calls after which it forgets a session.
    pub forgets_after: usize,
    /// What it answers to those that it does not let in.
    pub guard: Option<Guard>,
    /// What it says of a task; the number tells how often it was asked for that before.
    pub tasks: TaskScript,
}

impl Server {
    /// One without sessions, whose calls take a second; the number tells how often the tool was called before.
    pub fn new(script: impl Fn(&McpRequest, usize) -> Gives + 'static) -> Server {
        Server {
            script: Rc::new(script),
            lists: Rc::new(|_, _| Gives::Error(-32601, "Method not found".into())),
            legacy: false,
            events: false,
            takes_us: 1_000_000,
            forgets_after: usize::MAX,
            guard: None,
            tasks: Rc::new(|_, _| Gives::Error(-32602, "there is no such task".into())),
        }
    }

    /// One that lists its tools.
    pub fn listing(self, lists: impl Fn(&McpRequest, usize) -> Gives + 'static) -> Server {
        Server { lists: Rc::new(lists), ..self }
    }

    /// One with sessions.
    pub fn legacy(self) -> Server {
        Server { legacy: true, ..self }
    }

    /// One that answers in events.
    pub fn events(self) -> Server {
        Server { events: true, ..self }
    }
}

/// All of them.
#[derive(Default)]
pub struct Mcp {
    servers: RefCell<BTreeMap<String, Server>>,
    /// What reached them, in order.
    pub requests: RefCell<Vec<McpRequest>>,
    /// Sessions that were begun.
    sessions: Cell<usize>,
    /// Calls in each session that there is.
    live: RefCell<BTreeMap<String, usize>>,
    ids: RefCell<BTreeSet<String>>,
    called: RefCell<BTreeMap<String, usize>>,
}

/// What came of a request: the answer, what has happened by it (name, key, arguments), and what is wrong with it.
pub type Received = (Answer, Option<(String, String, Value)>, Vec<String>);

impl Mcp {
    /// Scripts one by its name.
    pub fn serve(&self, name: &str, server: Server) {
        self.servers.borrow_mut().insert(name.into(), server);
    }

    /// The methods that a server was asked for, in order.
    pub fn methods(&self) -> Vec<String> {
        self.requests.borrow().iter().map(|request| request.method.clone()).collect()
    }

    /// Requests of a method.
    pub fn of(&self, method: &str) -> Vec<McpRequest> {
        self.requests.borrow().iter().filter(|request| request.method == method).cloned().collect()
    }

    pub(super) fn clear(&self) {
        self.servers.borrow_mut().clear();
    }

    pub(super) fn receive(&self, name: &str, request: &Request) -> Received {
        let body: Value =
            serde_json::from_slice(request.body.as_deref().unwrap_or_default()).unwrap_or_default();
        let Some(server) = self.servers.borrow().get(name).cloned() else {
            return (Answer::refused(), None, vec![format!("no MCP server is called {name}")]);
        };
        let arrived = McpRequest {
            server: name.into(),
            headers: request.headers.clone(),
            method: body["method"].as_str().unwrap_or_default().into(),
            params: body["params"].clone(),
            body,
        };
        self.requests.borrow_mut().push(arrived.clone());
        let mut wrong = complaints(&arrived, request.method);
        if let Some(id) = arrived.body["id"].as_str().filter(|_| !arrived.method.is_empty())
            && !self.ids.borrow_mut().insert(id.into())
        {
            wrong.push(format!("the id {id} was used before"));
        }
        if let Some(answer) = server.guard.as_ref().and_then(|guard| guard(&arrived)) {
            let wrong = wrong.into_iter().map(|what| format!("MCP server {name}: {what}")).collect();
            return (answer, None, wrong);
        }
        let (answer, acted) = match server.legacy {
            true => self.in_session(&server, &arrived, &mut wrong),
            false => self.stateless(&server, &arrived, &mut wrong),
        };
        let wrong =
            wrong.into_iter().map(|what| format!("MCP server {name}: {what}: {}", arrived.body)).collect();
        (answer, acted, wrong)
    }

    fn stateless(
        &self,
        server: &Server,
        arrived: &McpRequest,
        wrong: &mut Vec<String>,
    ) -> (Answer, Option<(String, String, Value)>) {
        if arrived.header("mcp-protocol-version") != Some(MODERN) {
            let message = "MCP-Protocol-Version is missing or not supported";
            let data = json!({ "supported": [MODERN] });
            let error = json!({ "code": -32022, "message": message, "data": data });
            let body = json!({ "jsonrpc": "2.0", "id": arrived.body["id"], "error": error });
            return (Answer::status(400, body.to_string()), None);
        }
        wrong.extend(of_modern(arrived));
        match arrived.method.as_str() {
            "tools/call" => self.call(server, arrived),
            "tasks/get" | "tasks/update" | "tasks/cancel" => (self.task(server, arrived), None),
            "tools/list" => (self.list(server, arrived), None),
            "server/discover" => {
                let result = json!({ "supportedVersions": [MODERN], "capabilities": { "tools": {} } });
                (self.answer(server, arrived, result), None)
            }
            method => {
                wrong.push(format!("{method} is not of the protocol"));
                (Answer::status(404, error(arrived, -32601, "Method not found")), None)
            }
        }
    }

    fn in_session(
        &self,
        server: &Server,
        arrived: &McpRequest,
        wrong: &mut Vec<String>,
    ) -> (Answer, Option<(String, String, Value)>) {
        let nobody = json!({ "jsonrpc": "2.0", "id": null,
            "error": { "code": -32000, "message": "Bad Request: Server not initialized" } });
        if arrived.method == "initialize" {
            wrong.extend(of_initialize(arrived));
            self.sessions.set(self.sessions.get() + 1);
            let session = format!("session-{}", self.sessions.get());
            self.live.borrow_mut().insert(session.clone(), 0);
            let result = json!({ "protocolVersion": LEGACY, "capabilities": { "tools": {} },
                "serverInfo": { "name": arrived.server, "version": "1" } });
            return (self.answer(server, arrived, result).header("mcp-session-id", &session), None);
        }
        let Some(session) = arrived.header("mcp-session-id") else {
            return (Answer::status(400, nobody.to_string()), None);
        };
        let Some(calls) = self.live.borrow().get(session).copied() else {
            let gone = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32001, "message": "Session not found" } });
            return (Answer::status(404, gone.to_string()), None);
        };
        if arrived.header("mcp-protocol-version") != Some(LEGACY) {
            wrong.push(format!("mcp-protocol-version is {:?}", arrived.header("mcp-protocol-version")));
        }
        match arrived.method.as_str() {
            "tools/list" => (self.list(server, arrived), None),
            "notifications/initialized" | "" => (Answer::status(202, ""), None),
            "tools/call" if calls >= server.forgets_after => {
                self.live.borrow_mut().remove(session);
                self.in_session(server, arrived, wrong)
            }
            "tools/call" => {
                self.live.borrow_mut().insert(session.into(), calls + 1);
                self.call(server, arrived)
            }
            method => {
                wrong.push(format!("{method} is not of the protocol"));
                (Answer::status(200, error(arrived, -32601, "Method not found")), None)
            }
        }
    }

    fn call(&self, server: &Server, arrived: &McpRequest) -> (Answer, Option<(String, String, Value)>) {
        let tool = arrived.params["name"].as_str().unwrap_or_default();
        let name = format!("{}/{tool}", arrived.server);
        let before = self.called.borrow().get(&name).copied().unwrap_or(0);
        *self.called.borrow_mut().entry(name.clone()).or_default() += 1;
        let key = arrived.params["_meta"][CALL].as_str().unwrap_or_default().to_owned();
        let acted = Some((name, key, arrived.args().clone()));
        match (server.script)(arrived, before) {
            Gives::Result(result) => (self.answer(server, arrived, result).after(server.takes_us), acted),
            Gives::Only(result) => (self.answer(server, arrived, result).after(server.takes_us), None),
            Gives::Task(id) => {
                let task = json!({ "resultType": "task", "taskId": id, "status": "working", "ttlMs": null,
                    "pollIntervalMs": 3000, "createdAt": "2026-11-26T08:00:00Z", "lastUpdatedAt": "2026-11-26T08:00:00Z" });
                (self.answer(server, arrived, task).after(server.takes_us), acted)
            }
            Gives::Error(code, message) => (Answer::status(200, error(arrived, code, &message)), None),
            Gives::Raw(answer) => (answer, acted),
        }
    }

    fn task(&self, server: &Server, arrived: &McpRequest) -> Answer {
        let before =
            *self.called.borrow_mut().entry(arrived.method.clone()).and_modify(|n| *n += 1).or_insert(0);
        match (server.tasks)(arrived, before) {
            Gives::Result(result) | Gives::Only(result) => self.answer(server, arrived, result),
            Gives::Error(code, message) => Answer::status(200, error(arrived, code, &message)),
            Gives::Raw(answer) => answer,
            Gives::Task(_) => unreachable!("a task is no task of a task"),
        }
    }

    fn list(&self, server: &Server, arrived: &McpRequest) -> Answer {
        let before = self.of("tools/list").iter().filter(|one| one.server == arrived.server).count() - 1;
        match (server.lists)(arrived, before) {
            Gives::Result(result) | Gives::Only(result) => self.answer(server, arrived, result),
            Gives::Error(code, message) => Answer::status(200, error(arrived, code, &message)),
            Gives::Raw(answer) => answer,
            Gives::Task(_) => unreachable!("a list is no task"),
        }
    }

    fn answer(&self, server: &Server, arrived: &McpRequest, result: Value) -> Answer {
        let mut result = result;
        if !server.legacy && result["resultType"].is_null() {
            result["resultType"] = json!("complete");
        }
        let last = json!({ "jsonrpc": "2.0", "id": arrived.body["id"], "result": result });
        if !server.events {
            return Answer::json(&last);
        }
        let progress =
            json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progress": 1 } });
        let asks = json!({ "jsonrpc": "2.0", "id": 7, "method": "sampling/createMessage", "params": {} });
        let calls = server.legacy && arrived.method == "tools/call";
        let messages = [Some(progress), calls.then_some(asks), Some(last)];
        let pieces = messages.into_iter().flatten().map(|message| event(&message)).collect();
        Answer {
            headers: vec![("content-type".into(), "text/event-stream".into())],
            pieces,
            ..Answer::status(200, "")
        }
    }
}

fn event(message: &Value) -> Piece {
    Piece::Data(Bytes::from(format!("event: message\ndata: {message}\n\n")))
}

/// An answer with an error.
fn error(arrived: &McpRequest, code: i64, message: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": arrived.body["id"], "error": { "code": code, "message": message } })
        .to_string()
}

/// What is wrong with a message of either era.
fn complaints(arrived: &McpRequest, method: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let accept = arrived.header("accept").unwrap_or_default();
    if method != "POST" || !(accept.contains("application/json") && accept.contains("text/event-stream")) {
        wrong.push(format!("{method} that accepts {accept}"));
    }
    if arrived.header("content-type") != Some("application/json") || arrived.body["jsonrpc"] != "2.0" {
        wrong.push("it is no JSON-RPC".into());
    }
    let notifies = arrived.method.starts_with("notifications/");
    if arrived.body["id"].is_null() != notifies {
        wrong.push("only notifications are without id".into());
    }
    let mut names: Vec<&String> = arrived.headers.iter().map(|(name, _)| name).collect();
    let count = names.len();
    names.sort();
    names.dedup();
    if names.len() != count {
        wrong.push(format!("a header is there twice: {:?}", arrived.headers));
    }
    if arrived.method == "tools/call" && arrived.params["_meta"][CALL].as_str().is_none_or(str::is_empty) {
        wrong.push("a call without key".into());
    }
    wrong
}

/// What is wrong with a request of the modern era.
fn of_modern(arrived: &McpRequest) -> Vec<String> {
    let mut wrong = Vec::new();
    let meta = |name: &str| &arrived.params["_meta"][format!("io.modelcontextprotocol/{name}")];
    if *meta("protocolVersion") != MODERN
        || !meta("clientCapabilities").is_object()
        || !meta("clientInfo")["name"].is_string()
    {
        wrong.push("`_meta` does not say all of it".into());
    }
    if arrived.header("mcp-method") != Some(&arrived.method) {
        wrong.push(format!("mcp-method is {:?}", arrived.header("mcp-method")));
    }
    let named = arrived.params["name"].as_str().or(arrived.params["taskId"].as_str());
    let name = arrived.header("mcp-name").map(decoded);
    if name.as_deref() != named {
        wrong.push(format!("mcp-name is {:?}", arrived.header("mcp-name")));
    }
    if arrived.header("mcp-session-id").is_some() {
        wrong.push("there are no sessions here".into());
    }
    wrong
}

/// The value of a header that may be in base64.
fn decoded(value: &str) -> String {
    let coded = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    let bytes = coded.and_then(|coded| STANDARD.decode(coded).ok());
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_else(|| value.to_owned())
}

/// What is wrong with the beginning of a session.
fn of_initialize(arrived: &McpRequest) -> Vec<String> {
    let params = &arrived.params;
    let fine = params["protocolVersion"] == LEGACY
        && params["capabilities"].is_object()
        && params["clientInfo"]["version"].is_string()
        && arrived.headers.iter().all(|(name, _)| !name.starts_with("mcp-"));
    if fine { Vec::new() } else { vec!["a session is not begun so".into()] }
}
