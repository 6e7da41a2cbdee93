//! The ids of AG-UI events. An id says how far a client has read a run, independent of how the text was cut
//! and how often it was sent.
//!
//! A place holds the message of the event, the amount of that message that was sent by then (events and
//! characters), and a checksum of that amount. Only the message in progress can change, so the client has
//! everything before the message that its place names. If the checksum fits, the client has that part of the
//! message. After a lost attempt it may have something else, or more. Reasoning, values and events emitted by
//! tools have no place and are not sent again.

use serde_json::Value;

/// First number of the events with a message's content. Lower numbers belong to its beginning.
const WORDS: u64 = 10;
/// Bytes of the run's name in an id.
const RUN_BYTES: usize = 24;
/// FNV-1a.
const CHECK: (u32, u32) = (0x811c_9dc5, 0x0100_0193);

/// A position up to which a client has read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    run: String,
    message: i64,
    upto: u64,
    check: u32,
    told: u32,
}

impl Position {
    /// Parses an id; `None` if it is not one of these.
    pub fn parse(id: &str) -> Option<Position> {
        let mut parts = id.split('.');
        let mut part = || parts.next();
        let (run, message, upto, check, told) = (part()?, part()?, part()?, part()?, part()?);
        let is_run =
            !run.is_empty() && run.len() <= RUN_BYTES && run.bytes().all(|byte| byte.is_ascii_alphanumeric());
        (is_run && part().is_none()).then_some(())?;
        Some(Position {
            run: run.to_owned(),
            message: message.parse().ok()?,
            upto: upto.parse().ok()?,
            check: u32::from_str_radix(check, 16).ok()?,
            told: told.parse().ok()?,
        })
    }

    /// Whether the place belongs to this run.
    pub(super) fn is_of(&self, run: &str) -> bool {
        self.run == run
    }

    fn at(&self) -> (i64, u64) {
        (self.message, self.upto)
    }

    fn mix(&mut self, text: &str) {
        for byte in text.bytes() {
            self.check = (self.check ^ u32::from(byte)).wrapping_mul(CHECK.1);
        }
    }

    /// Advances by an event.
    fn step(&mut self, event: &Value) {
        for name in ["type", "toolCallId", "content"] {
            self.mix(event.get(name).and_then(Value::as_str).unwrap_or_default());
        }
        self.upto = self.upto.max(WORDS - 1) + 1;
    }
}

/// Emits events, and skips those that the client has.
#[derive(Debug, Default)]
pub(super) struct ResumableStream {
    here: Position,
    /// The position at which the reply's content begins.
    words: Position,
    /// The position of the client; `None` after it was passed.
    behind: Option<Position>,
    /// Whether the client has read something that is not valid.
    astray: bool,
    out: String,
}

impl ResumableStream {
    /// A stream for a client that has read up to a place of this run.
    pub(super) fn new(run: &str, behind: Option<Position>) -> ResumableStream {
        let told = behind.as_ref().map_or(0, |behind| behind.told);
        let here = Position { run: run.to_owned(), check: CHECK.0, told, ..Position::default() };
        ResumableStream { words: here.clone(), here, behind, astray: false, out: String::new() }
    }

