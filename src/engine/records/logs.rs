//! The log for clients (spec §27.3, §29): attempts at models, receipts of calls, and events, in one list.

use serde_json::Value;

use crate::definitions::Catalog;
use crate::engine::calls::call::tier_of_call;
use crate::engine::features::Records;
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::json;
use crate::limits;
use crate::page::Page;
use crate::protocols::responses::logs::LogPage;
use crate::request::{Query, Reply};
use crate::store::messages::{message_id, message_seq};
use crate::store::receipts::Receipt;
use crate::store::{bodies, logs as table, messages as rows, receipts};

/// Maximum number of ids of entries and messages in one request, together.
const ASKED: usize = 100;

impl Records<'_> {
    /// `GET …/logs` (spec §27.3): model attempts, tool calls and events, newest first unless `order=asc`.
    pub(crate) fn list_logs(&self, query: &Query) -> Result<Reply> {
        Ok(Reply::json(200, &self.logs(query)?))
    }

    /// A page of the log.
    pub(crate) fn logs(&self, query: &Query) -> Result<LogPage> {
        let limit = query.number("limit", limits::PAGE_DEFAULT, limits::PAGE_MAX)?;
        let offset = query.number("offset", 0, 10_000)? as usize;
        let ascending = match query.get("order") {
            None | Some("" | "desc") => false,
            Some("asc") => true,
            Some(other) => {
                return Err(Error::field("order", format!("`order` is asc or desc, not “{other}”.")));
            }
        };
        self.read(|state, sql| {
            let thread = &state.meta.stem;
            let wanted = EntryFilter::of(thread, query)?;
            let (places, total) = match &wanted {
                None => (places(sql, offset + limit as usize + 1, ascending)?, table::count_with_calls(sql)?),
                Some(wanted) => {
                    let places = wanted.places(sql, ascending)?;
                    let total = i64::try_from(places.len()).unwrap_or(i64::MAX);
                    (places, total)
                }
            };
            let mut page = Page::new(limit);
            for place in places.into_iter().skip(offset) {
                if page.add(|| entry(&self.catalog, sql, thread, place))?.is_break() {
                    break;
                }
            }
            let has_more = page.has_more();
            Ok(LogPage { logs: page.into_rows(), total, has_more })
        })
    }

    /// `GET …/logs/:id`: with bodies if they were kept; a call with its arguments and result.
    pub(crate) fn get_log(&self, id: &str) -> Result<Reply> {
        self.read(|state, sql| {
            let thread = &state.meta.stem;
            let missing = || Error::new(Code::NotFound, format!("This thread has no log “{id}”."));
            let entry = match EntryRef::of(id).ok_or_else(missing)? {
                EntryRef::Log(number) => log_detail(sql, thread, number)?,
                EntryRef::Call(number) => call_detail(&self.catalog, sql, thread, number)?,
            };
            Ok(Reply::json(200, &entry.ok_or_else(missing)?))
        })
    }
}

/// The location of a log entry.
#[derive(Clone, Copy)]
enum EntryRef {
    Log(i64),
    Call(i64),
}

impl EntryRef {
    /// The location of the entry with an id.
    fn of(id: &str) -> Option<EntryRef> {
        let (kind, number) = id.split_at_checked(2)?;
        let number = number.parse().ok()?;
        match kind {
            "l_" => Some(EntryRef::Log(number)),
            "c_" => Some(EntryRef::Call(number)),
            _ => None,
        }
    }
}

/// The entries that `ids` and `messageIds` select: by their own ids, and by the messages that they belong to.
#[derive(Default)]
struct EntryFilter {
    places: Vec<EntryRef>,
    messages: Vec<i64>,
}

impl EntryFilter {
    /// `None`: all. Invalid ids, and ids of other threads, select nothing.
    fn of(thread: &str, query: &Query) -> Result<Option<EntryFilter>> {
        let list = |name: &str| -> Option<Vec<String>> {
            let ids = query.get(name).filter(|ids| !ids.is_empty())?;
            Some(ids.split(',').map(|id| id.trim().to_owned()).collect())
        };
        let (ids, messages) = (list("ids"), list("messageIds"));
        if ids.is_none() && messages.is_none() {
            return Ok(None);
        }
        let (ids, messages) = (ids.unwrap_or_default(), messages.unwrap_or_default());
        if ids.len() + messages.len() > ASKED {
            let field = if ids.len() > messages.len() { "ids" } else { "messageIds" };
            return Err(Error::field(field, format!("At most {ASKED} ids can be asked for at once.")));
        }
        let messages = messages.iter().filter_map(|id| message_seq(thread, id).ok()).collect();
        Ok(Some(EntryFilter { places: ids.iter().filter_map(|id| EntryRef::of(id)).collect(), messages }))
    }

    /// Their locations, in the order of time.
    fn places(&self, sql: &dyn Sql, ascending: bool) -> Result<Vec<EntryRef>> {
        let mut logs: Vec<i64> = Vec::new();
        let mut calls: Vec<i64> = Vec::new();
        for place in &self.places {
            match place {
                EntryRef::Log(id) => logs.push(*id),
                EntryRef::Call(id) => calls.push(*id),
            }
        }
        let [logs, calls, messages] =
            [&logs, &calls, &self.messages].map(|numbers| json!(numbers).to_string());
        let mut places = Vec::new();
        places.extend(logs_at(table::times_of(sql, &logs, &messages)?));
        places.extend(calls_at(receipts::times_of(sql, &calls, &messages)?));
        Ok(in_order(places, ascending))
    }
}

