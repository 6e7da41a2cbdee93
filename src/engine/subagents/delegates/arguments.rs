//! Parses the arguments of calls of the worker tools. Invalid ones become error results that tell the model
//! what to do, each with a code (docs/errors.md).

use std::collections::{BTreeSet, HashSet};
use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::definitions::budget::Share;
use crate::definitions::message::{ToolCall, ToolResult};
use crate::definitions::subagent::{CLOSE, SEND, SPAWN};
use crate::definitions::{Catalog, ReceivingSide, Resumable, ToolEntry, Workers, schema};
use crate::engine::calls::call::parsed;
use crate::engine::subagents::arguments::{label, paths};
use crate::engine::subagents::call::{NewChild, NewWorker, SubagentCall, WorkerMessage, WorkersWait};
use crate::engine::subagents::delegates::offers::parameters;
use crate::engine::subagents::delegates::permissions;
use crate::engine::subagents::envelope::Content;
use crate::json;
use crate::limits;

/// The tool entry of workers: resumable and non-blocking.
static ENTRY: LazyLock<ToolEntry> = LazyLock::new(|| ToolEntry {
    blocking: Some(false),
    resumable: Some(Resumable {
        receives_messages: ReceivingSide::SideA,
        max_instances: None,
        parent_communication: crate::definitions::ParentCommunication::Implicit,
    }),
    ..ToolEntry::default()
});

/// The subagent action of a call. `workers`: the prompt's settings, if any.
pub(crate) fn of_call<'a>(
    catalog: &'a Catalog,
    workers: Option<&'a Workers>,
    call: &ToolCall,
) -> Result<SubagentCall<'a>, ToolResult> {
    let args = arguments(call)?;
    match call.name.as_str() {
        SPAWN => spawn(catalog, workers, &args).map(|new| SubagentCall::Create(Box::new(new))),
        SEND => {
            let message =
                text(&args, "message").ok_or_else(|| blank("message", "what the worker is to do"))?;
            let words = Content { text: message.to_owned(), files: files(&args)?, ..Content::default() };
            let flag = |name: &str| args.get(name).and_then(Value::as_bool);
            Ok(SubagentCall::Send(WorkerMessage {
                id: id(&args)?,
                words,
                waits: flag("wait").unwrap_or(true),
                queues: flag("queue").unwrap_or(false),
            }))
        }
        CLOSE => Ok(SubagentCall::Close(id(&args)?)),
        _ => {
            let ids = args.get("agentIds").and_then(Value::as_array).into_iter().flatten();
            let mut known = HashSet::new();
            let named = ids.filter_map(Value::as_str).map(str::trim).filter(|id| known.insert(*id));
            let named = named.map(str::to_owned).collect();
            let seconds = args.get("timeoutSeconds").and_then(Value::as_i64);
            Ok(SubagentCall::Wait(WorkersWait {
                ids: named,
                any: args.get("for").and_then(Value::as_str) == Some("any"),
                lasts_us: seconds
                    .map_or(limits::WAIT_US, |seconds| seconds.saturating_mul(limits::SECOND_US)),
                batch: 0,
            }))
        }
    }
}

/// The validated arguments. `null` counts as absent, also within `budget`.
fn arguments(call: &ToolCall) -> Result<Map<String, Value>, ToolResult> {
    let mut args = parsed(call).map_err(|problem| invalid(&call.name, vec![problem]))?;
    if let Some(fields) = args.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
        if let Some(budget) = fields.get_mut("budget").and_then(Value::as_object_mut) {
            budget.retain(|_, value| !value.is_null());
        }
    }
    let problems = schema::validate(&parameters(&call.name), &args);
    match args {
        Value::Object(fields) if problems.is_empty() => Ok(fields),
        _ => Err(invalid(&call.name, problems.iter().map(ToString::to_string).collect())),
    }
}

