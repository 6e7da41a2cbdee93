//! Agents.

use super::names::wrong_callable;
use super::{Check, Kind, Place};
use crate::limits::RUN_STEPS;
use crate::spec::agent::{Agent, AgentKind, Side};

impl Check<'_> {
    pub(super) fn agents(&mut self) {
        for (name, agent) in &self.catalog.agents {
            let at = Place { kind: Kind::Agent, name };
            if let Some(wrong) = wrong_callable(name) {
                self.error(at, "name", wrong);
            }
            self.sides(at, agent);
            if agent.max_session_turns == Some(0) {
                self.error(at, "maxSessionTurns", "must be more than 0");
            }
            let described = agent.tool_description.as_ref().is_some_and(|text| !text.trim().is_empty());
            if agent.expose_as_tool && !described {
                self.error(at, "toolDescription", "required with exposeAsTool: models read it");
            }
            if agent.icon.as_ref().is_some_and(|icon| !is_address(icon)) {
                self.warning(at, "icon", "should be a URL or a path that starts with `/`");
            }
            self.variables(at, &agent.variables);
            self.env(at, "env", &agent.env);
            self.hooks(at, &agent.hooks);
        }
    }

    fn sides(&mut self, at: Place<'_>, agent: &Agent) {
        self.side(at, "sideA", &agent.side_a);
        match agent.kind {
            AgentKind::AiHuman => {
                if agent.side_b.is_some() {
                    self.error(at, "sideB", "side B of an `ai_human` agent is the person; leave this out");
                }
                self.forgets_the_chat(at, &agent.side_a);
            }
            AgentKind::DualAi => {
                self.error(
                    at,
                    "type",
                    "`dual_ai` agents arrive with a later version; `ai_human` is what exists",
                );
            }
        }
    }

    /// `includeChat` is off unless set (spec §35.11), which in a chat is rarely meant.
    fn forgets_the_chat(&mut self, at: Place<'_>, side: &Side) {
        if self.catalog.prompts.get(&side.prompt).is_some_and(|prompt| !prompt.include_chat) {
            let message = "its model will not see earlier turns: set `includeChat: true` in the prompt";
            self.warning(at, "sideA.prompt", format!("\"{}\": {message}", side.prompt));
        }
    }

    fn side(&mut self, at: Place<'_>, field: &str, side: &Side) {
        self.reference(at, &format!("{field}.prompt"), Kind::Prompt, &side.prompt);
        if side.max_steps.is_some_and(|steps| steps == 0 || steps > RUN_STEPS) {
            self.error(at, format!("{field}.maxSteps"), format!("must be from 1 to {RUN_STEPS}"));
        }
        self.stop_tool(at, field, side);
        let session = [
            ("sessionStop", &side.session_stop),
            ("sessionFail", &side.session_fail),
            ("sessionStatus", &side.session_status),
        ];
        for (tool, _) in session.into_iter().filter(|(_, tool)| tool.is_some()) {
            self.error(
                at,
                format!("{field}.{tool}"),
                "session tools arrive with a later version; leave this out for now",
            );
        }
    }

    fn stop_tool(&mut self, at: Place<'_>, field: &str, side: &Side) {
        let property = side.stop_tool_response_property.as_ref();
        let Some(stop_tool) = &side.stop_tool else {
            if property.is_some() {
                self.error(at, format!("{field}.stopToolResponseProperty"), "needs a stopTool");
            }
            if !side.stop_on_response {
                self.warning(
                    at,
                    format!("{field}.stopOnResponse"),
                    "without a stopTool nothing but its caps ends a turn",
                );
            }
            return;
        };
        let prompt = self.catalog.prompts.get(&side.prompt);
        if prompt.is_some_and(|prompt| prompt.tool(stop_tool).is_none()) {
            let message = format!("the prompt \"{}\" does not offer the tool \"{stop_tool}\"", side.prompt);
            self.error(at, format!("{field}.stopTool"), message);
        }
        if let (Some(property), Some(tool)) = (property, self.catalog.tools.get(stop_tool)) {
            let args = tool.args.as_ref().and_then(|args| args.get("properties")?.as_object());
            if !args.is_some_and(|args| args.contains_key(property)) {
                let message = format!("the tool \"{stop_tool}\" has no argument \"{property}\"");
                self.error(at, format!("{field}.stopToolResponseProperty"), message);
            }
        }
    }
}

fn is_address(icon: &str) -> bool {
    ["/", "https://", "http://", "data:"].iter().any(|start| icon.starts_with(start))
}
