//! Finds the line and column of a field in a file, for editors and terminals.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};

/// A line and a column, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: u64,
    pub(crate) column: u64,
}

/// The place of a field such as `tools[1].name` in a file's text. For a missing field, the place of the
/// nearest enclosing value. `None` if the text cannot be parsed.
pub(crate) fn of(path: &str, text: &str, field: &str) -> Option<Place> {
    // Front matter begins on the second line and ends at the next `---`.
    let (yaml, before) = match path.ends_with(".md") {
        true => (text.strip_prefix("---\n")?.split_once("\n---").map(|(yaml, _)| yaml)?, 1),
        false => (text, 0),
    };
    let options = serde_saphyr::options! { with_snippet: false };
    let root: Spanned<Node> = serde_saphyr::from_str_with_options(yaml, options).ok()?;
    let at = found(&root.value, field).unwrap_or(root.referenced);
    (at.line() > 0).then(|| Place { line: at.line() + before, column: at.column().max(1) })
}

/// The location of the deepest existing step of the field's path. `None` if its first step does not exist.
fn found(mut node: &Node, field: &str) -> Option<Location> {
    let (mut rest, mut place) = (field, None);
    while !rest.is_empty() {
        let (at, value, after) = match node {
            Node::Map(entries) => {
                // A name may contain dots. Use the longest that matches.
                let fits = |(name, _): &&(Spanned<String>, Spanned<Node>)| {
                    let after = rest.strip_prefix(name.value.as_str());
                    after.is_some_and(|after| after.is_empty() || after.starts_with(['.', '[']))
                };
                let Some((name, value)) =
                    entries.iter().filter(fits).max_by_key(|(name, _)| name.value.len())
                else {
                    break;
                };
                (name.referenced, value, rest.get(name.value.len()..))
            }
            Node::List(items) => {
                let index = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
                let item = index.and_then(|(index, _)| items.get(index.parse::<usize>().ok()?));
                let (Some((_, after)), Some(item)) = (index, item) else { break };
                (item.referenced, item, Some(after))
            }
            Node::Leaf => break,
        };
        place = Some(at);
        node = &value.value;
        rest = after.unwrap_or_default().trim_start_matches('.');
    }
    place
}

/// A parsed value, of which only the locations are used.
enum Node {
    Map(Vec<(Spanned<String>, Spanned<Node>)>),
    List(Vec<Spanned<Node>>),
    Leaf,
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        struct AnyNode;
        impl<'de> Visitor<'de> for AnyNode {
            type Value = Node;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a value")
            }
            fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
                Ok(Node::Leaf)
            }
            fn visit_i64<E>(self, _: i64) -> Result<Node, E> {
                Ok(Node::Leaf)
            }
            fn visit_u64<E>(self, _: u64) -> Result<Node, E> {
                Ok(Node::Leaf)
            }
            fn visit_f64<E>(self, _: f64) -> Result<Node, E> {
                Ok(Node::Leaf)
            }
            fn visit_str<E>(self, _: &str) -> Result<Node, E> {
                Ok(Node::Leaf)
            }
            fn visit_unit<E>(self) -> Result<Node, E> {
                Ok(Node::Leaf)
            }
            fn visit_none<E>(self) -> Result<Node, E> {
                Ok(Node::Leaf)
            }
            fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
                Node::deserialize(deserializer)
            }
            fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
                IgnoredAny::deserialize(deserializer).map(|_| Node::Leaf)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(Node::List(items))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Node::Map(entries))
            }
        }
        deserializer.deserialize_any(AnyNode)
    }
}
