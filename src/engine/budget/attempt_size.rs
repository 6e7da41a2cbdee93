//! The size of a request to a model, before it is made.

use crate::definitions::Model;
use crate::engine::budget::estimate;
use crate::engine::features::Budgets;
use crate::error::Result;
use crate::limits;
use crate::models::ChatRequest;
use crate::store::log_record::MaxTokens;
use crate::store::runs::Run;
use crate::store::runs::ledger::Amounts;

/// Model options that limit the length of an answer.
pub(super) const OUTPUT_OPTIONS: [&str; 2] = ["max_tokens", "max_completion_tokens"];

/// The size of an attempt.
#[derive(Clone, Copy)]
pub(crate) struct AttemptSize<'a> {
    pub(super) model: &'a Model,
    /// Estimated tokens of the request.
    pub(crate) input: u64,
    /// The maximum tokens of an uncapped answer.
    pub(crate) full: u64,
}

impl Budgets<'_> {
    /// The size of an attempt as its provider would count it. The result is the same after a crash, so that
    /// the size of a lost attempt is known.
    pub(crate) fn size_of<'a>(&self, model: &'a Model, request: &ChatRequest) -> Result<AttemptSize<'a>> {
        let factor = self.read(|state, _| Ok(state.meta.calibration.kept_factor(&model.name)))?;
        Ok(AttemptSize { model, input: estimate::input(request, factor), full: full_output(request) })
    }

    /// The maximum usage of a lost attempt of unknown size: its run ended before the step was entered again.
    pub(super) fn unknown_attempt(&self, agent: &str, run: Option<&Run>) -> Amounts {
        let definitions = run.and_then(|run| self.definitions_of(agent, run.side));
        let place = run.and_then(|run| usize::try_from(run.model).ok()).unwrap_or(0);
        let chain = definitions.as_ref().map_or(&[] as &[&Model], |definitions| &definitions.chain);
        let Some(model) = chain.get(place).or(chain.first()) else { return Amounts::attempt(0, 0) };
        let input = model.capabilities.max_context_tokens.unwrap_or(limits::WINDOW_TOKENS);
        let output = model.capabilities.max_output_tokens.unwrap_or(limits::BUDGET_FULL_OUTPUT);
        estimate::worst(model, MaxTokens { input, output })
    }
}

/// The maximum tokens of the answer, by the request's options.
fn full_output(request: &ChatRequest) -> u64 {
    let options = OUTPUT_OPTIONS.into_iter().filter_map(|name| request.options.get(name)?.as_u64());
    options.chain(request.max_output_tokens).min().unwrap_or(limits::BUDGET_FULL_OUTPUT)
}
