//! Values of a thread (docs/files.md), and its effects (docs/effects.md).

use bobbin_definitions::json_text::JsonText;
use serde::Serialize;
use serde_json::Value;

use super::Micros;

/// The value of a key.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OneValue<'a> {
    pub key: &'a str,
    pub value: Value,
}

/// A value in a list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedValue<'a> {
    pub key: &'a str,
    /// Bytes of JSON.
    pub size: u64,
    pub updated_at: Micros,
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
    pub values: Vec<Row>,
    pub total: u64,
    pub limit: u32,
    pub offset: u32,
    pub prefix: &'a str,
    pub search: &'a str,
    pub cursor: Option<String>,
}

/// The result of setting, deleting or renaming a value.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ValueSet {
    pub key: String,
    pub value: Value,
    pub previous_key: Option<String>,
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
    pub id: String,
    pub name: &'a str,
    pub args: Value,
    pub status: EffectStatus,
    pub scheduled_at: Micros,
    pub due_at: Option<Micros>,
    pub ended_at: Option<Micros>,
    pub created_at: Micros,
    pub repeat: Option<Repetition>,
    /// The number of this occurrence, from 1, if the effect repeats.
    pub occurrence: Option<i64>,
    pub attempts: u32,
    pub error: Option<&'a str>,
    /// The repeating effect of which this is one occurrence.
    pub occurrence_of: Option<String>,
    /// The effect that this one replays.
    pub replayed_from: Option<String>,
    pub idempotency_key: String,
}

/// A page of effects: scheduled ones in order, then ended ones, newest first.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EffectPage {
    pub effects: Vec<JsonText<Effect<'static>>>,
    pub total: u32,
    pub upcoming_count: u32,
    pub limit: u32,
    pub offset: u32,
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
    pub action: EffectAction,
    pub id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canceled_by: Option<Initiator>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayed_id: Option<String>,
}

/// An effect.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OneEffect<'a> {
    pub effect: Effect<'a>,
}

/// A value for a request with `key`, otherwise a page.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(untagged)]
pub enum Values {
    One(OneValue<'static>),
    Page(ValuePage<'static, ListedValue<'static>>),
}
