//! The content of the next request to a model, and summaries (docs/context.md).

use serde::Serialize;

use super::Micros;

/// The tokens of each part of a request.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContextParts {
    /// The system prompt.
    pub system: u64,
    /// The definitions of the tools.
    pub tools: u64,
    /// The summary.
    pub summary: u64,
    /// The documents from memories.
    pub memory: u64,
    /// The messages of the current turn.
    pub turn: u64,
    /// The messages before the current turn.
    pub history: u64,
}

/// The messages of a request.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContextHistory {
    /// The id of the first included message. `null` if none is included.
    pub from: Option<String>,
    /// The number of included messages.
    pub messages: u64,
    /// The number of older messages that are left out.
    pub left_out: i64,
}

/// A summary of earlier messages.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Summary"))]
pub struct ShownSummary<'a> {
    /// The number of the summary in its thread. Each change of the summary has a new one.
    pub epoch: i64,
    /// The id of the last message that it covers.
    pub upto: String,
    /// The approximate number of tokens of the text.
    pub tokens: i64,
    /// The name of the model that wrote it.
    pub model: &'a str,
    /// The time at which it was stored, in microseconds since 1970.
    pub created_at: Micros,
    /// Whether a message that it covers has changed since.
    pub stale: bool,
    /// The text.
    pub text: &'a str,
}

/// The tokens of the next request to the model (docs/context.md).
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Context<'a> {
    /// The name of the model.
    pub model: &'a str,
    /// The context window of the model, in tokens.
    pub window: u64,
    /// The limit on the tokens of the request.
    pub budget: u64,
    /// The factor from estimated tokens to tokens as the provider counts them.
    pub factor: f64,
    /// The tokens of each part, corrected by `factor`.
    pub parts: ContextParts,
    /// The used share of `budget`, 1 for all of it.
    pub used: f64,
    /// The included messages.
    pub history: ContextHistory,
    /// The current summary. `null` if there is none.
    pub summary: Option<ShownSummary<'a>>,
    /// With `history=true`: the last summaries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summaries: Option<Vec<ShownSummary<'a>>>,
}

/// A requested summary.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SummaryAsked {
    /// The epoch that the summary starts from.
    pub epoch: i64,
    /// The last message that the summary will cover. `null` if there is nothing to summarise.
    pub upto: Option<String>,
}
