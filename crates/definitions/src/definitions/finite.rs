//! Strict JSON: converts a Rust value without losing anything silently. `serde_json` turns NaN and the infinities into
//! `null`, which would delete a value that a tool meant to keep (spec §18).

use std::fmt;

use serde::ser;
use serde::ser::{Serialize, Serializer};
use serde_json::Value;

/// Why a value is no JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoJson(String);

impl ser::Error for NoJson {
    fn custom<T: fmt::Display>(text: T) -> Self {
        NoJson(text.to_string())
    }
}

/// The value as JSON.
///
/// # Errors
/// NaN and infinities, anywhere inside; keys of maps that are no text; what its own `Serialize` refuses.
pub fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<Value, NoJson> {
    value.serialize(Finite)?;
    serde_json::to_value(value).map_err(|error| NoJson(error.to_string()))
}

/// Walks through a value and makes nothing of it.
#[derive(Clone, Copy)]
struct Finite;

type WalkResult = Result<(), NoJson>;

macro_rules! nothing {
    ($($name:ident: $type:ty),* $(,)?) => {
        $(fn $name(self, _: $type) -> WalkResult { Ok(()) })*
    };
}

impl Serializer for Finite {
    type Ok = ();
    type Error = NoJson;
    type SerializeSeq = Finite;
    type SerializeTuple = Finite;
    type SerializeTupleStruct = Finite;
    type SerializeTupleVariant = Finite;
    type SerializeMap = Finite;
    type SerializeStruct = Finite;
    type SerializeStructVariant = Finite;

    nothing! {
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_char: char,
        serialize_str: &str, serialize_bytes: &[u8], serialize_unit_struct: &'static str,
    }

    fn serialize_f32(self, number: f32) -> WalkResult {
        self.serialize_f64(f64::from(number))
    }
    fn serialize_f64(self, number: f64) -> WalkResult {
        if number.is_finite() { Ok(()) } else { Err(NoJson(format!("{number} is no JSON value"))) }
    }
    fn serialize_none(self) -> WalkResult {
        Ok(())
    }
    fn serialize_unit(self) -> WalkResult {
        Ok(())
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> WalkResult {
        value.serialize(self)
    }
    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> WalkResult {
        Ok(())
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> WalkResult {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> WalkResult {
        value.serialize(self)
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Finite, NoJson> {
        Ok(self)
    }
    fn serialize_tuple(self, _: usize) -> Result<Finite, NoJson> {
        Ok(self)
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Finite, NoJson> {
        Ok(self)
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Finite, NoJson> {
        Ok(self)
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Finite, NoJson> {
        Ok(self)
    }
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Finite, NoJson> {
        Ok(self)
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Finite, NoJson> {
        Ok(self)
    }
}

/// Compounds: each part is walked through.
macro_rules! compound {
    ($($trait:ident, $part:ident $(($key:ty))?;)*) => {
        $(impl ser::$trait for Finite {
            type Ok = ();
            type Error = NoJson;
            fn $part<T: Serialize + ?Sized>(&mut self, $(_: $key,)? value: &T) -> WalkResult {
                value.serialize(*self)
            }
            fn end(self) -> WalkResult {
                Ok(())
            }
        })*
    };
}

compound! {
    SerializeSeq, serialize_element;
    SerializeTuple, serialize_element;
    SerializeTupleStruct, serialize_field;
    SerializeTupleVariant, serialize_field;
    SerializeStruct, serialize_field(&'static str);
    SerializeStructVariant, serialize_field(&'static str);
}

impl ser::SerializeMap for Finite {
    type Ok = ();
    type Error = NoJson;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, _: &T) -> WalkResult {
        Ok(())
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> WalkResult {
        value.serialize(*self)
    }
    fn end(self) -> WalkResult {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::json;

    use super::*;

    #[derive(serde::Serialize)]
    enum Shape {
        Point,
        Circle(f64),
        Box { sides: [f64; 2] },
    }

    #[test]
    fn finite_values_are_what_they_are() {
        let value =
            (1, "two", 3.5, [Some(true), None], Shape::Point, Shape::Box { sides: [1.0, 2.0] }, 'x', ());
        assert_eq!(
            to_json(&value).unwrap(),
            json!([1, "two", 3.5, [true, null], "Point", { "Box": { "sides": [1.0, 2.0] } }, "x", null])
        );
    }

    #[test]
    fn what_json_does_not_know_is_refused_by_name() {
        let refused = |value: &dyn Fn() -> Result<Value, NoJson>| value().unwrap_err().to_string();
        assert_eq!(refused(&|| to_json(&f64::NAN)), "NaN is no JSON value");
        assert_eq!(refused(&|| to_json(&vec![1.0, f64::INFINITY])), "inf is no JSON value");
        assert_eq!(refused(&|| to_json(&Shape::Circle(f64::NEG_INFINITY))), "-inf is no JSON value");
        assert_eq!(refused(&|| to_json(&Shape::Box { sides: [0.0, f64::NAN] })), "NaN is no JSON value");
        assert_eq!(refused(&|| to_json(&BTreeMap::from([("a", Some(f32::NAN))]))), "NaN is no JSON value");
        assert_eq!(refused(&|| to_json(&BTreeMap::from([([1u8], 1)]))), "key must be a string");
    }
}
