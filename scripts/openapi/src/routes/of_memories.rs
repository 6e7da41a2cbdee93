//! Memories of a thread, and those that threads share.

use bobbin_definitions::error::Code;

use crate::operation::{Operation, Scope};
use crate::types::memories;

/// The same requests below a thread and below `/api/memory`.
macro_rules! of_memory {
    ($suffix:literal) => {
        [
            Operation::new(concat!("getMemory", $suffix), Scope::Thread, "A memory, in numbers.")
                .gives::<memories::MemoryInfo>(200, "The memory.")
                .fails(&[Code::MemoryNotFound]),
            Operation::new(concat!("clearMemory", $suffix), Scope::Owner, "Everything in it goes.")
                .gives_nothing(204, "It is empty."),
            Operation::new(concat!("listDocuments", $suffix), Scope::Thread, "Its documents.")
                .gives::<memories::DocumentPage>(200, "Newest first."),
            Operation::new(concat!("addDocument", $suffix), Scope::Owner, "Takes a document in.")
                .says("With the `key` of one that is there it replaces that, if the content differs.")
                .keyed()
                .takes::<memories::NewDocument>()
                .gives::<memories::OneDocument>(202, "It will be indexed.")
                .fails(&[Code::MemoryFull, Code::TooLarge]),
            Operation::new(
                concat!("getDocument", $suffix),
                Scope::Thread,
                "A document, and how far its index is.",
            )
            .gives::<memories::OneDocument>(200, "The document."),
            Operation::new(concat!("deleteDocument", $suffix), Scope::Owner, "Takes a document out.")
                .gives_nothing(204, "It is found no more."),
            Operation::new(concat!("searchMemory", $suffix), Scope::Thread, "Looks something up.")
                .takes::<memories::MemoryQuery>()
                .gives::<memories::MemoryFound>(200, "The best places."),
        ]
    };
}

pub(super) fn memories() -> Vec<Operation> {
    let shared =
        Operation::new("listSharedMemoryLogs", Scope::Owner, "Requests for vectors that no run has made.")
            .gives::<memories::MemoryLogs>(200, "Newest first.");
    let mut all = Vec::from(of_memory!(""));
    all.extend(of_memory!("Shared"));
    all.push(shared);
    all
}
