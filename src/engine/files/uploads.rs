//! Resumable uploads: content that is sent chunk by chunk, each in a request that may be repeated. It gets
//! its path when all chunks are there. The id of an upload is the id of its content, so completing it twice
//! has the same effect as once.

use futures::StreamExt;
use sha2::{Digest, Sha256};

use crate::engine::features::Files;
use crate::engine::files::conditions::Conditions;
use crate::engine::files::write::{Draft, check_draft, check_open, check_room, check_size, expired};
use crate::error::{Code, Error, Result};
use crate::host::{Sql, http};
use crate::limits;
use crate::protocols::responses::files::{
    ChunkTaken, CompletedUpload, FileRecord, ListedUpload, Upload, UploadPage, UploadState,
};
use crate::request::Query;
use crate::request::fields::Body;
use crate::store::file_path::FilePath;
use crate::store::file_record::FileOptions;
use crate::store::files::{Kind, Row};
use crate::store::{chunks, files as table};

/// Maximum number of missing chunks that a response names.
const NAMED: usize = 20;

impl Files<'_> {
    /// `POST …/uploads`: `{path, size, mimeType?, metadata?, width?, height?, thumbnail?}`.
    pub(crate) fn start_upload(&self, mut body: Body) -> Result<Upload> {
        let path = body.string("path")?.ok_or_else(|| Error::missing("path"))?;
        let size = body.take("size").ok_or_else(|| Error::missing("size"))?;
        let size = size.as_u64().ok_or_else(|| {
            Error::field("size", "`size` must be the file's length in bytes, a whole number.")
        })?;
        check_size(size)?;
        let mime = body.string("mimeType")?.unwrap_or_else(|| crate::store::file_record::BYTES.to_owned());
        let options = crate::store::file_record::options(&mut body)?;
        let draft = Draft::new(FilePath::parse("path", &path)?, &mime, options, Conditions::default())?;
        // Deletes expired uploads first, to make room.
        self.prune_files();
        let now = self.host.now_us();
        let row = self.transition(|state, sql| {
            check_draft(state, sql, &draft)?;
            check_room(sql, size)?;
            check_open(sql, now)?;
            let row = draft.row(Kind::Upload, size, now);
            let row = Row { id: row.insert(sql)?, ..row };
            if let Some(thumbnail) = &draft.options.thumbnail {
                chunks::put_thumbnail(sql, row.id, thumbnail)?;
            }
            Ok(row)
        })?;
        let id = self.upload_id(row.id)?;
        Ok(Upload { facts: facts(id, row), received: Vec::new() })
    }

    /// `GET …/uploads`: uploads in progress, oldest first.
    pub(crate) fn list_uploads(&self, query: &Query) -> Result<UploadPage> {
        let limit = query.number("limit", limits::PAGE_DEFAULT, limits::PAGE_MAX)?;
        let after = query.get("cursor").filter(|cursor| !cursor.is_empty());
        let bad = |cursor: &str| {
            Error::new(Code::BadCursor, format!("`cursor` is none that this list gave out: “{cursor}”."))
                .at("cursor")
        };
        let after = after.map(|cursor| self.upload_number(cursor)?.ok_or_else(|| bad(cursor))).transpose()?;
        let since = self.host.now_us() - limits::UPLOAD_US;
        let mut rows =
            self.read(|_, sql| table::uploads(sql, since, after.unwrap_or(0), i64::from(limit) + 1))?;
        let more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        let cursor = rows.last().filter(|_| more).map(|row| self.upload_id(row.id)).transpose()?;
        let uploads = rows.into_iter().map(|row| Ok(facts(self.upload_id(row.id)?, row)));
        Ok(UploadPage { uploads: uploads.collect::<Result<_>>()?, cursor })
    }

    /// The id of an upload: its number, and letters from a hash of the thread and the number. So the plain
    /// number of another file is not the id of an upload.
    fn upload_id(&self, number: i64) -> Result<String> {
        let thread = self.read(|state, _| Ok(state.meta.stem.clone()))?;
        let hash = Sha256::digest(format!("upload {thread} {number}"));
        let letters: String = hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        Ok(format!("u_{number}_{letters}"))
    }

    /// The number in a valid id.
    fn upload_number(&self, id: &str) -> Result<Option<i64>> {
        let number = id.strip_prefix("u_").and_then(|rest| rest.split('_').next()?.parse().ok());
        // The platform supports 53 bits.
        let number = number.filter(|number: &i64| (1..1 << 32).contains(number));
        let Some(number) = number else { return Ok(None) };
        Ok((self.upload_id(number)? == id).then_some(number))
    }

    /// The row of an upload, or of the file that it became.
    fn upload(&self, sql: &dyn Sql, id: &str, number: Option<i64>, now: i64) -> Result<Row> {
        let row = number.map(|number| table::by_id(sql, number)).transpose()?.flatten();
        let row = row.filter(|row| match row.kind {
            Kind::Upload => !expired(row, now),
            Kind::File => true,
            Kind::Directory | Kind::Write | Kind::Gone => false,
        });
        row.ok_or_else(|| {
            Error::new(Code::NotFound, format!("There is no upload {id}."))
                .hint("An upload ends after 24 hours, and when its file is replaced or removed.")
        })
    }

    /// `GET …/uploads/:id`: the progress of an upload.
    pub(crate) fn get_upload(&self, id: &str) -> Result<UploadState> {
        let (now, number) = (self.host.now_us(), self.upload_number(id)?);
        self.read(|_, sql| {
            let row = self.upload(sql, id, number, now)?;
            match row.kind {
                Kind::File => {
                    let completed = CompletedUpload { upload_id: id.to_owned(), file: row.record()? };
                    Ok(UploadState::Completed(Box::new(completed)))
                }
                _ => {
                    let received = chunks::stored(sql, row.id)?;
                    Ok(UploadState::Open(Upload { facts: facts(id.to_owned(), row), received }))
                }
            }
        })
    }

    /// `PUT …/uploads/:id/:index`: one chunk, whose length is determined by its index. It is stored
    /// completely or not at all.
    pub(crate) async fn put_upload_chunk<'a>(
        &self,
        id: &'a str,
        index: &str,
        mut body: http::Body,
    ) -> Result<ChunkTaken<'a>> {
        let (now, number) = (self.host.now_us(), self.upload_number(id)?);
        let row = self.read(|state, sql| {
            state.ensure_not_terminated()?;
            unfinished(self.upload(sql, id, number, now)?)
        })?;
        let place =
            index.parse::<i64>().ok().filter(|index| (0..row.chunks).contains(index)).ok_or_else(|| {
                Error::field(
                    "index",
                    format!("“{index}” is none of the {} chunks, numbered from 0.", row.chunks),
                )
            })?;
        let chunk = limits::FILE_CHUNK_BYTES as i64;
        let expected = (row.size - place * chunk).min(chunk).unsigned_abs() as usize;
        let mut data = Vec::with_capacity(expected);
        while let Some(piece) = body.next().await {
            let piece =
                piece.map_err(|error| Error::field("body", format!("The body broke off: {error}.")))?;
            data.extend_from_slice(&piece);
            if data.len() > expected {
                break;
            }
        }
        if data.len() != expected {
            let have = if data.len() > expected { "more".to_owned() } else { data.len().to_string() };
            return Err(Error::field(
                "body",
                format!("Chunk {place} has {expected} bytes; the body has {have}."),
            ));
        }
        self.transition(|state, sql| {
            state.ensure_not_terminated()?;
            let row = unfinished(self.upload(sql, id, number, now)?)?;
            check_room(sql, data.len() as u64)?;
            chunks::put(sql, row.id, place, &data)
        })?;
        Ok(ChunkTaken { upload_id: id, index: place, size: data.len() as u64 })
    }

    /// `POST …/uploads/:id/complete`: gives the content its path. Repeated requests have no effect.
    pub(crate) fn complete_upload(&self, id: &str) -> Result<FileRecord> {
        let (now, number) = (self.host.now_us(), self.upload_number(id)?);
        let (row, received) = self.read(|_, sql| {
            let row = self.upload(sql, id, number, now)?;
            let received = chunks::stored(sql, row.id)?;
            Ok((row, received))
        })?;
        if row.kind == Kind::File {
            return row.record();
        }
        if received.len() as i64 != row.chunks {
            let missing = (0..row.chunks).filter(|index| received.binary_search(index).is_err());
            let named: Vec<String> = missing.take(NAMED).map(|index| index.to_string()).collect();
            let more = row.chunks - received.len() as i64 - named.len() as i64;
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            return Err(Error::new(
                Code::Conflict,
                format!("Chunks {}{more} are missing.", named.join(", ")),
            )
            .hint("PUT them, then complete the upload again."));
        }
        let path = FilePath::parse("path", &row.name)?;
        let draft = Draft::new(path, &row.mime, FileOptions::default(), Conditions::default())?;
        let written = self.install_stored(&draft, row.size.unsigned_abs(), |sql| {
            unfinished(self.upload(sql, id, number, now)?)
        })?;
        self.prune_files();
        Ok(written.record)
    }

    /// `DELETE …/uploads/:id`.
    pub(crate) fn delete_upload(&self, id: &str) -> Result<()> {
        let (now, number) = (self.host.now_us(), self.upload_number(id)?);
        self.transition(|state, sql| {
            state.ensure_not_terminated()?;
            let row = unfinished(self.upload(sql, id, number, now)?)?;
            // From here on it cannot be found, and its content is deleted step by step.
            Row { kind: Kind::Gone, ..row }.update(sql)
        })?;
        self.prune_files();
        Ok(())
    }
}

/// The fixed fields of an upload.
fn facts(id: String, row: Row) -> ListedUpload {
    ListedUpload {
        upload_id: id,
        path: row.name,
        size: row.size,
        mime_type: row.mime,
        chunk_size: limits::FILE_CHUNK_BYTES as u64,
        chunks: row.chunks,
        expires_at: row.created_us.saturating_add(limits::UPLOAD_US),
    }
}

/// Refuses an upload that is complete.
fn unfinished(row: Row) -> Result<Row> {
    match row.kind {
        Kind::Upload => Ok(row),
        _ => Err(Error::new(Code::Conflict, format!("The upload is complete: {}.", row.path()))),
    }
}
