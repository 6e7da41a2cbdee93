//! Subagents that begin when their prompt becomes active (spec §8.7): before the first model request of a
//! thread's first run, and after a hand-off. Each is a call in the tool queue. The transition that marks the
//! prompt as activated stores these calls, so they are stored exactly once. Afterwards they are ordinary
//! calls.
//!
//! An entry may name variables as hints. The thread's own values of `NAME`, `NAME__2`, `NAME__3` … form a
//! row, and each place in the row becomes a child. The values of `nameEnv` and `descriptionEnv` become its
//! name and first message, those of `scopedEnv` its own values. The transition that creates the child removes
//! all of them from the thread.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::definitions::{Immediate, ToolEntry};
use crate::engine::definitions::Definitions;
use crate::engine::features::Subagents;
use crate::engine::subagents::envelope::BEGIN;
use crate::engine::subagents::immediate_start::{ImmediateStart, MARK, bit};
use crate::engine::subagents::values::OwnValues;
use crate::env::{Change, PlainVariable, VariableSet};
use crate::error::{Code, Result};
use crate::host::Sql;
use crate::json;
use crate::store::children::Child;
use crate::store::runs::Phase;
use crate::store::state::State;

/// Values that move from the thread to a child.
#[derive(Default)]
pub(super) struct ConsumedValues {
    pub(super) given: OwnValues,
    /// Names of the thread's values to delete.
    names: Vec<String>,
}

/// The name of a variable at a place of its row. The first place has the plain name.
fn at(name: &str, place: u32) -> String {
    if place < 2 { name.to_owned() } else { format!("{name}__{place}") }
}

/// The names of the variables that an entry uses as hints.
fn hints(immediate: &Immediate) -> impl Iterator<Item = &str> {
    let Immediate { name_env, description_env, scoped_env } = immediate;
    name_env.iter().chain(description_env).chain(scoped_env).map(String::as_str)
}

/// The places at which a hint has a value, in order.
fn places(immediate: &Immediate, own: &VariableSet) -> Vec<u32> {
    let mut found = BTreeSet::new();
    for hint in hints(immediate) {
        for (name, _) in own.iter() {
            if name == hint {
                found.insert(1);
            } else if let Some(place) = name.strip_prefix(hint).and_then(|rest| rest.strip_prefix("__"))
                && let Ok(place) = place.parse::<u32>()
                && at(hint, place) == name
            {
                found.insert(place);
            }
        }
    }
    found.into_iter().collect()
}

