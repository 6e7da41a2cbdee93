//! Tools that exist without a definition of their own, if a prompt lists them.

use serde_json::json;

use crate::spec::catalog::Catalog;
use crate::spec::execute_code;
use crate::spec::tool::{Implementation, Tool};

impl Catalog {
    /// Whether some prompt lets the code of its model reach hosts: then the catalog needs the web's modules.
    pub fn lets_models_fetch(&self) -> bool {
        let entries = self.prompts.values().flat_map(|prompt| &prompt.tools);
        entries
            .filter(|entry| entry.name == execute_code::NAME)
            .any(|entry| entry.options.contains_key("allowedHosts"))
    }

    /// Defines them. A definition of the same name stands.
    pub fn add_built_in(&mut self) {
        let listed = self
            .prompts
            .values()
            .flat_map(|prompt| &prompt.tools)
            .any(|entry| entry.name == execute_code::NAME);
        if !listed || self.tools.contains_key(execute_code::NAME) {
            return;
        }
        let code =
            json!({ "type": "string", "description": "The body of an async function, in TypeScript." });
        let tool = Tool {
            name: execute_code::NAME.to_owned(),
            description: execute_code::DESCRIPTION.to_owned(),
            args: Some(json!({ "type": "object", "properties": { "code": code }, "required": ["code"] })),
            run: Implementation::Native(execute_code::NAME.to_owned()),
            timeout_ms: None,
            idempotent: false,
            variables: Vec::new(),
        };
        self.tools.insert(execute_code::NAME.to_owned(), tool);
    }
}
