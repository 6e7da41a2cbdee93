//! The pages that a thread sends to its copy, each bounded in bytes.

use std::ops::ControlFlow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::engine::features::History;
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::limits;
use crate::request::Reply;
use crate::store::files::Kind;
use crate::store::files::tree as placed;
use crate::store::messages::{Row, change, page as rows};
use crate::store::summaries::Summary;
use crate::store::{chunks, files, summaries, values};

/// The beginning of a page: after the end of the previous one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Cursor {
    /// After the message of this seq.
    Messages(i64),
    /// After the value of this key.
    Values(String),
    /// After the file of this number.
    Files(i64),
    /// Everything was copied.
    End,
}

/// A request of a copy.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CopyRequest {
    pub(super) from: Cursor,
    /// Seq of the last message to copy.
    pub(super) upto: i64,
}

/// A page.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct CopyPage {
    /// The thread's number of edits.
    pub(super) edits: i64,
    #[serde(default)]
    pub(super) messages: Vec<Row>,
    #[serde(default)]
    pub(super) values: Vec<CopiedValue>,
    #[serde(default)]
    pub(super) files: Vec<CopiedFile>,
    /// The summary of the older messages, sent with the last messages.
    #[serde(default)]
    pub(super) summary: Option<Summary>,
    /// The beginning of the next page; `None` if none was requested.
    pub(super) next: Option<Cursor>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CopiedValue {
    pub(super) key: String,
    /// JSON.
    pub(super) text: String,
    pub(super) updated_us: i64,
}

/// A file or a directory. Its content is fetched like that of any file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CopiedFile {
    pub(super) path: String,
    pub(super) directory: bool,
    pub(super) mime: String,
    pub(super) size: u64,
    /// A JSON object.
    pub(super) metadata: Option<String>,
    pub(super) width: Option<u32>,
    pub(super) height: Option<u32>,
    pub(super) etag: String,
    /// Base64.
    pub(super) thumbnail: Option<String>,
}

impl History<'_> {
    /// A page for a copy.
    pub(crate) fn copy_page(&self, body: &str) -> Result<Reply> {
        let wanted: CopyRequest = crate::json::from_str(body)
            .map_err(|error| Error::new(Code::BadJson, format!("This asks for no page: {error}.")))?;
        let page = self.read(|state, sql| {
            let page = match &wanted.from {
                Cursor::Messages(after) => messages(sql, *after, wanted.upto)?,
                Cursor::Values(after) => values_after(sql, after)?,
                Cursor::Files(after) => files_after(sql, *after, wanted.upto)?,
                Cursor::End => CopyPage::default(),
            };
            Ok(CopyPage { edits: state.meta.edits, ..page })
        })?;
        Ok(Reply::json(200, &serde_json::to_value(&page).map_err(Error::internal)?))
    }
}

fn messages(sql: &dyn Sql, after: i64, upto: i64) -> Result<CopyPage> {
    let mut page = CopyPage::default();
    let mut bytes = 0;
    rows::after(sql, after, limits::FORK_MESSAGES, &mut |row| {
        if row.seq > upto {
            return Ok(ControlFlow::Break(()));
        }
        bytes += row.bytes();
        page.messages.push(row);
        Ok(if bytes < limits::FORK_BYTES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    page.next = match page.messages.last() {
        Some(last) if last.seq < upto => Some(Cursor::Messages(last.seq)),
        _ => Some(Cursor::Values(String::new())),
    };
    if matches!(page.next, Some(Cursor::Values(_))) {
        page.summary = summaries::newest_within(sql, upto)?;
    }
    Ok(page)
}

fn values_after(sql: &dyn Sql, after: &str) -> Result<CopyPage> {
    let mut page = CopyPage { next: Some(Cursor::Files(0)), ..CopyPage::default() };
    let mut bytes = 0;
    values::each_after(sql, after, &mut |key, text, updated_us| {
        if bytes >= limits::FORK_BYTES {
            page.next = page.values.last().map(|last: &CopiedValue| Cursor::Values(last.key.clone()));
            return ControlFlow::Break(());
        }
        bytes += key.len() + text.len();
        page.values.push(CopiedValue { key: key.to_owned(), text: text.to_owned(), updated_us });
        ControlFlow::Continue(())
    })?;
    Ok(page)
}

fn files_after(sql: &dyn Sql, after: i64, upto: i64) -> Result<CopyPage> {
    let mut page = CopyPage { next: Some(Cursor::End), ..CopyPage::default() };
    for row in placed::after(sql, after, limits::FORK_FILES)? {
        page.next = Some(Cursor::Files(row.id));
        if is_newer_than(sql, upto, &row)? {
            continue;
        }
        let pixels = |number: Option<i64>| number.and_then(|number| u32::try_from(number).ok());
        page.files.push(CopiedFile {
            path: row.path(),
            directory: row.kind == Kind::Directory,
            mime: row.mime.clone(),
            size: row.size.unsigned_abs(),
            metadata: row.metadata.clone(),
            width: pixels(row.width),
            height: pixels(row.height),
            etag: row.etag(),
            thumbnail: chunks::thumbnail(sql, row.id)?.map(|bytes| STANDARD.encode(&bytes)),
        });
    }
    Ok(page)
}

/// Whether a file belongs to a message that is not copied.
fn is_newer_than(sql: &dyn Sql, upto: i64, row: &files::Row) -> Result<bool> {
    let Some(metadata) = &row.metadata else { return Ok(false) };
    let metadata: serde_json::Value = crate::json::from_str(metadata).unwrap_or_default();
    match metadata.get("attachment").and_then(serde_json::Value::as_str) {
        Some(id) => change::shows_after(sql, upto, id),
        None => Ok(false),
    }
}
