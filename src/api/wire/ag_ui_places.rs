//! The ids of AG-UI events. An id says how far a client has read a run, independent of how the text was cut
//! and how often it was sent.
//!
//! A place holds the message of the event, the amount of that message that was sent by then (events and
//! characters), and a checksum of that amount. Only the message in progress can change, so the client has
//! everything before the message that its place names. If the checksum fits, the client has that part of the
//! message. After a lost attempt it may have something else, or more. Reasoning, values and events emitted by
//! tools have no place and are not sent again.

use serde_json::Value;

/// Events of a message from here on are of what it says; those before are of its beginning.
const WORDS: u64 = 10;
/// Bytes of what names a run in an id.
const RUN_BYTES: usize = 24;
/// FNV-1a.
const CHECK: (u32, u32) = (0x811c_9dc5, 0x0100_0193);

/// How far a client has read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    run: String,
    message: i64,
    upto: u64,
    check: u32,
    told: u32,
}

impl Place {
    /// The place that an id names; none if it is no id of these.
    pub fn parse(id: &str) -> Option<Place> {
        let mut parts = id.split('.');
        let mut part = || parts.next();
        let (run, message, upto, check, told) = (part()?, part()?, part()?, part()?, part()?);
        let is_run =
            !run.is_empty() && run.len() <= RUN_BYTES && run.bytes().all(|byte| byte.is_ascii_alphanumeric());
        (is_run && part().is_none()).then_some(())?;
        Some(Place {
            run: run.to_owned(),
            message: message.parse().ok()?,
            upto: upto.parse().ok()?,
            check: u32::from_str_radix(check, 16).ok()?,
            told: told.parse().ok()?,
        })
    }

    /// Whether it is one of this run.
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

    /// Moves on by an event.
    fn step(&mut self, event: &Value) {
        for name in ["type", "toolCallId", "content"] {
            self.mix(event.get(name).and_then(Value::as_str).unwrap_or_default());
        }
        self.upto = self.upto.max(WORDS - 1) + 1;
    }
}

/// Makes events, and leaves those out that the client has.
#[derive(Debug, Default)]
pub(super) struct Places {
    here: Place,
    /// Where what the reply says begins.
    words: Place,
    /// What the client has; none once that is passed.
    behind: Option<Place>,
    /// Whether it has something else than there is.
    astray: bool,
    out: String,
}

impl Places {
    /// Of a client that has what is before a place of this run.
    pub(super) fn new(run: &str, behind: Option<Place>) -> Places {
        let told = behind.as_ref().map_or(0, |behind| behind.told);
        let here = Place { run: run.to_owned(), check: CHECK.0, told, ..Place::default() };
        Places { words: here.clone(), here, behind, astray: false, out: String::new() }
    }

    /// What is to be sent now.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.out)
    }

    /// How often something was taken back from the client.
    pub(super) fn told(&self) -> u32 {
        self.here.told
    }

    /// Whether the client has what is told now.
    pub(super) fn is_behind(&self) -> bool {
        self.behind.is_some()
    }

    /// Whether the client has read what does not hold: it is to be told what does, and then [`Places::right`].
    pub(super) fn is_astray(&self) -> bool {
        self.astray
    }

    /// What follows is of this message.
    pub(super) fn enter(&mut self, message: i64) {
        if message > self.here.message {
            (self.here.message, self.here.upto, self.here.check) = (message, 0, CHECK.0);
        }
    }

    /// An event of a message's beginning. Whether it is the last that the client has.
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

    /// More of a text.
    pub(super) fn text(&mut self, mut event: Value, text: &str) {
        let mut from = 0;
        if self.behind.as_ref().is_some_and(|behind| behind.message == self.here.message) {
            // The client may have a part of it.
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

    /// An event that has no place, for all.
    pub(super) fn beside(&mut self, event: &Value) {
        self.send(&event.to_string(), false);
    }

    /// One for those who are not told what they have.
    pub(super) fn aside(&mut self, event: &Value) {
        if !self.is_behind() && !self.astray {
            self.send(&event.to_string(), false);
        }
    }

    /// What the reply has said does not hold: what it says follows its beginning again.
    pub(super) fn rewind(&mut self) {
        (self.here.upto, self.here.check) = (self.words.upto, self.words.check);
    }

    /// The client forgets all but these messages.
    pub(super) fn take_back_by(&mut self, messages: &str) {
        self.here.told = self.here.told.wrapping_add(1);
        self.send(&snapshot(messages), true);
    }

    /// An event that is no further, for a client that has had all of this.
    pub(super) fn tell_anew(&mut self, event: &Value) {
        self.here.told = self.here.told.wrapping_add(1);
        self.send_here(event);
    }

    /// What the reply has said stays, and it is told as another message: nobody goes on behind a part of that.
    pub(super) fn leave(&mut self) {
        self.here.mix("left");
        self.here.told = self.here.told.wrapping_add(1);
    }

    /// From here on the client has what there is.
    pub(super) fn right(&mut self) {
        (self.behind, self.astray) = (None, false);
    }

    /// Whether the client has something else than there is up to this event, which is the last one.
    pub(super) fn is_beyond(&self, last: &Value) -> bool {
        let mut end = self.here.clone();
        end.step(last);
        self.behind.as_ref().is_some_and(|behind| behind.at() != end.at() || behind.check != end.check)
    }

    /// The last event, which every client is sent, under an id that it does not have.
    pub(super) fn last(&mut self, event: &Value) {
        if self.behind.take().is_some() {
            self.here.told = self.here.told.wrapping_add(1);
        }
        self.say(event);
    }

    /// Whether what is up to here is new to the client.
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
                // It has read of a message that is shorter than that, or is none.
                self.astray = self.here.message > behind.message && behind.upto >= WORDS;
                self.behind = None;
                !self.astray
            }
        }
    }

    fn send_here(&mut self, event: &Value) {
        self.send(&crate::json::text(event), true);
    }

    fn send(&mut self, event: &str, has_place: bool) {
        if has_place {
            let Place { run, message, upto, check, told } = &self.here;
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
        let place = Place::parse(id).unwrap();
        let mut places = Places::new("m12", Some(place.clone()));
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
            assert_eq!(Place::parse(no), None, "{no}");
        }
        assert_eq!(Place::parse(&format!("{}.1.1.1.1", "m".repeat(25))), None);
    }
}
