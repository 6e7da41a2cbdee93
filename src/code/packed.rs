//! Values as they travel between a thread and the isolate Worker (docs/run-code.md, The wire): a JSON text, one flat table
//! whatever the nesting, and the bytes of binary values beside it. What comes from a sandbox is hostile until it is read.

use std::collections::BTreeSet;

use bytes::Bytes;
use serde_json::{Value as Json, json};

use super::surrogates::paired;
use super::value::{BinaryKind, Function, Thrown, Value};

/// Levels of nesting that are taken from a sandbox; whatever reads a value here may recurse.
const DEPTH: usize = 200;
/// Values in one message from a sandbox, those that occur twice counted twice.
const VALUES: usize = 1_000_000;

/// A value on its way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    /// The table: `[root, node 1, node 2, …]`.
    pub text: String,
    /// What binary values hold.
    pub bytes: Vec<Bytes>,
}

impl Packed {
    /// An error with this message.
    pub fn error(message: &str) -> Packed {
        pack_error(&Thrown::new(message))
    }
}

/// Packs a value. Its functions get ids: their places in `functions`, where they are added.
pub(super) fn pack(value: &Value, functions: &mut Vec<Function>) -> Packed {
    let mut packer = Packer { nodes: vec![Json::Null], bytes: Vec::new(), functions };
    let root = packer.slot(value);
    if let Some(first) = packer.nodes.first_mut() {
        *first = root;
    }
    Packed { text: Json::Array(packer.nodes).to_string(), bytes: packer.bytes }
}

struct Packer<'a> {
    nodes: Vec<Json>,
    bytes: Vec<Bytes>,
    functions: &'a mut Vec<Function>,
}

impl Packer<'_> {
    fn slot(&mut self, value: &Value) -> Json {
        let node = match value {
            Value::Undefined => return json!(["u"]),
            Value::Null => return Json::Null,
            Value::Bool(value) => return Json::Bool(*value),
            Value::Number(value) => return number(*value),
            Value::BigInt(digits) => return json!(["i", digits]),
            Value::String(text) => return Json::String(text.clone()),
            Value::Array(items) => json!(["a", self.slots(items)]),
            Value::Object(fields) => {
                let fields: Vec<Json> = fields
                    .iter()
                    .flat_map(|(key, value)| [Json::String(key.clone()), self.slot(value)])
                    .collect();
                json!(["o", fields])
            }
            Value::Map(entries) => {
                let entries: Vec<Json> =
                    entries.iter().flat_map(|(key, value)| [self.slot(key), self.slot(value)]).collect();
                json!(["m", entries])
            }
            Value::Set(items) => json!(["s", self.slots(items)]),
            Value::Date(at) => json!(["d", at]),
            Value::RegExp { source, flags } => json!(["x", source, flags]),
            Value::Error(thrown) => error_node(thrown),
            Value::Binary(kind, bytes) => {
                self.bytes.push(bytes.clone());
                json!(["b", kind.as_str(), self.bytes.len() - 1])
            }
            Value::Function(function) => {
                self.functions.push(function.clone());
                json!(["f", self.functions.len() - 1, function.name()])
            }
        };
        self.nodes.push(node);
        json!([self.nodes.len() - 1])
    }

    fn slots(&mut self, items: &[Value]) -> Vec<Json> {
        items.iter().map(|item| self.slot(item)).collect()
    }
}

fn error_node(thrown: &Thrown) -> Json {
    json!(["e", thrown.name, thrown.message, thrown.stack])
}

/// An error on its way.
pub(super) fn pack_error(thrown: &Thrown) -> Packed {
    Packed { text: json!([[1], error_node(thrown)]).to_string(), bytes: Vec::new() }
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

/// Reads a value that the other side has packed. `function` makes what a function of its stands for.
///
/// # Errors
/// `SerializationError`: it is nested in itself, too deep or too large for this side, or not what a sandbox sends.
pub(super) fn unpack(packed: &Packed, function: &dyn Fn(u64, &str) -> Function) -> Result<Value, Thrown> {
    let table: Vec<Json> = serde_json::from_str(&paired(&packed.text)).map_err(|_| forged("the table"))?;
    let root = table.first().ok_or_else(|| forged("the table"))?;
    let mut reader =
        Reader { table: &table, bytes: &packed.bytes, function, open: BTreeSet::new(), left: VALUES };
    reader.slot(root)
}

/// Reads an error, or whatever was thrown.
pub(super) fn unpack_error(packed: &Packed) -> Thrown {
    let absent = |_: u64, name: &str| Function::new(name, |_| Box::pin(async { Ok(Value::Undefined) }));
    match unpack(packed, &absent) {
        Ok(Value::Error(thrown)) => thrown,
        Ok(other) => Thrown::new(match other.to_json() {
            Some(Json::String(text)) => text,
            Some(json) => json.to_string(),
            None => "undefined".to_owned(),
        }),
        Err(error) => error,
    }
}

fn forged(what: &str) -> Thrown {
    Thrown::unserializable(format!("A value from the sandbox cannot be read: {what} is malformed."))
}

struct Reader<'a> {
    table: &'a [Json],
    bytes: &'a [Bytes],
    function: &'a dyn Fn(u64, &str) -> Function,
    /// Nodes that are being read.
    open: BTreeSet<usize>,
    /// Values that may still come.
    left: usize,
}

