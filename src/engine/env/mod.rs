//! Resolution of variables (spec §11.2, §35.1; docs/variables.md). The first level that has the name provides
//! the value: the tool entry, the thread, the account, the instance, the agent, the prompt.
//!
//! * Here: the order. `own`: the thread's values. `levels`: those of the account and the instance. `missing`:
//!   the requirements of a new thread. `secrets`: redaction.

mod levels;
pub(super) mod missing;
mod own;
mod secrets;

use crate::definitions::catalog::RESERVED_PREFIX;
use crate::definitions::graph::{DeclaredVariables, Env};
use crate::definitions::hook::Hook;
use crate::definitions::variable::Variable;
use crate::definitions::{Tool, ToolEntry, VariableKind};
use crate::engine::definitions::Definitions;
use crate::engine::features::Variables;
use crate::env::StoredValue;
use crate::error::{Error, Result};

/// A resolved value.
#[derive(Clone)]
pub(super) struct Value {
    pub(super) kind: VariableKind,
    /// The text, or the reason why it cannot be read. An unreadable value does not fall through to lower
    /// levels.
    pub(super) text: Result<String>,
}

impl Variables<'_> {
    /// A value of the deployment: a Worker variable, or else a value of the instance. Definitions cannot read
    /// the runtime's own settings.
    pub(super) fn deployment(&self, name: &str) -> Option<String> {
        self.text_or_log(name, Ok(self.deployment_variable(name)))
    }

    /// A value for a prompt's `env` part. A secret yields an empty text, because prompts may not show it.
    pub(crate) fn prompt_env(&self, definitions: &Definitions<'_>, name: &str) -> Option<String> {
        let found = self.resolve(name, &[], &[&definitions.agent.env, &definitions.prompt.env]);
        let secret = matches!(&found, Ok(Some(Value { kind: VariableKind::Secret, .. })));
        if secret || self.declared().is_secret(name) {
            self.log_once(format!("{name} is a secret: nothing stands in its place in a prompt."));
            return Some(String::new());
        }
        self.text_or_log(name, found)
    }

    /// A value for an effect or an endpoint, which have no prompt.
    pub(crate) fn agent_env(&self, agent: &str, name: &str) -> Option<String> {
        let env = self.catalog.agents.get(agent).map(|agent| &agent.env);
        self.text_or_log(name, self.resolve(name, &[], env.as_slice()))
    }

    /// A value for a tool call. The prompt's entry for the tool takes precedence.
    pub(super) fn tool_env(
        &self,
        definitions: &Definitions<'_>,
        entry: &ToolEntry,
        name: &str,
    ) -> Option<String> {
        let below = [&definitions.agent.env, &definitions.prompt.env];
        self.text_or_log(name, self.resolve(name, &[&entry.env], &below))
    }

    /// A value for a call of a hook.
    pub(super) fn hook_env(&self, definitions: &Definitions<'_>, name: &str) -> Option<String> {
        self.text_or_log(name, self.resolve(name, &[], &[&definitions.agent.env, &definitions.prompt.env]))
    }

    /// The reason why a hook cannot run, like [`Variables::missing_variable`] for tools. The values must be
    /// loaded.
    pub(super) fn hook_lacks(&self, definitions: &Definitions<'_>, hook: &Hook) -> Option<String> {
        let below = [&definitions.agent.env, &definitions.prompt.env];
        self.first_lacking(&hook.variables, &[], &below).map(|(name, error)| match error {
            Some(error) => format!("it cannot run: {}", error.message),
            None => format!("it needs a value for {name}, which has none"),
        })
    }

    /// The reason why a tool cannot run: a required variable without a value, or an unreadable one (spec
    /// §6.3). Loads the values first, also for tools that the agent's prompts do not reach.
    pub(super) async fn missing_variable(
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
    pub(super) fn lacking(
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

    /// The first required variable of the agent or its prompt that has no readable value.
    pub(super) fn agent_lacks(&self, definitions: &Definitions<'_>) -> Option<String> {
        let below = [&definitions.agent.env, &definitions.prompt.env];
        let required = [&definitions.agent.variables, &definitions.prompt.variables];
        let lacks = required.into_iter().find_map(|variables| self.first_lacking(variables, &[], &below));
        lacks.map(|(name, _)| name.to_owned())
    }

    /// The first unreadable variable with its reason, or the first required one without a value.
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

    /// Resolves a name, in the order of the module.
    #[inline(never)]
    pub(super) fn resolve(&self, name: &str, above: &[&Env], below: &[&Env]) -> Result<Option<Value>> {
        if name.starts_with(RESERVED_PREFIX) {
            return Ok(None);
        }
        if let Some(value) = self.defined(name, above) {
            return Ok(Some(value));
        }
        let own = self.own(name)?;
        Ok(self.lower_levels(name, own, below))
    }

    /// Resolves a name from the thread's level down, if the values are loaded.
    fn lower_levels(&self, name: &str, own: Option<StoredValue>, below: &[&Env]) -> Option<Value> {
        let held = own.or_else(|| self.ephemeral.env.levels.account(name));
        held.map(|held| self.typed(name, &held))
            .or_else(|| self.deployment_variable(name))
            .or_else(|| self.defined(name, below))
    }

    #[inline(never)]
    pub(super) fn deployment_variable(&self, name: &str) -> Option<Value> {
        if name.starts_with(RESERVED_PREFIX) {
            return None;
        }
        match self.host.var(name) {
            Some(text) => Some(Value { kind: self.declared().kind(name), text: Ok(text) }),
            None => self.ephemeral.env.levels.instance(name).map(|held| self.typed(name, &held)),
        }
    }

    /// A value from a definition.
    fn defined(&self, name: &str, envs: &[&Env]) -> Option<Value> {
        let text = envs.iter().find_map(|env| env.get(name))?;
        Some(Value { kind: self.declared().kind(name), text: Ok(text.clone()) })
    }

    /// A stored value. It is a secret if its stored type or its declaration says so.
    #[inline(never)]
    fn typed(&self, name: &str, held: &StoredValue) -> Value {
        let kind = if self.declared().is_secret(name) { VariableKind::Secret } else { held.kind };
        Value { kind, text: held.read().map(str::to_owned) }
    }

    pub(super) fn declared(&self) -> &DeclaredVariables {
        self.ephemeral.env.declared.get_or_init(|| DeclaredVariables::of(&self.catalog))
    }

    /// The text of a value. An unreadable value is logged and yields `None`.
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
