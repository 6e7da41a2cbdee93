//! What a scripted server answers: a status, headers, and a body that arrives in pieces, slowly, or not at all.

use bytes::Bytes;
use serde_json::{Value, json};

/// A piece of a body.
#[derive(Clone, Debug)]
pub enum Piece {
    /// Bytes.
    Data(Bytes),
    /// Silence of so many microseconds.
    Wait(i64),
    /// The connection breaks.
    Cut,
    /// Nothing more ever comes, and the connection stays open.
    Stall,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// HTTP status; `None`: the connection fails before any.
    pub status: Option<u16>,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// Microseconds until the headers; `None`: they never come.
    pub delay_us: Option<i64>,
    /// The body.
    pub pieces: Vec<Piece>,
}

impl Answer {
    /// A status with a body in one piece.
    pub fn status(status: u16, body: impl Into<String>) -> Answer {
        Answer {
            status: Some(status),
            headers: vec![("content-type".into(), "application/json".into())],
            delay_us: Some(0),
            pieces: vec![Piece::Data(Bytes::from(body.into()))],
        }
    }

    /// 200 with JSON.
    pub fn json(body: &Value) -> Answer {
        Answer::status(200, body.to_string())
    }

    /// The connection is refused.
    pub fn refused() -> Answer {
        Answer { status: None, headers: Vec::new(), delay_us: Some(0), pieces: Vec::new() }
    }

    /// A server that accepts the request and says nothing, ever.
    pub fn silence() -> Answer {
        Answer { delay_us: None, ..Answer::refused() }
    }

    /// What the server counts as used for it: of an answer that it gave to its end.
    pub fn used(&self) -> Option<(u64, u64)> {
        let data = self.pieces.iter().filter_map(|piece| match piece {
            Piece::Data(bytes) => Some(bytes),
            _ => None,
        });
        let reported = data.filter_map(|bytes| {
            let text = std::str::from_utf8(bytes).ok()?;
            let text = text.strip_prefix("data: ").unwrap_or(text);
            let usage = serde_json::from_str::<Value>(text.trim()).ok()?["usage"].clone();
            Some((usage["prompt_tokens"].as_u64()?, usage["completion_tokens"].as_u64()?))
        });
        reported.last().filter(|_| self.status == Some(200) && self.delay_us.is_some())
    }

    /// The same with a header.
    pub fn header(mut self, name: &str, value: &str) -> Answer {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The same after a time.
    pub fn after(mut self, us: i64) -> Answer {
        self.delay_us = Some(us);
        self
    }

    /// The same with silence before every piece.
    pub fn pace(mut self, us: i64) -> Answer {
        self.pieces = self.pieces.into_iter().flat_map(|piece| [Piece::Wait(us), piece]).collect();
        self
    }

    /// The first `n` pieces, then the connection breaks.
    pub fn cut_after(mut self, n: usize) -> Answer {
        self.pieces.truncate(n);
        self.pieces.push(Piece::Cut);
        self
    }

    /// The first `n` pieces, then nothing.
    pub fn stall_after(mut self, n: usize) -> Answer {
        self.pieces.truncate(n);
        self.pieces.push(Piece::Stall);
        self
    }

    /// The first `n` pieces, then a clean end.
    pub fn end_after(mut self, n: usize) -> Answer {
        self.pieces.truncate(n);
        self
    }
}

/// A reply of a model, in the wire format of chat completions.
#[derive(Clone, Debug, Default)]
pub struct Say {
    text: String,
    calls: Vec<(Option<String>, String, String)>,
    chunks: usize,
    /// Tokens of the request and of the answer, as it reports them.
    usage: Option<(u64, u64)>,
}

impl Say {
    /// A reply with text, in one chunk.
    pub fn text(text: impl Into<String>) -> Say {
        Say { text: text.into(), chunks: 1, ..Say::default() }
    }

    /// A reply that calls a tool.
    pub fn call(name: &str, arguments: &Value) -> Say {
        Say::default().and_call(name, &arguments.to_string())
    }

    /// One more call, with its arguments as JSON text (which may be malformed).
    pub fn and_call(mut self, name: &str, arguments: &str) -> Say {
        self.calls.push((None, name.into(), arguments.into()));
        self
    }

    /// One more call, with an id of the provider's.
    pub fn and_call_id(mut self, id: &str, name: &str, arguments: &str) -> Say {
        self.calls.push((Some(id.into()), name.into(), arguments.into()));
        self
    }

    /// The text in so many chunks.
    pub fn chunks(mut self, chunks: usize) -> Say {
        self.chunks = chunks.max(1);
        self
    }

    /// What it reports to have used: tokens of the request and of the answer.
    pub fn using(mut self, input: u64, output: u64) -> Say {
        self.usage = Some((input, output));
        self
    }

    /// The streamed answer. `serial` makes the ids of its calls unique.
    pub fn stream(&self, serial: usize) -> Answer {
        let mut pieces = Vec::new();
        let mut push = |value: Value| {
            pieces.push(Piece::Data(Bytes::from(format!("data: {value}\n\n"))));
        };
        let delta = |delta: Value| {
            json!({ "id": format!("chatcmpl-{serial}"), "object": "chat.completion.chunk", "model": "m",
                "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
        };
        for part in split(&self.text, self.chunks) {
            push(delta(json!({ "content": part })));
        }
        for (index, (id, name, arguments)) in self.calls.iter().enumerate() {
            let id = id.clone().unwrap_or_else(|| format!("call_{serial}_{index}"));
            push(delta(json!({ "tool_calls": [{ "index": index, "id": id, "type": "function",
                "function": { "name": name, "arguments": "" } }] })));
            for part in split(arguments, 2) {
                push(delta(json!({ "tool_calls": [{ "index": index, "function": { "arguments": part } }] })));
            }
        }
        let (input, output) = self.usage.unwrap_or((10, 5));
        let natural = if self.calls.is_empty() { "stop" } else { "tool_calls" };
        let mut last = delta(json!({}));
        last["choices"][0]["finish_reason"] = natural.into();
        push(last);
        push(json!({ "id": format!("chatcmpl-{serial}"), "object": "chat.completion.chunk", "choices": [],
            "usage": { "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output } }));
        pieces.push(Piece::Data(Bytes::from_static(b"data: [DONE]\n\n")));
        Answer {
            status: Some(200),
            headers: vec![("content-type".into(), "text/event-stream".into())],
            delay_us: Some(1_000),
            pieces,
        }
    }
}

/// A text in `n` parts of whole characters, none empty.
fn split(text: &str, n: usize) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    if letters.is_empty() {
        return Vec::new();
    }
    letters.chunks(letters.len().div_ceil(n)).map(|part| part.iter().collect()).collect()
}
