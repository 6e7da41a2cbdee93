//! Rows of threads coming in: repeatedly, late, and in any order.

use std::ops::ControlFlow;
use std::rc::Rc;

use serde_json::{Value, json};

use crate::directory::{Directory, ThreadRow, int_at};
use crate::error::Result;
use crate::host::{Param, Sql, Transactions};
use crate::request::Reply;

/// Characters of the newest message that a list shows.
const PREVIEW_CHARS: usize = 200;

impl Directory {
    /// Takes the row of a thread, unless a newer one was here or the thread was deleted.
    pub(crate) fn upsert(self: &Rc<Self>, row: &ThreadRow) -> Result<Reply> {
        let changed = self.host.transaction(|sql| {
            let known = Known::read(sql, &row.id)?;
            if known.deleted || known.version > row.version {
                return Ok(false);
            }
            write_row(sql, row)?;
            if known.listed {
                return Ok(false);
            }
            let top = i64::from(row.parent.is_none());
            sql.run(
                "UPDATE state SET owner = ?, threads = threads + 1, top = top + ?, changes = changes + 1",
                &[row.owner.as_deref().into(), top.into()],
            )?;
            self.root_is_behind(sql)?;
            Ok(true)
        })?;
        Ok(took(changed))
    }

    /// Notes that a run began or ended, unless something newer was noted.
    pub(crate) fn activity(
        &self,
        id: &str,
        version: i64,
        executing: bool,
        at_us: i64,
        message: Option<(String, i64)>,
    ) -> Result<Reply> {
        let preview = message.as_ref().map(|(text, _)| preview(text));
        let message_us = message.as_ref().map(|(_, at)| *at);
        self.host.transaction(|sql| {
            sql.run(
                "INSERT INTO threads (id, activity_version, executing, activity_us, preview, message_us)
                 VALUES (?, ?, ?, ?, ?, ?)
                 ON CONFLICT (id) DO UPDATE SET
                    activity_version = excluded.activity_version, executing = excluded.executing,
                    activity_us = max(activity_us, excluded.activity_us),
                    preview = coalesce(excluded.preview, preview),
                    message_us = coalesce(excluded.message_us, message_us)
                 WHERE deleted = 0 AND activity_version <= excluded.activity_version",
                &[
                    id.into(),
                    version.into(),
                    i64::from(executing).into(),
                    at_us.into(),
                    preview.as_deref().into(),
                    message_us.into(),
                ],
            )
        })?;
        Ok(took(true))
    }

    /// Forgets a thread, but for its id.
    pub(crate) fn delete(self: &Rc<Self>, id: &str) -> Result<Reply> {
        let changed = self.host.transaction(|sql| {
            let known = Known::read(sql, id)?;
            if known.deleted {
                return Ok(false);
            }
            sql.run(
                "INSERT INTO threads (id, deleted) VALUES (?, 1)
                 ON CONFLICT (id) DO UPDATE SET
                    deleted = 1, agent_id = NULL, origin_agent_id = NULL, tags = '[]', preview = NULL, parent = NULL,
                    executing = 0",
                &[id.into()],
            )?;
            if known.listed {
                sql.run(
                    "UPDATE state SET threads = threads - 1, top = top - ?, changes = changes + 1",
                    &[i64::from(!known.child).into()],
                )?;
                self.root_is_behind(sql)?;
            }
            Ok(known.listed)
        })?;
        Ok(took(changed))
    }
}

/// What was known of a thread before its row came.
#[derive(Default)]
struct Known {
    version: i64,
    listed: bool,
    child: bool,
    deleted: bool,
}

impl Known {
    fn read(sql: &dyn Sql, id: &str) -> Result<Known> {
        let mut known = Known { version: -1, ..Known::default() };
        let statement =
            "SELECT version, agent_id IS NOT NULL, parent IS NOT NULL, deleted FROM threads WHERE id = ?";
        sql.each(statement, &[id.into()], &mut |row| {
            known = Known {
                version: int_at(row, 0)?,
                listed: int_at(row, 1)? != 0,
                child: int_at(row, 2)? != 0,
                deleted: int_at(row, 3)? != 0,
            };
            Ok(ControlFlow::Break(()))
        })?;
        Ok(known)
    }
}

fn write_row(sql: &dyn Sql, row: &ThreadRow) -> Result<()> {
    let tags = Value::from(row.tags.clone()).to_string();
    sql.run(
        "INSERT INTO threads
            (id, agent_id, origin_agent_id, tags, created_us, terminated_us, parent, version, activity_us)
         VALUES (?1, ?2, ?2, ?3, ?4, ?5, ?6, ?7, ?4)
         ON CONFLICT (id) DO UPDATE SET
            agent_id = excluded.agent_id, origin_agent_id = coalesce(origin_agent_id, excluded.origin_agent_id),
            tags = excluded.tags, created_us = excluded.created_us, terminated_us = excluded.terminated_us,
            parent = excluded.parent, version = excluded.version,
            activity_us = max(activity_us, excluded.activity_us)",
        &[
            (&row.id).into(),
            (&row.agent_id).into(),
            Param::Text(&tags),
            row.created_at_us.into(),
            row.terminated_at_us.into(),
            row.parent.as_deref().into(),
            row.version.into(),
        ],
    )
}

/// The first characters of a message, on one line.
fn preview(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > PREVIEW_CHARS * 4 {
            break;
        }
    }
    line.chars().take(PREVIEW_CHARS).collect()
}

fn took(changed: bool) -> Reply {
    Reply::json(200, &json!({ "changed": changed }))
}

#[cfg(test)]
mod tests {
    use crate::directory::threads::preview;

    #[test]
    fn a_preview_is_one_line_of_at_most_200_characters() {
        assert_eq!(preview("  two\n\nwords\t "), "two words");
        let long = "ü".repeat(70_000);
        assert_eq!(preview(&long).chars().count(), 200);
        assert_eq!(preview(""), "");
    }
}
