//! Chats of the AI SDK (docs/clients.md): each route twice, with the agent in the path and in the query.

use bobbin_definitions::error::Code;
use bobbin_protocols::responses;

use crate::operation::{Operation, Scope};
use crate::types::Object;

const EVENTS: &str = "text/event-stream";

pub(super) fn chats() -> Vec<Operation> {
    let new = Operation::new;
    let posts = ["postChatOfAgent", "postChat"];
    let histories = ["getChatOfAgent", "getChat"];
    let streams = ["resumeChatOfAgent", "resumeChat"];
    let stops = ["stopChatOfAgent", "stopChat"];
    let mut all = Vec::new();
    all.extend(posts.map(|id| {
        new(id, Scope::Thread, "Receives a message of a page with `useChat`.")
            .takes::<Object>()
            .answers(200, "The reply as chunks of the AI SDK.", vec![(EVENTS, None)])
            .fails(&[Code::Conflict, Code::AgentNotFound, Code::TooLarge])
    }));
    all.extend(histories.map(|id| {
        new(id, Scope::Thread, "Returns the messages of a chat in the form of the AI SDK.")
            .gives::<responses::chats::Chat>(200, "The messages without an unfinished reply.")
    }));
    all.extend(streams.map(|id| {
        new(id, Scope::Thread, "Streams the unfinished reply from its beginning.")
            .answers(200, "The reply as chunks of the AI SDK.", vec![(EVENTS, None)])
            .gives_nothing(204, "No reply is in progress.")
    }));
    all.extend(stops.map(|id| {
        new(id, Scope::Thread, "Stops the run of a chat.")
            .may_take::<Object>()
            .gives::<responses::chats::ChatStopped>(200, "The run is stopped.")
            .gives_nothing(204, "No run was active.")
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
            "Returns a conversation of AG-UI, or with `runId` the events of that run. `Last-Event-ID` continues after an event.",
        )
        .answers(200, "The conversation, or the events of the run.", vec![(JSON, None), (EVENTS, None)])
        .fails(&[Code::AgentNotFound, Code::Conflict]),
        Operation::new(
            "runAgUi",
            Scope::Thread,
            "Starts a run for a client of AG-UI. `Last-Event-ID` continues after an event.",
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
        Operation::new(id, Scope::Anybody, "Names the issuer of access tokens for MCP.")
            .gives::<Object>(200, "The metadata of a protected resource (RFC 9728).")
            .fails(&[Code::NotFound])
    });
    let post =
        Operation::new("postMcp", Scope::Owner, "Receives a message of an MCP client (docs/mcp-server.md).")
            .takes::<Object>()
            .answers(
                200,
                "The response, or a stream that ends with it.",
                vec![("application/json", None), (EVENTS, None)],
            )
            .gives_nothing(202, "The notification is accepted.")
            .fails(&[Code::Forbidden, Code::TooLarge]);
    // All errors have the format of JSON-RPC; `data` contains ours.
    let errors = [
        (400, "A JSON-RPC error: the message is invalid."),
        (401, "A JSON-RPC error: the credentials are missing or wrong."),
        (403, "A JSON-RPC error: the credentials do not allow the request."),
        (404, "A JSON-RPC error: the method is unknown."),
        (413, "A JSON-RPC error: the message is too large."),
        (429, "A JSON-RPC error: too much work is waiting."),
        (500, "A JSON-RPC error: an internal failure."),
        (503, "A JSON-RPC error: the thread did not respond."),
    ];
    let post = errors
        .into_iter()
        .fold(post, |post, (status, said)| post.answers(status, said, vec![("application/json", None)]));
    metadata.into_iter().chain([post]).collect()
}
