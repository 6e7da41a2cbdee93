//! Every request in the document: one list for each part.

mod of_chats;
mod of_memories;
mod of_openai;
mod of_server;
mod of_threads;
mod of_work;

use crate::operation::Operation;

/// The parts and their subjects.
pub(super) const TAGS: [(&str, &str); 10] = [
    ("Server", "The deployment: its agents, tokens, values and inbox."),
    ("Threads", "Conversations, and what each is made of."),
    ("Messages", "What was said, and what is to be said."),
    ("Runs", "What came of messages: outcomes, traces, costs, logs."),
    ("Waits", "What runs ask of people (docs/approvals.md)."),
    ("Values", "JSON under keys, and effects that run later."),
    ("Files", "A thread's file tree, and uploads in chunks."),
    ("Memories", "Documents that runs look things up in (docs/memory.md)."),
    ("Streams", "Frames, as they happen."),
    ("Chats", "What clients of other systems ask (docs/clients.md)."),
];

/// All operations, in the order of the document.
pub(super) fn all() -> Vec<Operation> {
    let parts = [
        ("Server", of_server::server()),
        ("Server", of_server::values()),
        ("Threads", of_threads::threads()),
        ("Threads", of_threads::of_thread()),
        ("Threads", of_threads::context()),
        ("Messages", of_threads::messages()),
        ("Runs", of_work::runs()),
        ("Runs", of_work::logs()),
        ("Waits", of_work::waits()),
        ("Values", of_work::values()),
        ("Files", of_work::files()),
        ("Files", of_work::file_changes()),
        ("Files", of_work::uploads()),
        ("Memories", of_memories::memories()),
        ("Streams", of_threads::streams()),
        ("Chats", of_chats::chats()),
        ("Chats", of_openai::openai()),
    ];
    parts
        .into_iter()
        .flat_map(|(tag, operations)| operations.into_iter().map(move |one| Operation { tag, ..one }))
        .collect()
}
