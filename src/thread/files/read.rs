//! Reading content. A reader never sees a mixture: what is under an id does not change, and when it is replaced in the
//! middle the read breaks off.

use std::ops::Range;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::stream::{self, LocalBoxStream};

use super::path::FilePath;
use super::record::FileChunk;
use super::table::{self, Kind, Row};
use super::tree;
use crate::error::{Code, Error, Result};
use crate::limits;
use crate::thread::Thread;
use crate::thread::host::Host;

/// Bytes of a chunk.
const CHUNK: u64 = limits::FILE_CHUNK_BYTES as u64;

impl<H: Host> Thread<H> {
    /// The row of a file; `None` when there is nothing.
    ///
    /// # Errors
    /// `conflict` for a directory.
    pub(super) fn file(&self, path: &FilePath) -> Result<Option<Row>> {
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
    pub(super) fn whole(&self, row: &Row) -> Result<Bytes> {
        if row.size.unsigned_abs() > limits::FILE_WHOLE_BYTES as u64 {
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
        let chunk = self.read(|_, sql| table::chunk(sql, row.id, index))?;
        chunk.ok_or_else(|| {
            let message = format!("{} was replaced or removed while it was read.", row.path());
            Error::new(Code::Conflict, message).hint("Read it again from the start.")
        })
    }

    /// The bytes of a file in this range, which it has: chunk by chunk, each read when it is asked for.
    pub(super) fn bytes_of(
        self: &Rc<Self>,
        row: Row,
        range: Range<u64>,
    ) -> LocalBoxStream<'static, Result<Bytes>> {
        let from = Some((self.clone(), row, range));
        let chunks = stream::unfold(from, |state| async move {
            let (thread, row, range) = state.filter(|(_, _, range)| range.start < range.end)?;
            let index = range.start / CHUNK;
            let start = index * CHUNK;
            let chunk = match thread.chunk(&row, index as i64) {
                Ok(chunk) => chunk,
                Err(error) => return Some((Err(error), None)),
            };
            let end = range.end.min(start + chunk.len() as u64);
            let part =
                ((range.start - start) as usize).min(chunk.len())..((end - start) as usize).min(chunk.len());
            if part.is_empty() {
                return Some((
                    Err(Error::internal(format!("chunk {index} of {} is too short", row.path()))),
                    None,
                ));
            }
            Some((Ok(chunk.slice(part)), Some((thread, row, end..range.end))))
        });
        Box::pin(chunks)
    }

    /// A file chunk by chunk.
    pub(super) fn chunks_of(self: &Rc<Self>, row: Row) -> LocalBoxStream<'static, Result<FileChunk>> {
        let (size, total_chunks) = (row.size.unsigned_abs(), row.chunks.unsigned_abs());
        let chunks = stream::iter(0_u64..).zip(self.bytes_of(row, 0..size));
        let chunks = chunks.map(move |(index, data)| {
            Ok(FileChunk { data: data?, index, total_chunks, is_last: index + 1 == total_chunks })
        });
        Box::pin(chunks)
    }
}
