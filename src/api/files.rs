//! The routes of the files (docs/files.md; spec §27.4).

use std::ops::Range;

use bytes::Bytes;
use futures::StreamExt;
use serde::Serialize;

use crate::api::Api;
use crate::engine::files::conditions::{Conditions, Portion};
use crate::engine::files::tree;
use crate::engine::files::tree::Removal;
use crate::engine::files::write::{Draft, WrittenFile};
use crate::error::{Code, Error, Result};
use crate::host::http;
use crate::limits;
use crate::protocols::responses::files::{FileRecord, FilesFound, OneFile, TextFound};
use crate::request::fields::Body;
use crate::request::{Content, Query, RawResponse, Reply, StreamRoute, ThreadRequest};
use crate::store::file_path::FilePath;
use crate::store::file_record::{BYTES, FileOptions, base64, options};
use crate::store::files::{Kind, Row};
use crate::store::{chunks, files as table};

/// Headers of every content: stored content must not run in the origin of the API.
const SAFE: [(&str, &str); 3] = [
    ("cache-control", "private, no-cache"),
    ("x-content-type-options", "nosniff"),
    ("content-security-policy", "sandbox; default-src 'none'"),
];

impl Api<'_> {
    /// Serves a request of a file route.
    pub(super) async fn serve_file(
        &self,
        request: &ThreadRequest<StreamRoute>,
        body: http::Body,
    ) -> Result<RawResponse> {
        let query = &request.query;
        let at = |path: &str| FilePath::parse("path", path);
        match &request.route {
            StreamRoute::ListFiles => self.list_files(query).await,
            StreamRoute::GetFile(path) => {
                let found = self.get_file(&at(path)?, request)?;
                match found.part {
                    Some((row, range)) => {
                        let content = Content::Stream(self.files().opened(row, range).await?);
                        Ok(RawResponse { content, ..found.head })
                    }
                    None => Ok(found.head),
                }
            }
            StreamRoute::HeadFile(path) => {
                let served = self.get_file(&at(path)?, request)?.head;
                Ok(RawResponse { content: Content::Empty, headers: with_length(&served), ..served })
            }
            StreamRoute::PutFile(path) => self.put_file(at(path)?, request, body).await,
            StreamRoute::PostFile(path) => {
                let json = request.header("content-type").is_some_and(crate::request::body::is_json);
                if json {
                    let body = text_of(body).await?;
                    self.post_file(at(path)?, request, &body)
                } else {
                    self.put_file(at(path)?, request, body).await
                }
            }
            StreamRoute::MoveFile(path) => {
                let mut body = Body::parse(&text_of(body).await?)?.known(&["path"])?;
                let to = body.string("path")?.ok_or_else(|| Error::missing("path"))?;
                let record = self.files().rename(&at(path)?, &at(&to)?, &Conditions::of(request))?;
                Ok(file_answer(200, &record))
            }
            StreamRoute::DeleteFile(path) => self.delete_file(&at(path)?, request),
            StreamRoute::StartUpload => {
                let body = Body::parse(&text_of(body).await?)?;
                let body =
                    body.known(&["path", "size", "mimeType", "metadata", "width", "height", "thumbnail"])?;
                Ok(answer(201, &self.files().start_upload(body)?))
            }
            StreamRoute::ListUploads => Ok(answer(200, &self.files().list_uploads(query)?)),
            StreamRoute::GetUpload(id) => Ok(answer(200, &self.files().get_upload(id)?)),
            StreamRoute::PutChunk { upload, index } => {
                Ok(answer(200, &self.files().put_upload_chunk(upload, index, body).await?))
            }
            StreamRoute::CompleteUpload(id) => Ok(file_answer(200, &self.files().complete_upload(id)?)),
            StreamRoute::DeleteUpload(id) => {
                self.files().delete_upload(id)?;
                Ok(RawResponse::empty(204))
            }
            // The application's own routes are in `endpoints`.
            StreamRoute::Endpoint { .. } => Err(Error::internal("an endpoint is no file")),
        }
    }

    /// `DELETE …/fs/…`; with `?recursive=true` also a folder that is not empty.
    fn delete_file(&self, path: &FilePath, request: &ThreadRequest<StreamRoute>) -> Result<RawResponse> {
        let what = match request.query.flag("recursive")? {
            true => Removal::Everything,
            false => Removal::Either,
        };
        if !self.files().remove(path, what, &Conditions::of(request))? {
            return Err(tree::no_file(path));
        }
        if what == Removal::Everything {
            self.files().prune_all();
        }
        Ok(RawResponse::empty(204))
    }

    /// `GET …/fs`: totals, a search, or the root.
    async fn list_files(&self, query: &Query) -> Result<RawResponse> {
        if query.flag("stats")? {
            return Ok(answer(200, &self.files().stats()?));
        }
        if let Some(pattern) = query.get("grep") {
            let found = self.files().grep(pattern)?;
            let (results, truncated) = (found.results, found.truncated);
            return Ok(answer(200, &TextFound { results, pattern, truncated }));
        }
        if let Some(pattern) = query.get("find") {
            let (files, truncated) = self.files().find(pattern).await?;
            return Ok(answer(200, &FilesFound { files, pattern, truncated }));
        }
        Ok(answer(200, &self.files().list(&FilePath::parse("path", "")?, query)?))
    }

    /// `GET …/fs/{path}`.
    fn get_file(&self, path: &FilePath, request: &ThreadRequest<StreamRoute>) -> Result<FileResponse> {
        let query = &request.query;
        let as_record = match query.get("format") {
            None | Some("") => query.flag("stat")?,
            Some("json") => true,
            Some(other) => {
                return Err(Error::field("format", format!("`format` is json or absent, not “{other}”.")));
            }
        };
        if as_record {
            let record = self.files().stat(path)?.ok_or_else(|| tree::no_file(path))?;
            return Ok(file_answer(200, &record).into());
        }
        let row = if path.is_root() { None } else { self.read(|_, sql| table::find(sql, path))? };
        let row = match row {
            Some(row) if row.kind == Kind::File => row,
            Some(_) => return Ok(answer(200, &self.files().list(path, query)?).into()),
            None if path.is_root() => return Ok(answer(200, &self.files().list(path, query)?).into()),
            None => return Err(tree::no_file(path)),
        };
        if query.flag("thumbnail")? {
            let found = self.read(|_, sql| chunks::thumbnail(sql, row.id))?;
            let bytes =
                found.ok_or_else(|| Error::new(Code::NotFound, format!("{path} was given no thumbnail.")))?;
            let served = content_headers(RawResponse::empty(200), picture(&bytes));
            return Ok(RawResponse { content: Content::Bytes(bytes), ..served }.into());
        }
        content(row, request)
    }

    /// `PUT …/fs/{path}`: the body is the content, whatever its type.
    async fn put_file(
        &self,
        path: FilePath,
        request: &ThreadRequest<StreamRoute>,
        body: http::Body,
    ) -> Result<RawResponse> {
        let mime = request.header("content-type").unwrap_or(BYTES);
        let draft = Draft::new(path, mime, FileOptions::default(), Conditions::of(request))?;
        let declared = request.header("content-length").and_then(|length| length.parse().ok());
        let written = self.files().write_stream(&draft, declared, body).await?;
        Ok(told(&written))
    }

    /// `POST …/fs/{path}` with a JSON body: `{content}`, `{data}` in base64, or `{directory: true}`.
    fn post_file(
        &self,
        path: FilePath,
        request: &ThreadRequest<StreamRoute>,
        body: &str,
    ) -> Result<RawResponse> {
        let known = ["directory", "content", "data", "mimeType", "width", "height", "metadata", "thumbnail"];
        let body = Body::parse(body)?.known(&known);
        let mut body = body.map_err(|error| error.hint("Send a file that is JSON itself with PUT."))?;
        if body.flag("directory")? {
            let (record, created) = self.files().mkdir(&path, &Conditions::of(request))?;
            return Ok(file_answer(if created { 201 } else { 200 }, &record));
        }
        let text = body.string("content")?;
        let (content, usual) = match (text, base64(&mut body, "data")?) {
            (Some(text), None) => (Bytes::from(text), "text/plain"),
            (None, Some(data)) => (data, BYTES),
            (Some(_), Some(_)) => {
                return Err(Error::field("data", "Give `content` or `data`, not both."));
            }
            (None, None) => {
                return Err(Error::field(
                    "content",
                    "Say what to write: `content`, a text, `data`, bytes in base64, or `directory`: true.",
                )
                .hint("Send a file that is JSON itself with PUT."));
            }
        };
        let mime = body.string("mimeType")?.unwrap_or_else(|| usual.to_owned());
        let options = options(&mut body)?;
        let draft = Draft::new(path, &mime, options, Conditions::of(request))?;
        Ok(told(&self.files().write_whole(&draft, &content)?))
    }
}

