//! Server-sent events, decoded from chunks that may be cut anywhere: inside a character, between CR and LF,
//! in the byte order mark.
//!
//! Every byte is read once. A line within one chunk is read in place. Only the rest of a cut line and the
//! data of the current event are copied, into two reused buffers.

/// Maximum bytes of one event, or of one line.
pub const EVENT_BYTES: usize = 4 << 20;

/// Maximum bytes of an `id`; a longer one counts as none.
const ID_BYTES: usize = 512;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// An event, borrowed during the callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The `event` field; empty when there was none.
    pub name: &'a str,
    /// The `data` lines, joined by line feeds. Bytes as received: they need not be UTF-8.
    pub data: &'a [u8],
}

/// An event is over [`EVENT_BYTES`]. The decoder must not be used afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("one server-sent event is over {EVENT_BYTES} bytes")]
pub struct TooLarge;

/// Assembles events from chunks of bytes.
#[derive(Debug, Default)]
pub struct Decoder {
    /// The beginning of an incomplete line.
    line: Vec<u8>,
    /// Data of the current event.
    data: Vec<u8>,
    /// Whether the event has had a `data` line, perhaps an empty one.
    has_data: bool,
    name: String,
    /// The newest `id`; empty if it does not fit in a header.
    last_id: String,
    /// Milliseconds before the client should reconnect.
    retry_ms: Option<u64>,
    /// The last chunk ended with a CR, so an LF at the start of the next one belongs to it.
    after_cr: bool,
    /// The first line, which may have a byte order mark, was read.
    started: bool,
}

impl Decoder {
    /// The newest `id`, if any.
    pub fn last_id(&self) -> Option<&str> {
        Some(self.last_id.as_str()).filter(|id| !id.is_empty())
    }

