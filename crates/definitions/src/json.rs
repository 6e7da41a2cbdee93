//! JSON to and from types, by `serde_json`, with one copy of the code per type.
//!
//! `serde_json` compiles separate code for reading each type from text, bytes and values, and reads a struct
//! from a list as well as from an object. That code was a fifth of the Worker's wasm. Here, bytes and values
//! are read as text, and a struct only from an object.

use std::fmt;

use serde::Deserialize;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};
use serde_json::{Result, Value};

/// Parses a text.
///
/// # Errors
///
/// The errors of `serde_json::from_str`, with line and column.
pub fn from_str<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = T::deserialize(Objects(&mut reader))?;
    reader.end()?;
    Ok(read)
}

/// Parses bytes in UTF-8.
///
/// # Errors
///
/// Those of [`from_str`], and invalid UTF-8.
pub fn from_slice<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T> {
    from_str(std::str::from_utf8(bytes).map_err(serde_json::Error::custom)?)
}

/// Converts a value to a type.
///
/// # Errors
///
/// Those of [`from_str`] without line and column, because the caller has no text.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T> {
    from_str(&text(&value)).map_err(|error| {
        let said = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        serde_json::Error::custom(said.strip_suffix(&place).unwrap_or(&said))
    })
}

/// The text of a value. Like `Display`, but without a call of the formatter for each token.
pub fn text(value: &Value) -> String {
    // Serializing a value cannot fail.
    serde_json::to_string(value).unwrap_or_else(|_| value.to_string())
}

/// A deserializer that reads structs only from objects, at every level.
struct Objects<D>(D);

/// Applies [`Objects`] to nested values: wraps visitors, their access to elements, and seeds.
struct NestedObjects<T>(T);

/// Reads the fields of a variant, only from an object.
struct Variant<V>(V);

macro_rules! unchanged {
    ($($method:ident)*) => {$(
        #[inline(always)]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> std::result::Result<V::Value, D::Error> {
            self.0.$method(visitor)
        }
    )*};
}

