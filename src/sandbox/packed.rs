//! The encoding of values between a thread and the isolate Worker (docs/run-code.md, The wire): a JSON text,
//! which is one flat table however deep the value is, and the bytes of binary values beside it. Data from a
//! sandbox is untrusted until it is parsed.

use std::collections::BTreeSet;
use std::fmt;

use bytes::Bytes;
use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde_json::Value as Json;

use crate::json;
use crate::sandbox::room::SizeAllowance;
use crate::sandbox::surrogates::paired;
use crate::sandbox::value::{BinaryKind, Exception, Function, Value};

/// Maximum nesting of a value from a sandbox, because readers here may recurse.
const DEPTH: usize = 200;

/// An encoded value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EncodedValue {
    /// The table: `[root, node 1, node 2, …]`.
    pub text: String,
    /// Contents of binary values.
    pub bytes: Vec<Bytes>,
}

impl EncodedValue {
    /// Encoded size in bytes.
    pub(super) fn size(&self) -> usize {
        self.text.len() + self.bytes.iter().map(Bytes::len).sum::<usize>()
    }

    /// An error with a message.
    pub fn error(message: &str) -> EncodedValue {
        pack_error(&Exception::new(message))
    }
}

/// Encodes a value; `give` assigns ids to its functions.
///
/// # Errors
/// `SerializationError` when it is too large.
pub(crate) fn pack(
    value: &Value,
    give: &mut dyn FnMut(&Function) -> usize,
) -> Result<EncodedValue, Exception> {
    let mut packer =
        Packer { nodes: vec![Json::Null], bytes: Vec::new(), give, room: SizeAllowance::default() };
    let root = packer.slot(value)?;
    if let Some(first) = packer.nodes.first_mut() {
        *first = root;
    }
    Ok(EncodedValue { text: Json::Array(packer.nodes).to_string(), bytes: packer.bytes })
}

struct Packer<'a> {
    nodes: Vec<Json>,
    bytes: Vec<Bytes>,
    give: &'a mut dyn FnMut(&Function) -> usize,
    room: SizeAllowance,
}

impl Packer<'_> {
    fn slot(&mut self, value: &Value) -> Result<Json, Exception> {
        self.room.take(match value {
            Value::String(text) | Value::BigInt(text) => text.len(),
            Value::RegExp { source, flags } => source.len() + flags.len(),
            Value::Error(thrown) => thrown.name.len() + thrown.message.len() + thrown.stack.len(),
            _ => 0,
        })?;
        let node = match value {
            Value::Undefined => return Ok(json!(["u"])),
            Value::Null => return Ok(Json::Null),
            Value::Bool(value) => return Ok(Json::Bool(*value)),
            Value::Number(value) => return Ok(number(*value)),
            Value::BigInt(digits) => return Ok(json!(["i", digits])),
            Value::String(text) => return Ok(Json::String(text.clone())),
            Value::Array(items) => json!(["a", self.slots(items)?]),
            Value::Object(fields) => json!(["o", self.fields(fields)?]),
            Value::Map(entries) => {
                let mut slots = Vec::with_capacity(2 * entries.len());
                for (key, value) in entries {
                    slots.extend([self.slot(key)?, self.slot(value)?]);
                }
                json!(["m", slots])
            }
            Value::Set(items) => json!(["s", self.slots(items)?]),
            Value::Date(at) => json!(["d", at]),
            Value::RegExp { source, flags } => json!(["x", source, flags]),
            Value::Error(thrown) => error_node(thrown),
            Value::Binary(kind, bytes) => {
                self.room.take_raw(bytes.len())?;
                self.bytes.push(bytes.clone());
                json!(["b", kind.as_str(), self.bytes.len() - 1])
            }
            Value::Function(function) => json!(["f", (self.give)(function), function.name()]),
        };
        self.nodes.push(node);
        Ok(json!([self.nodes.len() - 1]))
    }

    fn slots(&mut self, items: &[Value]) -> Result<Vec<Json>, Exception> {
        items.iter().map(|item| self.slot(item)).collect()
    }

    fn fields(&mut self, fields: &[(String, Value)]) -> Result<Vec<Json>, Exception> {
        let mut slots = Vec::with_capacity(2 * fields.len());
        for (key, value) in fields {
            self.room.take(key.len())?;
            slots.extend([Json::String(key.clone()), self.slot(value)?]);
        }
        Ok(slots)
    }
}

