//! Definitions and logs for the code that works in a thread (spec §12.3).

use serde_json::Value;

use super::host::Host;
use super::thread_state::{Open, ThreadState};
use crate::api::Query;
use crate::error::{Code, Error, Result};
use crate::spec::{Agent, Catalog, Model, Prompt};

impl ThreadState {
    /// The definition of a model. Its address and the name of its key are in it, the key is not.
    ///
    /// # Errors
    /// `not_found` for an unknown name.
    pub fn load_model(&self, name: &str) -> Result<Model> {
        found("model", name, self.resources().catalog().models.get(name))
    }

    /// The definition of a prompt.
    ///
    /// # Errors
    /// `not_found` for an unknown name.
    pub fn load_prompt(&self, name: &str) -> Result<Prompt> {
        found("prompt", name, self.resources().catalog().prompts.get(name))
    }

    /// The definition of an agent.
    ///
    /// # Errors
    /// `not_found` for an unknown name.
    pub fn load_agent(&self, name: &str) -> Result<Agent> {
        found("agent", name, self.resources().catalog().agents.get(name))
    }

    /// Names of all models.
    pub fn get_model_names(&self) -> Vec<String> {
        self.resources().catalog().models.keys().cloned().collect()
    }

    /// Names of all prompts.
    pub fn get_prompt_names(&self) -> Vec<String> {
        self.resources().catalog().prompts.keys().cloned().collect()
    }

    /// Names of all agents.
    pub fn get_agent_names(&self) -> Vec<String> {
        self.resources().catalog().agents.keys().cloned().collect()
    }

    /// A page of the thread's log: the query and the answer of `GET …/logs`.
    pub fn get_logs(&self, query: &Query) -> Result<Value> {
        self.resources().logs(query)
    }
}

fn found<T: Clone>(noun: &str, name: &str, definition: Option<&T>) -> Result<T> {
    let unknown = || Error::new(Code::NotFound, format!("There is no {noun} “{name}”."));
    definition.cloned().ok_or_else(unknown)
}

/// The thread behind it.
pub(super) trait ResourceDoor {
    fn catalog(&self) -> &Catalog;
    fn logs(&self, query: &Query) -> Result<Value>;
}

impl<H: Host> ResourceDoor for Open<H> {
    fn catalog(&self) -> &Catalog {
        &self.thread.catalog
    }

    fn logs(&self, query: &Query) -> Result<Value> {
        self.thread.logs(query)
    }
}
