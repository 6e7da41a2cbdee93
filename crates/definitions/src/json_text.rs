//! JSON text with the type of its content.

use std::fmt;
use std::marker::PhantomData;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use crate::error::{Error, Result};

/// A value of `T` as JSON text. Lists have rows in this form: each row is serialized once, its length counts
/// toward the page, and the response includes the text unchanged.
pub struct JsonText<T> {
    text: Box<RawValue>,
    /// Contravariant in `T`. The text borrows nothing, so a row that was serialized from borrowed data is
    /// also a `JsonText` of the type with a longer lifetime.
    of: PhantomData<fn(T)>,
}

impl<T: Serialize> JsonText<T> {
    /// Serializes a value.
    ///
    /// # Errors
    /// `internal`, if the value cannot be JSON.
    pub fn new(value: &T) -> Result<JsonText<T>> {
        Ok(JsonText { text: to_raw_value(value).map_err(Error::internal)?, of: PhantomData })
    }
}

impl<T> JsonText<T> {
    /// The text.
    pub fn get(&self) -> &str {
        self.text.get()
    }
}

impl<T> fmt::Debug for JsonText<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.get())
    }
}

impl<T> Serialize for JsonText<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

/// Reads any JSON. The sender is trusted to have sent a `T`.
impl<'de, T> Deserialize<'de> for JsonText<T> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> std::result::Result<JsonText<T>, D::Error> {
        Ok(JsonText { text: Box::<RawValue>::deserialize(reader)?, of: PhantomData })
    }
}

#[cfg(feature = "schema")]
impl<T: schemars::JsonSchema> schemars::JsonSchema for JsonText<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> std::borrow::Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        T::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Borrowed<'a> {
        name: &'a str,
    }

    /// A row that outlives the data that it was serialized from.
    fn row() -> JsonText<Borrowed<'static>> {
        let name = "a\"b".to_owned();
        JsonText::new(&Borrowed { name: &name }).unwrap()
    }

    #[test]
    fn a_text_is_included_unchanged() {
        assert_eq!(row().get(), r#"{"name":"a\"b"}"#);
        assert_eq!(serde_json::to_string(&[row()]).unwrap(), r#"[{"name":"a\"b"}]"#);
        assert_eq!(crate::json!({ "rows": [row()] })["rows"][0]["name"], "a\"b");
        let read: Vec<JsonText<Borrowed<'_>>> = crate::json::from_str(r#"[{ "name" : 1.0 }]"#).unwrap();
        assert_eq!(read[0].get(), r#"{ "name" : 1.0 }"#);
    }
}
