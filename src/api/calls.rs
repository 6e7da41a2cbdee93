//! Calls of a tool by a client (docs/mcp-server.md). Each call gets its own thread, whose agent has no model, and is
//! one of that thread's queued tools. Receipts, approvals, values, budgets and recovery work as for any other
//! call.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::api::Api;
use crate::definitions::message::{Role, ToolStatus};
use crate::definitions::offered::agent_of;
use crate::engine::calls::tool_result::NO_OUTPUT;
use crate::engine::files::{attach, search};
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::json;
use crate::request::fields::Body;
use crate::request::route::no_route;
use crate::request::{Reply, ThreadRequest};
use crate::sdk::scope::EntryMode;
use crate::store::attachment::AttachmentRef;
use crate::store::file_record::FileRecord;
use crate::store::idempotency::Key;
use crate::store::messages::{self as rows, message_seq, not_found};

/// Bytes of files in a result. Other files are named by their address only.
const FILES_BYTES: usize = 4 << 20;

impl Api<'_> {
    /// Makes the call: `{ name, args }`. Repeated requests do not repeat the call.
    pub(super) fn call_offered(&self, request: &ThreadRequest) -> Result<Reply> {
        let mut body = Body::parse(&request.body)?.known(&["name", "args"])?;
        let name = body.string("name")?.ok_or_else(|| Error::missing("name"))?;
        let args = body.object("args")?.unwrap_or_default();
        if self.read(|state, _| Ok(state.meta.agent != agent_of(&name)))? {
            return Err(no_route());
        }
        let now = self.host.now_us();
        let key = Key::of(request, "call")?;
        let known = self.read(|_, sql| match &key {
            Some(key) => key.replayed(sql, now),
            None => Ok(None),
        })?;
        let seq = match known {
            Some(seq) => seq,
            None => {
                let args = self.checked_args(&name, Value::Object(args))?;
                let arguments = self.variables().redact_json(args).to_string();
                let trace = request.trace();
                let row = self.transition(|state, sql| {
                    let row = self.queue_call(state, sql, &name, arguments, Map::new(), now)?;
                    if let Some(key) = &key {
                        key.insert(sql, row.seq, now)?;
                    }
                    self.start_for_queue(state, sql, trace.as_ref(), now)?;
                    Ok(row)
                })?;
                self.start_flow(EntryMode::First);
                self.broadcast_message(&row)?;
                row.seq
            }
        };
        self.read(|state, _| {
            let run = state.run.as_ref().map(crate::store::runs::Run::public_id);
            let id = rows::message_id(&state.meta.stem, seq);
            Ok(Reply::json(202, &json!({ "messageId": id, "run": run })))
        })
    }

    /// The outcome of the call: `{ failed, text, files }`, or `{}` while it has none.
    pub(super) fn called(&self, id: &str) -> Result<Reply> {
        self.read(|state, sql| {
            let seq = message_seq(&state.meta.stem, id)?;
            let asked = rows::find(sql, seq)?.ok_or_else(|| not_found(id))?;
            let call = asked.calls.first().map(|call| call.id.as_str());
            // The seq after the call is reserved for its result.
            let found = rows::find(sql, seq + 1)?
                .filter(|row| row.role == Role::Tool && row.tool_call_id.as_deref() == call);
            let Some(row) = found else { return Ok(Reply::json(200, &json!({}))) };
            let mut room = FILES_BYTES;
            let shown = |file: &AttachmentRef| {
                let AttachmentRef { name, mime_type, path, size, .. } = file;
                shown(sql, (name, mime_type, path, *size), &mut room)
            };
            let files: Vec<Value> = row.attachments.iter().map(shown).collect::<Result<_>>()?;
            let failed = row.status == Some(ToolStatus::Error);
            let text = row.content.as_deref().filter(|text| *text != NO_OUTPUT).unwrap_or_default();
            Ok(Reply::json(200, &json!({ "failed": failed, "text": text, "files": files })))
        })
    }

    /// A file's content, in the same form: `{ failed, text, files }`.
    pub(super) fn file_content(&self, path: &str) -> Result<Reply> {
        self.read(|_, sql| {
            let no_file = || Error::new(Code::NotFound, "There is no such file.").at("path");
            let FileRecord { path, name, mime_type, size, .. } =
                attach::stat(sql, "path", path)?.ok_or_else(no_file)?;
            let mut room = FILES_BYTES;
            let file = shown(sql, (&name, &mime_type, &path, size), &mut room)?;
            let whole = file.get("text").or(file.get("data")).is_some();
            let text = if whole {
                String::new()
            } else {
                format!("{path} has {size} bytes: too many to be read so.")
            };
            Ok(Reply::json(200, &json!({ "failed": !whole, "text": text, "files": [file] })))
        })
    }
}

/// A file with its name, type, path and size, and its content if there is room for it.
fn shown(sql: &dyn Sql, file: (&str, &str, &str, u64), room: &mut usize) -> Result<Value> {
    let (name, mime_type, path, size) = file;
    let mut shown = json!({ "name": name, "mimeType": mime_type, "path": path, "size": size });
    if let (Some(content), Some(fields)) = (attach::content(sql, path, *room)?, shown.as_object_mut()) {
        *room -= content.len();
        let (field, text) = match String::from_utf8(content) {
            Ok(text) if search::is_text(mime_type, text.len() as u64) => ("text", text),
            Ok(text) => ("data", STANDARD.encode(text)),
            Err(error) => ("data", STANDARD.encode(error.into_bytes())),
        };
        fields.insert(field.to_owned(), text.into());
    }
    Ok(shown)
}
