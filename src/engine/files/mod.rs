//! The files of a thread (spec §16): its own tree, in its own database. The rows are in `store/files`, the
//! routes in `api/files`, the methods for code in `sdk/files`.
//!
//! * `write`, `read`, `tree`, `search`: the operations. `glob`, `conditions`: parsers of patterns and
//!   headers.
//! * `uploads`: content sent in several requests. `bucket`: large content in the bucket.
//! * `attach`: files of messages. `staged`: files of other threads. `transfers`: contents in progress.

pub(crate) mod attach;
mod bucket;
pub(crate) mod conditions;
pub(super) mod glob;
mod read;
pub(crate) mod search;
pub(super) mod staged;
pub(super) mod transfers;
pub(crate) mod tree;
mod uploads;
pub(crate) mod write;

pub use crate::engine::files::bucket::spilled_above;
pub use crate::store::file_record::{FileChunk, FileOptions, FileRecord, FileStats, GrepMatch, GrepResult};

use crate::error::{Code, Error, Result};
use crate::limits;

/// Refuses another file or directory if `count` has reached the limit.
fn no_room(count: u32) -> Result<()> {
    if count < limits::FILES {
        return Ok(());
    }
    Err(Error::new(
        Code::TooLarge,
        format!("This thread holds {count} files and directories; the limit is {}.", limits::FILES),
    )
    .at("path")
    .hint("Remove one first."))
}
