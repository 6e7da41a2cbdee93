//! When a turn ends (spec §21): the rules in their order, in one place.

use serde_json::Value;

use super::rows::{Row, Shared};
use super::run::{Reason, Run};
use crate::limits;
use crate::spec::Side;
use crate::spec::message::{ToolCall, ToolStatus};

/// The rules after a step, first match wins: the stop tool, a text without calls, an empty reply for the second
/// time, the same tool error too often. The caps come before the next step ([`cap`]).
pub(super) fn evaluate(side: &Side, reply: &Row, history: &[Shared]) -> Option<(Reason, Option<String>)> {
    let stop_tool = side.stop_tool.as_deref();
    if reply.calls.iter().any(|call| Some(call.name.as_str()) == stop_tool) {
        return Some((Reason::StopTool, None));
    }
    if reply.is_empty_reply() {
        let before = history.iter().rev().find(|row| row.seq < reply.seq);
        return before.is_some_and(|row| row.is_empty_reply()).then(|| {
            let text = "The model gave an empty answer twice, so the run was ended.".to_owned();
            (Reason::EmptyReply, Some(text))
        });
    }
    if reply.calls.is_empty() {
        return side.stop_on_response.then_some((Reason::StopOnResponse, None));
    }
    let (error, times) = repeated_error(history)?;
    (times >= limits::REPEATED_ERRORS).then(|| {
        let text =
            format!("The run was stopped: a tool failed {times} times in a row with the same error: {error}");
        (Reason::RepeatedToolError, Some(text))
    })
}

/// The error of the newest tool results and how many in a row have it.
fn repeated_error(history: &[Shared]) -> Option<(&str, u32)> {
    let mut results = history.iter().rev().filter(|row| row.status.is_some());
    let error = |row: &'_ Shared| row.status == Some(ToolStatus::Error);
    let newest = results.next().filter(|row| error(row))?;
    let text = newest.content.as_deref().unwrap_or_default();
    let same = results
        .take_while(|row| error(row) && normal(row.content.as_deref().unwrap_or_default()) == normal(text));
    Some((text, 1 + u32::try_from(same.count()).unwrap_or(u32::MAX)))
}

/// An error without what differs from call to call: digits and spacing.
fn normal(text: &str) -> String {
    let digits_gone = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c });
    let mut normal = String::with_capacity(text.len());
    for c in digits_gone {
        let repeats = normal.ends_with(c) && (c == '0' || c.is_whitespace());
        if !repeats {
            normal.push(c);
        }
    }
    normal
}

/// The text that the stop tool's response property gives the reply.
pub(super) fn response(side: &Side, calls: &[ToolCall]) -> Option<String> {
    let (tool, property) = (side.stop_tool.as_deref()?, side.stop_tool_response_property.as_deref()?);
    let call = calls.iter().find(|call| call.name == tool)?;
    let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
    match arguments.get(property)? {
        Value::String(text) => Some(text.clone()),
        Value::Null => None,
        other => Some(other.to_string()),
    }
}

/// A cap that forbids another step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cap {
    /// The side's own.
    Side(u32),
    /// The runtime's, never raised.
    Total,
}

/// Whether the active side may not take another step.
pub(super) fn cap(run: &mut Run, side: &Side) -> Option<Cap> {
    let own = *run.own_steps();
    match side.max_steps {
        Some(max) if own >= max => Some(Cap::Side(max)),
        _ if run.steps >= limits::RUN_STEPS => Some(Cap::Total),
        _ => None,
    }
}

impl Cap {
    pub(super) const fn reason(self) -> Reason {
        match self {
            Cap::Side(_) => Reason::MaxSteps,
            Cap::Total => Reason::MaxTotalSteps,
        }
    }

    pub(super) fn message(self) -> String {
        match self {
            Cap::Side(max) => {
                format!("The run was ended after {max} steps, the most that this agent may take.")
            }
            Cap::Total => {
                format!(
                    "The run was ended after {} steps, the most that any run may take.",
                    limits::RUN_STEPS
                )
            }
        }
    }
}