impl Reader<'_> {
    fn slot(&mut self, slot: &Json) -> Result<Value, Thrown> {
        self.left = self
            .left
            .checked_sub(1)
            .ok_or_else(|| Thrown::unserializable(format!("A value has more than {VALUES} parts.")))?;
        match slot {
            Json::Null => Ok(Value::Null),
            Json::Bool(value) => Ok(Value::Bool(*value)),
            Json::Number(value) => Ok(Value::Number(value.as_f64().ok_or_else(|| forged("a number"))?)),
            Json::String(text) => Ok(Value::String(text.clone())),
            Json::Array(parts) => match parts.as_slice() {
                [Json::Number(id)] => self.node(index(id).ok_or_else(|| forged("a reference"))?),
                [Json::String(tag)] if tag == "u" || tag == "h" => Ok(Value::Undefined),
                [Json::String(tag), Json::String(text)] if tag == "n" => special(text),
                [Json::String(tag), Json::String(text)] if tag == "i" => bigint(text),
                _ => Err(forged("a value")),
            },
            Json::Object(_) => Err(forged("a value")),
        }
    }

    fn node(&mut self, id: usize) -> Result<Value, Thrown> {
        let table = self.table;
        let node = table.get(id).filter(|_| id > 0).ok_or_else(|| forged("a reference"))?;
        if self.open.len() >= DEPTH {
            return Err(Thrown::unserializable(format!("A value is nested more than {DEPTH} levels deep.")));
        }
        if !self.open.insert(id) {
            return Err(Thrown::unserializable("A value that contains itself cannot leave the sandbox."));
        }
        let value = self.read(node);
        self.open.remove(&id);
        value
    }

    fn read(&mut self, node: &Json) -> Result<Value, Thrown> {
        let parts = node.as_array().map(Vec::as_slice).unwrap_or_default();
        let [Json::String(tag), rest @ ..] = parts else { return Err(forged("a node")) };
        Ok(match (tag.as_str(), rest) {
            ("a", [Json::Array(items)]) => Value::Array(self.slots(items)?),
            ("s", [Json::Array(items)]) => Value::Set(self.slots(items)?),
            ("o", [Json::Array(parts)]) => Value::Object(
                parts
                    .chunks(2)
                    .map(|pair| match pair {
                        [Json::String(key), value] => Ok((key.clone(), self.slot(value)?)),
                        _ => Err(forged("an object")),
                    })
                    .collect::<Result<_, _>>()?,
            ),
            ("m", [Json::Array(parts)]) => Value::Map(
                parts
                    .chunks(2)
                    .map(|pair| match pair {
                        [key, value] => Ok((self.slot(key)?, self.slot(value)?)),
                        _ => Err(forged("a map")),
                    })
                    .collect::<Result<_, _>>()?,
            ),
            ("d", [Json::Null]) => Value::Date(None),
            ("d", [Json::Number(ms)]) => Value::Date(ms.as_f64()),
            ("x", [Json::String(source), Json::String(flags)]) => {
                Value::RegExp { source: source.clone(), flags: flags.clone() }
            }
            ("e", [Json::String(name), Json::String(message), Json::String(stack), ..]) => {
                Value::Error(Thrown { name: name.clone(), message: message.clone(), stack: stack.clone() })
            }
            ("b", [Json::String(kind), Json::Number(at)]) => {
                let kind = BinaryKind::of(kind).ok_or_else(|| forged("a binary value"))?;
                let bytes = index(at).and_then(|at| self.bytes.get(at));
                Value::Binary(kind, bytes.ok_or_else(|| forged("a binary value"))?.clone())
            }
            ("f", [Json::Number(id), Json::String(name)]) => {
                Value::Function((self.function)(id.as_u64().ok_or_else(|| forged("a function"))?, name))
            }
            _ => return Err(forged("a node")),
        })
    }

    fn slots(&mut self, items: &[Json]) -> Result<Vec<Value>, Thrown> {
        items.iter().map(|item| self.slot(item)).collect()
    }
}

fn index(number: &serde_json::Number) -> Option<usize> {
    number.as_u64().and_then(|value| usize::try_from(value).ok())
}

fn special(text: &str) -> Result<Value, Thrown> {
    Ok(Value::Number(match text {
        "NaN" => f64::NAN,
        "Infinity" => f64::INFINITY,
        "-Infinity" => f64::NEG_INFINITY,
        "-0" => -0.0,
        _ => return Err(forged("a number")),
    }))
}

fn bigint(text: &str) -> Result<Value, Thrown> {
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
        let packed = pack(value, &mut functions);
        unpack(&packed, &|id, _| functions[id as usize].clone()).unwrap()
    }

    fn read(text: &str) -> Result<Value, Thrown> {
        let packed = Packed { text: text.to_owned(), bytes: vec![Bytes::from_static(b"ab")] };
        unpack(&packed, &|_, name| Function::new(name, |_| Box::pin(async { Ok(Value::Undefined) })))
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
            ("error".into(), Value::Error(Thrown { name: "TypeError".into(), ..Thrown::new("no") })),
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
        // Ten times ten times ten … : a small text for a large value.
        let tens: Vec<String> =
            (1..=7).map(|at| format!("[\"a\",[{}]]", vec![format!("[{}]", at + 1); 10].join(","))).collect();
        assert!(said(&format!("[[1],{},[\"a\",[]]]", tens.join(","))).contains("1000000 parts"));
    }

    #[test]
    fn anything_may_be_thrown() {
        for (text, message) in [
            ("[[1],[\"e\",\"RangeError\",\"far\",\"\"]]", "far"),
            ("[\"text\"]", "text"),
            ("[5]", "5"),
            ("[[\"u\"]]", "undefined"),
        ] {
            let packed = Packed { text: text.into(), bytes: Vec::new() };
            assert_eq!(unpack_error(&packed).message, message);
        }
    }
}
