//! Earlier messages that are sent with the request that creates a thread. They are stored in the same
//! transaction, and do not start a run.

use serde_json::Value;

use crate::definitions::message::Role;
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::limits;
use crate::request::fields::Body;
use crate::request::history::ROW_BYTES;
use crate::store::messages::{Inbound, Row};
use crate::store::state::State;

/// An earlier message.
#[derive(Debug)]
pub(crate) struct EarlierMessage {
    role: Role,
    content: String,
    silent: bool,
}

/// Parses the `history` of a request for a new thread.
///
/// # Errors
/// `invalid_field`, `missing_field`, `too_large`: each names the field.
pub(crate) fn earlier(body: &mut Body) -> Result<Vec<EarlierMessage>> {
    let list = match body.take("history") {
        None => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(Error::field("history", "`history` must be a list of messages.")),
    };
    let mut bytes = 0;
    let mut messages = Vec::new();
    for (at, message) in list.into_iter().enumerate() {
        let message = one(message, at)?;
        bytes += message.content.len() + ROW_BYTES;
        if bytes > limits::HISTORY_BYTES {
            let text = format!(
                "`history` has at most {} bytes, {ROW_BYTES} for each message included.",
                limits::HISTORY_BYTES
            );
            return Err(Error::new(Code::TooLarge, text).at("history"));
        }
        messages.push(message);
    }
    Ok(messages)
}

fn one(message: Value, at: usize) -> Result<EarlierMessage> {
    let place = |name: &str| format!("history[{at}]{name}");
    let Value::Object(fields) = message else {
        return Err(Error::field(&place(""), "A message of `history` is an object."));
    };
    let mut body = Body::of(fields).known(&["role", "content", "silent"])?;
    let role = match body.string("role")?.as_deref().and_then(Role::parse) {
        Some(role) if role != Role::Tool => role,
        _ => {
            return Err(Error::field(&place(".role"), "`role` is user, assistant or system."));
        }
    };
    let content = body.string("content")?.unwrap_or_default();
    if content.len() > limits::CONTENT_BYTES {
        let text = format!("`content` has {} bytes; the limit is {}.", content.len(), limits::CONTENT_BYTES);
        return Err(Error::new(Code::TooLarge, text).at(place(".content")));
    }
    Ok(EarlierMessage { role, content, silent: body.flag("silent")? })
}

/// Stores the messages, inside the transaction that creates the thread. Returns the newest one that a list of
/// threads shows.
pub(super) fn store(
    state: &mut State,
    sql: &dyn Sql,
    earlier: Vec<EarlierMessage>,
    now: i64,
) -> Result<Option<Row>> {
    let with_text = earlier.into_iter().filter(|message| !message.content.trim().is_empty());
    let rows: Vec<Row> = (state.next_seq()..)
        .zip(with_text)
        .map(|(seq, message)| Row {
            inbound: Inbound::Stored,
            silent: message.silent,
            ..Row::new(seq, message.role, message.content, now)
        })
        .collect();
    state.insert_stored(sql, &rows)?;
    Ok(rows.into_iter().rev().find(Row::is_visible))
}
