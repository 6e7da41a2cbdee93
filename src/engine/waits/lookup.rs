//! Finds a wait by its public id.

use crate::engine::features::Waits;
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::store::state::State;
use crate::store::waits;
use crate::store::waits::Wait;

impl Waits<'_> {
    pub(crate) fn found_wait(&self, state: &State, sql: &dyn Sql, id: i64) -> Result<Wait> {
        let found = if state.meta.wait_next == 1 { None } else { waits::find(sql, id)? };
        found.ok_or_else(no_wait)
    }
}

/// Parses the number of a wait of this thread from its id. Accepts the id of OpenAI clients too, which has
/// the thread after a dash.
pub(crate) fn wait_number(thread: &str, id: &str) -> Result<i64> {
    let id = id.split_once('-').map_or(id, |(id, _)| id);
    let prefix = format!("w_{}_", thread.split('-').next().unwrap_or(thread));
    let number = id.strip_prefix(&prefix).and_then(|number| number.parse().ok());
    number.filter(|number| *number > 0).ok_or_else(no_wait)
}

pub(crate) fn no_wait() -> Error {
    Error::new(Code::NotFound, "There is no such wait in this thread.").hint("GET …/waits lists them.")
}

pub(super) fn takes(wait: &Wait, decision: &str) -> Result<()> {
    if wait.allows().contains(&decision) {
        return Ok(());
    }
    let text = format!("A wait of the kind {} does not take “{decision}”.", wait.kind.as_str());
    let allowed = wait.allows().join(", ");
    let hint =
        if allowed.is_empty() { "It ends by itself.".to_owned() } else { format!("It takes: {allowed}.") };
    Err(Error::field("decision", text).hint(hint))
}
