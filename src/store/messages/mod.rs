//! The table `messages`. seq orders everything (spec §35.19).
//!
//! * here: the row and its public form. `page`: rows for lists and streams. `queue`: rows for drains.
//!   `change`: changes and deletions.

pub(crate) mod change;
pub(crate) mod page;
pub(crate) mod queue;

use std::ops::ControlFlow;
use std::rc::Rc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::definitions::message::{Role, ToolCall, ToolStatus};
use crate::error::{Code, Error, Result};
use crate::host::{Cell, Param, Sql, integer};
use crate::json;
use crate::limits;
use crate::models::size;
use crate::protocols::responses::messages::{Message, MessageStatus};
use crate::store::attachment::AttachmentRef;
use crate::store::table::Table;
use crate::tokens::tokens;

/// Rows with inbound = 2 beyond the last run's block are the queue. `hooked` is the stage of hooks for the
/// message. `attachments` is a JSON array, `reasoning` the provider's payload of a reply, as JSON.
pub(super) const TABLE: Table = Table {
    create: &["CREATE TABLE messages (
        seq INTEGER PRIMARY KEY, role TEXT NOT NULL, content TEXT, name TEXT, tool_calls TEXT, tool_call_id TEXT,
        status TEXT, created_us INTEGER NOT NULL, parent INTEGER, depth INTEGER NOT NULL DEFAULT 0,
        silent INTEGER NOT NULL DEFAULT 0, inbound INTEGER NOT NULL DEFAULT 0, metadata TEXT, attachments TEXT,
        reasoning TEXT, hooked INTEGER NOT NULL DEFAULT 0)"],
    drop: "DROP TABLE messages",
};

/// Origin of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Inbound {
    /// Written by a step: replies, results, status rows.
    Step = 0,
    /// From outside; the next drain takes it in, and it starts nothing.
    Stored = 1,
    /// From outside; it starts a run once nothing runs. Those not yet drained are the queue.
    Triggers = 2,
    /// A tool that code has queued, until its step closes; it starts a run as well.
    QueuedTool = 3,
}

/// A stored message (spec §14.1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) seq: i64,
    pub(crate) role: Role,
    pub(crate) content: Option<String>,
    /// Name of the tool, for results.
    pub(crate) name: Option<String>,
    /// Calls of a reply, in the order received; stored as a JSON array.
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) tool_call_id: Option<String>,
    /// Outcome of the tool, for results.
    pub(crate) status: Option<ToolStatus>,
    pub(crate) created_us: i64,
    /// Seq of the message that this one belongs under.
    pub(crate) parent: Option<i64>,
    pub(crate) depth: u32,
    pub(crate) silent: bool,
    /// Origin: determines whether a drain takes it in, and whether it starts a run.
    pub(crate) inbound: Inbound,
    /// JSON object, as stored.
    pub(crate) metadata: Option<String>,
    /// Files that it shows; stored as a JSON array.
    pub(crate) attachments: Vec<AttachmentRef>,
    /// The provider's payload of a reply, as stored (`window::Replay`).
    pub(crate) reasoning: Option<String>,
}

/// The columns of [`Row`], in its order.
macro_rules! columns {
    () => {
        "seq, role, content, name, tool_calls, tool_call_id, status, created_us, parent, depth, silent, inbound, metadata, attachments, reasoning"
    };
}
use columns;

impl Row {
    /// A message with text, otherwise with default values.
    pub(crate) fn new(seq: i64, role: Role, content: impl Into<String>, created_us: i64) -> Row {
        Row {
            seq,
            role,
            content: Some(content.into()),
            name: None,
            calls: Vec::new(),
            tool_call_id: None,
            status: None,
            created_us,
            parent: None,
            depth: 0,
            silent: false,
            inbound: Inbound::Step,
            metadata: None,
            attachments: Vec::new(),
            reasoning: None,
        }
    }

    /// Reads a row selected with [`columns!`].
    fn read(cells: &[Cell]) -> Result<Row> {
        let [
            seq,
            role,
            content,
            name,
            calls,
            call_id,
            status,
            created,
            parent,
            depth,
            silent,
            inbound,
            meta,
            attachments,
            reasoning,
        ] = cells
        else {
            return Err(Error::internal("a message row has the wrong number of columns"));
        };
        let text = |cell: &Cell| cell.text().map(str::to_owned);
        Ok(Row {
            seq: seq.int().unwrap_or_default(),
            role: role
                .text()
                .and_then(Role::parse)
                .ok_or_else(|| Error::internal("a message row has an unknown role"))?,
            content: text(content),
            name: text(name),
            calls: match calls.text() {
                None => Vec::new(),
                Some(json) => crate::json::from_str(json)
                    .map_err(|error| Error::internal(format!("stored tool calls are damaged: {error}")))?,
            },
            tool_call_id: text(call_id),
            status: status.text().map(|s| if s == "error" { ToolStatus::Error } else { ToolStatus::Success }),
            created_us: created.int().unwrap_or_default(),
            parent: parent.int(),
            depth: depth.int().and_then(|d| u32::try_from(d).ok()).unwrap_or_default(),
            silent: silent.int() == Some(1),
            inbound: match inbound.int() {
                Some(3) => Inbound::QueuedTool,
                Some(2) => Inbound::Triggers,
                Some(1) => Inbound::Stored,
                _ => Inbound::Step,
            },
            metadata: text(meta),
            attachments: match attachments.text() {
                None => Vec::new(),
                Some(json) => crate::json::from_str(json)
                    .map_err(|error| Error::internal(format!("stored attachments are damaged: {error}")))?,
            },
            reasoning: text(reasoning),
        })
    }

