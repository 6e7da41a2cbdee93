//! Definitions and logs, for the code that works in a thread (spec §12.3).

use std::borrow::Cow;

use serde_json::Value;

use crate::definitions::{Agent, Catalog, Model, Prompt, ReferenceKind};
use crate::error::{Code, Error, Result};
use crate::request::Query;
use crate::sdk::ThreadState;

impl ThreadState {
    /// The definition of a model. It contains the address and the name of the key, but not the key.
    ///
    /// # Errors
    /// `not_found` for an unknown name; `invalid_field` for one that its package does not export.
    pub fn load_model(&self, name: &str) -> Result<Model> {
        let name = &*self.resources().named(name, ReferenceKind::Model)?;
        found("model", name, self.resources().catalog().models.get(name))
    }

    /// The definition of a prompt.
    ///
    /// # Errors
    /// `not_found` for an unknown name; `invalid_field` for one that its package does not export.
    pub fn load_prompt(&self, name: &str) -> Result<Prompt> {
        let name = &*self.resources().named(name, ReferenceKind::Prompt)?;
        found("prompt", name, self.resources().catalog().prompts.get(name))
    }

    /// The definition of an agent.
    ///
    /// # Errors
    /// `not_found` for an unknown name; `invalid_field` for one that its package does not export.
    pub fn load_agent(&self, name: &str) -> Result<Agent> {
        let name = &*self.resources().named(name, ReferenceKind::Agent)?;
        found("agent", name, self.resources().catalog().agents.get(name))
    }

    /// Names of all models that are visible here.
    pub fn get_model_names(&self) -> Vec<String> {
        self.resources().seen(Box::new(self.resources().catalog().models.keys()), ReferenceKind::Model)
    }

    /// Names of all prompts that are visible here.
    pub fn get_prompt_names(&self) -> Vec<String> {
        self.resources().seen(Box::new(self.resources().catalog().prompts.keys()), ReferenceKind::Prompt)
    }

    /// Names of all agents that are visible here.
    pub fn get_agent_names(&self) -> Vec<String> {
        self.resources().seen(Box::new(self.resources().catalog().agents.keys()), ReferenceKind::Agent)
    }

    /// A page of the thread's log: the query and the response of `GET …/logs`.
    pub fn get_logs(&self, query: &Query) -> Result<Value> {
        self.resources().logs(query)
    }
}

fn found<T: Clone>(noun: &str, name: &str, definition: Option<&T>) -> Result<T> {
    let unknown = || Error::new(Code::NotFound, format!("There is no {noun} “{name}”."));
    definition.cloned().ok_or_else(unknown)
}

/// Names of definitions in the catalog.
pub(crate) type Keys<'k> = Box<dyn Iterator<Item = &'k String> + 'k>;

/// The thread's side of definitions and logs.
pub(crate) trait ResourcesApi {
    fn catalog(&self) -> &Catalog;
    /// The catalog's name for a name that the code here uses.
    fn named<'n>(&self, name: &'n str, sought: ReferenceKind) -> Result<Cow<'n, str>>;
    /// Those of the names that the code here may use.
    fn seen(&self, names: Keys<'_>, sought: ReferenceKind) -> Vec<String>;
    fn logs(&self, query: &Query) -> Result<Value>;
}
