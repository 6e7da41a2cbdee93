//! Calls between the Worker and its objects: one remote call each, text in, `[status, retryAfter, body]` out. A body
//! passes as a JavaScript string and is read only where it is used.

use bobbin::limits::BODY_SILENCE_S;
use bobbin::request::{BodyRule, Reply};
use bobbin::{Code, Error, Result};
use wasm_bindgen::prelude::*;

use crate::bindings::{self, IncomingRequest, Namespace, Stub, log, thrown};

/// Retry delay for a full disk, seconds.
const FULL_RETRY_S: u32 = 30;

/// An object's response.
pub(crate) struct ObjectResponse {
    /// HTTP status.
    pub(crate) status: u16,
    /// Seconds.
    pub(crate) retry_after: Option<u32>,
    /// A JSON text, or undefined.
    pub(crate) body: JsValue,
}

/// Calls an object.
///
/// # Errors
/// `overloaded` if the platform could not finish the call: the object was restarted or moved, or is overloaded. The call may or may not have taken effect.
pub(crate) async fn call(stub: &Stub, text: &JsValue) -> Result<ObjectResponse> {
    let answer = stub.call(text).await.map_err(|error| lost(&error))?;
    unpack(answer)
}

/// The body of a request on its way to an object.
pub(crate) struct RelayedBody<'a> {
    pub(crate) request: &'a IncomingRequest,
    pub(crate) rule: BodyRule,
    /// Maximum number of bytes.
    pub(crate) limit: usize,
    /// Whether its length was declared and is within the limit.
    pub(crate) known: bool,
}

/// Calls an object with the body of a request, which does not cross into wasm here.
///
/// # Errors
/// As [`call`]; `too_large`; `bad_json` when the client broke off.
pub(crate) async fn relay(
    objects: &Namespace,
    name: &str,
    head: &str,
    body: RelayedBody<'_>,
) -> Result<ObjectResponse> {
    let RelayedBody { request, rule, limit, known } = body;
    let answer =
        bindings::relay(objects, name, head, request, limit, known).await.map_err(|error| lost(&error))?;
    if answer.is_undefined() {
        return Err(rule.too_large());
    }
    match answer.as_string() {
        Some(error) => Err(unreadable_body(&error)),
        None => unpack(answer),
    }
}

/// The error for a client's body that broke off or was abandoned; then `error` is a word of bodies.js.
pub(crate) fn unreadable_body(error: &str) -> Error {
    given_up(error)
        .unwrap_or_else(|| Error::new(Code::BadJson, format!("The body could not be read: {}.", error)))
}

/// The reason for which we abandoned a body, from a word of bodies.js.
pub(crate) fn given_up(why: &str) -> Option<Error> {
    match why {
        "stalled" => Some(
            Error::new(
                Code::RequestTimeout,
                format!(
                    "The body stopped coming: within {BODY_SILENCE_S} seconds there was too little of it."
                ),
            )
            .hint("Send the request again, a POST with the same Idempotency-Key. Nothing was changed."),
        ),
        "crowded" => Some(
            Error::new(Code::Overloaded, "Too many bodies of requests are under way.")
                .hint("Send the request again in a moment. Nothing was changed.")
                .retry_after(1),
        ),
        _ => None,
    }
}

fn unpack(answer: JsValue) -> Result<ObjectResponse> {
    let answer: js_sys::Array = answer.dyn_into().map_err(|_| unreadable())?;
    let number = |at| answer.get(at).as_f64();
    Ok(ObjectResponse {
        status: number(0).ok_or_else(unreadable)? as u16,
        retry_after: number(1).map(|seconds| seconds as u32),
        body: answer.get(2),
    })
}

/// Converts a response into the form in which it is transferred.
pub(crate) fn pack(reply: Reply) -> JsValue {
    let body = reply.body.map_or(JsValue::UNDEFINED, |body| JsValue::from_str(body.get()));
    let retry_after = reply.retry_after.map_or(JsValue::UNDEFINED, JsValue::from);
    js_sys::Array::of3(&reply.status.into(), &retry_after, &body).into()
}

/// The error for an object that was lost during a call.
pub(crate) fn lost(error: &JsValue) -> Error {
    let why = thrown(error);
    log(&format!("a call to an object was lost: {why}"));
    if why.contains("SQLITE_FULL") {
        return Error::new(Code::Overloaded, "There is no room to store anything: the disk, or the thread's database, is full.")
            .hint("Make room on the server's disk, or delete threads. Then send it again, a POST with the same Idempotency-Key.")
            .retry_after(FULL_RETRY_S);
    }
    Error::new(
        Code::Overloaded,
        "The thread was restarted or is overloaded; the request may or may not have been taken.",
    )
    .hint("Send it again, a POST with the same Idempotency-Key. If the error persists, the log of the deployment has its cause.")
    .retry_after(1)
}

fn unreadable() -> Error {
    Error::internal("an object answered in another form than this version of the Worker knows")
}
