//! Everything that only reads: the thread, its messages, its logs, its diagnostics.

use std::ops::ControlFlow;
use std::rc::Rc;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Thread;
use super::host::{Cell, Host, Param, Sql};
use super::live::Alarm;
use super::rows::{self, Row, columns, message_id, message_seq, not_found};
use super::state::State;
use super::{alarm, effects, schema, subagents};
use crate::api::{Query, Reply, ThreadRequest, agents};
use crate::error::{Code, Error, Result};
use crate::limits;
use crate::page::Page;
use crate::spec::message::ToolResult;

impl<H: Host> Thread<H> {
    /// `GET /threads/:id` (spec §27.1).
    pub(super) fn get(&self, request: &ThreadRequest) -> Result<Reply> {
        let origin = request.header(agents::ORIGIN).unwrap_or_default();
        self.read_mut(|state, sql| {
            let messages = visible(state, sql)?;
            let logs = count_logs(sql)?;
            let (env, types) = self.shown_env(state, sql)?;
            let meta = &state.meta;
            let agent = self.catalog.agents.get(&meta.agent);
            let last_activity = state.run.as_ref().map_or(meta.created_us, |run| {
                run.end.as_ref().map_or(run.started_us, |end| end.at_us)
            });
            let body = json!({
                "thread": {
                    "id": meta.thread_id, "agent_id": meta.agent, "origin_agent_id": meta.origin_agent,
                    "user_id": meta.owner, "tags": meta.tags, "properties": meta.properties, "env": env,
                    "env_types": types, "parent": meta.parent.as_ref().map(|parent| &parent.thread),
                    "terminated": meta.terminated_us.map(|us| us / limits::SECOND_US),
                    "created_at": meta.created_us / limits::SECOND_US,
                    "executing": state.active().is_some(), "state": state.word(),
                },
                "agent": agent.map(|agent| agents::summary(agent, origin)),
                "stats": {
                    "messageCount": messages, "logCount": logs, "lastActivity": last_activity / limits::SECOND_US,
                },
            });
            Ok(Reply::json(200, &body))
        })
    }

    /// `GET …/messages` (spec §14.3, §27.2): always in the order of the conversation; `order` picks the end that a
    /// page is taken from.
    pub(super) fn list_messages(&self, query: &Query) -> Result<Reply> {
        Ok(Reply::json(200, &self.messages(query)?))
    }

    /// A page of messages.
    pub(super) fn messages(&self, query: &Query) -> Result<Value> {
        let limit = query.number("limit", limits::PAGE_DEFAULT, limits::PAGE_MAX)?;
        let offset = query.number("offset", 0, u32::MAX)?;
        let silent = query.flag("includeSilent")?;
        let depth = query.number("depth", 0, u32::MAX)?;
        let newest_first = match query.get("order") {
            None | Some("" | "desc") => true,
            Some("asc") => false,
            Some(other) => {
                return Err(Error::field("order", format!("`order` is asc or desc, not “{other}”.")));
            }
        };
        self.read_mut(|state, sql| {
            let thread = state.meta.thread_id.clone();
            let cursor = |name: &str| match query.get(name) {
                None | Some("") => Ok(None),
                Some(id) => message_seq(&thread, id).map(Some).map_err(|_| Error {
                    field: Some(name.to_owned()),
                    ..Error::new(Code::BadCursor, format!("`{name}` is no message of this thread: “{id}”."))
                }),
            };
            let (before, after) =
                (cursor("before")?.unwrap_or(i64::MAX >> 11), cursor("after")?.unwrap_or(0));
            if let Some(ids) = query.get("ids") {
                return by_ids(state, sql, ids);
            }
            let params = [
                Param::Int(after),
                Param::Int(before),
                Param::Int(i64::from(depth)),
                Param::Int(i64::from(silent)),
                Param::Int(i64::from(limit) + 1),
                Param::Int(i64::from(offset)),
            ];
            let statement = if newest_first {
                concat!(
                    "SELECT ",
                    columns!(),
                    " FROM messages WHERE seq > ? AND seq < ? AND depth <= ? AND (silent = 0 OR ?)
                      ORDER BY seq DESC LIMIT ? OFFSET ?"
                )
            } else {
                concat!(
                    "SELECT ",
                    columns!(),
                    " FROM messages WHERE seq > ? AND seq < ? AND depth <= ? AND (silent = 0 OR ?)
                      ORDER BY seq LIMIT ? OFFSET ?"
                )
            };
            let mut page = Page::new(limit);
            sql.each(statement, &params, &mut |cells| page.add(|| shown(state, &Row::read(cells)?)))?;
            let total = if depth == 0 && !silent {
                visible(state, sql)?
            } else {
                rows::integer(
                    sql,
                    "SELECT count(*) FROM messages WHERE depth <= ? AND (silent = 0 OR ?)",
                    &[Param::Int(i64::from(depth)), Param::Int(i64::from(silent))],
                )?
                .unwrap_or(0)
            };
            let has_more = page.has_more();
            let mut messages = page.into_rows();
            if newest_first {
                messages.reverse();
            }
            messages.iter_mut().try_for_each(|message| subagents::project(state, sql, message))?;
            Ok(json!({ "messages": messages, "total": total, "hasMore": has_more }))
        })
    }

