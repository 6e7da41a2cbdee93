//! Changes by a transition to content that memories ingest. They are noted where they happen, and processed
//! once at the end of the transition.

use crate::limits;
use crate::store::file_path::FilePath;

/// The changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ContentChanges {
    /// Whether a run has ended.
    pub(crate) run_ended: bool,
    /// Messages by their seqs.
    pub(crate) messages: Vec<(i64, MessageChange)>,
    pub(crate) files: Vec<FileChange>,
}

/// A change of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageChange {
    /// Its text has changed, or it is no longer silent.
    Edited,
    Deleted,
}

/// A change of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileChange {
    /// The file at this path has new content.
    Written(FilePath),
    /// The file at this path is gone.
    Removed(FilePath),
    /// Everything below this directory is gone.
    RemovedBelow(FilePath),
    /// A file, or a directory with its content, was moved.
    Moved { from: FilePath, to: FilePath },
    /// More changes than are noted one by one.
    Many,
}

impl ContentChanges {
    pub(crate) fn is_empty(&self) -> bool {
        !self.run_ended && self.messages.is_empty() && self.files.is_empty()
    }

    /// Notes a change of files. After [`limits::CHANGED_FILES`] of them, all files are checked instead.
    pub(crate) fn file(&mut self, change: FileChange) {
        let most = limits::CHANGED_FILES;
        if self.files.len() < most {
            self.files.push(change);
        } else if self.files.len() == most {
            self.files.push(FileChange::Many);
        }
    }
}
