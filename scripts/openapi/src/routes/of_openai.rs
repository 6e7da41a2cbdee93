//! Routes for clients of OpenAI (docs/clients.md), which defines the bodies and responses.

use bobbin_definitions::error::Code;

use crate::operation::{Operation, Scope};
use crate::types::Object;

const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";

pub(super) fn openai() -> Vec<Operation> {
    let new = Operation::new;
    vec![
        new("listModels", Scope::Owner, "Lists the agents as models of OpenAI.")
            .gives::<Object>(200, "The exposed agents."),
        new("getModel", Scope::Owner, "Returns an agent as a model of OpenAI.")
            .gives::<Object>(200, "The agent.")
            .fails(&[Code::AgentNotFound]),
        new(
            "createChatCompletion",
            Scope::Thread,
            "Sends a message and returns the reply, in the form of chat completions.",
        )
        .takes::<Object>()
        .answers(200, "A `chat.completion`, or its chunks.", vec![(JSON, None), (EVENTS, None)])
        .fails(&[Code::AgentNotFound, Code::UnsupportedParameter, Code::Conflict, Code::TooLarge]),
        new(
            "createResponse",
            Scope::Thread,
            "Sends a message and returns the outcome, in the form of the Responses API.",
        )
        .takes::<Object>()
        .answers(200, "A `response`, or its events.", vec![(JSON, None), (EVENTS, None)])
        .fails(&[Code::AgentNotFound, Code::UnsupportedParameter, Code::Conflict, Code::TooLarge]),
        new("getResponse", Scope::Thread, "Returns a response in its current state, or streams its events.")
            .answers(200, "The response.", vec![(JSON, None), (EVENTS, None)])
            .fails(&[Code::NotFound]),
        new("deleteResponse", Scope::Owner, "Deletes the thread of a response.")
            .gives::<Object>(200, "Deleted.")
            .fails(&[Code::NotFound]),
        new("cancelResponse", Scope::Thread, "Stops the run of a response.")
            .may_take::<Object>()
            .gives::<Object>(200, "The response.")
            .fails(&[Code::NotFound]),
    ]
    .into_iter()
    .chain(conversations())
    .chain(items())
    .collect()
}

fn conversations() -> Vec<Operation> {
    let new = Operation::new;
    vec![
        new("createConversation", Scope::Owner, "Creates a thread, as a conversation.")
            .may_take::<Object>()
            .gives::<Object>(200, "The conversation.")
            .fails(&[Code::AgentNotFound, Code::MissingField, Code::UnsupportedParameter]),
        new("getConversation", Scope::Thread, "Returns a thread as a conversation.")
            .gives::<Object>(200, "The conversation.")
            .fails(&[Code::NotFound]),
        new("changeConversation", Scope::Owner, "Changes the metadata of a conversation.")
            .takes::<Object>()
            .gives::<Object>(200, "The state after the change.")
            .fails(&[Code::NotFound]),
        new("deleteConversation", Scope::Owner, "Deletes the thread of a conversation.")
            .gives::<Object>(200, "Deleted.")
            .fails(&[Code::NotFound]),
    ]
}

fn items() -> Vec<Operation> {
    let new = Operation::new;
    vec![
        new("listConversationItems", Scope::Thread, "Lists the messages of a conversation.")
            .gives::<Object>(200, "A page.")
            .fails(&[Code::NotFound]),
        new("addConversationItems", Scope::Thread, "Adds instructions to a conversation.")
            .takes::<Object>()
            .gives::<Object>(200, "The added items.")
            .fails(&[Code::NotFound, Code::UnsupportedParameter]),
        new("getConversationItem", Scope::Thread, "Returns a message as an item.")
            .gives::<Object>(200, "The item.")
            .fails(&[Code::NotFound]),
        new("deleteConversationItem", Scope::Owner, "Deletes a message.")
            .gives::<Object>(200, "The conversation.")
            .fails(&[Code::NotFound]),
    ]
}