fn error_node(thrown: &Exception) -> Json {
    json!(["e", thrown.name, thrown.message, thrown.stack])
}

/// Encodes an error.
pub(super) fn pack_error(thrown: &Exception) -> EncodedValue {
    EncodedValue { text: json!([[1], error_node(thrown)]).to_string(), bytes: Vec::new() }
}

fn number(value: f64) -> Json {
    if value == 0.0 && value.is_sign_negative() {
        return json!(["n", "-0"]);
    }
    if value.is_finite() {
        return json!(value);
    }
    json!([
        "n",
        if value.is_nan() {
            "NaN"
        } else if value > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        }
    ])
}

/// Decodes a value from the other side. `function` creates a proxy for a function there. Several values may
/// share `room`.
///
/// # Errors
/// `SerializationError` when it contains itself, is too deep or too large for this side, or is malformed.
pub(crate) fn unpack(
    packed: &EncodedValue,
    room: &SizeAllowance,
    function: &dyn Fn(u64, &str) -> Function,
) -> Result<Value, Exception> {
    let table = table(&paired(&packed.text))?;
    let root = table.first().ok_or_else(|| forged("the table"))?;
    let mut reader = Reader { table: &table, bytes: &packed.bytes, function, open: BTreeSet::new(), room };
    reader.slot(root)
}

/// Decodes an error, or any other thrown value.
pub(super) fn unpack_error(packed: &EncodedValue) -> Exception {
    let absent = |_: u64, name: &str| Function::new(name, |_| Box::pin(async { Ok(Value::Undefined) }));
    match unpack(packed, &SizeAllowance::default(), &absent) {
        Ok(Value::Error(thrown)) => thrown,
        Ok(other) => Exception::new(match other.to_json() {
            Some(Json::String(text)) => text,
            Some(json) => json.to_string(),
            None => "undefined".to_owned(),
        }),
        Err(error) => error,
    }
}

fn forged(what: &str) -> Exception {
    Exception::unserializable(format!("A value from the sandbox cannot be read: {what} is malformed."))
}

/// A part of the table, as parsed JSON.
enum Part {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    /// A list of one number: a reference, in the position of a value.
    Only(f64),
    List(Vec<Part>),
}

/// Parses the table. It is refused before it takes more memory than a value may have.
fn table(text: &str) -> Result<Vec<Part>, Exception> {
    let room = SizeAllowance::default();
    let mut json = serde_json::Deserializer::from_str(text);
    let read = Parts(&room).deserialize(&mut json);
    match read.and_then(|part| json.end().map(|()| part)) {
        Ok(Part::List(table)) => Ok(table),
        Ok(Part::Only(number)) => Ok(vec![Part::Number(number)]),
        Ok(_) => Err(forged("the table")),
        Err(_) if room.spent() => room.take(0).and(Err(forged("the table"))),
        Err(_) => Err(forged("the table")),
    }
}

struct Parts<'a>(&'a SizeAllowance);

impl<'de> DeserializeSeed<'de> for Parts<'_> {
    type Value = Part;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Part, D::Error> {
        from.deserialize_any(self)
    }
}

impl Parts<'_> {
    fn part<E: serde::de::Error>(&self, text: usize, part: Part) -> Result<Part, E> {
        self.0.take(text).map_err(E::custom)?;
        Ok(part)
    }
}

