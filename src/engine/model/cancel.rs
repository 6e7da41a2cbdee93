//! Background responses (`background`) of a stopped run. The provider continues them without a client, so a
//! job cancels each one, to stop its cost.

use serde::{Deserialize, Serialize};

use crate::engine::jobs::JobEnd;
use crate::engine::thread::Thread;
use crate::error::{Error, Result};
use crate::host::Sql;
use crate::limits;
use crate::models::backoff::retry_after_ms;
use crate::models::responses::background;
use crate::store::jobs::{Job, Kind};
use crate::store::runs::Run;
use crate::store::state::State;
use crate::store::{jobs, logs};
use crate::work::timeout::Deadline;

/// The data of a cancel job.
#[derive(Serialize, Deserialize)]
struct CancelData {
    run: i64,
    model: String,
}

impl Thread {
    /// Schedules the cancellation of the provider's open responses, for a run that ends in the middle of its
    /// step.
    pub(in crate::engine) fn schedule_cancels(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        run: &Run,
        now: i64,
    ) -> Result<()> {
        // Skip the read if no model uses background responses.
        if !self.catalog.models.values().any(background::is_used_by) {
            return Ok(());
        }
        for (id, model) in logs::all_in_background(sql, run.block)? {
            let data = serde_json::to_string(&CancelData { run: run.id, model }).map_err(Error::internal)?;
            if jobs::add(state, sql, Kind::Cancel, &id, now, &data)? {
                self.arm_at(state, sql, now, now)?;
            }
        }
        Ok(())
    }

    /// Makes one attempt at the job. A response that has ended or is unknown needs no cancellation.
    pub(in crate::engine) async fn cancel_answer(&self, job: &Job) -> Result<JobEnd> {
        let done = || JobEnd::Done(Box::new(|_, _| Ok(None)));
        let failed = |error: String, after_us| JobEnd::Failed { error, after_us, data: job.data.clone() };
        let answer: CancelData = crate::json::from_str(&job.data).map_err(Error::internal)?;
        let Some(model) = self.catalog.models.get(&answer.model) else {
            self.variables().log(&format!(
                "an answer was not cancelled: there is no model \"{}\" any more",
                answer.model
            ));
            return Ok(done());
        };
        let deployment = |name: &str| self.variables().deployment(name);
        if let Some(lack) = crate::models::lacks(model, &deployment) {
            return Ok(failed(lack.to_string(), 0));
        }
        let key = model.key_env().and_then(deployment);
        let request = background::cancel(
            &model.base_url(&deployment).unwrap_or_default(),
            key.as_deref(),
            &job.subject,
        );
        let host = &*self.host;
        Ok(match Deadline::for_ms(host, limits::CANCEL_MS).within(host.fetch(request)).await {
            None => failed(format!("{} did not answer within {} s", model.name, limits::CANCEL_MS / 1000), 0),
            Some(Err(error)) => failed(format!("{} could not be reached: {error}", model.name), 0),
            Some(Ok(response)) => match response.status {
                429 | 500.. => {
                    let after = retry_after_ms(None, response.header("retry-after"), host.now_us());
                    let after_us =
                        after.and_then(|ms| i64::try_from(ms).ok()).unwrap_or(0).saturating_mul(1000);
                    failed(format!("{} answered {}", model.name, response.status), after_us)
                }
                401 | 403 => failed(format!("{} answered {}", model.name, response.status), 0),
                _ => done(),
            },
        })
    }
}
