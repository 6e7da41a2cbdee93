//! Budgets: what a run, or all runs of a thread together, may use, and what happens when that is used up (docs/budgets.md).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::definitions::agent::Agent;
use crate::definitions::catalog::Catalog;
use crate::definitions::context::SummaryMode;
use crate::definitions::model::{Model, Provider};
use crate::definitions::prompt::Prompt;
use crate::definitions::variable::is_default;
use crate::limits;

/// A budget. It can be set in `bobbin.json`, for an agent, for a thread and with a message. The smallest
/// value of each limit applies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Budget {
    /// The limits of one run.
    #[serde(skip_serializing_if = "is_default")]
    pub run: Limits,
    /// The limits of all runs of the thread together.
    #[serde(skip_serializing_if = "is_default")]
    pub thread: Limits,
    /// The fraction of a limit at which clients receive a warning, once per limit. Default: 0.8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warn_at: Option<f64>,
    /// The action when a limit is reached. Default: `ask`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_exceeded: Option<OnExceeded>,
    /// For `ask`: the time until the question expires, in seconds, at most 30 days. Default: 7 days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask_expires_after_seconds: Option<u64>,
    /// For `ask`: the outcome of the run after the question expires. Default: `fail`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_expiry: Option<BudgetExpiry>,
    /// For `finish`: the number of reply tokens that Bobbin reserves for the last step. Default: 2,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_reserve_tokens: Option<u64>,
    /// The treatment of models without a price when the cost is limited. Only for agents and `bobbin.json`.
    /// Default: `refuse`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unpriced: Option<Unpriced>,
    /// The maximum to which limits can be raised while threads run. Only for `bobbin.json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Ceiling>,
}

/// The limits of a run or a thread. 0 is a limit of 0. Default: no limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limits {
    /// The maximum cost, in USD.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
    /// The maximum number of tokens, as providers report them: input including cached tokens, and output
    /// including reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// The maximum number of attempts at models, including failed ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_model_calls: Option<u64>,
    /// The maximum number of steps of both sides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u64>,
    /// The maximum number of started tool calls, including calls within calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tool_calls: Option<u64>,
    /// The maximum active time, in seconds. Time that the run waits for people or subagents does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_seconds: Option<u64>,
}

/// The share of its parent's budget that one subagent may hold at a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Share {
    /// The maximum amount that the subagent may hold, in USD.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
    /// The fraction of the parent's remaining budget that the subagent gets. Default: 0.25.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

impl Share {
    /// What is wrong with it by itself: field and why.
    pub fn problems(&self) -> Vec<(&'static str, &'static str)> {
        let mut problems = Vec::new();
        if self.max_cost_usd.is_some_and(|usd| !usd.is_finite() || usd <= 0.0) {
            problems.push(("maxCostUsd", "must be more than 0 USD"));
        }
        if self.share.is_some_and(|share| !(share > 0.0 && share <= 1.0)) {
            problems.push(("share", "must be more than 0, and at most 1"));
        }
        problems
    }
}

/// The maximum to which limits can be raised.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ceiling {
    /// The maximum for one run.
    #[serde(skip_serializing_if = "is_default")]
    pub run: Limits,
    /// The maximum for all runs of a thread together.
    #[serde(skip_serializing_if = "is_default")]
    pub thread: Limits,
}

/// The action when a limit is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum OnExceeded {
    /// The run waits until a person decides.
    #[default]
    Ask,
    /// The run makes one last step without tools, and is then complete.
    Finish,
    /// The run fails.
    Fail,
}

/// The outcome of a run after its question about the budget expires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum BudgetExpiry {
    /// The run fails.
    #[default]
    Fail,
    /// The run makes one last step without tools, and is then complete.
    Finish,
}

/// The treatment of models without a price when the cost is limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Unpriced {
    /// A model without a price is an error in the definitions.
    #[default]
    Refuse,
    /// A model without a price costs nothing.
    Ignore,
}

/// What is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Millionths of a US dollar.
    #[serde(rename = "costUsd")]
    Cost,
    /// Tokens.
    #[serde(rename = "tokens")]
    Tokens,
    /// Attempts at models.
    #[serde(rename = "modelCalls")]
    ModelCalls,
    /// Steps.
    #[serde(rename = "steps")]
    Steps,
    /// Calls of tools.
    #[serde(rename = "toolCalls")]
    ToolCalls,
    /// Microseconds of activity.
    #[serde(rename = "seconds")]
    Time,
}

