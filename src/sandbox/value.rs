//! Values that cross the boundary of the sandbox (spec §17.7).

use std::fmt;
use std::rc::{Rc, Weak};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use chrono::{DateTime, Datelike, Timelike};
use futures::future::{FutureExt, LocalBoxFuture};
use serde_json::{Number, Value as Json};

use crate::json;
use crate::sandbox::run_state::{RunGuard, RunState};

/// A value of sandboxed code. Everything is copied, and functions are proxies.
#[derive(Clone, Debug)]
pub enum Value {
    /// `undefined`.
    Undefined,
    /// `null`.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number, also `NaN`, the infinities and `-0`.
    Number(f64),
    /// A bigint, in decimal.
    BigInt(String),
    /// A string. Lone surrogates do not cross: they become U+FFFD.
    String(String),
    /// An array; holes are `undefined`.
    Array(Vec<Value>),
    /// A plain object: its own enumerable properties, in order.
    Object(Vec<(String, Value)>),
    /// A `Map`.
    Map(Vec<(Value, Value)>),
    /// A `Set`.
    Set(Vec<Value>),
    /// A `Date`, in milliseconds since 1970; `None` for an invalid one.
    Date(Option<f64>),
    /// A `RegExp`.
    RegExp {
        /// The text between the slashes.
        source: String,
        /// The flags after the slashes.
        flags: String,
    },
    /// An error.
    Error(Exception),
    /// An `ArrayBuffer`, a `DataView` or a typed array.
    Binary(BinaryKind, Bytes),
    /// A function, called from the other side.
    Function(Function),
}

/// The fields of an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exception {
    /// The `name`, such as `TypeError`.
    pub name: String,
    /// The `message`.
    pub message: String,
    /// Origin, in the sandbox's own files; empty when unknown.
    pub stack: String,
}

impl Exception {
    /// A plain `Error`.
    pub fn new(message: impl Into<String>) -> Exception {
        Exception { name: "Error".to_owned(), message: message.into(), stack: String::new() }
    }

    /// The error for a value that cannot be copied.
    pub(super) fn unserializable(message: impl Into<String>) -> Exception {
        Exception { name: "SerializationError".to_owned(), ..Exception::new(message) }
    }
}

impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.message)
    }
}

impl From<crate::Error> for Exception {
    fn from(error: crate::Error) -> Exception {
        Exception::new(error.into_message())
    }
}

/// The constructors of binary values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BinaryKind {
    ArrayBuffer,
    DataView,
    Int8Array,
    Uint8Array,
    Uint8ClampedArray,
    Int16Array,
    Uint16Array,
    Int32Array,
    Uint32Array,
    Float16Array,
    Float32Array,
    Float64Array,
    BigInt64Array,
    BigUint64Array,
}

impl BinaryKind {
    const ALL: [BinaryKind; 14] = [
        BinaryKind::ArrayBuffer,
        BinaryKind::DataView,
        BinaryKind::Int8Array,
        BinaryKind::Uint8Array,
        BinaryKind::Uint8ClampedArray,
        BinaryKind::Int16Array,
        BinaryKind::Uint16Array,
        BinaryKind::Int32Array,
        BinaryKind::Uint32Array,
        BinaryKind::Float16Array,
        BinaryKind::Float32Array,
        BinaryKind::Float64Array,
        BinaryKind::BigInt64Array,
        BinaryKind::BigUint64Array,
    ];

