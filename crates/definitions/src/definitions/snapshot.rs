//! The definitions at the start of a run, as one value: the agent, prompts, models, tools and skills, with
//! hashes of their contents. The same definitions give the same bytes on every machine.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::definitions::agent::Agent;
use crate::definitions::approval::Policy;
use crate::definitions::callable::Callable;
use crate::definitions::catalog::Catalog;
use crate::definitions::mcp::McpServer;
use crate::definitions::prompt::{Prompt, PromptPart, PromptText, ToolEntry};
use crate::definitions::skill::hash;
use crate::definitions::tool::Implementation;
use crate::json;
use crate::limits;

/// Fields about the origin of a snapshot. They do not count as a difference.
const ABOUT: [&str; 3] = ["catalog", "bobbin", "hash"];

/// The definitions at the start of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The stored form.
    pub fields: Map<String, Value>,
    /// `sha256:…` over all fields that count as a difference.
    pub hash: String,
}

impl Snapshot {
    /// The snapshot of an agent's current definitions; `None` if the agent, or a prompt of it, no longer
    /// exists.
    pub fn of(catalog: &Catalog, agent: &str) -> Option<Snapshot> {
        let agent = catalog.agents.get(agent)?;
        let prompts = prompts(catalog, agent)?;
        let mut fields = Map::new();
        let mut set = |field: &str, value: Value| drop(fields.insert(field.to_owned(), value));
        set("agent", json!(agent.name));
        set("selectedAgentIds", json!([agent.name]));
        for (prompt, [name, hashed]) in
            prompts.iter().zip([["prompt", "promptHash"], ["promptB", "promptBHash"]])
        {
            set(name, json!(prompt.name));
            set(hashed, json!(hash(&text(catalog, prompt, &mut Vec::new()))));
        }
        set("models", models(catalog, &prompts));
        let (tools, subagents) = called(catalog, &prompts);
        set("tools", json!(tools));
        set("skills", skills(catalog, &prompts));
        set("mcp", servers(catalog, &prompts));
        set("subagents", json!(subagents));
        for (prompt, name) in prompts.iter().zip(["approvals", "approvalsB"]) {
            let said = [&prompt.approvals, &agent.approvals, &catalog.settings.approvals];
            set(name, json!({ "policy": Policy::of(said.map(|approvals| approvals.policy)) }));
        }
        set("trusted", json!(trusted(catalog, agent, &prompts)));
        set("memories", memories(catalog, &prompts));
        shorten(&mut fields);
        let hash = hash(&Value::Object(fields.clone()).to_string());
        fields.insert("catalog".to_owned(), json!(catalog.hash));
        fields.insert("bobbin".to_owned(), json!(env!("CARGO_PKG_VERSION")));
        fields.insert("hash".to_owned(), json!(hash));
        Some(Snapshot { fields, hash })
    }

    /// The snapshot for a thread that may call only these tools.
    #[must_use]
    pub fn narrowed(self, tools: &[String]) -> Snapshot {
        let mut fields = self.fields;
        fields.insert("tools".to_owned(), json!(tools));
        shorten(&mut fields);
        let mut counted = fields.clone();
        counted.retain(|field, _| !ABOUT.contains(&field.as_str()));
        let hash = hash(&Value::Object(counted).to_string());
        fields.insert("hash".to_owned(), json!(hash));
        Snapshot { fields, hash }
    }

