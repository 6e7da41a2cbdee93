//! The work and data of threads: waits, values, effects, files.

use bobbin_definitions::error::Code;
use bobbin_protocols::responses;

use crate::operation::{Operation, Scope, bytes, schema_of};
use crate::types::{budgets, files, values, waits};

pub(super) fn runs() -> Vec<Operation> {
    let new = Operation::new;
    vec![
        new("listRuns", Scope::Thread, "Lists the runs of a thread.")
            .gives::<responses::runs::RunPage>(200, "Newest first."),
        new("getRun", Scope::Thread, "Returns the outcome of a run, or its current state.")
            .gives::<responses::runs::RunOutcome>(200, "The outcome, with `trace=1` also the trace."),
        new("getSpans", Scope::Owner, "Returns the spans of a run, as OTLP in JSON.")
            .gives::<responses::runs::Spans>(200, "One whole trace."),
        new("getStepRequest", Scope::Admin, "Returns the request that led to a reply.")
            .gives::<responses::runs::StepRequest>(200, "The stored or rebuilt request.")
            .fails(&[Code::Conflict]),
        new(
            "getCost",
            Scope::Thread,
            "Returns the usage of requests to models, in this thread and its subagents.",
        )
        .gives::<responses::budgets::Cost>(200, "In USD and tokens."),
        new("getBudget", Scope::Thread, "Returns the limits and the usage of a thread.")
            .gives::<responses::budgets::ThreadBudget>(
            200,
            "The limits, and the spent, allocated and remaining amounts.",
        ),
        new("changeBudget", Scope::Owner, "Sets the limits of a thread or its run.")
            .takes::<budgets::BudgetChange>()
            .gives::<responses::budgets::ThreadBudget>(200, "The limits after the change.")
            .fails(&[Code::Forbidden, Code::Conflict]),
    ]
}

pub(super) fn logs() -> Vec<Operation> {
    let new = Operation::new;
    vec![
        new("listLogs", Scope::Thread, "Lists log entries: requests to models, calls and events.")
            .gives::<responses::logs::LogPage>(200, "A page."),
        new("getLog", Scope::Thread, "Returns a log entry with its stored bodies.")
            .gives::<responses::logs::LogEntry>(200, "The entry."),
    ]
}

pub(super) fn waits() -> Vec<Operation> {
    let new = Operation::new;
    vec![
        new("listWaits", Scope::Thread, "Lists the waits of a thread.")
            .gives::<responses::waits::WaitPage>(200, "Newest first. Only open waits unless `state=all`."),
        new("decideWaits", Scope::Thread, "Decides several waits, all or none.")
            .keyed()
            .takes::<waits::Decisions>()
            .gives::<responses::waits::WaitsDecided>(200, "All of them are decided.")
            .fails(&[Code::Conflict, Code::Forbidden]),
        new("getWait", Scope::Thread, "One of them.").gives::<responses::waits::OneWait>(200, "The wait."),
        new("decideWait", Scope::Thread, "Decides a wait.")
            .keyed()
            .takes::<waits::Decision>()
            .gives::<responses::waits::WaitDecided>(200, "The wait is decided.")
            .fails(&[Code::Conflict, Code::Forbidden, Code::InvalidArgs]),
        new("forgetApprovals", Scope::Owner, "Forgets the remembered approvals of a thread.")
            .gives::<responses::Success>(200, "The next calls need approval again."),
    ]
}

pub(super) fn values() -> Vec<Operation> {
    let new = Operation::new;
    vec![
        new("getValues", Scope::Thread, "Returns a value, or a page of values.")
            .gives::<responses::values::Values>(200, "With `key` that value, otherwise a page."),
        new("setValue", Scope::Owner, "Sets, deletes or renames a value.")
            .takes::<values::NewValue>()
            .gives::<responses::values::ValueSet>(200, "The stored value.")
            .fails(&[Code::PreconditionFailed, Code::TooLarge]),
        new("deleteValue", Scope::Owner, "Deletes a value.").gives_nothing(204, "There is none now."),
        new("listEffects", Scope::Thread, "Lists the effects of a thread.")
            .gives::<responses::values::EffectPage>(200, "Scheduled effects first."),
        new("scheduleEffect", Scope::Owner, "Schedules an effect.")
            .keyed()
            .takes::<values::NewEffect>()
            .gives::<responses::values::OneEffect>(201, "The effect is scheduled.")
            .fails(&[Code::Conflict, Code::TooLarge]),
        new("getEffect", Scope::Thread, "One of them.")
            .gives::<responses::values::OneEffect>(200, "The effect."),
        new("runEffect", Scope::Owner, "Runs an effect now, or again.")
            .gives::<responses::values::EffectChanged>(200, "The effect is due."),
        new("cancelEffect", Scope::Owner, "Cancels an effect.")
            .gives::<responses::values::EffectChanged>(200, "The effect is cancelled.")
            .fails(&[Code::Conflict]),
    ]
}

