//! Where values come from (spec §11.2, §35.1; docs/variables.md): the tool entry's own, then the thread's, the account's, the
//! instance's, the agent's, the prompt's; the first that has the name gives it.
//!
//! * Here: the order. `own`: the thread's values. `levels`: those of the account and the instance. `missing`: what a new thread
//!   must have. `secrets`: what must not be shown.

pub(crate) mod levels;
pub(crate) mod missing;
pub(crate) mod own;
pub(crate) mod secrets;

use crate::engine::definitions::Definitions;
use crate::engine::features::Variables;
use crate::env::Held;
use crate::error::{Error, Result};
use crate::spec::catalog::RESERVED_PREFIX;
use crate::spec::graph::{Declared, Env};
use crate::spec::hook::Hook;
use crate::spec::variable::Variable;
use crate::spec::{Tool, ToolEntry, VariableKind};

/// A value that was found.
#[derive(Clone)]
pub(crate) struct Value {
    pub(crate) kind: VariableKind,
    /// Or why it cannot be read: then nothing further down steps in.
    pub(crate) text: Result<String>,
}

impl Variables<'_> {
    /// A value of the deployment: a Worker variable, or else a value of the instance. The runtime's own settings are
    /// invisible to definitions.
    pub(crate) fn deployment(&self, name: &str) -> Option<String> {
        self.text_or_log(name, Ok(self.of_deployment(name)))
    }

    /// A value for a prompt's `env` part: an empty text where it is a secret, which no part may show.
    pub(crate) fn prompt_env(&self, definitions: &Definitions<'_>, name: &str) -> Option<String> {
        let found = self.resolve(name, &[], &[&definitions.agent.env, &definitions.prompt.env]);
        let secret = matches!(&found, Ok(Some(Value { kind: VariableKind::Secret, .. })));
        if secret || self.declared().is_secret(name) {
            self.log_once(format!("{name} is a secret: nothing stands in its place in a prompt."));
            return Some(String::new());
        }
        self.text_or_log(name, found)
    }

    /// A value for what runs apart from any prompt: an effect or an endpoint.
    pub(crate) fn agent_env(&self, agent: &str, name: &str) -> Option<String> {
        let env = self.catalog.agents.get(agent).map(|agent| &agent.env);
        self.text_or_log(name, self.resolve(name, &[], env.as_slice()))
    }

    /// A value for a call of a tool; the prompt's entry of it has the first word.
    pub(crate) fn tool_env(
        &self,
        definitions: &Definitions<'_>,
        entry: &ToolEntry,
        name: &str,
    ) -> Option<String> {
        let below = [&definitions.agent.env, &definitions.prompt.env];
        self.text_or_log(name, self.resolve(name, &[&entry.env], &below))
    }

    /// A value for a call of a hook.
    pub(crate) fn hook_env(&self, definitions: &Definitions<'_>, name: &str) -> Option<String> {
        self.text_or_log(name, self.resolve(name, &[], &[&definitions.agent.env, &definitions.prompt.env]))
    }

    /// Why a hook cannot run, as [`Thread::missing_variable`] says it of a tool. Its values are known by now.
    pub(crate) fn hook_lacks(&self, definitions: &Definitions<'_>, hook: &Hook) -> Option<String> {
        let below = [&definitions.agent.env, &definitions.prompt.env];
        self.first_lacking(&hook.variables, &[], &below).map(|(name, error)| match error {
            Some(error) => format!("it cannot run: {}", error.message),
            None => format!("it needs a value for {name}, which has none"),
        })
    }

    /// Why a tool cannot run: a variable that it requires has no value, or one that cannot be read (spec §6.3). Before
    /// that, sees to it that its values are known, also of a tool that the agent's prompts do not lead to.
    pub(crate) async fn missing_variable(
        &self,
        definitions: &Definitions<'_>,
        entry: &ToolEntry,
        tool: &Tool,
    ) -> Result<Option<String>> {
        if !tool.variables.is_empty() {
            self.refresh_env().await?;
        }
        Ok(self.lacking(definitions, entry, tool))
    }

    #[inline(never)]
    pub(crate) fn lacking(
        &self,
        definitions: &Definitions<'_>,
        entry: &ToolEntry,
        tool: &Tool,
    ) -> Option<String> {
        let below = [&definitions.agent.env, &definitions.prompt.env];
        self.first_lacking(&tool.variables, &[&entry.env], &below).map(|(name, error)| match error {
            Some(error) => format!("\"{}\" cannot run: {}", tool.name, error.message),
            None => format!("\"{}\" needs a value for {name}, which has none.", tool.name),
        })
    }

    /// The first of the variables that the agent and its prompt require without which they are.
    pub(crate) fn agent_lacks(&self, definitions: &Definitions<'_>) -> Option<String> {
        let below = [&definitions.agent.env, &definitions.prompt.env];
        let required = [&definitions.agent.variables, &definitions.prompt.variables];
        let lacks = required.into_iter().find_map(|variables| self.first_lacking(variables, &[], &below));
        lacks.map(|(name, _)| name.to_owned())
    }

    /// The first of these variables that cannot be read, and why, or that is required and has no value.
    fn first_lacking<'v>(
        &self,
        variables: &'v [Variable],
        above: &[&Env],
        below: &[&Env],
    ) -> Option<(&'v str, Option<Error>)> {
        variables.iter().find_map(|variable| {
            let found = self.resolve(&variable.name, above, below);
            match found.and_then(|found| found.map(|value| value.text).transpose()) {
                Err(error) => Some((variable.name.as_str(), Some(error))),
                Ok(None) if variable.required => Some((&variable.name, None)),
                Ok(_) => None,
            }
        })
    }

    /// The value of a name, in the order of the module.
    #[inline(never)]
    pub(crate) fn resolve(&self, name: &str, above: &[&Env], below: &[&Env]) -> Result<Option<Value>> {
        if name.starts_with(RESERVED_PREFIX) {
            return Ok(None);
        }
        if let Some(value) = self.defined(name, above) {
            return Ok(Some(value));
        }
        let own = self.own(name)?;
        Ok(self.lower_levels(name, own, below))
    }

    /// The same from the thread's values on, where these are known.
    fn lower_levels(&self, name: &str, own: Option<Held>, below: &[&Env]) -> Option<Value> {
        let held = own.or_else(|| self.ephemeral.env.levels.account(name));
        held.map(|held| self.typed(name, &held))
            .or_else(|| self.of_deployment(name))
            .or_else(|| self.defined(name, below))
    }

    #[inline(never)]
    pub(crate) fn of_deployment(&self, name: &str) -> Option<Value> {
        if name.starts_with(RESERVED_PREFIX) {
            return None;
        }
        match self.host.var(name) {
            Some(text) => Some(Value { kind: self.declared().kind(name), text: Ok(text) }),
            None => self.ephemeral.env.levels.instance(name).map(|held| self.typed(name, &held)),
        }
    }

    /// A value that a definition gives.
    fn defined(&self, name: &str, envs: &[&Env]) -> Option<Value> {
        let text = envs.iter().find_map(|env| env.get(name))?;
        Some(Value { kind: self.declared().kind(name), text: Ok(text.clone()) })
    }

    /// A value that was stored with a type. What a definition declares as a secret is one, whatever type it was given.
    #[inline(never)]
    fn typed(&self, name: &str, held: &Held) -> Value {
        let kind = if self.declared().is_secret(name) { VariableKind::Secret } else { held.kind };
        Value { kind, text: held.read().map(str::to_owned) }
    }

    pub(crate) fn declared(&self) -> &Declared {
        self.ephemeral.env.declared.get_or_init(|| Declared::of(&self.catalog))
    }

    /// The text of a value. One that cannot be read is told to the operator, and is none.
    #[inline(never)]
    fn text_or_log(&self, name: &str, found: Result<Option<Value>>) -> Option<String> {
        match found.and_then(|found| found.map(|value| value.text).transpose()) {
            Ok(text) => text,
            Err(error) => {
                self.log_once(format!("{name} has no value here: {error}"));
                None
            }
        }
    }
}
