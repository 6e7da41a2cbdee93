//! The client side of the Model Context Protocol (docs/mcp.md): requests and responses as data, for both
//! eras. This module does no I/O; `work/mcp` does.
//!
//! * Here: the eras, and the detection of a server's era. `ask`: requests. `reader`: responses as they
//!   arrive, as JSON or as events. `outcome`: the meaning of a response to a call. `elicit`: input from
//!   users. `list`: pages of tools. `task`: long-running calls. `oauth`: signing in to servers.

pub mod ask;
pub mod elicit;
pub mod list;
pub mod oauth;
pub mod outcome;
pub mod reader;
pub mod task;

use serde_json::{Map, Value};

use crate::mcp_client::reader::{RpcError, error_in};

/// The protocol without sessions: each request is self-contained.
pub const MODERN: &str = "2026-07-28";
/// The last version with sessions.
pub const LEGACY: &str = "2025-11-25";

/// The session that `initialize` starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// The server's id for it, if any.
    pub id: Option<String>,
    /// The negotiated protocol version.
    pub version: String,
}

/// The protocol era of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Era {
    /// Without sessions.
    Modern,
    /// With this session.
    Legacy(Session),
}

/// Error codes that only modern servers send: headers that do not match, a missing capability, an unsupported
/// version.
const MODERN_CODES: std::ops::RangeInclusive<i64> = -32022..=-32020;
/// An unsupported version.
const UNSUPPORTED: i64 = -32022;

/// A method that the server does not have.
pub const NO_METHOD: i64 = -32601;

/// The meaning of a refused modern request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The server is modern, and this is its response.
    Modern,
    /// The server requires `initialize`, and did not execute the request.
    Legacy,
    /// The server lists the version that it refuses as supported. It may have been updated meanwhile; try
    /// again.
    Again,
}

/// The meaning of a refusal of the request `id`, by status and body; `None` when it says nothing about the
/// protocol. `acts`: whether the request may have changed something at the server. Any error about such a
/// request may come from the tool.
pub fn refusal(status: u16, body: &[u8], id: &str, acts: bool) -> Option<Refusal> {
    // A client without a key learns nothing about the server, and a server that failed or is too busy may
    // succeed later.
    if !(400..500).contains(&status) || matches!(status, 401 | 403 | 408 | 429) {
        return None;
    }
    let Some((error, of)) = error_in(body) else { return Some(Refusal::Legacy) };
    if error.code == UNSUPPORTED && supported(&error).any(|version| version == MODERN) {
        return Some(Refusal::Again);
    }
    if wants_legacy(&error) {
        return Some(Refusal::Legacy);
    }
    // An error about the method or the parameters shows that the request was read. Servers with sessions
    // refuse without reading.
    let read = of.as_deref() == Some(id) && (acts || matches!(error.code, -32603..=-32601));
    Some(if read || MODERN_CODES.contains(&error.code) { Refusal::Modern } else { Refusal::Legacy })
}

/// Whether this error of `server/discover` shows a modern server without that method.
pub fn is_modern_error(status: u16, error: &RpcError) -> bool {
    !wants_legacy(error) && (MODERN_CODES.contains(&error.code) || (status == 404 && error.code == NO_METHOD))
}

/// Whether the result of `server/discover` lists the modern protocol.
pub fn names_modern(result: &Map<String, Value>) -> bool {
    let versions = result.get("supportedVersions").and_then(Value::as_array);
    versions.is_none_or(|versions| versions.is_empty() || versions.iter().any(|version| version == MODERN))
}

/// Whether an error shows that the server supports only versions with sessions.
pub fn wants_legacy(error: &RpcError) -> bool {
    error.code == UNSUPPORTED && speaks_legacy(error)
}

/// Whether a server refused a request with a session because it has no sessions.
pub fn wants_modern(status: u16, body: &[u8]) -> bool {
    (400..500).contains(&status)
        && error_in(body)
            .is_some_and(|(error, _)| MODERN_CODES.contains(&error.code) && !speaks_legacy(&error))
}

/// Whether a request was refused because its session no longer exists. It was not executed.
pub fn lost_session(status: u16, body: &[u8], id: &str) -> bool {
    let about_it = error_in(body).filter(|(_, of)| of.as_deref() == Some(id)).map(|(error, _)| error);
    match (status, about_it) {
        // The protocol specifies 404. Many servers send 400 for an unknown session, with an error that names
        // no request.
        (400 | 404, None) => true,
        // Some servers name the request. The 404 may also come from the tool.
        (404, Some(error)) => error.message.to_lowercase().contains("session"),
        _ => false,
    }
}

/// Whether an error lists a supported version with sessions.
fn speaks_legacy(error: &RpcError) -> bool {
    supported(error).any(|version| version < MODERN)
}

