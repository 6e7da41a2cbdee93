//! Errors in OpenAI's format: `{ "error": { "message", "type", "param", "code" } }`.

use serde_json::Value;

use bobbin_definitions::error::{Code, Error};
use bobbin_definitions::json;

/// An error of the Worker.
pub fn of_error(error: &Error) -> Value {
    let message = match &error.hint {
        Some(hint) => format!("{} {hint}", error.message),
        None => error.message.clone(),
    };
    let code = serde_json::to_value(error.code).unwrap_or_default();
    let code = match error.code {
        Code::AgentNotFound => "model_not_found",
        _ => code.as_str().unwrap_or("internal"),
    };
    body(error.code.status(), code, &message, error.field.as_deref())
}

/// An error in a thread's response.
pub fn of_body(status: u16, told: &Value) -> Value {
    let text = |name: &str| told.pointer(&format!("/error/{name}")).and_then(Value::as_str);
    let message = match (text("message"), text("hint")) {
        (Some(message), Some(hint)) => format!("{message} {hint}"),
        (message, _) => message.unwrap_or("The request failed.").to_owned(),
    };
    let code = match text("code") {
        Some("agent_not_found") => "model_not_found",
        code => code.unwrap_or("internal"),
    };
    body(status, code, &message, text("field"))
}

/// An error body.
pub fn body(status: u16, code: &str, message: &str, param: Option<&str>) -> Value {
    json!({ "error": { "message": message, "type": kind(status), "param": param, "code": code } })
}

fn kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    }
}

/// The error for an unsupported option that cannot be ignored.
pub(super) fn unsupported(param: &str, text: &str) -> Error {
    Error::new(Code::UnsupportedParameter, text).at(param)
}