fn spawn<'a>(
    catalog: &'a Catalog,
    workers: Option<&'a Workers>,
    args: &Map<String, Value>,
) -> Result<NewChild<'a>, ToolResult> {
    let Some(workers) = workers else {
        return Err(invalid(
            SPAWN,
            vec!["No workers can be made here: the prompt does not say `subagents`.".into()],
        ));
    };
    let wanted = text(args, "agent").unwrap_or_default();
    let agent = workers.agents.iter().find(|name| *name == wanted).and_then(|name| catalog.agents.get(name));
    let Some(agent) = agent else {
        let known = workers.agents.join(", ");
        let problem = format!("agent: no worker can be made of \"{wanted}\". Agents: {known}.");
        return Err(invalid(SPAWN, vec![problem]));
    };
    let alias = text(args, "agentId").map(str::to_owned);
    let fine = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if alias.as_ref().is_some_and(|id| id.len() > limits::WORKER_ID_CHARS || !id.chars().all(fine)) {
        let most = limits::WORKER_ID_CHARS;
        let problem =
            format!("agentId: must be at most {most} characters: letters, digits, `.`, `_` and `-`.");
        return Err(invalid(SPAWN, vec![problem]));
    }
    let tools = match args.get("tools").and_then(Value::as_array) {
        None => None,
        Some(names) => Some(part_of(catalog, agent, names)?),
    };
    let budget = args.get("budget").map(share_of).transpose()?;
    let message = text(args, "message");
    let words =
        Content { text: message.unwrap_or_default().to_owned(), files: Vec::new(), ..Content::default() };
    let worker = NewWorker {
        alias,
        prefix: workers.id_prefix.clone(),
        most: workers.max_active,
        can_spawn: workers.can_spawn,
        tools,
        description: text(args, "description").and_then(label),
        budget,
        idle: message.is_none(),
    };
    Ok(NewChild {
        agent,
        entry: &ENTRY,
        name: text(args, "name").and_then(label),
        arguments: Map::new(),
        words,
        begun: None,
        worker: Some(worker),
    })
}

/// A worker's share of the budget.
fn share_of(given: &Value) -> Result<Share, ToolResult> {
    let wrong = |problem: String| invalid(SPAWN, vec![problem]);
    let share = crate::json::from_value::<Share>(given.clone())
        .map_err(|error| wrong(format!("budget: {error}.")))?;
    match share.problems().into_iter().next() {
        Some((field, problem)) => Err(wrong(format!("budget.{field}: {problem}."))),
        None => Ok(share),
    }
}

/// The tools of a list, sorted. The agent must have each of them.
fn part_of(
    catalog: &Catalog,
    agent: &crate::definitions::Agent,
    names: &[Value],
) -> Result<Vec<String>, ToolResult> {
    let own = permissions::tools_of(catalog, agent);
    let wanted: BTreeSet<&str> = names
        .iter()
        .filter_map(Value::as_str)
        .map(|name| crate::definitions::subagent::undotted(name.trim()))
        .collect();
    let lacking: Vec<String> = wanted
        .iter()
        .filter(|name| !own.contains(**name))
        .map(|name| format!("tools: \"{}\" has no tool \"{name}\".", agent.name))
        .collect();
    if !lacking.is_empty() {
        return Err(invalid(SPAWN, lacking));
    }
    Ok(wanted.into_iter().map(str::to_owned).collect())
}

/// A text that is not blank, trimmed.
fn text<'v>(args: &'v Map<String, Value>, property: &str) -> Option<&'v str> {
    args.get(property)?.as_str().map(str::trim).filter(|text| !text.is_empty())
}

fn id(args: &Map<String, Value>) -> Result<String, ToolResult> {
    text(args, "agentId").map(str::to_owned).ok_or_else(|| blank("agentId", "which worker is meant"))
}

fn files(args: &Map<String, Value>) -> Result<Vec<String>, ToolResult> {
    let given = args.get("attachments").map_or(Some(Vec::new()), |given| paths(given, false));
    given.ok_or_else(|| {
        invalid(SEND, vec!["attachments: must be a list of paths of files in this thread.".into()])
    })
}

fn blank(property: &str, what: &str) -> ToolResult {
    invalid(SEND, vec![format!("{property}: must be a text that is not blank: say {what}.")])
}

/// The error result for invalid arguments.
pub(super) fn invalid(tool: &str, problems: Vec<String>) -> ToolResult {
    let text = format!("Invalid arguments for \"{tool}\": {}", problems.join("\n"));
    coded("subagent_invalid_input", text, json!({ "problems": problems }))
}

/// The error result for an id that no open worker has. `known`: the existing ids.
pub(super) fn not_found(id: &str, known: &[String]) -> ToolResult {
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    let text = format!("There is no worker \"{id}\". Workers: {known}.");
    coded("subagent_not_found", text, json!({ "agentId": id }))
}

/// The error result for a message to a busy worker.
pub(super) fn busy(id: &str) -> ToolResult {
    let text = format!(
        "The worker \"{id}\" is at work. Wait for it with agent_wait, or send with `queue`: true: it reads this with its \
         next step."
    );
    coded("subagent_busy", text, json!({ "agentId": id }))
}

/// The error result when the limit of workers is reached.
pub(super) fn full(most: u32, ids: &[String]) -> ToolResult {
    let text = format!(
        "No worker was made: {most} are there, which is the limit: {}. Close one with agent_close, or write to one with \
         agent_send.",
        ids.join(", ")
    );
    coded("subagent_limit_reached", text, json!({ "maxActive": most, "agentIds": ids }))
}

