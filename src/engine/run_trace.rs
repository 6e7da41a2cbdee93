//! Entries that code adds to the trace of the run that it works in. The rest of a trace follows from rows
//! (`api/trace.rs`).

use std::ops::ControlFlow;

use serde_json::Value;

use crate::engine::features::Traces;
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::json;
use crate::limits;
use crate::page::json_bytes;
use crate::store::logs;
use crate::store::runs::diagnostics::{Diagnostic, Kind};
use crate::store::state::State;

/// The prefix of the kinds of these entries.
const PREFIX: &str = "app.";

impl Traces<'_> {
    /// Adds an entry. An entry beyond the limit is dropped, with a diagnostic of the run.
    ///
    /// # Errors
    /// `invalid_field` for another kind; `too_large`; `conflict` without an active run.
    pub(super) fn trace(&self, kind: &str, data: Value) -> Result<()> {
        checked(kind)?;
        let data = self.variables().redact_json(data);
        let bytes = json_bytes(&data);
        if bytes > limits::TRACE_DATA_BYTES {
            let text =
                format!("`data` has {bytes} bytes as JSON; the limit is {}.", limits::TRACE_DATA_BYTES);
            return Err(Error::new(Code::TooLarge, text).at("data"));
        }
        let now = self.host.now_us();
        self.transition(|state, sql| {
            let Some(run) = state.active().map(|run| run.id) else { return Err(no_run()) };
            let count = traced(state, sql, run)?;
            if count >= limits::TRACE_OF_CODE {
                let text =
                    format!("Code added more than {count} entries to the trace; the rest is left out.");
                let entry = Diagnostic::warning(Kind::Adapter, "trace.dropped", ("of", "code"), text, now);
                state.active_mut()?.diagnostics.add(entry);
                return Ok(());
            }
            let row = json!({ "kind": kind, "data": data });
            logs::insert(sql, logs::TRACE, Some(run), now, None, None, &row)?;
            state.traced = Some((run, count + 1));
            Ok(())
        })
    }
}

/// The error without an active run.
pub(super) fn no_run() -> Error {
    Error::new(Code::Conflict, "No run is under way here: only code that works in a run adds to its trace.")
}

fn checked(kind: &str) -> Result<()> {
    let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let rest = kind.strip_prefix(PREFIX).filter(|rest| !rest.is_empty() && rest.chars().all(known));
    if rest.is_some() && kind.len() <= limits::TRACE_KIND_CHARS {
        return Ok(());
    }
    let most = limits::TRACE_KIND_CHARS;
    let text = format!(
        "`kind` is {PREFIX} followed by letters, digits, `.`, `_` and `-`, at most {most} characters."
    );
    Err(Error::field("kind", text).hint("Such as app.checked."))
}

/// The number of entries of this run.
fn traced(state: &State, sql: &dyn Sql, run: i64) -> Result<u32> {
    if let Some((_, count)) = state.traced.filter(|(of, _)| *of == run) {
        return Ok(count);
    }
    let mut count = 0;
    logs::of_run(sql, run, &mut |row| {
        count += u32::from(row.kind == logs::TRACE);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_code_are_told_from_ours() {
        for good in ["app.x", "app.order.paid-2", "app.A_b"] {
            assert!(checked(good).is_ok(), "{good}");
        }
        let long = format!("app.{}", "x".repeat(limits::TRACE_KIND_CHARS));
        for bad in ["", "app.", "app", "run.start", "app.a b", "app.ü", long.as_str()] {
            assert_eq!(checked(bad).unwrap_err().field.as_deref(), Some("kind"), "{bad}");
        }
    }
}
