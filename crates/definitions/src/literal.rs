//! The macro for JSON literals. `serde_json`'s own macro inlines the insertion into a map at some two
//! thousand fields, which makes the Worker's wasm 5 % larger. Here, a field is two calls.

use serde::Serialize;
use serde_json::Map;
#[doc(hidden)]
pub use serde_json::Value;

/// Builds a JSON value from a literal with expressions. Like `serde_json::json!`, except that an expression
/// that cannot be JSON becomes null instead of a panic.
#[macro_export]
macro_rules! json {
    (null) => { $crate::literal::Value::Null };
    ([]) => { $crate::literal::List::default().done() };
    ([ $($items:tt)* ]) => {{
        let mut list = $crate::literal::List::default();
        $crate::json_items!(list $($items)*)
    }};
    ({}) => { $crate::literal::Object::default().done() };
    ({ $($fields:tt)* }) => {{
        let mut object = $crate::literal::Object::default();
        $crate::json_fields!(object $($fields)*)
    }};
    ($value:expr) => { $crate::literal::value(&$value) };
}

/// Adds the fields of an object.
#[doc(hidden)]
#[macro_export]
macro_rules! json_fields {
    ($object:ident) => { $object.done() };
    ($object:ident $name:tt : null $(, $($rest:tt)*)?) => {{
        $object.put($crate::literal::name(&$name), $crate::literal::Value::Null);
        $crate::json_fields!($object $($($rest)*)?)
    }};
    ($object:ident $name:tt : { $($inner:tt)* } $(, $($rest:tt)*)?) => {{
        $object.put($crate::literal::name(&$name), $crate::json!({ $($inner)* }));
        $crate::json_fields!($object $($($rest)*)?)
    }};
    ($object:ident $name:tt : [ $($inner:tt)* ] $(, $($rest:tt)*)?) => {{
        $object.put($crate::literal::name(&$name), $crate::json!([ $($inner)* ]));
        $crate::json_fields!($object $($($rest)*)?)
    }};
    ($object:ident $name:tt : $value:expr $(, $($rest:tt)*)?) => {{
        $object.put($crate::literal::name(&$name), $crate::literal::value(&$value));
        $crate::json_fields!($object $($($rest)*)?)
    }};
}

/// Adds the values of a list.
#[doc(hidden)]
#[macro_export]
macro_rules! json_items {
    ($list:ident) => { $list.done() };
    ($list:ident null $(, $($rest:tt)*)?) => {{
        $list.push($crate::literal::Value::Null);
        $crate::json_items!($list $($($rest)*)?)
    }};
    ($list:ident { $($inner:tt)* } $(, $($rest:tt)*)?) => {{
        $list.push($crate::json!({ $($inner)* }));
        $crate::json_items!($list $($($rest)*)?)
    }};
    ($list:ident [ $($inner:tt)* ] $(, $($rest:tt)*)?) => {{
        $list.push($crate::json!([ $($inner)* ]));
        $crate::json_items!($list $($($rest)*)?)
    }};
    ($list:ident $value:expr $(, $($rest:tt)*)?) => {{
        $list.push($crate::literal::value(&$value));
        $crate::json_items!($list $($($rest)*)?)
    }};
}

/// An object under construction.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Object(Map<String, Value>);

impl Object {
    #[inline(never)]
    pub fn put(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    pub fn done(self) -> Value {
        Value::Object(self.0)
    }
}

/// A list under construction.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct List(Vec<Value>);

impl List {
    #[inline(never)]
    pub fn push(&mut self, value: Value) {
        self.0.push(value);
    }

    pub fn done(self) -> Value {
        Value::Array(self.0)
    }
}

/// The name of a field.
#[doc(hidden)]
pub fn name<T: AsRef<str> + ?Sized>(name: &T) -> &str {
    name.as_ref()
}

/// The value of an expression.
#[doc(hidden)]
#[inline(never)]
pub fn value<T: Serialize + ?Sized>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::Value;

    /// The text that both macros produce.
    macro_rules! both {
        ($($written:tt)*) => {
            assert_eq!(crate::json!($($written)*).to_string(), serde_json::json!($($written)*).to_string())
        };
    }

    #[test]
    fn what_is_written_is_what_serde_json_makes_of_it() {
        let (text, none, list) = ("a\"b".to_owned(), None::<&str>, vec![1, 2]);
        let object = serde_json::json!({ "z": 1, "a": 2 });
        both!(null);
        both!([]);
        both!({});
        both!(text.len() + 1);
        both!([null, {}, [], { "a": [1, -2.5, true] }, text, [[list]],]);
        both!({
            "text": text, "none": none, "object": object, "list": list.iter().sum::<i32>(), "null": null, "twice": 1,
            "nested": { "empty": {}, "items": [{ "id": &text[1..] }], }, "twice": if list.is_empty() { 1 } else { 2 },
            "u64": u64::MAX, "i64": i64::MIN, "float": 1e300, "some": Some(1), "last": [],
        });
    }

    #[test]
    fn a_number_that_is_none_is_null() {
        assert_eq!(crate::json!({ "a": f64::NAN })["a"], Value::Null);
    }
}
