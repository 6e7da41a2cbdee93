//! Prompts.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::definitions::catalog::Catalog;
use crate::definitions::model::refuses_effort_with_tools;
use crate::definitions::model::{Model, Provider};
use crate::definitions::prompt::{Prompt, PromptPart, PromptText, ResponseFormat, ToolChoice, may_render};
use crate::definitions::references::Kind;
use crate::definitions::subagent::OF_WORKERS;
use crate::definitions::variable::{Variable, VariableKind};
use crate::names::{cycles, wrong_callable};
use crate::validate::{Check, Subject};

impl Check<'_> {
    pub(super) fn prompts(&mut self) {
        for (name, prompt) in &self.catalog.prompts {
            let at = Subject { kind: Kind::Prompt, name };
            if let Some(wrong) = wrong_callable(name) {
                self.error(at, "name", wrong);
            }
            if prompt.tool_description.trim().is_empty() {
                self.error(at, "toolDescription", "empty: a model cannot know what the prompt is for");
            }
            if prompt.parallel_read_only && !prompt.parallel_tool_calls {
                let text = "has no effect: without `parallelToolCalls` a reply has one call";
                self.warning(at, "parallelReadOnly", text);
            }
            self.reference(at, "model", Kind::Model, &prompt.model);
            self.text(at, prompt);
            self.entries(at, prompt);
            self.workers(at, prompt);
            self.variables(at, &prompt.variables);
            self.approvals(at, &prompt.approvals);
            self.env(at, "env", &prompt.env);
            self.hook_list(at, &prompt.hooks);
            self.retries(at, "retry", &prompt.retry);
            self.context(at, prompt);
            self.summary(at, prompt);
            self.skills_of(at, prompt);
            self.memory_of(at, prompt);
            self.provider_options(at, &prompt.provider_options);
            let chain = self.catalog.model_chain(&prompt.model);
            if let Some(model) = chain.iter().find(|model| model.expects_responses()) {
                self.options_of_chat(at, &prompt.provider_options, &model.name);
            }
            if let Some(schema) = &prompt.required_schema {
                self.schema(at, "requiredSchema", schema);
            }
        }
        self.include_cycles();
        self.env_parts();
    }

    fn text(&mut self, at: Subject<'_>, prompt: &Prompt) {
        let empty = match &prompt.prompt {
            PromptText::Text(text) => text.trim().is_empty(),
            PromptText::Parts(parts) => parts.is_empty(),
        };
        if empty {
            self.warning(at, "prompt", "empty: the model is told nothing");
        }
        if let PromptText::Text(text) = &prompt.prompt
            && text.contains("{{env ")
        {
            let part = r#"{ "type": "env", "property": "NAME" }"#;
            let message = format!(
                "`{{{{env …}}}}` is sent to the model as it stands here: a value is `{{{{env NAME}}}}` in the text of a .md file, and {part} in a list of parts"
            );
            self.warning(at, "prompt", message);
        }
        for (index, part) in prompt.parts().iter().enumerate() {
            if let PromptPart::Include { prompt } = part {
                self.reference(at, &format!("prompt[{index}].prompt"), Kind::Prompt, prompt);
            }
        }
    }

    fn entries(&mut self, at: Subject<'_>, prompt: &Prompt) {
        let mut seen = BTreeSet::new();
        for (index, entry) in prompt.tools.iter().enumerate() {
            let field = format!("tools[{index}]");
            if !seen.insert(&entry.name) {
                self.error(at, &field, format!("\"{}\" is listed twice", entry.name));
            }
            match OF_WORKERS.contains(&entry.name.as_str()) {
                true => self.worker_tool(at, &field, prompt, entry),
                false => self.entry(at, &field, entry),
            }
        }
        match prompt.tool_choice {
            ToolChoice::Required if prompt.tools.is_empty() && prompt.workers().is_none() => {
                self.error(at, "toolChoice", "`required`, but there are no tools");
            }
            _ => {}
        }
        let model = self.catalog.models.get(&prompt.model);
        let offers = !prompt.tools.is_empty() || prompt.workers().is_some();
        if offers && model.is_some_and(|model| !model.capabilities.supports_tool_calls) {
            self.warning(
                at,
                "tools",
                format!("the model \"{}\" cannot call tools; none are sent", prompt.model),
            );
        }
        let reasons = prompt.reasoning.as_ref().is_some_and(|r| r.effort.is_some() || r.max_tokens.is_some());
        let chain = || self.catalog.model_chain(&prompt.model);
        self.reasoning(at, prompt);
        self.response_format(at, prompt);
        if reasons
            && prompt.tool_choice == ToolChoice::Required
            && chain().iter().any(|model| model.provider == Provider::Anthropic)
        {
            self.warning(
                at,
                "toolChoice",
                "`required` goes with no reasoning at Anthropic: its models are asked with `auto` instead",
            );
        }
    }

    /// Warns about reasoning settings that some models do not receive.
    fn reasoning(&mut self, at: Subject<'_>, prompt: &Prompt) {
        let catalog = self.catalog;
        let chain = catalog.model_chain(&prompt.model);
        let tokens = prompt.reasoning.as_ref().is_some_and(|reasoning| reasoning.max_tokens.is_some());
        if let Some(model) = chain.iter().find(|model| tokens && model.provider == Provider::Openai) {
            self.warning(
                at,
                "reasoning.maxTokens",
                format!("OpenAI's APIs have no field for it: \"{}\" is not told", model.name),
            );
        }
        let effort = prompt.reasoning.as_ref().is_some_and(|reasoning| reasoning.effort.is_some());
        let refuses = |model: &&&Model| {
            model.provider == Provider::Openai
                && !model.expects_responses()
                && refuses_effort_with_tools(&model.model)
        };
        if let Some(model) = chain.iter().find(refuses).filter(|_| effort && !prompt.tools.is_empty()) {
            self.warning(
                at,
                "reasoning.effort",
                format!(
                    "\"{}\" refuses functions together with an effort in chat completions: with tools it is asked for none, unless its `api` is \"responses\"",
                    model.name
                ),
            );
        }
    }

    /// Checks that each model of a prompt supports JSON output, in the form that its API requires.
    fn response_format(&mut self, at: Subject<'_>, prompt: &Prompt) {
        let catalog = self.catalog;
        let Some(ResponseFormat::Json { schema }) = &prompt.response_format else { return };
        if let Some(schema) = schema {
            self.schema(at, "responseFormat.schema", schema);
        }
        let chain = catalog.model_chain(&prompt.model);
        for (place, model) in chain.iter().enumerate() {
            let name = &model.name;
            let own = |options: &Map<String, Value>| match json_option(model) {
                "text" => options.get("text").is_some_and(|text| text.get("format").is_some()),
                option => options.contains_key(option),
            };
            match (model.capabilities.supports_json_mode, place) {
                (false, 0) => self.error(
                    at,
                    "responseFormat",
                    format!(
                        "the model \"{name}\" is not said to know JSON: set its `capabilities.supportsJsonMode` if its API can be held to it, or choose another model"
                    ),
                ),
                (false, _) => self.warning(
                    at,
                    "responseFormat",
                    format!("the fallback \"{name}\" cannot be held to JSON: it is asked for a plain answer"),
                ),
                (true, _) if model.provider == Provider::Anthropic && schema.is_none() => {
                    let message = format!("Anthropic holds answers to a schema only, and \"{name}\" is asked there: give `responseFormat.schema`");
                    self.error(at, "responseFormat", message);
                }
                (true, _) if own(&prompt.provider_options) || own(&model.provider_options) => {
                    let option = json_option(model);
                    let message = format!("`providerOptions.{option}` would take its place for \"{name}\": say it once");
                    self.error(at, "responseFormat", message);
                }
                (true, _) => {}
            }
        }
        let speaks = |text: &str| text.to_ascii_lowercase().contains("json");
        let told = match &prompt.prompt {
            PromptText::Text(text) => speaks(text),
            PromptText::Parts(parts) => parts.iter().any(|part| match part {
                PromptPart::Text { content } => speaks(content),
                PromptPart::Include { .. } | PromptPart::Env { .. } => true,
            }),
        };
        if schema.is_none() && !told && chain.iter().any(|model| model.provider == Provider::Openai) {
            let message = "says nothing of JSON: OpenAI's APIs without a schema refuse such requests, or give blanks without end";
            self.warning(at, "prompt", message);
        }
    }

    fn include_cycles(&mut self) {
        let catalog = self.catalog;
        let names: Vec<&str> = catalog.prompts.keys().map(String::as_str).collect();
        for cycle in cycles(&names, &|name| includes(catalog, name)) {
            let Some(name) = cycle.first() else { continue };
            let at = Subject { kind: Kind::Prompt, name };
            self.error(at, "prompt", format!("includes itself: {}", cycle.join(" → ")));
        }
    }

    /// Checks every `env` part on every path on which it is rendered: from each prompt that is not merely
    /// included by others.
    fn env_parts(&mut self) {
        let catalog = self.catalog;
        let included: BTreeSet<&str> =
            catalog.prompts.keys().flat_map(|name| includes(catalog, name)).collect();
        let sides = |agent: &'_ crate::definitions::Agent| {
            let b = agent.side_b.as_ref().map(|side| side.prompt.clone());
            [Some(agent.side_a.prompt.clone()), b].into_iter().flatten()
        };
        let mut used: BTreeSet<String> = catalog.agents.values().flat_map(sides).collect();
        let listed = catalog.prompts.values().flat_map(|prompt| &prompt.tools);
        used.extend(listed.map(|entry| entry.name.clone()));
        let mut found = BTreeSet::new();
        for (name, prompt) in &catalog.prompts {
            if used.contains(name) || !included.contains(name.as_str()) {
                walk(catalog, &mut vec![prompt], &mut found);
            }
        }
        for (name, index, message) in found {
            let at = Subject { kind: Kind::Prompt, name };
            self.error(at, format!("prompt[{index}].property"), message);
        }
    }
}

