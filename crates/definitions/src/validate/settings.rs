//! `bobbin.json`.

use crate::definitions::offered::names_of;
use crate::definitions::references::Kind;
use crate::definitions::{Agent, OfferedResource};
use crate::names::hint;
use crate::validate::Check;

/// The tools for threads that MCP clients have.
const OF_THREADS: [&str; 4] = ["thread_start", "thread_get", "thread_respond", "thread_cancel"];

/// The file, relative to the folder of definitions.
pub const FILE: &str = "bobbin.json";

impl Check<'_> {
    pub(super) fn folder_settings(&mut self) {
        for (inner, message) in self.catalog.settings.retry_defaults.problems() {
            self.error_in_settings(format!("retryDefaults.{inner}"), message);
        }
        for (inner, message) in self.catalog.settings.scrub.problems(None) {
            self.error_in_settings(format!("scrub.{inner}"), message);
        }
        for (inner, message) in self.catalog.settings.budget.problems() {
            self.error_in_settings(format!("budget.{inner}"), message);
        }
        self.offered_to_clients();
    }

    /// Checks the offer for MCP clients.
    fn offered_to_clients(&mut self) {
        let offered = &self.catalog.settings.mcp;
        let mut named: Vec<(String, &str)> = Vec::new();
        for (field, names) in [("tools", &offered.tools), ("prompts", &offered.prompts)] {
            named.extend(
                names.iter().enumerate().map(|(at, name)| (format!("mcp.{field}[{at}]"), name.as_str())),
            );
        }
        for (at, name) in offered.tools.iter().enumerate() {
            let asks =
                |agent: &Agent| name.strip_prefix("ask_") == Some(agent.name.as_str()) && agent.is_exposed();
            if OF_THREADS.contains(&name.as_str()) || self.catalog.agents.values().any(asks) {
                let text = format!("“{name}” is a tool of its own at /mcp; give this one another name");
                self.error_in_settings(format!("mcp.tools[{at}]"), text);
            }
        }
        for (at, resource) in offered.resources.iter().enumerate() {
            let field = format!("mcp.resources[{at}]");
            named.push((format!("{field}.tool"), &resource.tool));
            let OfferedResource { uri, uri_template, .. } = resource;
            let address = if uri.is_empty() { uri_template } else { uri };
            let absolute = address.split_once(':').is_some_and(|(scheme, _)| {
                scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                    && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
            });
            if uri.is_empty() == uri_template.is_empty() {
                self.error_in_settings(field, "has either `uri` or `uriTemplate`".to_owned());
            } else if !absolute || address.starts_with("thread:") {
                let text = format!("“{address}” is no address of yours, such as `shop://terms`");
                self.error_in_settings(field, text);
            } else {
                let args = self.catalog.tools.get(&resource.tool).and_then(|tool| tool.args.as_ref());
                let known = |name: &str| {
                    args.is_some_and(|args| args.pointer("/properties").and_then(|of| of.get(name)).is_some())
                };
                if let Some(name) = names_of(uri_template).into_iter().find(|name| !known(name)) {
                    let text = format!("the tool “{}” has no argument “{name}”", resource.tool);
                    self.error_in_settings(format!("{field}.uriTemplate"), text);
                }
            }
        }
        for (field, name) in named {
            match self.catalog.tools.get(name) {
                Some(tool) if !tool.is_of_client() => {}
                Some(_) => {
                    let text = format!("“{name}” runs in a client, and no client reads these threads");
                    self.error_in_settings(field, text);
                }
                None => {
                    let hint = hint(name, &self.names(Kind::Tool));
                    self.error_in_settings(field, format!("there is no tool “{name}”{hint}"));
                }
            }
        }
    }
}
