//! Assigns the pieces of a stream to tool calls. In the standard every piece has the call's `index`, and the
//! first one its id and name. Servers differ: some omit the index, use index 0 for every call, repeat id and
//! name in every piece, send the name in pieces, create a new id for each piece, or send whole calls in one
//! piece.

use crate::Delta;
use crate::openai::chunk::Call;
use bobbin_definitions::definitions::opaque::Opaque;
use bobbin_definitions::limits::CALLS_PER_REPLY;

/// The calls so far, in the order of their first piece.
#[derive(Debug, Default)]
pub struct CallAssembler(Vec<Slot>);

#[derive(Debug)]
struct Slot {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: Scan,
}

impl CallAssembler {
    /// Whether there are none so far.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads the calls of one chunk.
    pub(super) fn take(&mut self, calls: &[Call<'_>], out: &mut Vec<Delta>) {
        let before = self.0.len();
        for call in calls {
            self.piece(call, before, out);
        }
    }

    /// Reads one piece. `before` is the number of calls before this chunk: without an index, a piece with a
    /// name never continues a call of the same chunk.
    fn piece(&mut self, call: &Call<'_>, before: usize, out: &mut Vec<Delta>) {
        // One call above the limit was passed on, which makes the engine refuse the reply.
        if self.0.len() > CALLS_PER_REPLY {
            return;
        }
        let known = match call.index.0 {
            Some(index) => self.0.iter().rposition(|slot| slot.index == Some(index)),
            None if call.id.is_empty() => self.0.len().checked_sub(1),
            None => self.0.iter().rposition(|slot| slot.id == *call.id.0).or(if call.name().is_empty() {
                self.0.len().checked_sub(1)
            } else {
                None
            }),
        };
        let goes_on = |at: usize| {
            let same_chunk = call.index.0.is_none() && at >= before;
            self.0.get(at).is_some_and(|slot| slot.takes(call, same_chunk))
        };
        let place = match known.filter(|at| goes_on(*at)) {
            Some(place) => place,
            None => {
                self.0.push(Slot {
                    index: call.index.0,
                    id: String::new(),
                    name: String::new(),
                    arguments: Scan::default(),
                });
                self.0.len() - 1
            }
        };
        let Some(slot) = self.0.get_mut(place) else { return };
        let id = if slot.id.is_empty() { &*call.id.0 } else { "" };
        let name = slot.rest_of_name(call.name());
        if known != Some(place) || !id.is_empty() || !name.is_empty() {
            slot.id.push_str(id);
            slot.name.push_str(name);
            out.push(Delta::CallStart { index: place, id: id.to_owned(), name: slot.name.clone() });
        }
        let arguments = call.arguments();
        if !arguments.is_empty() {
            slot.arguments.feed(&arguments);
            out.push(Delta::CallArguments { index: place, text: arguments.into_owned() });
        }
        if let Some(extra) = call.extra_content.filter(|extra| extra.get() != "null") {
            out.push(Delta::CallExtra { index: place, extra: Opaque::new(extra) });
        }
    }
}

impl Slot {
    /// Whether a piece with this call's index or id continues it, and does not start another call.
    fn takes(&self, call: &Call<'_>, same_chunk: bool) -> bool {
        if call.name().is_empty() || self.name.is_empty() {
            return true;
        }
        let other_id = !call.id.is_empty() && *call.id.0 != *self.id;
        let other_name = call.name() != self.name;
        match self.arguments.state() {
            _ if same_chunk => false,
            // The arguments are incomplete: the name is repeated, perhaps with a new id, or continued.
            State::Open => !other_id || !other_name,
            State::Nothing => !other_id,
            // More arguments would belong to another call, even with the same id.
            State::Complete => !other_id && !other_name && call.arguments().trim().is_empty(),
        }
    }

    /// The part of the name that a piece adds: nothing if it repeats the name, otherwise what follows it.
    fn rest_of_name<'a>(&self, piece: &'a str) -> &'a str {
        piece.strip_prefix(self.name.as_str()).unwrap_or(piece)
    }
}

/// Follows the brackets of a JSON text that arrives in pieces, to see whether it is complete.
#[derive(Debug, Default)]
struct Scan {
    depth: usize,
    in_string: bool,
    escaped: bool,
    seen: bool,
}

