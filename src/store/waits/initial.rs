//! The waits for which the calls of a reply first parked the run. A protocol that ends its response at a
//! pause needs them to replay that response: stored results do not show which calls waited together.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::host::{Cell, Param, Sql};
use crate::json;
use crate::store::state::State;
use crate::store::waits::public_id;

/// A wait for a decision about a call, open or closed.
#[derive(Clone, Debug)]
pub(crate) struct InitialWait {
    id: i64,
    kind: String,
    /// The model's id of the call.
    call: String,
    /// Seq of the reply.
    batch: i64,
    created_us: i64,
    closed_us: Option<i64>,
}

impl InitialWait {
    fn read(cells: &[Cell]) -> Result<Option<InitialWait>> {
        let [id, kind, call, batch, created, closed] = cells else {
            return Err(Error::internal("a wait has the wrong number of columns"));
        };
        let (Some(kind), Some(call), Some(batch)) = (kind.text(), call.text(), batch.int()) else {
            return Ok(None);
        };
        Ok(Some(InitialWait {
            id: id.int().unwrap_or_default(),
            kind: kind.to_owned(),
            call: call.to_owned(),
            batch,
            created_us: created.int().unwrap_or_default(),
            closed_us: closed.int(),
        }))
    }

    /// Whether it was opened with the reply's first wait. The run stays parked until that one closes, so a
    /// later pause opens its waits afterwards.
    fn is_with(&self, first: &InitialWait) -> bool {
        self.created_us == first.created_us || first.closed_us.is_none_or(|closed| self.created_us < closed)
    }

    /// The fields that identify it, as in the `waits` of `run_parked`.
    pub(crate) fn to_json(&self, thread: &str) -> Value {
        json!({ "id": public_id(thread, self.id), "kind": self.kind, "call": { "id": self.call } })
    }
}

/// The initial waits of the replies of a run, by the seq of the reply and in the order of the calls.
pub(crate) fn initial(state: &State, sql: &dyn Sql, run: i64) -> Result<BTreeMap<i64, Vec<InitialWait>>> {
    let mut found: BTreeMap<i64, Vec<InitialWait>> = BTreeMap::new();
    // Without any wait the table does not exist.
    if state.meta.wait_next == 1 {
        return Ok(found);
    }
    let statement =
        "SELECT id, kind, json_extract(data, '$.call.id'), batch, created_us, closed_us FROM waits
        WHERE open IN (0, 1) AND run = ? AND kind IN ('approval', 'question', 'client_tool') ORDER BY id";
    sql.each(statement, &[Param::Int(run)], &mut |cells| {
        if let Some(wait) = InitialWait::read(cells)? {
            let batch = found.entry(wait.batch).or_default();
            if batch.first().is_none_or(|first| wait.is_with(first)) {
                batch.push(wait);
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}
