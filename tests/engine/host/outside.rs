//! Everything beyond the process: model providers, http tools, the effects of native tools, other objects. It is
//! scripted by the test, lives on through crashes and remembers what reached it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use bobbin::definitions::message::ToolResult;
use bobbin::engine::{EffectCall, EndpointAnswer, EndpointCall, HookCall, NativeCall};
use bobbin::host::Sibling;
use bobbin::host::http::Request;
use bobbin::request::ThreadRoute;
use futures::future::LocalBoxFuture;
use serde_json::Value;

use super::answer::Answer;
use super::collector::{COLLECTOR_URL, Collector};
use super::embeddings::{EMBED_URL, Embeddings};
use super::issuer::Issuer;
use super::mcp::{MCP_URL, Mcp};
use super::sandbox::Sandbox;
use super::{claude, strict};

/// A request that reached a model.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// Its number, from 0, over the whole simulation.
    pub index: usize,
    /// When it arrived.
    pub at_us: i64,
    /// The thread that sent it.
    pub thread: String,
    /// The provider's id of the model.
    pub model: String,
    /// The whole body.
    pub body: Value,
    /// The same as it was sent.
    pub text: String,
    /// Headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// `POST`, or `GET` of an answer that was asked for before; `POST …/cancel` ends one.
    pub method: &'static str,
    /// Where it went, below [`MODEL_URL`].
    pub path: String,
}

impl ModelRequest {
    /// Its messages.
    pub fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map(Vec::as_slice).unwrap_or_default()
    }

    /// Texts of the messages with this role, in order.
    pub fn texts(&self, role: &str) -> Vec<&str> {
        self.messages().iter().filter(|m| m["role"] == role).filter_map(|m| text(m)).collect()
    }

    /// The system text, by which scripts tell prompts apart.
    pub fn system(&self) -> &str {
        self.texts("system").first().copied().or(self.body["system"][0]["text"].as_str()).unwrap_or("")
    }

    /// The last user message.
    pub fn last_user(&self) -> &str {
        self.texts("user").last().copied().unwrap_or("")
    }

    /// Results of tools after the last user message, in order: texts.
    pub fn results(&self) -> Vec<&str> {
        let start = self.messages().iter().rposition(|m| m["role"] == "user").map_or(0, |at| at + 1);
        self.messages()[start..].iter().filter(|m| m["role"] == "tool").filter_map(text).collect()
    }
}

fn text(message: &Value) -> Option<&str> {
    message["content"].as_str().or_else(|| message["content"][0]["text"].as_str())
}

/// Tokens that a model has given out, as its server counts them, whoever saw the end of the answer.
#[derive(Clone, Debug)]
pub struct Given {
    /// The thread that asked.
    pub thread: String,
    /// The provider's id of the model.
    pub model: String,
    /// Tokens of the request.
    pub input: u64,
    /// Tokens of the answer.
    pub output: u64,
}

