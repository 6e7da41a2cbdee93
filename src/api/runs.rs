//! `GET …/runs` and `GET …/runs/:run`: the runs of a thread, and the outcome of each.

use serde_json::Value;

use crate::api::Api;
use crate::api::trace;
use crate::engine::cycle::outcome;
use crate::error::{Code, Error, Result};
use crate::json;
use crate::limits;
use crate::page::Page;
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
            Run::newest(sql, before, &mut |run| page.add(|| Ok(listed(&run, thread))))?;
            let has_more = page.has_more();
            Ok(Reply::json(200, &json!({ "runs": page.into_rows(), "hasMore": has_more })))
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
                self.waits().add_token(state, sql, &request.caller, &mut body)?;
            }
            if let Some(fields) = body.as_object_mut() {
                fields.insert("startedAt".into(), run.started_us.into());
                fields.insert("endedAt".into(), run.end.as_ref().map(|end| end.at_us).into());
                if wants_trace {
                    let (entries, truncated) = trace::of_run(state, sql, &run)?;
                    fields.insert("trace".into(), entries.into());
                    fields.insert("truncated".into(), truncated.into());
                }
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
fn listed(run: &Run, thread: &str) -> Value {
    let end = run.end.as_ref();
    json!({
        "run": run.public_id(),
        "status": outcome::status(run),
        "outcome": outcome::outcome(run),
        "reason": end.map(|end| end.reason.as_str()),
        "error": end.and_then(outcome::error),
        "messageId": (run.step > 0).then(|| message_id(thread, run.block)),
        "steps": run.step,
        "diagnostics": run.diagnostics.len(),
        "startedAt": run.started_us,
        "endedAt": end.map(|end| end.at_us),
    })
}
