//! The bucket that the content of large files lives in.

use std::ops::Range;

use futures::stream::LocalBoxStream;

use crate::error::Result;
use crate::host::Pending;
use crate::host::http::{Body, FetchError};

/// Objects by key.
pub trait Bucket {
    /// The size in bytes above which a file's content lives here, at least [`crate::limits::FILE_WHOLE_BYTES`] in a
    /// deployment ([`crate::engine::spilled_above`]).
    fn above(&self) -> u64;

    /// Stores an object of exactly so many bytes, in place of an earlier one. It is there as a whole or not at all: when
    /// the content breaks off there is none of it.
    fn put(
        &self,
        key: String,
        length: u64,
        content: LocalBoxStream<'static, Result<bytes::Bytes>>,
    ) -> Pending<Result<(), FetchError>>;

    /// Bytes of an object, which has them; `None` when there is no such object. Dropping the stream cancels the rest.
    fn get(&self, key: String, range: Range<u64>) -> Pending<Result<Option<Body>, FetchError>>;

    /// Deletes objects, at most [`crate::limits::DELETED_OBJECTS`]; one that is not there is deleted already.
    fn delete(&self, keys: Vec<String>) -> Pending<Result<(), FetchError>>;
}
