//! Routes for clients of OpenAI (docs/clients.md), which defines the bodies and responses.

use bobbin_definitions::error::Code;

use crate::operation::{Operation, Scope};
use crate::types::Object;

const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";

pub(super) fn openai() -> Vec<Operation> {
    let new = Operation::new;
    vec![
        new("listModels", Scope::Owner, "The agents, as OpenAI's clients list models.")
            .gives::<Object>(200, "Those that are exposed."),
        new("getModel", Scope::Owner, "An agent, as a model.")
            .gives::<Object>(200, "The agent.")
            .fails(&[Code::AgentNotFound]),
        new("createChatCompletion", Scope::Thread, "A message, and what is answered.")
            .takes::<Object>()
            .answers(200, "A `chat.completion`, or its chunks.", vec![(JSON, None), (EVENTS, None)])
            .fails(&[Code::AgentNotFound, Code::UnsupportedParameter, Code::Conflict, Code::TooLarge]),
        new("createResponse", Scope::Thread, "A message, and what comes of it.")
            .takes::<Object>()
            .answers(200, "A `response`, or its events.", vec![(JSON, None), (EVENTS, None)])
            .fails(&[Code::AgentNotFound, Code::UnsupportedParameter, Code::Conflict, Code::TooLarge]),
        new("getResponse", Scope::Thread, "A response as it is now, or its events.")
            .answers(200, "The response.", vec![(JSON, None), (EVENTS, None)])
            .fails(&[Code::NotFound]),
        new("deleteResponse", Scope::Owner, "Deletes the thread of a response.")
            .gives::<Object>(200, "It is gone.")
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
        new("createConversation", Scope::Owner, "A new thread, as a conversation.")
            .may_take::<Object>()
            .gives::<Object>(200, "The conversation.")
            .fails(&[Code::AgentNotFound, Code::MissingField, Code::UnsupportedParameter]),
        new("getConversation", Scope::Thread, "A thread, as a conversation.")
            .gives::<Object>(200, "The conversation.")
            .fails(&[Code::NotFound]),
        new("changeConversation", Scope::Owner, "Changes what is kept with a conversation.")
            .takes::<Object>()
            .gives::<Object>(200, "What it is now.")
            .fails(&[Code::NotFound]),
        new("deleteConversation", Scope::Owner, "Deletes its thread.")
            .gives::<Object>(200, "It is gone.")
            .fails(&[Code::NotFound]),
    ]
}

fn items() -> Vec<Operation> {
    let new = Operation::new;
    vec![
        new("listConversationItems", Scope::Thread, "What was said in it.")
            .gives::<Object>(200, "A page.")
            .fails(&[Code::NotFound]),
        new("addConversationItems", Scope::Thread, "Adds what instructs.")
            .takes::<Object>()
            .gives::<Object>(200, "What was added.")
            .fails(&[Code::NotFound, Code::UnsupportedParameter]),
        new("getConversationItem", Scope::Thread, "A message, as an item.")
            .gives::<Object>(200, "The item.")
            .fails(&[Code::NotFound]),
        new("deleteConversationItem", Scope::Owner, "Deletes a message.")
            .gives::<Object>(200, "The conversation.")
            .fails(&[Code::NotFound]),
    ]
}
