//! Values of variables in a family of threads (spec §11.4, §25; docs/variables.md). A child starts with its
//! own given values and with those of its parent's thread, except for names that the child's definitions
//! declare as `scoped`. Values travel in envelopes, encrypted for the child, which stores them as its own.
//! The child treats them as its secrets: its reports are redacted before they leave.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::definitions::message::ToolResult;
use crate::definitions::{Agent, graph};
use crate::engine::env::missing::RequiredVariables;
use crate::engine::features::Descendants;
use crate::engine::subagents::envelope::EnvelopeBody;
use crate::env;
use crate::env::{Change, EncryptedRow, PlainVariable, VariableSet};
use crate::error::{Error, Result};
use crate::host::Sql;
use crate::json;
use crate::store::children::Child;
use crate::store::state::State;

/// Values in an envelope to a child.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EncryptedValues {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    values: Vec<EncryptedRow>,
    /// Names to delete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    deleted: Vec<String>,
}

impl EncryptedValues {
    /// Whether it changes nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty() && self.deleted.is_empty()
    }
}

/// Values and restrictions of a child beyond what it inherits.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnValues {
    /// The child's own values.
    pub(super) values: Vec<PlainVariable>,
    /// Names that the child does not inherit, at any place of their row ([`base`]).
    pub(super) withheld: Vec<String>,
}

/// The binding of the encrypted values in an envelope.
fn object(child: &str) -> String {
    format!("envelope to thread {child}")
}

/// The name without its place in a row: `CITY` of `CITY__2` (spec §8.7).
fn base(name: &str) -> &str {
    match name.rsplit_once("__") {
        Some((base, place)) if !place.is_empty() && place.bytes().all(|byte| byte.is_ascii_digit()) => base,
        _ => name,
    }
}

/// The names that an agent's definitions declare as `scoped`. Its threads do not inherit them.
fn scoped<'c>(catalog: &'c crate::definitions::Catalog, agent: &'c Agent) -> Vec<&'c str> {
    let found = graph::reach(catalog, agent);
    let variables = found.iter().flat_map(|found| found.item.variables());
    variables.filter(|variable| variable.scoped).map(|variable| variable.name.as_str()).collect()
}

/// Whether the list contains a name or the base of its row.
fn names<S: AsRef<str>>(list: &[S], name: &str) -> bool {
    list.iter().any(|listed| listed.as_ref() == name || listed.as_ref() == base(name))
}

