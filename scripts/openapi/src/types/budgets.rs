//! Budgets and their usage (docs/budgets.md).

use std::collections::BTreeMap;

use schemars::JsonSchema;

use super::Object;

/// Limits of a run or a thread.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Limits {
    max_cost_usd: Option<f64>,
    max_tokens: Option<u64>,
    max_model_calls: Option<u64>,
    max_steps: Option<u64>,
    max_tool_calls: Option<u64>,
    max_seconds: Option<u64>,
}

/// Limits for a thread or a run. They only tighten those of the definitions.
#[derive(JsonSchema)]
pub(crate) struct GivenBudget {
    run: Option<Limits>,
    thread: Option<Limits>,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct BudgetChange {
    run: Option<Limits>,
    thread: Option<Limits>,
}

/// By unit: `costUsd`, `tokens`, `modelCalls`, `steps`, `toolCalls`, `seconds`.
type Amounts = BTreeMap<String, f64>;

#[derive(JsonSchema)]
pub(crate) struct BudgetLimits {
    run: BTreeMap<String, f64>,
    thread: BTreeMap<String, f64>,
    /// For a subagent: the share that its parent has allocated.
    #[schemars(skip_serializing_if = "Option::is_none")]
    parent: Option<BTreeMap<String, f64>>,
}

#[derive(JsonSchema)]
pub(crate) struct BudgetSpent {
    run: Amounts,
    thread: Amounts,
    #[schemars(skip_serializing_if = "Option::is_none")]
    parent: Option<Amounts>,
}

#[derive(JsonSchema)]
pub(crate) struct ThreadBudget {
    run: Option<String>,
    limits: BudgetLimits,
    spent: BudgetSpent,
    /// Amounts that are allocated to subagents.
    lent: Object,
    /// The remaining amounts of limited units.
    left: Amounts,
    /// Whether a part of the usage is an estimate.
    estimated: bool,
    wait: Option<String>,
}

/// The usage of requests to models.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct Used {
    /// USD.
    cost: f64,
    input_tokens: i64,
    cached_tokens: i64,
    output_tokens: i64,
    reasoning_tokens: i64,
    requests: i64,
    /// Answered requests to models without a price.
    unpriced: i64,
    estimated: bool,
}

#[derive(JsonSchema)]
pub(crate) struct ChildCost {
    id: String,
    agent: String,
    own: Option<Used>,
    total: Option<Used>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct Cost {
    thread_id: String,
    own: Used,
    descendants: Used,
    total: Used,
    children: Vec<ChildCost>,
    /// Threads that did not respond.
    incomplete: Vec<String>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    has_more: Option<bool>,
}
