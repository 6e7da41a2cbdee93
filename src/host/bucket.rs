//! The bucket for the contents of large files.

use std::ops::Range;

use futures::stream::LocalBoxStream;

use crate::error::Result;
use crate::host::Pending;
use crate::host::http::{Body, FetchError};

/// Objects by key.
pub trait Bucket {
    /// The size in bytes above which a file's content is stored here, in a deployment at least
    /// [`crate::limits::FILE_WHOLE_BYTES`] ([`crate::engine::spilled_above`]).
    fn above(&self) -> u64;

    /// Stores an object of this length, replacing an earlier one. It is atomic: if the content breaks off,
    /// nothing is stored.
    fn put(
        &self,
        key: String,
        length: u64,
        content: LocalBoxStream<'static, Result<bytes::Bytes>>,
    ) -> Pending<Result<(), FetchError>>;

    /// Reads a range, which must lie within the object; `None` if there is no such object. Dropping the
    /// stream cancels it.
    fn get(&self, key: String, range: Range<u64>) -> Pending<Result<Option<Body>, FetchError>>;

    /// Deletes at most [`crate::limits::DELETED_OBJECTS`] objects; missing ones are not an error.
    fn delete(&self, keys: Vec<String>) -> Pending<Result<(), FetchError>>;
}