/// What a native tool does.
#[allow(clippy::large_enum_variant, reason = "one at a time")]
pub enum Native {
    /// Works for so long, then gives this.
    Gives(i64, ToolResult),
    /// Acts and gives its result in one stretch of code, with no await after it.
    Acts(Box<dyn FnOnce() -> ToolResult>),
    /// Does what this future does, such as calling other tools.
    Works(LocalBoxFuture<'static, ToolResult>),
    /// Never comes back.
    Never,
}

/// What a native endpoint does.
pub enum Handler {
    /// Waits for so long, then acts and answers.
    Acts(i64, Box<dyn FnOnce() -> bobbin::Result<EndpointAnswer>>),
    /// Does what this future does.
    Works(LocalBoxFuture<'static, EndpointAnswer>),
    /// Never comes back.
    Never,
}

/// A call that reached a hook.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// Which of the twelve.
    pub hook: String,
    /// Its `hookCallId`.
    pub call_id: String,
    /// Its arguments.
    pub args: Vec<Value>,
}

/// An execution of a tool that reached the outside: its effect has happened.
#[derive(Clone, Debug)]
pub struct Execution {
    /// The tool's name.
    pub name: String,
    /// Its idempotency key.
    pub key: String,
    /// Its arguments.
    pub args: Value,
    /// Whether it came to its end.
    pub finished: bool,
}

/// A call of one object by another.
#[derive(Clone, Debug, PartialEq)]
pub struct Called {
    /// When it was made.
    pub at_us: i64,
    /// Who called: a thread's id.
    pub from: String,
    /// Whom: a thread's id.
    pub to: String,
    /// With what, unless it was a stream.
    pub route: Option<ThreadRoute>,
    /// The body, a text.
    pub body: String,
}

type ModelScript = Rc<dyn Fn(&ModelRequest) -> Answer>;
type NativeScript = Rc<dyn Fn(&NativeCall, usize) -> Native>;
type EffectScript = Rc<dyn Fn(&EffectCall, usize) -> Native>;
type EndpointScript = Rc<dyn Fn(&EndpointCall) -> Handler>;
/// What a native hook gives.
pub type Reaction = LocalBoxFuture<'static, Result<Value, String>>;
type HookScript = Rc<dyn Fn(HookCall) -> Reaction>;
type SiblingScript = Rc<dyn Fn(&str) -> Result<String, bobbin::Error>>;
type HttpScript = Rc<dyn Fn(&Request, usize) -> Answer>;

/// The outside.
#[derive(Default)]
pub struct Outside {
    model: RefCell<Option<ModelScript>>,
    natives: RefCell<BTreeMap<String, NativeScript>>,
    effects: RefCell<BTreeMap<String, EffectScript>>,
    servers: RefCell<BTreeMap<String, HttpScript>>,
    endpoints: RefCell<BTreeMap<String, EndpointScript>>,
    hooks: RefCell<BTreeMap<String, HookScript>>,
    sibling: RefCell<Option<SiblingScript>>,
    /// Where spans are sent.
    pub collector: Collector,
    /// Who makes vectors.
    pub embeddings: Embeddings,
    /// MCP servers.
    pub mcp: Mcp,
    /// Who gives tokens for them.
    pub issuer: Issuer,
    /// Code.
    pub sandbox: Sandbox,
    /// Requests to models.
    pub requests: RefCell<Vec<ModelRequest>>,
    /// Requests for answers that models were asked for before.
    pub fetches: RefCell<Vec<ModelRequest>>,
    /// What models say that they gave out.
    pub given: RefCell<Vec<Given>>,
    /// Calls that reached a hook, native or http, in order.
    pub hooked: RefCell<Vec<Asked>>,
    /// Requests that reached a native endpoint.
    pub handled: RefCell<Vec<EndpointCall>>,
    /// Executions of native and http tools, and requests to http endpoints, in order.
    pub executions: RefCell<Vec<Execution>>,
    /// Requests that reached an http server of ours, and the `traceparent` of each.
    pub traced: RefCell<Vec<(String, String)>>,
    /// How late each attempt at a native effect began, in microseconds.
    pub lateness: RefCell<Vec<i64>>,
    /// Calls of directories.
    pub siblings: RefCell<Vec<(Sibling, Value)>>,
    /// Calls between threads, in order.
    pub calls: RefCell<Vec<Called>>,
    /// Natives that the deployment does not have, as it says of itself.
    pub missing: RefCell<Vec<String>>,
    /// Whether no sandbox is bound, as it says of itself.
    pub unbound: std::cell::Cell<bool>,
}

/// Where models are in simulations.
pub const MODEL_URL: &str = "http://model.test/v1";
/// Where http tools are.
pub const TOOL_URL: &str = "http://tool.test";

impl Outside {
    /// Scripts every model.
    pub fn model(&self, script: impl Fn(&ModelRequest) -> Answer + 'static) {
        *self.model.borrow_mut() = Some(Rc::new(script));
    }

    /// Scripts a native tool; the number tells how often it ran before.
    pub fn native(&self, name: &str, script: impl Fn(&NativeCall, usize) -> Native + 'static) {
        self.natives.borrow_mut().insert(name.into(), Rc::new(script));
    }

    /// Scripts a native effect; the number tells how often it ran before. A result that is an error is a failure.
    pub fn effect(&self, name: &str, script: impl Fn(&EffectCall, usize) -> Native + 'static) {
        self.effects.borrow_mut().insert(name.into(), Rc::new(script));
    }

    /// Scripts an http tool by its path below [`TOOL_URL`]; the number tells how often it was called before.
    pub fn server(&self, path: &str, script: impl Fn(&Request, usize) -> Answer + 'static) {
        self.servers.borrow_mut().insert(format!("{TOOL_URL}{path}"), Rc::new(script));
    }

