//! Explains an agent: its definitions with their files, the definitions and variables that this deployment
//! lacks for it, and unused definitions. Contains names only, no prompt texts or values.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::request::agents::not_found;
use crate::responses::agents::{
    AgentExplained, ExplainedVariable, Leading, LedAgent, MissingPart, UsedDefinition,
};
use bobbin_definitions::definitions::callable::Callable;
use bobbin_definitions::definitions::graph::{Item, reach};
use bobbin_definitions::definitions::references::Kind;
use bobbin_definitions::definitions::{Agent, Catalog, Implementation, Prompt, Tool, Variable, skill};
use bobbin_definitions::error::Result;
use bobbin_definitions::json;

/// Looks up a variable of the deployment.
pub type Deployment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// `GET /api/agents/:name/explain`.
/// `natives`: the native tools of this build.
///
/// # Errors
/// `agent_not_found`.
pub fn explain(catalog: &Catalog, name: &str, natives: &[&str], deployment: Deployment<'_>) -> Result<Value> {
    let agent = catalog.shown_agent(name).ok_or_else(|| not_found(catalog, name))?;
    let used = used(catalog, agent);
    let uses = used.iter().map(|(kind, name)| definition(catalog, *kind, name)).collect();
    let mut missing = Vec::new();
    for (kind, name) in &used {
        match kind {
            Kind::Model => missing.extend(of_model(catalog, name, deployment)),
            Kind::Tool => missing.extend(of_tool(catalog, name, natives)),
            Kind::Prompt => missing.extend(of_skills(catalog, name)),
            _ => {}
        }
    }
    Ok(json!(AgentExplained {
        agent: &agent.name,
        file: file(catalog, Kind::Agent, &agent.name),
        uses,
        leads: leads(catalog, agent),
        variables: variables(catalog, agent, deployment),
        missing,
        unused: unused(catalog),
    }))
}

/// Kinds and names of everything that an agent uses, including itself.
fn used<'c>(catalog: &'c Catalog, agent: &'c Agent) -> BTreeSet<(Kind, &'c str)> {
    let mut used = BTreeSet::new();
    for found in reach(catalog, agent) {
        match found.item {
            Item::Agent(agent) => drop(used.insert((Kind::Agent, agent.name.as_str()))),
            Item::Tool(tool) => {
                used.insert((Kind::Tool, tool.name.as_str()));
                used.extend(of_server(catalog, tool).map(|server| (Kind::Mcp, server)));
            }
            Item::Hook(hook) => drop(used.insert((Kind::Hook, hook.id.as_str()))),
            Item::Prompt(prompt) => of_prompt(catalog, prompt, &mut used),
            Item::Server(server) => drop(used.insert((Kind::Mcp, server.name.as_str()))),
        }
    }
    used
}

/// The agents to which its models may hand the thread off, or which they may start in separate threads.
fn leads<'c>(catalog: &'c Catalog, agent: &'c Agent) -> Vec<LedAgent<'c>> {
    let mut led: BTreeSet<(&str, Leading, &str)> = BTreeSet::new();
    for found in reach(catalog, agent).iter().filter(|found| !found.handed) {
        let Item::Prompt(prompt) = found.item else { continue };
        led.extend(prompt.tools.iter().filter_map(|entry| {
            let (agent, how) = match catalog.callable(&entry.name)? {
                Callable::Agent(agent, _) => (agent, Leading::Handoff),
                Callable::Subagent(agent, _) => (agent, Leading::Subagent),
                Callable::Tool(_) | Callable::Prompt(_) => return None,
            };
            Some((agent.name.as_str(), how, prompt.name.as_str()))
        }));
        let workers = prompt.workers().map(|workers| &workers.agents).into_iter().flatten();
        led.extend(workers.map(|name| (name.as_str(), Leading::Worker, prompt.name.as_str())));
    }
    led.into_iter().map(|(agent, how, prompt)| LedAgent { agent, how, prompt }).collect()
}

fn of_memories<'c>(catalog: &'c Catalog, prompt: &'c Prompt, used: &mut BTreeSet<(Kind, &'c str)>) {
    for memory in prompt.memory.iter().filter_map(|entry| catalog.memories.get(&entry.name)) {
        used.insert((Kind::Memory, &memory.name));
        used.extend(memory.embedding.as_deref().map(|model| (Kind::Model, model)));
    }
}

fn of_prompt<'c>(catalog: &'c Catalog, prompt: &'c Prompt, used: &mut BTreeSet<(Kind, &'c str)>) {
    used.insert((Kind::Prompt, &prompt.name));
    used.extend(
        catalog.model_chain(&prompt.model).into_iter().map(|model| (Kind::Model, model.name.as_str())),
    );
    if let Some(summary) = &prompt.summary {
        let model = summary.model.as_deref().map(|name| catalog.model_chain(name)).unwrap_or_default();
        used.extend(model.into_iter().map(|model| (Kind::Model, model.name.as_str())));
        used.extend(summary.prompt.as_deref().map(|name| (Kind::Prompt, name)));
    }
    let skills = catalog.skills_of(prompt).into_iter();
    used.extend(skills.map(|(skill, _)| (Kind::Skill, skill.head.name.as_str())));
    of_memories(catalog, prompt, used);
}

