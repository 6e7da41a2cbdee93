//! What a thread must have before it exists (spec §35.12): a value for each variable that its agent requires, or the
//! prompts, tools and agents that it leads to. What belongs to a subagent is looked at when that is made.

use super::super::Thread;
use super::super::host::Host;
use super::NewEnv;
use crate::env::Set;
use crate::error::{Code, Error, Result};
use crate::spec::graph;

impl<H: Host> Thread<H> {
    /// Refuses a new thread of this agent and owner that lacks values, and names all of them.
    ///
    /// # Errors
    /// `missing_variables`; `overloaded` when it cannot be known, because a directory did not answer.
    pub(in crate::thread) async fn require(
        &self,
        agent: &str,
        owner: Option<&str>,
        new: &NewEnv,
    ) -> Result<()> {
        if self.missing(agent, &new.set).is_empty() {
            return Ok(());
        }
        self.ask_levels(owner).await?;
        let missing = self.missing(agent, &new.set);
        if missing.is_empty() {
            return Ok(());
        }
        Err(Error::new(
            Code::MissingVariables,
            format!("The agent “{agent}” needs values for: {}.", missing.join(", ")),
        )
        .hint("Give them as `env`, or set them for the account, the instance, as Worker variables, or in the definitions."))
    }

    #[inline(never)]
    fn missing(&self, agent: &str, own: &Set) -> Vec<String> {
        let Some(agent) = self.catalog.agents.get(agent) else { return Vec::new() };
        let mut missing = Vec::new();
        for found in graph::reach(&self.catalog, agent) {
            for variable in found.item.variables().iter().filter(|variable| variable.required) {
                if variable.scoped && found.handed {
                    continue;
                }
                let name = &variable.name;
                let given = self.defined(name, &found.above).is_some()
                    || self.beneath(name, own.get(name).cloned(), &found.below).is_some();
                if !given && !missing.contains(name) {
                    missing.push(name.clone());
                }
            }
        }
        missing.sort();

        missing
    }
}