enum State {
    Nothing,
    Open,
    Complete,
}

impl Scan {
    fn feed(&mut self, text: &str) {
        for byte in text.bytes() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                b' ' | b'\t' | b'\r' | b'\n' => continue,
                _ => {}
            }
            self.seen = true;
        }
    }

    fn state(&self) -> State {
        match (self.seen, self.depth, self.in_string) {
            (false, ..) => State::Nothing,
            (true, 0, false) => State::Complete,
            _ => State::Open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lenient::List;

    /// The calls that the chunks amount to. Each chunk is the JSON of a `tool_calls` list.
    fn fold(chunks: &[&str]) -> Vec<(String, String, String)> {
        let mut calls = CallAssembler::default();
        let mut out = Vec::new();
        for chunk in chunks {
            calls.take(&bobbin_definitions::json::from_str::<List<Call<'_>>>(chunk).unwrap().0, &mut out);
        }
        let mut folded: Vec<(String, String, String)> = Vec::new();
        for delta in out {
            match delta {
                Delta::CallStart { index, id, name } => {
                    if index == folded.len() {
                        folded.push(Default::default());
                    }
                    folded[index].0.push_str(&id);
                    folded[index].1 = name;
                }
                Delta::CallArguments { index, text } => folded[index].2.push_str(&text),
                other => panic!("{other:?}"),
            }
        }
        folded
    }

    /// The peculiarity, the chunks, and the resulting calls: id, name, arguments.
    type Case<'a> = (&'a str, &'a [&'a str], &'a [(&'a str, &'a str, &'a str)]);

    #[test]
    fn servers_that_differ() {
        let one = ("a", "f", r#"{"x":1}"#);
        let two = ("b", "g", r#"{"y":"}"}"#);
        let cases: &[Case<'_>] = &[
            (
                "by the book, interleaved",
                &[
                    r#"[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]"#,
                    r#"[{"index":1,"id":"b","function":{"name":"g","arguments":"{\"y\":"}}]"#,
                    r#"[{"index":0,"function":{"arguments":"{\"x\":"}}]"#,
                    r#"[{"index":1,"function":{"arguments":"\"}\"}"}},{"index":0,"function":{"arguments":"1}"}}]"#,
                ],
                &[one, two],
            ),
            (
                "whole calls in one chunk, no index",
                &[
                    r#"[{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}},{"id":"b","function":{"name":"g","arguments":"{\"y\":\"}\"}"}}]"#,
                ],
                &[one, two],
            ),
            (
                "whole calls, every index 0",
                &[
                    r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]"#,
                    r#"[{"index":0,"id":"b","function":{"name":"g","arguments":"{\"y\":\"}\"}"}}]"#,
                ],
                &[one, two],
            ),
            (
                "the same, without arguments",
                &[
                    r#"[{"index":0,"id":"a","function":{"name":"f"}}]"#,
                    r#"[{"index":0,"id":"b","function":{"name":"f"}}]"#,
                ],
                &[("a", "f", ""), ("b", "f", "")],
            ),
            (
                "whole calls, every index 0, no ids",
                &[
                    r#"[{"index":0,"id":"","function":{"name":"f","arguments":"{\"x\":1}"}},{"index":0,"function":{"name":"f","arguments":"{\"x\":2}"}}]"#,
                ],
                &[("", "f", r#"{"x":1}"#), ("", "f", r#"{"x":2}"#)],
            ),
            (
                "no index, no id, no arguments, twice in a chunk",
                &[r#"[{"function":{"name":"f"}},{"function":{"name":"f"}}]"#],
                &[("", "f", ""), ("", "f", "")],
            ),
            (
                "id and name repeated",
                &[
                    r#"[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]"#,
                    r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]"#,
                    r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"1}"}}]"#,
                ],
                &[one],
            ),
            (
                "the name in pieces, before the arguments and with them",
                &[
                    r#"[{"index":0,"id":"a","function":{"name":"fu","arguments":""}}]"#,
                    r#"[{"index":0,"id":"a","function":{"name":"nct","arguments":"{\"x\":"}}]"#,
                    r#"[{"index":0,"function":{"name":"ion","arguments":"1}"}}]"#,
                    r#"[{"index":1,"id":"b","function":{"name":"pa"}}]"#,
                    r#"[{"index":1,"id":"b","function":{"name":"papa","arguments":"{}"}}]"#,
                ],
                &[("a", "function", r#"{"x":1}"#), ("b", "papa", "{}")],
            ),
            (
                "another name and id at the same index, behind arguments that were cut off",
                &[
                    r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]"#,
                    r#"[{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}]"#,
                ],
                &[("a", "f", r#"{"x":"#), ("b", "g", "{}")],
            ),
            (
                "another name behind complete arguments, no ids",
                &[
                    r#"[{"index":0,"function":{"name":"f","arguments":"{\"x\":1}"}}]"#,
                    r#"[{"index":0,"function":{"name":"g"}}]"#,
                ],
                &[("", "f", r#"{"x":1}"#), ("", "g", "")],
            ),
            (
                "id and name repeated at the end",
                &[
                    r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]"#,
                    r#"[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]"#,
                ],
                &[one],
            ),
            (
                "whole calls that share one id",
                &[
                    r#"[{"id":"f","function":{"name":"f","arguments":"{\"x\":1}"}},{"id":"f","function":{"name":"f","arguments":"{\"x\":2}"}}]"#,
                    r#"[{"id":"f","function":{"name":"f","arguments":"{\"x\":3}"}}]"#,
                ],
                &[("f", "f", r#"{"x":1}"#), ("f", "f", r#"{"x":2}"#), ("f", "f", r#"{"x":3}"#)],
            ),
            (
                "a new id and the name in every piece",
                &[
                    r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]"#,
                    r#"[{"index":0,"id":"r2","function":{"name":"f","arguments":"\"x\":1}"}}]"#,
                ],
                &[one],
            ),
            (
                "a new id in every piece, no name",
                &[
                    r#"[{"index":0,"id":"a","function":{"name":"f"}}]"#,
                    r#"[{"index":0,"id":"r1","function":{"name":null,"arguments":"{\"x\":1}"}}]"#,
                ],
                &[one],
            ),
            (
                "the name repeated where a bracket in a string looks like the end",
                &[
                    r#"[{"index":0,"function":{"name":"f","arguments":"{\"x\":\"\\\"}"}}]"#,
                    r#"[{"index":0,"function":{"name":"f","arguments":"\"}"}}]"#,
                ],
                &[("", "f", r#"{"x":"\"}"}"#)],
            ),
            (
                "no index, told apart by id",
                &[
                    r#"[{"id":"a","function":{"name":"f","arguments":"{\"x\""}}]"#,
                    r#"[{"id":"b","function":{"name":"g","arguments":"{\"y\":"}}]"#,
                    r#"[{"id":"a","function":{"arguments":":1}"}}]"#,
                    r#"[{"id":"b","function":{"name":"g","arguments":"\"}\"}"}}]"#,
                ],
                &[one, two],
            ),
            (
                "no index, pieces go on with the last call",
                &[
                    r#"[{"id":"a","function":{"name":"f","arguments":"{\"x\""}}]"#,
                    r#"[{"function":{"arguments":":1}"}}]"#,
                    r#"[{"id":"b","function":{"name":"g"}}]"#,
                    r#"[{"function":{"arguments":"{\"y\":\"}\"}"}}]"#,
                ],
                &[one, two],
            ),
            (
                "the name comes late",
                &[
                    r#"[{"index":3,"id":"a","function":{"arguments":""}}]"#,
                    r#"[{"index":3,"function":{"name":"f","arguments":"{\"x\":1}"}}]"#,
                ],
                &[one],
            ),
            (
                "arguments as an object",
                &[
                    r#"[{"index":null,"id":"a","type":"function","function":{"name":"f","arguments":{"x":1}}}]"#,
                ],
                &[one],
            ),
            (
                "a piece without a beginning",
                &[r#"[{"index":0,"function":{"arguments":"{}"}}]"#],
                &[("", "", "{}")],
            ),
        ];
        for (what, chunks, expected) in cases {
            let folded = fold(chunks);
            let folded: Vec<_> =
                folded.iter().map(|(a, b, c)| (a.as_str(), b.as_str(), c.as_str())).collect();
            assert_eq!(folded, *expected, "{what}");
        }
    }
}
