//! Entry points to private readers of untrusted input, for `tests/growth`. The results are discarded: the
//! tests measure only how cost grows with the input.

use crate::api::{history as earlier, import as copies};
use crate::definitions::memory::Chunking;
use crate::definitions::scrub::Scrub;
use crate::engine::subagents;
use crate::env::scrub::{Rules, Scrubber};
use crate::json;
use crate::mcp_client::list::Page;
use crate::mcp_client::outcome::of_call;
use crate::mcp_client::reader::{Reader, ServerMessage, error_in};
use crate::memory::cut::cut;
use crate::memory::embedding;
use crate::memory::extract::text_of;
use crate::request::fields::Body;
use crate::sandbox::packed::{EncodedValue, pack, unpack};
use crate::sandbox::room::SizeAllowance;
use crate::sandbox::{Function, Value};

/// Bytes in a piece of a stream; odd, so that cuts fall everywhere.
const PIECE: usize = 7;

/// A response of an MCP server to `tools/call`, in small pieces.
pub fn mcp_call(content_type: &str, answer: &str) {
    mcp(content_type, answer, |result| drop(of_call(result)));
}

/// A response of an MCP server to `tools/list`.
pub fn mcp_list(answer: &str) {
    mcp("application/json", answer, |result| drop(Page::of(result)));
}

fn mcp(content_type: &str, answer: &str, take: impl Fn(serde_json::Map<String, serde_json::Value>)) {
    let mut reader = Reader::new(Some(content_type), "q");
    let pushed =
        answer.as_bytes().chunks(PIECE).map(|piece| reader.push(piece)).collect::<Result<Vec<_>, _>>();
    let said = pushed.into_iter().flatten().flatten().chain(reader.finish().into_iter().flatten());
    for said in said {
        if let ServerMessage::Answer(Ok(result)) = said {
            take(result);
        }
    }
}

/// An error response of an MCP server.
pub fn mcp_refusal(body: &str) {
    drop(error_in(body.as_bytes()));
}

/// A server's response with this many vectors.
pub fn vectors(body: &str, texts: usize) {
    drop(embedding::vectors(body.as_bytes(), texts));
}

/// A value from sandboxed code: unpacked, converted to JSON, and packed again.
pub fn code_value(text: &str) {
    let absent = |_: u64, name: &str| Function::new(name, |_| Box::pin(async { Ok(Value::Undefined) }));
    let packed = EncodedValue { text: text.to_owned(), bytes: Vec::new() };
    let Ok(value) = unpack(&packed, &SizeAllowance::default(), &absent) else { return };
    drop((value.to_json(), pack(&value, &mut |_| 0)));
}

/// The body of a request for a new thread with a history.
pub fn history(body: &str) {
    if let Ok(mut body) = Body::parse(body).and_then(|body| body.known(&["history"])) {
        drop(earlier::earlier(&mut body));
    }
}

/// The body of a request for a new thread that is copied from another deployment.
pub fn copied(body: &str) {
    if let Ok(mut body) = Body::parse(body).and_then(|body| body.known(&["copied_from", "history"])) {
        drop(copies::copied(&mut body, "t".to_owned(), 0));
    }
}

/// A page for a memory: its text, and its chunks.
pub fn page(html: &str) {
    if let Ok(text) = text_of(Some("text/html"), html.to_owned()) {
        drop(cut(&text, Chunking::default()));
    }
}

/// A tool's result as text and as JSON, without anything that looks like a secret.
pub fn scrubbed(text: &str) {
    let rules = Rules::of(&Scrub::default(), None);
    drop(Scrubber::new(&rules).text(text.to_owned()));
    drop(Scrubber::new(&rules).json(json!({ "text": text })));
}

/// A list of paths in the arguments of a call.
pub fn paths(list: &str) {
    if let Ok(list) = json::from_str(list) {
        drop(subagents::arguments::paths(&list, false));
    }
}