/// The request field that restricts a model to JSON.
fn json_option(model: &Model) -> &'static str {
    match model.provider {
        Provider::Anthropic => "output_config",
        _ if model.expects_responses() => "text",
        _ => "response_format",
    }
}

fn includes<'a>(catalog: &'a Catalog, name: &str) -> Vec<&'a str> {
    let parts = catalog.prompts.get(name).map(Prompt::parts).unwrap_or_default();
    let mut names: Vec<&str> = Vec::new();
    for part in parts {
        if let PromptPart::Include { prompt } = part
            && !names.contains(&prompt.as_str())
        {
            names.push(prompt);
        }
    }
    names
}

/// Prompt, index of the part, and error.
type PartErrors<'a> = BTreeSet<(&'a str, usize, String)>;

/// Checks the last prompt of `path`; the others are those that include it.
fn walk<'a>(catalog: &'a Catalog, path: &mut Vec<&'a Prompt>, found: &mut PartErrors<'a>) {
    let Some(prompt) = path.last().copied() else { return };
    for (index, part) in prompt.parts().iter().enumerate() {
        match part {
            PromptPart::Text { .. } => {}
            PromptPart::Env { property } => {
                if let Some(message) = wrong_env_part(catalog, path, property) {
                    found.insert((&prompt.name, index, message));
                }
            }
            PromptPart::Include { prompt: name } => {
                if let Some(included) = catalog.prompts.get(name)
                    && path.iter().all(|outer| outer.name != included.name)
                {
                    path.push(included);
                    walk(catalog, path, found);
                    path.pop();
                }
            }
        }
    }
}

