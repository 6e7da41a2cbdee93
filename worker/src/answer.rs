//! Responses to clients: always JSON, never with a stack trace, never cached.

use bobbin::request::Reply;
use bobbin::{Code, Error};
use serde_json::Value;
use wasm_bindgen::prelude::*;

use crate::bindings::{Socket, log, random};
use crate::remote::ObjectResponse;

#[wasm_bindgen(module = "/platform.js")]
extern "C" {
    /// A `Response`.
    pub type Response;

    #[wasm_bindgen(catch, js_name = answer)]
    fn make(
        status: u16,
        body: &JsValue,
        origin: Option<&str>,
        extra: Option<&str>,
    ) -> Result<Response, JsValue>;

    /// The response to an accepted upgrade. The client gets this end. `run`: the run that it follows, if it
    /// has begun.
    #[wasm_bindgen(catch)]
    pub(crate) fn upgraded(client: &Socket, run: Option<&str>) -> Result<Response, JsValue>;
}

/// An object's response. `origin` may read it.
pub(crate) fn of_answer(answer: &ObjectResponse, origin: Option<&str>) -> Result<Response, JsValue> {
    let extra = answer.retry_after.map(|seconds| format!("retry-after: {seconds}"));
    make(answer.status, &answer.body, origin, extra.as_deref())
}

/// 204.
pub(crate) fn nothing(origin: Option<&str>) -> Result<Response, JsValue> {
    make(204, &JsValue::UNDEFINED, origin, None)
}

/// 202.
pub(crate) fn accepted(origin: Option<&str>) -> Result<Response, JsValue> {
    make(202, &JsValue::UNDEFINED, origin, None)
}

/// A JSON value with status 200.
pub(crate) fn of_value(value: &Value, origin: Option<&str>) -> Result<Response, JsValue> {
    make(200, &JsValue::from_str(&value.to_string()), origin, None)
}

/// The Worker's own error. `allow`: the methods of a route that has others.
pub(crate) fn of_error(
    error: Error,
    origin: Option<&str>,
    allow: Option<&str>,
    dev: bool,
) -> Result<Response, JsValue> {
    let extra = match error.code {
        Code::MethodNotAllowed => allow.map(|methods| format!("allow: {methods}")),
        Code::Unauthenticated => Some("www-authenticate: Bearer".to_owned()),
        _ => error.retry_after_s.map(|seconds| format!("retry-after: {seconds}")),
    };
    let reply = Reply::from(error);
    let reply = if reply.status == 500 { without_details(reply, dev) } else { reply };
    let body = reply.body.map_or(JsValue::UNDEFINED, |body| JsValue::from_str(body.get()));
    make(reply.status, &body, origin, extra.as_deref())
}

/// The same for an error. Only internal errors are changed.
pub(crate) fn without_details_of(error: Error, dev: bool) -> Error {
    if error.code.status() != 500 {
        return error;
    }
    let id: String = random().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    log(&format!("internal error {id}: {}", error.message));
    let shown =
        if dev { format!("Internal error {id}: {}", error.message) } else { format!("Internal error {id}.") };
    Error::new(error.code, shown).hint("The id is in the log of the deployment, with what happened.")
}

/// An internal error without details: an id, which finds the details in the log. A developer's own machine
/// shows the message too.
pub(crate) fn without_details(reply: Reply, dev: bool) -> Reply {
    let id: String = random().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let told = reply.body.as_ref().and_then(|body| bobbin::json::from_str::<Value>(body.get()).ok());
    let told = told.as_ref().and_then(|body| body.pointer("/error/message")).and_then(Value::as_str);
    let told = told.unwrap_or("no message");
    log(&format!("internal error {id}: {told}"));
    let shown = if dev { format!("Internal error {id}: {told}") } else { format!("Internal error {id}.") };
    Error::internal(shown).hint("The id is in the log of the deployment, with what happened.").into()
}
