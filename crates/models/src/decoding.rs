//! Decoding that all formats share: a body that arrives in pieces, errors in it, split characters, and
//! its end. Each format interprets the events.

use crate::body::Body;
use crate::surrogates::SurrogateJoiner;
use crate::{Delta, ProviderError, sse, surrogates};

/// Decodes one response. After a call has failed, the decoder must not be used again.
#[derive(Debug)]
pub struct ResponseDecoder<F> {
    body: Body,
    reading: DecodeState<F>,
}

#[derive(Debug)]
struct DecodeState<F> {
    format: F,
    halves: SurrogateJoiner,
    secret: Option<String>,
    /// Number of events so far, without comments.
    events: u64,
}

/// How far a response has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// Not ended.
    #[default]
    None,
    /// A finish reason came; usage may still follow.
    Finished,
    /// The last event came. Anything after it is ignored.
    Done,
}

/// Why an event gave nothing.
#[derive(Debug)]
pub enum EventError {
    /// The event does not match the format.
    Unreadable(serde_json::Error),
    /// The event reports an error: as a whole, or in this part.
    Reports(Option<Vec<u8>>),
    /// Anything else.
    Failed(ProviderError),
}

impl From<serde_json::Error> for EventError {
    fn from(error: serde_json::Error) -> EventError {
        EventError::Unreadable(error)
    }
}

/// The interpretation of events.
pub trait Format: Default {
    /// Reads the JSON of an event, or of a whole response, and appends the deltas. An unreadable one
    /// changes nothing, because it may be repaired and read again.
    ///
    /// # Errors
    /// See [`EventError`].
    fn read(&mut self, json: &[u8], out: &mut Vec<Delta>) -> Result<(), EventError>;

    /// Whether an event's data marks the end, and is not JSON.
    fn is_last(&mut self, _data: &[u8], _out: &mut Vec<Delta>) -> bool {
        false
    }

    /// How far the response has ended.
    fn end(&self) -> End;

    /// Called at the end of the body. For a body that was not a stream, `whole` is the index of its
    /// first delta.
    fn close(&mut self, _whole: Option<usize>, _out: &mut Vec<Delta>) {}
}

impl<F: Format> ResponseDecoder<F> {
    /// A decoder for one response. `secret` is the API key of the request, so that no error text shows
    /// it.
    pub fn new(secret: Option<&str>) -> ResponseDecoder<F> {
        let secret = secret.map(str::to_owned);
        let reading =
            DecodeState { format: F::default(), halves: SurrogateJoiner::default(), secret, events: 0 };
        ResponseDecoder { body: Body::default(), reading }
    }

    /// Decodes the next bytes of the body, and appends the deltas to `out`.
    ///
    /// # Errors
    /// An error that the stream reports, an event that is not JSON, or one over [`sse::EVENT_BYTES`].
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<Delta>) -> Result<(), ProviderError> {
        let (reading, from) = (&mut self.reading, out.len());
        let pushed = self.body.push(bytes, &mut |event| reading.event(event, out));
        reading.halves.settle(out, from);
        pushed
    }

    /// Number of events so far.
    pub fn events(&self) -> u64 {
        self.reading.events
    }

    /// Whether the last event has come. The rest of the body need not be read.
    pub fn is_done(&self) -> bool {
        self.reading.format.end() == End::Done
    }

    /// Ends the response: its body ended, broke off, or stalled.
    ///
    /// # Errors
    /// As for [`push`](Decoding::push), and `server_error` when the response is incomplete.
    pub fn finish(&mut self, out: &mut Vec<Delta>) -> Result<(), ProviderError> {
        let (reading, from) = (&mut self.reading, out.len());
        let whole = self.body.finish(&mut |event| reading.event(event, out))?;
        let was_whole = whole.is_some().then_some(from);
        if let Some(whole) = whole {
            reading.read(whole, out)?;
        }
        reading.format.close(was_whole, out);
        reading.halves.settle(out, from);
        reading.halves.finish(out);
        if reading.format.end() == End::None { Err(ProviderError::broke_off()) } else { Ok(()) }
    }
}

impl<F: Format> DecodeState<F> {
    fn event(&mut self, event: sse::Event<'_>, out: &mut Vec<Delta>) -> Result<(), ProviderError> {
        self.events += 1;
        match event.data.trim_ascii() {
            _ if self.format.end() == End::Done => Ok(()),
            b"" => Ok(()),
            data if self.format.is_last(data, out) => Ok(()),
            data if event.name == "error" => Err(self.reported(data)),
            data => self.read(data, out),
        }
    }

    /// Reads an event. Some servers split a character between two events: invalid bytes become
    /// replacement characters, UTF-16 halves wait for the other half.
    fn read(&mut self, json: &[u8], out: &mut Vec<Delta>) -> Result<(), ProviderError> {
        self.halves.look(json);
        let mut read = self.format.read(json, out);
        if matches!(read, Err(EventError::Unreadable(_)))
            && let Some(mended) = surrogates::mended(&String::from_utf8_lossy(json), json)
        {
            read = self.format.read(mended.as_bytes(), out);
        }
        read.map_err(|wrong| match wrong {
            EventError::Unreadable(error) => ProviderError::malformed(&error),
            EventError::Reports(part) => self.reported(part.as_deref().unwrap_or(json)),
            EventError::Failed(error) => error,
        })
    }

    fn reported(&self, body: &[u8]) -> ProviderError {
        ProviderError::in_stream(body, self.secret.as_deref().as_slice())
    }
}
