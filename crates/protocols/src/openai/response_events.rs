//! The events of a response, numbered so that a client can resume.
//!
//! The text of a finished run is one piece, but was many pieces while it was written. So a number is a
//! position: an event advances it by one, a piece of text by its number of characters. The lower bits hold a
//! checksum of everything before the position. If a client has read text of a lost attempt, the checksum does
//! not match and the client receives the whole response again.
//!
//! The helpers of OpenAI's packages (7.59 for JavaScript, 3.57 for Python) never send `starting_after`. They
//! drop events with a known `sequence_number`, so the number must not decrease within a response.

use serde_json::Value;

use bobbin_definitions::json;

/// Number of bits of the checksum.
const CHECK_BITS: u32 = 16;

/// Emits events, and skips those that the client has.
#[derive(Debug)]
pub(super) struct Events {
    /// The current position.
    place: u64,
    check: u32,
    /// The number up to which the client has the events; `None` after it was passed.
    after: Option<u64>,
    /// Skipped events, which are sent if the checksum does not match.
    held: String,
    out: String,
}

impl Events {
    /// For a client that has the events up to this number.
    pub(super) fn new(after: Option<u64>) -> Events {
        Events { place: 0, check: 0x811c_9dc5, after, held: String::new(), out: String::new() }
    }

    /// The output to send now.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.out)
    }

    /// One event.
    pub(super) fn say(&mut self, event: Value) {
        self.mix(event.get("type").and_then(Value::as_str).unwrap_or_default());
        for name in ["item_id", "output_index"] {
            self.mix(&event.get(name).map(Value::to_string).unwrap_or_default());
        }
        self.place += 1;
        let number = self.number();
        self.send(event, number);
    }

    /// Sends the last event to every client.
    pub(super) fn last(&mut self, event: Value) {
        self.say(event);
        if self.after.take().is_some() {
            // The client's number is beyond this response.
            self.out = std::mem::take(&mut self.held);
        }
    }

    /// An event with a piece of text.
    pub(super) fn delta(&mut self, mut event: Value, text: &str) {
        let mut from = 0;
        if let Some(after) = self.after {
            // The client may have a part of the text.
            for (at, char) in text.char_indices() {
                self.step(char);
                if self.number() == after {
                    from = at + char.len_utf8();
                    let (known, rest) = text.split_at_checked(from).unwrap_or((text, ""));
                    self.piece(event.clone(), known, after);
                    if rest.is_empty() {
                        return;
                    }
                    break;
                }
            }
            if self.after.is_some() {
                let number = self.number();
                return self.piece(event, text, number);
            }
        }
        let rest = text.get(from..).unwrap_or_default();
        self.mix(rest);
        self.place += u64::try_from(rest.chars().count()).unwrap_or(u64::MAX);
        let number = self.number();
        set(&mut event, "delta", rest.into());
        self.send(event, number);
    }

    fn piece(&mut self, mut event: Value, text: &str, number: u64) {
        set(&mut event, "delta", text.into());
        self.send(event, number);
    }

    fn step(&mut self, char: char) {
        let mut bytes = [0; 4];
        self.mix(char.encode_utf8(&mut bytes));
        self.place += 1;
    }

    fn mix(&mut self, text: &str) {
        for byte in text.bytes() {
            self.check = (self.check ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        }
    }

    fn number(&self) -> u64 {
        let check = (self.check >> CHECK_BITS) ^ (self.check & 0xffff);
        (self.place << CHECK_BITS) | u64::from(check)
    }

    fn send(&mut self, mut event: Value, number: u64) {
        set(&mut event, "sequence_number", json!(number));
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
        let text = format!("event: {kind}\ndata: {}\n\n", bobbin_definitions::json::text(&event));
        match self.after {
            None => self.out.push_str(&text),
            Some(after) => {
                self.held.push_str(&text);
                if number == after {
                    (self.after, self.held) = (None, String::new());
                } else if number >> CHECK_BITS >= after >> CHECK_BITS {
                    // The client has read something else, so it receives everything.
                    self.after = None;
                    self.out.push_str(&std::mem::take(&mut self.held));
                }
            }
        }
    }
}

fn set(event: &mut Value, name: &str, value: Value) {
    if let Some(fields) = event.as_object_mut() {
        fields.insert(name.to_owned(), value);
    }
}