impl Subagents<'_> {
    /// Queues the calls of a prompt that has become active. Runs before a step.
    pub(crate) async fn activate(&self, definitions: &Definitions<'_>) -> Result<()> {
        let bit = bit(definitions.active);
        let due = self.read(|state, _| {
            let starts = state.active().is_some_and(|run| run.phase == Phase::Start);
            Ok(starts && state.meta.activates & bit != 0)
        })?;
        if !due {
            return Ok(());
        }
        self.variables().refresh_env().await?;
        // No await between here and the transition.
        let mut calls = Vec::new();
        for entry in definitions.prompt.tools.iter().filter(|entry| self.is_on(definitions, entry)) {
            if let Some(immediate) = &entry.immediate {
                for begun in self.to_begin(definitions, entry, immediate)? {
                    calls.push(self.call_of(entry, begun));
                }
            }
        }
        let now = self.host.now_us();
        let rows = self.transition(|state, sql| {
            state.meta.activates &= !bit;
            state.meta.update(sql)?;
            let mut rows = Vec::new();
            for (name, args, begun) in calls {
                let mark = [(MARK.to_owned(), json!(begun))].into_iter().collect();
                match self.queue_call(state, sql, &name, args.to_string(), mark, now) {
                    Ok(row) => rows.push(row),
                    // The queue is full. The prompt starts without the remaining calls.
                    Err(error) if error.code == Code::QueueFull => break,
                    Err(error) => return Err(error),
                }
            }
            Ok(rows)
        })?;
        rows.iter().try_for_each(|row| self.broadcast_message(row))
    }

    /// The children that an entry begins now.
    fn to_begin(
        self,
        definitions: &Definitions<'_>,
        entry: &ToolEntry,
        immediate: &Immediate,
    ) -> Result<Vec<ImmediateStart>> {
        let (active, mut places) = self.read_mut(|state, sql| {
            let alike =
                |child: &&Child| child.agent == entry.name && child.state.exists() && !child.is_worker();
            let active = state.open_children(sql)?.iter().filter(alike).count();
            Ok((active, places(immediate, self.variables().own_set(state, sql)?)))
        })?;
        let hint = |hint: &Option<String>, place: u32| {
            let name = hint.as_ref()?;
            if self.variables().declared().is_secret(name) {
                self.variables().log_once(format!("{name} is a secret: it names and instructs no subagent."));
                return None;
            }
            self.variables()
                .tool_env(definitions, entry, &at(name, place))
                .filter(|text| !text.trim().is_empty())
        };
        let begun = |place| ImmediateStart {
            place,
            name: hint(&immediate.name_env, place),
            text: hint(&immediate.description_env, place),
        };
        let plain = *immediate == Immediate::default();
        if places.is_empty() && active == 0 {
            // Hints from the definitions or higher levels apply to a single child.
            let first = begun(1);
            if plain || first.name.is_some() || first.text.is_some() {
                places.push(1);
            }
        } else if plain {
            places.clear();
        }
        let most = entry.resumable.as_ref().and_then(|resumable| resumable.max_instances);
        let free = most.map_or(usize::MAX, |most| (most as usize).saturating_sub(active));
        Ok(places.into_iter().take(free).map(begun).collect())
    }

    /// The call that creates such a child.
    fn call_of(&self, entry: &ToolEntry, begun: ImmediateStart) -> (String, Value, ImmediateStart) {
        if entry.resumable.is_some() {
            let title = self.catalog.agents.get(&entry.name).and_then(|agent| agent.title.clone());
            let args = json!({
                "agent": entry.name,
                "message": begun.text.as_deref().unwrap_or(BEGIN),
                "attachments": [],
                "name": begun.name.clone().or(title).unwrap_or_else(|| entry.name.clone()),
            });
            return ("subagent_create".to_owned(), args, begun);
        }
        let mut args = Map::new();
        let agent = self.catalog.agents.get(&entry.name);
        let required = agent.map(|agent| self.catalog.required_of(&agent.side_a.prompt)).unwrap_or_default();
        for (property, text, usual) in [
            (&entry.init_agent_name_property, &begun.name, entry.name.as_str()),
            (&entry.init_user_message_property, &begun.text, BEGIN),
        ] {
            let Some(property) = property else { continue };
            let usual = || required.contains(&property.as_str()).then(|| usual.to_owned());
            if let Some(text) = text.clone().or_else(usual) {
                args.insert(property.clone(), text.into());
            }
        }
        (entry.name.clone(), Value::Object(args), begun)
    }

    /// The values that such a child takes from the thread, in the transition that creates it.
    pub(super) fn taken_by(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        entry: &ToolEntry,
        begun: Option<&ImmediateStart>,
    ) -> Result<ConsumedValues> {
        let mut taken = ConsumedValues::default();
        let (Some(begun), Some(immediate)) = (begun, &entry.immediate) else { return Ok(taken) };
        taken.given.withheld = hints(immediate).map(str::to_owned).collect();
        let own = self.variables().own_set(state, sql)?;
        for hint in hints(immediate) {
            let name = at(hint, begun.place);
            let Some(held) = own.get(&name) else { continue };
            if immediate.scoped_env.iter().any(|scoped| scoped == hint) {
                let text = held.read()?.to_owned();
                taken.given.values.push(PlainVariable { name: hint.to_owned(), kind: held.kind, text });
            }
            taken.names.push(name);
        }
        Ok(taken)
    }

    /// Deletes these values from the thread. Its other children keep theirs.
    pub(super) fn take_away(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        begun: Option<&ImmediateStart>,
        taken: &ConsumedValues,
    ) -> Result<()> {
        if taken.names.is_empty() {
            return Ok(());
        }
        self.variables().store_own_env(state, sql, &Change::delete(taken.names.clone()))?;
        let shown: Vec<String> =
            begun.into_iter().flat_map(|begun| [&begun.name, &begun.text]).flatten().cloned().collect();
        self.variables().show(&shown);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definitions::VariableKind;
    use crate::env::{Change, PlainVariable};

    #[test]
    fn hints_in_a_row_are_places() {
        let immediate = Immediate {
            name_env: Some("NAME".into()),
            description_env: Some("TASK".into()),
            scoped_env: vec!["KEY".into(), "A__B".into()],
        };
        for (names, expected) in [
            (vec![], vec![]),
            (vec!["OTHER", "NAME__", "NAME__x", "NAME__0", "NAME__1", "NAME__02", "NAME_2", "__2"], vec![]),
            (vec!["NAME"], vec![1]),
            (vec!["KEY__3", "TASK", "NAME__3", "NAME__12"], vec![1, 3, 12]),
            (vec!["A__B", "A__B__2"], vec![1, 2]),
        ] {
            let plain = |name: &&str| PlainVariable {
                name: (*name).to_owned(),
                kind: VariableKind::Text,
                text: String::new(),
            };
            let values: Vec<PlainVariable> = names.iter().map(plain).collect();
            let own = VariableSet::empty("o").changed(&Change::of(&values)).unwrap();
            assert_eq!(places(&immediate, &own), expected, "{names:?}");
        }
    }
}
