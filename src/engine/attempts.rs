//! How far a step is with its model: counted before each request, in the run's row or, for the step of a prompt that was
//! called, in the receipt of that call.

use std::ops::ControlFlow;

use serde::Deserialize;
use serde::Serialize;

use crate::engine::Thread;
use crate::engine::step::Step;
use crate::error::Error;
use crate::error::Result;
use crate::host::Cell;
use crate::host::Param;
use crate::host::Sql;
use crate::store::state::State;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tries {
    /// Seq reserved for the reply.
    pub(crate) block: i64,
    /// Place of the model in its chain of fallbacks.
    pub(crate) model: u32,
    /// Attempts at that model, from 1.
    pub(crate) attempt: u32,
    /// Number of the stream under the reply's id; grows with every request.
    pub(crate) stream: u32,
    /// What is told of an inner step whose every attempt has failed. A run ends with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failed: Option<String>,
    /// Number of the last stream of which the log says that its end was not seen.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) logged: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
const fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl Tries {
    /// Of a step.
    pub(crate) fn of(state: &State, sql: &dyn Sql, step: Step) -> Result<Tries> {
        match step.call {
            Some(receipt) => {
                Tries::inner(sql, receipt)?.ok_or_else(|| Error::internal("an inner step is not open"))
            }
            None => Ok(state.active().map_or(Tries::default(), |run| Tries {
                block: run.block,
                model: run.model,
                attempt: run.attempt,
                stream: run.stream,
                failed: None,
                logged: 0,
            })),
        }
    }

    /// Of the step of a prompt that was called, if it was opened.
    pub(crate) fn inner(sql: &dyn Sql, receipt: i64) -> Result<Option<Tries>> {
        let mut found = None;
        sql.each(
            "SELECT json_extract(data, '$.inner') FROM calls WHERE id = ?",
            &[Param::Int(receipt)],
            &mut |cells| {
                found = cells.first().and_then(Cell::text).map(serde_json::from_str);
                Ok(ControlFlow::Break(()))
            },
        )?;
        found.transpose().map_err(|error| Error::internal(format!("a stored inner step is damaged: {error}")))
    }

    /// Stores it.
    pub(crate) fn store(&self, state: &mut State, sql: &dyn Sql, step: Step) -> Result<()> {
        if let Some(receipt) = step.call {
            let text = serde_json::to_string(self).map_err(Error::internal)?;
            return sql.run(
                "UPDATE calls SET data = json_set(ifnull(data, '{}'), '$.inner', json(?)) WHERE id = ?",
                &[Param::Text(&text), Param::Int(receipt)],
            );
        }
        let run = state.active_mut()?;
        (run.model, run.attempt, run.stream) = (self.model, self.attempt, self.stream);
        run.update(sql)
    }
}

impl Thread {
    /// How far a step is.
    pub(crate) fn tries(&self, step: Step) -> Result<Tries> {
        self.read(|state, sql| Tries::of(state, sql, step))
    }
}