/// The limits by unit, in the order of [`Unit::ALL`].
pub type Caps = [Option<i64>; 6];

impl Unit {
    /// All of them.
    pub const ALL: [Unit; 6] =
        [Unit::Cost, Unit::Tokens, Unit::ModelCalls, Unit::Steps, Unit::ToolCalls, Unit::Time];

    /// What a thread shares with its subagents; the others are each thread's own.
    pub const SHARED: [Unit; 3] = [Unit::Cost, Unit::Tokens, Unit::ModelCalls];

    /// The field of its limit.
    pub const fn field(self) -> &'static str {
        match self {
            Unit::Cost => "maxCostUsd",
            Unit::Tokens => "maxTokens",
            Unit::ModelCalls => "maxModelCalls",
            Unit::Steps => "maxSteps",
            Unit::ToolCalls => "maxToolCalls",
            Unit::Time => "maxSeconds",
        }
    }

    /// The field of what was used.
    pub const fn name(self) -> &'static str {
        match self {
            Unit::Cost => "costUsd",
            Unit::Tokens => "tokens",
            Unit::ModelCalls => "modelCalls",
            Unit::Steps => "steps",
            Unit::ToolCalls => "toolCalls",
            Unit::Time => "seconds",
        }
    }

    /// An amount as clients see it: USD, seconds, or a number.
    pub fn shown(self, amount: i64) -> Value {
        match self {
            Unit::Cost => (amount as f64 / 1e6).into(),
            Unit::Time if amount % limits::SECOND_US != 0 => (amount as f64 / 1e6).into(),
            Unit::Time => (amount / limits::SECOND_US).into(),
            Unit::Tokens | Unit::ModelCalls | Unit::Steps | Unit::ToolCalls => amount.into(),
        }
    }
}

impl Limits {
    /// By unit.
    pub fn caps(&self) -> Caps {
        let whole = |n: Option<u64>| n.map(|n| i64::try_from(n).unwrap_or(i64::MAX));
        let micro = |usd: f64| (usd * 1e6 + 1e-3).floor().clamp(0.0, 9e15) as i64;
        [
            self.max_cost_usd.map(micro),
            whole(self.max_tokens),
            whole(self.max_model_calls),
            whole(self.max_steps),
            whole(self.max_tool_calls),
            whole(self.max_seconds).map(|seconds| seconds.saturating_mul(limits::SECOND_US)),
        ]
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        *self == Limits::default()
    }
}

/// Of two limits of the same the smaller one, unit by unit.
pub fn tightest(one: &Caps, other: &Caps) -> Caps {
    let mut caps = *one;
    for (cap, other) in caps.iter_mut().zip(other) {
        *cap = match (*cap, *other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }
    caps
}

impl Budget {
    /// Whether it limits what requests cost in USD.
    pub fn limits_cost(&self) -> bool {
        self.run.max_cost_usd.is_some() || self.thread.max_cost_usd.is_some()
    }

    /// Whether what it limits depends on how long an answer may be.
    fn limits_output(&self) -> bool {
        self.limits_cost() || self.run.max_tokens.is_some() || self.thread.max_tokens.is_some()
    }

    /// What is wrong with it by itself: field and why.
    pub fn problems(&self) -> Vec<(String, String)> {
        let mut problems = Vec::new();
        let ceiling = self.ceiling.clone().unwrap_or_default();
        for (at, limits) in [
            ("run", &self.run),
            ("thread", &self.thread),
            ("ceiling.run", &ceiling.run),
            ("ceiling.thread", &ceiling.thread),
        ] {
            if limits.max_cost_usd.is_some_and(|usd| !usd.is_finite() || usd < 0.0) {
                problems.push((format!("{at}.maxCostUsd"), "must be 0 or more USD".to_owned()));
            }
        }
        if self.warn_at.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
            problems.push(("warnAt".to_owned(), "must be from 0 to 1".to_owned()));
        }
        let longest = limits::WAIT_MAX_US / limits::SECOND_US;
        if self.ask_expires_after_seconds.is_some_and(|s| s == 0 || s > longest.unsigned_abs()) {
            let text = format!("must be from 1 to {longest} (30 days)");
            problems.push(("askExpiresAfterSeconds".to_owned(), text));
        }
        problems
    }
}

