//! Subagents in messages (spec §14.1). A message stores only the reference; the other fields come from the
//! registry when the message is read.

use serde_json::Value;

use crate::error::Result;
use crate::host::Sql;
use crate::json;
use crate::protocols::responses::messages::SubagentFacts;
use crate::store::children::Child;
use crate::store::children::open::find;
use crate::store::messages::Row;
use crate::store::state::State;

/// A message in its public form.
pub(crate) fn message(state: &State, sql: &dyn Sql, row: &Row) -> Result<Value> {
    let mut message = row.to_json(&state.meta.stem, state.is_queued(row));
    project(state, sql, &mut message)?;
    Ok(message)
}

/// Adds the registry's data. Messages without a reference cause no lookup.
pub(crate) fn project(state: &State, sql: &dyn Sql, message: &mut Value) -> Result<()> {
    let reference = message.get("subagent_id").and_then(Value::as_str);
    let child = reference.map(|reference| find(state, sql, reference)).transpose()?.flatten();
    if let (Some(child), Some(fields)) = (child, message.as_object_mut())
        && let Value::Object(facts) = json!(facts(&child))
    {
        fields.extend(facts);
    }
    Ok(())
}

fn facts(child: &Child) -> SubagentFacts<'_> {
    let facts = &child.facts;
    SubagentFacts {
        subagent_name: &child.agent,
        subagent_title: facts.title.as_deref(),
        subagent_description: &facts.description,
        subagent_status: &child.status,
        subagent_resumable: facts.resumable,
        subagent_blocking: facts.blocking,
        subagent_thread_name: facts.name.as_deref(),
        subagent_spawn_group_id: facts.group.as_deref(),
    }
}

/// A child's entry in lists for models. A worker is listed by the id that models know.
pub(super) fn listed(child: &Child) -> String {
    let name = child.facts.name.as_deref().map_or(String::new(), |name| format!(" \"{name}\""));
    let id = child.facts.alias.as_ref().unwrap_or(&child.reference);
    format!("{id}{name} ({})", child.agent)
}