    /// The constructor's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            BinaryKind::ArrayBuffer => "ArrayBuffer",
            BinaryKind::DataView => "DataView",
            BinaryKind::Int8Array => "Int8Array",
            BinaryKind::Uint8Array => "Uint8Array",
            BinaryKind::Uint8ClampedArray => "Uint8ClampedArray",
            BinaryKind::Int16Array => "Int16Array",
            BinaryKind::Uint16Array => "Uint16Array",
            BinaryKind::Int32Array => "Int32Array",
            BinaryKind::Uint32Array => "Uint32Array",
            BinaryKind::Float16Array => "Float16Array",
            BinaryKind::Float32Array => "Float32Array",
            BinaryKind::Float64Array => "Float64Array",
            BinaryKind::BigInt64Array => "BigInt64Array",
            BinaryKind::BigUint64Array => "BigUint64Array",
        }
    }

    /// The kind of a constructor's name.
    pub(super) fn of(name: &str) -> Option<BinaryKind> {
        BinaryKind::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// The future result of a function.
pub type CallFuture = LocalBoxFuture<'static, Result<Value, Exception>>;

/// A function that either side may call. It is asynchronous for its caller.
#[derive(Clone)]
pub struct Function {
    name: Rc<str>,
    run: Rc<dyn Fn(Vec<Value>) -> CallFuture>,
    home: Option<RunRef>,
}

/// The run that a sandbox's function belongs to.
#[derive(Clone)]
struct RunRef {
    life: Weak<RunState>,
    /// Keeps the run alive. Not every holder does.
    keep: Option<Rc<RunGuard>>,
}

impl Function {
    /// A function. The sandbox sees only its name.
    pub fn new(name: &str, run: impl Fn(Vec<Value>) -> CallFuture + 'static) -> Function {
        Function { name: Rc::from(name), run: Rc::new(run), home: None }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Calls it.
    ///
    /// The exception of the function, or an error when it is gone: a function of the sandbox exists while its
    /// execution is held, and a function of a result while that is held.
    pub fn call(&self, args: Vec<Value>) -> CallFuture {
        let called = (self.run)(args);
        let Some(keep) = self.kept() else { return called };
        async move {
            let _kept = keep;
            called.await
        }
        .boxed_local()
    }

    /// Marks it as a function of this run's sandbox.
    pub(super) fn of(self, life: &Rc<RunState>, keep: Option<Rc<RunGuard>>) -> Function {
        Function { home: Some(RunRef { life: Rc::downgrade(life), keep }), ..self }
    }

    /// The run that it belongs to, if it is a sandbox's.
    pub(super) fn home(&self) -> Option<Rc<RunState>> {
        self.home.as_ref()?.life.upgrade()
    }

    /// The [`RunGuard`] that it holds.
    pub(super) fn kept(&self) -> Option<Rc<RunGuard>> {
        self.home.as_ref()?.keep.clone()
    }

    /// The function without its [`RunGuard`].
    pub(super) fn unheld(&self) -> Function {
        let home = self.home.as_ref().map(|home| RunRef { keep: None, ..home.clone() });
        Function { home, ..self.clone() }
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[function {}]", self.name)
    }
}

impl Value {
    /// An object's property, or `undefined`.
    pub fn get(&self, key: &str) -> &Value {
        match self {
            Value::Object(fields) => {
                fields.iter().find(|(name, _)| name == key).map_or(&Value::Undefined, |(_, value)| value)
            }
            _ => &Value::Undefined,
        }
    }

    /// The text of a string.
    pub fn text(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// Whether it is `undefined` or `null`.
    pub fn is_nullish(&self) -> bool {
        matches!(self, Value::Undefined | Value::Null)
    }

    /// The value as JSON for a model or a client: a `Map` with string keys is an object, any other a list of
    /// pairs; a `Set` is a list; a date and a bigint are strings; bytes are base64; numbers that JSON cannot
    /// express are `null`. `None` for `undefined` and functions.
    pub fn to_json(&self) -> Option<Json> {
        Some(match self {
            Value::Undefined | Value::Function(_) => return None,
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Number(value) => number(*value),
            Value::BigInt(digits) => Json::String(digits.clone()),
            Value::String(text) => Json::String(text.clone()),
            Value::Array(items) | Value::Set(items) => items.iter().map(Value::json_or_null).collect(),
            Value::Object(fields) => object(fields.iter().map(|(key, value)| (key.as_str(), value))),
            Value::Map(entries) if entries.iter().all(|(key, _)| key.text().is_some()) => {
                object(entries.iter().filter_map(|(key, value)| Some((key.text()?, value))))
            }
            Value::Map(entries) => entries
                .iter()
                .map(|(key, value)| Json::Array(vec![key.json_or_null(), value.json_or_null()]))
                .collect(),
            Value::Date(at) => at.and_then(iso).map_or(Json::Null, Json::String),
            Value::RegExp { source, flags } => Json::String(format!("/{source}/{flags}")),
            Value::Error(thrown) => json!({ "name": thrown.name, "message": thrown.message }),
            Value::Binary(_, bytes) => Json::String(STANDARD.encode(bytes)),
        })
    }

    fn json_or_null(&self) -> Json {
        self.to_json().unwrap_or(Json::Null)
    }
}

fn object<'a>(fields: impl Iterator<Item = (&'a str, &'a Value)>) -> Json {
    Json::Object(fields.filter_map(|(key, value)| Some((key.to_owned(), value.to_json()?))).collect())
}

/// `2026-11-21T10:00:00.000Z`.
fn iso(ms: f64) -> Option<String> {
    let at = DateTime::from_timestamp_millis(ms as i64)?;
    let (day, time) = (at.date_naive(), at.time());
    let ms = at.timestamp_subsec_millis();
    Some(format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{ms:03}Z",
        day.year(),
        day.month(),
        day.day(),
        time.hour(),
        time.minute(),
        time.second()
    ))
}

/// A whole number has no fraction in JSON.
fn number(value: f64) -> Json {
    const SAFE: f64 = 9_007_199_254_740_991.0;
    if value.fract() == 0.0 && value.abs() <= SAFE {
        return Json::from(value as i64);
    }
    Number::from_f64(value).map_or(Json::Null, Json::Number)
}

impl From<Json> for Value {
    fn from(json: Json) -> Value {
        match json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(value),
            Json::Number(value) => Value::Number(value.as_f64().unwrap_or(f64::NAN)),
            Json::String(text) => Value::String(text),
            Json::Array(items) => Value::Array(items.into_iter().map(Value::from).collect()),
            Json::Object(fields) => {
                Value::Object(fields.into_iter().map(|(key, value)| (key, Value::from(value))).collect())
            }
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::String(text.to_owned())
    }
}

impl From<Function> for Value {
    fn from(function: Function) -> Value {
        Value::Function(function)
    }
}
