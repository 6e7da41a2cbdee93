//! Values that a file may write in a short or a long form.

use std::fmt;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// A name, or an object. The type of the value selects the form, so that an error inside the object is
/// reported at its position. (An untagged enum would only report that no form matched.)
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) enum StringOr<T> {
    String(String),
    Object(T),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for StringOr<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Form<T> {
            type Value = StringOr<T>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a name or an object")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
                Ok(StringOr::String(name.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(StringOr::Object)
            }
        }
        deserializer.deserialize_any(Form(PhantomData))
    }
}

/// A text, or a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) enum StringOrList<T> {
    String(String),
    List(Vec<T>),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for StringOrList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Form<T> {
            type Value = StringOrList<T>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a text or a list of parts")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(StringOrList::String(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(StringOrList::List)
            }
        }
        deserializer.deserialize_any(Form(PhantomData))
    }
}
