//! The table `logs`: one row per attempt at a model, and one per stop, recovery, failure and termination
//! (spec §29). `log_record.rs` writes the contents of the rows. Rows of a thread are never deleted. The object of a
//! shared memory has the same table.

use std::ops::ControlFlow;

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::host::{Cell, Param, Sql, integer, pairs};
use crate::json;
use crate::limits;
use crate::store::table::Table;
use crate::text::shorten;

pub(crate) const TABLE: Table = Table {
    create: &["CREATE TABLE IF NOT EXISTS logs (
        id INTEGER PRIMARY KEY, kind TEXT NOT NULL, run INTEGER, at_us INTEGER NOT NULL, reply INTEGER,
        retry_of INTEGER, data TEXT NOT NULL)"],
    drop: "DROP TABLE logs",
};

/// The kind of rows about attempts.
pub(crate) const ATTEMPT: &str = "llm_request";
/// The kind of rows that record that a part of a response was shown, which must not start over.
pub(super) const SHOWN: &str = "shown";
/// The kind of rows with the provider's id of a response that runs in the background.
pub(super) const BACKGROUND: &str = "background";
/// The kind of rows that code adds to the trace of a run.
pub(crate) const TRACE: &str = "trace";

/// The kind of rows about searches in a memory.
pub(crate) const MEMORY: &str = "memory";

/// A row of `logs`.
pub(crate) struct Entry {
    pub(crate) id: i64,
    pub(crate) kind: String,
    pub(crate) run: Option<i64>,
    pub(crate) at_us: i64,
    pub(crate) reply: Option<i64>,
    retry_of: Option<i64>,
    /// JSON, as stored.
    pub(crate) data: String,
}

/// Sums over all attempts.
pub(crate) struct Sums {
    /// USD, for the requests whose models have a price.
    pub(crate) cost: f64,
    pub(crate) input_tokens: i64,
    pub(crate) cached_tokens: i64,
    pub(crate) output_tokens: i64,
    pub(crate) reasoning_tokens: i64,
    pub(crate) requests: i64,
    /// Completed requests without a price.
    pub(crate) unpriced: i64,
    /// Whether the use of at least one request was not reported and is charged as an estimate.
    pub(crate) estimated: bool,
}

/// Writes a row; an error text that is too long is shortened.
pub(crate) fn insert(
    sql: &dyn Sql,
    kind: &str,
    run: Option<i64>,
    at_us: i64,
    reply: Option<i64>,
    retry_of: Option<i64>,
    data: &Value,
) -> Result<()> {
    let text = bounded(data);
    sql.run(
        "INSERT INTO logs (kind, run, at_us, reply, retry_of, data) VALUES (?, ?, ?, ?, ?, ?)",
        &[
            Param::Text(kind),
            run.into(),
            Param::Int(at_us),
            reply.into(),
            retry_of.into(),
            Param::Text(&text),
        ],
    )
}

impl Entry {
    /// The id that clients receive.
    pub(crate) fn public_id(&self) -> String {
        format!("l_{}", self.id)
    }

    /// The fields of the row that clients receive.
    pub(crate) fn fields(self) -> Map<String, Value> {
        let mut fields = Map::new();
        fields.insert("id".into(), self.public_id().into());
        fields.insert("type".into(), self.kind.into());
        fields.insert("created_at".into(), self.at_us.into());
        fields.insert("retry_of_attempt".into(), self.retry_of.into());
        if let Ok(Value::Object(mut data)) = json::from_str(&self.data) {
            // The response gives these amounts in fields with units.
            data.remove("booked");
            fields.extend(data);
        }
        fields
    }

    fn read(cells: &[Cell]) -> Result<Entry> {
        let [id, kind, run, at, reply, retry_of, data] = cells else {
            return Err(Error::internal("a log row has the wrong number of columns"));
        };
        Ok(Entry {
            id: id.int().unwrap_or_default(),
            kind: kind.text().unwrap_or_default().to_owned(),
            run: run.int(),
            at_us: at.int().unwrap_or_default(),
            reply: reply.int(),
            retry_of: retry_of.int(),
            data: data.text().unwrap_or_default().to_owned(),
        })
    }
}

