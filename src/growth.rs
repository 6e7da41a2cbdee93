//! What strangers send, to be read and let go: the doors of `tests/growth` to readers that are private. Whether something is
//! taken or refused does not count there.

use crate::api::{copied as copies, history as earlier};
use crate::engine::subagents;
use crate::env::scrub::{Rules, Scrubber};
use crate::json;
use crate::mcp::list::Page;
use crate::mcp::outcome::of_call;
use crate::mcp::reader::{Reader, Said, error_in};
use crate::memory::cut::cut;
use crate::memory::extract::text_of;
use crate::models::embedding;
use crate::request::fields::Body;
use crate::sandbox::packed::{Packed, pack, unpack};
use crate::sandbox::room::Room;
use crate::sandbox::{Function, Value};
use crate::spec::memory::Chunking;
use crate::spec::scrub::Scrub;

/// Bytes of a piece of a stream: an odd number, so that cuts are everywhere.
const PIECE: usize = 7;

/// What an MCP server answers to `tools/call`, in small pieces.
pub fn mcp_call(content_type: &str, answer: &str) {
    mcp(content_type, answer, |result| drop(of_call(result)));
}

/// What an MCP server answers to `tools/list`.
pub fn mcp_list(answer: &str) {
    mcp("application/json", answer, |result| drop(Page::of(result)));
}

fn mcp(content_type: &str, answer: &str, take: impl Fn(serde_json::Map<String, serde_json::Value>)) {
    let mut reader = Reader::new(Some(content_type), "q");
    let pushed =
        answer.as_bytes().chunks(PIECE).map(|piece| reader.push(piece)).collect::<Result<Vec<_>, _>>();
    let said = pushed.into_iter().flatten().flatten().chain(reader.finish().into_iter().flatten());
    for said in said {
        if let Said::Answer(Ok(result)) = said {
            take(result);
        }
    }
}

/// What an MCP server refuses a request with.
pub fn mcp_refusal(body: &str) {
    drop(error_in(body.as_bytes()));
}

/// What a server gives as vectors of so many texts.
pub fn vectors(body: &str, texts: usize) {
    drop(embedding::vectors(body.as_bytes(), texts));
}

/// A value of code: read, written as JSON, and packed again.
pub fn code_value(text: &str) {
    let absent = |_: u64, name: &str| Function::new(name, |_| Box::pin(async { Ok(Value::Undefined) }));
    let packed = Packed { text: text.to_owned(), bytes: Vec::new() };
    let Ok(value) = unpack(&packed, &Room::default(), &absent) else { return };
    drop((value.to_json(), pack(&value, &mut |_| 0)));
}

/// The body of a request for a new thread: what was said before.
pub fn history(body: &str) {
    if let Ok(mut body) = Body::parse(body).and_then(|body| body.known(&["history"])) {
        drop(earlier::earlier(&mut body));
    }
}

/// The same, of a thread of another deployment.
pub fn copied(body: &str) {
    if let Ok(mut body) = Body::parse(body).and_then(|body| body.known(&["copied_from", "history"])) {
        drop(copies::copied(&mut body, "t".to_owned(), 0));
    }
}

/// A page that a memory takes: its text, and that in chunks.
pub fn page(html: &str) {
    if let Ok(text) = text_of(Some("text/html"), html.to_owned()) {
        drop(cut(&text, Chunking::default()));
    }
}

/// A result of a tool, as text and as JSON, without what looks like a secret.
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
