//! The body of a response: a stream of events, or one JSON value from a server that ignores `stream` or
//! received a request without it. The first byte decides: no server-sent event begins with a brace, or
//! with the `<` of a web page.

use crate::{ProviderError, sse};

/// The kind of a body, as far as it is known.
#[derive(Debug)]
pub(crate) enum Body {
    /// Only white space so far. The decoder received it, because it may need the byte order mark.
    Unknown(sse::Decoder),
    Stream(sse::Decoder),
    Whole(Vec<u8>),
    /// A web page; the rest is not read.
    Page,
}

impl Default for Body {
    fn default() -> Body {
        Body::Unknown(sse::Decoder::default())
    }
}

impl Body {
    /// Reads the next bytes, and passes on the events that they complete.
    pub(crate) fn push(
        &mut self,
        bytes: &[u8],
        on_event: &mut impl FnMut(sse::Event<'_>) -> Result<(), ProviderError>,
    ) -> Result<(), ProviderError> {
        if let Body::Unknown(sse) = self {
            let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0xEF | 0xBB | 0xBF);
            match bytes.iter().position(|byte| !blank(byte)) {
                Some(start) if bytes.get(start) == Some(&b'{') => {
                    let (_, json) = bytes.split_at(start);
                    *self = Body::Whole(json.to_vec());
                    return Ok(());
                }
                Some(start) if bytes.get(start) == Some(&b'<') => *self = Body::Page,
                Some(_) => *self = Body::Stream(std::mem::take(sse)),
                None => {}
            }
        }
        match self {
            Body::Page => Err(ProviderError::no_answer(true)),
            Body::Unknown(sse) | Body::Stream(sse) => sse.push(bytes, on_event),
            Body::Whole(whole) if whole.len() + bytes.len() > sse::EVENT_BYTES => Err(sse::TooLarge.into()),
            Body::Whole(whole) => {
                whole.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// Ends the body: passes on what was incomplete, and returns the JSON of a body that is not a
    /// stream.
    pub(crate) fn finish(
        &mut self,
        on_event: &mut impl FnMut(sse::Event<'_>) -> Result<(), ProviderError>,
    ) -> Result<Option<&[u8]>, ProviderError> {
        match self {
            Body::Page => Err(ProviderError::no_answer(true)),
            Body::Unknown(sse) | Body::Stream(sse) => {
                // Half a chunk is not a malformed chunk: the connection broke in the middle of it.
                sse.finish(&mut |event| match on_event(event) {
                    Err(_) if event.name != "error" && !is_json(event.data) => {
                        Err(ProviderError::broke_off())
                    }
                    result => result,
                })?;
                Ok(None)
            }
            Body::Whole(whole) if is_json(whole) => Ok(Some(whole)),
            Body::Whole(_) => Err(ProviderError::broke_off()),
        }
    }
}

fn is_json(bytes: &[u8]) -> bool {
    bobbin_definitions::json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}
