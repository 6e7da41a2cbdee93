//! What definitions refer to by name. Each definition is destructured field by field, so that the compiler asks for
//! every new field whether it is a reference.

use crate::definitions::agent::{Agent, SessionTool, SideConfig};
use crate::definitions::catalog::Catalog;
use crate::definitions::memory::{Memory, MemoryEntry};
use crate::definitions::model::Model;
use crate::definitions::package::ReferenceKind;
use crate::definitions::prompt::{Prompt, PromptPart, PromptText, ToolEntry};
use crate::definitions::skill::{Skill, SkillEntry, SkillHead, Skills};

/// A reference in a definition.
pub struct Reference<'a> {
    /// What the definition is.
    pub kind: Kind,
    /// Its name.
    pub name: &'a str,
    /// The field, as complaints write it: `tools[1].name` is `tools[1]`.
    pub field: String,
    /// What it may stand for.
    pub sought: ReferenceKind,
    /// What it names.
    pub target: &'a mut String,
}

impl Catalog {
    /// Shows every reference of every definition. Tools, effects, hooks, endpoints and MCP servers refer to none.
    pub fn each_reference(&mut self, look: &mut dyn FnMut(Reference<'_>)) {
        for (name, model) in &mut self.models {
            of_model(model, &mut |field, sought, target| {
                look(Reference { kind: Kind::Model, name, field, sought, target });
            });
        }
        for (name, prompt) in &mut self.prompts {
            of_prompt(prompt, &mut |field, sought, target| {
                look(Reference { kind: Kind::Prompt, name, field, sought, target });
            });
        }
        for (name, skill) in &mut self.skills {
            of_skill(skill, &mut |field, sought, target| {
                look(Reference { kind: Kind::Skill, name, field, sought, target });
            });
        }
        for (name, memory) in &mut self.memories {
            of_memory(memory, &mut |field, sought, target| {
                look(Reference { kind: Kind::Memory, name, field, sought, target });
            });
        }
        for (name, agent) in &mut self.agents {
            of_agent(agent, &mut |field, sought, target| {
                look(Reference { kind: Kind::Agent, name, field, sought, target });
            });
        }
    }
}

/// The callback for each reference: its field, the kinds of target that it accepts, and its target.
type ReferenceVisitor<'l> = &'l mut dyn FnMut(String, ReferenceKind, &mut String);

fn of_model(model: &mut Model, look: ReferenceVisitor<'_>) {
    let Model {
        name: _,
        provider: _,
        api: _,
        model: _,
        base_url: _,
        api_key_env: _,
        input_price: _,
        output_price: _,
        cached_price: _,
        kind: _,
        dimensions: _,
        query_prefix: _,
        document_prefix: _,
        batch: _,
        capabilities: _,
        fallbacks,
        retry: _,
        timeouts: _,
        provider_options: _,
    } = model;
    list("fallbacks", ReferenceKind::Model, fallbacks, look);
}

fn of_prompt(prompt: &mut Prompt, look: ReferenceVisitor<'_>) {
    let Prompt {
        name: _,
        tool_description: _,
        prompt,
        model,
        include_chat: _,
        include_past_tools: _,
        parallel_tool_calls: _,
        parallel_read_only: _,
        tool_choice: _,
        tools,
        variables: _,
        env: _,
        recent_image_threshold: _,
        provider_options: _,
        required_schema: _,
        reasoning: _,
        response_format: _,
        hooks,
        approvals,
        retry: _,
        context: _,
        summary,
        skills,
        memory,
        subagents,
    } = prompt;
    look("model".to_owned(), ReferenceKind::Model, model);
    if let PromptText::Parts(parts) = prompt {
        for (index, part) in parts.iter_mut().enumerate() {
            match part {
                PromptPart::Include { prompt } => {
                    look(format!("prompt[{index}].prompt"), ReferenceKind::Prompt, prompt);
                }
                PromptPart::Text { content: _ } | PromptPart::Env { property: _ } => {}
            }
        }
    }
    for (index, entry) in tools.iter_mut().enumerate() {
        of_entry(&format!("tools[{index}]"), entry, look);
    }
    list("hooks", ReferenceKind::Hook, hooks, look);
    if let Some(summary) = summary {
        if let Some(model) = &mut summary.model {
            look("summary.model".to_owned(), ReferenceKind::Model, model);
        }
        if let Some(prompt) = &mut summary.prompt {
            look("summary.prompt".to_owned(), ReferenceKind::Prompt, prompt);
        }
    }
    list("approvals.trusted", ReferenceKind::Callable, &mut approvals.trusted, look);
    if let Some(workers) = subagents {
        list("subagents.agents", ReferenceKind::Agent, &mut workers.agents, look);
    }
    of_memories(memory, look);
    of_skills(skills, look);
}

fn of_memories(memory: &mut [MemoryEntry], look: ReferenceVisitor<'_>) {
    for (index, MemoryEntry { name, inject: _, tools: _ }) in memory.iter_mut().enumerate() {
        look(format!("memory[{index}]"), ReferenceKind::Memory, name);
    }
}

fn of_skills(skills: &mut Skills, look: ReferenceVisitor<'_>) {
    if let Skills::Listed(listed) = skills {
        for (index, SkillEntry { name, activation: _ }) in listed.iter_mut().enumerate() {
            look(format!("skills[{index}]"), ReferenceKind::Skill, name);
        }
    }
}

fn of_memory(memory: &mut Memory, look: ReferenceVisitor<'_>) {
    let Memory {
        name: _,
        description: _,
        scope: _,
        embedding,
        chunk: _,
        retrieval: _,
        sources: _,
        limits: _,
    } = memory;
    if let Some(model) = embedding {
        look("embedding".to_owned(), ReferenceKind::Model, model);
    }
}

fn of_skill(skill: &mut Skill, look: ReferenceVisitor<'_>) {
    let Skill { head, body: _, path: _, files: _, hash: _ } = skill;
    let SkillHead { name: _, description: _, activation: _, requires, priority: _ } = head;
    list("requires", ReferenceKind::Callable, requires, look);
}

fn of_entry(field: &str, entry: &mut ToolEntry, look: ReferenceVisitor<'_>) {
    let ToolEntry {
        name,
        // Names that a server gives.
        tools: _,
        env: _,
        options: _,
        include_text_response: _,
        include_tool_calls: _,
        include_errors: _,
        init_user_message_property: _,
        init_attachments_property: _,
        init_agent_name_property: _,
        blocking: _,
        // Names of variables, all of them.
        optional: _,
        immediate: _,
        resumable: _,
        budget: _,
    } = entry;
    look(field.to_owned(), ReferenceKind::Callable, name);
}

fn of_agent(agent: &mut Agent, look: ReferenceVisitor<'_>) {
    let Agent {
        name: _,
        kind: _,
        side_a,
        side_b,
        max_session_turns: _,
        title: _,
        description: _,
        icon: _,
        expose_as_tool: _,
        expose: _,
        tool_description: _,
        env: _,
        variables: _,
        hooks,
        approvals,
        budget: _,
        diagnostics: _,
        package_name: _,
        version: _,
        author: _,
        license: _,
    } = agent;
    of_side("sideA", side_a, look);
    if let Some(side) = side_b {
        of_side("sideB", side, look);
    }
    list("hooks", ReferenceKind::Hook, hooks, look);
    list("approvals.trusted", ReferenceKind::Callable, &mut approvals.trusted, look);
}

fn of_side(field: &str, side: &mut SideConfig, look: ReferenceVisitor<'_>) {
    let SideConfig {
        prompt,
        label: _,
        stop_on_response: _,
        stop_tool,
        stop_tool_response_property: _,
        max_steps: _,
        session_stop,
        session_fail,
        session_status,
    } = side;
    look(format!("{field}.prompt"), ReferenceKind::Prompt, prompt);
    if let Some(tool) = stop_tool {
        look(format!("{field}.stopTool"), ReferenceKind::Callable, tool);
    }
    for (of, tool) in
        [("sessionStop", session_stop), ("sessionFail", session_fail), ("sessionStatus", session_status)]
    {
        if let Some(SessionTool { name, message_property: _, attachments_property: _ }) = tool {
            look(format!("{field}.{of}"), ReferenceKind::Callable, name);
        }
    }
}

fn list(field: &str, sought: ReferenceKind, names: &mut [String], look: ReferenceVisitor<'_>) {
    for (index, name) in names.iter_mut().enumerate() {
        look(format!("{field}[{index}]"), sought, name);
    }
}

/// What a definition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A model.
    Model,
    /// A prompt.
    Prompt,
    /// A function tool.
    Tool,
    /// An agent.
    Agent,
    /// An effect.
    Effect,
    /// A custom endpoint.
    Endpoint,
    /// A hook.
    Hook,
    /// A skill.
    Skill,
    /// A memory.
    Memory,
    /// An MCP server.
    Mcp,
}

