//! `GET …/runs` and `GET …/runs/:run`: the runs of a thread, and the outcome of each.

use crate::api::Api;
use crate::api::trace;
use crate::engine::cycle::outcome;
use crate::error::{Code, Error, Result};
use crate::json_text::JsonText;
use crate::limits;
use crate::page::Page;
use crate::protocols::responses::runs::{ListedRun, RunPage};
use crate::request::{Query, Reply, ThreadRequest};
use crate::store::messages::message_id;
use crate::store::runs::Run;

impl Api<'_> {
    /// `GET …/runs`: newest first; with a run in the query, those before it.
    pub(super) fn list_runs(&self, query: &Query) -> Result<Reply> {
        let limit = query.number("limit", limits::RUNS_DEFAULT, limits::PAGE_MAX)?;
        let before = match query.get("before").filter(|id| !id.is_empty()) {
            None => i64::MAX >> 11,
            Some(id) => number(id).ok_or_else(|| {
                Error::new(Code::BadCursor, format!("`before` is no run of this thread: “{id}”."))
                    .at("before")
            })?,
        };
        self.read(|state, sql| {
            let thread = &state.meta.stem;
            let mut page = Page::new(limit);
            Run::newest(sql, before, &mut |run| page.add_text(|| JsonText::new(&listed(&run, thread))))?;
            let has_more = page.has_more();
            Ok(Reply::json(200, &RunPage { runs: page.into_rows(), has_more }))
        })
    }

    /// `GET …/runs/:run`: the outcome of a run, and its trace if requested.
    pub(super) fn get_run(&self, request: &ThreadRequest, id: &str) -> Result<Reply> {
        let wants_trace = request.query.flag("trace")?;
        let missing = || Error::new(Code::NotFound, format!("This thread has no run “{id}”."));
        let number = number(id).ok_or_else(missing)?;
        let now = self.host.now_us();
        self.read_mut(|state, sql| {
            // The state in memory is newer than the row.
            let active = state.run.clone().filter(|run| run.id == number);
            let run = match active {
                Some(run) => run,
                None => Run::find(sql, number)?.ok_or_else(missing)?,
            };
            let mut body = outcome::of_run(state, sql, &run, None, now)?;
            if run.phase.is_parked() {
                body.token = self.waits().decision_token(state, sql, &request.caller)?;
            }
            body.started_at = Some(run.started_us);
            body.ended_at = Some(run.end.as_ref().map(|end| end.at_us));
            if wants_trace {
                let (events, truncated) = trace::of_run(state, sql, &run)?;
                (body.trace, body.truncated) = (Some(events), Some(truncated));
            }
            Ok(Reply::json(200, &body))
        })
    }
}

/// The number of `r_<number>`.
fn number(id: &str) -> Option<i64> {
    id.strip_prefix("r_")?.parse().ok().filter(|number| (1..=i64::MAX >> 11).contains(number))
}

/// A run as an entry of the list.
fn listed(run: &Run, thread: &str) -> ListedRun {
    let end = run.end.as_ref();
    ListedRun {
        run: run.public_id(),
        status: outcome::status(run),
        outcome: outcome::outcome(run),
        reason: end.map(|end| end.reason.as_str()),
        error: end.and_then(outcome::error),
        message_id: (run.step > 0).then(|| message_id(thread, run.block)),
        steps: run.step,
        diagnostics: run.diagnostics.len() as u64,
        started_at: run.started_us,
        ended_at: end.map(|end| end.at_us),
    }
}
