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
    ("Server", "The deployment: agents, tokens, values of variables, MCP servers and open waits."),
    ("Threads", "Conversations: create, list, change, copy, stop and delete them (docs/http.md)."),
    ("Messages", "Messages of threads: send, read, change and repeat them (docs/http.md)."),
    ("Runs", "Outcomes, traces, costs, budgets and logs (docs/runs.md)."),
    ("Waits", "Questions of runs to people, and decisions (docs/approvals.md)."),
    ("Values", "JSON values under keys (docs/files.md), and effects that run later (docs/effects.md)."),
    ("Files", "The file tree of a thread, and uploads in chunks (docs/files.md)."),
    ("Memories", "Documents that runs search (docs/memory.md)."),
    ("Streams", "Live frames of a thread or a run (docs/streams.md)."),
    ("Chats", "Protocols of other clients (docs/clients.md)."),
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
