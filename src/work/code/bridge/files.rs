//! Files of a thread, for code (spec §16.2).

use std::rc::Rc;

use bytes::Bytes;
use futures::StreamExt;

use crate::error::{Code, Error, Result};
use crate::json;
use crate::limits;
use crate::request::Query;
use crate::sandbox::backlog::reserve;
use crate::sandbox::{BinaryKind, Function, Value};
use crate::sdk::ThreadState;
use crate::work::code::args::Args;
use crate::work::code::bridge::options::file_options;
use crate::work::code::bridge::{done, json_of};

/// Calls a member for files.
pub(super) fn file_method(state: &ThreadState, method: &str, mut args: Args) -> Result<Value> {
    Ok(match method {
        "writeFile" => {
            let (path, data, mime) = (args.text("path")?, args.bytes("data")?, args.text("mimeType")?);
            json_of(&state.write_file(&path, data, &mime, file_options(args.next())?)?)?
        }
        "readFile" => buffer(state.read_file(&args.text("path")?)?),
        "readFileChunks" => match state.read_file_stream(&args.text("path")?)? {
            Some(chunks) => chunk_reader(chunks),
            None => Value::Null,
        },
        "statFile" => json_of(&state.stat_file(&args.text("path")?)?)?,
        "readdirFile" => {
            let path = args.text("path")?;
            let query = args.query(&["limit", "cursor"])?;
            if query.0.is_empty() {
                json!({ "entries": state.readdir_file(&path)? }).into()
            } else {
                page(state, &path, &query)?
            }
        }
        "unlinkFile" => done(state.unlink_file(&args.text("path")?))?,
        "mkdirFile" => json_of(&state.mkdir_file(&args.text("path")?)?)?,
        "rmdirFile" => done(state.rmdir_file(&args.text("path")?))?,
        "moveFile" | "renameFile" => json_of(&state.move_file(&args.text("from")?, &args.text("to")?)?)?,
        "getFileStats" => json_of(&state.get_file_stats()?)?,
        "grepFiles" => json_of(&state.grep_files(&args.text("pattern")?)?)?,
        "findFiles" => json!({ "paths": state.find_files(&args.text("pattern")?)? }).into(),
        "getFileThumbnail" => buffer(state.get_file_thumbnail(&args.text("path")?)?),
        other => return Err(Error::field("method", format!("There is no state.{other}()."))),
    })
}

/// A page of a directory; empty when the directory does not exist.
fn page(state: &ThreadState, path: &str, query: &Query) -> Result<Value> {
    let mut page = match state.readdir_page(path, query) {
        Err(error) if error.code == Code::NotFound => json!({ "files": [], "cursor": null }),
        page => page?,
    };
    let mut take = |name: &str| page.get_mut(name).map(serde_json::Value::take).unwrap_or_default();
    Ok(json!({ "entries": take("files"), "cursor": take("cursor") }).into())
}

/// A function that returns the next chunk of a file, and `null` after the last.
fn chunk_reader(
    chunks: futures::stream::LocalBoxStream<'static, Result<crate::store::file_record::FileChunk>>,
) -> Value {
    let chunks = Rc::new(futures::lock::Mutex::new(chunks));
    Value::Function(Function::new("next", move |_| {
        let chunks = chunks.clone();
        Box::pin(async move {
            reserve(limits::FILE_CHUNK_BYTES).await;
            let Some(chunk) = chunks.lock().await.next().await else { return Ok(Value::Null) };
            let chunk = chunk?;
            Ok(Value::Object(vec![
                ("data".to_owned(), Value::Binary(BinaryKind::Uint8Array, chunk.data)),
                ("index".to_owned(), Value::Number(chunk.index as f64)),
                ("totalChunks".to_owned(), Value::Number(chunk.total_chunks as f64)),
                ("isLast".to_owned(), Value::Bool(chunk.is_last)),
            ]))
        })
    }))
}

pub(super) fn buffer(bytes: Option<Bytes>) -> Value {
    bytes.map_or(Value::Null, |bytes| Value::Binary(BinaryKind::ArrayBuffer, bytes))
}
