//! Packages of agents (spec §31): a namespace for what is in them, of which only the entry agents are visible from
//! outside.
//!
//! A definition `name` of the package `id` is `id__name` in the catalog. So the name itself says which package it
//! belongs to, and references in a package are resolved when the catalog is compiled; only names that code passes are
//! resolved later.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::definitions::agent::Agent;
use crate::definitions::callable::Callable;
use crate::definitions::catalog::Catalog;
use crate::definitions::endpoint::EndpointRoute;
use crate::definitions::offered::is_of_tool;
use crate::definitions::subagent::is_tool;

/// What stands between a package's id and a name in it. No id holds it, or ends with the half of it.
pub const SEPARATOR: &str = "__";

/// The name in the catalog of a package's definition.
pub fn qualified(id: &str, name: &str) -> String {
    format!("{id}{SEPARATOR}{name}")
}

/// A package of agents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Package {
    /// Its npm name.
    pub name: String,
    /// Names, in the catalog, of the agents that are seen from outside.
    pub entry_agents: Vec<String>,
    /// The endpoints that are its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<EndpointRoute>,
}

/// The packages of a catalog, by id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Packages(pub BTreeMap<String, Package>);

/// What a name is to stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceKind {
    /// A model.
    Model,
    /// A prompt.
    Prompt,
    /// An agent.
    Agent,
    /// An effect.
    Effect,
    /// A hook.
    Hook,
    /// A skill.
    Skill,
    /// A memory.
    Memory,
    /// A function, a prompt or an exposed agent.
    Callable,
}

impl Packages {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The id of the package that a name in the catalog belongs to; none of the application's own.
    pub fn of(&self, name: &str) -> Option<&str> {
        let (id, _) = name.split_once(SEPARATOR)?;
        self.0.get_key_value(id).map(|(id, _)| id.as_str())
    }

    /// The id of the package that an endpoint belongs to.
    pub fn of_route(&self, route: &EndpointRoute) -> Option<&str> {
        let found = self.0.iter().find(|(_, package)| package.endpoints.contains(route));
        found.map(|(id, _)| id.as_str())
    }

    /// Whether a name in the catalog is that of an agent which is seen from outside of its package.
    pub fn is_entry(&self, name: &str) -> bool {
        let package = self.of(name).and_then(|id| self.0.get(id));
        package.is_some_and(|package| package.entry_agents.iter().any(|entry| entry == name))
    }

    /// Whether a name in the catalog is hidden from a package, or from the application.
    pub fn is_foreign(&self, within: Option<&str>, name: &str) -> bool {
        let owner = self.of(name);
        owner.is_some() && owner != within
    }

    /// The name in the catalog of what is called `name` within a package, or in the application: the package's own, else
    /// the application's, else `id/name`, where the package's npm name may stand for its id. `has` says which names there
    /// are; where none fits, the name comes back as it is, or as it would be.
    pub fn resolve<'n>(
        &self,
        within: Option<&str>,
        name: &'n str,
        has: impl Fn(&str) -> bool,
    ) -> Cow<'n, str> {
        if self.is_empty() {
            return Cow::Borrowed(name);
        }
        if let Some(own) = within.map(|id| qualified(id, name)).filter(|own| has(own)) {
            return Cow::Owned(own);
        }
        if has(name) {
            return Cow::Borrowed(name);
        }
        match self.split(name) {
            Some((id, item)) => Cow::Owned(qualified(id, item)),
            None => Cow::Borrowed(name),
        }
    }

    /// Package and name of `id/name`.
    fn split<'n>(&self, name: &'n str) -> Option<(&str, &'n str)> {
        let (package, item) = name.rsplit_once('/')?;
        let found = self.0.iter().find(|(id, known)| *id == package || known.name == package);
        found.map(|(id, _)| (id.as_str(), item))
    }

    /// Why what a name stands for cannot be used outside of its package.
    pub fn hidden(&self, name: &str) -> String {
        let id = self.of(name).unwrap_or_default();
        let entries = self.0.get(id).map(|package| package.entry_agents.as_slice()).unwrap_or_default();
        let entries: Vec<String> = entries.iter().map(|entry| entry.replacen(SEPARATOR, "/", 1)).collect();
        format!(
            "\"{}\" is not visible outside of its package, whose entry agents are {}",
            name.replacen(SEPARATOR, "/", 1),
            entries.join(", ")
        )
    }
}

