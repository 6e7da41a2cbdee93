//! Use by the requests of a run. It is counted in memory during the run, and read from the log if part of it
//! happened before the object was loaded.

use std::ops::ControlFlow;

use serde_json::Value;

use crate::error::Result;
use crate::host::Sql;
use crate::protocols::responses::runs::RunUsage;
use crate::store::log_record::Attempt;
use crate::store::logs;
use crate::store::meta;
use crate::store::runs::Run;
use crate::store::state::State;

/// The sums over the attempts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    run: i64,
    /// USD, of the attempts whose models have a price.
    cost: f64,
    input_tokens: i64,
    output_tokens: i64,
    model_calls: i64,
    tool_calls: i64,
}

impl Usage {
    /// Use of a new run.
    pub(crate) fn none(run: i64) -> Usage {
        Usage { run, ..Usage::default() }
    }

    /// Adds an attempt, given its log row.
    fn add(&mut self, attempt: &Value) {
        let number = |name: &str| attempt.get(name).and_then(Value::as_i64).unwrap_or(0);
        self.cost += attempt.get("cost_total").and_then(Value::as_f64).unwrap_or(0.0);
        self.input_tokens += number("input_tokens");
        self.output_tokens += number("output_tokens");
        self.model_calls += 1;
        let called = attempt.get("tools_called").and_then(Value::as_array).map_or(0, Vec::len);
        self.tool_calls += i64::try_from(called).unwrap_or(0);
    }

    /// Reads the use from the log.
    fn read(sql: &dyn Sql, run: i64) -> Result<Usage> {
        let mut usage = Usage::none(run);
        logs::of_run(sql, run, &mut |row| {
            if row.kind == logs::ATTEMPT {
                usage.add(&crate::json::from_str(&row.data).unwrap_or_default());
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(usage)
    }

    /// The use of a run, as clients receive it.
    pub(crate) fn of(state: &State, sql: &dyn Sql, run: &Run, now: i64) -> Result<RunUsage> {
        let usage = match state.usage.filter(|usage| usage.run == run.id) {
            Some(usage) => usage,
            None => Usage::read(sql, run.id)?,
        };
        let until = run.end.as_ref().map_or(now, |end| end.at_us);
        Ok(RunUsage {
            cost_usd: (usage.cost * 1e9).round() / 1e9,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            model_calls: usage.model_calls,
            tool_calls: usage.tool_calls,
            steps: run.step,
            seconds: (until - run.started_us).max(0) / crate::limits::SECOND_US,
        })
    }
}

impl State {
    /// Learns from the provider's report of an attempt's request, so that later estimates for the model
    /// improve. Stored only if the factor has changed enough.
    pub(crate) fn calibrate(&mut self, sql: &dyn Sql, attempt: &Attempt) -> Result<()> {
        let Some(estimated) = attempt.estimated_tokens else { return Ok(()) };
        match self.meta.calibration.learn(&attempt.model, estimated, attempt.input_tokens) {
            Some(column) => meta::set_calibration(sql, &column),
            None => Ok(()),
        }
    }

    /// Writes an attempt to the log, and counts it if it belongs to the active run.
    pub(crate) fn log_attempt(&mut self, sql: &dyn Sql, attempt: &Attempt) -> Result<()> {
        attempt.insert(sql)?;
        if let (Some(usage), Some(end)) = (&mut self.usage, &attempt.end)
            && usage.run == attempt.run
        {
            usage.add(end);
        }
        Ok(())
    }
}