/// The entry at a path, before content is read.
struct FileResponse {
    /// The response. It is complete unless there is a `part`.
    head: RawResponse,
    /// The range of a file's bytes that is the content.
    part: Option<(Row, Range<u64>)>,
}

impl From<RawResponse> for FileResponse {
    fn from(head: RawResponse) -> FileResponse {
        FileResponse { head, part: None }
    }
}

/// The content of a file, or the requested range of it.
fn content(row: Row, request: &ThreadRequest<StreamRoute>) -> Result<FileResponse> {
    let (etag, size) = (row.etag(), row.size.unsigned_abs());
    let served = |status| {
        content_headers(RawResponse::empty(status), &row.mime)
            .header("etag", &etag)
            .header("last-modified", http::date(row.updated_us))
            .header("accept-ranges", "bytes")
    };
    if Conditions::of(request).not_modified(&etag)? {
        return Ok(served(304).into());
    }
    let wanted = match request.route {
        // A range is for GET alone (RFC 9110, 14.2).
        StreamRoute::HeadFile(_) => Portion::Whole,
        _ => Portion::of(request, &etag, size),
    };
    let (status, range) = match wanted {
        Portion::Whole => (200, 0..size),
        Portion::Part(range) => (206, range),
        Portion::Nothing => {
            let error =
                Error::new(Code::RangeNotSatisfiable, format!("The file has {size} bytes.")).at("range");
            return Ok(RawResponse::from(error).header("content-range", format!("bytes */{size}")).into());
        }
    };
    let mut served = served(status).header("content-length", (range.end - range.start).to_string());
    if status == 206 {
        served = served
            .header("content-range", format!("bytes {}-{}/{size}", range.start, range.end.saturating_sub(1)));
    }
    if range.is_empty() {
        served.content = Content::Bytes(Bytes::new());
        return Ok(served.into());
    }
    Ok(FileResponse { head: served, part: Some((row, range)) })
}

