//! `reasoning_details` (OpenRouter): reasoning that a model needs back. A stream sends it in pieces. Pieces
//! of one text are joined, and everything else stays unchanged.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::Delta;
use crate::literal::Literal;
use bobbin_definitions::definitions::opaque::Opaque;

/// Maximum members of one detail. Larger details are dropped.
const MEMBERS: usize = 64;

/// The details so far.
#[derive(Debug, Default)]
pub struct Details(Vec<Detail>);

/// The members of one detail, in their order.
#[derive(Debug)]
struct Detail(Vec<(String, Value)>);

#[derive(Debug)]
enum Value {
    Raw(String),
    Text(Literal),
}

impl Details {
    /// Reads the details of one chunk, or of a whole response. Anything but a list of objects is ignored.
    pub fn take(&mut self, details: &Option<&RawValue>) {
        let Some(raw) = details else { return };
        let details = bobbin_definitions::json::from_str::<Vec<Members<'_>>>(raw.get()).unwrap_or_default();
        for members in details.into_iter().filter(|members| members.0.len() <= MEMBERS) {
            match self.0.last_mut().filter(|last| last.continues_with(&members)) {
                Some(last) => last.add(members),
                None => {
                    let mut detail = Detail(Vec::new());
                    detail.add(members);
                    self.0.push(detail);
                }
            }
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Passes on the details, once the response is complete.
    pub fn hand_over(&mut self, out: &mut Vec<Delta>) {
        let details = self.0.drain(..).filter_map(|detail| Opaque::parse(detail.json()));
        out.extend(details.map(Delta::Payload));
    }
}

impl Detail {
    /// Whether a piece continues the same text.
    fn continues_with(&self, piece: &Members<'_>) -> bool {
        let same = |key: &str| piece.get(key).is_some() && piece.get(key) == self.raw(key);
        let is_text = matches!(piece.get("type"), Some("\"reasoning.text\"" | "\"reasoning.summary\""));
        is_text && same("type") && same("index")
    }

    fn raw(&self, key: &str) -> Option<&str> {
        self.0.iter().find_map(|(name, value)| match value {
            Value::Raw(raw) if name == key => Some(raw.as_str()),
            _ => None,
        })
    }

    fn add(&mut self, members: Members<'_>) {
        for (key, raw) in members.0 {
            let count = self.0.len();
            let at = self.0.iter().position(|(name, _)| *name == key);
            match at.and_then(|at| self.0.get_mut(at)) {
                Some((_, Value::Text(text))) => text.push(raw),
                Some((_, Value::Raw(known))) if known == "null" => raw.get().clone_into(known),
                // A repetition.
                Some(_) => {}
                None if count == MEMBERS => {}
                None => {
                    let is_text = matches!(&*key, "text" | "summary") && raw.get().starts_with('"');
                    let value = if is_text {
                        let mut text = Literal::default();
                        text.push(raw);
                        Value::Text(text)
                    } else {
                        Value::Raw(raw.get().to_owned())
                    };
                    self.0.push((key.into_owned(), value));
                }
            }
        }
    }

    fn json(&self) -> String {
        let mut out = String::from("{");
        for (at, (key, value)) in self.0.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            out.push_str(&serde_json::Value::from(key.as_str()).to_string());
            out.push(':');
            match value {
                Value::Raw(raw) => out.push_str(raw),
                Value::Text(text) => text.write(&mut out),
            }
        }
        out.push('}');
        out
    }
}

/// An object's members in their order, not parsed further.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl Members<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, raw)| raw.get())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(crate::lenient::Text(key)) = map.next_key()? {
                    members.push((key, map.next_value()?));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(chunks: &[&str]) -> Vec<String> {
        let mut details = Details::default();
        for chunk in chunks {
            details.take(&Some(bobbin_definitions::json::from_str(chunk).unwrap()));
        }
        let mut out = Vec::new();
        details.hand_over(&mut out);
        let text = |delta| match delta {
            Delta::Payload(block) => block.get().to_owned(),
            other => panic!("{other:?}"),
        };
        out.into_iter().map(text).collect()
    }

    #[test]
    fn pieces_of_a_text_become_one_and_all_else_stays() {
        for (what, chunks, expected) in [
            (
                "a text in pieces, then its signature",
                &[
                    r#"[{"type":"reasoning.text","text":"Hm\u00e9\ud83e","signature":null,"index":0}]"#,
                    r#"[{"type":"reasoning.text","text":"\uddf5.","index":0}]"#,
                    r#"[{"type":"reasoning.text","signature":"Es/+8=","index":0}]"#,
                ][..],
                &[
                    r#"{"type":"reasoning.text","text":"Hm\u00e9\ud83e\uddf5.","signature":"Es/+8=","index":0}"#,
                ][..],
            ),
            (
                "encrypted ones are never put together",
                &[
                    r#"[{"type":"reasoning.encrypted","data":"a","index":0},{"type":"reasoning.encrypted","data":"b","index":0}]"#,
                ],
                &[
                    r#"{"type":"reasoning.encrypted","data":"a","index":0}"#,
                    r#"{"type":"reasoning.encrypted","data":"b","index":0}"#,
                ],
            ),
            (
                "another index, and none",
                &[
                    r#"[{"type":"reasoning.text","text":"a","index":0},{"type":"reasoning.text","text":"b","index":1}]"#,
                    r#"[{"type":"reasoning.text","text":"c"},{"type":"reasoning.text","text":"d"}]"#,
                ],
                &[
                    r#"{"type":"reasoning.text","text":"a","index":0}"#,
                    r#"{"type":"reasoning.text","text":"b","index":1}"#,
                    r#"{"type":"reasoning.text","text":"c"}"#,
                    r#"{"type":"reasoning.text","text":"d"}"#,
                ],
            ),
            (
                "numbers and spaces as they were",
                &[r#"[{"x": 1.50 , "y":[1, 2]}]"#],
                &[r#"{"x":1.50,"y":[1, 2]}"#],
            ),
            ("no list", &["\"x\"", "null", "[1]"], &[]),
        ] {
            assert_eq!(kept(chunks), expected, "{what}");
        }
    }
}
