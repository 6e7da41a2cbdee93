//! The work and data of threads: runs, waits, values, effects, files.

use bobbin_definitions::error::Code;

use crate::operation::{Operation, Scope, bytes, schema_of};
use crate::types::{Success, agents, budgets, files, logs, runs, values, waits};

pub(super) fn runs() -> Vec<Operation> {
    let new = Operation::new;
    vec![
        new("listRuns", Scope::Thread, "The thread's runs.").gives::<runs::RunPage>(200, "Newest first."),
        new("getRun", Scope::Thread, "What came of a run, or what it does now.")
            .gives::<runs::RunOutcome>(200, "With `trace=1` also what happened in it."),
        new("getSpans", Scope::Owner, "The spans of a run, as OTLP in JSON.")
            .gives::<agents::Spans>(200, "One whole trace."),
        new("getStepRequest", Scope::Admin, "What the model was sent that wrote a reply.")
            .gives::<runs::StepRequest>(200, "As it was kept, or as it follows from what is stored.")
            .fails(&[Code::Conflict]),
        new("getCost", Scope::Thread, "What requests to models have used, here and below.")
            .gives::<budgets::Cost>(200, "In USD and tokens."),
        new("getBudget", Scope::Thread, "What it may use and has used.")
            .gives::<budgets::ThreadBudget>(200, "Limits, what was spent, what is lent and what is left."),
        new("changeBudget", Scope::Owner, "Sets limits.")
            .takes::<budgets::BudgetChange>()
            .gives::<budgets::ThreadBudget>(200, "What holds now.")
            .fails(&[Code::Forbidden, Code::Conflict]),
    ]
}

pub(super) fn logs() -> Vec<Operation> {
    let new = Operation::new;
    vec![
        new("listLogs", Scope::Thread, "Attempts at models, calls and events.")
            .gives::<logs::LogPage>(200, "A page."),
        new("getLog", Scope::Thread, "An entry, with what is kept of its bodies.")
            .gives::<logs::LogEntry>(200, "The entry."),
    ]
}

pub(super) fn waits() -> Vec<Operation> {
    let new = Operation::new;
    vec![
        new("listWaits", Scope::Thread, "What the thread asks of people.")
            .gives::<waits::WaitPage>(200, "Newest first; those that are open unless `state=all`."),
        new("decideWaits", Scope::Thread, "Decides several, all or none.")
            .keyed()
            .takes::<waits::Decisions>()
            .gives::<waits::WaitsDecided>(200, "They are decided.")
            .fails(&[Code::Conflict, Code::Forbidden]),
        new("getWait", Scope::Thread, "One of them.").gives::<waits::OneWait>(200, "The wait."),
        new("decideWait", Scope::Thread, "Decides one.")
            .keyed()
            .takes::<waits::Decision>()
            .gives::<waits::WaitDecided>(200, "It is decided.")
            .fails(&[Code::Conflict, Code::Forbidden, Code::InvalidArgs]),
        new("forgetApprovals", Scope::Owner, "Approvals count for no later call any more.")
            .gives::<Success>(200, "They are forgotten."),
    ]
}

pub(super) fn values() -> Vec<Operation> {
    let new = Operation::new;
    vec![
        new("getValues", Scope::Thread, "A value, or a page of them.")
            .gives::<values::Values>(200, "With `key` that one."),
        new("setValue", Scope::Owner, "Sets, deletes or renames a value.")
            .takes::<values::NewValue>()
            .gives::<values::ValueSet>(200, "What was stored.")
            .fails(&[Code::PreconditionFailed, Code::TooLarge]),
        new("deleteValue", Scope::Owner, "Deletes a value.").gives_nothing(204, "There is none any more."),
        new("listEffects", Scope::Thread, "What the thread does later, and has done.")
            .gives::<values::EffectPage>(200, "Scheduled ones first."),
        new("scheduleEffect", Scope::Owner, "Schedules an effect.")
            .keyed()
            .takes::<values::NewEffect>()
            .gives::<values::EffectScheduled>(201, "It will run.")
            .fails(&[Code::Conflict, Code::TooLarge]),
        new("getEffect", Scope::Thread, "One of them.").gives::<values::OneEffect>(200, "The effect."),
        new("runEffect", Scope::Owner, "Runs it now, or again.")
            .gives::<values::EffectChanged>(200, "It is due."),
        new("cancelEffect", Scope::Owner, "Takes it back.")
            .gives::<values::EffectChanged>(200, "It will not run.")
            .fails(&[Code::Conflict]),
    ]
}