/// The body as text.
async fn text_of(mut body: http::Body) -> Result<String> {
    let mut bytes = Vec::new();
    while let Some(piece) = body.next().await {
        let piece = piece
            .map_err(|error| Error::new(Code::BadJson, format!("The body could not be read: {error}.")))?;
        bytes.extend_from_slice(&piece);
        if bytes.len() > limits::REQUEST_BYTES {
            return Err(Error::new(
                Code::TooLarge,
                format!("A JSON body has at most {} bytes.", limits::REQUEST_BYTES),
            )
            .hint("Send larger files with PUT."));
        }
    }
    String::from_utf8(bytes).map_err(|_| Error::new(Code::BadJson, "The body is not valid UTF-8."))
}

fn answer(status: u16, body: &impl Serialize) -> RawResponse {
    Reply::json(status, body).into()
}

fn file_answer(status: u16, file: &FileRecord) -> RawResponse {
    answer(status, &OneFile { file })
}

fn told(written: &WrittenFile) -> RawResponse {
    let served = file_answer(if written.created { 201 } else { 200 }, &written.record);
    match &written.record.etag {
        Some(etag) => served.header("etag", etag),
        None => served,
    }
}

fn content_headers(served: RawResponse, mime: &str) -> RawResponse {
    SAFE.iter().fold(served.header("content-type", mime), |served, (name, value)| served.header(name, *value))
}

/// The headers of a response without its body.
fn with_length(served: &RawResponse) -> Vec<(String, String)> {
    let mut headers = served.headers.clone();
    if let Content::Bytes(bytes) = &served.content
        && !headers.iter().any(|(name, _)| name == "content-length")
    {
        headers.push(("content-length".into(), bytes.len().to_string()));
    }
    headers
}

/// The type of a thumbnail, by its first bytes.
fn picture(bytes: &[u8]) -> &'static str {
    match bytes {
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        _ => BYTES,
    }
}
