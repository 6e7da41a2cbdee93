//! What decoding has in common for all formats: a body that arrives in pieces, errors inside it, halves of characters,
//! and its end. The meaning of the events is up to each format.

use crate::models::body::Body;
use crate::models::halves::Halves;
use crate::models::{Delta, ProviderError, halves, sse};

/// Decodes one answer. Once a call has failed the decoder is of no use.
#[derive(Debug)]
pub struct Decoding<F> {
    body: Body,
    reading: Reading<F>,
}

#[derive(Debug)]
struct Reading<F> {
    format: F,
    halves: Halves,
    secret: Option<String>,
    /// Events so far; comments are none.
    events: u64,
}

/// How much of an end an answer has had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// None.
    #[default]
    None,
    /// A reason; usage may still come.
    Finished,
    /// The last event: whatever follows is not read.
    Done,
}

/// Why an event gives nothing.
#[derive(Debug)]
pub enum Wrong {
    /// It is not what the format says.
    Unreadable(serde_json::Error),
    /// It reports an error: in itself, or in this part of it.
    Reports(Option<Vec<u8>>),
    /// Anything else.
    Failed(ProviderError),
}

impl From<serde_json::Error> for Wrong {
    fn from(error: serde_json::Error) -> Wrong {
        Wrong::Unreadable(error)
    }
}

/// What events say.
pub trait Format: Default {
    /// Reads the JSON of an event, or of a whole answer, and appends what it says. When it is not readable nothing has
    /// happened: it may come again, mended.
    ///
    /// # Errors
    /// See [`Wrong`].
    fn read(&mut self, json: &[u8], out: &mut Vec<Delta>) -> Result<(), Wrong>;

    /// Whether an event's data is a mark of the end instead of JSON.
    fn is_last(&mut self, _data: &[u8], _out: &mut Vec<Delta>) -> bool {
        false
    }

    /// How much of an end has come.
    fn end(&self) -> End;

    /// The body has ended. Of one that was no stream the deltas stand from `whole` on.
    fn close(&mut self, _whole: Option<usize>, _out: &mut Vec<Delta>) {}
}

impl<F: Format> Decoding<F> {
    /// A decoder for one answer. `secret` is the API key that was sent, so that an error text never shows it.
    pub fn new(secret: Option<&str>) -> Decoding<F> {
        let secret = secret.map(str::to_owned);
        let reading = Reading { format: F::default(), halves: Halves::default(), secret, events: 0 };
        Decoding { body: Body::default(), reading }
    }

    /// Takes the next bytes of the body and appends what they say to `out`.
    ///
    /// # Errors
    /// An error that the stream reports, an event that is not JSON, or one over [`sse::EVENT_BYTES`].
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<Delta>) -> Result<(), ProviderError> {
        let (reading, from) = (&mut self.reading, out.len());
        let pushed = self.body.push(bytes, &mut |event| reading.event(event, out));
        reading.halves.settle(out, from);
        pushed
    }

    /// Events that have come.
    pub fn events(&self) -> u64 {
        self.reading.events
    }

    /// Whether the last event has come: what follows is not read, and the end of the body need not be waited for.
    pub fn is_done(&self) -> bool {
        self.reading.format.end() == End::Done
    }

    /// The body has ended, broken off or fallen silent.
    ///
    /// # Errors
    /// As for [`push`](Decoding::push); and `server_error` when the answer is not complete.
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

impl<F: Format> Reading<F> {
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

    /// Some servers cut a character in half between two events: bytes become replacement characters, units wait for their
    /// other half.
    fn read(&mut self, json: &[u8], out: &mut Vec<Delta>) -> Result<(), ProviderError> {
        self.halves.look(json);
        let mut read = self.format.read(json, out);
        if matches!(read, Err(Wrong::Unreadable(_)))
            && let Some(mended) = halves::mended(&String::from_utf8_lossy(json), json)
        {
            read = self.format.read(mended.as_bytes(), out);
        }
        read.map_err(|wrong| match wrong {
            Wrong::Unreadable(error) => ProviderError::malformed(&error),
            Wrong::Reports(part) => self.reported(part.as_deref().unwrap_or(json)),
            Wrong::Failed(error) => error,
        })
    }

    fn reported(&self, body: &[u8]) -> ProviderError {
        ProviderError::in_stream(body, self.secret.as_deref().as_slice())
    }
}
