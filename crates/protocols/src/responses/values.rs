//! Values of a thread (docs/files.md), and its effects (docs/effects.md).

use bobbin_definitions::json_text::JsonText;
use serde::Serialize;
use serde_json::Value;

use super::Micros;

/// The value of a key.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OneValue<'a> {
    /// The key.
    pub key: &'a str,
    /// The value. `null` if there is none.
    pub value: Value,
}

/// A value in a list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedValue<'a> {
    /// The key.
    pub key: &'a str,
    /// Bytes of JSON.
    pub size: u64,
    /// The time of the last change, in microseconds since 1970.
    pub updated_at: Micros,
    /// The value. Absent if it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Why the value cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damaged: Option<String>,
}

// A row is a `ListedValue`: text for clients, JSON for code.
/// A page of values, by key.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ValuePage"))]
pub struct ValuePage<'a, Row> {
    /// The values.
    pub values: Vec<Row>,
    /// The number of values that match the request.
    pub total: u64,
    /// The maximum number of rows, as requested.
    pub limit: u32,
    /// The number of skipped rows, as requested.
    pub offset: u32,
    /// The requested beginning of keys. Empty if none was requested.
    pub prefix: &'a str,
    /// The requested part of keys. Empty if none was requested.
    pub search: &'a str,
    /// The `cursor` of the next page. `null` on the last page.
    pub cursor: Option<String>,
}

/// The result of setting, deleting or renaming a value.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ValueSet {
    /// The key.
    pub key: String,
    /// The value. `null` if it was deleted.
    pub value: Value,
    /// The deleted key of a renamed value. `null` if it was not renamed.
    pub previous_key: Option<String>,
    /// Whether the value was deleted.
    pub deleted: bool,
}

/// The status of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum EffectStatus {
    /// It is due later.
    Pending,
    /// An attempt is running, or was when the process crashed.
    Processing,
    /// It has ended.
    Completed,
    /// It has failed: every attempt failed, or it cannot run at all.
    Failed,
    /// Cancelled by code of the agent, or by the thread's termination.
    AgentCanceled,
    /// Cancelled by a client.
    UserCanceled,
}

impl EffectStatus {
    /// The form in the table and for clients.
    pub const fn as_str(self) -> &'static str {
        match self {
            EffectStatus::Pending => "pending",
            EffectStatus::Processing => "processing",
            EffectStatus::Completed => "completed",
            EffectStatus::Failed => "failed",
            EffectStatus::AgentCanceled => "agent_canceled",
            EffectStatus::UserCanceled => "user_canceled",
        }
    }

    /// The status with a name. An unknown one counts as failed, so that no other effect waits for its row.
    pub fn parse(text: &str) -> EffectStatus {
        match text {
            "pending" => EffectStatus::Pending,
            "processing" => EffectStatus::Processing,
            "completed" => EffectStatus::Completed,
            "agent_canceled" => EffectStatus::AgentCanceled,
            "user_canceled" => EffectStatus::UserCanceled,
            _ => EffectStatus::Failed,
        }
    }
}

/// The repetition of an effect: `every` or `cron`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Repetition {
    /// Milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<i64>,
    /// Five fields, in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
}

/// An effect, scheduled or ended.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Effect<'a> {
    /// The id of the effect.
    pub id: String,
    /// The name of the effect.
    pub name: &'a str,
    /// The arguments.
    pub args: Value,
    /// The status.
    pub status: EffectStatus,
    /// The time for which it was scheduled, in microseconds since 1970.
    pub scheduled_at: Micros,
    /// The time of the next attempt, in microseconds since 1970. `null` if it has ended.
    pub due_at: Option<Micros>,
    /// The time of the end, in microseconds since 1970. `null` until then.
    pub ended_at: Option<Micros>,
    /// The time of the creation, in microseconds since 1970.
    pub created_at: Micros,
    /// The repetition. `null` if it runs once.
    pub repeat: Option<Repetition>,
    /// The number of this occurrence, from 1, if the effect repeats.
    pub occurrence: Option<i64>,
    /// The number of attempts.
    pub attempts: u32,
    /// The error of the last attempt. `null` if there is none.
    pub error: Option<&'a str>,
    /// The repeating effect of which this is one occurrence.
    pub occurrence_of: Option<String>,
    /// The effect that this one replays.
    pub replayed_from: Option<String>,
    /// The same for all attempts. The effect can pass it to other systems.
    pub idempotency_key: String,
}

/// A page of effects: scheduled ones in order, then ended ones, newest first.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EffectPage {
    /// The effects.
    pub effects: Vec<JsonText<Effect<'static>>>,
    /// The number of effects, scheduled and ended.
    pub total: u32,
    /// The number of scheduled effects.
    pub upcoming_count: u32,
    /// The maximum number of rows, as requested.
    pub limit: u32,
    /// The number of skipped rows, as requested.
    pub offset: u32,
    /// Whether more effects follow.
    pub has_more: bool,
}

/// The action on an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum EffectAction {
    /// It became due now.
    Ran,
    /// A copy became due now.
    Replayed,
    /// It will not run.
    Canceled,
}

/// The party that has cancelled an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Initiator {
    /// Code of the agent.
    Agent,
    /// A client.
    User,
}

/// The result of running or cancelling an effect.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EffectChanged<'a> {
    /// The action.
    pub action: EffectAction,
    /// The id of the effect.
    pub id: &'a str,
    /// For a cancelled effect: the party that has cancelled it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canceled_by: Option<Initiator>,
    /// For a replayed effect: the id of the copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayed_id: Option<String>,
}

/// An effect.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OneEffect<'a> {
    /// The effect.
    pub effect: Effect<'a>,
}

/// A value for a request with `key`, otherwise a page.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(untagged)]
pub enum Values {
    /// With `key`.
    One(OneValue<'static>),
    /// Without `key`.
    Page(ValuePage<'static, ListedValue<'static>>),
}