/// The first entries of both tables, in the order of time. A page of the two together needs no more of
/// either. Only the times are read, because skipped rows may be large.
fn places(sql: &dyn Sql, wanted: usize, ascending: bool) -> Result<Vec<EntryRef>> {
    let limit = i64::try_from(wanted).unwrap_or(i64::MAX);
    let mut places = Vec::new();
    places.extend(logs_at(table::times(sql, limit, ascending)?));
    places.extend(calls_at(receipts::times(sql, limit, ascending)?));
    Ok(in_order(places, ascending))
}

fn logs_at(times: Vec<(i64, i64)>) -> impl Iterator<Item = (i64, EntryRef)> {
    times.into_iter().map(|(at, id)| (at, EntryRef::Log(id)))
}

fn calls_at(times: Vec<(i64, i64)>) -> impl Iterator<Item = (i64, EntryRef)> {
    times.into_iter().map(|(at, id)| (at, EntryRef::Call(id)))
}

fn in_order(mut places: Vec<(i64, EntryRef)>, ascending: bool) -> Vec<EntryRef> {
    places.sort_by_key(|(at, _)| if ascending { *at } else { -*at });
    places.into_iter().map(|(_, place)| place).collect()
}

/// An entry in the format of the list.
fn entry(catalog: &Catalog, sql: &dyn Sql, thread: &str, place: EntryRef) -> Result<Value> {
    let found = match place {
        EntryRef::Log(id) => log_row(sql, thread, id)?,
        EntryRef::Call(id) => receipts::find(sql, id)?.map(|receipt| call_entry(catalog, &receipt, thread)),
    };
    found.ok_or_else(|| Error::internal("a log entry went away while it was read"))
}

/// A row of `logs` in the format of the API.
fn log_entry(row: table::Entry, thread: &str) -> Value {
    let (run, reply) = (row.run.map(|run| format!("r_{run}")), row.reply.map(|seq| message_id(thread, seq)));
    let mut entry = row.fields();
    entry.insert("run".into(), run.into());
    entry.insert("message_id".into(), reply.into());
    Value::Object(entry)
}

fn log_row(sql: &dyn Sql, thread: &str, id: i64) -> Result<Option<Value>> {
    Ok(table::find(sql, id)?.map(|row| log_entry(row, thread)))
}

/// A receipt in the format of the API.
fn call_entry(catalog: &Catalog, receipt: &Receipt, thread: &str) -> Value {
    let Receipt { id, reply, call_id, started_us, ended_us, .. } = receipt;
    // Calls by code have no message: their `reply` is the negative id of the outer call, and their `call_id`
    // is the key.
    let of_reply = *reply > 0;
    let mut entry = json!({
        "id": format!("c_{id}"),
        "type": "tool_call",
        "created_at": started_us,
        "message_id": of_reply.then(|| message_id(thread, *reply)),
        "result_message_id": of_reply.then(|| message_id(thread, *id)),
        "receipt": if of_reply { format!("r{reply}.{}", id - reply - 1) } else { call_id.clone() },
        "parent_call": (*reply < 0).then(|| format!("c_{}", -reply)),
        "tool_call_id": call_id,
        "tool_name": receipt.name,
        "kind": receipt.kind.as_str(),
        "tier": tier_of_call(catalog, receipt),
        "state": receipt.state.as_str(),
        "runs": receipt.runs,
        "ended_at": ended_us,
        "latency_ms": ended_us.map(|ended| (ended - started_us) / 1000),
        "error": receipt.error,
    });
    let scrubbed = receipt.scrubbed();
    if let Some(fields) = entry.as_object_mut().filter(|_| !scrubbed.is_none()) {
        fields.insert("scrubbed".into(), json!(scrubbed));
    }
    entry
}

fn log_detail(sql: &dyn Sql, thread: &str, id: i64) -> Result<Option<Value>> {
    let mut entry = log_row(sql, thread, id)?;
    if let Some(Value::Object(fields)) = &mut entry {
        for (kind, text) in bodies::of_log(sql, id)? {
            fields.insert(format!("{kind}_body"), text.into());
        }
    }
    Ok(entry)
}

fn call_detail(catalog: &Catalog, sql: &dyn Sql, thread: &str, id: i64) -> Result<Option<Value>> {
    let Some(receipt) = receipts::find(sql, id)? else { return Ok(None) };
    let mut entry = call_entry(catalog, &receipt, thread);
    let Receipt { reply, data, .. } = receipt;
    let (arguments, result) = if reply <= 0 {
        (data.args.map(|args| args.to_string()), data.result.map(|result| result.text()))
    } else {
        let call = rows::find(sql, reply)?
            .and_then(|row| row.calls.get(usize::try_from(id - reply - 1).ok()?).cloned());
        (call.map(|call| call.arguments), rows::find(sql, id)?.and_then(|row| row.content))
    };
    if let Some(fields) = entry.as_object_mut() {
        fields.insert("arguments".into(), arguments.into());
        fields.insert("result".into(), result.into());
    }
    Ok(Some(entry))
}
