//! The values of a thread (spec §18): durable JSON under keys. The runtime keeps its own state elsewhere, so
//! no key is reserved.

use std::ops::ControlFlow;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use crate::engine::features::KeyValues;
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::json;
use crate::json_text::JsonText;
use crate::limits;
use crate::page::{Page, json_bytes};
use crate::protocols::responses::values::{ListedValue, OneValue, ValuePage, ValueSet};
use crate::request::fields::{Body, shallow};
use crate::request::{Query, Reply};
use crate::store::state::State;
use crate::store::values as table;
use crate::store::values::ValueRow;

impl KeyValues<'_> {
    /// The value of a key; `None` if it was never set or was deleted.
    pub(super) fn value(&self, key: &str) -> Result<Option<Value>> {
        check_key("key", key)?;
        self.read(|_, sql| value(sql, key))
    }

    /// Sets a value, or deletes it with `null`. The value is durable before any output leaves the thread.
    ///
    /// # Errors
    /// `too_large` names the exceeded limit; `terminated`.
    pub(super) fn set_value(&self, key: &str, value: &Value) -> Result<()> {
        self.set_values(key, value, None, None).map(drop)
    }

    /// Sets a value if the current one is `expected`; `null` means no value. Returns whether it was set.
    pub(super) fn compare_and_set(&self, key: &str, expected: &Value, value: &Value) -> Result<bool> {
        self.set_values(key, value, None, Some(expected))
    }

    /// Sets a value, if the current one is `expected` or that is not given. Returns whether it was set.
    /// `previous`, if given, is deleted with it: a rename.
    fn set_values(
        &self,
        key: &str,
        value: &Value,
        previous: Option<&str>,
        expected: Option<&Value>,
    ) -> Result<bool> {
        check_key("key", key)?;
        let previous = previous.filter(|previous| *previous != key);
        if let Some(previous) = previous {
            check_key("previousKey", previous)?;
        }
        shallow("value", value)?;
        let text = value.to_string();
        if text.len() > limits::VALUE_BYTES {
            return Err(over(
                "value",
                format!("`value` has {} bytes as JSON; the limit is {}.", text.len(), limits::VALUE_BYTES),
            ));
        }
        let now = self.host.now_us();
        let renamed = self.transition(|state, sql| {
            state.ensure_not_terminated()?;
            if let Some(expected) = expected
                && !is_same(&crate::engine::values::value(sql, key)?.unwrap_or_default(), expected)
            {
                return Ok(None);
            }
            let renamed = match previous {
                Some(previous) => delete(state, sql, previous)?,
                None => false,
            };
            if value.is_null() {
                delete(state, sql, key)?;
            } else {
                set(state, sql, key, &text, now)?;
            }
            Ok(Some(renamed))
        })?;
        let Some(renamed) = renamed else { return Ok(false) };
        if let Some(previous) = previous.filter(|_| renamed) {
            self.announce_value(previous, true, now);
        }
        self.announce_value(key, value.is_null(), now);
        Ok(true)
    }

    fn announce_value(&self, key: &str, deleted: bool, now: i64) {
        if self.has_listeners() {
            self.emit("kv_changed", json!({ "key": key, "deleted": deleted, "updated_at": now }));
        }
    }

    /// `GET …/kv`: one value with `key`, else a page of values by key.
    pub(crate) fn get_values(&self, query: &Query) -> Result<Reply> {
        if let Some(key) = query.get("key") {
            let value = self.value(key)?.ok_or_else(|| no_value(key))?;
            return Ok(Reply::json(200, &OneValue { key, value }));
        }
        let page = self.values(query, |row| {
            let text = JsonText::new(&row)?;
            let bytes = text.get().len();
            Ok((text, bytes))
        })?;
        Ok(Reply::json(200, &page))
    }

    /// A page of values by key, for code.
    pub(super) fn values_for_code(&self, query: &Query) -> Result<Value> {
        let page = self.values(query, |row| {
            let value = json!(row);
            let bytes = json_bytes(&value);
            Ok((value, bytes))
        })?;
        Ok(json!(page))
    }

    /// A page of values by key. `written`: a row with its bytes as JSON.
    fn values<'a, Row>(
        &self,
        query: &'a Query,
        written: impl Fn(ListedValue<'_>) -> Result<(Row, usize)>,
    ) -> Result<ValuePage<'a, Row>> {
        let limit = query.number("limit", limits::PAGE_DEFAULT, limits::PAGE_MAX)?;
        let offset = query.number("offset", 0, u32::MAX)?;
        let prefix = query.get("prefix").unwrap_or_default();
        let search = query.get("search").unwrap_or_default();
        let after = query.get("cursor").filter(|cursor| !cursor.is_empty()).map(key_of).transpose()?;
        self.read(|_, sql| {
            let found = find(sql, prefix, search)?;
            let total = found.len() as u64;
            let rest = found.iter().skip_while(|key| after.as_ref().is_some_and(|after| key <= &after));
            let (mut page, mut last) = (Page::new(limit), None);
            for key in rest.skip(offset as usize) {
                if page.add_sized(|| written(entry(sql, key)?))?.is_break() {
                    break;
                }
                last = Some(key);
            }
            let cursor = last.filter(|_| page.has_more()).map(|key| URL_SAFE_NO_PAD.encode(key));
            let values = page.into_rows();
            Ok(ValuePage { values, total, limit, offset, prefix, search, cursor })
        })
    }

    /// `POST …/kv`: `{key, value, previousKey?, ifValue?}`; `null` deletes.
    pub(crate) fn post_value(&self, body: &str) -> Result<Reply> {
        let mut body = Body::parse(body)?.known(&["key", "value", "previousKey", "ifValue"])?;
        let key = body.string("key")?.ok_or_else(|| Error::missing("key"))?;
        let previous = body.string("previousKey")?;
        let value = body
            .take_even_null("value")
            .ok_or_else(|| Error::missing("value").hint("Give any JSON; null deletes the key."))?;
        let expected = body.take_even_null("ifValue");
        if !self.set_values(&key, &value, previous.as_deref(), expected.as_ref())? {
            let message = format!("The value of “{key}” is not what `ifValue` says.");
            let error = Error::new(Code::PreconditionFailed, message);
            return Err(error.at("ifValue").hint("Read it again: somebody else wrote it."));
        }
        let deleted = value.is_null();
        Ok(Reply::json(200, &ValueSet { key, value, previous_key: previous, deleted }))
    }

    /// `DELETE …/kv?key=`: succeeds even if there is none.
    pub(crate) fn delete_value(&self, query: &Query) -> Result<Reply> {
        let key = query.get("key").ok_or_else(|| Error::missing("key"))?;
        self.set_value(key, &Value::Null)?;
        Ok(Reply::empty(204))
    }
}

