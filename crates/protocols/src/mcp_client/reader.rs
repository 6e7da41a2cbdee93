//! Responses as they arrive: one JSON message, or events, with other messages before the response.

use serde_json::{Map, Value};

use bobbin_definitions::limits;
use bobbin_models::sse::{Decoder, Event, TooLarge};

/// Messages from the server during a response.
#[derive(Debug, PartialEq)]
pub enum ServerMessage {
    /// The response.
    Answer(Result<Map<String, Value>, RpcError>),
    /// A request of the server, with its id and method; it waits for a response.
    Asks(Value, String),
}

/// A JSON-RPC error.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RpcError {
    /// The code of the error.
    pub code: i64,
    /// Its text.
    pub message: String,
    /// Its details; null without any.
    pub data: Value,
    /// Whether the server had made a request of its own, which was refused. It may pass on that error as its
    /// own.
    pub asked: bool,
}

/// The position at which a stream of a session can be resumed.
#[derive(Debug, PartialEq, Eq)]
pub struct ResumePoint {
    /// Id of the newest event.
    pub id: String,
    /// Milliseconds to wait before resuming.
    pub after_ms: u64,
}

/// Maximum values in the JSON of a response. Parsing is synchronous, and blocks other threads.
const VALUES: usize = 100_000;
/// The same for a refusal, which is parsed several times.
const ERROR_VALUES: usize = 10_000;

/// Default milliseconds before a stream is resumed, and the bounds for the server's value.
const RESUME_MS: u64 = 1_000;
const RESUME_LEAST_MS: u64 = 100;
const RESUME_MOST_MS: u64 = 30_000;

/// The reason why a response is invalid. Displayed as the end of a sentence.
#[derive(Debug, PartialEq, Eq)]
pub enum InvalidResponse {
    /// It is too large.
    TooLarge,
    /// It has too many values.
    TooMany,
    /// It violates the protocol.
    Malformed(String),
    /// It ended early.
    Ended,
}

impl From<TooLarge> for InvalidResponse {
    fn from(_: TooLarge) -> InvalidResponse {
        InvalidResponse::TooLarge
    }
}

impl std::fmt::Display for InvalidResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            InvalidResponse::TooMany => {
                write!(f, "has over {} values in its JSON, the limit", VALUES)
            }
            InvalidResponse::TooLarge => write!(f, "is over {} bytes, the limit", limits::MCP_ANSWER_BYTES),
            InvalidResponse::Malformed(why) => write!(f, "is not of the protocol: {why}"),
            InvalidResponse::Ended => f.write_str("broke off"),
        }
    }
}

/// Reads the response to one request.
pub struct Reader {
    id: String,
    /// Bytes that may still arrive.
    left: usize,
    /// Values that may still arrive.
    values: usize,
    form: Form,
}

enum Form {
    /// One message.
    Whole(Vec<u8>),
    Events(Decoder),
}

impl Reader {
    /// A reader for the response to the request `id`.
    pub fn new(content_type: Option<&str>, id: &str) -> Reader {
        let kind = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        let form = match kind.eq_ignore_ascii_case("text/event-stream") {
            true => Form::Events(Decoder::default()),
            false => Form::Whole(Vec::new()),
        };
        let (left, values) = (limits::MCP_ANSWER_BYTES, VALUES);
        Reader { id: id.to_owned(), left, values, form }
    }

    /// Reads the next bytes; returns the completed messages.
    pub fn push(&mut self, chunk: &[u8]) -> Result<Vec<ServerMessage>, InvalidResponse> {
        self.left = self.left.checked_sub(chunk.len()).ok_or(InvalidResponse::TooLarge)?;
        let mut said = Vec::new();
        match &mut self.form {
            Form::Whole(body) => body.extend_from_slice(chunk),
            Form::Events(decoder) => {
                decoder.push(chunk, &mut |event| of_event(&self.id, event, &mut self.values, &mut said))?
            }
        }
        Ok(said)
    }

    /// The position for resuming a stream that ended before the response.
    pub fn place(&self) -> Option<ResumePoint> {
        let Form::Events(decoder) = &self.form else { return None };
        let after_ms = decoder.retry_ms().unwrap_or(RESUME_MS).clamp(RESUME_LEAST_MS, RESUME_MOST_MS);
        Some(ResumePoint { id: decoder.last_id()?.to_owned(), after_ms })
    }

    /// Starts a resumed stream: discards incomplete data.
    pub fn resumed(&mut self) {
        self.form = Form::Events(Decoder::default());
    }

