//! The deployment.

use bobbin_definitions::error::Code;

use crate::operation::{Operation, Scope};
use crate::types::{agents, mcp, threads, waits};

pub(super) fn server() -> Vec<Operation> {
    let new = Operation::new;
    vec![
        new("health", Scope::Anybody, "Whether the server serves.")
            .gives::<agents::Health>(200, "It does."),
        new("listAgents", Scope::Owner, "The agents that there are.")
            .gives::<agents::AgentList>(200, "By name."),
        new("getAgent", Scope::Owner, "An agent, with its sides and variables.")
            .gives::<agents::AgentDetail>(200, "The agent.")
            .fails(&[Code::AgentNotFound]),
        new(
            "explainAgent",
            Scope::Owner,
            "What an agent is made of, and what it lacks.",
        )
        .gives::<agents::AgentExplained>(200, "Without any request to the outside.")
        .fails(&[Code::AgentNotFound]),
        new(
            "mintToken",
            Scope::Owner,
            "A token that expires, for a page that must not hold a key.",
        )
        .takes::<agents::NewToken>()
        .gives::<agents::Token>(200, "The token.")
        .fails(&[Code::Forbidden, Code::InvalidField]),
        new(
            "listOpenWaits",
            Scope::Owner,
            "What is asked of people in all threads of an owner.",
        )
        .gives::<waits::InboxPage>(200, "Those that are open, newest first."),
        new("listMcpServers", Scope::Admin, "MCP servers, and how they answer.")
            .gives::<mcp::McpServers>(200, "By name."),
        new("resume", Scope::Link, "Decides with the token of a link.")
            .takes::<waits::Resume>()
            .gives::<waits::WaitDecided>(200, "It is decided.")
            .fails(&[Code::InvalidToken, Code::Conflict]),
        new("signedIn", Scope::Anybody, "A browser comes back from where somebody has signed in to an MCP server.")
            .says("What it brings says which run waits for it, and is held against what that was sent with. The answer is a page for people.")
            .answers(200, "Somebody is signed in.", vec![("text/html", None)])
            .answers(400, "It was not asked for here.", vec![("text/html", None)])
            .answers(403, "It was declined.", vec![("text/html", None)])
            .answers(409, "It is being completed.", vec![("text/html", None)])
            .answers(410, "Nobody waits for it any more.", vec![("text/html", None)])
            .answers(502, "It could not be completed.", vec![("text/html", None)]),
        new("clientDocument", Scope::Anybody, "What the deployment says of itself to authorization servers.")
            .gives::<mcp::ClientDocument>(200, "As a Client ID Metadata Document."),
    ]
}

pub(super) fn values() -> Vec<Operation> {
    let new = Operation::new;
    vec![
        new("getInstanceEnv", Scope::Admin, "Values of variables of the instance.")
            .gives::<threads::ShownEnv>(200, "Those of the type `text`, and the types of all."),
        new("changeInstanceEnv", Scope::Admin, "Sets values of variables of the instance.")
            .takes::<threads::EnvChange>()
            .gives::<threads::ShownEnv>(200, "What there is now."),
        new("getAccountEnv", Scope::Owner, "Values of variables of an owner.")
            .gives::<threads::ShownEnv>(200, "Those of the type `text`, and the types of all."),
        new("changeAccountEnv", Scope::Owner, "Sets values of variables of an owner.")
            .takes::<threads::EnvChange>()
            .gives::<threads::ShownEnv>(200, "What there is now."),
    ]
}
