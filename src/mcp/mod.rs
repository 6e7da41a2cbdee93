//! The Model Context Protocol as a client speaks it (docs/mcp.md): requests and answers as data, of both eras. Nothing here reaches
//! out; `work/mcp` does.
//!
//! * Here: the eras, and how it is told which one a server speaks. `ask`: requests. `reader`: answers as they come, as JSON or as
//!   events. `outcome`: what an answer to a call means; `elicit`: what is asked of people before there is one;
//!   `list`: pages of tools; `task`: calls that take their time. `oauth`: signing in to servers.

pub(crate) mod ask;
pub(crate) mod elicit;
pub(crate) mod list;
pub(crate) mod oauth;
pub(crate) mod outcome;
pub(crate) mod reader;
pub(crate) mod task;

use crate::mcp::reader::{RpcError, error_in};

/// The protocol without sessions: each request says all of itself.
pub(crate) const MODERN: &str = "2026-07-28";
/// The last one with sessions.
pub(crate) const LEGACY: &str = "2025-11-25";

/// `initialize` and what follows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Session {
    /// As the server named it; it may do without.
    pub(crate) id: Option<String>,
    /// The protocol that both agreed on.
    pub(crate) version: String,
}

/// How a server is spoken to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// Without sessions.
    Modern,
    /// In this session.
    Legacy(Session),
}

/// The codes with which only servers of the modern era answer: headers that do not fit, a capability that is missing, a version
/// that is not spoken.
const MODERN_CODES: std::ops::RangeInclusive<i64> = -32022..=-32020;
/// A version that is not spoken.
const UNSUPPORTED: i64 = -32022;

/// What a refusal of a modern request says of the server. Such a request did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It speaks the modern protocol, and this is its answer.
    Modern,
    /// It wants `initialize`.
    Legacy,
    /// It speaks the version that it refuses, by its own words: it may have begun to meanwhile.
    Again,
}

/// The same of the status and the body of an answer to the request `id`; `None` where it is about something else.
pub(crate) fn refusal(status: u16, body: &[u8], id: &str) -> Option<Refusal> {
    // Who has no key learns nothing of the server, and one that has failed or is too busy may answer the next time.
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
    // A method or parameters that are wrong are those of a request that was read. Servers of sessions refuse without reading.
    let read = of.as_deref() == Some(id) && matches!(error.code, -32603..=-32601);
    Some(if read || MODERN_CODES.contains(&error.code) { Refusal::Modern } else { Refusal::Legacy })
}

/// Whether an error says that the server speaks no modern version, but one with sessions.
pub(crate) fn wants_legacy(error: &RpcError) -> bool {
    error.code == UNSUPPORTED && speaks_legacy(error)
}

/// Whether a refused request of the era of sessions was refused because the server knows none.
pub(crate) fn wants_modern(status: u16, body: &[u8]) -> bool {
    (400..500).contains(&status)
        && error_in(body)
            .is_some_and(|(error, _)| MODERN_CODES.contains(&error.code) && !speaks_legacy(&error))
}

/// Whether a request was refused because its session is not there any more: it did not run.
pub(crate) fn lost_session(status: u16, body: &[u8], id: &str) -> bool {
    let answered = || error_in(body).is_some_and(|(_, of)| of.as_deref() == Some(id));
    // 404 is what the protocol says; many servers say 400 to a session that they do not know, with an error about no request.
    status == 404 || (status == 400 && !answered())
}

/// Whether an error names a version among those it supports that has sessions.
fn speaks_legacy(error: &RpcError) -> bool {
    supported(error).any(|version| version < MODERN)
}

fn supported(error: &RpcError) -> impl Iterator<Item = &str> {
    let supported = error.data.get("supported").and_then(serde_json::Value::as_array);
    supported.into_iter().flatten().filter_map(serde_json::Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;
    use serde_json::Value;

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
            assert_eq!(refusal(status, &body, "a"), expected, "{status} {}", String::from_utf8_lossy(&body));
        }
    }

    #[test]
    fn a_session_is_lost_where_the_server_did_not_answer_the_request() {
        assert!(lost_session(404, b"", "a"));
        assert!(lost_session(400, b"", "a"));
        assert!(lost_session(400, &error(json!(null), -32000, json!(null)), "a"));
        assert!(!lost_session(400, &error(json!("a"), -32602, json!(null)), "a"));
        assert!(!lost_session(500, b"", "a"));
        assert!(wants_modern(400, &error(json!(null), -32020, json!(null))));
        assert!(!wants_modern(400, &error(json!(null), -32000, json!(null))));
        assert!(!wants_modern(400, &error(json!(null), -32022, json!({ "supported": [LEGACY] }))));
    }
}