    /// `GET …/messages/:id`.
    pub(super) fn get_message(&self, id: &str) -> Result<Reply> {
        Ok(Reply::json(200, &self.message(id)?))
    }

    /// A message as clients see it.
    pub(super) fn message(&self, id: &str) -> Result<Value> {
        self.read(|state, sql| {
            let thread = &state.meta.thread_id;
            let row = rows::find(sql, message_seq(thread, id)?)?.ok_or_else(|| not_found(id))?;
            subagents::message_json(state, sql, &row)
        })
    }

    /// `GET …/logs` (spec §27.3): model attempts, tool calls and events, newest first unless `order=asc`.
    pub(super) fn list_logs(&self, query: &Query) -> Result<Reply> {
        Ok(Reply::json(200, &self.logs(query)?))
    }

    /// A page of the log.
    pub(super) fn logs(&self, query: &Query) -> Result<Value> {
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
            let thread = &state.meta.thread_id;
            let mut page = Page::new(limit);
            for place in places(sql, offset + limit as usize + 1, ascending)?.into_iter().skip(offset) {
                if page.add(|| entry(sql, thread, place))?.is_break() {
                    break;
                }
            }
            let (total, has_more) = (count_logs(sql)?, page.has_more());
            Ok(json!({ "logs": page.into_rows(), "total": total, "hasMore": has_more }))
        })
    }

    /// `GET …/logs/:id`: with bodies where they were kept, and a call with its arguments and result.
    pub(super) fn get_log(&self, id: &str) -> Result<Reply> {
        self.read(|state, sql| {
            let thread = &state.meta.thread_id;
            let missing = || Error::new(Code::NotFound, format!("This thread has no log “{id}”."));
            let (kind, number) = id.split_at_checked(2).ok_or_else(missing)?;
            let number: i64 = number.parse().map_err(|_| missing())?;
            let entry = match kind {
                "l_" => log_detail(sql, thread, number)?,
                "c_" => call_detail(sql, thread, number)?,
                _ => None,
            };
            Ok(Reply::json(200, &entry.ok_or_else(missing)?))
        })
    }

    /// `GET …/diagnostics`: what an operator asks first when a thread does not do what it should.
    pub(super) async fn diagnostics(self: &Rc<Self>) -> Result<Reply> {
        let alarm_at = self.host.alarm().await?;
        let now = self.host.now_us();
        self.read_mut(|state, sql| {
            let mut due: Vec<Value> = Vec::new();
            if let Some(run) = state.active().filter(|run| run.runnable()) {
                due.push(json!({ "what": "run", "at": run.resume_us.unwrap_or(now) }));
            }
            sql.each("SELECT subject, due_us, tries FROM outbox", &[], &mut |cells| {
                if let [subject, at, tries] = cells {
                    due.push(json!({ "what": "outbox", "subject": subject.text(), "at": at.int(), "tries": tries.int() }));
                }
                Ok(ControlFlow::Continue(()))
            })?;
            if let Some(at) = effects::next_due(state, sql)? {
                due.push(json!({ "what": "effect", "at": at }));
            }
            let mut waiting: Vec<Value> = Vec::new();
            let mut children: Vec<Value> = Vec::new();
            for child in state.open_children(sql)? {
                children.push(child.to_diagnostics());
                waiting.extend(child.waiting());
                if let Some(at) = child.due_us {
                    due.push(json!({ "what": "subagent", "subject": child.reference, "at": at, "tries": child.checks }));
                }
            }
            let handler_running = self.live.alarm.get() == Alarm::Held;
            let body = json!({
                "threadId": state.meta.thread_id,
                "state": state.word(),
                "phase": state.run.as_ref().map_or("idle", |run| run.phase.as_str()),
                "run": state.run.as_ref().map(super::run::Run::to_json),
                "queue": { "waiting": state.waiting(), "tools": state.waiting() - state.queued },
                "effects": {
                    "next": effects::next_due(state, sql)?, "running": self.live.effects.borrow().len(),
                },
                "waitingReceipts": waiting,
                "children": children,
                "alarm": { "at": alarm_at, "handlerRunning": handler_running, "due": alarm::due(state, sql, now)? },
                "due": due,
                "flow": { "running": self.live.flow.borrow().is_some(), "outgoingCalls": self.live.outgoing.get() },
                "listeners": self.host.has_listeners(),
                "history": {
                    "lastSeq": state.max_seq, "settled": state.settled(), "cut": state.meta.window_cut,
                    "bytesAtMost": state.meta.window_bytes, "edits": state.meta.edits,
                },
                "schema": schema::VERSION,
                "bytes": sql.size(),
                "now": now,
            });
            Ok(Reply::json(200, &body))
        })
    }
}

