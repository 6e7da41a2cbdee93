//! Requests: their headers and their bodies.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::mcp_client::{Era, LEGACY, MODERN};
use bobbin_definitions::definitions::McpTool;
use bobbin_definitions::json;

/// The field of `_meta` with the key of a call. It is the same for each attempt, so that a server can
/// recognize a repeated call.
pub const CALL: &str = "dev.bobbin/call";

/// The largest number in a header: JavaScript's largest safe integer.
const SAFE_INTEGER: u64 = (1 << 53) - 1;

/// A request to make.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    pub(super) method: &'static str,
    /// The value of `Mcp-Name`.
    pub name: Option<String>,
    pub(super) params: Map<String, Value>,
    /// `Mcp-Param-*`, in lower case, with their values.
    pub mirrored: Vec<(String, String)>,
}

/// The client's part of a request.
#[derive(Clone, Debug, Default)]
pub struct Asker {
    /// Capabilities, which the modern protocol sends with each request.
    pub capabilities: Value,
    /// Further fields of `_meta`: the call's key, the trace.
    pub meta: Vec<(String, String)>,
}

impl Ask {
    /// A request with only parameters.
    pub fn of(method: &'static str, params: Map<String, Value>) -> Ask {
        Ask { method, name: None, params, mirrored: Vec::new() }
    }

    /// `tools/call`. `args` include the application's fixed arguments.
    pub fn call(tool: &McpTool, args: Value) -> Ask {
        let mirrored = mirrored(&tool.headers, &args);
        let mut params = Map::new();
        params.insert("name".into(), tool.tool.clone().into());
        params.insert("arguments".into(), args);
        Ask { name: Some(tool.tool.clone()), mirrored, ..Ask::of("tools/call", params) }
    }

    /// Whether it may change something at the server. Such a request is sent once, unless the server
    /// certainly did not read it.
    pub fn acts(&self) -> bool {
        self.method == "tools/call"
    }

    /// `server/discover`: the server's protocol versions.
    pub fn discover() -> Ask {
        Ask::of("server/discover", Map::new())
    }

    /// The call again, with the users' answers.
    #[must_use]
    pub fn with_input(mut self, responses: Option<Value>, state: Option<String>) -> Ask {
        self.params.extend(responses.map(|responses| ("inputResponses".to_owned(), responses)));
        self.params.extend(state.map(|state| ("requestState".to_owned(), state.into())));
        self
    }

    /// `initialize`, which starts a session.
    pub fn initialize() -> Ask {
        let mut params = Map::new();
        params.insert("protocolVersion".into(), LEGACY.into());
        params.insert("capabilities".into(), json!({}));
        params.insert("clientInfo".into(), client());
        Ask::of("initialize", params)
    }

    /// Headers, with names in lower case, and body. `era` is `None` for `initialize`. `id` must be unique.
    pub fn written(&self, id: &str, era: Option<&Era>, asker: &Asker) -> (Vec<(String, String)>, String) {
        let mut headers = headers(era);
        let mut params = self.params.clone();
        let mut meta = Map::new();
        if era == Some(&Era::Modern) {
            headers.push(("mcp-method".into(), self.method.into()));
            headers.extend(self.name.iter().map(|name| ("mcp-name".into(), encoded(name))));
            headers.extend(self.mirrored.iter().cloned());
            meta.insert("io.modelcontextprotocol/protocolVersion".into(), MODERN.into());
            meta.insert("io.modelcontextprotocol/clientInfo".into(), client());
            meta.insert("io.modelcontextprotocol/clientCapabilities".into(), asker.capabilities.clone());
        }
        meta.extend(asker.meta.iter().map(|(name, value)| (name.clone(), value.clone().into())));
        if era.is_some() && !meta.is_empty() {
            params.insert("_meta".into(), meta.into());
        }
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": self.method, "params": params });
        (headers, body.to_string())
    }
}

/// The notification after a response to `initialize`; it has no response.
pub fn initialized() -> String {
    json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string()
}

/// The response to a request of the server. Only `ping` is supported.
pub fn answer_to(id: &Value, method: &str) -> String {
    if method == "ping" {
        return json!({ "jsonrpc": "2.0", "id": id, "result": {} }).to_string();
    }
    let error = json!({ "code": -32601, "message": "This client does not offer that." });
    json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string()
}

/// The headers of every message.
pub fn headers(era: Option<&Era>) -> Vec<(String, String)> {
    let mut headers = vec![
        ("content-type".to_owned(), "application/json".to_owned()),
        ("accept".to_owned(), "application/json, text/event-stream".to_owned()),
    ];
    match era {
        None => {}
        Some(Era::Modern) => headers.push(("mcp-protocol-version".into(), MODERN.into())),
        Some(Era::Legacy(session)) => {
            headers.push(("mcp-protocol-version".into(), session.version.clone()));
            headers.extend(session.id.iter().map(|id| ("mcp-session-id".into(), id.clone())));
        }
    }
    headers
}

fn client() -> Value {
    json!({ "name": "bobbin", "version": env!("CARGO_PKG_VERSION") })
}