    /// The newest `retry`, in milliseconds.
    pub fn retry_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    /// Reads the next bytes, and passes every completed event to `on_event`. Its first error ends the call.
    pub fn push<E: From<TooLarge>>(
        &mut self,
        mut bytes: &[u8],
        on_event: &mut impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.after_cr && !bytes.is_empty() {
            self.after_cr = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, rest) = bytes.split_at(end);
            bytes = match rest {
                [b'\r', b'\n', rest @ ..] => rest,
                [b'\r'] => {
                    self.after_cr = true;
                    &[]
                }
                [_, rest @ ..] => rest,
                [] => &[],
            };
            if self.line.is_empty() {
                self.take(line, on_event)?;
            } else {
                self.keep(line)?;
                self.take_kept(on_event)?;
            }
        }
        Ok(self.keep(bytes)?)
    }

    /// Ends the stream. A last event without a line end or blank line is passed on too.
    pub fn finish<E: From<TooLarge>>(
        &mut self,
        on_event: &mut impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.line.is_empty() {
            self.take_kept(on_event)?;
        }
        self.dispatch(on_event)
    }

    fn keep(&mut self, piece: &[u8]) -> Result<(), TooLarge> {
        self.room_for(piece.len())?;
        self.line.extend_from_slice(piece);
        Ok(())
    }

    fn room_for(&self, bytes: usize) -> Result<(), TooLarge> {
        if self.line.len() + self.data.len() + bytes > EVENT_BYTES { Err(TooLarge) } else { Ok(()) }
    }

    /// Reads the kept line; its buffer stays allocated.
    fn take_kept<E: From<TooLarge>>(
        &mut self,
        on_event: &mut impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut line = std::mem::take(&mut self.line);
        let taken = self.take(&line, on_event);
        line.clear();
        self.line = line;
        taken
    }

    /// Reads one line, without its end.
    fn take<E: From<TooLarge>>(
        &mut self,
        mut line: &[u8],
        on_event: &mut impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.started {
            self.started = true;
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            return self.dispatch(on_event);
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => {
                let (field, value) = line.split_at(colon);
                let value = value.strip_prefix(b":").unwrap_or(value);
                (field, value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &b""[..]),
        };
        match field {
            b"data" => self.add(value)?,
            b"event" => {
                self.name.clear();
                self.name.push_str(&String::from_utf8_lossy(value));
            }
            // Not in the standard: llama.cpp's server reported an error in a stream as `error: {…}`.
            b"error" => {
                self.name.clear();
                self.name.push_str("error");
                self.add(value)?;
            }
            // For reconnecting, which MCP servers offer and models do not.
            b"id" => self.name_place(value),
            b"retry" => self.retry_ms = std::str::from_utf8(value).ok().and_then(|ms| ms.parse().ok()),
            // A comment has an empty field name.
            _ => {}
        }
        Ok(())
    }

    fn name_place(&mut self, value: &[u8]) {
        let fits = value.len() <= ID_BYTES && value.iter().all(|byte| (b' '..=b'~').contains(byte));
        self.last_id.clear();
        if fits {
            self.last_id.push_str(&String::from_utf8_lossy(value));
        }
    }

    fn add(&mut self, value: &[u8]) -> Result<(), TooLarge> {
        self.room_for(value.len() + 1)?;
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.data.extend_from_slice(value);
        Ok(())
    }

    fn dispatch<E>(&mut self, on_event: &mut impl FnMut(Event<'_>) -> Result<(), E>) -> Result<(), E> {
        let handled =
            if self.has_data { on_event(Event { name: &self.name, data: &self.data }) } else { Ok(()) };
        self.has_data = false;
        self.data.clear();
        self.name.clear();
        handled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Owned = Vec<(String, String)>;

    fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Result<Owned, TooLarge> {
        let mut events = Owned::new();
        let mut decoder = Decoder::default();
        let mut on_event = |event: Event<'_>| {
            events.push((event.name.to_owned(), String::from_utf8(event.data.to_vec()).unwrap()));
            Ok(())
        };
        for chunk in chunks {
            decoder.push(chunk, &mut on_event)?;
        }
        decoder.finish(&mut on_event)?;
        Ok(events)
    }

    fn data(events: Owned) -> Vec<String> {
        events.into_iter().map(|(_, data)| data).collect()
    }

    const CASES: &[(&str, &[&str])] = &[
        ("data: a\n\ndata: b\n\n", &["a", "b"]),
        ("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]),
        ("data: a\r\rdata: b\r\r", &["a", "b"]),
        ("data: a\r\n\ndata: b\n\r\n", &["a", "b"]),
        ("data:a\n\ndata:  b\n\n", &["a", " b"]),
        ("data: one\ndata: two\r\ndata: three\n\n", &["one\ntwo\nthree"]),
        (": comment\n\ndata: a\n: another\n\n", &["a"]),
        ("\u{feff}data: a\n\ndata: \u{feff}b\n\n", &["a", "\u{feff}b"]),
        ("data\n\n", &[""]),
        ("data:\ndata:\n\n", &["\n"]),
        ("\n\n\r\n\r", &[]),
        ("event: ping\n\nid: 1\nretry: 5\n\n", &[]),
        ("data: no blank line\n", &["no blank line"]),
        ("data: no line end", &["no line end"]),
        ("data: ends with cr\r", &["ends with cr"]),
        (
            "data: schöne 日本 🧵 Grüße\r\n\r\ndata: {\"a\": \"b: c\"}",
            &["schöne 日本 🧵 Grüße", "{\"a\": \"b: c\"}"],
        ),
        ("dat: a\ndatax: b\nDATA: c\ndata : d\n\n", &[]),
        ("", &[]),
    ];

    #[test]
    fn every_way_of_ending_lines_gives_the_same_events() {
        for (text, expected) in CASES {
            assert_eq!(data(decode([text.as_bytes()]).unwrap()), *expected, "{text:?}");
        }
    }

    #[test]
    fn the_place_is_that_of_the_newest_event_whether_it_has_data_or_not() {
        let long = format!("id: {}\n\n", "x".repeat(ID_BYTES + 1));
        for (text, id, retry) in [
            ("data: a\n\n", None, None),
            ("id: 1\nretry: 500\ndata:\n\nid: 2\ndata: b\n\n", Some("2"), Some(500)),
            ("id: 1\n\nid: \n\n", None, None),
            ("id: 1\nretry: soon\n\nid: ü\n\n", None, None),
            (&long, None, None),
        ] {
            let mut decoder = Decoder::default();
            decoder.push(text.as_bytes(), &mut |_| Ok::<_, TooLarge>(())).unwrap();
            assert_eq!((decoder.last_id(), decoder.retry_ms()), (id, retry), "{text:?}");
        }
    }

    #[test]
    fn cuts_change_nothing() {
        for (text, expected) in CASES {
            let bytes = text.as_bytes();
            for first in 0..=bytes.len() {
                for second in first..=bytes.len() {
                    let chunks = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                    assert_eq!(
                        data(decode(chunks).unwrap()),
                        *expected,
                        "{text:?} cut at {first} and {second}"
                    );
                }
            }
            assert_eq!(data(decode(bytes.chunks(1)).unwrap()), *expected, "{text:?} byte by byte");
        }
    }

    #[test]
    fn names_belong_to_one_event() {
        let text = "event: error\ndata: a\n\ndata: b\n\nevent: x\n\ndata: c\n\nerror: {\"code\":500}\n\n";
        let events = decode([text.as_bytes()]).unwrap();
        let named: Vec<_> = events.iter().map(|(name, data)| (name.as_str(), data.as_str())).collect();
        assert_eq!(named, [("error", "a"), ("", "b"), ("", "c"), ("error", "{\"code\":500}")]);
    }

    #[test]
    fn an_event_over_the_limit_is_an_error() {
        let long = vec![b'x'; EVENT_BYTES - 1000];
        assert!(decode([&b"data: "[..], &long, b"\n\n"]).is_ok());
        let over = vec![b'x'; EVENT_BYTES];
        assert_eq!(decode([&b"data: "[..], &over]), Err(TooLarge), "one line");
        assert_eq!(decode([&b": "[..], &over]), Err(TooLarge), "a comment");
        let line = [b"data: ".to_vec(), vec![b'x'; 1 << 20], b"\n".to_vec()].concat();
        assert_eq!(decode([&line[..]; 4]), Err(TooLarge), "many lines");
        let event = [line, b"\n".to_vec()].concat();
        assert_eq!(decode([&event[..]; 8]).unwrap().len(), 8, "the limit is for each event");
    }

    #[test]
    fn an_error_of_the_reader_ends_the_call() {
        #[derive(Debug, PartialEq)]
        struct Stop;
        impl From<TooLarge> for Stop {
            fn from(_: TooLarge) -> Stop {
                Stop
            }
        }
        let mut seen = 0;
        let ended = Decoder::default().push(b"data: a\n\ndata: b\n\n", &mut |_| {
            seen += 1;
            Err(Stop)
        });
        assert_eq!((ended, seen), (Err(Stop), 1));
    }
}
