//! Where the answer to a message ends: behind what was said to it, before what somebody says next. Clients that name an answer go on
//! from there, in this thread or in a copy of it.

use std::ops::ControlFlow;

use crate::engine::feed::{FeedOf, followed};
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::request::FOLLOWS;
use crate::spec::message::Role;
use crate::store::messages::{Inbound, Row, message_seq, page};
use crate::store::state::State;

/// Seq of the last message of the answer to a message; of a reply, of what it goes on with. None while it is being made.
///
/// # Errors
/// `message_not_found`.
pub(crate) fn end_of_answer(state: &State, sql: &dyn Sql, message: &str) -> Result<Option<i64>> {
    let followed = followed(state, sql, &FeedOf::Message(message.to_owned()))?;
    let (mut end, mut replied) = (followed.after, false);
    let mut complete = followed.is_over();
    page::top_level_between(sql, followed.after, i64::MAX >> 11, &mut |row| {
        if !followed.has(&row) {
            return Ok(ControlFlow::Break(()));
        }
        if is_said(&row) && replied {
            // It was taken in by the same run: from here on that is answered.
            complete = true;
            return Ok(ControlFlow::Break(()));
        }
        replied |= !is_said(&row) && matches!(row.role, Role::User | Role::Assistant);
        end = row.seq;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(complete.then_some(end))
}

/// Whether the active run is at the answer to a message, and nothing was said behind it.
///
/// # Errors
/// `message_not_found`.
pub(crate) fn is_being_made(state: &State, sql: &dyn Sql, message: &str) -> Result<bool> {
    let Some(active) = state.active() else { return Ok(false) };
    let followed = followed(state, sql, &FeedOf::Message(message.to_owned()))?;
    if followed.number() != Some(active.id) || end_of_answer(state, sql, message)?.is_some() {
        return Ok(false);
    }
    Ok(!goes_on(sql, followed.after)?)
}

/// Refuses to follow the answer to a message where something was said behind it.
///
/// # Errors
/// `conflict` at [`FOLLOWS`]; `message_not_found`.
pub(crate) fn must_be_newest(state: &State, sql: &dyn Sql, message: &str) -> Result<()> {
    let begins = message_seq(&state.meta.stem, message)?;
    let ends = end_of_answer(state, sql, message)?.unwrap_or(begins);
    if !goes_on(sql, ends)? {
        return Ok(());
    }
    Err(Error::new(Code::Conflict, "The conversation has gone on since that answer.").at(FOLLOWS))
}

/// Whether something was said behind a seq.
fn goes_on(sql: &dyn Sql, seq: i64) -> Result<bool> {
    let mut said = false;
    page::said_between(sql, seq, i64::MAX >> 11, &mut |row| {
        said = is_said(&row);
        Ok(if said { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(said)
}

/// Whether somebody outside says it, and it is not the other side of an agent with two of them.
fn is_said(row: &Row) -> bool {
    row.role == Role::User && row.inbound != Inbound::Step && !row.silent
}
