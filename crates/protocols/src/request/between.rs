//! Requests from one thread to another.

use serde::Deserialize;

use crate::access::Caller;
use crate::request::{Query, ThreadRequest};
use bobbin_definitions::error::{Code, Error, Fault};

/// The first life of a thread id. Only threads that replace a deleted one have a later life.
pub const fn first_life() -> i64 {
    1
}

/// Whether a thread is the first one with its id.
pub const fn is_first_life(life: &i64) -> bool {
    *life == 1
}

/// A request to another thread.
pub fn to_thread<R>(id: &str, route: R) -> ThreadRequest<R> {
    ThreadRequest {
        thread_id: id.to_owned(),
        life: None,
        caller: Caller::admin(),
        route,
        query: Query::default(),
        idempotency_key: None,
        headers: Vec::new(),
        body: String::new(),
    }
}

/// The error in a response of a thread; `overloaded` or `internal` if the body is not an error of Bobbin.
pub fn error_of(status: u16, retry_after_s: Option<u32>, body: &[u8]) -> Error {
    #[derive(Deserialize)]
    struct ErrorBody {
        error: Fields,
    }
    #[derive(Deserialize)]
    struct Fields {
        code: Code,
        message: String,
        hint: Option<String>,
        field: Option<String>,
        details: Option<Box<serde_json::Value>>,
    }
    match bobbin_definitions::json::from_slice::<ErrorBody>(body) {
        Ok(ErrorBody { error: Fields { code, message, hint, field, details } }) => {
            Fault { code, message, hint, field, retry_after_s, details }.into()
        }
        Err(_) if status == 503 => Error::new(Code::Overloaded, "The thread did not answer."),
        Err(_) => Error::internal(format!("the thread answered {status}")),
    }
}