/// The arguments that are also sent as headers.
fn mirrored(marks: &BTreeMap<String, String>, args: &Value) -> Vec<(String, String)> {
    let value = |pointer: &str| match args.pointer(pointer)? {
        Value::String(text) => Some(text.clone()),
        Value::Bool(is) => Some(is.to_string()),
        Value::Number(number) => {
            let whole =
                number.as_i64().or_else(|| number.as_f64().filter(|n| n.fract() == 0.0).map(|n| n as i64))?;
            (whole.unsigned_abs() <= SAFE_INTEGER).then(|| whole.to_string())
        }
        _ => None,
    };
    let header = |name: &str| format!("mcp-param-{}", name.to_ascii_lowercase());
    marks.iter().filter_map(|(name, pointer)| Some((header(name), encoded(&value(pointer)?)))).collect()
}

/// Encodes a value for a header: visible ASCII unchanged, anything else in base64 between marks.
fn encoded(value: &str) -> String {
    let plain = !value.is_empty()
        && value.trim() == value
        && value.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte))
        && !(value.starts_with("=?base64?") && value.ends_with("?="));
    if plain { value.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(value)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp_client::Session;

    fn tool() -> McpTool {
        let headers = [("Region", "/region"), ("Deep", "/a/b"), ("N", "/n"), ("On", "/on"), ("No", "/no")];
        McpTool {
            server: "s".into(),
            tool: "grüß".into(),
            headers: headers.into_iter().map(|(name, at)| (name.to_owned(), at.to_owned())).collect(),
            ..McpTool::default()
        }
    }

    fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
        headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    #[test]
    fn a_modern_request_says_all_of_itself() {
        let args =
            json!({ "region": "us-west1", "a": { "b": "Hello, 世界" }, "n": 42.0, "on": true, "no": null });
        let asker =
            Asker { capabilities: json!({ "elicitation": {} }), meta: vec![(CALL.into(), "t/r1.0".into())] };
        let (headers, body) = Ask::call(&tool(), args.clone()).written("q1", Some(&Era::Modern), &asker);
        for (name, value) in [
            ("accept", "application/json, text/event-stream"),
            ("content-type", "application/json"),
            ("mcp-protocol-version", MODERN),
            ("mcp-method", "tools/call"),
            ("mcp-name", "=?base64?Z3LDvMOf?="),
            ("mcp-param-region", "us-west1"),
            ("mcp-param-deep", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            ("mcp-param-n", "42"),
            ("mcp-param-on", "true"),
        ] {
            assert_eq!(header(&headers, name), Some(value), "{name}");
        }
        assert_eq!(header(&headers, "mcp-param-no"), None);
        assert_eq!(header(&headers, "mcp-session-id"), None);
        let body: Value = bobbin_definitions::json::from_str(&body).unwrap();
        assert_eq!(
            (&body["jsonrpc"], &body["id"], &body["method"]),
            (&json!("2.0"), &json!("q1"), &json!("tools/call"))
        );
        assert_eq!((&body["params"]["name"], &body["params"]["arguments"]), (&json!("grüß"), &args));
        let meta = &body["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], MODERN);
        assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({ "elicitation": {} }));
        assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "bobbin");
        assert_eq!(meta[CALL], "t/r1.0");
    }

    #[test]
    fn a_request_in_a_session_names_it_and_nothing_of_the_other_era() {
        let era = Era::Legacy(Session { id: Some("s1".into()), version: "2025-06-18".into() });
        let asker = Asker { capabilities: json!({}), meta: vec![(CALL.into(), "t/r1.0".into())] };
        let (headers, body) = Ask::call(&tool(), json!({ "region": "x" })).written("q1", Some(&era), &asker);
        assert_eq!(header(&headers, "mcp-session-id"), Some("s1"));
        assert_eq!(header(&headers, "mcp-protocol-version"), Some("2025-06-18"));
        assert!(
            headers.iter().all(|(name, _)| !name.starts_with("mcp-param")
                && name != "mcp-name"
                && name != "mcp-method")
        );
        let body: Value = bobbin_definitions::json::from_str(&body).unwrap();
        assert_eq!(body["params"]["_meta"], json!({ CALL: "t/r1.0" }));

        let (headers, body) = Ask::initialize().written("q0", None, &asker);
        assert!(headers.iter().all(|(name, _)| !name.starts_with("mcp-")));
        let body: Value = bobbin_definitions::json::from_str(&body).unwrap();
        assert_eq!(body["params"]["protocolVersion"], LEGACY);
        assert_eq!((&body["params"]["capabilities"], &body["params"]["_meta"]), (&json!({}), &json!(null)));
    }

    #[test]
    fn values_are_encoded_where_a_header_cannot_carry_them() {
        for (value, expected) in [
            ("us-west1", "us-west1"),
            ("a b", "a b"),
            ("", "=?base64??="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(encoded(value), expected, "{value:?}");
        }
        let marks: BTreeMap<String, String> = [("N".to_owned(), "/n".to_owned())].into_iter().collect();
        for (n, expected) in
            [(json!(-7), Some("-7")), (json!(1.5), None), (json!(9_007_199_254_740_992_i64), None)]
        {
            let found = mirrored(&marks, &json!({ "n": n }));
            assert_eq!(found.first().map(|(_, value)| value.as_str()), expected);
        }
    }

    #[test]
    fn servers_that_ask_are_told_that_nobody_serves_them() {
        let answer: Value =
            bobbin_definitions::json::from_str(&answer_to(&json!(7), "sampling/createMessage")).unwrap();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(-32601)));
        let answer: Value = bobbin_definitions::json::from_str(&answer_to(&json!("p"), "ping")).unwrap();
        assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": "p", "result": {} }));
    }
}
