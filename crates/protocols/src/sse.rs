//! Server-sent events in the form of the feed: one frame each.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use bobbin_definitions::error::{Error, Result};
use bobbin_definitions::json;

/// The kinds and fields of a feed's events, in order. Adjacent pieces of a text are merged: models write very
/// many, and each costs a client as much as a long one.
///
/// # Errors
/// `internal`: an event is invalid.
pub fn frames(events: &str) -> Result<Vec<(&str, Value)>> {
    let mut frames = Vec::new();
    let mut piece: Option<Piece<'_>> = None;
    for (kind, data) in events_of(events)? {
        if kind == CHUNK {
            let next: Piece<'_> = bobbin_definitions::json::from_str(data).map_err(Error::internal)?;
            match &mut piece {
                Some(piece) if piece.is_before(&next) => piece.chunk.to_mut().push_str(&next.chunk),
                _ => frames.extend(piece.replace(next).map(Piece::frame)),
            }
            continue;
        }
        frames.extend(piece.take().map(Piece::frame));
        frames.push((kind, bobbin_definitions::json::from_str(data).map_err(Error::internal)?));
    }
    frames.extend(piece.map(Piece::frame));
    Ok(frames)
}

/// The kind of pieces of a reply's text.
const CHUNK: &str = "message_chunk";

/// A piece of a reply's text.
#[derive(Deserialize)]
struct Piece<'a> {
    #[serde(borrow)]
    message_id: Cow<'a, str>,
    #[serde(borrow)]
    chunk: Cow<'a, str>,
    attempt: u64,
    /// Bytes of the text before it.
    offset: u64,
    #[serde(default)]
    depth: u64,
}

impl Piece<'_> {
    /// Whether the other piece follows directly.
    fn is_before(&self, next: &Piece<'_>) -> bool {
        let of = |piece: &Piece<'_>| (piece.attempt, piece.depth);
        self.message_id == next.message_id
            && of(self) == of(next)
            && u64::try_from(self.chunk.len()).is_ok_and(|bytes| self.offset + bytes == next.offset)
    }

    fn frame(self) -> (&'static str, Value) {
        let Piece { message_id, chunk, attempt, offset, depth } = self;
        let frame = json!({
            "type": CHUNK, "message_id": message_id, "depth": depth, "chunk": chunk, "attempt": attempt, "offset": offset,
        });
        (CHUNK, frame)
    }
}

/// Kind and data of each event.
fn events_of(text: &str) -> Result<Vec<(&str, &str)>> {
    let mut events = Vec::new();
    let (mut begun, mut kind, mut data) = (false, "", None);
    for line in text.lines().chain([""]) {
        if line.is_empty() {
            if begun {
                events.push((kind, data.ok_or_else(|| Error::internal("an event of a feed has no data"))?));
            }
            (begun, kind, data) = (false, "", None);
            continue;
        }
        begun = true;
        if let Some(name) = line.strip_prefix("event: ") {
            kind = name;
        } else if let Some(json) = line.strip_prefix("data: ") {
            data = Some(json);
        }
    }
    Ok(events)
}

/// One event.
pub fn data(value: &Value) -> String {
    format!("data: {}\n\n", bobbin_definitions::json::text(value))
}

/// The end of a stream, for clients that expect it.
pub const DONE: &str = "data: [DONE]\n\n";
