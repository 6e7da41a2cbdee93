//! Threads, their messages and their streams.

use bobbin_definitions::error::Code;
use bobbin_protocols::responses;

use crate::operation::{Operation, Scope, schema_of};
use crate::types::{messages, threads};

pub(super) fn threads() -> Vec<Operation> {
    let new = Operation::new;
    vec![
        new("createThread", Scope::Owner, "Creates a thread.")
            .keyed()
            .takes::<threads::NewThread>()
            .gives::<responses::threads::ThreadCreated>(200, "The thread exists.")
            .gives::<responses::threads::ThreadCreated>(201, "The first thread of its key.")
            .fails(&[
                Code::KeyConflict,
                Code::AgentNotFound,
                Code::MissingVariables,
                Code::EncryptionUnavailable,
            ]),
        new("listThreads", Scope::Owner, "Lists the threads of an owner.")
            .says("The list is a copy that may lag behind the threads for a moment.")
            .gives::<responses::threads::ThreadPage>(200, "A page."),
        new("listOwners", Scope::Admin, "Lists the owners of threads.")
            .gives::<responses::threads::OwnerPage>(200, "A page."),
        new("getThread", Scope::Thread, "A thread.")
            .gives::<responses::threads::Thread>(200, "The thread, its agent and counts.")
            .fails(&[Code::ThreadNotFound]),
        new(
            "changeThread",
            Scope::Owner,
            "Changes the tags, properties, values of variables, or agent of a thread.",
        )
        .takes::<threads::ThreadChange>()
        .gives::<responses::threads::ThreadChanged>(200, "The state after the change.")
        .fails(&[Code::Conflict, Code::AgentNotFound, Code::MissingVariables]),
        new("forkThread", Scope::Owner, "Copies a thread up to a message.")
            .keyed()
            .takes::<threads::NewFork>()
            .gives::<responses::threads::Forked>(200, "The existing copy.")
            .gives::<responses::threads::Forked>(201, "A new copy.")
            .fails(&[Code::MessageNotFound, Code::Conflict, Code::KeyConflict, Code::IdempotencyMismatch]),
        new("deleteThread", Scope::Owner, "Deletes a thread with its subagents and theirs.")
            .gives::<responses::threads::ThreadDeleted>(200, "Everything is deleted.")
            .fails(&[Code::Overloaded]),
    ]
}

/// Actions on a thread, and its parts.
pub(super) fn of_thread() -> Vec<Operation> {
    let new = Operation::new;
    vec![
        new("stopThread", Scope::Thread, "Ends the run of a thread at once.")
            .may_take::<threads::Stop>()
            .gives::<responses::threads::Stopped>(200, "The run is stopped, or the condition did not apply."),
        new("continueThread", Scope::Thread, "Starts a run without a new message.")
            .may_take::<threads::Continue>()
            .gives::<responses::threads::Continued>(202, "A run is active."),
        new("terminateThread", Scope::Owner, "Ends a thread for good. It stays readable.")
            .gives::<responses::threads::Terminated>(200, "The thread refuses all further work."),
        new("listSubagents", Scope::Thread, "Lists the subagents that the thread has created.")
            .gives::<responses::threads::SubagentPage>(200, "Newest first."),
        new("getMissingVariables", Scope::Thread, "Returns the variables that a subagent waits for.")
            .gives::<responses::variables::MissingVariables>(200, "The names of the variables."),
        new("giveVariables", Scope::Owner, "Sets the missing values, and creates the subagent.")
            .keyed()
            .takes::<threads::GivenVariables>()
            .gives::<responses::variables::VariablesTaken>(200, "The subagent is created.")
            .fails(&[Code::MissingVariables, Code::Conflict]),
    ]
}

/// The context of its next request, and its health.
pub(super) fn context() -> Vec<Operation> {
    let new = Operation::new;
    vec![
        new("getContext", Scope::Thread, "Returns the tokens of the next request to the model, by part.")
            .gives::<responses::context::Context>(200, "Tokens of each part."),
        new("summarize", Scope::Owner, "Requests a summary now.")
            .gives::<responses::context::SummaryAsked>(
                202,
                "Bobbin writes one if there is anything to summarise.",
            )
            .fails(&[Code::Conflict]),
        new("dropSummary", Scope::Owner, "Deletes the summary, so that requests contain its messages again.")
            .gives_nothing(204, "There is none now."),
        new("getDiagnostics", Scope::Thread, "Returns the first facts for an operator.")
            .gives::<responses::diagnostics::ThreadDiagnostics>(200, "The current state."),
    ]
}

pub(super) fn messages() -> Vec<Operation> {
    let new = Operation::new;
    vec![
        new(
            "sendMessage",
            Scope::Thread,
            "Sends a message. A message of a user starts or joins a run.",
        )
        .says("With `wait=true` the response comes when the run has ended or waits for people.")
        .keyed()
        .takes::<messages::NewMessage>()
        .gives::<responses::messages::Queued>(202, "The message is stored.")
        .gives::<responses::runs::RunOutcome>(200, "With `wait=true`: the outcome of the run.")
        .fails(&[Code::QueueFull, Code::TooLarge, Code::Terminated, Code::IdempotencyMismatch]),
        new(
            "listMessages",
            Scope::Thread,
            "Lists messages in the order of the conversation.",
        )
        .gives::<responses::messages::MessagePage>(200, "A page, from the newest end unless `order` is `asc`."),
        new("getMessage", Scope::Thread, "A message.")
            .gives::<responses::messages::Message>(200, "The message.")
            .fails(&[Code::MessageNotFound]),
        new(
            "changeMessage",
            Scope::Owner,
            "Changes the text, the metadata or `silent` of a message.",
        )
        .keyed()
        .takes::<messages::MessageChange>()
        .gives::<responses::messages::MessageChanged>(200, "Models read the new text from now on.")
        .gives::<responses::messages::MessageChanged>(202, "With `run=true`: a run answers the message.")
        .fails(&[Code::MessageNotFound, Code::Conflict, Code::IdempotencyMismatch]),
        new(
            "regenerateMessage",
            Scope::Owner,
            "Deletes everything after the last message of a client at or before this one, and answers that message again.",
        )
        .keyed()
        .gives::<responses::messages::Regenerated>(202, "A run answers the message.")
        .fails(&[Code::MessageNotFound, Code::Conflict, Code::IdempotencyMismatch]),
        new(
            "deleteMessage",
            Scope::Owner,
            "Deletes a message, and with a reply the results of its calls.",
        )
        .gives::<responses::Success>(200, "Deleted.")
        .fails(&[Code::MessageNotFound, Code::Conflict]),
    ]
}

pub(super) fn streams() -> Vec<Operation> {
    let new = Operation::new;
    vec![
        new(
            "streamEvents",
            Scope::Thread,
            "Streams frames as server-sent events.",
        )
        .says(
            "The data of each event is a `Frame`. Resume with the header `Last-Event-ID`. With `run` or `after` the response is the feed of one run, and ends with it.",
        )
        .answers(200, "The stream.", vec![("text/event-stream", Some(schema_of::<responses::frames::Frame>))])
        .gives_nothing(204, "The client has already received the whole feed."),
        new("openSocket", Scope::Thread, "Streams frames on a WebSocket.")
            .says("Each text is a `Frame`, with its `id` if it has one. The server answers `ping` with `pong`.")
            .gives_nothing(101, "The socket is open."),
    ]
}