macro_rules! each {
    ($($method:ident($($name:ident: $of:ty),*))*) => {$(
        #[inline(always)]
        fn $method<V: Visitor<'de>>(self, $($name: $of,)* visitor: V) -> std::result::Result<V::Value, D::Error> {
            self.0.$method($($name,)* NestedObjects(visitor))
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Objects<D> {
    type Error = D::Error;

    unchanged! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128 deserialize_u8
        deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64 deserialize_char
        deserialize_str deserialize_string deserialize_bytes deserialize_byte_buf deserialize_unit deserialize_identifier
        deserialize_ignored_any
    }

    each! {
        deserialize_any()
        deserialize_option()
        deserialize_seq()
        deserialize_map()
        deserialize_unit_struct(name: &'static str)
        deserialize_newtype_struct(name: &'static str)
        deserialize_tuple(length: usize)
        deserialize_tuple_struct(name: &'static str, length: usize)
        deserialize_enum(name: &'static str, variants: &'static [&'static str])
    }

    #[inline(always)]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> std::result::Result<V::Value, D::Error> {
        self.0.deserialize_map(NestedObjects(visitor))
    }

    #[inline(always)]
    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

macro_rules! visits {
    ($($method:ident($of:ty))*) => {$(
        #[inline(always)]
        fn $method<E: serde::de::Error>(self, value: $of) -> std::result::Result<V::Value, E> {
            self.0.$method(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for NestedObjects<V> {
    type Value = V::Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(formatter)
    }

    visits! {
        visit_bool(bool) visit_i64(i64) visit_u64(u64) visit_f64(f64) visit_str(&str) visit_borrowed_str(&'de str)
        visit_string(String)
    }

    #[inline(always)]
    fn visit_none<E: serde::de::Error>(self) -> std::result::Result<V::Value, E> {
        self.0.visit_none()
    }

    #[inline(always)]
    fn visit_unit<E: serde::de::Error>(self) -> std::result::Result<V::Value, E> {
        self.0.visit_unit()
    }

    #[inline(always)]
    fn visit_some<D: Deserializer<'de>>(self, reader: D) -> std::result::Result<V::Value, D::Error> {
        self.0.visit_some(Objects(reader))
    }

    #[inline(always)]
    fn visit_newtype_struct<D: Deserializer<'de>>(
        self,
        reader: D,
    ) -> std::result::Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(Objects(reader))
    }

    #[inline(always)]
    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> std::result::Result<V::Value, A::Error> {
        self.0.visit_seq(NestedObjects(list))
    }

    #[inline(always)]
    fn visit_map<A: MapAccess<'de>>(self, object: A) -> std::result::Result<V::Value, A::Error> {
        self.0.visit_map(NestedObjects(object))
    }

    #[inline(always)]
    fn visit_enum<A: EnumAccess<'de>>(self, of: A) -> std::result::Result<V::Value, A::Error> {
        self.0.visit_enum(NestedObjects(of))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for NestedObjects<S> {
    type Value = S::Value;

    #[inline(always)]
    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> std::result::Result<S::Value, D::Error> {
        self.0.deserialize(Objects(reader))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for NestedObjects<A> {
    type Error = A::Error;

    #[inline(always)]
    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> std::result::Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(NestedObjects(seed))
    }

    #[inline(always)]
    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for NestedObjects<A> {
    type Error = A::Error;

    #[inline(always)]
    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> std::result::Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(seed)
    }

    #[inline(always)]
    fn next_value_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> std::result::Result<S::Value, A::Error> {
        self.0.next_value_seed(NestedObjects(seed))
    }

    #[inline(always)]
    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for NestedObjects<A> {
    type Error = A::Error;
    type Variant = NestedObjects<A::Variant>;

    #[inline(always)]
    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> std::result::Result<(S::Value, NestedObjects<A::Variant>), A::Error> {
        let (name, of) = self.0.variant_seed(seed)?;
        Ok((name, NestedObjects(of)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for NestedObjects<A> {
    type Error = A::Error;

    #[inline(always)]
    fn unit_variant(self) -> std::result::Result<(), A::Error> {
        self.0.unit_variant()
    }

    #[inline(always)]
    fn newtype_variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> std::result::Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(NestedObjects(seed))
    }

    #[inline(always)]
    fn tuple_variant<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> std::result::Result<V::Value, A::Error> {
        self.0.tuple_variant(length, NestedObjects(visitor))
    }

    #[inline(always)]
    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> std::result::Result<V::Value, A::Error> {
        self.0.newtype_variant_seed(Variant(visitor))
    }
}

impl<'de, V: Visitor<'de>> DeserializeSeed<'de> for Variant<V> {
    type Value = V::Value;

    #[inline(always)]
    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> std::result::Result<V::Value, D::Error> {
        reader.deserialize_map(NestedObjects(self.0))
    }
}

/// JSON with the keys of its objects sorted.
pub fn canonical(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let mut sorted: Vec<(&String, &Value)> = fields.iter().collect();
            sorted.sort_by_key(|(key, _)| *key);
            let fields = sorted
                .into_iter()
                .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), canonical(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::collections::BTreeMap;

    use serde_json::value::RawValue;

    use super::*;

    #[derive(Deserialize, Debug, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Point {
        x: u8,
        #[serde(default)]
        of: Vec<Point>,
    }

    #[derive(Deserialize, Debug, PartialEq)]
    #[serde(rename_all = "snake_case")]
    enum Shape {
        Nothing,
        Dot(Point),
        Line(u8, u8),
        Circle { at: Point, radius: f64 },
    }

    #[derive(Deserialize)]
    struct Texts<'a> {
        #[serde(borrow)]
        cow: Cow<'a, str>,
        #[serde(borrow)]
        raw: &'a RawValue,
        #[serde(flatten)]
        rest: BTreeMap<String, Value>,
    }

    #[test]
    fn an_object_is_a_struct_and_a_list_is_none_however_deep() {
        let point = |x| Point { x, of: Vec::new() };
        assert_eq!(
            from_str::<Point>(r#"{"x":1,"of":[{"x":2}]}"#).unwrap(),
            Point { x: 1, of: vec![point(2)] }
        );
        for wrong in
            ["[1,[]]", r#"{"x":1,"of":[[2,[]]]}"#, r#"{"x":1,"y":2}"#, r#"{"of":[]}"#, r#"{"x":1} 2"#]
        {
            assert!(from_str::<Point>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn variants_are_read_in_each_form() {
        let read = |text| from_str::<Shape>(text).unwrap();
        assert_eq!(read(r#""nothing""#), Shape::Nothing);
        assert_eq!(read(r#"{"dot":{"x":1}}"#), Shape::Dot(Point { x: 1, of: Vec::new() }));
        assert_eq!(read(r#"{"line":[1,2]}"#), Shape::Line(1, 2));
        let circle = Shape::Circle { at: Point { x: 1, of: Vec::new() }, radius: 2.5 };
        assert_eq!(read(r#"{"circle":{"at":{"x":1},"radius":2.5}}"#), circle);
        assert!(from_str::<Shape>(r#"{"circle":[{"x":1},2.5]}"#).is_err());
    }

    #[test]
    fn texts_are_borrowed_and_raw_ones_stay_as_they_are() {
        let read: Texts<'_> =
            from_str(r#"{"cow":"a","raw":{ "b" : [1] },"more":[null,-1,1.5,"\u00e9"]}"#).unwrap();
        assert!(matches!(read.cow, Cow::Borrowed("a")));
        assert_eq!(read.raw.get(), r#"{ "b" : [1] }"#);
        assert_eq!(read.rest["more"], crate::json!([null, -1, 1.5, "é"]));
    }

    #[test]
    fn bytes_and_values_are_read_as_texts_are() {
        assert_eq!(from_slice::<Point>(br#"{"x":1}"#).unwrap(), Point { x: 1, of: Vec::new() });
        assert!(from_slice::<Value>(b"\"\xff\"").unwrap_err().to_string().contains("utf-8"));
        assert_eq!(from_value::<Point>(crate::json!({ "x": 1 })).unwrap(), Point { x: 1, of: Vec::new() });
        let wrong = from_value::<Point>(crate::json!({ "x": "1" })).unwrap_err().to_string();
        assert_eq!(wrong, "invalid type: string \"1\", expected u8", "nobody has seen a line");
    }
}
