//! Settings of an entry in `tools` for a subagent (spec §8.2).

use crate::definitions::agent::AgentKind;
use crate::definitions::budget::Share;
use crate::definitions::prompt::ToolEntry;
use crate::definitions::references::Kind;
use crate::definitions::subagent::{Immediate, ReceivingSide};
use crate::validate::prompts::declares_secret;
use crate::validate::{Check, Subject};

impl Check<'_> {
    /// Checks that the settings are on an agent of two AI sides, and that variables and arguments exist.
    pub(super) fn subagent(&mut self, at: Subject<'_>, field: &str, entry: &ToolEntry, kind: Kind) {
        let name = &entry.name;
        let set = [
            ("initAgentNameProperty", entry.init_agent_name_property.is_some()),
            ("blocking", entry.blocking.is_some()),
            ("optional", entry.optional.is_some()),
            ("immediate", entry.immediate.is_some()),
            ("resumable", entry.resumable.is_some()),
            ("budget", entry.budget.is_some()),
        ];
        let wrong = match (kind, self.catalog.agents.get(name).map(|agent| agent.kind)) {
            (Kind::Agent, Some(AgentKind::DualAi)) => None,
            (Kind::Agent, Some(AgentKind::AiHuman)) => Some(format!("a person talks to \"{name}\"")),
            // The agent's file could not be read.
            (Kind::Agent, None) => return,
            _ => Some(format!("\"{name}\" is a {}", kind.noun())),
        };
        if let Some(wrong) = wrong {
            for (key, _) in set.into_iter().filter(|(_, set)| *set) {
                self.error(at, format!("{field}.{key}"), format!("is for agents of two AI sides; {wrong}"));
            }
            return;
        }
        if let Some(variable) = &entry.optional {
            self.env_name(at, &format!("{field}.optional"), variable);
        }
        for (key, message) in entry.budget.iter().flat_map(Share::problems) {
            self.error(at, format!("{field}.budget.{key}"), message);
        }
        match &entry.resumable {
            None => {
                let property = &entry.init_agent_name_property;
                self.init_argument(at, &format!("{field}.initAgentNameProperty"), name, property);
            }
            Some(resumable) => {
                if resumable.max_instances == Some(0) {
                    self.error(at, format!("{field}.resumable.maxInstances"), "must be more than 0");
                }
                let init = [
                    ("initUserMessageProperty", &entry.init_user_message_property),
                    ("initAttachmentsProperty", &entry.init_attachments_property),
                    ("initAgentNameProperty", &entry.init_agent_name_property),
                ];
                for (key, _) in init.into_iter().filter(|(_, property)| property.is_some()) {
                    let message =
                        "has no effect with `resumable`: `subagent_create` has arguments of its own for this";
                    self.warning(at, format!("{field}.{key}"), message);
                }
            }
        }
        if let Some(immediate) = &entry.immediate {
            self.hints(at, &format!("{field}.immediate"), immediate);
            self.begins(at, &format!("{field}.immediate"), entry);
        }
    }

    /// An agent that starts by itself gets no arguments, except a name and a first message.
    fn begins(&mut self, at: Subject<'_>, field: &str, entry: &ToolEntry) {
        let Some(agent) = self.catalog.agents.get(&entry.name) else { return };
        let (side, filled, how) = match &entry.resumable {
            None => (
                Some(&agent.side_a),
                [&entry.init_agent_name_property, &entry.init_user_message_property],
                "; `initUserMessageProperty` and `initAgentNameProperty` may name one each",
            ),
            Some(resumable) => match resumable.receives_messages {
                ReceivingSide::SideA => (Some(&agent.side_a), [&None, &None], ""),
                ReceivingSide::SideB => (agent.side_b.as_ref(), [&None, &None], ""),
            },
        };
        let given = |name: &&str| filled.iter().any(|property| property.as_deref() == Some(*name));
        let required = side.map(|side| self.catalog.required_of(&side.prompt)).unwrap_or_default();
        let lacking: Vec<String> =
            required.iter().filter(|name| !given(name)).map(|name| format!("`{name}`")).collect();
        if !lacking.is_empty() {
            let message = format!(
                "\"{}\" cannot begin by itself: its prompt requires {}, which nobody gives{how}",
                entry.name,
                lacking.join(", ")
            );
            self.error(at, field, message);
        }
    }

    fn hints(&mut self, at: Subject<'_>, field: &str, immediate: &Immediate) {
        let told = [("nameEnv", &immediate.name_env), ("descriptionEnv", &immediate.description_env)];
        for (key, variable) in told {
            let Some(variable) = variable else { continue };
            let field = format!("{field}.{key}");
            self.env_name(at, &field, variable);
            let secret = match self.catalog.is_model_key(variable) {
                true => Some("is the API key of a model".to_owned()),
                false => declares_secret(self.catalog, variable)
                    .map(|by| format!("is declared as a secret by the {by}")),
            };
            if let Some(secret) = secret {
                self.error(at, field, format!("\"{variable}\" {secret}, and models would read it"));
            }
        }
        for (index, variable) in immediate.scoped_env.iter().enumerate() {
            self.env_name(at, &format!("{field}.scopedEnv[{index}]"), variable);
        }
    }
}
