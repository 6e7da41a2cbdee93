//! What a transition changes of what memories take in by themselves: it is noted where it happens and looked at once, at the
//! transition's end.

use crate::limits;
use crate::store::file_path::FilePath;

/// What has changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Changed {
    /// Whether a run has ended.
    pub(crate) run_ended: bool,
    /// Messages by their seqs.
    pub(crate) messages: Vec<(i64, MessageChange)>,
    pub(crate) files: Vec<FileChange>,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageChange {
    /// It says something else, or is shown where it was silent.
    Edited,
    Deleted,
}

/// What became of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileChange {
    /// The file at this path has a content.
    Written(FilePath),
    /// There is no file at this path any more.
    Removed(FilePath),
    /// Nothing is below this directory any more.
    RemovedBelow(FilePath),
    /// A file, or a directory with all that is in it, has another path.
    Moved { from: FilePath, to: FilePath },
    /// More than is told one by one.
    Many,
}

impl Changed {
    pub(crate) fn is_empty(&self) -> bool {
        !self.run_ended && self.messages.is_empty() && self.files.is_empty()
    }

    /// Notes what became of files. Very many of them are looked through all together.
    pub(crate) fn file(&mut self, change: FileChange) {
        let most = limits::CHANGED_FILES;
        if self.files.len() < most {
            self.files.push(change);
        } else if self.files.len() == most {
            self.files.push(FileChange::Many);
        }
    }
}