/// Entries of the log: rows of `logs` are never deleted, receipts are few.
fn count_logs<S: Sql>(sql: &S) -> Result<i64> {
    let statement = "SELECT ifnull((SELECT max(id) FROM logs), 0) + (SELECT count(*) FROM calls)";
    Ok(rows::integer(sql, statement, &[])?.unwrap_or(0))
}

/// Top-level messages that are not silent; counted once while the object lives.
fn visible<S: Sql>(state: &mut State, sql: &S) -> Result<i64> {
    if let Some(visible) = state.visible {
        return Ok(visible);
    }
    let counted = rows::integer(sql, "SELECT count(*) FROM messages WHERE depth = 0 AND silent = 0", &[])?;
    state.visible = counted;
    Ok(counted.unwrap_or(0))
}

fn shown(state: &State, row: &Row) -> Result<Value> {
    Ok(row.to_json(&state.meta.thread_id, state.is_queued(row)))
}

/// Those of these messages that there are. An id of another thread or of a deleted message is left out, as the reference
/// does.
fn by_ids<S: Sql>(state: &State, sql: &S, ids: &str) -> Result<Value> {
    let ids = ids.split(',').map(str::trim).filter(|id| !id.is_empty());
    let mut seqs: Vec<i64> = ids
        .filter_map(|id| message_seq(&state.meta.thread_id, id).ok())
        .take(limits::PAGE_MAX as usize)
        .collect();
    seqs.sort_unstable();
    seqs.dedup();
    let mut page = Page::new(limits::PAGE_MAX);
    for seq in seqs {
        if let Some(row) = rows::find(sql, seq)?
            && page.add(|| shown(state, &row))?.is_break()
        {
            break;
        }
    }
    let (total, has_more) = (page.len(), page.has_more());
    let mut messages = page.into_rows();
    messages.iter_mut().try_for_each(|message| subagents::project(state, sql, message))?;
    Ok(json!({ "messages": messages, "total": total, "hasMore": has_more }))
}

/// Where an entry of the log is.
#[derive(Clone, Copy)]
enum Place {
    Log(i64),
    Call(i64),
}

/// The first entries, in the order of time. Both tables are in it; a page of the two together needs no more of either.
/// Only their times are read: what is skipped may be large.
fn places<S: Sql>(sql: &S, wanted: usize, ascending: bool) -> Result<Vec<Place>> {
    let (logs, calls) = if ascending {
        (
            "SELECT at_us, id FROM logs ORDER BY id LIMIT ?",
            "SELECT started_us, id FROM calls ORDER BY id LIMIT ?",
        )
    } else {
        (
            "SELECT at_us, id FROM logs ORDER BY id DESC LIMIT ?",
            "SELECT started_us, id FROM calls ORDER BY id DESC LIMIT ?",
        )
    };
    let mut places = Vec::new();
    for (statement, place) in [(logs, Place::Log as fn(i64) -> Place), (calls, Place::Call)] {
        sql.each(statement, &[Param::Int(i64::try_from(wanted).unwrap_or(i64::MAX))], &mut |cells| {
            if let [at, id] = cells {
                places.push((at.int().unwrap_or_default(), place(id.int().unwrap_or_default())));
            }
            Ok(ControlFlow::Continue(()))
        })?;
    }
    places.sort_by_key(|(at, _)| if ascending { *at } else { -*at });
    Ok(places.into_iter().map(|(_, place)| place).collect())
}

/// An entry as a list shows it.
fn entry<S: Sql>(sql: &S, thread: &str, place: Place) -> Result<Value> {
    let found = match place {
        Place::Log(id) => log_row(sql, thread, id)?,
        Place::Call(id) => call_row(sql, thread, id)?,
    };
    found.ok_or_else(|| Error::internal("a log entry went away while it was read"))
}

/// A row of `logs` as clients see it.
fn log_entry(cells: &[Cell], thread: &str) -> Result<Value> {
    let [id, kind, run, at, reply, retry_of, data] = cells else {
        return Err(Error::internal("a log row has the wrong number of columns"));
    };
    let mut entry = Map::new();
    entry.insert("id".into(), format!("l_{}", id.int().unwrap_or_default()).into());
    entry.insert("type".into(), kind.text().unwrap_or_default().into());
    entry.insert("created_at".into(), at.int().unwrap_or_default().into());
    entry.insert("run".into(), run.int().map(|run| format!("r_{run}")).into());
    entry.insert("message_id".into(), reply.int().map(|seq| message_id(thread, seq)).into());
    entry.insert("retry_of_attempt".into(), retry_of.int().into());
    if let Ok(Value::Object(fields)) = serde_json::from_str(data.text().unwrap_or_default()) {
        entry.extend(fields);
    }
    Ok(Value::Object(entry))
}

