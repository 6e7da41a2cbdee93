//! Budgets and their usage (docs/budgets.md).

use std::ops::AddAssign;

use bobbin_definitions::json_text::JsonText;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Object;

/// The scope of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum BudgetScope {
    /// The run.
    Run,
    /// All runs of the thread.
    Thread,
    /// The parent's allocation to a subagent.
    Parent,
}

impl BudgetScope {
    /// All scopes, in the order of responses.
    pub const ALL: [BudgetScope; 3] = [BudgetScope::Run, BudgetScope::Thread, BudgetScope::Parent];

    /// The form in tables and for clients.
    pub const fn as_str(self) -> &'static str {
        match self {
            BudgetScope::Run => "run",
            BudgetScope::Thread => "thread",
            BudgetScope::Parent => "parent",
        }
    }
}

/// The schema of [`Amounts`].
#[cfg(feature = "schema")]
type Numbers = std::collections::BTreeMap<String, f64>;

/// Numbers by unit: USD, seconds, or a count. Limits have the names of definitions, such as `maxCostUsd`.
/// Amounts have `costUsd`, `tokens`, `modelCalls`, `steps`, `toolCalls` and `seconds`.
pub type Amounts = Object;

/// The limits of a thread, by scope.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BudgetLimits {
    /// The limits of each run.
    #[cfg_attr(feature = "schema", schemars(with = "Numbers"))]
    pub run: Amounts,
    /// The limits of all runs together.
    #[cfg_attr(feature = "schema", schemars(with = "Numbers"))]
    pub thread: Amounts,
    /// For a subagent: the share that its parent has allocated.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Numbers>"))]
    pub parent: Option<Amounts>,
}

/// The usage of a thread, by scope of the limits.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BudgetSpent {
    /// The usage of the run.
    #[cfg_attr(feature = "schema", schemars(with = "Numbers"))]
    pub run: Amounts,
    /// The usage of all runs.
    #[cfg_attr(feature = "schema", schemars(with = "Numbers"))]
    pub thread: Amounts,
    /// For a subagent: the usage of the share that its parent has allocated.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Numbers>"))]
    pub parent: Option<Amounts>,
}

/// Amounts of the units that a thread shares with its subagents.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SharedAmounts {
    /// USD.
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub cost_usd: Value,
    /// Tokens of requests and responses.
    pub tokens: i64,
    /// Requests to models.
    pub model_calls: i64,
}

/// The amounts that are allocated to a subagent.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LentShare {
    /// The allocated amounts.
    #[serde(flatten)]
    pub granted: SharedAmounts,
    /// The id of the subagent's thread.
    pub id: String,
    /// The used part of them.
    pub spent: SharedAmounts,
}

/// The amounts that are allocated to subagents.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LentAmounts {
    /// The sums of all subagents.
    #[serde(flatten)]
    pub total: SharedAmounts,
    /// Newest first.
    pub children: Vec<LentShare>,
}

/// The limits and the usage of a thread.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadBudget {
    /// The newest run. `null` if there is none.
    pub run: Option<String>,
    /// The limits.
    pub limits: BudgetLimits,
    /// The usage.
    pub spent: BudgetSpent,
    /// Amounts that are allocated to subagents.
    pub lent: LentAmounts,
    /// The remaining amounts of limited units.
    #[cfg_attr(feature = "schema", schemars(with = "Numbers"))]
    pub left: Amounts,
    /// Whether a part of the usage is an estimate.
    pub estimated: bool,
    /// The open wait that asks for more.
    pub wait: Option<String>,
}

/// The usage of requests to models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Used"))]
pub struct UsageTotals {
    /// USD, for requests to models with a known price.
    pub cost: f64,
    /// Tokens of requests.
    pub input_tokens: i64,
    /// Tokens of requests that the provider had cached, a part of `inputTokens`.
    pub cached_tokens: i64,
    /// Tokens of responses.
    pub output_tokens: i64,
    /// Tokens of reasoning, a part of `outputTokens`.
    pub reasoning_tokens: i64,
    /// The number of requests.
    pub requests: i64,
    /// Answered requests to models without a price.
    pub unpriced: i64,
    /// Whether the usage of a request is unknown. The sums then contain a budget's estimate, or lack it.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(!default))]
    pub estimated: bool,
}

impl UsageTotals {
    /// Dollars rounded to billionths. This drops floating-point noise from a sum.
    pub fn rounded(dollars: f64) -> f64 {
        (dollars * 1e9).round() / 1e9
    }
}

impl AddAssign for UsageTotals {
    fn add_assign(&mut self, more: UsageTotals) {
        self.cost = UsageTotals::rounded(self.cost + more.cost);
        self.input_tokens += more.input_tokens;
        self.cached_tokens += more.cached_tokens;
        self.output_tokens += more.output_tokens;
        self.reasoning_tokens += more.reasoning_tokens;
        self.requests += more.requests;
        self.unpriced += more.unpriced;
        self.estimated |= more.estimated;
    }
}

/// The usage of a subagent.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChildCost<'a> {
    /// The id of the subagent's thread.
    pub id: &'a str,
    /// The agent of the subagent.
    pub agent: &'a str,
    /// The usage of the subagent itself.
    pub own: UsageTotals,
    /// The usage of the subagent and its subagents.
    pub total: UsageTotals,
}

/// The usage of a thread and its subagents.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cost {
    /// The id of the thread.
    pub thread_id: String,
    /// The usage of the thread itself.
    pub own: UsageTotals,
    /// The usage of its subagents and theirs.
    pub descendants: UsageTotals,
    /// The sum of both.
    pub total: UsageTotals,
    /// Newest first.
    pub children: Vec<JsonText<ChildCost<'static>>>,
    /// Whether `children` lacks some. The sums contain them.
    pub has_more: bool,
    /// Threads that did not respond.
    pub incomplete: Vec<String>,
}
