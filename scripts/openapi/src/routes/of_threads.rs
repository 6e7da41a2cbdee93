//! Threads, their messages and their streams.

use bobbin_definitions::error::Code;

use crate::operation::{Operation, Scope, schema_of};
use crate::types::{Success, frames, messages, runs, threads};

pub(super) fn threads() -> Vec<Operation> {
    let new = Operation::new;
    vec![
        new("createThread", Scope::Owner, "A new thread.")
            .keyed()
            .takes::<threads::NewThread>()
            .gives::<threads::ThreadCreated>(200, "It is there.")
            .gives::<threads::ThreadCreated>(201, "The first with its key.")
            .fails(&[
                Code::KeyConflict,
                Code::AgentNotFound,
                Code::MissingVariables,
                Code::EncryptionUnavailable,
            ]),
        new("listThreads", Scope::Owner, "Threads of an owner.")
            .says("The list is a copy that may lag a moment behind the threads.")
            .gives::<threads::ThreadPage>(200, "A page."),
        new("listOwners", Scope::Admin, "Who has threads.").gives::<threads::OwnerPage>(200, "A page."),
        new("getThread", Scope::Thread, "A thread.")
            .gives::<threads::Thread>(200, "The thread, its agent, and numbers.")
            .fails(&[Code::ThreadNotFound]),
        new("changeThread", Scope::Owner, "Changes tags, properties, values of variables, or the agent.")
            .takes::<threads::ThreadChange>()
            .gives::<threads::ThreadChanged>(200, "What it is now.")
            .fails(&[Code::Conflict, Code::AgentNotFound, Code::MissingVariables]),
        new("forkThread", Scope::Owner, "Makes a copy of it, up to a message.")
            .keyed()
            .takes::<threads::NewFork>()
            .gives::<threads::Forked>(200, "The copy that is there already.")
            .gives::<threads::Forked>(201, "A new copy.")
            .fails(&[Code::MessageNotFound, Code::Conflict, Code::KeyConflict, Code::IdempotencyMismatch]),
        new("deleteThread", Scope::Owner, "Deletes it, with its subagents and theirs.")
            .gives::<threads::ThreadDeleted>(200, "Everything is gone.")
            .fails(&[Code::Overloaded]),
    ]
}

/// Actions on a thread, and its parts.
pub(super) fn of_thread() -> Vec<Operation> {
    let new = Operation::new;
    vec![
        new("stopThread", Scope::Thread, "Ends the run at once.")
            .may_take::<threads::Stop>()
            .gives::<threads::Stopped>(200, "Nothing runs any more."),
        new("continueThread", Scope::Thread, "Starts a run without a new message.")
            .may_take::<threads::Continue>()
            .gives::<threads::Continued>(202, "It runs, or did already."),
        new("terminateThread", Scope::Owner, "Ends it for good; it stays readable.")
            .gives::<threads::Terminated>(200, "It refuses all further work."),
        new("listSubagents", Scope::Thread, "The subagents that it has created.")
            .gives::<threads::SubagentPage>(200, "Newest first."),
        new("getMissingVariables", Scope::Thread, "What a subagent waits for.")
            .gives::<threads::MissingVariables>(200, "Names of variables."),
        new("giveVariables", Scope::Owner, "Gives it, and starts the subagent.")
            .keyed()
            .takes::<threads::GivenVariables>()
            .gives::<threads::VariablesTaken>(200, "The subagent is there.")
            .fails(&[Code::MissingVariables, Code::Conflict]),
    ]
}

/// The context of its next request, and its health.
pub(super) fn context() -> Vec<Operation> {
    let new = Operation::new;
    vec![
        new("getContext", Scope::Thread, "What the next request to a model would hold, in tokens.")
            .gives::<threads::Context>(200, "Part by part."),
        new("summarize", Scope::Owner, "Asks for a summary now.")
            .gives::<threads::SummaryAsked>(202, "One is made, if there is something to summarise.")
            .fails(&[Code::Conflict]),
        new("dropSummary", Scope::Owner, "Messages take its place again.")
            .gives_nothing(204, "There is none any more."),
        new("getDiagnostics", Scope::Thread, "What an operator wants to know first.")
            .gives::<crate::types::agents::ThreadDiagnostics>(200, "As it is now."),
    ]
}

pub(super) fn messages() -> Vec<Operation> {
    let new = Operation::new;
    vec![
        new("sendMessage", Scope::Thread, "Sends a message; one of a user starts or joins a run.")
            .says("With `wait=true` the answer comes when the run has ended or waits for people.")
            .keyed()
            .takes::<messages::NewMessage>()
            .gives::<messages::Queued>(202, "It is stored.")
            .gives::<runs::RunOutcome>(200, "With `wait=true`: what came of the run.")
            .fails(&[Code::QueueFull, Code::TooLarge, Code::Terminated, Code::IdempotencyMismatch]),
        new("listMessages", Scope::Thread, "Messages, in the order of the conversation.")
            .gives::<messages::MessagePage>(200, "A page, from the newest end unless `order` is `asc`."),
        new("getMessage", Scope::Thread, "A message.")
            .gives::<messages::Message>(200, "The message.")
            .fails(&[Code::MessageNotFound]),
        new("changeMessage", Scope::Owner, "Changes its text, metadata, or whether it is silent.")
            .keyed()
            .takes::<messages::MessageChange>()
            .gives::<messages::MessageChanged>(200, "From now on models read the new text.")
            .gives::<messages::MessageChanged>(202, "With `run=true`: a run answers it.")
            .fails(&[Code::MessageNotFound, Code::Conflict, Code::IdempotencyMismatch]),
        new(
            "regenerateMessage",
            Scope::Owner,
            "Drops what follows what was said at or before this message, and has it answered anew.",
        )
        .keyed()
        .gives::<messages::Regenerated>(202, "A run answers it.")
        .fails(&[Code::MessageNotFound, Code::Conflict, Code::IdempotencyMismatch]),
        new("deleteMessage", Scope::Owner, "Deletes it; a reply with the results of its calls.")
            .gives::<Success>(200, "It is gone.")
            .fails(&[Code::MessageNotFound, Code::Conflict]),
    ]
}

pub(super) fn streams() -> Vec<Operation> {
    let new = Operation::new;
    vec![
        new(
            "streamEvents",
            Scope::Thread,
            "Frames as server-sent events.",
        )
        .says(
            "Each event's data is a `Frame`. Resume with the header `Last-Event-ID`. With `run` or `after` it is the feed of one run, \
             which ends with it.",
        )
        .answers(200, "The stream.", vec![("text/event-stream", Some(schema_of::<frames::Frame>))])
        .gives_nothing(204, "The run's feed has been read to its end."),
        new("openSocket", Scope::Thread, "Frames on a WebSocket.")
            .says("Each text is a `Frame`, with its `id` if it has one; `ping` is answered with `pong`.")
            .gives_nothing(101, "The socket is open."),
    ]
}