    /// The differences from an earlier snapshot: those of skills, and all others. Without the earlier fields,
    /// only the hashes are reported.
    pub fn since(&self, earlier: &str, fields: Option<&Map<String, Value>>) -> Difference {
        let (mut changed, mut added, mut removed) = (Vec::new(), Map::new(), Map::new());
        let mut skills = None;
        for (field, next) in self.fields.iter().filter(|(field, _)| !ABOUT.contains(&field.as_str())) {
            let Some(before) = fields.and_then(|fields| fields.get(field)).filter(|before| *before != next)
            else {
                continue;
            };
            match (before, next) {
                (Value::Array(before), Value::Array(next)) if field == "skills" => {
                    skills = Some(skill_changes(before, next));
                }
                (Value::Array(before), Value::Array(next)) => {
                    let new: Vec<&Value> = next.iter().filter(|item| !before.contains(item)).collect();
                    let gone: Vec<&Value> = before.iter().filter(|item| !next.contains(item)).collect();
                    if new.is_empty() && gone.is_empty() {
                        changed.push(field.as_str());
                    }
                    if !new.is_empty() {
                        added.insert(field.clone(), json!(new));
                    }
                    if !gone.is_empty() {
                        removed.insert(field.clone(), json!(gone));
                    }
                }
                _ => changed.push(field.as_str()),
            }
        }
        let known = fields.is_some();
        let others = !known || !changed.is_empty() || !added.is_empty() || !removed.is_empty();
        let told = json!({
            "previous": earlier, "next": self.hash, "added": added, "removed": removed, "changed": changed,
        });
        Difference { others: others.then_some(told), skills }
    }
}

/// The difference between two snapshots.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// `{previous, next, added, removed, changed}`.
    pub others: Option<Value>,
    /// `{added, removed, changed}`: names of skills.
    pub skills: Option<Value>,
}

/// The prompts of the agent's sides.
fn prompts<'c>(catalog: &'c Catalog, agent: &Agent) -> Option<Vec<&'c Prompt>> {
    let sides = [Some(&agent.side_a), agent.side_b.as_ref()];
    sides.into_iter().flatten().map(|side| catalog.prompts.get(&side.prompt)).collect()
}

/// The text of a prompt, with the prompts that it includes. Variables are not replaced.
fn text<'c>(catalog: &'c Catalog, prompt: &'c Prompt, path: &mut Vec<&'c str>) -> String {
    let parts = match &prompt.prompt {
        PromptText::Text(text) => return text.clone(),
        PromptText::Parts(parts) => parts,
    };
    path.push(&prompt.name);
    let mut out = String::new();
    for part in parts {
        match part {
            PromptPart::Text { content } => out.push_str(content),
            PromptPart::Env { property } => out.push_str(&format!("{{{{env {property}}}}}")),
            PromptPart::Include { prompt } => match catalog.prompts.get(prompt) {
                Some(included) if !path.contains(&prompt.as_str()) => {
                    out.push_str(&text(catalog, included, path));
                }
                _ => out.push_str(&format!("[{prompt}]")),
            },
        }
    }
    path.pop();
    out
}

/// The models that a run may use, in the order of the attempts.
fn models(catalog: &Catalog, prompts: &[&Prompt]) -> Value {
    let mut models: Vec<&str> = Vec::new();
    for prompt in prompts {
        for model in catalog.model_chain(&prompt.model) {
            if !models.contains(&model.name.as_str()) {
                models.push(&model.name);
            }
        }
    }
    json!(models)
}

/// The tools and subagents that the prompts list.
fn called<'c>(catalog: &'c Catalog, prompts: &[&'c Prompt]) -> (BTreeSet<&'c str>, BTreeSet<&'c str>) {
    let (mut tools, mut subagents) = (BTreeSet::new(), BTreeSet::new());
    for entry in prompts.iter().flat_map(|prompt| &prompt.tools) {
        let of = match catalog.callable(&entry.name) {
            Some(Callable::Subagent(..)) => &mut subagents,
            _ => &mut tools,
        };
        of.insert(entry.name.as_str());
    }
    subagents.extend(
        prompts
            .iter()
            .filter_map(|prompt| prompt.workers())
            .flat_map(|workers| workers.agents.iter().map(String::as_str)),
    );
    (tools, subagents)
}

