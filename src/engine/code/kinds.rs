//! What each kind of definition makes of its file: arguments in, and the meaning of what comes back.

use std::rc::Rc;

use bytes::Bytes;
use serde_json::{Value as Json, json};

use crate::api::endpoints::{EndpointAnswer, EndpointCall};
use crate::engine::code::file::{Job, Order};
use crate::engine::hooks::HookCall;
use crate::engine::http_tool::{is_result, result_of};
use crate::engine::thread::Thread;
use crate::sandbox::{BinaryKind, Value};
use crate::spec::Code;
use crate::spec::hook::HookName;
use crate::spec::message::ToolResult;
use crate::work::native::{EffectCall, NativeCall};

impl Thread {
    /// `(state, args)`: a `ToolResult`, a text, or anything that JSON has. What is thrown is an error result.
    pub(crate) async fn code_tool(self: &Rc<Self>, code: &Code, call: NativeCall) -> ToolResult {
        let NativeCall { args, env, state, .. } = call;
        let job = Job { code, state, env, args: vec![args.into()], order: Order::StateFirst };
        match self.run_file(job).await {
            Ok(value) => match value.to_json().unwrap_or(Json::Null) {
                Json::Object(fields) if is_result(&fields) => result_of(fields),
                Json::String(text) => ToolResult::success(text),
                Json::Null => ToolResult::success(""),
                other => ToolResult::success(other.to_string()),
            },
            Err(error) => ToolResult::error(error),
        }
    }

    /// `(state, args)`; what it gives is left.
    pub(crate) async fn code_effect(self: &Rc<Self>, code: &Code, call: EffectCall) -> Result<(), String> {
        let EffectCall { args, env, state, .. } = call;
        let job = Job { code, state, env, args: vec![args.into()], order: Order::StateFirst };
        self.run_file(job).await.map(|_| ())
    }

    /// `(state, ...args)`, as docs/hooks.md lists them.
    pub(crate) async fn code_hook(self: &Rc<Self>, code: &Code, call: HookCall) -> Result<Json, String> {
        let HookCall { args, env, state, hook, .. } = call;
        let args = args.into_iter().map(Value::from).collect();
        let job = Job { code, state, env, args, order: Order::StateFirst };
        let value = self.run_file(job).await?;
        if hook.observes() {
            return Ok(Json::Null);
        }
        value.to_json().ok_or_else(|| missing(hook))
    }

    /// `(request, state, params)`; a `Response`, or anything that JSON has.
    pub(crate) async fn code_endpoint(
        self: &Rc<Self>,
        code: &Code,
        call: EndpointCall,
    ) -> Result<EndpointAnswer, String> {
        let params = json!(call.params).into();
        let request = request(&call);
        let job = Job {
            code,
            state: call.state,
            env: call.env,
            args: vec![request, params],
            order: Order::StateSecond,
        };
        answer(self.run_file(job).await?)
    }
}

fn missing(hook: HookName) -> String {
    format!("it gave nothing back; {} gives what is to be used", hook.as_str())
}

/// What the harness makes a `Request` of.
fn request(call: &EndpointCall) -> Value {
    let url = if call.address.is_empty() { address(call) } else { call.address.clone() };
    Value::Object(vec![
        ("url".to_owned(), Value::String(url)),
        ("method".to_owned(), call.method.as_str().into()),
        ("headers".to_owned(), json!(call.headers).into()),
        ("body".to_owned(), Value::Binary(BinaryKind::Uint8Array, call.body.clone())),
    ])
}

/// An address for a request that has none of its own.
fn address(call: &EndpointCall) -> String {
    let query: Vec<String> =
        call.query.0.iter().map(|(name, value)| format!("{}={}", escaped(name), escaped(value))).collect();
    let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
    let host = call.header("host").unwrap_or("localhost");
    let path: Vec<String> = call.path.split('/').map(escaped).collect();
    format!("http://{host}{}{query}", path.join("/"))
}

fn escaped(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect()
}

/// `{ response: { status, headers, body } }` from the harness, or a value.
fn answer(value: Value) -> Result<EndpointAnswer, String> {
    let response = value.get("response");
    if matches!(response, Value::Undefined) {
        let json = value.get("value").to_json().unwrap_or(Json::Null);
        return Ok(EndpointAnswer::json(200, &json));
    }
    let status = match response.get("status") {
        Value::Number(status) if (200.0..600.0).contains(status) => *status as u16,
        _ => return Err("its answer has no status from 200 to 599".to_owned()),
    };
    let mut headers = Vec::new();
    if let Some(Json::Array(pairs)) = response.get("headers").to_json() {
        for pair in &pairs {
            let text = |at: usize| pair.get(at).and_then(Json::as_str).map(str::to_owned);
            headers.extend(text(0).zip(text(1)));
        }
    }
    let body = match response.get("body") {
        Value::String(text) => Bytes::from(text.clone()),
        Value::Binary(_, bytes) => bytes.clone(),
        _ => Bytes::new(),
    };
    Ok(EndpointAnswer { status, headers, body })
}