pub(super) fn files() -> Vec<Operation> {
    let new = Operation::new;
    const ANY: (&str, Option<crate::operation::Of>) = ("*/*", None);
    vec![
        new(
            "listFiles",
            Scope::Thread,
            "Returns the root directory, counts of all files, or results of a search.",
        )
        .gives::<responses::files::Files>(200, "Depends on the query."),
        new(
            "readFile",
            Scope::Thread,
            "Returns the content of a file, or a page of a directory.",
        )
        .answers(
            200,
            "The content. With `stat=1`, and for a directory, JSON.",
            vec![("application/json", Some(schema_of::<responses::files::FileInfo>)), ANY],
        )
        .answers(206, "The requested range.", vec![ANY])
        .gives_nothing(304, "The file has not changed."),
        new(
            "headFile",
            Scope::Thread,
            "Returns the headers of a file's content.",
        )
        .gives_nothing(200, "The headers.")
        .gives_nothing(304, "The file has not changed."),
        new(
            "writeFile",
            Scope::Owner,
            "Writes a file. The body is its content, of any type.",
        )
        .body(false, vec![("application/octet-stream", Some(bytes)), ANY])
        .gives::<responses::files::OneFile>(201, "The file is created.")
        .gives::<responses::files::OneFile>(200, "The file is replaced.")
        .fails(&[Code::PreconditionFailed, Code::TooLarge, Code::Conflict]),
        new(
            "postFile",
            Scope::Owner,
            "Writes a file or creates a directory as a JSON body describes it. Any other body is the content.",
        )
        .body(false, vec![("application/json", Some(schema_of::<files::NewFile>)), ANY])
        .gives::<responses::files::OneFile>(201, "The file is created.")
        .gives::<responses::files::OneFile>(200, "The file is replaced.")
        .fails(&[Code::PreconditionFailed, Code::TooLarge, Code::Conflict]),
    ]
}

/// Moving and deleting files.
pub(super) fn file_changes() -> Vec<Operation> {
    let new = Operation::new;
    vec![
        new("moveFile", Scope::Owner, "Moves a file, or a directory with all its content.")
            .takes::<files::FileMove>()
            .gives::<responses::files::OneFile>(200, "The file at its new path.")
            .fails(&[Code::Conflict, Code::PreconditionFailed]),
        new("deleteFile", Scope::Owner, "Deletes a file or a directory.")
            .gives_nothing(204, "Deleted.")
            .fails(&[Code::Conflict, Code::PreconditionFailed]),
    ]
}

/// Uploads in chunks.
pub(super) fn uploads() -> Vec<Operation> {
    let new = Operation::new;
    vec![
        new("listUploads", Scope::Thread, "Lists the uploads in progress.")
            .gives::<responses::files::UploadPage>(200, "Oldest first."),
        new("startUpload", Scope::Owner, "Begins an upload in chunks.")
            .takes::<files::NewUpload>()
            .gives::<responses::files::Upload>(201, "The upload."),
        new("getUpload", Scope::Thread, "Returns an upload and its received chunks.")
            .gives::<responses::files::UploadState>(200, "The upload."),
        new("putChunk", Scope::Owner, "Stores a chunk. You may send it again.")
            .body(true, vec![("application/octet-stream", Some(bytes))])
            .gives::<responses::files::ChunkTaken>(200, "The chunk is stored."),
        new("completeUpload", Scope::Owner, "Completes an upload: its chunks become a file.")
            .gives::<responses::files::OneFile>(200, "The file.")
            .fails(&[Code::Conflict]),
        new("deleteUpload", Scope::Owner, "Cancels an upload.").gives_nothing(204, "Deleted."),
    ]
}
