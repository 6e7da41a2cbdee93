//! Fields of responses, read leniently because servers differ: an absent or `null` field, or one of an
//! unexpected type, is empty and never fails the response.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Types of values that are read as empty.
macro_rules! nothing {
    ($($method:ident($of:ty))*) => {$(
        fn $method<E>(self, _: $of) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    )*};
}

/// All scalars, for visitors of objects and lists.
macro_rules! no_object {
    () => {
        nothing! { visit_bool(bool) visit_u64(u64) visit_i64(i64) visit_f64(f64) visit_str(&str) }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
}

/// A text, borrowed from the input unless it contains escapes. A list is the concatenation of its parts,
/// an object is its `text` member.
#[derive(Debug, Default, PartialEq)]
pub struct Text<'a>(pub Cow<'a, str>);

impl Text<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor).map(Text)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    nothing! { visit_bool(bool) visit_f64(f64) }

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }
    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }
    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
    fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text))
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(""))
    }
    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Cow::Owned(number.to_string()))
    }
    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Cow::Owned(number.to_string()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
        let mut whole = Cow::Borrowed("");
        while let Some(Text(part)) = parts.next_element()? {
            whole += part;
        }
        Ok(whole)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut text = Cow::Borrowed("");
        while let Some(Text(key)) = members.next_key()? {
            if key == "text" {
                text = members.next_value::<Text<'de>>()?.0;
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(text)
    }
}

/// Collects the JSON strings of a text, as [`Text`] reads it, with their escapes.
pub fn literals<'a>(raw: &'a RawValue, out: &mut Vec<&'a RawValue>) {
    #[derive(Deserialize)]
    struct Part<'a> {
        #[serde(borrow, default)]
        text: Option<&'a RawValue>,
    }
    match raw.get().as_bytes().first() {
        Some(b'"') => out.push(raw),
        Some(b'[') => {
            let parts: Vec<&RawValue> = bobbin_definitions::json::from_str(raw.get()).unwrap_or_default();
            parts.into_iter().for_each(|part| literals(part, out));
        }
        Some(b'{') => {
            let part: Option<Part<'a>> = bobbin_definitions::json::from_str(raw.get()).ok();
            part.and_then(|part| part.text).into_iter().for_each(|text| literals(text, out));
        }
        _ => {}
    }
}

/// A whole number from 0, also when it is written with a fraction or as a string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Number(pub Option<u64>);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor).map(Number)
    }
}

struct NumberVisitor;

impl<'de> Visitor<'de> for NumberVisitor {
    type Value = Option<u64>;

    nothing! { visit_bool(bool) }

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }
    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Some(number))
    }
    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(u64::try_from(number).ok())
    }
    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        // `as` saturates.
        Ok((number >= 0.0).then_some(number as u64))
    }
    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(text.trim().parse::<f64>().ok().filter(|number| *number >= 0.0).map(|number| number as u64))
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        skip_list(list).map(|()| None)
    }
    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Self::Value, A::Error> {
        skip_object(object).map(|()| None)
    }
}

/// An object; anything else is `None`.
#[derive(Debug)]
pub struct Object<T>(pub Option<T>);

impl<T> Default for Object<T> {
    fn default() -> Object<T> {
        Object(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ObjectVisitor(PhantomData)).map(Object)
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Option<T>;

    no_object! {}

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        skip_list(list).map(|()| None)
    }
    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(object)).map(Some)
    }
}

/// A list of objects; other items are skipped. Anything else is an empty list.
#[derive(Debug)]
pub struct List<T>(pub Vec<T>);

impl<T> Default for List<T> {
    fn default() -> List<T> {
        List(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListVisitor(PhantomData)).map(List)
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = Vec<T>;

    no_object! {}

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut objects = Vec::new();
        while let Some(Object(object)) = list.next_element()? {
            objects.extend(object);
        }
        Ok(objects)
    }
    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Self::Value, A::Error> {
        skip_object(object).map(|()| Vec::new())
    }
}

fn skip_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<(), A::Error> {
    while list.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

fn skip_object<'de, A: MapAccess<'de>>(mut object: A) -> Result<(), A::Error> {
    while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, Deserialize)]
    struct Fields<'a> {
        #[serde(default)]
        number: Number,
        #[serde(borrow, default)]
        object: Object<Inner<'a>>,
        #[serde(borrow, default)]
        list: List<Inner<'a>>,
    }

    #[derive(Debug, Default, Deserialize)]
    struct Inner<'a> {
        #[serde(borrow, default)]
        raw: Option<&'a RawValue>,
    }

    /// One value of each type.
    const VALUES: [&str; 10] =
        ["null", "true", "-1", "2", "1.5", r#""""#, r#""a\n""#, "[]", r#"[[{}],{}]"#, r#"{"x":[1]}"#];

    #[test]
    fn no_type_of_a_field_costs_the_others() {
        for value in VALUES {
            let json = format!(r#"{{"number":{value},"object":{value},"list":{value},"other":{value}}}"#);
            let read = bobbin_definitions::json::from_str::<Fields<'_>>(&json);
            assert!(read.is_ok(), "{json}: {read:?}");
        }
    }

    #[test]
    fn what_fits_is_read() {
        let json = r#"{"number":"7","object":{"raw":{ "a" : 1 }},"list":[null,"x",{"raw":"b"},[{}]]}"#;
        let read: Fields<'_> = bobbin_definitions::json::from_str(json).unwrap();
        assert_eq!(read.number.0, Some(7));
        assert_eq!(read.object.0.unwrap().raw.unwrap().get(), r#"{ "a" : 1 }"#);
        assert_eq!(read.list.0.len(), 1);
        for (json, expected) in
            [("3", Some(3)), ("3.0", Some(3)), ("-3", None), ("-0.5", None), ("\"x\"", None)]
        {
            assert_eq!(bobbin_definitions::json::from_str::<Number>(json).unwrap().0, expected, "{json}");
        }
    }

    #[test]
    fn literals_are_the_strings_of_a_text() {
        let strings = |json: &str| {
            let raw = RawValue::from_string(json.to_owned()).unwrap();
            let mut out = Vec::new();
            literals(&raw, &mut out);
            out.into_iter().map(|raw| raw.get().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(strings(r#""a\u00e9""#), [r#""a\u00e9""#]);
        assert_eq!(strings(r#"[{"type":"text","text":"a"},"b",{"x":1},3]"#), [r#""a""#, r#""b""#]);
        assert!(strings("null").is_empty() && strings("[]").is_empty());
    }
}
