//! The deployment.

use bobbin_definitions::error::Code;
use bobbin_protocols::responses;

use crate::operation::{Operation, Scope};
use crate::types::{threads, tokens, waits};

pub(super) fn server() -> Vec<Operation> {
    let new = Operation::new;
    vec![
        new("health", Scope::Anybody, "Reports whether the server works.")
            .gives::<responses::server::Health>(200, "The server works."),
        new("listAgents", Scope::Owner, "Lists the agents.")
            .gives::<responses::agents::AgentList>(200, "Ordered by name."),
        new("getAgent", Scope::Owner, "Returns an agent with its sides and variables.")
            .gives::<responses::agents::AgentDetail>(200, "The agent.")
            .fails(&[Code::AgentNotFound]),
        new(
            "explainAgent",
            Scope::Owner,
            "Lists the parts of an agent, and the missing ones.",
        )
        .gives::<responses::agents::AgentExplained>(200, "The parts, found without any outgoing request.")
        .fails(&[Code::AgentNotFound]),
        new(
            "mintToken",
            Scope::Owner,
            "Creates an expiring token, for a page that must not contain a key.",
        )
        .takes::<tokens::NewToken>()
        .gives::<bobbin_protocols::access::NewToken>(200, "The token.")
        .fails(&[Code::Forbidden, Code::InvalidField]),
        new(
            "listOpenWaits",
            Scope::Owner,
            "Lists the open waits in all threads of an owner.",
        )
        .gives::<responses::waits::InboxPage>(200, "Newest first."),
        new("listMcpServers", Scope::Admin, "Lists the MCP servers and their state.")
            .gives::<responses::mcp::McpServers>(200, "Ordered by name."),
        new("resume", Scope::Link, "Decides a wait with the token of a link.")
            .takes::<waits::Resume>()
            .gives::<responses::waits::WaitDecided>(200, "The wait is decided.")
            .fails(&[Code::InvalidToken, Code::Conflict]),
        new("signedIn", Scope::Anybody, "Receives the browser of a person who has signed in to an MCP server.")
            .says("The parameters select the waiting run, and are checked against its request. The response is a page for people.")
            .answers(200, "The person is signed in.", vec![("text/html", None)])
            .answers(400, "This deployment has not requested the sign-in.", vec![("text/html", None)])
            .answers(403, "The sign-in was declined.", vec![("text/html", None)])
            .answers(409, "Another request is completing the sign-in.", vec![("text/html", None)])
            .answers(410, "No run waits for the sign-in.", vec![("text/html", None)])
            .answers(502, "The sign-in failed.", vec![("text/html", None)]),
        new("clientDocument", Scope::Anybody, "Returns the description of this deployment for authorization servers.")
            .gives::<responses::mcp::ClientDocument>(200, "A Client ID Metadata Document."),
    ]
}

pub(super) fn values() -> Vec<Operation> {
    let new = Operation::new;
    vec![
        new("getInstanceEnv", Scope::Admin, "Returns values of variables of the instance.")
            .gives::<responses::variables::ShownEnv>(
            200,
            "The values of type `text`, and the types of all values.",
        ),
        new("changeInstanceEnv", Scope::Admin, "Sets values of variables of the instance.")
            .takes::<threads::EnvChange>()
            .gives::<responses::variables::ShownEnv>(200, "The values after the change."),
        new("getAccountEnv", Scope::Owner, "Returns values of variables of an owner.")
            .gives::<responses::variables::ShownEnv>(
            200,
            "The values of type `text`, and the types of all values.",
        ),
        new("changeAccountEnv", Scope::Owner, "Sets values of variables of an owner.")
            .takes::<threads::EnvChange>()
            .gives::<responses::variables::ShownEnv>(200, "The values after the change."),
    ]
}