/// The MCP server of a tool.
fn of_server<'c>(catalog: &'c Catalog, tool: &Tool) -> Option<&'c str> {
    let Implementation::Mcp(of) = &tool.run else { return None };
    catalog.mcp.get(&of.server).map(|server| server.name.as_str())
}

/// A definition and its file.
fn definition<'c>(catalog: &'c Catalog, kind: Kind, name: &'c str) -> UsedDefinition<'c> {
    let server =
        catalog.tools.get(name).filter(|_| kind == Kind::Tool).and_then(|tool| of_server(catalog, tool));
    UsedDefinition { kind: kind.noun(), name, file: file(catalog, kind, name), server }
}

/// The file of a definition, if the catalog has it; built-in ones have none.
fn file<'c>(catalog: &'c Catalog, kind: Kind, name: &str) -> Option<&'c str> {
    catalog.files.get(&format!("{} {name}", kind.noun())).map(String::as_str)
}

fn lack<'a>(code: &'static str, kind: Kind, name: &'a str, message: String) -> MissingPart<'a> {
    MissingPart { code, kind: kind.noun(), name, message }
}

fn of_model<'c>(catalog: &Catalog, name: &'c str, deployment: Deployment<'_>) -> Option<MissingPart<'c>> {
    let lacks = bobbin_models::lacks(catalog.models.get(name)?, deployment)?;
    Some(lack("model.unusable", Kind::Model, name, format!("The model \"{name}\" cannot be used: {lacks}.")))
}

fn of_tool<'c>(catalog: &Catalog, name: &'c str, natives: &[&str]) -> Option<MissingPart<'c>> {
    let Implementation::Native(native) = &catalog.tools.get(name)?.run else { return None };
    (!natives.contains(&native.as_str())).then(|| {
        let message = format!("The native function \"{native}\" is not part of this deployment.");
        lack("tool.missing", Kind::Tool, name, message)
    })
}

/// Skills that a prompt does not get, because it lacks a tool.
fn of_skills<'c>(catalog: &'c Catalog, prompt: &str) -> Vec<MissingPart<'c>> {
    let Some(prompt) = catalog.prompts.get(prompt) else { return Vec::new() };
    let skills = catalog.skills_of(prompt).into_iter();
    skills
        .filter_map(|(skill, _)| {
            let tool = skill.head.requires.iter().find(|tool| prompt.tool(tool).is_none())?;
            let (name, prompt) = (&skill.head.name, &prompt.name);
            let message =
                format!("The prompt \"{prompt}\" is not given it, as it does not list the tool \"{tool}\".");
            Some(lack("skill.requirement", Kind::Skill, name, message))
        })
        .collect()
}

/// The variables that the agent needs, and whether the deployment or a definition sets each.
fn variables<'c>(
    catalog: &'c Catalog,
    agent: &'c Agent,
    deployment: Deployment<'_>,
) -> Vec<ExplainedVariable<'c>> {
    let mut known: BTreeMap<&str, (&Variable, bool)> = BTreeMap::new();
    for found in reach(catalog, agent) {
        for variable in found.item.variables() {
            let envs = found.above.iter().chain(&found.below);
            let given = envs.into_iter().any(|env| env.contains_key(&variable.name));
            let set = given || deployment(&variable.name).is_some();
            let known = known.entry(&variable.name).or_insert((variable, false));
            known.1 |= set;
        }
    }
    let told = known.into_values();
    told.map(|(variable, set)| {
        let Variable { name, kind, required, .. } = variable;
        ExplainedVariable { name, kind: *kind, required: *required, set }
    })
    .collect()
}

