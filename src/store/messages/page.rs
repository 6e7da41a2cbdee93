//! Rows of `messages` for lists, for streams, and for the window.

use std::ops::ControlFlow;

use crate::definitions::message::Role;
use crate::error::{Error, Result};
use crate::host::{Param, Sql, integer};
use crate::store::messages::{Row, RowVisitor, columns, each_row, read};

/// Filter of the messages for a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VisibilityFilter {
    /// Maximum depth.
    pub(crate) depth: u32,
    /// Includes silent messages.
    pub(crate) silent: bool,
}

/// Parameters of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageRequest {
    pub(crate) shown: VisibilityFilter,
    pub(crate) after: i64,
    pub(crate) before: i64,
    pub(crate) newest_first: bool,
    pub(crate) limit: i64,
    pub(crate) offset: u32,
}

/// Reads a page.
pub(crate) fn page(sql: &dyn Sql, wanted: &PageRequest, each: RowVisitor<'_>) -> Result<()> {
    let params = [
        Param::Int(wanted.after),
        Param::Int(wanted.before),
        Param::Int(i64::from(wanted.shown.depth)),
        Param::Int(i64::from(wanted.shown.silent)),
        Param::Int(wanted.limit),
        Param::Int(i64::from(wanted.offset)),
    ];
    let statement = if wanted.newest_first {
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
    each_row(sql, statement, &params, each)
}

/// Number of messages that match a filter.
pub(crate) fn count(sql: &dyn Sql, shown: VisibilityFilter) -> Result<i64> {
    let counted = integer(
        sql,
        "SELECT count(*) FROM messages WHERE depth <= ? AND (silent = 0 OR ?)",
        &[Param::Int(i64::from(shown.depth)), Param::Int(i64::from(shown.silent))],
    )?;
    Ok(counted.unwrap_or(0))
}

/// Number of top-level messages that are not silent.
pub(crate) fn count_visible(sql: &dyn Sql) -> Result<Option<i64>> {
    integer(sql, "SELECT count(*) FROM messages WHERE depth = 0 AND silent = 0", &[])
}

/// Number of top-level messages before a seq.
pub(crate) fn count_top_level(sql: &dyn Sql, before: i64) -> Result<i64> {
    let counted =
        integer(sql, "SELECT count(*) FROM messages WHERE depth = 0 AND seq < ?", &[Param::Int(before)])?;
    Ok(counted.unwrap_or(0))
}

/// Top-level messages after one seq and up to another, in order.
pub(crate) fn top_level_between(sql: &dyn Sql, after: i64, upto: i64, each: RowVisitor<'_>) -> Result<()> {
    each_row(
        sql,
        concat!(
            "SELECT ",
            columns!(),
            " FROM messages WHERE seq > ? AND seq <= ? AND depth = 0 ORDER BY seq"
        ),
        &[Param::Int(after), Param::Int(upto)],
        each,
    )
}

/// Messages that people see after one seq and up to another, in order: top-level, not silent, by users and
/// models.
pub(crate) fn visible_between(sql: &dyn Sql, after: i64, upto: i64, each: RowVisitor<'_>) -> Result<()> {
    each_row(
        sql,
        concat!(
            "SELECT ",
            columns!(),
            " FROM messages WHERE seq > ? AND seq <= ? AND depth = 0 AND silent = 0 AND role IN ('user', 'assistant')
              ORDER BY seq"
        ),
        &[Param::Int(after), Param::Int(upto)],
        each,
    )
}

/// Seq of the last top-level message before a seq.
pub(crate) fn last_before(sql: &dyn Sql, seq: i64) -> Result<Option<i64>> {
    let statement = "SELECT seq FROM messages WHERE seq < ? AND depth = 0 ORDER BY seq DESC LIMIT 1";
    integer(sql, statement, &[Param::Int(seq)])
}

/// The last top-level message up to a seq that is not a result.
pub(crate) fn last_but_results(sql: &dyn Sql, upto: i64) -> Result<Option<Row>> {
    let statement = concat!(
        "SELECT ",
        columns!(),
        " FROM messages WHERE seq <= ? AND depth = 0 AND role != 'tool' ORDER BY seq DESC LIMIT 1"
    );
    Ok(read(sql, statement, &[Param::Int(upto)])?.pop())
}

/// Passes seq, role and, for results, the call id of the top-level messages after a seq to `look`, in order,
/// until it returns false.
pub(crate) fn results_after(
    sql: &dyn Sql,
    seq: i64,
    look: &mut dyn FnMut(i64, Role, Option<&str>) -> bool,
) -> Result<()> {
    let statement = "SELECT seq, role, tool_call_id FROM messages WHERE seq > ? AND depth = 0 ORDER BY seq";
    sql.each(statement, &[Param::Int(seq)], &mut |cells| {
        let [seq, role, call] = cells else {
            return Err(Error::internal("a message row has the wrong number of columns"));
        };
        let role = role.text().and_then(Role::parse).unwrap_or(Role::System);
        let more = look(seq.int().unwrap_or_default(), role, call.text());
        Ok(if more { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })
}

/// Number of messages from outside after one seq and up to another that started a run or could have.
pub(crate) fn count_waking(sql: &dyn Sql, after: i64, upto: i64) -> Result<i64> {
    let statement = "SELECT count(*) FROM messages WHERE seq > ? AND seq <= ? AND depth = 0 AND inbound = 2";
    Ok(integer(sql, statement, &[Param::Int(after), Param::Int(upto)])?.unwrap_or(0))
}

/// The newest messages, newest first.
pub(crate) fn newest(sql: &dyn Sql, shown: VisibilityFilter, limit: i64, each: RowVisitor<'_>) -> Result<()> {
    each_row(
        sql,
        concat!(
            "SELECT ",
            columns!(),
            " FROM messages WHERE depth <= ? AND (silent = 0 OR ?) ORDER BY seq DESC LIMIT ?"
        ),
        &[Param::Int(i64::from(shown.depth)), Param::Int(i64::from(shown.silent)), Param::Int(limit)],
        each,
    )
}

/// All messages after a seq, in order.
pub(crate) fn after(sql: &dyn Sql, seq: i64, limit: i64, each: RowVisitor<'_>) -> Result<()> {
    each_row(
        sql,
        concat!("SELECT ", columns!(), " FROM messages WHERE seq > ? ORDER BY seq LIMIT ?"),
        &[Param::Int(seq), Param::Int(limit)],
        each,
    )
}

/// Top-level messages from one seq on and before another, newest first.
pub(crate) fn top_level_from(sql: &dyn Sql, seq: i64, below: i64, each: RowVisitor<'_>) -> Result<()> {
    each_row(
        sql,
        concat!(
            "SELECT ",
            columns!(),
            " FROM messages WHERE seq >= ? AND seq < ? AND depth = 0 ORDER BY seq DESC"
        ),
        &[Param::Int(seq), Param::Int(below)],
        each,
    )
}