impl Catalog {
    /// Prompts of an agent: those of its sides, and those that these call, in the order in which they are found.
    fn prompts_of(&self, agent: &Agent) -> Vec<&Prompt> {
        let sides = std::iter::once(&agent.side_a).chain(&agent.side_b);
        let mut wanted: Vec<&str> = sides.map(|side| side.prompt.as_str()).collect();
        let mut found: Vec<&Prompt> = Vec::new();
        while let Some(name) = wanted.pop() {
            let is_new = |prompt: &&Prompt| found.iter().all(|seen| seen.name != prompt.name);
            let Some(prompt) = self.prompts.get(name).filter(is_new) else { continue };
            found.push(prompt);
            wanted.extend(prompt.tools.iter().map(|entry| entry.name.as_str()));
        }
        found
    }

    /// Models that an agent may ask for replies: of its prompts, and their fallbacks.
    fn models_of(&self, agent: &Agent) -> Vec<&Model> {
        self.prompts_of(agent).into_iter().flat_map(|prompt| self.model_chain(&prompt.model)).collect()
    }

    /// Models that are asked for something else on behalf of an agent: for summaries, and for vectors. What `demo` makes of texts
    /// asks nobody.
    fn models_beside(&self, agent: &Agent) -> Vec<&Model> {
        let of = |prompt: &Prompt| {
            let summary = prompt.summary.as_ref().filter(|summary| summary.mode != SummaryMode::Off);
            let chain = summary.and_then(|summary| summary.model.as_deref());
            let memories = prompt.memory.iter().filter_map(|entry| self.memories.get(&entry.name));
            let embedding = memories.filter_map(|memory| self.models.get(memory.embedding.as_ref()?));
            let asked = embedding.filter(|model| model.provider != Provider::Demo);
            chain.map(|name| self.model_chain(name)).into_iter().flatten().chain(asked).collect::<Vec<_>>()
        };
        self.prompts_of(agent).into_iter().flat_map(of).collect()
    }

    /// The first model of an agent that has no price. Includes models for summaries and vectors.
    pub fn unpriced_model(&self, agent: &Agent) -> Option<&str> {
        let unpriced = |model: &&Model| model.input_price.is_none() && model.output_price.is_none();
        let asked = self.models_of(agent).into_iter().chain(self.models_beside(agent));
        asked.into_iter().find(unpriced).map(|model| model.name.as_str())
    }

    /// The first model that an agent with this budget may ask and that does not say how long its answers may be.
    pub fn boundless_model(&self, agent: &Agent, budget: &Budget) -> Option<&str> {
        let boundless = |model: &&Model| model.capabilities.max_output_tokens.is_none();
        let found = || self.models_of(agent).into_iter().find(boundless).map(|model| model.name.as_str());
        if budget.limits_output() { found() } else { None }
    }

    /// What a limit on cost means to this agent where a model has no price.
    pub fn unpriced(&self, agent: &Agent) -> Unpriced {
        agent.budget.unpriced.or(self.settings.budget.unpriced).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_limits_the_smaller_holds_and_none_is_no_zero() {
        let limits = |cost: Option<f64>, tokens: Option<u64>| Limits {
            max_cost_usd: cost,
            max_tokens: tokens,
            ..Limits::default()
        };
        let folder = limits(Some(0.5), None).caps();
        let message = limits(Some(100.0), Some(0)).caps();
        let caps = tightest(&folder, &message);
        assert_eq!(&caps[..3], [Some(500_000), Some(0), None]);
        assert_eq!(limits(Some(0.000_001), None).caps()[0], Some(1));
        assert_eq!(
            limits(Some(0.07), None).caps()[0],
            Some(70_000),
            "no millionth is lost by binary fractions"
        );
    }

    #[test]
    fn what_is_no_limit_is_told_by_its_field() {
        let budget = Budget {
            run: Limits { max_cost_usd: Some(-0.1), ..Limits::default() },
            thread: Limits { max_cost_usd: Some(f64::NAN), ..Limits::default() },
            warn_at: Some(1.5),
            ask_expires_after_seconds: Some(0),
            ..Budget::default()
        };
        let fields: Vec<String> = budget.problems().into_iter().map(|(field, _)| field).collect();
        assert_eq!(fields, ["run.maxCostUsd", "thread.maxCostUsd", "warnAt", "askExpiresAfterSeconds"]);
        assert!(crate::json::from_str::<Budget>(r#"{ "run": { "maxTokens": -1 } }"#).is_err());
        assert!(crate::json::from_str::<Budget>(r#"{ "run": { "maxCost": 1 } }"#).is_err());
    }
}
