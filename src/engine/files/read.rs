//! Reading content. A reader never sees a mixture of two versions: the content of an id does not change, and
//! a read ends with an error if the content is replaced meanwhile.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use futures::stream::LocalBoxStream;
use futures::{StreamExt, stream};

use crate::engine::features::Files;
use crate::engine::files::bucket::refused;
use crate::engine::files::tree;
use crate::engine::thread::Thread;
use crate::error::{Code, Error, Result};
use crate::host::http::Body;
use crate::limits;
use crate::store::file_path::FilePath;
use crate::store::file_record::FileChunk;
use crate::store::files::{Kind, Row};
use crate::store::{chunks, files as table};

/// Bytes of a chunk.
const CHUNK: u64 = limits::FILE_CHUNK_BYTES as u64;

impl Files<'_> {
    /// The row of a file, if it exists.
    ///
    /// # Errors
    /// `conflict` for a directory.
    pub(crate) fn file(&self, path: &FilePath) -> Result<Option<Row>> {
        if path.is_root() {
            return Err(tree::is_directory(path));
        }
        let found = self.read(|_, sql| table::find(sql, path))?;
        match found {
            Some(row) if row.kind == Kind::Directory => Err(tree::is_directory(path)),
            found => Ok(found),
        }
    }

    /// A file's bytes as a whole.
    ///
    /// # Errors
    /// `too_large` beyond [`limits::FILE_WHOLE_BYTES`].
    pub(crate) fn whole(&self, row: &Row) -> Result<Bytes> {
        if row.size.unsigned_abs() > limits::FILE_WHOLE_BYTES as u64 || row.storage.is_away() {
            return Err(Error::new(
                Code::TooLarge,
                format!(
                    "{} has {} bytes; {} are read at once.",
                    row.path(),
                    row.size,
                    limits::FILE_WHOLE_BYTES
                ),
            )
            .hint("Read it as a stream."));
        }
        let mut bytes = BytesMut::with_capacity(row.size.unsigned_abs() as usize);
        for index in 0..row.chunks {
            bytes.extend_from_slice(&self.chunk(row, index)?);
        }
        Ok(bytes.freeze())
    }

    fn chunk(&self, row: &Row, index: i64) -> Result<Bytes> {
        let chunk = self.read(|_, sql| chunks::find(sql, row.id, index))?;
        chunk.ok_or_else(|| replaced(row))
    }

    /// The bytes of a file in this range, which must be valid. Each chunk is read on demand.
    fn bytes_of(&self, row: Row, range: Range<u64>) -> LocalBoxStream<'static, Result<Bytes>> {
        FileReader { thread: self.0.clone(), row, range, object: None }.into_stream()
    }

    /// The same, with content in the bucket already opened, so that an immediate failure is an error and not
    /// an interrupted response.
    pub(crate) async fn opened(
        &self,
        row: Row,
        range: Range<u64>,
    ) -> Result<LocalBoxStream<'static, Result<Bytes>>> {
        let mut reading = FileReader { thread: self.0.clone(), row, range, object: None };
        if reading.row.storage.is_away() {
            reading.open().await?;
        }
        Ok(reading.into_stream())
    }

    /// A file chunk by chunk.
    pub(crate) fn chunks_of(&self, row: Row) -> LocalBoxStream<'static, Result<FileChunk>> {
        let (size, total_chunks) = (row.size.unsigned_abs(), row.chunks.unsigned_abs());
        let chunks = stream::iter(0_u64..).zip(self.bytes_of(row, 0..size));
        let chunks = chunks.map(move |(index, data)| {
            Ok(FileChunk { data: data?, index, total_chunks, is_last: index + 1 == total_chunks })
        });
        Box::pin(chunks)
    }
}

/// A file that is being read, wherever its content is.
struct FileReader {
    thread: Thread,
    row: Row,
    /// The remaining range.
    range: Range<u64>,
    /// The content from the bucket, once opened.
    object: Option<Object>,
}

struct Object {
    stream: Body,
    /// Bytes that came after the previous chunk.
    left: Bytes,
}

impl FileReader {
    fn into_stream(self) -> LocalBoxStream<'static, Result<Bytes>> {
        Box::pin(stream::unfold(Some(self), |state| async move {
            let mut reading = state.filter(|reading| reading.range.start < reading.range.end)?;
            let chunk = reading.next().await;
            let next = chunk.is_ok().then_some(reading);
            Some((chunk, next))
        }))
    }

    /// The rest of the next chunk.
    async fn next(&mut self) -> Result<Bytes> {
        if self.object.is_none() && !self.row.storage.is_away() {
            let index = self.range.start / CHUNK;
            match self.thread.files().chunk(&self.row, index as i64) {
                Ok(chunk) => return self.part(index, &chunk),
                // It may have been moved to the bucket meanwhile.
                Err(error) => match self.thread.read(|_, sql| table::by_id(sql, self.row.id))? {
                    Some(row) if row.storage.is_away() => self.row = row,
                    _ => return Err(error),
                },
            }
        }
        if self.object.is_none() {
            self.open().await?;
        }
        self.next_of_object().await
    }

    fn part(&mut self, index: u64, chunk: &Bytes) -> Result<Bytes> {
        let start = index * CHUNK;
        let end = self.range.end.min(start + chunk.len() as u64);
        let part = ((self.range.start - start) as usize).min(chunk.len())
            ..((end.max(start) - start) as usize).min(chunk.len());
        if part.is_empty() {
            return Err(Error::internal(format!("chunk {index} of {} is too short", self.row.path())));
        }
        self.range.start = end;
        Ok(chunk.slice(part))
    }

    /// Opens the remaining range in the bucket.
    async fn open(&mut self) -> Result<()> {
        let files = self.thread.files();
        let bucket = files.bucket()?;
        let key = files.key(self.row.id)?;
        let stream = bucket.get(key.clone(), self.range.clone()).await.map_err(refused)?;
        let Some(stream) = stream else {
            let row = self.thread.read(|_, sql| table::by_id(sql, self.row.id))?;
            return Err(match row {
                Some(row) if row.kind == Kind::File => {
                    Error::internal(format!("the bucket has no object {key}, the content of {}", row.path()))
                }
                _ => replaced(&self.row),
            });
        };
        self.object = Some(Object { stream, left: Bytes::new() });
        Ok(())
    }

    /// A chunk of the same length as in the database, so that a reader cannot tell the storage.
    async fn next_of_object(&mut self) -> Result<Bytes> {
        let Some(object) = &mut self.object else { return Err(Error::internal("an object is not open")) };
        let end = self.range.end.min((self.range.start / CHUNK + 1) * CHUNK);
        let length = (end - self.range.start) as usize;
        let mut chunk = BytesMut::with_capacity(length);
        while chunk.len() < length {
            if object.left.is_empty() {
                object.left = match object.stream.next().await {
                    Some(piece) => piece.map_err(refused)?,
                    None => {
                        return Err(Error::internal(format!(
                            "the object of {} is too short",
                            self.row.path()
                        )));
                    }
                };
            }
            let more = object.left.len().min(length - chunk.len());
            chunk.extend_from_slice(&object.left.split_to(more));
        }
        self.range.start = end;
        Ok(chunk.freeze())
    }
}

fn replaced(row: &Row) -> Error {
    let message = format!("{} was replaced or removed while it was read.", row.path());
    Error::new(Code::Conflict, message).hint("Read it again from the start.")
}
