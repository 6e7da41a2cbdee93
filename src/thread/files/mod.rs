//! The files of a thread (spec §16): a tree of its own, in its own database.
//!
//! # Layout
//!
//! * `path`, `glob`, `conditions`: texts of requests, read. `record`: what others see.
//! * `table`: the rows. `write`, `read`, `tree`, `search`: what is done with them. `uploads`: content that comes in
//!   requests of its own. `spill`: large content that goes to the bucket.
//! * `attach`: files of messages. `received`: files of other threads. `serve`: the routes of the API. `state`: the methods of [`super::ThreadState`].

mod attach;
mod conditions;
mod glob;
mod path;
mod read;
mod received;
mod record;
mod search;
mod serve;
mod spill;
mod state;
mod table;
mod tree;
mod uploads;
mod write;

pub(super) use attach::{beginning, content, put, remove_if, size, stat};
pub(super) use received::{Foreign, Received};
pub use record::{FileChunk, FileOptions, FileRecord, FileStats, GrepMatch, GrepResult};
pub(super) use serve::options;
pub(super) use spill::Mover;
pub use spill::spilled_above;
pub(super) use state::FileDoor;

use crate::error::{Code, Error, Result};
use crate::limits;

/// Refuses one more file or directory beside so many.
fn no_room(count: u32) -> Result<()> {
    if count < limits::FILES {
        return Ok(());
    }
    Err(Error {
        field: Some("path".into()),
        ..Error::new(
            Code::TooLarge,
            format!("This thread holds {count} files and directories; the limit is {}.", limits::FILES),
        )
    }
    .hint("Remove one first."))
}
