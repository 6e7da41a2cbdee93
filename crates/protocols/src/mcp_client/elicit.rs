//! Input that a server needs from users before it continues (`input_required`): a form, or a visit to one of
//! its pages.

use serde_json::{Map, Value};

use bobbin_definitions::json;
use bobbin_definitions::text::shorten;

/// Maximum number of inputs in one request.
const MOST: usize = 10;
/// Maximum bytes of a message.
const MESSAGE_BYTES: usize = 4 << 10;
/// Maximum bytes of a server's state.
const STATE_BYTES: usize = 64 << 10;
/// Maximum bytes of a name, and of a URL.
const NAME_BYTES: usize = 256;
const URL_BYTES: usize = 4 << 10;

/// One requested input: a form, or a page to visit.
#[derive(Debug, PartialEq)]
pub struct InputRequest {
    /// The server's name for it.
    pub name: String,
    /// The text for users.
    pub message: String,
    /// JSON Schema of the form.
    pub schema: Option<Value>,
    /// The page's URL.
    pub url: Option<String>,
}

/// The inputs that a server requests.
#[derive(Debug, Default, PartialEq)]
pub struct InputRequired {
    /// Empty when the server only wants the request again.
    pub asked: Vec<InputRequest>,
    /// State to send back with the answers.
    pub state: Option<String>,
}

impl InputRequired {
    /// Parses a result.
    ///
    /// # Errors
    /// A text that says what is unsupported or invalid.
    pub fn of(result: &mut Map<String, Value>) -> Result<InputRequired, String> {
        let state = match result.remove("requestState") {
            Some(Value::String(state)) if state.len() <= STATE_BYTES => Some(state),
            Some(Value::String(_)) => return Err(format!("`requestState` is over {STATE_BYTES} bytes")),
            _ => None,
        };
        let asked = InputRequired::asked(result.remove("inputRequests"))?;
        if asked.is_empty() && state.is_none() {
            return Err("it asks for input, and does not say which".to_owned());
        }
        Ok(InputRequired { asked, state })
    }

    /// Parses the requests, which have names of the server.
    pub fn asked(requests: Option<Value>) -> Result<Vec<InputRequest>, String> {
        let Some(Value::Object(requests)) = requests else { return Ok(Vec::new()) };
        if requests.len() > MOST {
            return Err(format!("it asks for {} things at once, and {MOST} are too many", requests.len()));
        }
        requests.into_iter().map(|(name, request)| one(name, request)).collect()
    }
}

/// Parses the inputs that a tool of the application requests, by its own names: `{ message, schema }`, or `{
/// message, url }`.
pub fn asked_by_tool(asked: Map<String, Value>) -> Result<Vec<InputRequest>, String> {
    let as_request = |(name, mut one): (String, Value)| {
        let mut of = |field: &str| one.get_mut(field).map(Value::take);
        let (message, schema, url) = (of("message"), of("schema"), of("url"));
        let mode = if url.is_some() { "url" } else { "form" };
        let params = json!({ "mode": mode, "message": message, "requestedSchema": schema, "url": url });
        (name, json!({ "method": "elicitation/create", "params": params }))
    };
    InputRequired::asked(Some(Value::Object(asked.into_iter().map(as_request).collect())))
        .map_err(|text| text.replace("`requestedSchema`", "`schema`"))
}

fn one(name: String, mut request: Value) -> Result<InputRequest, String> {
    let method = request.get("method").and_then(Value::as_str).unwrap_or_default();
    if method != "elicitation/create" {
        return Err(format!("it asks for `{method}`, which is not offered"));
    }
    if name.len() > NAME_BYTES {
        return Err("the name of what it asks for is too long".to_owned());
    }
    let mut params = request.get_mut("params").map(Value::take).unwrap_or_default();
    let mut text = |field: &str| match params.get_mut(field).map(Value::take) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    let (mode, mut message, url) = (text("mode"), text("message"), text("url"));
    shorten(&mut message, MESSAGE_BYTES);
    match mode.as_str() {
        "" | "form" => {
            let schema = params.get_mut("requestedSchema").map(Value::take).filter(Value::is_object);
            let schema = schema.ok_or("a form has no `requestedSchema`")?;
            Ok(InputRequest { name, message, schema: Some(schema), url: None })
        }
        "url" => {
            let web = url.starts_with("https://") || url.starts_with("http://");
            let fine = url.len() <= URL_BYTES && url.bytes().all(|byte| byte.is_ascii_graphic());
            if !web || !fine {
                return Err("what it asks people to visit is no address of a page".to_owned());
            }
            Ok(InputRequest { name, message, schema: None, url: Some(url) })
        }
        other => Err(format!("it asks in the mode `{other}`, which is not offered")),
    }
}

/// The response to the server for a decision about one input: `answer`, with the content of a form, or
/// anything else to decline.
pub fn response(decision: &str, content: Option<&Value>) -> Value {
    match (decision, content) {
        ("answer", None) => json!({ "action": "accept" }),
        ("answer", Some(content)) => json!({ "action": "accept", "content": content }),
        _ => json!({ "action": "decline" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(result: Value) -> Result<InputRequired, String> {
        InputRequired::of(&mut result.as_object().unwrap().clone())
    }

    fn form(message: &str) -> Value {
        let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
        json!({ "method": "elicitation/create", "params": { "message": message, "requestedSchema": schema } })
    }

    #[test]
    fn forms_and_addresses_are_asked_and_nothing_else() {
        let url = |url: &str| json!({ "method": "elicitation/create", "params": { "mode": "url", "message": "Go", "url": url } });
        let asked = of(
            json!({ "inputRequests": { "a": form("Who?"), "b": url("https://x.example/y") }, "requestState": "s" }),
        );
        let InputRequired { asked, state } = asked.unwrap();
        assert_eq!(
            (asked[0].message.as_str(), asked[1].url.as_deref()),
            ("Who?", Some("https://x.example/y"))
        );
        assert_eq!(state.as_deref(), Some("s"));
        assert_eq!(of(json!({ "requestState": "s" })).unwrap().asked, []);
        for (result, says) in [
            (json!({}), "does not say"),
            (json!({ "inputRequests": { "a": { "method": "sampling/createMessage" } } }), "sampling"),
            (json!({ "inputRequests": { "a": url("javascript:alert(1)") } }), "no address"),
            (json!({ "inputRequests": { "a": url("https://x.example/\u{1b}") } }), "no address"),
            (
                json!({ "inputRequests": { "a": { "method": "elicitation/create", "params": {} } } }),
                "requestedSchema",
            ),
            (json!({ "requestState": "x".repeat(STATE_BYTES + 1) }), "over"),
        ] {
            assert!(of(result).unwrap_err().contains(says), "{says}");
        }
    }

    #[test]
    fn what_was_decided_is_told_in_the_words_of_the_protocol() {
        let one = json!({ "name": "Ann" });
        assert_eq!(response("answer", Some(&one)), json!({ "action": "accept", "content": one }));
        assert_eq!(response("answer", None), json!({ "action": "accept" }));
        assert_eq!(response("deny", None), json!({ "action": "decline" }));
    }
}
