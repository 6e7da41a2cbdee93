//! Changes and deletions of rows of `messages`.

use std::ops::ControlFlow;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::host::{Cell, Param, Sql, integer};
use crate::limits;
use crate::store::messages::{Row, columns, read};

impl Row {
    /// Writes the columns that an edit may change.
    pub(crate) fn update(&self, sql: &dyn Sql) -> Result<()> {
        sql.run(
            "UPDATE messages SET content = ?, reasoning = ?, silent = ?, metadata = ? WHERE seq = ?",
            &[
                self.content.as_ref().into(),
                self.reasoning.as_ref().into(),
                Param::Int(i64::from(self.silent)),
                self.metadata.as_ref().into(),
                Param::Int(self.seq),
            ],
        )
    }

    /// Writes the columns that hooks may change in a message from outside.
    pub(crate) fn update_inbound(&self, sql: &dyn Sql) -> Result<()> {
        sql.run(
            "UPDATE messages SET content = ?, silent = ?, metadata = ? WHERE seq = ?",
            &[
                self.content.as_ref().into(),
                Param::Int(i64::from(self.silent)),
                self.metadata.as_ref().into(),
                Param::Int(self.seq),
            ],
        )
    }

    /// Writes the calls of a reply, and its provider's payload.
    pub(crate) fn update_calls(&self, sql: &dyn Sql) -> Result<()> {
        let calls = serde_json::to_string(&self.calls).map_err(Error::internal)?;
        sql.run(
            "UPDATE messages SET tool_calls = ?, reasoning = ? WHERE seq = ?",
            &[Param::Text(&calls), self.reasoning.as_ref().into(), Param::Int(self.seq)],
        )
    }

    /// The results of its calls that show files.
    pub(crate) fn results_with_files(&self, sql: &dyn Sql) -> Result<Vec<Row>> {
        let statement = concat!(
            "SELECT ",
            columns!(),
            " FROM messages WHERE seq > ? AND seq < ? AND role = 'tool' AND attachments IS NOT NULL
              AND tool_call_id IN (SELECT value FROM json_each(?))"
        );
        read(
            sql,
            statement,
            &[Param::Int(self.seq), Param::Int(self.seq + limits::BLOCK), Param::Text(&self.call_ids())],
        )
    }

    /// Deletes the row and, for a reply, the results of its calls.
    pub(crate) fn delete(&self, sql: &dyn Sql) -> Result<()> {
        sql.run(
            "DELETE FROM messages WHERE seq = ?1 OR (seq > ?1 AND seq < ?2 AND role = 'tool'
             AND tool_call_id IN (SELECT value FROM json_each(?3)))",
            &[Param::Int(self.seq), Param::Int(self.seq + limits::BLOCK), Param::Text(&self.call_ids())],
        )
    }

    /// The ids of its calls, as a JSON array.
    fn call_ids(&self) -> String {
        self.calls.iter().map(|call| call.id.as_str()).collect::<Value>().to_string()
    }
}

/// Rows read at a time.
const PAGE: i64 = 64;

/// The first messages from a seq on that show files.
pub(crate) fn with_files(sql: &dyn Sql, from: i64) -> Result<Vec<Row>> {
    let statement = concat!(
        "SELECT ",
        columns!(),
        " FROM messages WHERE seq >= ? AND attachments IS NOT NULL ORDER BY seq LIMIT ?"
    );
    read(sql, statement, &[Param::Int(from), Param::Int(PAGE)])
}

/// The seqs of all messages from a seq on.
pub(crate) fn seqs_from(sql: &dyn Sql, from: i64) -> Result<Vec<i64>> {
    let mut seqs = Vec::new();
    sql.each("SELECT seq FROM messages WHERE seq >= ? ORDER BY seq", &[Param::Int(from)], &mut |cells| {
        seqs.extend(cells.first().and_then(Cell::int));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(seqs)
}

/// Whether a message after this seq shows the attachment with this id.
pub(crate) fn shows_after(sql: &dyn Sql, seq: i64, attachment: &str) -> Result<bool> {
    let statement =
        "SELECT 1 FROM messages WHERE seq > ? AND attachments IS NOT NULL AND instr(attachments, ?) LIMIT 1";
    let quoted = Value::from(attachment).to_string();
    Ok(integer(sql, statement, &[Param::Int(seq), Param::Text(&quoted)])?.is_some())
}

/// Deletes all messages from a seq on.
pub(crate) fn delete_from(sql: &dyn Sql, from: i64) -> Result<()> {
    sql.run("DELETE FROM messages WHERE seq >= ?", &[Param::Int(from)])
}

/// The last message up to a seq that was sent for a response and is not silent.
pub(crate) fn trigger_at(sql: &dyn Sql, seq: i64) -> Result<Option<Row>> {
    let statement = concat!(
        "SELECT ",
        columns!(),
        " FROM messages WHERE seq <= ? AND inbound = 2 AND silent = 0 ORDER BY seq DESC LIMIT 1"
    );
    Ok(read(sql, statement, &[Param::Int(seq)])?.into_iter().next())
}
