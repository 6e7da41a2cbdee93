//! The four kinds of work: their input as native functions, in files and over HTTP, and the meaning of their
//! results.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Map, Value as Json};

use crate::definitions::hook::HookName;
use crate::definitions::message::ToolResult;
use crate::definitions::retry::RetryOn;
use crate::host::Pending;
use crate::json;
use crate::models::registry::Panic;
use crate::sandbox::{BinaryKind, Value};
use crate::work::code::file::{FileCall, Order};
use crate::work::http::PostResponse;
use crate::work::native::endpoint_call::{EndpointAnswer, EndpointCall};
use crate::work::native::hook_call::HookCall;
use crate::work::native::{EffectCall, NativeCall, Natives};
use crate::work::tool_answer::tool_result;
use crate::work::{Failure, ImplementationCall, RemoteRequest, ResultConverter, WorkContext};

/// The result of a native function, or its panic.
type NativeResult<A> = Result<Result<A, Failure>, Panic>;

/// `(state, args)`: returns a `ToolResult`, a text, or any JSON value. Its own failures are error results.
impl ImplementationCall for NativeCall {
    type Output = ToolResult;

    fn native(self, natives: &dyn Natives, name: &str) -> Pending<NativeResult<ToolResult>> {
        let running = natives.tool(NativeCall { name: name.to_owned(), ..self });
        Box::pin(async move { running.await.map(Ok) })
    }

    fn in_file(self) -> (FileCall, ResultConverter<ToolResult>) {
        let NativeCall { args, env, state, approved, answers, .. } = self;
        let about = json!({ "approved": approved, "answers": answers });
        let call = FileCall { state, env, args: vec![args.into(), about.into()], order: Order::StateFirst };
        (
            call,
            Box::new(|value| {
                Ok(match value.to_json().unwrap_or(Json::Null) {
                    Json::Null => ToolResult::success(""),
                    answer => tool_result(&answer, json::text(&answer)),
                })
            }),
        )
    }

    fn posted(&self) -> RemoteRequest {
        RemoteRequest {
            name: self.name.clone(),
            idempotency_key: self.idempotency_key.clone(),
            now_us: self.now_us,
            body: envelope(self),
        }
    }

    fn answered(self, answered: PostResponse, context: &dyn WorkContext) -> Result<ToolResult, Failure> {
        if let Some(refusal) = answered.refusal(context, &self.name) {
            return Err(match RetryOn::of_status(answered.status) {
                Some(kind) => Failure::MayPass(kind, refusal),
                None => Failure::Failed(refusal),
            });
        }
        let text = answered.text().into_owned();
        Ok(match json::from_str::<Json>(&text) {
            Ok(answer) => tool_result(&answer, text),
            // Text that is not JSON is the result.
            Err(_) => ToolResult::success(text),
        })
    }
}

/// `(state, args)`; the return value is ignored.
impl ImplementationCall for EffectCall {
    type Output = ();

    fn native(self, natives: &dyn Natives, name: &str) -> Pending<NativeResult<()>> {
        let running = natives.effect(EffectCall { native: name.to_owned(), ..self });
        Box::pin(async move { Ok(running.await?.map_err(Failure::Failed)) })
    }

    fn in_file(self) -> (FileCall, ResultConverter<()>) {
        let EffectCall { args, env, state, .. } = self;
        let call = FileCall { state, env, args: vec![args.into()], order: Order::StateFirst };
        (call, Box::new(|_| Ok(())))
    }

    fn posted(&self) -> RemoteRequest {
        RemoteRequest {
            name: self.name.clone(),
            idempotency_key: self.idempotency_key.clone(),
            now_us: self.now_us,
            body: json!({
                "threadId": self.thread_id, "agentId": self.agent_id, "name": self.name, "args": self.args,
                "effectId": self.effect_id, "idempotencyKey": self.idempotency_key, "attempt": self.attempt,
                "scheduledAt": self.scheduled_us,
            }),
        }
    }

    fn answered(self, answered: PostResponse, context: &dyn WorkContext) -> Result<(), Failure> {
        answered.refusal(context, &self.name).map_or(Ok(()), |refusal| Err(Failure::Failed(refusal)))
    }
}

/// `(state, ...args)`, as listed in docs/hooks.md.
impl ImplementationCall for HookCall {
    type Output = Json;

    fn native(self, natives: &dyn Natives, name: &str) -> Pending<NativeResult<Json>> {
        let running = natives.hook(HookCall { native: name.to_owned(), ..self });
        Box::pin(async move { Ok(running.await?.map_err(Failure::Failed)) })
    }

    fn in_file(self) -> (FileCall, ResultConverter<Json>) {
        let HookCall { args, env, state, hook, .. } = self;
        let args = args.into_iter().map(Value::from).collect();
        let call = FileCall { state, env, args, order: Order::StateFirst };
        (
            call,
            Box::new(move |value| match value.to_json() {
                _ if hook.observes() => Ok(Json::Null),
                Some(value) => Ok(value),
                None => Err(Failure::Failed(format!(
                    "it gave nothing back; {} gives what is to be used",
                    hook.as_str()
                ))),
            }),
        )
    }

    fn posted(&self) -> RemoteRequest {
        RemoteRequest {
            name: self.id.clone(),
            idempotency_key: self.hook_call_id.clone(),
            now_us: self.now_us,
            body: json!({
                "threadId": self.thread_id, "agentId": self.agent_id, "hook": self.hook, "args": self.args,
                "hookCallId": self.hook_call_id,
            }),
        }
    }