fn supported(error: &RpcError) -> impl Iterator<Item = &str> {
    let supported = error.data.get("supported").and_then(Value::as_array);
    supported.into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bobbin_definitions::json;

    fn error(id: Value, code: i64, data: Value) -> Vec<u8> {
        json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": "no", "data": data } })
            .to_string()
            .into_bytes()
    }

    #[test]
    fn a_refusal_tells_the_era() {
        let supported = |versions: &[&str]| json!({ "supported": versions, "requested": MODERN });
        for (status, body, expected) in [
            (400, error(json!(null), -32000, json!(null)), Some(Refusal::Legacy)),
            (400, b"Bad Request".to_vec(), Some(Refusal::Legacy)),
            (404, Vec::new(), Some(Refusal::Legacy)),
            (405, Vec::new(), Some(Refusal::Legacy)),
            (404, error(json!(null), -32001, json!(null)), Some(Refusal::Legacy)),
            (400, error(json!("a"), -32600, json!(null)), Some(Refusal::Legacy)),
            (400, error(json!("a"), -32022, supported(&[LEGACY])), Some(Refusal::Legacy)),
            (400, error(json!("a"), -32022, supported(&["2027-01-01"])), Some(Refusal::Modern)),
            (400, error(json!("a"), -32022, supported(&[LEGACY, MODERN])), Some(Refusal::Again)),
            (400, error(json!("a"), -32020, json!(null)), Some(Refusal::Modern)),
            (400, error(json!(null), -32021, json!(null)), Some(Refusal::Modern)),
            (404, error(json!("a"), -32601, json!(null)), Some(Refusal::Modern)),
            (400, error(json!("a"), -32602, json!(null)), Some(Refusal::Modern)),
            (400, error(json!("b"), -32602, json!(null)), Some(Refusal::Legacy)),
            (401, Vec::new(), None),
            (403, Vec::new(), None),
            (429, Vec::new(), None),
            (500, Vec::new(), None),
            (302, Vec::new(), None),
        ] {
            let said = String::from_utf8_lossy(&body);
            assert_eq!(refusal(status, &body, "a", false), expected, "{status} {said}");
        }
    }

    #[test]
    fn a_call_that_was_read_is_not_made_in_another_era() {
        let supported = json!({ "supported": [LEGACY] });
        for (status, body, expected) in [
            // Responses of the Python package `mcp` 2.3.0 after a tool has run: one that requests input, and
            // one that raises.
            (400, error(json!("a"), -32600, json!(null)), Refusal::Modern),
            (404, error(json!("a"), -32601, json!(null)), Refusal::Modern),
            (422, error(json!("a"), 1001, json!(null)), Refusal::Modern),
            (400, error(json!("a"), -32022, supported), Refusal::Legacy),
            (400, error(json!(null), -32000, json!(null)), Refusal::Legacy),
            (400, error(json!("server-error"), -32600, json!(null)), Refusal::Legacy),
            (404, Vec::new(), Refusal::Legacy),
        ] {
            let said = String::from_utf8_lossy(&body);
            assert_eq!(refusal(status, &body, "a", true), Some(expected), "{status} {said}");
        }
    }

    #[test]
    fn server_discover_tells_the_era() {
        let names = |result: Value| names_modern(result.as_object().unwrap());
        assert!(names(json!({ "supportedVersions": [LEGACY, MODERN] })) && names(json!({})));
        assert!(!names(json!({ "supportedVersions": [LEGACY] })));
        let is_modern = |status, code, data: Value| {
            is_modern_error(status, &RpcError { code, data, ..RpcError::default() })
        };
        assert!(is_modern(404, -32601, json!(null)) && is_modern(400, -32020, json!(null)));
        assert!(!is_modern(200, -32601, json!(null)) && !is_modern(400, -32600, json!(null)));
        assert!(!is_modern(400, -32022, json!({ "supported": [LEGACY] })));
    }

    #[test]
    fn a_session_is_lost_where_the_server_did_not_answer_the_request() {
        assert!(lost_session(404, b"", "a"));
        assert!(lost_session(400, b"", "a"));
        assert!(lost_session(400, &error(json!(null), -32000, json!(null)), "a"));
        assert!(!lost_session(400, &error(json!("a"), -32602, json!(null)), "a"));
        assert!(!lost_session(500, b"", "a"));
        assert!(!lost_session(404, &error(json!("a"), -32001, json!(null)), "a"), "a tool found nothing");
        let gone =
            json!({ "id": "a", "error": { "code": -32001, "message": "Session not found" } }).to_string();
        assert!(lost_session(404, gone.as_bytes(), "a"));
        assert!(wants_modern(400, &error(json!(null), -32020, json!(null))));
        assert!(!wants_modern(400, &error(json!(null), -32000, json!(null))));
        assert!(!wants_modern(400, &error(json!(null), -32022, json!({ "supported": [LEGACY] }))));
    }
}
