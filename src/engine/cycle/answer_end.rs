//! The end of the answer to a message: after the answer's rows, before the next message from a person.
//! Clients that name an answer continue from there, in this thread or in a copy of it.

use std::ops::ControlFlow;

use crate::definitions::message::Role;
use crate::engine::feed::{FeedTarget, followed};
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::request::FOLLOWS;
use crate::store::messages::{Inbound, Row, message_seq, page};
use crate::store::state::State;

/// The seq of the last message of the answer to a message, or to a reply's continuation. `None` while it is
/// being written.
///
/// # Errors
/// `message_not_found`.
pub(in crate::engine) fn end_of_answer(state: &State, sql: &dyn Sql, message: &str) -> Result<Option<i64>> {
    let followed = followed(state, sql, &FeedTarget::Message(message.to_owned()))?;
    let (mut end, mut replied) = (followed.after, false);
    let mut complete = followed.is_over();
    page::top_level_between(sql, followed.after, i64::MAX >> 11, &mut |row| {
        if !followed.has(&row) {
            return Ok(ControlFlow::Break(()));
        }
        if is_from_outside(&row) && replied {
            // The same run took in another message, so the answer to the first one ends here.
            complete = true;
            return Ok(ControlFlow::Break(()));
        }
        replied |= !is_from_outside(&row) && matches!(row.role, Role::User | Role::Assistant);
        end = row.seq;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(complete.then_some(end))
}

/// Whether the active run is answering a message, and no other message was sent after it.
///
/// # Errors
/// `message_not_found`.
pub(in crate::engine) fn is_being_made(state: &State, sql: &dyn Sql, message: &str) -> Result<bool> {
    let Some(active) = state.active() else { return Ok(false) };
    let followed = followed(state, sql, &FeedTarget::Message(message.to_owned()))?;
    if followed.number() != Some(active.id) || end_of_answer(state, sql, message)?.is_some() {
        return Ok(false);
    }
    Ok(!has_later_message(sql, followed.after)?)
}

/// Refuses to follow the answer to a message if another message was sent after it.
///
/// # Errors
/// `conflict` at [`FOLLOWS`]; `message_not_found`.
pub(in crate::engine) fn ensure_newest(state: &State, sql: &dyn Sql, message: &str) -> Result<()> {
    let begins = message_seq(&state.meta.stem, message)?;
    let ends = end_of_answer(state, sql, message)?.unwrap_or(begins);
    if !has_later_message(sql, ends)? {
        return Ok(());
    }
    Err(Error::new(Code::Conflict, "The conversation has gone on since that answer.").at(FOLLOWS))
}

/// Whether a message was sent after a seq.
fn has_later_message(sql: &dyn Sql, seq: i64) -> Result<bool> {
    let mut found = false;
    page::visible_between(sql, seq, i64::MAX >> 11, &mut |row| {
        found = is_from_outside(&row);
        Ok(if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(found)
}

/// Whether a row is a message from outside: not from a step, not silent, not the other side of a dual agent.
fn is_from_outside(row: &Row) -> bool {
    row.role == Role::User && row.inbound != Inbound::Step && !row.silent
}