fn coded(code: &str, text: String, data: Value) -> ToolResult {
    ToolResult {
        error_code: Some(code.to_owned()),
        error_data: data.as_object().cloned(),
        ..ToolResult::error(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog() -> Catalog {
        let prompt =
            json!({ "toolDescription": "d", "model": "m", "prompt": "p", "tools": ["search", "notes"] });
        let catalog = json!({ "prompts": { "p": prompt }, "agents": {
            "writer": { "type": "ai_human", "sideA": { "prompt": "p", "stopTool": "done" } } } });
        Catalog::from_json(&catalog.to_string()).unwrap()
    }

    fn asked(tool: &str, args: Value) -> Result<SubagentCall<'static>, ToolResult> {
        let catalog = Box::leak(Box::new(catalog()));
        let workers: Workers =
            crate::json::from_value(json!({ "agents": ["writer"], "maxActive": 2 })).unwrap();
        let workers = Box::leak(Box::new(workers));
        let call = ToolCall { name: tool.into(), arguments: args.to_string(), ..ToolCall::default() };
        of_call(catalog, Some(workers), &call)
    }

    #[test]
    fn a_call_says_what_is_wanted_of_workers() {
        let Ok(SubagentCall::Create(new)) = asked(
            "agent_spawn",
            json!({ "agent": "writer", "message": "Go.",
            "tools": ["notes", "search", "notes"], "name": null, "budget": { "share": 0.5, "maxCostUsd": null } }),
        ) else {
            panic!()
        };
        let worker = new.worker.unwrap();
        assert_eq!((new.words.text.as_str(), worker.idle, worker.most), ("Go.", false, 2));
        assert_eq!(worker.tools.unwrap(), ["notes", "search"]);
        assert_eq!(worker.budget, Some(Share { share: Some(0.5), max_cost_usd: None }));
        let Ok(SubagentCall::Create(new)) = asked("agent_spawn", json!({ "agent": "writer" })) else {
            panic!()
        };
        assert!(new.worker.unwrap().idle);
        let Ok(SubagentCall::Send(send)) = asked("agent_send", json!({ "agentId": "a", "message": "Go." }))
        else {
            panic!()
        };
        assert!(send.waits && !send.queues);
        let wait = json!({ "agentIds": ["a", "a", "b"], "for": "any", "timeoutSeconds": 5 });
        let Ok(SubagentCall::Wait(wait)) = asked("agent_wait", wait) else { panic!() };
        assert_eq!((wait.ids.len(), wait.any, wait.lasts_us), (2, true, 5 * limits::SECOND_US));
    }

    #[test]
    fn what_is_wrong_is_told_with_a_code() {
        for (tool, args, told) in [
            ("agent_spawn", json!({}), "agent: required but missing."),
            (
                "agent_spawn",
                json!({ "agent": "clerk" }),
                "agent: no worker can be made of \"clerk\". Agents: writer.",
            ),
            ("agent_spawn", json!({ "agent": "writer", "budget": { "maxTokens": 5 } }), "maxTokens"),
            (
                "agent_spawn",
                json!({ "agent": "writer", "budget": { "share": 1.5 } }),
                "budget.share: must be more than 0, and at most 1.",
            ),
            (
                "agent_spawn",
                json!({ "agent": "writer", "budget": { "maxCostUsd": 0 } }),
                "budget.maxCostUsd: must be more than 0 USD.",
            ),
            (
                "agent_spawn",
                json!({ "agent": "writer", "tools": ["hammer"] }),
                "tools: \"writer\" has no tool \"hammer\".",
            ),
            (
                "agent_spawn",
                json!({ "agent": "writer", "agentId": "a b" }),
                "agentId: must be at most 64 characters",
            ),
            (
                "agent_send",
                json!({ "agentId": "a", "message": " " }),
                "message: must be a text that is not blank",
            ),
            ("agent_wait", json!({ "agentIds": [] }), "agentIds"),
            ("agent_wait", json!({ "agentIds": ["a"], "timeoutSeconds": 604_801 }), "timeoutSeconds"),
            ("agent_close", json!([]), "expected"),
        ] {
            let error = asked(tool, args.clone()).map(|_| ()).unwrap_err();
            assert_eq!(error.error_code.as_deref(), Some("subagent_invalid_input"), "{args}");
            let problems = error.error_data.unwrap()["problems"].to_string();
            assert!(problems.contains(&told.replace('"', "\\\"")), "{args}: {problems}");
        }
    }
}