    pub(crate) fn insert(&self, sql: &dyn Sql) -> Result<()> {
        let calls = (!self.calls.is_empty()).then(|| serde_json::to_string(&self.calls)).transpose();
        let calls = calls.map_err(Error::internal)?;
        let attachments = (!self.attachments.is_empty()).then(|| serde_json::to_string(&self.attachments));
        let attachments = attachments.transpose().map_err(Error::internal)?;
        sql.run(
            concat!(
                "INSERT INTO messages (",
                columns!(),
                ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            ),
            &[
                Param::Int(self.seq),
                Param::Text(self.role.as_str()),
                self.content.as_ref().into(),
                self.name.as_ref().into(),
                calls.as_ref().into(),
                self.tool_call_id.as_ref().into(),
                self.status.map(status_text).into(),
                Param::Int(self.created_us),
                self.parent.into(),
                Param::Int(i64::from(self.depth)),
                Param::Int(i64::from(self.silent)),
                Param::Int(self.inbound as i64),
                self.metadata.as_ref().into(),
                attachments.as_ref().into(),
                self.reasoning.as_ref().into(),
            ],
        )
    }

    pub(crate) fn metadata(&self) -> Map<String, Value> {
        self.metadata.as_deref().and_then(|json| crate::json::from_str(json).ok()).unwrap_or_default()
    }

    /// Whether the runtime wrote it for people; models never receive such rows.
    pub(crate) fn is_status(&self) -> bool {
        self.inbound == Inbound::Step
            && self.metadata.as_deref().is_some_and(|json| json.contains("\"status_kind\""))
    }

    /// Whether a model of this thread wrote it: side A's replies are `assistant`, side B's `user`.
    pub(crate) fn is_reply(&self) -> bool {
        matches!(self.role, Role::Assistant | Role::User)
            && self.inbound == Inbound::Step
            && !self.is_status()
    }

    /// A reply with neither text nor calls.
    pub(crate) fn is_empty_reply(&self) -> bool {
        self.calls.is_empty() && self.is_blank() && self.is_reply()
    }

    /// Whether it has neither text nor attachments.
    pub(crate) fn is_blank(&self) -> bool {
        self.attachments.is_empty() && self.content.as_deref().is_none_or(|text| text.trim().is_empty())
    }

    /// Whether people read it: a user's or an assistant's text that is not silent.
    pub(crate) fn is_visible(&self) -> bool {
        matches!(self.role, Role::User | Role::Assistant)
            && self.depth == 0
            && !self.silent
            && self.content.as_deref().is_some_and(|text| !text.is_empty())
    }

    /// Whether a model that supports images receives an image from it.
    pub(crate) fn has_images(&self) -> bool {
        self.attachments.iter().any(AttachmentRef::is_image)
    }

    /// Estimated tokens in a request, without the provider's payload: providers drop old payloads themselves,
    /// and most of a payload is not text.
    pub(super) fn tokens(&self) -> usize {
        let calls: usize = self.calls.iter().map(size::of_call).sum();
        let attachments: usize = self.attachments.iter().map(AttachmentRef::tokens).sum();
        size::MESSAGE + self.content.as_deref().map_or(0, tokens) + calls + attachments
    }

    /// Estimated bytes of the row.
    pub(crate) fn bytes(&self) -> usize {
        let texts = [&self.content, &self.name, &self.tool_call_id, &self.metadata, &self.reasoning];
        let texts: usize = texts.into_iter().flatten().map(String::len).sum();
        let calls: usize = self.calls.iter().map(|call| call.name.len() + call.arguments.len()).sum();
        limits::ROW_BYTES + texts + calls + self.attachments.len() * limits::ROW_BYTES
    }

    pub(crate) fn id(&self, thread_id: &str) -> String {
        message_id(thread_id, self.seq)
    }

    /// The public form as JSON.
    pub(crate) fn to_json(&self, thread_id: &str, queued: bool) -> Value {
        json!(self.response(thread_id, queued))
    }

