//! Scrubbing of likely secrets in the results of calls (docs/scrubbing.md), before hooks, rows, streams,
//! models, logs and spans see them. Known secrets are redacted earlier (`engine/env/secrets.rs`).

use serde_json::{Map, Value};

use crate::definitions::message::ToolResult;
use crate::definitions::{ScrubCounts, Tool};
use crate::engine::features::Scrubbing;
use crate::env::scrub::{Rules, Scrubber};
use crate::error::Result;
use crate::store::runs::diagnostics::{Diagnostic, Kind};
use crate::store::state::State;

impl Scrubbing<'_> {
    /// Scrubs the result of a call. `tool`: its settings apply in addition to the folder's.
    #[inline(never)]
    pub(super) fn clean_result(
        &self,
        name: &str,
        tool: Option<&Tool>,
        result: ToolResult,
    ) -> Result<ToolResult> {
        let (result, reported) = self.scrubbed_result(tool, result);
        if !result.scrubbed.is_none() {
            let thread = self.read(|state, _| Ok(state.meta.thread_id.clone()))?;
            self.report_scrubbing(&thread, name);
        }
        if !reported.is_none() {
            self.diagnosis().note(self.found_in(name, reported))?;
        }
        Ok(result)
    }

    /// Scrubs a result inside a transition.
    #[inline(never)]
    pub(super) fn clean_result_within(
        &self,
        state: &mut State,
        name: &str,
        tool: Option<&Tool>,
        result: ToolResult,
    ) -> ToolResult {
        let (result, reported) = self.scrubbed_result(tool, result);
        if !result.scrubbed.is_none() {
            self.report_scrubbing(&state.meta.thread_id, name);
        }
        if !reported.is_none()
            && let Ok(run) = state.active_mut()
        {
            run.diagnostics.add(self.found_in(name, reported));
        }
        result
    }

    /// Scrubs a sent or received text for the log.
    pub(super) fn scrub_logged(&self, text: String) -> String {
        Scrubber::new(&Rules::of(&self.catalog.settings.scrub, None)).text(text)
    }

    /// The scrubbed result, and the findings that were left in it.
    fn scrubbed_result(&self, tool: Option<&Tool>, result: ToolResult) -> (ToolResult, ScrubCounts) {
        let rules = Rules::of(&self.catalog.settings.scrub, tool.and_then(|tool| tool.scrub.as_ref()));
        let mut scrubber = Scrubber::new(&rules);
        let result = cleaned(&mut scrubber, result);
        (ToolResult { scrubbed: scrubber.replaced, ..result }, scrubber.reported)
    }

    /// Reports the scrubbing to the operator, because it explains a result that differs from the tool's.
    fn report_scrubbing(&self, thread: &str, name: &str) {
        self.variables().log_once(format!(
            "thread {thread}: what looks like a secret was taken out of the result of \"{name}\"; if it is none, \
             docs/scrubbing.md says how it is kept"
        ));
    }

    fn found_in(&self, name: &str, found: ScrubCounts) -> Diagnostic {
        let (count, s) = (found.total(), if found.total() == 1 { "" } else { "s" });
        let text =
            format!("The result of \"{name}\" has {count} text{s} that look like secrets; they were left.");
        Diagnostic::warning(Kind::Adapter, "scrub.found", ("tool", name), text, self.host.now_us())
    }
}

/// Scrubs each text of a result. Files belong to the thread and are not changed.
fn cleaned(scrubber: &mut Scrubber<'_>, result: ToolResult) -> ToolResult {
    let mut text = |text: String| scrubber.text(text);
    let error = result.error.map(&mut text);
    let stack = result.stack.map(&mut text);
    let error_data = result.error_data.map(Value::Object).map(|data| scrubber.json(data));
    let content = result.content.into_iter().map(|part| shown_part(scrubber, part)).collect();
    ToolResult {
        error,
        stack,
        content,
        result: result.result.map(|value| scrubber.json(value)),
        error_data: error_data.and_then(|data| match data {
            Value::Object(fields) => Some(fields),
            _ => None,
        }),
        ..result
    }
}

/// A part of `content`: a text, or an image, which is a file.
fn shown_part(scrubber: &mut Scrubber<'_>, part: Value) -> Value {
    match part {
        Value::Object(fields) if fields.contains_key("data") => Value::Object(fields),
        Value::Object(fields) => {
            let clean = |(name, value): (String, Value)| (name, scrubber.json(value));
            Value::Object(fields.into_iter().map(clean).collect::<Map<_, _>>())
        }
        other => scrubber.json(other),
    }
}