    /// Scripts a native endpoint.
    pub fn endpoint(&self, name: &str, script: impl Fn(&EndpointCall) -> Handler + 'static) {
        self.endpoints.borrow_mut().insert(name.into(), Rc::new(script));
    }

    /// Scripts a native hook.
    pub fn hook(&self, name: &str, script: impl Fn(HookCall) -> Reaction + 'static) {
        self.hooks.borrow_mut().insert(name.into(), Rc::new(script));
    }

    /// Scripts the other objects.
    pub fn sibling(&self, script: impl Fn(&str) -> Result<String, bobbin::Error> + 'static) {
        *self.sibling.borrow_mut() = Some(Rc::new(script));
    }

    /// Forgets every script.
    pub(super) fn clear(&self) {
        self.model.borrow_mut().take();
        self.sibling.borrow_mut().take();
        self.natives.borrow_mut().clear();
        self.effects.borrow_mut().clear();
        self.servers.borrow_mut().clear();
        self.endpoints.borrow_mut().clear();
        self.hooks.borrow_mut().clear();
        self.handled.borrow_mut().clear();
        self.sandbox.clear();
        self.collector.clear();
        self.embeddings.clear();
        self.mcp.clear();
    }

    /// A request arrives. The complaints are about the request itself.
    pub(super) fn receive(&self, request: &Request, now_us: i64) -> (Answer, Option<usize>, Vec<String>) {
        let body: Value =
            request.body.as_ref().and_then(|body| serde_json::from_slice(body).ok()).unwrap_or(Value::Null);
        if request.url.starts_with(MODEL_URL) {
            let index = self.requests.borrow().len();
            let arrived = ModelRequest {
                index,
                at_us: now_us,
                thread: body["user"]
                    .as_str()
                    .or(body["metadata"]["user_id"].as_str())
                    .or(body["prompt_cache_key"].as_str())
                    .unwrap_or("")
                    .into(),
                model: body["model"].as_str().unwrap_or("").into(),
                headers: request.headers.clone(),
                text: request
                    .body
                    .as_ref()
                    .map(|body| String::from_utf8_lossy(body).into())
                    .unwrap_or_default(),
                body,
                method: request.method,
                path: request.url.replacen(MODEL_URL, "", 1),
            };
            let is_claude = request.url == format!("{MODEL_URL}/messages");
            let is_responses = arrived.path.starts_with("/responses");
            let found = match (is_claude, is_responses) {
                (true, _) => claude::complaints(&arrived.body),
                (_, true) => strict::of_responses(&arrived),
                _ => strict::complaints(&arrived.body),
            };
            let mut complaints: Vec<String> = found
                .into_iter()
                .map(|complaint| format!("model request {index}: {complaint}: {}", arrived.body))
                .collect();
            let is_chat = request.url == format!("{MODEL_URL}/chat/completions");
            if !is_responses && (!(is_chat || is_claude) || request.method != "POST") {
                complaints.push(format!("a model is asked by {} {}", request.method, request.url));
            }
            // An answer that is fetched or cancelled was asked for before, and is paid for once.
            let asks_anew = request.method == "POST" && !arrived.path.ends_with("/cancel");
            let list = if asks_anew { &self.requests } else { &self.fetches };
            list.borrow_mut().push(arrived.clone());
            let script = self.model.borrow().clone();
            let answer = script.map_or_else(Answer::refused, |script| script(&arrived));
            if let Some((input, output)) = answer.used() {
                let (thread, model) = (arrived.thread.clone(), arrived.model.clone());
                self.given.borrow_mut().push(Given { thread, model, input, output });
            }
            return (answer, None, complaints);
        }
        if let Some(path) = request.url.strip_prefix(EMBED_URL) {
            let (answer, wrong) = self.embeddings.receive(path, body);
            return (answer, None, wrong);
        }
        if let Some(path) = request.url.strip_prefix(COLLECTOR_URL) {
            let text = request.body.as_ref().map(|body| String::from_utf8_lossy(body).into_owned());
            let (answer, wrong) =
                self.collector.receive(path, &request.headers, text.unwrap_or_default(), now_us);
            return (answer, None, wrong);
        }
        if let Some((answer, wrong)) = self.issuer.receive(request) {
            return (answer, None, wrong);
        }
        if let Some(name) = request.url.strip_prefix(MCP_URL) {
            let (answer, acted, wrong) = self.mcp.receive(name, request);
            let place = acted.map(|(name, key, args)| self.record(&name, &key, args));
            return (answer, place, wrong);
        }
        let script = self.servers.borrow().get(&request.url).cloned();
        let Some(script) = script else {
            return (Answer::refused(), None, vec![format!("nobody serves {}", request.url)]);
        };
        let before = self.executions.borrow().iter().filter(|e| e.name == request.url).count();
        let key = request.headers.iter().find(|(name, _)| name == "idempotency-key");
        let key = key.map(|(_, value)| value.clone()).unwrap_or_default();
        let mut complaints = Vec::new();
        let of_hook = !body["hook"].is_null();
        let named = if of_hook { &body["hookCallId"] } else { &body["idempotencyKey"] };
        if key.is_empty() || *named != key.as_str() {
            complaints.push(format!("{}: idempotency key “{key}”, in the body {named}", request.url));
        }
        if of_hook {
            let args = body["args"].as_array().cloned().unwrap_or_default();
            self.ask(body["hook"].as_str().unwrap_or_default(), &key, args);
        }
        let place = self.record(&request.url, &key, body["args"].clone());
        let traced = request.headers.iter().find(|(name, _)| name == "traceparent");
        let parent = traced.map(|(_, value)| value.clone()).unwrap_or_default();
        self.traced.borrow_mut().push((request.url.clone(), parent));
        (script(request, before), Some(place), complaints)
    }