    /// The public form; `queued` while no run has taken it in (spec §14.3).
    fn response(&self, thread_id: &str, queued: bool) -> Message<'_> {
        let mut metadata = self.metadata();
        if queued {
            metadata.insert("queued".into(), true.into());
            metadata.insert("queue_status".into(), "queued".into());
        }
        let subagent_id = match self.role {
            // For results, it is not a part of the user's metadata.
            Role::Tool => metadata.remove("subagent_id"),
            _ => metadata.get("subagent_id").cloned(),
        };
        let calls: Vec<Value> =
            self.calls.iter().filter(|call| !call.is_dropped()).map(ToolCall::to_wire).collect();
        Message {
            id: self.id(thread_id),
            role: self.role,
            content: self.content.as_deref(),
            name: self.name.as_deref(),
            tool_calls: (!calls.is_empty()).then(|| Value::Array(calls).to_string()),
            tool_call_id: self.tool_call_id.as_deref(),
            tool_status: self.status,
            status: if queued { MessageStatus::Pending } else { MessageStatus::Completed },
            created_at: self.created_us,
            parent_id: self.parent.map(|seq| message_id(thread_id, seq)),
            depth: self.depth,
            silent: self.silent,
            metadata,
            attachments: self.attachments.iter().map(AttachmentRef::response).collect(),
            subagent_id: match subagent_id {
                Some(Value::String(reference)) => Some(reference),
                _ => None,
            },
            // `subagents/shown` adds it from the registry.
            subagent: None,
        }
    }
}

const fn status_text(status: ToolStatus) -> &'static str {
    match status {
        ToolStatus::Success => "success",
        ToolStatus::Error => "error",
    }
}

/// Public id of a message: its seq, with the beginning of the thread's id to distinguish threads.
pub(crate) fn message_id(thread_id: &str, seq: i64) -> String {
    let short: String = thread_id.chars().take(8).collect();
    format!("m_{short}_{seq}")
}

/// The seq in a public id of this thread.
///
/// # Errors
/// `message_not_found` for an id that this thread has never assigned.
pub(crate) fn message_seq(thread_id: &str, id: &str) -> Result<i64> {
    id.rsplit_once('_')
        .and_then(|(_, seq)| seq.parse::<i64>().ok())
        .filter(|seq| *seq > 0 && message_id(thread_id, *seq) == id)
        .ok_or_else(|| not_found(id))
}

/// The error for a missing message.
pub(crate) fn not_found(id: &str) -> Error {
    Error::new(Code::MessageNotFound, format!("This thread has no message “{id}”."))
}

/// Reads the messages that the statement selects.
fn read(sql: &dyn Sql, statement: &'static str, params: &[Param<'_>]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    sql.each(statement, params, &mut |cells| {
        rows.push(Row::read(cells)?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(rows)
}

/// One message.
pub(crate) fn find(sql: &dyn Sql, seq: i64) -> Result<Option<Row>> {
    let rows = read(sql, concat!("SELECT ", columns!(), " FROM messages WHERE seq = ?"), &[Param::Int(seq)])?;
    Ok(rows.into_iter().next())
}

/// Seqs after a run's last block that are searched for the message about its end: the block, and queued
/// messages.
const FAILURE_WITHIN: i64 = 4_096;

/// The message about a run's failure, stored with its end after its last block; `None` if it was deleted.
pub(crate) fn failure_at(sql: &dyn Sql, block: i64, ended_us: i64) -> Result<Option<Row>> {
    let statement = concat!(
        "SELECT ",
        columns!(),
        " FROM messages WHERE seq > ?1 AND seq <= ?2 AND created_us BETWEEN ?3 AND ?4
          AND metadata ->> 'status_kind' = 'run_failed' ORDER BY seq LIMIT 1"
    );
    let params = [
        Param::Int(block),
        Param::Int(block + FAILURE_WITHIN),
        Param::Int(ended_us),
        Param::Int(ended_us + limits::SECOND_US),
    ];
    Ok(read(sql, statement, &params)?.into_iter().next())
}

/// A callback for one row.
type RowVisitor<'a> = &'a mut dyn FnMut(Row) -> Result<ControlFlow<()>>;

/// Passes messages to `each` one by one until it breaks.
fn each_row(
    sql: &dyn Sql,
    statement: &'static str,
    params: &[Param<'_>],
    each: RowVisitor<'_>,
) -> Result<()> {
    sql.each(statement, params, &mut |cells| each(Row::read(cells)?))
}

/// The last seq of a message or a receipt, including the result's seq that a queued tool reserves.
pub(super) fn last_seq(sql: &dyn Sql) -> Result<i64> {
    let last = integer(
        sql,
        "SELECT max(ifnull((SELECT seq + (inbound = 3) FROM messages ORDER BY seq DESC LIMIT 1), 0),
            ifnull((SELECT max(id) FROM calls), 0))",
        &[],
    )?;
    Ok(last.unwrap_or(0))
}

/// Number of rows in a block of seqs, up to the last one. A call dropped by a hook has a receipt but no row.
pub(super) fn filled(sql: &dyn Sql, block: i64, beyond: i64) -> Result<i64> {
    let filled = integer(
        sql,
        "SELECT max(seq) + 1 - ?1 FROM (
            SELECT seq FROM messages WHERE seq >= ?1 AND seq < ?2
            UNION ALL SELECT id FROM calls WHERE id >= ?1 AND id < ?2 AND state = 'dropped')",
        &[Param::Int(block), Param::Int(beyond)],
    )?;
    Ok(filled.unwrap_or(0))
}

/// A row shared between the window in memory and its readers.
pub(crate) type SharedRow = Rc<Row>;
