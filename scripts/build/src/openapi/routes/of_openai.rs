//! What clients of OpenAI ask (docs/clients.md). Bodies and answers are OpenAI's to describe.

use bobbin::error::Code;

use crate::openapi::operation::{Operation, Scope};
use crate::openapi::types::Object;

const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";

pub(super) fn openai() -> Vec<Operation> {
    let new = Operation::new;
    vec![
        new("GET /v1/models", "listModels", Scope::Owner, "The agents, as OpenAI's clients list models.")
            .gives::<Object>(200, "Those that are exposed."),
        new("GET /v1/models/{name}", "getModel", Scope::Owner, "An agent, as a model.")
            .gives::<Object>(200, "The agent.")
            .fails(&[Code::AgentNotFound]),
        new(
            "POST /v1/chat/completions",
            "createChatCompletion",
            Scope::Thread,
            "A message, and what is answered.",
        )
        .takes::<Object>()
        .answers(200, "A `chat.completion`, or its chunks.", vec![(JSON, None), (EVENTS, None)])
        .fails(&[Code::AgentNotFound, Code::UnsupportedParameter, Code::Conflict, Code::TooLarge]),
        new("POST /v1/responses", "createResponse", Scope::Thread, "A message, and what comes of it.")
            .takes::<Object>()
            .answers(200, "A `response`, or its events.", vec![(JSON, None), (EVENTS, None)])
            .fails(&[Code::AgentNotFound, Code::UnsupportedParameter, Code::Conflict, Code::TooLarge]),
        new(
            "GET /v1/responses/{responseId}",
            "getResponse",
            Scope::Thread,
            "A response as it is now, or its events.",
        )
        .answers(200, "The response.", vec![(JSON, None), (EVENTS, None)])
        .fails(&[Code::NotFound]),
        new(
            "DELETE /v1/responses/{responseId}",
            "deleteResponse",
            Scope::Owner,
            "Deletes the thread of a response.",
        )
        .gives::<Object>(200, "It is gone.")
        .fails(&[Code::NotFound]),
        new(
            "POST /v1/responses/{responseId}/cancel",
            "cancelResponse",
            Scope::Thread,
            "Stops the run of a response.",
        )
        .may_take::<Object>()
        .gives::<Object>(200, "The response.")
        .fails(&[Code::NotFound]),
    ]
}