/// The application's definitions that none of its agents uses.
fn unused(catalog: &Catalog) -> Vec<UsedDefinition<'_>> {
    let used: BTreeSet<(Kind, &str)> =
        catalog.agents.values().flat_map(|agent| used(catalog, agent)).collect();
    let names = [
        (Kind::Model, catalog.models.keys().collect::<Vec<_>>()),
        (Kind::Prompt, catalog.prompts.keys().collect()),
        // Agents rarely use all tools of a server.
        (
            Kind::Tool,
            catalog
                .tools
                .iter()
                .filter(|(name, tool)| *name != skill::LOAD && !matches!(tool.run, Implementation::Mcp(_)))
                .map(|(name, _)| name)
                .collect(),
        ),
        (Kind::Hook, catalog.hooks.keys().collect()),
        (Kind::Skill, catalog.skills.keys().collect()),
        (Kind::Memory, catalog.memories.keys().collect()),
        (Kind::Mcp, catalog.mcp.keys().collect()),
    ];
    let mut unused = Vec::new();
    for (kind, names) in names {
        let own = names.into_iter().filter(|name| catalog.packages.of(name).is_none());
        let left = own.filter(|name| !used.contains(&(kind, name.as_str())));
        unused.extend(left.map(|name| definition(catalog, kind, name)));
    }
    unused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_agent_uses_and_lacks_is_told_without_texts_and_values() {
        let prompt = json!({ "toolDescription": "d", "prompt": "SECRET TEXT", "model": "fast",
            "summary": { "model": "cheap" }, "tools": ["lookup", "gone"],
            "skills": ["refunds", "tone"],
            "variables": [{ "name": "CITY", "type": "text", "required": true }, { "name": "KEY", "type": "secret" }] });
        let skill = |requires: Value| json!({ "head": { "description": "d", "requires": requires }, "body": "BODY TEXT", "path": "p", "hash": "h" });
        let catalog = json!({
            "models": { "fast": { "provider": "openai", "model": "x", "fallbacks": ["demo"] },
                "cheap": { "provider": "demo", "model": "demo" },
                "demo": { "provider": "demo", "model": "demo" }, "old": { "provider": "demo", "model": "demo" } },
            "prompts": { "p": prompt },
            "tools": { "lookup": { "description": "d", "run": { "native": "nobody_has_it" } },
                "spare": { "description": "d", "run": { "native": "wait" } } },
            "skills": { "refunds": skill(json!(["calculate"])), "tone": skill(json!([])) },
            "agents": { "helper": { "sideA": { "prompt": "p" }, "env": { "CITY": "VALUE" } } },
            "files": { "agent helper": "agents/helper.json", "prompt p": "prompts/p.md" },
        });
        let catalog = Catalog::from_json(&catalog.to_string()).unwrap();
        let deployment = |name: &str| (name == "KEY").then(|| "VALUE".to_owned());
        let told = explain(&catalog, "helper", &["calculate", "load_skill", "wait"], &deployment).unwrap();
        let names = |field: &str| -> Vec<String> {
            let list = told[field].as_array().unwrap().iter();
            list.map(|item| format!("{} {}", item["kind"].as_str().unwrap(), item["name"].as_str().unwrap()))
                .collect()
        };
        assert_eq!(
            names("uses"),
            [
                "model cheap",
                "model demo",
                "model fast",
                "prompt p",
                "tool load_skill",
                "tool lookup",
                "agent helper",
                "skill refunds",
                "skill tone"
            ]
        );
        assert_eq!(names("unused"), ["model old", "tool spare"]);
        let codes: Vec<&str> =
            told["missing"].as_array().unwrap().iter().map(|m| m["code"].as_str().unwrap()).collect();
        assert_eq!(codes, ["model.unusable", "skill.requirement", "tool.missing"]);
        assert_eq!(
            told["variables"][0],
            json!({ "name": "CITY", "type": "text", "required": true, "set": true })
        );
        assert_eq!(
            (told["file"].as_str(), told["variables"][1]["set"].as_bool()),
            (Some("agents/helper.json"), Some(true))
        );
        assert_eq!(told["leads"], json!([]));
        let text = told.to_string();
        assert!(!text.contains("TEXT") && !text.contains("VALUE"), "{text}");
        assert!(explain(&catalog, "nobody", &[], &deployment).is_err());
    }

    #[test]
    fn an_agent_leads_to_those_that_its_own_prompts_name() {
        let prompt = |tools: Value, workers: Value| json!({ "toolDescription": "d", "prompt": "x", "model": "demo", "tools": tools, "subagents": { "agents": workers } });
        let exposed = |prompt: &str| json!({ "sideA": { "prompt": prompt }, "exposeAsTool": true, "toolDescription": "d" });
        let two = |prompt: &str| json!({ "type": "dual_ai", "sideA": { "prompt": prompt }, "sideB": { "prompt": prompt }, "exposeAsTool": true, "toolDescription": "d" });
        let catalog = json!({
            "models": { "demo": { "provider": "demo", "model": "demo" } },
            "prompts": { "desk": prompt(json!(["clerk", "checker"]), json!(["digger"])), "clerk_p": prompt(json!(["boss"]), json!([])),
                "plain": prompt(json!([]), json!([])) },
            "agents": { "desk": { "sideA": { "prompt": "desk" } }, "clerk": exposed("clerk_p"), "boss": exposed("plain"),
                "checker": two("plain"), "digger": two("plain") },
        });
        let catalog = Catalog::from_json(&catalog.to_string()).unwrap();
        let led = |name: &str| explain(&catalog, name, &[], &|_| None).unwrap()["leads"].clone();
        assert_eq!(
            led("desk"),
            json!([
                { "agent": "checker", "how": "subagent", "prompt": "desk" },
                { "agent": "clerk", "how": "handoff", "prompt": "desk" },
                { "agent": "digger", "how": "worker", "prompt": "desk" },
            ])
        );
        // Beyond a hand-off, definitions belong to the other agent.
        assert_eq!(led("clerk"), json!([{ "agent": "boss", "how": "handoff", "prompt": "clerk_p" }]));
    }
}