    /// Ends the response.
    pub fn finish(&mut self) -> Result<Vec<ServerMessage>, InvalidResponse> {
        let mut said = Vec::new();
        match &mut self.form {
            Form::Whole(body) => {
                count(body, &mut self.values)?;
                let message = bobbin_definitions::json::from_slice(body).map_err(|_| {
                    InvalidResponse::Malformed("it is neither JSON nor a stream of events".to_owned())
                })?;
                take(&self.id, message, &mut said);
            }
            Form::Events(decoder) => {
                decoder.finish(&mut |event| of_event(&self.id, event, &mut self.values, &mut said))?;
            }
        }
        Ok(said)
    }
}

fn of_event(
    id: &str,
    event: Event<'_>,
    values: &mut usize,
    said: &mut Vec<ServerMessage>,
) -> Result<(), InvalidResponse> {
    // Events with other names, or without data, only keep the connection open.
    if matches!(event.name, "" | "message") && !event.data.is_empty() {
        count(event.data, values)?;
        let message = bobbin_definitions::json::from_slice(event.data)
            .map_err(|error| InvalidResponse::Malformed(format!("an event is no JSON: {error}")))?;
        take(id, message, said);
    }
    Ok(())
}

/// Counts the values of a JSON text before it is parsed: commas and brackets outside strings.
fn count(json: &[u8], left: &mut usize) -> Result<(), InvalidResponse> {
    let (mut values, mut is_string, mut is_escaped) = (1, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_string,
            b'"' => is_string = !is_string,
            b',' | b'[' | b'{' if !is_string => values += 1,
            _ => {}
        }
    }
    *left = left.checked_sub(values).ok_or(InvalidResponse::TooMany)?;
    Ok(())
}

/// Keeps messages that concern the request. Notifications and other responses are skipped.
fn take(id: &str, message: Value, said: &mut Vec<ServerMessage>) {
    let mut fields = match message {
        // Batches were allowed in older versions.
        Value::Array(messages) => return messages.into_iter().for_each(|message| take(id, message, said)),
        Value::Object(fields) => fields,
        _ => return,
    };
    let of = fields.remove("id").filter(|of| !of.is_null());
    if let (Some(Value::String(method)), Some(of)) = (fields.remove("method"), &of) {
        return said.push(ServerMessage::Asks(of.clone(), method));
    }
    let error = fields.remove("error").and_then(rpc_error);
    // An error without an id can only be about this request.
    let ours = match &of {
        Some(of) => of.as_str() == Some(id),
        None => error.is_some(),
    };
    match (ours, error, fields.remove("result")) {
        (true, Some(error), _) => said.push(ServerMessage::Answer(Err(error))),
        (true, None, Some(Value::Object(result))) => said.push(ServerMessage::Answer(Ok(result))),
        _ => {}
    }
}

pub(super) fn rpc_error(error: Value) -> Option<RpcError> {
    let Value::Object(mut error) = error else { return None };
    let message =
        error.remove("message").and_then(|text| text.as_str().map(str::to_owned)).unwrap_or_default();
    let data = error.remove("data").unwrap_or_default();
    Some(RpcError { code: error.get("code")?.as_i64()?, message, data, asked: false })
}