    fn answered(self, answered: PostResponse, context: &dyn WorkContext) -> Result<Json, Failure> {
        match answered.refusal(context, &self.id) {
            Some(refusal) => Err(Failure::Failed(refusal)),
            None => hook_value(&answered.text(), self.hook).map_err(Failure::Failed),
        }
    }
}

/// `(request, state, params)`: returns a `Response`, or any JSON value.
impl ImplementationCall for EndpointCall {
    type Output = EndpointAnswer;

    fn native(self, natives: &dyn Natives, name: &str) -> Pending<NativeResult<EndpointAnswer>> {
        let running = natives.endpoint(EndpointCall { native: name.to_owned(), ..self });
        Box::pin(async move {
            Ok(running.await?.map_err(|error| match error.code.status() < 500 {
                true => Failure::Refused(error),
                false => Failure::Failed(error.into_message()),
            }))
        })
    }

    fn in_file(self) -> (FileCall, ResultConverter<EndpointAnswer>) {
        let args = vec![request(&self), json!(self.params).into()];
        let call = FileCall { state: self.state, env: self.env, args, order: Order::StateSecond };
        (call, Box::new(|value| answer(&value).map_err(Failure::Failed)))
    }

    fn posted(&self) -> RemoteRequest {
        let key = format!("{}/request-{}", self.thread_id, self.request_id);
        RemoteRequest {
            name: self.name.clone(),
            now_us: self.now_us,
            body: request_body(self, &key),
            idempotency_key: key,
        }
    }

    /// Passes on status, content type and body. Clients follow redirects, so `location` is passed on, too.
    fn answered(self, answered: PostResponse, context: &dyn WorkContext) -> Result<EndpointAnswer, Failure> {
        if !(200..500).contains(&answered.status) {
            let refusal = answered.refusal(context, &self.name);
            return Err(Failure::Failed(refusal.unwrap_or_else(|| format!("http {}", answered.status))));
        }
        let redirects = (300..400).contains(&answered.status);
        let passes = |name: &str| name == "content-type" || (redirects && name == "location");
        let PostResponse { status, headers, body } = answered;
        let headers = headers.into_iter().filter(|(name, _)| passes(name)).collect();
        Ok(EndpointAnswer { status, headers, body: body.into() })
    }
}

/// The body for a remote tool.
fn envelope(call: &NativeCall) -> Json {
    let mut body = json!({
        "threadId": call.thread_id, "agentId": call.agent_id, "name": call.name, "args": call.args,
        "callId": call.call_id, "idempotencyKey": call.idempotency_key, "options": call.options,
    });
    if let Some(fields) = body.as_object_mut() {
        if call.approved {
            fields.insert("approved".into(), true.into());
        }
        if !call.answers.is_empty() {
            fields.insert("answers".into(), Json::Object(call.answers.clone()));
        }
    }
    body
}

/// Parses an HTTP hook's response. For an observing hook the content is ignored.
fn hook_value(text: &str, hook: HookName) -> Result<Json, String> {
    if hook.observes() {
        return Ok(Json::Null);
    }
    let Ok(Json::Object(mut fields)) = crate::json::from_str(text) else {
        return Err("its answer is no JSON object".to_owned());
    };
    if let Some(value) = fields.remove("value") {
        return Ok(value);
    }
    match fields.get("error") {
        // A hook that blocks a request does so with `error`.
        Some(_) if hook == HookName::PrefilterLlmHistory => Ok(Json::Object(fields)),
        Some(Json::String(error)) => Err(error.clone()),
        _ => Err("its answer has no `value`".to_owned()),
    }
}

/// A request as JSON. A binary body is sent as `bodyBase64`. The query is a list of pairs, because a name may
/// occur twice.
fn request_body(call: &EndpointCall, key: &str) -> Json {
    let mut headers = Map::new();
    for (name, value) in &call.headers {
        headers.insert(name.clone(), Json::from(value.as_str()));
    }
    let mut request_body = json!({
        "threadId": call.thread_id, "agentId": call.agent_id, "name": call.name, "requestId": call.request_id,
        "idempotencyKey": key, "method": call.method, "path": call.path, "params": call.params,
        "query": call.query, "headers": headers,
    });
    let (field, body) = match std::str::from_utf8(&call.body) {
        Ok(text) => ("body", text.to_owned()),
        Err(_) => ("bodyBase64", STANDARD.encode(&call.body)),
    };
    if let Some(request_body) = request_body.as_object_mut() {
        request_body.insert(field.to_owned(), body.into());
    }
    request_body
}

/// The input for the `Request` that the harness creates.
fn request(call: &EndpointCall) -> Value {
    let url = if call.address.is_empty() { address(call) } else { call.address.clone() };
    Value::Object(vec![
        ("url".to_owned(), Value::String(url)),
        ("method".to_owned(), call.method.as_str().into()),
        ("headers".to_owned(), json!(call.headers).into()),
        ("body".to_owned(), Value::Binary(BinaryKind::Uint8Array, call.body.clone())),
    ])
}

/// A URL for a request without one.
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

/// Parses `{ response: { status, headers, body } }` from the harness, or a value.
fn answer(value: &Value) -> Result<EndpointAnswer, String> {
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
