//! Memories of a thread, and those that threads share.

use bobbin_definitions::error::Code;
use bobbin_protocols::responses;

use crate::operation::{Operation, Scope};
use crate::types::memories;

/// The same requests below a thread and below `/api/memory`.
macro_rules! of_memory {
    ($suffix:literal) => {
        [
            Operation::new(concat!("getMemory", $suffix), Scope::Thread, "Returns facts about a memory.")
                .gives::<responses::memories::MemoryInfo>(200, "The memory.")
                .fails(&[Code::MemoryNotFound]),
            Operation::new(concat!("clearMemory", $suffix), Scope::Owner, "Deletes everything in a memory.")
                .gives_nothing(204, "The memory is empty."),
            Operation::new(
                concat!("listDocuments", $suffix),
                Scope::Thread,
                "Lists the documents of a memory.",
            )
            .gives::<responses::memories::DocumentPage>(200, "Newest first."),
            Operation::new(concat!("addDocument", $suffix), Scope::Owner, "Adds a document.")
                .says("A document with the same `key` is replaced, if the content differs.")
                .keyed()
                .takes::<memories::NewDocument>()
                .gives::<responses::memories::OneDocument>(202, "The document is stored and will be indexed.")
                .fails(&[Code::MemoryFull, Code::TooLarge]),
            Operation::new(
                concat!("getDocument", $suffix),
                Scope::Thread,
                "Returns a document and the state of its index.",
            )
            .gives::<responses::memories::OneDocument>(200, "The document."),
            Operation::new(concat!("deleteDocument", $suffix), Scope::Owner, "Deletes a document.")
                .gives_nothing(204, "Searches no longer find it."),
            Operation::new(concat!("searchMemory", $suffix), Scope::Thread, "Searches a memory.")
                .takes::<memories::MemoryQuery>()
                .gives::<responses::memories::MemoryFound>(200, "The best results."),
        ]
    };
}

pub(super) fn memories() -> Vec<Operation> {
    let shared =
        Operation::new("listSharedMemoryLogs", Scope::Owner, "Lists requests for vectors outside runs.")
            .gives::<responses::memories::MemoryLogs>(200, "Newest first.");
    let mut all = Vec::from(of_memory!(""));
    all.extend(of_memory!("Shared"));
    all.push(shared);
    all
}
