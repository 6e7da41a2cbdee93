//! Trace contexts of runs (W3C Trace Context), and ids of their spans. Ids are derived from what they name,
//! so that a span has the same id in every export.

use std::fmt::{self, Display, Formatter};

use sha2::{Digest, Sha256};

/// The header with a trace, and the span that made the request.
pub const TRACEPARENT: &str = "traceparent";
/// The header with other vendors' data about a trace.
pub const TRACESTATE: &str = "tracestate";
/// Both headers, as listed by routes.
pub const HEADERS: &[&str] = &[TRACEPARENT, TRACESTATE];
/// Longest `tracestate` that is passed on, bytes; a longer one is dropped.
const STATE_BYTES: usize = 512;
/// Bytes of a trace id, a span id and flags in the header.
const IDS_BYTES: usize = 32 + 1 + 16 + 1 + 2;
/// The parent of a trace without one.
const NO_SPAN: &str = "0000000000000000";
/// The flag of a recorded trace.
const SAMPLED: u8 = 1;

/// The trace of a run: its id, the parent span, and the progress of exports.
///
/// The text, in the run's row and in envelopes: `<32 hex>-<16 hex>-<2 hex>`, then optionally `@<seq>` and
/// ` <tracestate>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    id: String,
    parent: String,
    flags: u8,
    state: Option<String>,
    /// Spans of steps before this seq were exported during the run.
    pub exported: i64,
}

impl Trace {
    /// The trace in the headers of a request; `None` if they are missing or malformed.
    pub fn of_headers(parent: Option<&str>, state: Option<&str>) -> Option<Trace> {
        let (version, rest) = parent?.trim().split_once('-')?;
        let mut trace = match version {
            "00" => Trace::ids(rest)?,
            // A later version may have more fields and other flags.
            _ if is_hex(version, 2) && version != "ff" => {
                let (known, more) = rest.split_at_checked(IDS_BYTES)?;
                let known = Trace::ids(known).filter(|_| more.is_empty() || more.starts_with('-'))?;
                Trace { flags: known.flags & SAMPLED, ..known }
            }
            _ => return None,
        };
        trace.state = state.filter(|state| passes(state)).map(str::to_owned);
        (trace.parent != NO_SPAN).then_some(trace)
    }

    /// A new trace for work without an incoming one. `share`: recorded share of traces, 0 to 1.
    pub fn begun(thread: &str, kind: &str, number: impl Display, share: f64) -> Trace {
        let digest = digest(thread, &format!("trace/{kind}"), number);
        let (id, _) = digest.split_at(16);
        let mut trace = Trace { id: hex(id), parent: NO_SPAN.to_owned(), flags: 0, state: None, exported: 0 };
        trace.flags = if trace.share() < share { SAMPLED } else { 0 };
        trace
    }

    /// Parses the text.
    pub fn parse(text: &str) -> Option<Trace> {
        let (ids, state) = match text.split_once(' ') {
            Some((ids, state)) => (ids, Some(state.to_owned())),
            None => (text, None),
        };
        let (ids, exported) = match ids.split_once('@') {
            Some((ids, seq)) => (ids, seq.parse().ok()?),
            None => (ids, 0),
        };
        Some(Trace { state, exported, ..Trace::ids(ids)? })
    }

    fn ids(text: &str) -> Option<Trace> {
        let mut parts = text.split('-');
        let (Some(id), Some(parent), Some(flags), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return None;
        };
        let named = is_hex(id, 32) && is_hex(parent, 16) && is_hex(flags, 2) && id.bytes().any(|b| b != b'0');
        named.then(|| Trace {
            id: id.to_owned(),
            parent: parent.to_owned(),
            flags: u8::from_str_radix(flags, 16).unwrap_or_default(),
            state: None,
            exported: 0,
        })
    }

    /// The id of the trace, 32 hexadecimal digits.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The parent span: 16 hexadecimal digits.
    pub fn parent(&self) -> Option<&str> {
        (self.parent != NO_SPAN).then_some(self.parent.as_str())
    }

    /// Other vendors' data.
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// Whether the trace is recorded, as a whole or not at all. Derived from the id, unless the creator of
    /// the trace decided.
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The same trace with one of its spans as the parent.
    #[must_use]
    pub fn within(&self, span: String) -> Trace {
        Trace { parent: span, exported: 0, ..self.clone() }
    }

