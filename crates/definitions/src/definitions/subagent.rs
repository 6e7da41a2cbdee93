//! Subagents: what an entry in a prompt's `tools` may say about an agent with two AI sides, which works in a thread of
//! its own (spec §8.2).

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Serialize};

use crate::definitions::variable::is_default;

/// The runtime's own tool that makes a subagent which can be written to again (spec §8.3).
pub const CREATE: &str = "subagent_create";
/// The one that writes to it (spec §8.4).
pub const MESSAGE: &str = "subagent_message";

/// The tool by which a model that leads workers makes one.
pub const SPAWN: &str = "agent_spawn";
/// The one that writes to a worker.
pub const SEND: &str = "agent_send";
/// The one that waits for workers.
pub const WAIT: &str = "agent_wait";
/// The one that ends a worker.
pub const CLOSE: &str = "agent_close";

/// The tools of a model that leads workers, in the order in which they are offered.
pub const OF_WORKERS: [&str; 4] = [SPAWN, SEND, WAIT, CLOSE];

/// Whether a name is that of a tool of the runtime's own which is about subagents.
pub fn is_tool(name: &str) -> bool {
    matches!(name, CREATE | MESSAGE) || OF_WORKERS.contains(&name)
}

/// The name of a tool as the runtime has it: `agent.spawn` is `agent_spawn`. Providers take no dots.
pub fn undotted(name: &str) -> &str {
    let meant = |own: &&&str| own.strip_prefix("agent_") == name.strip_prefix("agent.");
    OF_WORKERS.iter().find(meant).filter(|_| name.starts_with("agent.")).map_or(name, |own| *own)
}

/// The same the other way, as traces have it.
pub fn dotted(name: &str) -> std::borrow::Cow<'_, str> {
    match name.strip_prefix("agent_").filter(|_| OF_WORKERS.contains(&name)) {
        Some(verb) => format!("agent.{verb}").into(),
        None => name.into(),
    }
}

/// The workers of a prompt. Its model leads subagents: it creates them, sends them messages, waits for them
/// and closes them with built-in tools (docs/subagents.md).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Workers {
    /// If `true`, the model has the tools for workers. Default: `true`.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub enabled: bool,
    /// The agents of workers: agents with two AI sides and `exposeAsTool`, or agents that talk to a person.
    /// For the latter, the model plays the person.
    pub agents: Vec<String>,
    /// The maximum number of open workers of the thread, 1 to 100. Default: 4.
    #[serde(default = "four", skip_serializing_if = "is_four")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 100)))]
    pub max_active: u32,
    /// The prefix of worker ids: `subagent.1`, `subagent.2`. Default: `subagent`.
    #[serde(default = "prefix", skip_serializing_if = "is_prefix")]
    pub id_prefix: String,
    /// If `true`, workers may lead their own workers, if their prompts allow it. Default: `false`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub can_spawn: bool,
}

const fn yes() -> bool {
    true
}

const fn is_yes(yes: &bool) -> bool {
    *yes
}

const fn four() -> u32 {
    4
}

const fn is_four(n: &u32) -> bool {
    *n == four()
}

fn prefix() -> String {
    "subagent".to_owned()
}

fn is_prefix(text: &str) -> bool {
    text == "subagent"
}

/// An immediate subagent. It starts when its prompt becomes active, before the prompt's first request to a
/// model (spec §8.7). In a file, `true` means no settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Immediate {
    /// The name of the variable whose value is the subagent's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name_env: Option<String>,
    /// The name of the variable whose value is the subagent's first message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description_env: Option<String>,
    /// The names of variables whose values the subagent gets as its own. No model sees these values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scoped_env: Vec<String>,
}

impl Immediate {
    /// Whether it is without hints: then one is begun at most.
    pub fn is_plain(&self) -> bool {
        *self == Immediate::default()
    }
}

/// The settings of a subagent that can receive more messages (spec §8.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Resumable {
    /// The side that receives the parent's messages.
    #[serde(rename = "receives_messages")]
    pub receives_messages: ReceivingSide,
    /// The maximum number of these subagents at the same time. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub max_instances: Option<u32>,
    /// The reports that the parent receives. Default: `implicit`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub parent_communication: ParentCommunication,
}

/// The side of a subagent that receives its parent's messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Receives"))]
pub enum ReceivingSide {
    /// Side A receives them. They are stored as messages of side B, with the role `user`.
    #[default]
    SideA,
    /// Side B receives them. They are stored as messages of side A, with the role `assistant`.
    SideB,
}

/// The reports that a parent receives from a subagent (spec §24.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ParentCommunication {
    /// Bobbin reports the end of each run of the subagent.
    #[default]
    Implicit,
    /// The parent receives only messages that code in the subagent sends. A call that waits still gets its
    /// result.
    Explicit,
}

impl ParentCommunication {
    /// As definitions and clients name it.
    pub const fn as_str(self) -> &'static str {
        match self {
            ParentCommunication::Implicit => "implicit",
            ParentCommunication::Explicit => "explicit",
        }
    }
}

/// `immediate`: `true`, `false`, or its hints.
pub fn immediate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Immediate>, D::Error> {
    deserializer.deserialize_any(Switch::on())
}

/// `resumable`: `false`, or how.
pub fn resumable<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Resumable>, D::Error> {
    deserializer.deserialize_any(Switch { on: None, form: PhantomData })
}

/// Something that is off with `false`, and on with an object or, if that says enough, with `true`.
pub struct Switch<T> {
    on: Option<T>,
    form: PhantomData<T>,
}

impl<T: Default> Switch<T> {
    /// One that `true` switches on.
    pub fn on() -> Switch<T> {
        Switch { on: Some(T::default()), form: PhantomData }
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Switch<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(if self.on.is_some() { "true, false or an object" } else { "false or an object" })
    }

    fn visit_bool<E: Error>(self, on: bool) -> Result<Self::Value, E> {
        match (on, self.on.is_some()) {
            (true, false) => Err(E::invalid_value(Unexpected::Bool(true), &self)),
            (true, true) => Ok(self.on),
            (false, _) => Ok(None),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Some)
    }
}

// The forms of such fields in files, for the schema alone.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(untagged, inline)]
#[expect(dead_code, reason = "a schema's form")]
pub(crate) enum BoolOr<T> {
    Bool(bool),
    Object(T),
}

#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(untagged, inline)]
#[expect(dead_code, reason = "a schema's form")]
pub(crate) enum FalseOr<T> {
    #[schemars(extend("enum" = [false]))]
    False(bool),
    Object(T),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_a_dot_mean_the_tools_of_workers() {
        for (name, meant) in [
            ("agent.spawn", "agent_spawn"),
            ("agent.close", "agent_close"),
            ("agent_wait", "agent_wait"),
            ("agent.other", "agent.other"),
            ("spawn", "spawn"),
        ] {
            assert_eq!(undotted(name), meant);
        }
        assert_eq!((dotted("agent_send"), dotted("agent_x")), ("agent.send".into(), "agent_x".into()));
    }

    #[test]
    fn what_is_not_said_of_workers_is_the_usual() {
        let workers: Workers = crate::json::from_str(r#"{"agents":["a"]}"#).unwrap();
        assert_eq!(
            (workers.enabled, workers.max_active, workers.id_prefix.as_str(), workers.can_spawn),
            (true, 4, "subagent", false)
        );
        assert_eq!(serde_json::to_string(&workers).unwrap(), r#"{"agents":["a"]}"#);
    }
}