/// The keys that begin with `prefix` and contain `search`, in byte order. Compared here, because SQLite's
/// text functions end at a NUL.
fn find(sql: &dyn Sql, prefix: &str, search: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    table::each_key(sql, prefix, |key| {
        if !key.starts_with(prefix) {
            return ControlFlow::Break(());
        }
        if key.contains(search) {
            found.push(key.to_owned());
        }
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

/// Reads one value of a page by a lookup of its own: found keys are scattered, and a value between may have a
/// megabyte.
fn entry<'a>(sql: &dyn Sql, key: &'a str) -> Result<ListedValue<'a>> {
    let ValueRow { text, updated_us } = table::find(sql, key)?
        .ok_or_else(|| Error::internal(format!("the value “{key}” went away while it was read")))?;
    // A damaged value must not hide the others.
    let (value, damaged) = match parsed(key, &text) {
        Ok(value) => (Some(value), None),
        Err(error) => (None, Some(error.into_message())),
    };
    Ok(ListedValue { key, size: text.len() as u64, updated_at: updated_us, value, damaged })
}

fn value(sql: &dyn Sql, key: &str) -> Result<Option<Value>> {
    table::text(sql, key)?.map(|text| parsed(key, &text)).transpose()
}

/// Whether two values are equal; numbers are compared by value, not by notation.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) if a.is_f64() || b.is_f64() => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| is_same(value, other)))
        }
        _ => a == b,
    }
}

fn parsed(key: &str, text: &str) -> Result<Value> {
    crate::json::from_str(text)
        .map_err(|error| Error::internal(format!("the stored value of “{key}” is damaged: {error}")))
}

/// The number of values; counted once in the life of the object.
fn count(state: &mut State, sql: &dyn Sql) -> Result<u32> {
    if let Some(count) = state.values {
        return Ok(count);
    }
    let count = u32::try_from(table::count(sql)?).unwrap_or(u32::MAX);
    state.values = Some(count);
    Ok(count)
}

fn set(state: &mut State, sql: &dyn Sql, key: &str, text: &str, now: i64) -> Result<()> {
    if !table::exists(sql, key)? {
        let count = count(state, sql)?;
        if count >= limits::VALUES {
            return Err(over(
                "key",
                format!("This thread holds {count} values; the limit is {}.", limits::VALUES),
            )
            .hint("Delete one first: set it to null."));
        }
        state.values = Some(count + 1);
    }
    table::put(sql, key, text, now)
}

/// Deletes a value. Returns whether it existed.
fn delete(state: &mut State, sql: &dyn Sql, key: &str) -> Result<bool> {
    let existed = table::exists(sql, key)?;
    if existed {
        table::delete(sql, key)?;
        state.values = state.values.map(|count| count.saturating_sub(1));
    }
    Ok(existed)
}

fn check_key(field: &str, key: &str) -> Result<()> {
    if key.is_empty() {
        return Err(Error::field(field, format!("`{field}` must not be empty.")));
    }
    if key.len() > limits::VALUE_KEY_BYTES {
        return Err(over(
            field,
            format!("`{field}` has {} bytes; the limit is {}.", key.len(), limits::VALUE_KEY_BYTES),
        ));
    }
    Ok(())
}

fn over(field: &str, message: String) -> Error {
    Error::new(Code::TooLarge, message).at(field)
}

fn no_value(key: &str) -> Error {
    Error::new(Code::NotFound, format!("This thread has no value “{key}”."))
}

/// The key in a cursor of this list.
fn key_of(cursor: &str) -> Result<String> {
    let key = URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    key.filter(|key| !key.is_empty()).ok_or_else(|| {
        Error::new(Code::BadCursor, format!("`cursor` is none that this list gave out: “{cursor}”."))
            .at("cursor")
    })
}