pub(super) fn files() -> Vec<Operation> {
    let new = Operation::new;
    const ANY: (&str, Option<crate::operation::Of>) = ("*/*", None);
    vec![
        new("listFiles", Scope::Thread, "The root, numbers about all files, or a search.")
            .gives::<files::Files>(200, "Depends on the query."),
        new("readFile", Scope::Thread, "A file's content; of a directory a page.")
            .answers(
                200,
                "The content; JSON with `stat=1` or of a directory.",
                vec![("application/json", Some(schema_of::<files::FileInfo>)), ANY],
            )
            .answers(206, "The range that was asked for.", vec![ANY])
            .gives_nothing(304, "It is still the same."),
        new("headFile", Scope::Thread, "The headers of a file's content.")
            .gives_nothing(200, "The headers.")
            .gives_nothing(304, "It is still the same."),
        new("writeFile", Scope::Owner, "Writes the body, of any type.")
            .body(false, vec![("application/octet-stream", Some(bytes)), ANY])
            .gives::<files::OneFile>(201, "It is new.")
            .gives::<files::OneFile>(200, "It replaces what was there.")
            .fails(&[Code::PreconditionFailed, Code::TooLarge, Code::Conflict]),
        new("postFile", Scope::Owner, "Writes what a JSON body says, or the body.")
            .body(false, vec![("application/json", Some(schema_of::<files::NewFile>)), ANY])
            .gives::<files::OneFile>(201, "It is new.")
            .gives::<files::OneFile>(200, "It replaces what was there.")
            .fails(&[Code::PreconditionFailed, Code::TooLarge, Code::Conflict]),
    ]
}

/// Moving and deleting files.
pub(super) fn file_changes() -> Vec<Operation> {
    let new = Operation::new;
    vec![
        new("moveFile", Scope::Owner, "Moves a file, or a directory with all its content.")
            .takes::<files::FileMove>()
            .gives::<files::OneFile>(200, "It is there now.")
            .fails(&[Code::Conflict, Code::PreconditionFailed]),
        new("deleteFile", Scope::Owner, "Deletes it.")
            .gives_nothing(204, "It is gone.")
            .fails(&[Code::Conflict, Code::PreconditionFailed]),
    ]
}

/// Uploads in chunks.
pub(super) fn uploads() -> Vec<Operation> {
    let new = Operation::new;
    vec![
        new("listUploads", Scope::Thread, "Uploads that are under way.")
            .gives::<files::UploadPage>(200, "Oldest first."),
        new("startUpload", Scope::Owner, "Begins an upload in chunks.")
            .takes::<files::NewUpload>()
            .gives::<files::Upload>(201, "How to go on."),
        new("getUpload", Scope::Thread, "What has arrived.").gives::<files::Upload>(200, "The upload."),
        new("putChunk", Scope::Owner, "A chunk; it may come again.")
            .body(true, vec![("application/octet-stream", Some(bytes))])
            .gives::<files::ChunkTaken>(200, "It has arrived."),
        new("completeUpload", Scope::Owner, "Makes a file of the chunks.")
            .gives::<files::OneFile>(200, "The file.")
            .fails(&[Code::Conflict]),
        new("deleteUpload", Scope::Owner, "Gives it up.").gives_nothing(204, "It is gone."),
    ]
}