impl Kind {
    /// All of them, in the order in which they build on each other.
    pub const ALL: [Kind; 10] = [
        Kind::Model,
        Kind::Prompt,
        Kind::Tool,
        Kind::Agent,
        Kind::Effect,
        Kind::Endpoint,
        Kind::Hook,
        Kind::Skill,
        Kind::Memory,
        Kind::Mcp,
    ];

    /// The folder of its files.
    pub const fn folder(self) -> &'static str {
        match self {
            Kind::Model => "models",
            Kind::Prompt => "prompts",
            Kind::Tool => "tools",
            Kind::Agent => "agents",
            Kind::Effect => "effects",
            Kind::Endpoint => "api",
            Kind::Hook => "hooks",
            Kind::Skill => "skills",
            Kind::Memory => "memories",
            Kind::Mcp => "mcp",
        }
    }

    /// Its noun.
    pub const fn noun(self) -> &'static str {
        match self {
            Kind::Model => "model",
            Kind::Prompt => "prompt",
            Kind::Tool => "tool",
            Kind::Agent => "agent",
            Kind::Effect => "effect",
            Kind::Endpoint => "endpoint",
            Kind::Hook => "hook",
            Kind::Skill => "skill",
            Kind::Memory => "memory",
            Kind::Mcp => "MCP server",
        }
    }
}