    /// A native tool starts. `None`: there is none of that name.
    pub(super) fn start(&self, call: &NativeCall) -> Option<(Native, usize)> {
        let script = self.natives.borrow().get(&call.name).cloned()?;
        let before = self.executions.borrow().iter().filter(|e| e.name == call.name).count();
        let place = self.record(&call.name, &call.idempotency_key, call.args.clone());
        Some((script(call, before), place))
    }

    /// A native effect starts. `None`: there is none of that name.
    pub(super) fn start_effect(&self, call: &EffectCall, now_us: i64) -> Option<(Native, usize)> {
        let script = self.effects.borrow().get(&call.native).cloned()?;
        let before = self.executions.borrow().iter().filter(|e| e.name == call.native).count();
        let place = self.record(&call.native, &call.idempotency_key, call.args.clone());
        self.lateness.borrow_mut().push(now_us - call.scheduled_us);
        Some((script(call, before), place))
    }

    /// A native endpoint is asked. `None`: there is none of that name.
    pub(super) fn ask_endpoint(&self, call: &EndpointCall) -> Option<Handler> {
        let script = self.endpoints.borrow().get(&call.native).cloned()?;
        self.handled.borrow_mut().push(call.clone());
        Some(script(call))
    }

    /// A native hook is called. `None`: there is none of that name.
    pub(super) fn ask_hook(&self, call: HookCall) -> Option<Reaction> {
        let script = self.hooks.borrow().get(&call.native).cloned()?;
        self.ask(call.hook.as_str(), &call.hook_call_id, call.args.clone());
        Some(script(call))
    }

    fn ask(&self, hook: &str, call_id: &str, args: Vec<Value>) {
        self.hooked.borrow_mut().push(Asked { hook: hook.into(), call_id: call_id.into(), args });
    }

    fn record(&self, name: &str, key: &str, args: Value) -> usize {
        let mut executions = self.executions.borrow_mut();
        executions.push(Execution { name: name.into(), key: key.into(), args, finished: false });
        executions.len() - 1
    }

    /// An execution came to its end.
    pub(super) fn finish(&self, place: usize) {
        if let Some(execution) = self.executions.borrow_mut().get_mut(place) {
            execution.finished = true;
        }
    }

    /// Another object is called.
    pub(super) fn call_sibling(&self, to: Sibling, call: &str) -> Result<String, bobbin::Error> {
        let call_or_several = serde_json::from_str(call).unwrap_or(Value::Null);
        let calls = match call_or_several["calls"].as_array() {
            Some(calls) => calls.clone(),
            None => vec![call_or_several],
        };
        self.siblings.borrow_mut().extend(calls.into_iter().map(|call| (to.clone(), call)));
        let script = self.sibling.borrow().clone();
        script.map_or_else(|| Ok(r#"{"status":204}"#.into()), |script| script(call))
    }
}