fn log_row<S: Sql>(sql: &S, thread: &str, id: i64) -> Result<Option<Value>> {
    let mut entry = None;
    sql.each(
        "SELECT id, kind, run, at_us, reply, retry_of, data FROM logs WHERE id = ?",
        &[Param::Int(id)],
        &mut |cells| {
            entry = Some(log_entry(cells, thread)?);
            Ok(ControlFlow::Break(()))
        },
    )?;
    Ok(entry)
}

/// A receipt as clients see it.
fn call_entry(cells: &[Cell], thread: &str) -> Result<Value> {
    let [id, reply, call_id, name, kind, state, runs, started, ended, error] = cells else {
        return Err(Error::internal("a receipt has the wrong number of columns"));
    };
    let number = |cell: &Cell| cell.int().unwrap_or_default();
    let (at, number_id, reply) = (number(started), number(id), number(reply));
    // Calls that code made have no message: their `reply` is the call around them, negative, and their id the key.
    let message = (reply > 0).then(|| message_id(thread, reply));
    let result = (reply > 0).then(|| message_id(thread, number_id));
    let receipt = match reply > 0 {
        true => format!("r{reply}.{}", number_id - reply - 1),
        false => call_id.text().unwrap_or_default().to_owned(),
    };
    let entry = json!({
        "id": format!("c_{number_id}"),
        "type": "tool_call",
        "created_at": at,
        "message_id": message,
        "result_message_id": result,
        "receipt": receipt,
        "parent_call": (reply < 0).then(|| format!("c_{}", -reply)),
        "tool_call_id": call_id.text(),
        "tool_name": name.text(),
        "kind": kind.text(),
        "state": state.text(),
        "runs": number(runs),
        "ended_at": ended.int(),
        "latency_ms": ended.int().map(|ended| (ended - at) / 1000),
        "error": error.text(),
    });
    Ok(entry)
}

fn call_row<S: Sql>(sql: &S, thread: &str, id: i64) -> Result<Option<Value>> {
    let mut entry = None;
    sql.each(
        "SELECT id, reply, call_id, name, kind, state, runs, started_us, ended_us, error FROM calls WHERE id = ?",
        &[Param::Int(id)],
        &mut |cells| {
            entry = Some(call_entry(cells, thread)?);
            Ok(ControlFlow::Break(()))
        },
    )?;
    Ok(entry)
}

fn log_detail<S: Sql>(sql: &S, thread: &str, id: i64) -> Result<Option<Value>> {
    let mut entry = log_row(sql, thread, id)?;
    if let Some(Value::Object(fields)) = &mut entry {
        sql.each("SELECT kind, text FROM bodies WHERE log = ?", &[Param::Int(id)], &mut |cells| {
            if let [kind, text] = cells {
                fields.insert(format!("{}_body", kind.text().unwrap_or_default()), text.text().into());
            }
            Ok(ControlFlow::Continue(()))
        })?;
    }
    Ok(entry)
}

fn call_detail<S: Sql>(sql: &S, thread: &str, id: i64) -> Result<Option<Value>> {
    let mut entry = None;
    sql.each(
        "SELECT id, reply, call_id, name, kind, state, runs, started_us, ended_us, error, data FROM calls WHERE id = ?",
        &[Param::Int(id)],
        &mut |cells| {
            let Some((data, cells)) = cells.split_last() else { return Ok(ControlFlow::Break(())) };
            let reply = cells.get(1).and_then(Cell::int).unwrap_or_default();
            let data: Value = data.text().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
            entry = Some((reply, data, call_entry(cells, thread)?));
            Ok(ControlFlow::Break(()))
        },
    )?;
    let Some((reply, data, mut entry)) = entry else { return Ok(None) };
    if let Some(fields) = entry.as_object_mut().filter(|_| reply <= 0) {
        let result = data.get("result").and_then(|result| ToolResult::deserialize(result).ok());
        fields.insert("arguments".into(), data.get("args").map(Value::to_string).into());
        fields.insert("result".into(), result.map(|result| result.text()).into());
    } else if let Some(fields) = entry.as_object_mut() {
        let call = rows::find(sql, reply)?.and_then(|row| {
            usize::try_from(id - reply - 1).ok().and_then(|index| row.calls.get(index).cloned())
        });
        fields.insert("arguments".into(), call.map(|call| call.arguments).into());
        fields.insert("result".into(), rows::find(sql, id)?.and_then(|row| row.content).into());
    }
    Ok(Some(entry))
}