impl<'de> Visitor<'de> for Parts<'_> {
    type Value = Part;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a part of a packed value")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Part, E> {
        self.part(0, Part::Null)
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Part, E> {
        self.part(0, Part::Bool(value))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Part, E> {
        self.part(0, Part::Number(value as f64))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Part, E> {
        self.part(0, Part::Number(value as f64))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Part, E> {
        self.part(0, Part::Number(value))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Part, E> {
        self.0.take(text.len()).map_err(E::custom)?;
        Ok(Part::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Part, A::Error> {
        let mut list = match parts.next_element_seed(Parts(self.0))? {
            None => return Ok(Part::List(Vec::new())),
            Some(Part::Number(number)) => match parts.next_element_seed(Parts(self.0))? {
                None => return Ok(Part::Only(number)),
                Some(second) => vec![Part::Number(number), second],
            },
            Some(first) => vec![first],
        };
        while let Some(part) = parts.next_element_seed(Parts(self.0))? {
            list.push(part);
        }
        Ok(Part::List(list))
    }
}

struct Reader<'a> {
    table: &'a [Part],
    bytes: &'a [Bytes],
    function: &'a dyn Fn(u64, &str) -> Function,
    /// Nodes that are being read, to detect cycles.
    open: BTreeSet<usize>,
    room: &'a SizeAllowance,
}

impl Reader<'_> {
    fn slot(&mut self, slot: &Part) -> Result<Value, Exception> {
        self.room.take(0)?;
        match slot {
            Part::Null => Ok(Value::Null),
            Part::Bool(value) => Ok(Value::Bool(*value)),
            Part::Number(value) => Ok(Value::Number(*value)),
            Part::Text(text) => Ok(Value::String(self.text(text)?)),
            Part::Only(id) => self.node(index(*id).ok_or_else(|| forged("a reference"))?),
            Part::List(parts) => match parts.as_slice() {
                [Part::Text(tag)] if tag == "u" || tag == "h" => Ok(Value::Undefined),
                [Part::Text(tag), Part::Text(text)] if tag == "n" => special(text),
                [Part::Text(tag), Part::Text(text)] if tag == "i" => bigint(&self.text(text)?),
                _ => Err(forged("a value")),
            },
        }
    }

    /// Copies a text. A text counts once for each occurrence in the value.
    fn text(&self, text: &str) -> Result<String, Exception> {
        self.room.take(text.len())?;
        Ok(text.to_owned())
    }

    fn node(&mut self, id: usize) -> Result<Value, Exception> {
        let table = self.table;
        let node = table.get(id).filter(|_| id > 0).ok_or_else(|| forged("a reference"))?;
        if self.open.len() >= DEPTH {
            return Err(Exception::unserializable(format!(
                "A value is nested more than {DEPTH} levels deep."
            )));
        }
        if !self.open.insert(id) {
            return Err(Exception::unserializable("A value that contains itself cannot leave the sandbox."));
        }
        let value = self.read(node);
        self.open.remove(&id);
        value
    }

    fn read(&mut self, node: &Part) -> Result<Value, Exception> {
        let parts = match node {
            Part::List(parts) => parts.as_slice(),
            _ => &[],
        };
        let [Part::Text(tag), rest @ ..] = parts else { return Err(forged("a node")) };
        Ok(match (tag.as_str(), rest) {
            ("a", [Part::Only(number)]) => Value::Array(vec![Value::Number(*number)]),
            ("s", [Part::Only(number)]) => Value::Set(vec![Value::Number(*number)]),
            ("a", [Part::List(items)]) => Value::Array(self.slots(items)?),
            ("s", [Part::List(items)]) => Value::Set(self.slots(items)?),
            ("o", [Part::List(parts)]) => Value::Object(self.fields(parts)?),
            ("m", [Part::List(parts)]) => Value::Map(self.entries(parts)?),
            ("d", [Part::Null]) => Value::Date(None),
            ("d", [Part::Number(ms)]) => Value::Date(Some(*ms)),
            ("x", [Part::Text(source), Part::Text(flags)]) => {
                Value::RegExp { source: self.text(source)?, flags: self.text(flags)? }
            }
            ("e", [Part::Text(name), Part::Text(message), Part::Text(stack), ..]) => {
                Value::Error(Exception {
                    name: self.text(name)?,
                    message: self.text(message)?,
                    stack: self.text(stack)?,
                })
            }
            ("b", [Part::Text(kind), Part::Number(at)]) => {
                let kind = BinaryKind::of(kind).ok_or_else(|| forged("a binary value"))?;
                let bytes = index(*at).and_then(|at| self.bytes.get(at));
                let bytes = bytes.ok_or_else(|| forged("a binary value"))?;
                self.room.take_raw(bytes.len())?;
                Value::Binary(kind, bytes.clone())
            }
            ("f", [Part::Number(id), Part::Text(name)]) => {
                let id = index(*id).ok_or_else(|| forged("a function"))?;
                Value::Function((self.function)(id as u64, name))
            }
            _ => return Err(forged("a node")),
        })
    }

    fn slots(&mut self, items: &[Part]) -> Result<Vec<Value>, Exception> {
        items.iter().map(|item| self.slot(item)).collect()
    }

    fn fields(&mut self, parts: &[Part]) -> Result<Vec<(String, Value)>, Exception> {
        let field = |pair: &[Part]| match pair {
            [Part::Text(key), value] => Ok((self.text(key)?, self.slot(value)?)),
            _ => Err(forged("an object")),
        };
        parts.chunks(2).map(field).collect()
    }

    fn entries(&mut self, parts: &[Part]) -> Result<Vec<(Value, Value)>, Exception> {
        let entry = |pair: &[Part]| match pair {
            [key, value] => Ok((self.slot(key)?, self.slot(value)?)),
            _ => Err(forged("a map")),
        };
        parts.chunks(2).map(entry).collect()
    }
}

fn index(number: f64) -> Option<usize> {
    const SAFE: f64 = 9_007_199_254_740_991.0;
    (number >= 0.0 && number.fract() == 0.0 && number <= SAFE).then_some(number as usize)
}

fn special(text: &str) -> Result<Value, Exception> {
    Ok(Value::Number(match text {
        "NaN" => f64::NAN,
        "Infinity" => f64::INFINITY,
        "-Infinity" => f64::NEG_INFINITY,
        "-0" => -0.0,
        _ => return Err(forged("a number")),
    }))
}

fn bigint(text: &str) -> Result<Value, Exception> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(forged("a bigint"));
    }
    Ok(Value::BigInt(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back(value: &Value) -> Value {
        let mut functions = Vec::new();
        let mut give = |function: &Function| {
            functions.push(function.clone());
            functions.len() - 1
        };
        let packed = pack(value, &mut give).unwrap();
        unpack(&packed, &SizeAllowance::default(), &|id, _| functions[id as usize].clone()).unwrap()
    }

    fn read(text: &str) -> Result<Value, Exception> {
        let packed = EncodedValue { text: text.to_owned(), bytes: vec![Bytes::from_static(b"ab")] };
        unpack(&packed, &SizeAllowance::default(), &|_, name| {
            Function::new(name, |_| Box::pin(async { Ok(Value::Undefined) }))
        })
    }

    #[test]
    fn every_kind_of_value_comes_back_as_it_was() {
        let value = Value::Object(vec![
            ("__proto__".into(), Value::Undefined),
            ("numbers".into(), Value::Array([f64::NAN, -0.0, f64::INFINITY, 1.5].map(Value::Number).into())),
            ("big".into(), Value::BigInt("-12345678901234567890".into())),
            ("map".into(), Value::Map(vec![(Value::Null, Value::Bool(true))])),
            ("set".into(), Value::Set(vec!["x".into()])),
            ("dates".into(), Value::Array(vec![Value::Date(Some(5.0)), Value::Date(None)])),
            ("expression".into(), Value::RegExp { source: "a+".into(), flags: "gi".into() }),
            ("error".into(), Value::Error(Exception { name: "TypeError".into(), ..Exception::new("no") })),
            ("bytes".into(), Value::Binary(BinaryKind::Uint8Array, Bytes::from_static(&[0, 255]))),
            ("f".into(), Function::new("f", |_| Box::pin(async { Ok(Value::Null) })).into()),
        ]);
        assert_eq!(format!("{:?}", there_and_back(&value)), format!("{value:?}"));
    }

    #[test]
    fn what_no_sandbox_sends_is_refused() {
        for text in [
            "",
            "{}",
            "[]",
            "[[1]]",
            "[[0]]",
            "[[-1]]",
            "[[1.5]]",
            "[[1],5]",
            "[[1],[\"a\"]]",
            "[[1],[\"a\",5]]",
            "[[1],[\"o\",[\"key\"]]]",
            "[[1],[\"o\",[5,5]]]",
            "[[1],[\"m\",[5]]]",
            "[[1],[\"b\",\"Uint8Array\",1]]",
            "[[1],[\"b\",\"Buffer\",0]]",
            "[[1],[\"f\",-1,\"f\"]]",
            "[[1],[\"d\",\"5\"]]",
            "[[\"n\",\"5\"]]",
            "[[\"i\",\"5n\"]]",
            "[[\"i\",\"-\"]]",
            "[{}]",
            "[[1],[\"e\",1,2,3]]",
            "[[\"u\",1]]",
            "[[1],[\"a\",[]]] more",
            "[[1],[\"f\",1e300,\"f\"]]",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_value_in_itself_too_deep_or_too_large_is_refused_in_words() {
        let said = |text: &str| read(text).unwrap_err().message;
        assert!(said("[[1],[\"a\",[[1]]]]").contains("contains itself"));
        let chain: Vec<String> = (1..=300).map(|at| format!("[\"a\",[[{}]]]", at + 1)).collect();
        assert!(said(&format!("[[1],{},[\"a\",[]]]", chain.join(","))).contains("200 levels"));
        // Nested tens: a small text for a large value.
        let tens: Vec<String> =
            (1..=7).map(|at| format!("[\"a\",[{}]]", vec![format!("[{}]", at + 1); 10].join(","))).collect();
        assert!(said(&format!("[[1],{},[\"a\",[]]]", tens.join(","))).contains("8388608 bytes, the limit"));
        // One text in many positions.
        let often = format!(
            "[[1],[\"a\",[{}]],[\"o\",[\"k\",\"{}\"]]]",
            vec!["[2]"; 5000].join(","),
            "x".repeat(5000)
        );
        assert!(said(&often).contains("8388608 bytes"));
        // One buffer in many positions; the limit is 24 MiB.
        let often = format!("[[1],[\"a\",[{}]],[\"b\",\"Uint8Array\",0]]", vec!["[2]"; 100].join(","));
        let packed = EncodedValue { text: often, bytes: vec![Bytes::from(vec![0; 1 << 20])] };
        let none = |_: u64, name: &str| Function::new(name, |_| Box::pin(async { Ok(Value::Undefined) }));
        let error = unpack(&packed, &SizeAllowance::default(), &none).unwrap_err();
        assert!(error.message.contains("25165824 bytes"), "{error}");
        // A table that is larger than the value in it.
        assert!(said(&format!("[[1],[\"a\",[{}]]]", vec!["1"; 600_000].join(","))).contains("8388608 bytes"));
        assert!(said(&format!("[[1],[\"a\",[]]{}]", ",1".repeat(600_000))).contains("8388608 bytes"));
    }

    #[test]
    fn a_list_of_one_number_is_no_reference() {
        let value = Value::Array(vec![Value::Number(1.0)]);
        assert_eq!(format!("{:?}", there_and_back(&value)), format!("{value:?}"));
        let value = Value::Set(vec![Value::Number(0.0)]);
        assert_eq!(format!("{:?}", there_and_back(&value)), format!("{value:?}"));
    }

    #[test]
    fn what_is_sent_is_bounded_like_what_comes() {
        let refused = |value: &Value| pack(value, &mut |_| 0).unwrap_err().message;
        let long: Value = "x".repeat(100_000).as_str().into();
        assert!(refused(&Value::Array(vec![long; 100])).contains("8388608 bytes"));
        assert!(refused(&Value::Array(vec![Value::Null; 600_000])).contains("8388608 bytes"));
        let large = Value::Binary(BinaryKind::Uint8Array, Bytes::from(vec![0; 9 << 20]));
        assert!(refused(&Value::Array(vec![large; 3])).contains("25165824 bytes"));
    }

    #[test]
    fn anything_may_be_thrown() {
        for (text, message) in [
            ("[[1],[\"e\",\"RangeError\",\"far\",\"\"]]", "far"),
            ("[\"text\"]", "text"),
            ("[5]", "5"),
            ("[[\"u\"]]", "undefined"),
        ] {
            let packed = EncodedValue { text: text.into(), bytes: Vec::new() };
            assert_eq!(unpack_error(&packed).message, message);
        }
    }
}
