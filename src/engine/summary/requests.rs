//! `POST …/context/summarize` and `DELETE …/context/summary`: a client requests or deletes a summary.

use crate::definitions::context::SummarySettings;
use crate::engine::context::{next_span, window_from};
use crate::engine::definitions::Definitions;
use crate::engine::features::Summarizer;
use crate::engine::summary::plan::{Cause, Criteria, first_kept};
use crate::engine::summary::{hold, settings_of};
use crate::error::{Code, Error, Result};
use crate::protocols::responses::context::SummaryAsked;
use crate::request::Reply;
use crate::request::fields::Body;
use crate::store::jobs::Kind;
use crate::store::messages::message_id;
use crate::store::summaries::SummaryState;
use crate::store::{jobs, summaries};

impl Summarizer<'_> {
    /// `POST …/context/summarize`.
    pub(crate) async fn summarize(&self, body: &str) -> Result<Reply> {
        Body::parse(body)?.known(&[])?;
        self.read(|state, _| state.ensure_not_terminated())?;
        self.variables().ready_env().await?;
        let definitions = self.definitions_now()?;
        let Some(settings) = settings_of(definitions.prompt) else {
            let text = format!("The prompt \"{}\" makes no summaries.", definitions.prompt.name);
            return Err(Error::new(Code::Conflict, text).hint("Give it `summary`, and `includeChat`."));
        };
        let first = self.requested_first_kept(&definitions, settings)?;
        let now = self.host.now_us();
        let (epoch, upto) = self.transition(|state, sql| {
            state.ensure_not_terminated()?;
            let current = state.meta.summary.clone().unwrap_or_default();
            let epoch = current.epoch;
            if current.paused.is_some() {
                hold(state, sql, SummaryState { paused: None, untold: false, ..current })?;
            }
            let upto = match first {
                Some(first) => self.add_summary(state, sql, first, &definitions.prompt.name, now)?,
                None => None,
            };
            Ok((epoch, upto.map(|upto| message_id(&state.meta.stem, upto))))
        })?;
        Ok(Reply::json(202, &SummaryAsked { epoch, upto }))
    }

    /// Seq of the first message that stays; `None` if there is nothing to summarise.
    fn requested_first_kept(
        &self,
        definitions: &Definitions<'_>,
        settings: &SummarySettings,
    ) -> Result<Option<i64>> {
        let (_, _, space) = self.model_context().next_parts(definitions)?;
        self.read_mut(|state, sql| {
            let (past, span, _) = next_span(definitions, state);
            let window = window_from(state, sql, past, &span, space.messages)?;
            let wish = Criteria {
                cause: Cause::Asked,
                settings,
                trigger: definitions.prompt.context.trigger(),
                room: space.messages + space.summary,
                summary: space.summary,
                turns: 0,
            };
            let first = first_kept(&window, past.latest(span.turn_from), &span, &wish);
            state.window = Some(window);
            Ok(first)
        })
    }

    /// `DELETE …/context/summary`: messages replace it again, as far as they fit. A summary in progress is
    /// not stored.
    pub(crate) fn drop_summary(&self) -> Result<Reply> {
        self.transition(|state, sql| {
            let job = jobs::of_kind(state, sql, Kind::Summary)?;
            if let Some(job) = &job {
                jobs::remove(state, sql, job.id)?;
            }
            if job.is_some() || state.meta.summary.is_some() {
                let current = state.meta.summary.clone().unwrap_or_default();
                summaries::clear(sql)?;
                // The new epoch makes a job in progress discard its result.
                let current = SummaryState { epoch: current.epoch + 1, upto: 0, stale: false, ..current };
                hold(state, sql, current)?;
            }
            (state.window, state.summary) = (None, None);
            Ok(())
        })?;
        self.ephemeral.summaries.plan.borrow_mut().take();
        Ok(Reply::empty(204))
    }
}
