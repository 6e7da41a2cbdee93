//! Agents.

use crate::definitions::agent::{Agent, AgentKind, SessionTool, SideConfig};
use crate::definitions::budget::Unpriced;
use crate::definitions::references::Kind;
use crate::limits::RUN_STEPS;
use crate::names::wrong_callable;
use crate::validate::{Check, Subject};

impl Check<'_> {
    pub(super) fn agents(&mut self) {
        for (name, agent) in &self.catalog.agents {
            let at = Subject { kind: Kind::Agent, name };
            if let Some(wrong) = wrong_callable(name) {
                self.error(at, "name", wrong);
            }
            self.sides(at, agent);
            if agent.max_session_turns == Some(0) {
                self.error(at, "maxSessionTurns", "must be more than 0");
            }
            if agent.kind == AgentKind::AiHuman && agent.max_session_turns.is_some() {
                let message = "has no effect: with a person a session is one turn of the model; `maxSteps` of the side ends a long one";
                self.warning(at, "maxSessionTurns", message);
            }
            let described = agent.tool_description.as_ref().is_some_and(|text| !text.trim().is_empty());
            if agent.expose_as_tool && !described {
                self.error(at, "toolDescription", "required with exposeAsTool: models read it");
            }
            if agent.icon.as_ref().is_some_and(|icon| !is_address(icon)) {
                self.warning(at, "icon", "should be a URL or a path that starts with `/`");
            }
            self.variables(at, &agent.variables);
            self.approvals(at, &agent.approvals);
            self.budget(at, agent);
            self.env(at, "env", &agent.env);
            self.hook_list(at, &agent.hooks);
        }
    }

    fn budget(&mut self, at: Subject<'_>, agent: &Agent) {
        let (own, folder) = (&agent.budget, &self.catalog.settings.budget);
        for (inner, message) in own.problems() {
            self.error(at, format!("budget.{inner}"), message);
        }
        if own.ceiling.is_some() {
            self.error(at, "budget.ceiling", "belongs to `bobbin.json`");
        }
        let limit = match (own.limits_cost(), folder.limits_cost()) {
            (true, _) => Some(("of this agent", own)),
            (false, true) => Some(("of `bobbin.json`", folder)),
            (false, false) => None,
        };
        if let Some((whose, limit)) = limit
            && self.catalog.unpriced(agent) == Unpriced::Refuse
            && let Some(model) = self.catalog.unpriced_model(agent)
        {
            let scope = if limit.run.max_cost_usd.is_some() { "run" } else { "thread" };
            let message = format!(
                "the limit {whose} cannot hold: the model \"{model}\" has neither `inputPrice` nor `outputPrice`. Give it one, or say `unpriced: ignore`"
            );
            self.error(at, format!("budget.{scope}.maxCostUsd"), message);
        }
        for budget in [own, folder] {
            if let Some(model) = self.catalog.boundless_model(agent, budget) {
                let message = format!(
                    "an answer of the model \"{model}\" may exceed the limit: it does not say `maxOutputTokens`"
                );
                self.warning(at, "budget", message);
                return;
            }
        }
    }

    fn sides(&mut self, at: Subject<'_>, agent: &Agent) {
        self.side(at, "sideA", &agent.side_a);
        match agent.kind {
            AgentKind::AiHuman => {
                if agent.side_b.is_some() {
                    self.error(at, "sideB", "side B of an `ai_human` agent is the person; leave this out");
                }
                self.forgets_the_chat(at, &agent.side_a);
                self.endless(at, &agent.side_a);
            }
            AgentKind::DualAi => match &agent.side_b {
                Some(side) => {
                    self.side(at, "sideB", side);
                    if agent.max_session_turns.is_none() {
                        let message =
                            "should be set: two models that talk to each other find no end by themselves";
                        self.warning(at, "maxSessionTurns", message);
                    }
                    if agent.expose_as_tool {
                        self.endings(at, [&agent.side_a, side]);
                    }
                }
                None => self.error(at, "sideB", "missing: both sides of a `dual_ai` agent are models"),
            },
        }
    }

    /// The caller of a subagent waits for its end (spec §7.6).
    fn endings(&mut self, at: Subject<'_>, sides: [&SideConfig; 2]) {
        if sides.iter().all(|side| side.session_stop.is_none()) {
            let message = "should be set on a side: nothing but its caps ends the work of this subagent";
            self.warning(at, "sideA.sessionStop", message);
        }
        if sides.iter().all(|side| side.session_fail.is_none()) {
            let message = "should be set on a side: its models have no way to say that they have failed";
            self.warning(at, "sideA.sessionFail", message);
        }
    }

    /// `includeChat` is off by default (spec §35.11), which is rarely intended in a chat.
    fn forgets_the_chat(&mut self, at: Subject<'_>, side: &SideConfig) {
        if self.catalog.prompts.get(&side.prompt).is_some_and(|prompt| !prompt.include_chat) {
            let message = "its model will not see earlier turns: set `includeChat: true` in the prompt";
            self.warning(at, "sideA.prompt", format!("\"{}\": {message}", side.prompt));
        }
    }

    fn side(&mut self, at: Subject<'_>, field: &str, side: &SideConfig) {
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
        for (name, tool) in session {
            if let Some(tool) = tool {
                self.session_tool(at, &format!("{field}.{name}"), side, tool);
            }
        }
        if let (Some(stop), Some(fail)) = (&side.session_stop, &side.session_fail)
            && stop.name == fail.name
        {
            let message = format!("\"{}\" ends the session as a success already", fail.name);
            self.error(at, format!("{field}.sessionFail"), message);
        }
    }

    fn session_tool(&mut self, at: Subject<'_>, field: &str, side: &SideConfig, tool: &SessionTool) {
        self.offered(at, field, side, &tool.name);
        for (name, property) in
            [("messageProperty", &tool.message_property), ("attachmentsProperty", &tool.attachments_property)]
        {
            if let Some(property) = property {
                self.argument(at, &format!("{field}.{name}"), &tool.name, property);
            }
        }
    }

    fn stop_tool(&mut self, at: Subject<'_>, field: &str, side: &SideConfig) {
        let property = side.stop_tool_response_property.as_ref();
        let response = format!("{field}.stopToolResponseProperty");
        match (&side.stop_tool, property) {
            (Some(tool), property) => {
                self.offered(at, &format!("{field}.stopTool"), side, tool);
                if let Some(property) = property {
                    self.argument(at, &response, tool, property);
                }
            }
            (None, Some(_)) => self.error(at, response, "needs a stopTool"),
            (None, None) => {}
        }
    }

    /// The user waits for the end of the turn.
    fn endless(&mut self, at: Subject<'_>, side: &SideConfig) {
        if !side.stop_on_response && side.stop_tool.is_none() {
            let message = "without a stopTool nothing but its caps ends a turn";
            self.warning(at, "sideA.stopOnResponse", message);
        }
    }

    /// A tool that ends something must be available to the side's model.
    fn offered(&mut self, at: Subject<'_>, field: &str, side: &SideConfig, tool: &str) {
        let prompt = self.catalog.prompts.get(&side.prompt);
        if prompt.is_some_and(|prompt| prompt.tool(tool).is_none() && !self.offers_live(prompt, tool)) {
            let message = format!("the prompt \"{}\" does not offer the tool \"{tool}\"", side.prompt);
            self.error(at, field, message);
        }
    }

    /// An argument that the runtime reads must exist.
    fn argument(&mut self, at: Subject<'_>, field: &str, tool: &str, property: &str) {
        let Some(definition) = self.catalog.tools.get(tool) else { return };
        let args = definition.args.as_ref().and_then(|args| args.get("properties")?.as_object());
        if !args.is_some_and(|args| args.contains_key(property)) {
            self.error(at, field, format!("the tool \"{tool}\" has no argument \"{property}\""));
        }
    }
}

fn is_address(icon: &str) -> bool {
    ["/", "https://", "http://", "data:"].iter().any(|start| icon.starts_with(start))
}
