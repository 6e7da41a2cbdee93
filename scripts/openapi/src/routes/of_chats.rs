//! Chats of the AI SDK (docs/clients.md): each route twice, with the agent in the path and in the query.

use bobbin_definitions::error::Code;

use crate::operation::{Operation, Scope};
use crate::types::{Object, chats};

const EVENTS: &str = "text/event-stream";

pub(super) fn chats() -> Vec<Operation> {
    let new = Operation::new;
    let posts = ["postChatOfAgent", "postChat"];
    let histories = ["getChatOfAgent", "getChat"];
    let streams = ["resumeChatOfAgent", "resumeChat"];
    let stops = ["stopChatOfAgent", "stopChat"];
    let mut all = Vec::new();
    all.extend(posts.map(|id| {
        new(id, Scope::Thread, "What a page of `useChat` sends.")
            .takes::<Object>()
            .answers(200, "The reply, as chunks of the AI SDK.", vec![(EVENTS, None)])
            .fails(&[Code::Conflict, Code::AgentNotFound, Code::TooLarge])
    }));
    all.extend(histories.map(|id| {
        new(id, Scope::Thread, "The messages of a chat, as the AI SDK has them.")
            .gives::<chats::Chat>(200, "A reply that is under way is left out.")
    }));
    all.extend(streams.map(|id| {
        new(id, Scope::Thread, "The reply that is under way, from its beginning.")
            .answers(200, "The reply, as chunks of the AI SDK.", vec![(EVENTS, None)])
            .gives_nothing(204, "None is under way.")
    }));
    all.extend(stops.map(|id| {
        new(id, Scope::Thread, "Stops what is under way.")
            .may_take::<Object>()
            .gives::<chats::Stopped>(200, "It is stopped.")
            .gives_nothing(204, "Nothing ran.")
    }));
    all.extend(ag_ui());
    all.extend(mcp());
    all
}

/// Routes for clients of AG-UI, which defines the bodies and events.
fn ag_ui() -> [Operation; 2] {
    const JSON: &str = "application/json";
    [
        Operation::new(
            "getAgUi",
            Scope::Thread,
            "A conversation of AG-UI; with `runId` that run, from its beginning, or behind the event that `Last-Event-ID` names.",
        )
        .answers(200, "The conversation, or the events of the run.", vec![(JSON, None), (EVENTS, None)])
        .fails(&[Code::AgentNotFound, Code::Conflict]),
        Operation::new(
            "runAgUi",
            Scope::Thread,
            "What a client of AG-UI sends for a run. With `Last-Event-ID` the events behind that one.",
        )
        .takes::<Object>()
        .answers(200, "The events of the run.", vec![(EVENTS, None)])
        .fails(&[Code::AgentNotFound, Code::UnsupportedParameter, Code::Conflict, Code::TooLarge]),
    ]
}

/// Routes for clients of MCP, which defines the messages.
fn mcp() -> Vec<Operation> {
    let metadata = ["getResourceMetadata", "getMcpMetadata"];
    let metadata = metadata.map(|id| {
        Operation::new(id, Scope::Anybody, "Who gives access tokens for MCP.")
            .gives::<Object>(200, "The metadata of a protected resource (RFC 9728).")
            .fails(&[Code::NotFound])
    });
    let post = Operation::new("postMcp", Scope::Owner, "A message of a client of MCP (docs/mcp.md).")
        .takes::<Object>()
        .answers(
            200,
            "The answer, or a stream that ends with it.",
            vec![("application/json", None), (EVENTS, None)],
        )
        .gives_nothing(202, "A notification was taken.")
        .fails(&[Code::Forbidden, Code::TooLarge]);
    // All errors have the format of JSON-RPC; `data` contains ours.
    let errors = [
        (400, "An error of JSON-RPC: the message is not as it must be."),
        (401, "One: it comes with no credentials, or wrong ones."),
        (403, "One: they do not allow it."),
        (404, "One: there is no such method."),
        (413, "One: it is too large."),
        (429, "One: there is too much to do."),
        (500, "One: something failed here."),
        (503, "One: a thread could not be reached."),
    ];
    let post = errors
        .into_iter()
        .fold(post, |post, (status, said)| post.answers(status, said, vec![("application/json", None)]));
    metadata.into_iter().chain([post]).collect()
}
