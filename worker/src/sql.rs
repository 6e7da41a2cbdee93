//! The object's SQLite for the engine.

use std::cell::{Cell as Counter, RefCell};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

use bobbin::host::{Cell, Param, Rows, Sql};
use bobbin::json;
use bobbin::{Error, Result};
use serde_json::Value;
use wasm_bindgen::prelude::*;

use crate::bindings::{Cursor, Iteration, SqlStorage, thrown};

/// Counts of an object's storage operations since it woke; only in development.
#[derive(Default)]
pub(crate) struct Counters {
    statements: Counter<u64>,
    outbox: Counter<u64>,
    rows_read: Counter<u64>,
    rows_written: Counter<u64>,
    transactions: Counter<u64>,
    alarms: Counter<u64>,
}

impl Counters {
    /// The counts, by name.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "statements": self.statements.get(),
            "outboxStatements": self.outbox.get(),
            "rowsRead": self.rows_read.get(),
            "rowsWritten": self.rows_written.get(),
            "transactions": self.transactions.get(),
            "alarms": self.alarms.get(),
            "wasmBytes": wasm_bytes(),
        })
    }

    /// Counts a transaction.
    pub(crate) fn transaction(&self) {
        self.transactions.set(self.transactions.get() + 1);
    }

    /// Counts a change of the alarm.
    pub(crate) fn alarm(&self) {
        self.alarms.set(self.alarms.get() + 1);
    }

    /// Counts a statement. Work on the outbox is not part of a turn and is counted separately.
    fn statement(&self, statement: &str, cursor: &Cursor) {
        if statement.contains("outbox") {
            self.outbox.set(self.outbox.get() + 1);
            return;
        }
        let add = |counter: &Counter<u64>, rows: Result<f64, JsValue>| {
            counter.set(counter.get() + rows.unwrap_or(0.0) as u64);
        };
        add(&self.statements, Ok(1.0));
        add(&self.rows_read, cursor.rows_read());
        add(&self.rows_written, cursor.rows_written());
    }
}

/// The memory of this Worker's wasm instance, which all objects of the isolate share, bytes. It never shrinks.
fn wasm_bytes() -> u64 {
    const PAGE_BYTES: u64 = 65_536;
    core::arch::wasm32::memory_size::<0>() as u64 * PAGE_BYTES
}

/// `ctx.storage.sql`.
pub(crate) struct ObjectSql {
    sql: SqlStorage,
    counters: Option<Rc<Counters>>,
}

impl ObjectSql {
    pub(crate) fn new(sql: SqlStorage, counters: Option<Rc<Counters>>) -> ObjectSql {
        ObjectSql { sql, counters }
    }

    fn exec(&self, statement: &'static str, params: &[Param<'_>]) -> Result<Cursor> {
        let params = params.iter().map(to_js).collect();
        self.sql.exec(&text_of(statement), params).map_err(|error| failed(statement, &error))
    }

    fn count(&self, statement: &str, cursor: &Cursor) {
        if let Some(counters) = &self.counters {
            counters.statement(statement, cursor);
        }
    }
}

impl Sql for ObjectSql {
    fn run(&self, statement: &'static str, params: &[Param<'_>]) -> Result<()> {
        let cursor = self.exec(statement, params)?;
        self.count(statement, &cursor);
        Ok(())
    }

    fn read(
        &self,
        statement: &'static str,
        params: &[Param<'_>],
        reader: &mut dyn FnMut(&mut dyn Rows) -> Result<()>,
    ) -> Result<()> {
        let cursor = self.exec(statement, params)?;
        let iterator = cursor.raw().map_err(|error| failed(statement, &error))?;
        let mut rows =
            CursorRows { statement, cursor, iterator, cells: Vec::new(), columns: None, ended: false };
        let outcome = reader(&mut rows);
        self.count(statement, &rows.cursor);
        outcome
    }

    fn size(&self) -> i64 {
        // Only a closed database has no size, and then everything else fails too.
        self.sql.database_size().map_or(0, |bytes| bytes as i64)
    }
}

/// The rows of a cursor of the platform.
struct CursorRows {
    statement: &'static str,
    cursor: Cursor,
    iterator: js_sys::Iterator,
    cells: Vec<Cell>,
    /// All rows of a statement have the same columns, so that they are counted once.
    columns: Option<u32>,
    ended: bool,
}