/// Writes the row of an attempt and, before it, the snapshot of the thread's first run, in one statement.
pub(super) fn insert_first(
    sql: &dyn Sql,
    run: i64,
    snapshot: &Value,
    at_us: i64,
    reply: i64,
    retry_of: Option<i64>,
    data: &Value,
) -> Result<()> {
    sql.run(
        "INSERT INTO logs (kind, run, at_us, reply, retry_of, data)
         VALUES ('snapshot', ?1, ?2, NULL, NULL, ?3), ('llm_request', ?1, ?2, ?4, ?5, ?6)",
        &[
            Param::Int(run),
            Param::Int(at_us),
            Param::Text(&snapshot.to_string()),
            Param::Int(reply),
            retry_of.into(),
            Param::Text(&bounded(data)),
        ],
    )
}

/// The text of a row. Only an error can make it too long; its end is cut.
fn bounded(data: &Value) -> String {
    let text = json::text(data);
    if text.len() <= limits::LOG_ROW_BYTES {
        return text;
    }
    let mut short = data.clone();
    if let Some(Value::String(error)) = short.get_mut("error") {
        shorten(error, limits::LOG_ROW_BYTES / 4);
    }
    json::text(&short)
}

/// One row.
pub(crate) fn find(sql: &dyn Sql, id: i64) -> Result<Option<Entry>> {
    let mut entry = None;
    sql.each(
        "SELECT id, kind, run, at_us, reply, retry_of, data FROM logs WHERE id = ?",
        &[Param::Int(id)],
        &mut |cells| {
            entry = Some(Entry::read(cells)?);
            Ok(ControlFlow::Break(()))
        },
    )?;
    Ok(entry)
}

/// The number of a row in a client's id.
pub(crate) fn parse_id(id: &str) -> Option<i64> {
    id.strip_prefix("l_")?.parse().ok()
}

/// Whether the table exists.
pub(crate) fn is_there(sql: &dyn Sql) -> bool {
    matches!(integer(sql, "SELECT 1 FROM sqlite_schema WHERE name = 'logs'", &[]), Ok(Some(1)))
}

/// Rows older than one, newest first.
pub(crate) fn page(
    sql: &dyn Sql,
    before: i64,
    mut take: impl FnMut(Entry) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let statement =
        "SELECT id, kind, run, at_us, reply, retry_of, data FROM logs WHERE id < ? ORDER BY id DESC";
    sql.each(statement, &[Param::Int(before)], &mut |cells| take(Entry::read(cells)?))
}

/// Forgets all but the newest rows.
pub(crate) fn keep(sql: &dyn Sql, rows: i64) -> Result<()> {
    sql.run("DELETE FROM logs WHERE id <= (SELECT max(id) FROM logs) - ?", &[Param::Int(rows)])
}

/// The rows of a run, oldest first. Rows of runs are stored in the order of the runs, with rows of no run
/// between them. The first row is found by bisection, without an index.
pub(crate) fn of_run(
    sql: &dyn Sql,
    run: i64,
    take: &mut dyn FnMut(Entry) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let last = integer(sql, "SELECT max(id) FROM logs", &[])?.unwrap_or(0);
    // All rows before `low` belong to earlier runs. The next row of a run from `high` on belongs to this run
    // or a later one.
    let (mut low, mut high) = (1, last + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        let next = "SELECT run FROM logs WHERE id >= ? AND run IS NOT NULL ORDER BY id LIMIT 1";
        match integer(sql, next, &[Param::Int(middle)])? {
            Some(earlier) if earlier < run => low = middle + 1,
            _ => high = middle,
        }
    }
    sql.each(
        "SELECT id, kind, run, at_us, reply, retry_of, data FROM logs WHERE id >= ? ORDER BY id",
        &[Param::Int(low)],
        &mut |cells| {
            let entry = Entry::read(cells)?;
            match entry.run {
                None => Ok(ControlFlow::Continue(())),
                Some(of) if of == run => take(entry),
                Some(_) => Ok(ControlFlow::Break(())),
            }
        },
    )
}

/// The data of the newest row of a kind, as JSON. Scans the newer rows.
pub(crate) fn last_of(sql: &dyn Sql, kind: &str) -> Result<Option<String>> {
    let mut found = None;
    sql.each(
        "SELECT data FROM logs WHERE kind = ? ORDER BY id DESC LIMIT 1",
        &[Param::Text(kind)],
        &mut |cells| {
            found = cells.first().and_then(Cell::text).map(str::to_owned);
            Ok(ControlFlow::Break(()))
        },
    )?;
    Ok(found)
}