/// The definition that declares a name as a secret. The value is then secret, wherever it comes from.
pub fn declares_secret(catalog: &Catalog, name: &str) -> Option<String> {
    let secret = |variables: &[Variable]| {
        variables.iter().any(|variable| variable.name == name && variable.kind == VariableKind::Secret)
    };
    let tools = catalog.tools.iter().filter(|(_, tool)| secret(&tool.variables));
    let agents = catalog.agents.iter().filter(|(_, agent)| secret(&agent.variables));
    let prompts = catalog.prompts.iter().filter(|(_, prompt)| secret(&prompt.variables));
    let effects = catalog.effects.iter().filter(|(_, effect)| secret(&effect.variables));
    let endpoints = catalog.endpoints.iter().filter(|(_, endpoint)| secret(&endpoint.variables));
    let hooks = catalog.hooks.iter().filter(|(_, hook)| secret(&hook.variables));
    let named = |kind: Kind, name: &dyn std::fmt::Display| format!("{} \"{name}\"", kind.noun());
    tools
        .map(|(by, _)| named(Kind::Tool, by))
        .chain(agents.map(|(by, _)| named(Kind::Agent, by)))
        .chain(prompts.map(|(by, _)| named(Kind::Prompt, by)))
        .chain(effects.map(|(by, _)| named(Kind::Effect, by)))
        .chain(endpoints.map(|(by, _)| named(Kind::Endpoint, by)))
        .chain(hooks.map(|(by, _)| named(Kind::Hook, by)))
        .next()
}

fn wrong_env_part(catalog: &Catalog, path: &[&Prompt], name: &str) -> Option<String> {
    if catalog.is_secret(name) {
        return Some(format!("\"{name}\" is a secret of the deployment and cannot be part of a prompt"));
    }
    if may_render(path, name) {
        let by = declares_secret(catalog, name)?;
        return Some(format!(
            "\"{name}\" is declared as a secret by the {by} and cannot be part of a prompt"
        ));
    }
    if path.iter().any(|prompt| prompt.declares(name) == Some(VariableKind::Secret)) {
        return Some(format!("\"{name}\" is declared as a secret and cannot be part of a prompt"));
    }
    let by = match path.first() {
        Some(outer) if path.len() > 1 => format!(" here, or in \"{}\", which includes it", outer.name),
        _ => String::new(),
    };
    Some(format!(
        "\"{name}\" must be declared in `variables` with type `text`{by}; what is not declared is a secret"
    ))
}
