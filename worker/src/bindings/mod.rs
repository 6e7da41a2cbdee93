//! The platform as the Worker uses it: thin externs over its JavaScript objects, without wrappers between.
//! `incoming`: the incoming request; `outside`: outgoing requests, time, randomness, the log; `objects`,
//! `storage`, `sockets`: the APIs of an object; `sandbox`: runs in the isolate Worker.
//!
//! Each is marked `catch`, so that a JavaScript exception becomes an `Err`. Without it the exception would
//! pass through Rust frames and skip their drops.
//!
//! The crate `worker` wraps the same objects. The feature `platform` offers it to an application's own Rust.
//! The Worker itself does not use it: each file here names the costs or the missing parts, and
//! docs/decisions/013-the-crate-worker-is-for-an-applications-rust.md has the measurements.

mod incoming;
mod objects;
mod outside;
mod sandbox;
mod sockets;
mod storage;

pub(crate) use incoming::{Head, IncomingRequest};
pub(crate) use objects::{Bucket, Env, Namespace, ObjectState, Stub, relay};
pub(crate) use outside::{ChunkCallback, FetchInit, FetchResponse, Outgoing, Timer, date_now, log, random};
pub(crate) use sandbox::{CallHandler, HearEnded, HearReport, HearTaken, SandboxRun};
pub(crate) use sockets::{Socket, SocketPair, auto_response};
pub(crate) use storage::{Cursor, Iteration, SqlStorage, Storage};

use wasm_bindgen::prelude::*;

/// A JavaScript exception as a text without a final full stop, because the texts around it have their own.
pub(crate) fn thrown(error: &JsValue) -> String {
    let mut text = match error.dyn_ref::<js_sys::Error>() {
        Some(error) => String::from(error.message()),
        None => error.as_string().unwrap_or_else(|| format!("{error:?}")),
    };
    if text.ends_with('.') && !text.ends_with("..") {
        text.pop();
    }
    text
}