impl Descendants<'_> {
    /// The initial values of a child of this agent.
    ///
    /// # Errors
    /// `encryption_unavailable` for a value of the thread that cannot be read. No other value may take its
    /// place in a child.
    pub(super) fn child_values(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        agent: &Agent,
        given: &OwnValues,
    ) -> Result<Vec<PlainVariable>> {
        let mut values = Vec::new();
        if state.meta.env > 0 {
            let scoped = scoped(&self.catalog, agent);
            for (name, held) in self.variables().own_set(state, sql)?.iter() {
                let own = given.values.iter().any(|value| value.name == name);
                if !own && !names(&scoped, name) && !names(&given.withheld, name) {
                    let text = held.read()?.to_owned();
                    values.push(PlainVariable { name: name.to_owned(), kind: held.kind, text });
                }
            }
        }
        values.extend(given.values.iter().cloned());
        Ok(values)
    }

    /// The variables that a child of this agent requires, and those without a value (spec §25). Considers
    /// these values, the account, the instance, the Worker's variables and the definitions.
    pub(super) fn child_needs(&self, agent: &Agent, values: &[PlainVariable]) -> RequiredVariables {
        self.variables().needs(agent, &|name| values.iter().any(|value| value.name == name))
    }

    /// Loads the values of the account and the instance if a child of this agent may need them.
    pub(crate) async fn ready_child(&self, agent: &Agent) -> Result<()> {
        if self.child_needs(agent, &[]).missing.is_empty() {
            Ok(())
        } else {
            self.variables().refresh_env().await
        }
    }

    /// The initial values of a child, encrypted for it, and its needs. A child that waits for more values
    /// stores only its given ones.
    pub(super) fn begin_with(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        agent: &Agent,
        child: &str,
        given: &OwnValues,
    ) -> Result<(EncryptedValues, RequiredVariables)> {
        let values = self.child_values(state, sql, agent, given)?;
        let needs = self.child_needs(agent, &values);
        let begins = if needs.missing.is_empty() { &values } else { &given.values };
        Ok((self.seal_for(child, begins)?, needs))
    }

    /// Encrypts the initial values of a child. Without values it needs no keys.
    ///
    /// # Errors
    /// `encryption_unavailable` without keys; `too_large` for more than a thread may have.
    pub(crate) fn seal_for(&self, child: &str, values: &[PlainVariable]) -> Result<EncryptedValues> {
        if values.is_empty() {
            return Ok(EncryptedValues::default());
        }
        VariableSet::empty("").changed(&Change::of(values))?;
        let sealed = env::seal(&object(child), values, &self.variables().keys()?, &|| self.host.random())?;
        Ok(EncryptedValues { values: sealed, deleted: Vec::new() })
    }

    /// Sends a change of the thread's values to its existing children, in the same transition (spec §11.3).
    /// Skips names that their definitions declare as `scoped`, and values that were given to them alone.
    pub(crate) fn push_env(&self, state: &mut State, sql: &dyn Sql, change: &Change) -> Result<()> {
        if state.meta.children == 0 {
            return Ok(());
        }
        let children: Vec<Child> =
            state.open_children(sql)?.iter().filter(|child| child.state.exists()).cloned().collect();
        for mut child in children {
            let agent = self.catalog.agents.get(&child.agent);
            let scoped = agent.map(|agent| scoped(&self.catalog, agent)).unwrap_or_default();
            let reaches = |name: &&str| !names(&scoped, name) && !names(&child.facts.own, name);
            let mut values = Vec::new();
            for name in change.touched().filter(reaches) {
                if let Some(held) = self.variables().own_set(state, sql)?.get(name) {
                    let text = held.read()?.to_owned();
                    values.push(PlainVariable { name: name.to_owned(), kind: held.kind, text });
                }
            }
            let deleted = change.deleted().filter(reaches).map(str::to_owned).collect();
            let sealed = EncryptedValues { deleted, ..self.seal_for(&child.reference, &values)? };
            if !sealed.is_empty() {
                self.subagents().send_to_child(state, sql, &mut child, EnvelopeBody::SetEnv(sealed))?;
                state.update_child(sql, child)?;
            }
        }
        Ok(())
    }

    /// Applies the parent's change of values in a child, inside the transition that receives it. A failure is
    /// logged for the operator, because the parent cannot correct it.
    pub(super) fn receive_env(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        sealed: EncryptedValues,
    ) -> Result<()> {
        if state.meta.terminated_us.is_some() {
            return Ok(());
        }
        let change = match self.open_sealed(&state.meta.thread_id, sealed) {
            Ok(change) => change,
            Err(error) => {
                self.not_taken(&error);
                return Ok(());
            }
        };
        // All or nothing: check the whole change before the first write.
        let mut fits = self.variables().own_set(state, sql)?.changed(&change).map(drop);
        if change.set().next().is_some() {
            fits = fits.and_then(|()| self.variables().keys().map(drop));
        }
        match fits {
            Ok(()) => self.variables().store_env(state, sql, &change),
            Err(error) => {
                self.not_taken(&error);
                Ok(())
            }
        }
    }

    fn not_taken(&self, error: &Error) {
        self.variables().log_once(format!("values that the parent has set were not taken over: {error}"));
    }

    /// Decrypts the values in an envelope to this thread.
    ///
    /// # Errors
    /// `encryption_unavailable` for a value that no key opens here.
    pub(crate) fn open_sealed(&self, thread_id: &str, sealed: EncryptedValues) -> Result<Change> {
        // Deletions need no key.
        let keys = if sealed.values.is_empty() { env::Keys::default() } else { self.variables().keys()? };
        env::open(&object(thread_id), sealed.values, sealed.deleted, &keys)
    }
}

/// The error result for a child that lacks values. `request` is the id under which they can be posted (spec
/// §25).
pub(super) fn env_required(
    agent: &str,
    needs: &RequiredVariables,
    thread: &str,
    request: &str,
) -> ToolResult {
    let endpoint = format!("/api/threads/{thread}/variables/{request}");
    let text = format!(
        "\"{agent}\" cannot begin: it needs values for {}. A person can give them with POST {endpoint}, which starts it; its result then comes as a message. Do not ask for them in this conversation.",
        needs.missing.join(", ")
    );
    let data = json!({
        "request_id": request, "endpoint": endpoint, "required": needs.required, "missing": needs.missing, "agent": agent,
    });
    let error_data = if let Value::Object(data) = data { Some(data) } else { None };
    ToolResult { error_code: Some("subagent_env_required".into()), error_data, ..ToolResult::error(text) }
}
