//! The variables that a thread requires before it is created (spec §35.12): those of its agent and of the
//! prompts, tools and agents that it reaches. A subagent's requirements are checked when it is created.

use crate::definitions::{Agent, graph};
use crate::engine::env::own::NewEnv;
use crate::engine::features::Variables;
use crate::env::Change;
use crate::error::{Code, Error, Result};

impl Variables<'_> {
    /// Refuses a new thread that lacks values, and names all of them.
    ///
    /// # Errors
    /// `missing_variables`; `overloaded` when a directory did not reply.
    pub(crate) async fn require(&self, agent: &str, owner: Option<&str>, new: &NewEnv) -> Result<()> {
        self.require_with(agent, owner, &|name| new.set.get(name).is_some()).await
    }

    /// Refuses to switch the thread to another agent that lacks values after `change`.
    pub(crate) async fn require_of(&self, agent: &str, change: &Change) -> Result<()> {
        let (owner, own) = self.read_mut(|state, sql| {
            let owner = state.meta.owner.clone();
            let own = self.own_set(state, sql)?.iter().map(|(name, _)| name.to_owned());
            Ok((owner, own.collect::<Vec<_>>()))
        })?;
        let given = |name: &str| change.leaves(name, own.iter().any(|own| own == name));
        self.require_with(agent, owner.as_deref(), &given).await
    }

    async fn require_with(
        &self,
        agent: &str,
        owner: Option<&str>,
        given: &dyn Fn(&str) -> bool,
    ) -> Result<()> {
        let Some(found) = self.catalog.agents.get(agent) else { return Ok(()) };
        if self.needs(found, given).missing.is_empty() {
            return Ok(());
        }
        self.ask_levels(owner).await?;
        let missing = self.needs(found, given).missing;
        if missing.is_empty() {
            return Ok(());
        }
        Err(Error::new(
            Code::MissingVariables,
            format!("The agent “{agent}” needs values for: {}.", missing.join(", ")),
        )
        .hint("Give them as `env`, or set them for the account, the instance, as Worker variables, or in the definitions."))
    }

    /// The requirements of this agent, for a thread that itself has the `given` names.
    #[inline(never)]
    pub(crate) fn needs(&self, agent: &Agent, given: &dyn Fn(&str) -> bool) -> RequiredVariables {
        let mut needs = RequiredVariables::default();
        for found in graph::reach(&self.catalog, agent) {
            for variable in found.item.variables().iter().filter(|variable| variable.required) {
                if variable.scoped && found.handed {
                    continue;
                }
                let name = &variable.name;
                note(&mut needs.required, name);
                let there = given(name)
                    || self.defined(name, &found.above).is_some()
                    || self.lower_levels(name, None, &found.below).is_some();
                if !there {
                    note(&mut needs.missing, name);
                }
            }
        }
        needs.required.sort();
        needs.missing.sort();
        needs
    }
}

/// The names of the variables that an agent requires.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequiredVariables {
    /// All required names.
    pub(crate) required: Vec<String>,
    /// The required names without a value.
    pub(crate) missing: Vec<String>,
}

fn note(names: &mut Vec<String>, name: &str) {
    if !names.iter().any(|known| known == name) {
        names.push(name.to_owned());
    }
}