    /// The output to send now.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.out)
    }

    /// The number of retractions so far.
    pub(super) fn told(&self) -> u32 {
        self.here.told
    }

    /// Whether the client already has the current position.
    pub(super) fn is_behind(&self) -> bool {
        self.behind.is_some()
    }

    /// Whether the client has read invalid content. Send it the valid content, and then call
    /// [`ResumableStream::right`].
    pub(super) fn out_of_sync(&self) -> bool {
        self.astray
    }

    /// Begins this message.
    pub(super) fn enter(&mut self, message: i64) {
        if message > self.here.message {
            (self.here.message, self.here.upto, self.here.check) = (message, 0, CHECK.0);
        }
    }

    /// An event of a message's beginning. Returns whether it is the last that the client has.
    pub(super) fn begin(&mut self, event: &Value) -> bool {
        let was_behind = self.is_behind();
        self.here.upto += 1;
        self.words = self.here.clone();
        let is_new = self.is_new();
        if is_new {
            self.send_here(event);
        }
        was_behind && !is_new && !self.is_behind()
    }

    /// An event.
    pub(super) fn say(&mut self, event: &Value) {
        self.here.step(event);
        if self.is_new() {
            self.send_here(event);
        }
    }

    /// A snapshot of messages: JSON with commas between them.
    pub(super) fn say_snapshot(&mut self, messages: &str) {
        self.here.step(&Value::Null);
        if self.is_new() {
            self.send(&snapshot(messages), true);
        }
    }

    /// More text of a message.
    pub(super) fn text(&mut self, mut event: Value, text: &str) {
        let mut from = 0;
        if self.behind.as_ref().is_some_and(|behind| behind.message == self.here.message) {
            // The client may have a part of the text.
            for (at, char) in text.char_indices() {
                if !self.is_behind() || self.astray {
                    break;
                }
                let mut bytes = [0; 4];
                self.here.mix(char.encode_utf8(&mut bytes));
                self.here.upto += 1;
                self.is_new();
                from = at + char.len_utf8();
            }
        }
        let rest = text.get(from..).unwrap_or_default();
        self.here.mix(rest);
        self.here.upto += u64::try_from(rest.chars().count()).unwrap_or(u64::MAX);
        if rest.is_empty() || !self.is_new() {
            return;
        }
        if let Some(fields) = event.as_object_mut() {
            fields.insert("delta".into(), rest.into());
        }
        self.send_here(&event);
    }

    /// Sends an event without a place to all clients.
    pub(super) fn beside(&mut self, event: &Value) {
        self.send(&event.to_string(), false);
    }

    /// Sends an event without a place, unless the client already has this position.
    pub(super) fn aside(&mut self, event: &Value) {
        if !self.is_behind() && !self.astray {
            self.send(&event.to_string(), false);
        }
    }

    /// Returns to the position where the reply's content begins, after a lost attempt.
    pub(super) fn rewind(&mut self) {
        (self.here.upto, self.here.check) = (self.words.upto, self.words.check);
    }

    /// Makes the client discard all but these messages.
    pub(super) fn take_back_by(&mut self, messages: &str) {
        self.here.told = self.here.told.wrapping_add(1);
        self.send(&snapshot(messages), true);
    }

    /// Repeats an event without an advance, for a client that has read all of this.
    pub(super) fn tell_anew(&mut self, event: &Value) {
        self.here.told = self.here.told.wrapping_add(1);
        self.send_here(event);
    }

    /// Abandons the reply's content, which is sent as another message. No client can resume within it.
    pub(super) fn leave(&mut self) {
        self.here.mix("left");
        self.here.told = self.here.told.wrapping_add(1);
    }

    /// Marks the client as up to date from here on.
    pub(super) fn right(&mut self) {
        (self.behind, self.astray) = (None, false);
    }

    /// Whether the client has read something else than the stream up to this event, which is the last one.
    pub(super) fn is_after(&self, last: &Value) -> bool {
        let mut end = self.here.clone();
        end.step(last);
        self.behind.as_ref().is_some_and(|behind| behind.at() != end.at() || behind.check != end.check)
    }

    /// Sends the last event to every client, under an id that it does not have.
    pub(super) fn last(&mut self, event: &Value) {
        if self.behind.take().is_some() {
            self.here.told = self.here.told.wrapping_add(1);
        }
        self.say(event);
    }

    /// Whether the current position is new to the client.
    fn is_new(&mut self) -> bool {
        let Some(behind) = self.behind.as_ref().filter(|_| !self.astray) else { return !self.astray };
        match self.here.at().cmp(&behind.at()) {
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Equal => {
                self.astray = self.here.check != behind.check;
                self.behind = None;
                false
            }
            std::cmp::Ordering::Greater => {
                // The client has read a message that is shorter now, or does not exist.
                self.astray = self.here.message > behind.message && behind.upto >= WORDS;
                self.behind = None;
                !self.astray
            }
        }
    }

    fn send_here(&mut self, event: &Value) {
        self.send(&bobbin_definitions::json::text(event), true);
    }

    fn send(&mut self, event: &str, has_place: bool) {
        if has_place {
            let Position { run, message, upto, check, told } = &self.here;
            self.out.push_str(&format!("id: {run}.{message}.{upto}.{check:x}.{told}\n"));
        }
        self.out.push_str("data: ");
        self.out.push_str(event);
        self.out.push_str("\n\n");
    }
}

fn snapshot(messages: &str) -> String {
    format!("{{\"type\":\"MESSAGES_SNAPSHOT\",\"messages\":[{messages}]}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_is_written_and_nothing_else_is_one() {
        let id = "m12.15.340.9f3a01.2";
        let place = Position::parse(id).unwrap();
        let mut places = ResumableStream::new("m12", Some(place.clone()));
        places.here = place;
        places.send_here(&Value::Null);
        assert_eq!(places.take(), format!("id: {id}\ndata: null\n\n"));
        for no in [
            "",
            "7",
            "-1",
            "m1.2.3.4",
            "m1.2.3.4.5.6",
            "m-1.2.3.4.5",
            ".2.3.4.5",
            "m1.2.x.4.5",
            "m1.2.3.zz.5",
        ] {
            assert_eq!(Position::parse(no), None, "{no}");
        }
        assert_eq!(Position::parse(&format!("{}.1.1.1.1", "m".repeat(25))), None);
    }
}