/// The error in the body of a refusal, and the id of its request.
pub fn error_in(body: &[u8]) -> Option<(RpcError, Option<String>)> {
    count(body, &mut { ERROR_VALUES }).ok()?;
    let mut body: Map<String, Value> = bobbin_definitions::json::from_slice(body).ok()?;
    let error = body.remove("error").and_then(rpc_error)?;
    Some((error, body.get("id").and_then(Value::as_str).map(str::to_owned)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bobbin_definitions::json;

    const EVENTS: Option<&str> = Some("Text/Event-Stream; charset=utf-8");

    fn read(content_type: Option<&str>, chunks: &[&str]) -> Result<Vec<ServerMessage>, InvalidResponse> {
        let mut reader = Reader::new(content_type, "q");
        let mut said = Vec::new();
        for chunk in chunks {
            said.extend(reader.push(chunk.as_bytes())?);
        }
        said.extend(reader.finish()?);
        Ok(said)
    }

    fn answer(id: &str) -> String {
        json!({ "jsonrpc": "2.0", "id": id, "result": { "a": 1 } }).to_string()
    }

    fn result() -> ServerMessage {
        ServerMessage::Answer(Ok(json!({ "a": 1 }).as_object().unwrap().clone()))
    }

    #[test]
    fn an_answer_is_read_from_json_and_from_events() {
        let ours = answer("q");
        let (begin, end) = ours.split_at(9);
        assert_eq!(read(Some("application/json"), &[begin, end]).unwrap(), [result()]);
        assert_eq!(read(None, &[&format!("[{}, {ours}]", answer("other"))]).unwrap(), [result()]);
        let event = format!(": open\n\nevent: message\ndata: {ours}\n\n");
        let (begin, end) = event.split_at(31);
        assert_eq!(read(EVENTS, &[begin, end]).unwrap(), [result()]);
        let error = r#"{"jsonrpc":"2.0","id":"q","error":{"code":-32602,"message":"no","data":{"x":1}}}"#;
        let data = json!({ "x": 1 });
        let expected = RpcError { code: -32602, message: "no".into(), data, asked: false };
        assert_eq!(read(None, &[error]).unwrap(), [ServerMessage::Answer(Err(expected))]);
    }

    #[test]
    fn a_stream_that_says_where_it_is_can_be_taken_up_again() {
        let place = |kind, text: &str| {
            let mut reader = Reader::new(kind, "q");
            reader.push(text.as_bytes()).unwrap();
            (reader.finish().is_ok(), reader.place())
        };
        let at = |id: &str, after_ms| Some(ResumePoint { id: id.into(), after_ms });
        assert_eq!(place(EVENTS, ": open\n\n"), (true, None));
        assert_eq!(place(EVENTS, "id: 7\ndata: \n\n"), (true, at("7", 1_000)));
        assert_eq!(place(EVENTS, "id: 7\nretry: 0\ndata: \n\n"), (true, at("7", 100)));
        assert_eq!(place(EVENTS, "id: 7\nretry: 99999999\ndata: \n\n"), (true, at("7", 30_000)));
        assert_eq!(place(None, "id: 7"), (false, None));
        let mut reader = Reader::new(EVENTS, "q");
        reader.push(b"id: 1\n\ndata: {\"half").unwrap();
        reader.resumed();
        let said = reader.push(format!("data: {}\n\n", answer("q")).as_bytes()).unwrap();
        assert_eq!(said, [result()]);
    }

    #[test]
    fn what_else_comes_is_passed_over_but_what_the_server_asks() {
        let events = [
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":3,"method":"sampling/createMessage","params":{}}"#.to_owned(),
            answer("another"),
            r#"{"jsonrpc":"2.0","id":"q","result":"no object"}"#.to_owned(),
            "17".to_owned(),
            answer("q"),
        ];
        let mut text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        text.insert_str(0, "event: ping\ndata: x\n\nid: 1\nretry: 5\ndata:\n\n");
        let said = read(EVENTS, &[&text]).unwrap();
        assert_eq!(said, [ServerMessage::Asks(json!(3), "sampling/createMessage".into()), result()]);
    }

    #[test]
    fn many_values_are_counted_before_they_are_read() {
        let parts = |n: usize| {
            let parts = vec![json!({ "type": "text", "text": "[{,\\\"{," }); n];
            json!({ "jsonrpc": "2.0", "id": "q", "result": { "content": parts } }).to_string()
        };
        // Three values each: the object and its two fields.
        let most = VALUES / 3 - 10;
        assert_eq!(read(None, &[&parts(most)]).unwrap().len(), 1);
        assert_eq!(read(None, &[&parts(most + 20)]), Err(InvalidResponse::TooMany));
        let notes = format!("data: {}\n\n", parts(most / 2).replace("\"q\"", "\"other\""));
        assert_eq!(read(EVENTS, &[&notes, &notes]).unwrap(), []);
        assert_eq!(read(EVENTS, &[&notes, &notes, &notes]), Err(InvalidResponse::TooMany));
        let error = |n: usize| {
            json!({ "id": "q", "error": { "code": 1, "message": "", "data": vec![0; n] } }).to_string()
        };
        assert!(error_in(error(100).as_bytes()).is_some());
        assert_eq!(error_in(error(ERROR_VALUES).as_bytes()), None);
    }

    #[test]
    fn what_is_no_answer_says_so() {
        assert!(matches!(read(Some("text/html"), &["<html>"]), Err(InvalidResponse::Malformed(_))));
        assert!(matches!(read(EVENTS, &["data: {\n\n"]), Err(InvalidResponse::Malformed(_))));
        assert_eq!(read(EVENTS, &["data: {}\n\n"]).unwrap(), []);
        let much = "x".repeat(1 << 20);
        let chunks: Vec<&str> =
            std::iter::repeat_n(much.as_str(), (limits::MCP_ANSWER_BYTES >> 20) + 1).collect();
        assert_eq!(read(None, &chunks), Err(InvalidResponse::TooLarge));
        assert_eq!(
            read(EVENTS, &[": ", &much, &much, &much, &much]),
            Err(InvalidResponse::TooLarge),
            "one line"
        );
        let notification = format!("data: {{\"method\":\"n\",\"params\":\"{much}\"}}\n\n");
        let endless: Vec<&str> = std::iter::repeat_n(notification.as_str(), chunks.len()).collect();
        assert_eq!(read(EVENTS, &endless), Err(InvalidResponse::TooLarge), "many events");
    }
}