/// The data of the newest snapshot with this hash that was written before a run; runs with the same
/// definitions share it.
pub(crate) fn snapshot_before(sql: &dyn Sql, run: i64, hash: &str) -> Result<Option<String>> {
    let mut found = None;
    sql.each(
        "SELECT data FROM logs WHERE kind = 'snapshot' AND run < ? AND data ->> 'hash' = ? ORDER BY id DESC LIMIT 1",
        &[Param::Int(run), Param::Text(hash)],
        &mut |cells| {
            found = cells.first().and_then(Cell::text).map(str::to_owned);
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(found)
}

/// The rows of a run and all newer ones, newest first; of the rows without a run, attempts only.
pub(crate) fn each_of_run(sql: &dyn Sql, run: i64, mut take: impl FnMut(Entry) -> Result<()>) -> Result<()> {
    let statement = "SELECT id, kind, run, at_us, reply, retry_of, data FROM logs ORDER BY id DESC";
    sql.each(statement, &[], &mut |cells| {
        let entry = Entry::read(cells)?;
        match entry.run {
            None if entry.kind == ATTEMPT => take(entry).map(ControlFlow::Continue),
            None => Ok(ControlFlow::Continue(())),
            // A run begins after the one before it has ended.
            Some(of) if of < run => Ok(ControlFlow::Break(())),
            Some(_) => take(entry).map(ControlFlow::Continue),
        }
    })
}

/// The number of spans that were dropped without export, and the error of the newest.
pub(crate) fn dropped_spans(sql: &dyn Sql) -> Result<(i64, Option<String>)> {
    let mut found = (0, None);
    sql.each(
        "SELECT ifnull(sum(data ->> 'dropped'), 0),
            (SELECT data ->> 'error' FROM logs WHERE kind = 'failure' AND data ->> 'job' = 'export' ORDER BY id DESC LIMIT 1)
         FROM logs WHERE kind = 'failure' AND run IS NULL",
        &[],
        &mut |cells| {
            let [dropped, error] = cells else { return Ok(ControlFlow::Continue(())) };
            found = (dropped.int().unwrap_or(0), error.text().map(str::to_owned));
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(found)
}

pub(crate) fn has_recent_attempt(sql: &dyn Sql, reply: i64, stream: u32) -> Result<bool> {
    let found = integer(
        sql,
        "SELECT 1 FROM logs WHERE id > (SELECT max(id) FROM logs) - 20 AND reply = ? AND kind = 'llm_request'
         AND data ->> 'attempt' = ? LIMIT 1",
        &[Param::Int(reply), Param::Int(i64::from(stream))],
    )?;
    Ok(found.is_some())
}

/// The provider's id of the newest background response of a step. Scans the newest rows, which belong to this
/// step.
pub(crate) fn in_background(sql: &dyn Sql, reply: i64, call: &str, model: &str) -> Result<Option<String>> {
    let mut found = None;
    sql.each(
        "SELECT data ->> 'response_id' FROM (SELECT id, kind, reply, data FROM logs ORDER BY id DESC LIMIT 1000)
         WHERE reply = ? AND kind = 'background' AND data ->> 'model_name' = ?
           AND ifnull(data ->> 'parent_call', '') = ? ORDER BY id DESC LIMIT 1",
        &[Param::Int(reply), Param::Text(model), Param::Text(call)],
        &mut |cells| {
            found = cells.first().and_then(Cell::text).map(str::to_owned);
            Ok(ControlFlow::Break(()))
        },
    )?;
    Ok(found)
}

/// The background responses of a step, newest first, without completed ones: the provider's id and the model.
/// Scans the newest rows, which belong to this step.
pub(crate) fn all_in_background(sql: &dyn Sql, reply: i64) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    sql.each(
        "WITH newest AS (SELECT id, kind, data FROM (SELECT id, kind, reply, data FROM logs ORDER BY id DESC LIMIT 1000)
           WHERE reply = ? AND kind IN ('background', 'llm_request'))
         SELECT data ->> 'response_id', data ->> 'model_name' FROM newest WHERE kind = 'background'
           AND data ->> 'response_id' NOT IN (SELECT ifnull(data ->> 'response_id', '') FROM newest
             WHERE kind = 'llm_request' AND data ->> 'status' = 'completed')
         ORDER BY id DESC LIMIT 16",
        &[Param::Int(reply)],
        &mut |cells| {
            if let [id, model] = cells
                && let (Some(id), Some(model)) = (id.text(), model.text())
            {
                found.push((id.to_owned(), model.to_owned()));
            }
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(found)
}

/// Attempts of a step at a model whose connection broke before the response began. Scans the newest rows,
/// which belong to this step.
pub(crate) fn broken_streams(sql: &dyn Sql, reply: i64, model: &str) -> Result<u32> {
    let broken = integer(
        sql,
        "SELECT count(*) FROM (SELECT kind, reply, data FROM logs ORDER BY id DESC LIMIT 1000)
         WHERE reply = ? AND kind = 'llm_request' AND data ->> 'model_name' = ? AND data ->> 'network'
           AND data ->> 'time_to_first_token_ms' IS NULL",
        &[Param::Int(reply), Param::Text(model)],
    )?;
    Ok(broken.and_then(|broken| u32::try_from(broken).ok()).unwrap_or(0))
}

/// Whether a part of this stream was shown, so that it must not start over.
pub(crate) fn was_shown(sql: &dyn Sql, reply: i64, stream: u32) -> Result<bool> {
    let shown = integer(
        sql,
        "SELECT json_extract(data, '$.attempt') FROM logs WHERE reply = ? AND kind = 'shown' ORDER BY id DESC LIMIT 1",
        &[Param::Int(reply)],
    )?;
    Ok(shown == Some(i64::from(stream)))
}

/// The number of the stream that produced a stored reply.
pub(crate) fn stream_of(sql: &dyn Sql, reply: i64) -> Result<Option<u32>> {
    let stream = integer(
        sql,
        "SELECT json_extract(data, '$.attempt') FROM logs
         WHERE reply = ? AND kind = 'llm_request' ORDER BY id DESC LIMIT 1",
        &[Param::Int(reply)],
    )?;
    Ok(stream.and_then(|stream| u32::try_from(stream).ok()))
}

/// The number of log entries including the receipts, which clients see as entries. Log rows are never
/// deleted, so that their highest id counts them; receipts are few.
pub(crate) fn count_with_calls(sql: &dyn Sql) -> Result<i64> {
    let statement = "SELECT ifnull((SELECT max(id) FROM logs), 0) + (SELECT count(*) FROM calls)";
    Ok(integer(sql, statement, &[])?.unwrap_or(0))
}

/// Times and ids of the first `limit` rows by id, or of the last ones.
pub(crate) fn times(sql: &dyn Sql, limit: i64, ascending: bool) -> Result<Vec<(i64, i64)>> {
    let statement = match ascending {
        true => "SELECT at_us, id FROM logs ORDER BY id LIMIT ?",
        false => "SELECT at_us, id FROM logs ORDER BY id DESC LIMIT ?",
    };
    pairs(sql, statement, &[Param::Int(limit)])
}

/// Times and ids of the rows with these ids, and of those that belong to these messages. Both lists are JSON.
pub(crate) fn times_of(sql: &dyn Sql, ids: &str, messages: &str) -> Result<Vec<(i64, i64)>> {
    pairs(
        sql,
        "SELECT at_us, id FROM logs
         WHERE id IN (SELECT value FROM json_each(?)) OR reply IN (SELECT value FROM json_each(?))",
        &[Param::Text(ids), Param::Text(messages)],
    )
}

pub(crate) fn sums(sql: &dyn Sql) -> Result<Option<Sums>> {
    let mut sums = None;
    sql.each(
        "SELECT total(cost), sum(input), sum(cached), sum(output), sum(reasoning), count(*), sum(done AND cost IS NULL), max(estimated)
         FROM (SELECT json_extract(data, '$.cost_total') cost, json_extract(data, '$.input_tokens') input,
                json_extract(data, '$.cached_tokens') cached, json_extract(data, '$.output_tokens') output,
                json_extract(data, '$.reasoning_tokens') reasoning,
                json_extract(data, '$.status') IS 'completed' done,
                json_extract(data, '$.usage_estimated') IS NOT NULL estimated
            FROM logs WHERE kind = 'llm_request')",
        &[],
        &mut |cells| {
            let number = |place: usize| cells.get(place).and_then(Cell::int).unwrap_or(0);
            sums = Some(Sums {
                cost: cells.first().and_then(Cell::real).unwrap_or(0.0),
                input_tokens: number(1),
                cached_tokens: number(2),
                output_tokens: number(3),
                reasoning_tokens: number(4),
                requests: number(5),
                unpriced: number(6),
                estimated: number(7) == 1,
            });
            Ok(ControlFlow::Break(()))
        },
    )?;
    Ok(sums)
}
