//! Options and inputs for the members of a thread, from code. Unknown names are refused with the nearest
//! valid name: to ignore an option would do something else than requested.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value as Json};

use crate::definitions::VariableKind;
use crate::error::{Error, Result};
use crate::request::fields::Body;
use crate::sandbox::Value;
use crate::sdk::NewMessage;
use crate::sdk::effects::{NewEffect, at_time};
use crate::store::file_record::FileOptions;
use crate::store::repeat::Repetition;
use crate::work::code::args::Args;

/// Checks the names of options. The hint becomes part of the message, because code sees only the message.
fn known(fields: Map<String, Json>, names: &[&str]) -> Result<Body> {
    Body::of(fields).known(names).map_err(with_hint)
}

/// Moves the error's hint into its message.
pub(super) fn with_hint(mut error: Error) -> Error {
    if let Some(hint) = error.hint.take() {
        error.message = format!("{} {hint}", error.message);
    }
    error
}

pub(super) fn message(fields: Map<String, Json>) -> Result<NewMessage> {
    let mut body = known(fields, &["role", "content", "silent", "metadata", "attachments"])?;
    let role = body.take("role").ok_or_else(|| Error::missing("role"))?;
    let role = crate::json::from_value(role)
        .map_err(|_| Error::field("role", "`role` must be user, assistant or system."))?;
    let attachments = crate::sdk::attachment_input::parse(&mut body)?;
    let message = NewMessage {
        role,
        content: body.string("content")?.unwrap_or_default(),
        silent: body.flag("silent")?,
        metadata: body.object("metadata")?.unwrap_or_default(),
        attachments,
    };
    Ok(message)
}

/// `scheduleEffect(name, args, options)`: a delay in milliseconds, or `{ delay? | at?, every? | cron? }`.
pub(super) fn effect(args: &mut Args) -> Result<NewEffect> {
    let (name, given) = (args.text("name")?, args.storable_object("args")?);
    let new = NewEffect { name, args: given, delay_ms: None, at_us: None, repeats: Repetition::Once };
    let mut body = match args.next() {
        Value::Undefined | Value::Null => return Ok(NewEffect { delay_ms: Some(0), ..new }),
        Value::Number(ms) => return Ok(NewEffect { delay_ms: Some(whole("delay", ms)?), ..new }),
        // `at` may be a `Date`.
        options @ Value::Object(_) => known(dated(options)?, &["delay", "at", "every", "cron"])?,
        _ => return Err(Error::field("delay", "`delay` must be a number of milliseconds.")),
    };
    let repeats = match (body.whole("every")?, body.string("cron")?) {
        (Some(_), Some(_)) => return Err(Error::field("cron", "Give `every` or `cron`, not both.")),
        (Some(ms), None) => Repetition::Every(ms),
        (None, Some(text)) => Repetition::Cron(text),
        (None, None) => Repetition::Once,
    };
    let at_us = body.take("at").map(|at| at_time(&at)).transpose()?;
    let mut delay_ms = body.whole("delay")?;
    if delay_ms.is_none() && at_us.is_none() && repeats == Repetition::Once {
        delay_ms = Some(0);
    }
    Ok(NewEffect { delay_ms, at_us, repeats, ..new })
}

fn whole(name: &str, number: f64) -> Result<i64> {
    match number.is_finite() && number.fract() == 0.0 {
        true => Ok(number as i64),
        false => Err(Error::field(name, format!("`{name}` must be a whole number of milliseconds."))),
    }
}

/// Options as JSON, with dates as milliseconds.
fn dated(options: Value) -> Result<Map<String, Json>> {
    let Value::Object(fields) = options else { return Ok(Map::new()) };
    fields
        .into_iter()
        .filter(|(_, value)| !matches!(value, Value::Undefined))
        .map(|(name, value)| {
            let json = match value {
                Value::Date(Some(ms)) => Json::from(ms as i64),
                Value::Date(None) => {
                    return Err(Error::field(&name, format!("`{name}` is an invalid date.")));
                }
                other => other.to_json().unwrap_or_default(),
            };
            Ok((name, json))
        })
        .collect()
}

/// `{ width?, height?, metadata?, thumbnail? }`; the thumbnail is bytes, or base64 as over HTTP.
pub(super) fn file_options(value: Value) -> Result<FileOptions> {
    let thumbnail = match value.get("thumbnail") {
        Value::Binary(_, bytes) => Some(bytes.clone()),
        _ => None,
    };
    let mut fields = match value.to_json() {
        None | Some(Json::Null) => Map::new(),
        Some(Json::Object(fields)) => fields,
        Some(_) => return Err(Error::field("options", "`options` must be an object.")),
    };
    if thumbnail.is_some() {
        fields.remove("thumbnail");
    }
    let mut body = known(fields, &["width", "height", "metadata", "thumbnail"])?;
    let mut options = crate::store::file_record::options(&mut body)?;
    options.thumbnail = thumbnail.or(options.thumbnail);
    Ok(options)
}

/// The same for another thread, with bytes as base64.
pub(super) fn plain_file_options(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let plain = |(name, value)| match value {
                Value::Binary(_, bytes) => (name, Value::String(STANDARD.encode(bytes))),
                value => (name, value),
            };
            Value::Object(fields.into_iter().map(plain).collect())
        }
        other => other,
    }
}

/// `{ type? }` of setEnv.
pub(super) fn env_kind(fields: Option<Map<String, Json>>) -> Result<Option<VariableKind>> {
    let mut body = known(fields.unwrap_or_default(), &["type"])?;
    let kind = body.take("type").map(crate::json::from_value::<VariableKind>).transpose();
    let kind = kind.map_err(|_| Error::field("type", "`type` must be “text” or “secret”."))?;
    Ok(kind)
}

/// `{ ifValue? }` of setValue: the expected value. The presence of the option matters: `undefined` means no
/// value, as `null` does, and never an unconditional write.
pub(super) fn if_value(options: Value) -> Result<Option<Json>> {
    let fields = match options {
        Value::Undefined | Value::Null => return Ok(None),
        Value::Object(fields) => fields,
        _ => return Err(Error::field("options", "`options` must be an object.")),
    };
    let mut expected = None;
    for (name, value) in fields {
        match name.as_str() {
            "ifValue" => expected = Some(Args::new(vec![value]).storable("ifValue")?),
            _ => return known(Map::from_iter([(name, Json::Null)]), &["ifValue"]).map(|_| None),
        }
    }
    Ok(expected)
}