impl Catalog {
    /// The name in the catalog of what code of a package, or of the application, calls `name`.
    ///
    /// # Errors
    /// What is said of one that is hidden there.
    pub fn named<'n>(
        &self,
        within: Option<&str>,
        name: &'n str,
        sought: ReferenceKind,
    ) -> Result<Cow<'n, str>, String> {
        let found = self.packages.resolve(within, name, |name| self.has(name, sought));
        if !self.packages.is_foreign(within, &found) || !self.has(&found, sought) {
            return Ok(found);
        }
        let entry = self.packages.is_entry(&found);
        let shown = match sought {
            ReferenceKind::Effect => true,
            ReferenceKind::Agent => entry,
            ReferenceKind::Callable => {
                let agent =
                    matches!(self.callable(&found), Some(Callable::Agent(..) | Callable::Subagent(..)));
                entry && agent
            }
            ReferenceKind::Model
            | ReferenceKind::Prompt
            | ReferenceKind::Hook
            | ReferenceKind::Skill
            | ReferenceKind::Memory => false,
        };
        if shown { Ok(found) } else { Err(self.packages.hidden(&found)) }
    }

    fn has(&self, name: &str, sought: ReferenceKind) -> bool {
        match sought {
            ReferenceKind::Model => self.models.contains_key(name),
            ReferenceKind::Prompt => self.prompts.contains_key(name),
            ReferenceKind::Agent => self.agents.contains_key(name),
            ReferenceKind::Effect => self.effects.contains_key(name),
            ReferenceKind::Hook => self.hooks.contains_key(name),
            ReferenceKind::Skill => self.skills.contains_key(name),
            ReferenceKind::Memory => self.memories.contains_key(name),
            ReferenceKind::Callable => is_tool(name) || self.callable(name).is_some(),
        }
    }

    /// Whether an agent is seen by clients.
    pub fn shows(&self, agent: &Agent) -> bool {
        let own = self.packages.of(&agent.name).is_none() && !is_of_tool(&agent.name);
        own || self.packages.is_entry(&agent.name)
    }

    /// The agents that clients see, by name.
    pub fn shown_agents(&self) -> impl Iterator<Item = &Agent> {
        self.agents.values().filter(|agent| self.shows(agent))
    }

    /// The agent that a client means: `name`, `id__name` or `id/name`.
    pub fn shown_agent(&self, name: &str) -> Option<&Agent> {
        let name = self.named(None, name, ReferenceKind::Agent).ok()?;
        self.agents.get(&*name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog() -> Catalog {
        let agent = |exposed: bool| crate::json!({ "sideA": { "prompt": "p" }, "exposeAsTool": exposed });
        let effect = crate::json!({ "description": "d", "run": { "native": "n" } });
        let prompt = crate::json!({ "toolDescription": "d", "prompt": "x", "model": "m" });
        let catalog = crate::json!({
            "packages": {
                "acme": { "name": "@corp/acme", "entryAgents": ["acme__clerk"], "endpoints": ["GET /rates"] },
                "other": { "name": "other", "entryAgents": ["other__clerk"] },
            },
            "agents": { "clerk": agent(true), "acme__clerk": agent(true), "acme__inner": agent(true),
                "other__clerk": agent(false), "odd__name": agent(true) },
            "prompts": { "p": prompt, "acme__p": prompt, "other__clerk": prompt },
            "effects": { "ring": effect, "acme__ring": effect },
        });
        Catalog::from_json(&catalog.to_string()).unwrap()
    }

    #[test]
    fn a_name_is_the_packages_own_before_it_is_the_applications() {
        let catalog = catalog();
        let named = |within, name| catalog.named(within, name, ReferenceKind::Effect).unwrap().into_owned();
        for (within, name, found) in [
            (None, "ring", "ring"),
            (Some("acme"), "ring", "acme__ring"),
            (Some("other"), "ring", "ring"),
            (None, "acme/ring", "acme__ring"),
            (None, "@corp/acme/ring", "acme__ring"),
            (Some("other"), "acme/ring", "acme__ring"),
            (None, "acme__ring", "acme__ring"),
            (None, "acme/none", "acme__none"),
            (None, "nobody/ring", "nobody/ring"),
        ] {
            assert_eq!(named(within, name), found, "{within:?} {name}");
        }
    }

    #[test]
    fn only_entry_agents_are_seen_from_outside() {
        let catalog = catalog();
        let shown: Vec<&str> = catalog.shown_agents().map(|agent| agent.name.as_str()).collect();
        assert_eq!(shown, ["acme__clerk", "clerk", "odd__name", "other__clerk"]);
        let agent = |name| catalog.shown_agent(name).map(|agent| agent.name.as_str());
        assert_eq!(agent("acme/clerk"), Some("acme__clerk"));
        assert_eq!(agent("acme__clerk"), Some("acme__clerk"));
        assert_eq!((agent("acme/inner"), agent("acme__inner"), agent("acme/none")), (None, None, None));
        let called = |within, name| catalog.named(within, name, ReferenceKind::Callable);
        assert_eq!(called(Some("acme"), "inner"), Ok("acme__inner".into()));
        assert_eq!(called(Some("acme"), "clerk"), Ok("acme__clerk".into()));
        assert_eq!(called(Some("other"), "clerk"), Ok("other__clerk".into()), "a prompt of that name");
        assert_eq!(called(None, "acme/clerk"), Ok("acme__clerk".into()));
        for name in ["acme/inner", "acme__inner", "acme/p"] {
            let told = called(None, name).unwrap_err();
            assert!(
                told.ends_with("is not visible outside of its package, whose entry agents are acme/clerk"),
                "{told}"
            );
        }
        // The agent may not be called, and the prompt of its name is not shown.
        assert!(called(None, "other/clerk").is_err());
        assert!(catalog.named(None, "acme__p", ReferenceKind::Prompt).is_err());
        assert_eq!(catalog.named(Some("acme"), "p", ReferenceKind::Prompt), Ok("acme__p".into()));
    }

    #[test]
    fn a_name_says_whose_it_is() {
        let packages = catalog().packages;
        assert_eq!(packages.of("acme__a__b"), Some("acme"));
        assert_eq!((packages.of("odd__name"), packages.of("acme")), (None, None));
        assert_eq!(packages.of_route(&"GET /rates".parse().unwrap()), Some("acme"));
        assert_eq!(packages.of_route(&"GET /".parse().unwrap()), None);
    }
}