impl CursorRows {
    /// The iterator's next value; `None` after the last row.
    fn step(&mut self) -> Result<Option<js_sys::Array>> {
        let next = self.iterator.next().map_err(|error| failed(self.statement, &error))?;
        let next = JsValue::from(next).unchecked_into::<Iteration>();
        self.ended = next.done();
        Ok((!self.ended).then(|| next.value()))
    }
}

impl Rows for CursorRows {
    fn next(&mut self) -> Result<Option<&[Cell]>> {
        let Some(values) = self.step()? else { return Ok(None) };
        let columns = *self.columns.get_or_insert_with(|| values.length());
        self.cells.clear();
        for column in 0..columns {
            self.cells.push(from_js(&values.get(column)).ok_or_else(|| {
                Error::internal(format!("a column of an unknown kind in the answer to: {}", self.statement))
            })?);
        }
        Ok(Some(&self.cells))
    }

    /// Ends the statement. The platform does so after the last row, or when the cursor is garbage-collected,
    /// and a cursor has no method for it. `one` throws if rows are left, and ends the statement first. It
    /// also throws if none is left, which would be too slow for the usual case, a stop at the only row; so
    /// `next` is called first.
    fn close(&mut self) {
        if !self.ended && !matches!(self.step(), Ok(None)) {
            self.ended = true;
            // Its error reports several rows or none. The statement has ended in both cases.
            drop(self.cursor.one());
        }
    }
}

thread_local! {
    // A statement's text crosses into JavaScript once. `static` text is identified by its address.
    static TEXTS: RefCell<HashMap<(usize, usize), JsValue, BuildHasherDefault<Address>>> = RefCell::default();
}

/// Blobs from this size on are freed as soon as they are copied.
const FREED_BLOB_BYTES: usize = 64 << 10;

/// Hashes an address and a length. They cannot be chosen from outside, so a weak hash is enough.
#[derive(Default)]
struct Address(u64);

impl Hasher for Address {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_usize(usize::from(*byte));
        }
    }

    fn write_usize(&mut self, part: usize) {
        self.0 = (self.0 ^ part as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

fn text_of(statement: &'static str) -> JsValue {
    let key = (statement.as_ptr() as usize, statement.len());
    TEXTS.with(|texts| match texts.try_borrow_mut() {
        Ok(mut texts) => texts.entry(key).or_insert_with(|| JsValue::from_str(statement)).clone(),
        // The platform killed an event that had borrowed the cache. Continue without it.
        Err(_) => JsValue::from_str(statement),
    })
}

/// A parameter. Booleans are not supported, because the platform would bind them as text.
fn to_js(param: &Param<'_>) -> JsValue {
    match *param {
        Param::Null => JsValue::NULL,
        Param::Int(value) => JsValue::from_f64(value as f64),
        Param::Real(value) => JsValue::from_f64(value),
        Param::Text(value) => JsValue::from_str(value),
        Param::Blob(value) => js_sys::Uint8Array::from(value).into(),
    }
}

/// JavaScript has one type of number. Whole ones become integers.
fn from_js(value: &JsValue) -> Option<Cell> {
    if let Some(number) = value.as_f64() {
        let whole = number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_991.0;
        return Some(if whole { Cell::Int(number as i64) } else { Cell::Real(number) });
    }
    if value.is_null() {
        return Some(Cell::Null);
    }
    if let Some(text) = value.as_string() {
        return Some(Cell::Text(text));
    }
    let buffer = value.dyn_ref::<js_sys::ArrayBuffer>()?;
    let blob = js_sys::Uint8Array::new(buffer).to_vec();
    if blob.len() >= FREED_BLOB_BYTES {
        // Otherwise the engine would free it at its next full collection, which large buffers do not trigger.
        // A failure only costs memory.
        drop(buffer.transfer_with_length(0));
    }
    Some(Cell::Blob(blob))
}

fn failed(statement: &str, error: &JsValue) -> Error {
    let head: String = statement.chars().take(80).collect();
    Error::internal(format!("{} (in: {head})", thrown(error)))
}
