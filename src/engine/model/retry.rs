//! Retries in a step: the policy for a model or a tool, and the pause before the next attempt
//! (docs/models.md).

use crate::definitions::retry::{EffectivePolicy, Policy, PolicySources, Retry, RetryKind, shared_attempts};
use crate::definitions::tier::may_repeat;
use crate::definitions::{Implementation, Model, Tool};
use crate::engine::definitions::Definitions;
use crate::engine::features::Retries;
use crate::error::{Error, Result};
use crate::limits;

impl Retries<'_> {
    /// The policy for a model of the step.
    pub(in crate::engine) fn model_retry(
        &self,
        definitions: &Definitions<'_>,
        model: &Model,
    ) -> Result<EffectivePolicy> {
        self.retry_policy(definitions, RetryKind::Model, &model.retry)
    }

    /// The policy for a tool of the step; `None` for a tool whose calls are never repeated.
    pub(in crate::engine) fn tool_retry(
        &self,
        definitions: &Definitions<'_>,
        tool: &Tool,
    ) -> Result<Option<EffectivePolicy>> {
        if !may_repeat(tool) {
            return Ok(None);
        }
        let kind = match &tool.run {
            Implementation::Mcp(_) => RetryKind::Mcp,
            _ => RetryKind::Tool,
        };
        self.retry_policy(definitions, kind, &tool.retry).map(Some)
    }

    /// The policy for an embedding model of the step.
    pub(in crate::engine) fn embedding_retry(
        &self,
        definitions: &Definitions<'_>,
        model: &Model,
    ) -> Result<EffectivePolicy> {
        self.retry_policy(definitions, RetryKind::Embedding, &model.retry)
    }

    /// The number of attempts of each model of the chain in a step.
    pub(in crate::engine) fn attempts_of(&self, definitions: &Definitions<'_>) -> Result<Vec<u32>> {
        let wanted: Vec<u32> = definitions
            .chain
            .iter()
            .map(|model| Ok(self.model_retry(definitions, model)?.max_attempts))
            .collect::<Result<_>>()?;
        Ok(shared_attempts(&wanted))
    }

    fn retry_policy(
        &self,
        definitions: &Definitions<'_>,
        kind: RetryKind,
        own: &Policy,
    ) -> Result<EffectivePolicy> {
        let run = self.read(|state, _| {
            let text = state.active().and_then(|run| run.retry.as_deref());
            text.map(crate::json::from_str::<Retry>).transpose().map_err(Error::internal)
        })?;
        let places = PolicySources {
            run: run.as_ref(),
            prompt: Some(&definitions.prompt.retry),
            folder: Some(&self.catalog.settings.retry_defaults),
            definition: Some(own),
        };
        Ok(EffectivePolicy::of(kind, places))
    }

    /// Waits before the next attempt, in memory. If the run cannot be parked, this includes long pauses, as
    /// far as `wait` allows. The attempt is counted already.
    pub(in crate::engine) async fn pause_before_retry(&self, pause_us: i64) {
        let pause_us = pause_us.min(limits::RETRY_AFTER_MAX_US);
        self.host.sleep_until(self.host.now_us() + pause_us).await;
    }
}
