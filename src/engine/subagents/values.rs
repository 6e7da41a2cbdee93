//! Values of variables in a family (spec §11.4, §25; docs/variables.md). A child begins with the values of its parent's
//! thread, but for those that the child's own definitions declare as `scoped`, and with what it is given besides. They
//! travel in envelopes, encrypted for the child alone, which stores them as its own; from then on they are secrets of the
//! child: what it reports is redacted before it leaves.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::engine::env::missing::Needs;
use crate::engine::features::Descendants;
use crate::engine::subagents::envelope::EnvelopeBody;
use crate::env;
use crate::env::{Change, Plain, Set, Stored};
use crate::error::{Error, Result};
use crate::host::Sql;
use crate::json;
use crate::spec::message::ToolResult;
use crate::spec::{Agent, graph};
use crate::store::children::Child;
use crate::store::state::State;

/// Values in an envelope to a child.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EncryptedValues {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    values: Vec<Stored>,
    /// Names whose values go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    deleted: Vec<String>,
}

impl EncryptedValues {
    /// Whether it says nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty() && self.deleted.is_empty()
    }
}

/// What a child is given besides what it inherits.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnValues {
    /// Its own values.
    pub(crate) values: Vec<Plain>,
    /// Names of the parent's that it does not inherit, whatever their place in a row ([`base`]).
    pub(crate) withheld: Vec<String>,
}

/// What the values in an envelope are bound to.
fn object(child: &str) -> String {
    format!("envelope to thread {child}")
}

/// The name without its place in a row: `CITY` of `CITY__2` (spec §8.7).
pub(crate) fn base(name: &str) -> &str {
    match name.rsplit_once("__") {
        Some((base, place)) if !place.is_empty() && place.bytes().all(|byte| byte.is_ascii_digit()) => base,
        _ => name,
    }
}

/// Names that an agent's definitions declare as `scoped`: its threads do not inherit them.
pub(crate) fn scoped<'c>(catalog: &'c crate::spec::Catalog, agent: &'c Agent) -> Vec<&'c str> {
    let found = graph::reach(catalog, agent);
    let variables = found.iter().flat_map(|found| found.item.variables());
    variables.filter(|variable| variable.scoped).map(|variable| variable.name.as_str()).collect()
}

/// Whether a name is among these, or stands in a row with one of them.
fn names<S: AsRef<str>>(list: &[S], name: &str) -> bool {
    list.iter().any(|listed| listed.as_ref() == name || listed.as_ref() == base(name))
}

impl Descendants<'_> {
    /// The values that a child of this agent begins with.
    ///
    /// # Errors
    /// `encryption_unavailable` for a value of the thread that cannot be read: nothing may take its place in a child.
    pub(crate) fn child_values(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        agent: &Agent,
        given: &OwnValues,
    ) -> Result<Vec<Plain>> {
        let mut values = Vec::new();
        if state.meta.env > 0 {
            let scoped = scoped(&self.catalog, agent);
            for (name, held) in self.variables().own_set(state, sql)?.iter() {
                let own = given.values.iter().any(|value| value.name == name);
                if !own && !names(&scoped, name) && !names(&given.withheld, name) {
                    let text = held.read()?.to_owned();
                    values.push(Plain { name: name.to_owned(), kind: held.kind, text });
                }
            }
        }
        values.extend(given.values.iter().cloned());
        Ok(values)
    }

    /// What a child of this agent requires, and what of it has no value (spec §25): with these values, and what the
    /// account, the instance, the Worker's variables and the definitions give.
    pub(crate) fn child_needs(&self, agent: &Agent, values: &[Plain]) -> Needs {
        self.variables().needs(agent, &|name| values.iter().any(|value| value.name == name))
    }

    /// Before a child of this agent is made: what the account and the instance give is known, if it may need that.
    pub(crate) async fn ready_child(&self, agent: &Agent) -> Result<()> {
        if self.child_needs(agent, &[]).missing.is_empty() {
            Ok(())
        } else {
            self.variables().refresh_env().await
        }
    }

    /// The values that a child begins with, encrypted for it; and what it needs besides. A child that waits for more
    /// keeps those that it was given alone.
    pub(crate) fn begin_with(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        agent: &Agent,
        child: &str,
        given: &OwnValues,
    ) -> Result<(EncryptedValues, Needs)> {
        let values = self.child_values(state, sql, agent, given)?;
        let needs = self.child_needs(agent, &values);
        let begins = if needs.missing.is_empty() { &values } else { &given.values };
        Ok((self.seal_for(child, begins)?, needs))
    }

    /// Encrypts what a child begins with. Without values nothing is needed for that.
    ///
    /// # Errors
    /// `encryption_unavailable` without keys; `too_large` for more than a thread may have.
    pub(crate) fn seal_for(&self, child: &str, values: &[Plain]) -> Result<EncryptedValues> {
        if values.is_empty() {
            return Ok(EncryptedValues::default());
        }
        Set::empty("").changed(&Change::of(values))?;
        let sealed = env::seal(&object(child), values, &self.variables().keys()?, &|| self.host.random())?;
        Ok(EncryptedValues { values: sealed, deleted: Vec::new() })
    }

    /// Tells the children that exist of a change of the thread's values, in its transition (spec §11.3): but for names that
    /// their definitions declare as `scoped`, and for values that were given to them alone.
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
                    values.push(Plain { name: name.to_owned(), kind: held.kind, text });
                }
            }
            let deleted = change.deleted().filter(reaches).map(str::to_owned).collect();
            let sealed = EncryptedValues { deleted, ..self.seal_for(&child.reference, &values)? };
            if !sealed.is_empty() {
                self.subagents().tell_child(state, sql, &mut child, EnvelopeBody::SetEnv(sealed))?;
                state.update_child(sql, child)?;
            }
        }
        Ok(())
    }

    /// Does in a child what its parent says about values, inside the transition that hears it. What cannot be done here
    /// is told to the operator; the parent cannot help it.
    pub(crate) fn hear_env(&self, state: &mut State, sql: &dyn Sql, sealed: EncryptedValues) -> Result<()> {
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
        // Nothing is written unless all of it can be.
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

    /// What an envelope to this thread says about its values.
    ///
    /// # Errors
    /// `encryption_unavailable` for a value that no key opens here.
    pub(crate) fn open_sealed(&self, thread_id: &str, sealed: EncryptedValues) -> Result<Change> {
        // Names alone need no key.
        let keys = if sealed.values.is_empty() { env::Keys::default() } else { self.variables().keys()? };
        env::open(&object(thread_id), sealed.values, sealed.deleted, &keys)
    }
}

/// What the model is told when a child lacks values; `request` is where they can be given (spec §25).
pub(crate) fn env_required(agent: &str, needs: &Needs, thread: &str, request: &str) -> ToolResult {
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
