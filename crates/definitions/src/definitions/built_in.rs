//! Tools that exist without a definition of their own, if a prompt lists them.

use crate::definitions::catalog::Catalog;
use crate::definitions::retry::Policy;
use crate::definitions::tool::{Implementation, Tool};
use crate::definitions::{ask_user, execute_code};
use crate::json;

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
        self.add_loading();
        self.add_memory_tools();
        for tool in [execute_code(), ask_user()] {
            let listed =
                self.prompts.values().flat_map(|prompt| &prompt.tools).any(|entry| entry.name == tool.name);
            if listed && !self.tools.contains_key(&tool.name) {
                self.tools.insert(tool.name.clone(), tool);
            }
        }
    }
}

fn execute_code() -> Tool {
    let code = json!({ "type": "string", "description": "The body of an async function, in TypeScript." });
    let args = json!({ "type": "object", "properties": { "code": code }, "required": ["code"] });
    native(execute_code::NAME, execute_code::DESCRIPTION, args)
}

fn ask_user() -> Tool {
    let choices = json!({
        "type": "array", "items": { "type": "string" }, "maxItems": ask_user::CHOICES,
        "description": "Answers to choose from, if there are few.",
    });
    let free_text =
        json!({ "type": "boolean", "description": "Whether any other answer is fine; true unless given." });
    let question = json!({ "type": "string", "description": "The question, whole in itself." });
    let args = json!({
        "type": "object",
        "properties": { "question": question, "choices": choices, "free_text": free_text },
        "required": ["question"],
    });
    native(ask_user::NAME, ask_user::DESCRIPTION, args)
}

/// A tool that a native function of the same name runs.
pub fn native(name: &str, description: &str, args: serde_json::Value) -> Tool {
    Tool {
        name: name.to_owned(),
        description: description.to_owned(),
        args: Some(args),
        run: Implementation::Native(name.to_owned()),
        timeout_ms: None,
        idempotent: None,
        tier: None,
        retry: Policy::default(),
        variables: Vec::new(),
        approval: None,
        scrub: None,
    }
}