/// The tools that a policy runs without approval.
fn trusted<'c>(catalog: &'c Catalog, agent: &'c Agent, prompts: &[&'c Prompt]) -> BTreeSet<&'c str> {
    let all = [&catalog.settings.approvals, &agent.approvals].into_iter();
    let all = all.chain(prompts.iter().map(|prompt| &prompt.approvals));
    all.flat_map(|approvals| &approvals.trusted).map(String::as_str).collect()
}

/// The skills of the prompts, by scope, name and path. All are from the folder.
fn skills(catalog: &Catalog, prompts: &[&Prompt]) -> Value {
    let mut skills: Vec<_> =
        prompts.iter().flat_map(|prompt| catalog.skills_of(prompt)).map(|(skill, _)| skill).collect();
    skills.sort_by(|a, b| (&a.head.name, &a.path).cmp(&(&b.head.name, &b.path)));
    skills.dedup_by(|a, b| a.head.name == b.head.name);
    skills
        .iter()
        .map(|skill| json!({ "scope": "repo", "name": skill.head.name, "path": skill.path, "hash": skill.hash }))
        .collect()
}

/// The memories of the prompts, by name.
fn memories(catalog: &Catalog, prompts: &[&Prompt]) -> Value {
    let listed: BTreeSet<&str> =
        prompts.iter().flat_map(|prompt| &prompt.memory).map(|entry| entry.name.as_str()).collect();
    let known = listed.iter().filter_map(|name| catalog.memories.get(*name));
    known
        .map(|memory| {
            let text = serde_json::to_string(memory).unwrap_or_default();
            json!({ "name": memory.name, "hash": hash(&text) })
        })
        .collect()
}

/// The MCP servers whose tools the prompts list, by name, with the contents of their files and pinned lists.
fn servers(catalog: &Catalog, prompts: &[&Prompt]) -> Value {
    let entries = prompts.iter().flat_map(|prompt| &prompt.tools);
    let of_entry = |entry: &'_ ToolEntry| match catalog.tools.get(&entry.name).map(|tool| &tool.run) {
        Some(Implementation::Mcp(of)) => catalog.mcp.get(&of.server),
        Some(_) => None,
        None => entry.mcp().and_then(|name| catalog.mcp.get(name)),
    };
    let used: BTreeMap<&str, &McpServer> =
        entries.filter_map(of_entry).map(|server| (server.name.as_str(), server)).collect();
    let hashed = used.into_values().map(|server| {
        let text = serde_json::to_string(server).unwrap_or_default();
        json!({ "name": server.name, "hash": hash(&text) })
    });
    hashed.collect()
}

/// Replaces lists that are too long for a row of the log by their length and hash.
fn shorten(fields: &mut Map<String, Value>) {
    for field in ["skills", "tools", "subagents", "models", "trusted", "memories", "mcp"] {
        if Value::Object(fields.clone()).to_string().len() <= limits::SNAPSHOT_FIELDS_BYTES {
            return;
        }
        if let Some(Value::Array(items)) = fields.get(field) {
            let short = json!({ "count": items.len(), "hash": hash(&json!(items).to_string()) });
            fields.insert(field.to_owned(), short);
        }
    }
}

/// Names of skills that are new, deleted, or have another hash.
fn skill_changes(before: &[Value], next: &[Value]) -> Value {
    let find = |list: &[Value], name: &Value| list.iter().find(|skill| skill["name"] == *name).cloned();
    let names = |list: &[Value], keep: &dyn Fn(&Value) -> bool| -> Vec<Value> {
        list.iter().filter(|skill| keep(skill)).map(|skill| skill["name"].clone()).collect()
    };
    let added = names(next, &|skill| find(before, &skill["name"]).is_none());
    let removed = names(before, &|skill| find(next, &skill["name"]).is_none());
    let changed = names(next, &|skill| find(before, &skill["name"]).is_some_and(|old| old != *skill));
    json!({ "added": added, "removed": removed, "changed": changed })
}
