//! Limits in requests (docs/budgets.md).

use schemars::JsonSchema;

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