    /// The headers of a request made in its span.
    pub fn headers(&self) -> Vec<(String, String)> {
        let parent = format!("00-{}-{}-{:02x}", self.id, self.parent, self.flags);
        let mut headers = vec![(TRACEPARENT.to_owned(), parent)];
        headers.extend(self.state.clone().map(|state| (TRACESTATE.to_owned(), state)));
        headers
    }

    /// The position of its id among all ids, from 0 to 1. Uses the part of the id that other systems make at
    /// random, too.
    fn share(&self) -> f64 {
        let low = self.id.get(18..).and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or(0);
        low as f64 / (1_u64 << 56) as f64
    }
}

impl Display for Trace {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{:02x}", self.id, self.parent, self.flags)?;
        if self.exported > 0 {
            write!(f, "@{}", self.exported)?;
        }
        self.state.as_ref().map_or(Ok(()), |state| write!(f, " {state}"))
    }
}

/// The id of a span: the first 8 bytes of SHA-256 over `<thread>/<kind>/<number>`, in hexadecimal.
pub fn span_id(thread: &str, kind: &str, number: impl Display) -> String {
    let digest = digest(thread, kind, number);
    hex(digest.split_at(8).0)
}

fn digest(thread: &str, kind: &str, number: impl Display) -> [u8; 32] {
    Sha256::digest(format!("{thread}/{kind}/{number}")).into()
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(u32::from(digit), 16)).collect()
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn passes(state: &str) -> bool {
    !state.is_empty()
        && state.len() <= STATE_BYTES
        && state.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_header_that_is_well_formed_names_a_trace() {
        let trace = Trace::of_headers(Some(HEADER), Some("a=1,b=2")).unwrap();
        assert_eq!((trace.id(), trace.parent()), (&HEADER[3..35], Some(&HEADER[36..52])));
        assert!(trace.is_sampled());
        let headers = trace.within("00000000000000aa".into()).headers();
        assert_eq!(headers[0].1, "00-4bf92f3577b34da6a3ce929d0e0e4736-00000000000000aa-01");
        assert_eq!(headers[1], ("tracestate".into(), "a=1,b=2".into()));
        assert!(!Trace::of_headers(Some(&HEADER.replace("-01", "-00")), None).unwrap().is_sampled());
        // A later version: only the common fields are read.
        for later in [HEADER.replacen("00-", "01-", 1), format!("{}-more", HEADER.replacen("00-", "cc-", 1))]
        {
            assert_eq!(Trace::of_headers(Some(&later), Some("a=1,b=2")).as_ref(), Some(&trace), "{later}");
        }
    }

    #[test]
    fn a_malformed_header_names_none() {
        for wrong in [
            "",
            "00",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b-01",
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.x",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(Trace::of_headers(Some(wrong), None), None, "{wrong}");
        }
        for state in ["", &"x".repeat(513), "a=\u{e9}", "a=\n"] {
            assert_eq!(Trace::of_headers(Some(HEADER), Some(state)).unwrap().state(), None, "{state:?}");
        }
    }

    #[test]
    fn its_text_says_all_of_it() {
        let plain = Trace::begun("t", "run", 1, 1.0);
        assert_eq!(Trace::parse(&plain.to_string()), Some(plain.clone()));
        assert_eq!((plain.parent(), plain.is_sampled()), (None, true));
        let full = Trace { exported: 77, ..Trace::of_headers(Some(HEADER), Some("a=1 2,b@3")).unwrap() };
        assert_eq!(Trace::parse(&full.to_string()), Some(full));
        assert_eq!(Trace::parse("x"), None);
    }

    #[test]
    fn a_share_of_the_traces_is_recorded_and_ids_are_the_same_again() {
        let sampled = |share| (0..1_000).filter(|n| Trace::begun("t", "run", n, share).is_sampled()).count();
        assert_eq!((sampled(0.0), sampled(1.0)), (0, 1_000));
        assert!((400..600).contains(&sampled(0.5)), "{}", sampled(0.5));
        assert_eq!(span_id("t", "call", 7), span_id("t", "call", 7));
        assert_ne!(span_id("t", "call", 7), span_id("t", "step", 7));
        assert_eq!(span_id("t", "call", 7).len(), 16);
    }
}
