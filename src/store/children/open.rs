//! The rows of children that are not terminated, in memory after the first use. A thread without any,
//! according to its `meta` row, reads nothing.

use crate::error::Result;
use crate::host::Sql;
use crate::store::children as table;
use crate::store::children::Child;
use crate::store::state::State;

impl State {
    /// The children that are not terminated, oldest first.
    pub(crate) fn open_children(&mut self, sql: &dyn Sql) -> Result<&[Child]> {
        if self.children.is_none() {
            let mut found = Vec::new();
            if self.meta.children > 0 {
                found = table::open_rows(sql)?;
                found.sort_by_key(|child| child.created_us);
            }
            self.children = Some(found);
        }
        Ok(self.children.as_deref().unwrap_or_default())
    }

    /// A child by its reference, terminated or not.
    pub(crate) fn child(&mut self, sql: &dyn Sql, reference: &str) -> Result<Option<Child>> {
        let open = self.open_children(sql)?.iter().find(|child| child.reference == reference).cloned();
        if open.is_some() {
            return Ok(open);
        }
        table::terminated(sql, reference)
    }

    /// Inserts a new child and counts it in `meta`.
    pub(crate) fn insert_child(&mut self, sql: &dyn Sql, child: Child) -> Result<()> {
        self.open_children(sql)?;
        child.insert(sql)?;
        self.children.get_or_insert_default().push(child);
        self.meta.children += 1;
        self.meta.update(sql)
    }

    /// Writes a changed child.
    pub(crate) fn update_child(&mut self, sql: &dyn Sql, child: Child) -> Result<()> {
        // Skip unchanged rows: a transition may update one child several times.
        if self.open_children(sql)?.contains(&child) {
            return Ok(());
        }
        child.update(sql)?;
        let open = self.children.get_or_insert_default();
        let place = open.iter().position(|known| known.reference == child.reference);
        match (place.and_then(|place| open.get_mut(place)), child.is_open()) {
            (Some(known), true) => *known = child,
            (Some(_), false) => {
                open.retain(|known| known.reference != child.reference);
                self.meta.children -= 1;
                self.meta.update(sql)?;
            }
            (None, _) => {}
        }
        Ok(())
    }
}

/// When the alarm must next handle a child.
pub(crate) fn next_due(state: &State, sql: &dyn Sql) -> Result<Option<i64>> {
    if state.meta.children == 0 {
        return Ok(None);
    }
    match &state.children {
        Some(open) => Ok(open.iter().filter_map(|child| child.due_us).min()),
        None => table::first_due(sql),
    }
}

/// A child by its reference, terminated or not, without a mutable state.
pub(crate) fn find(state: &State, sql: &dyn Sql, reference: &str) -> Result<Option<Child>> {
    let known = state.children.iter().flatten().find(|child| child.reference == reference);
    if let Some(child) = known {
        return Ok(Some(child.clone()));
    }
    table::by_reference(sql, reference)
}

/// The children that calls wait for, without a mutable state.
pub(crate) fn waited_for(state: &State, sql: &dyn Sql) -> Result<Vec<Child>> {
    let mut open = match &state.children {
        _ if state.meta.children == 0 => Vec::new(),
        Some(open) => open.clone(),
        None => table::open_rows(sql)?,
    };
    open.retain(|child| child.wait.is_some());
    Ok(open)
}
