//! Incoming rows of threads: repeated, late, and in any order.

use std::rc::Rc;

use crate::directory::store::threads::{Activity, KnownThread};
use crate::directory::store::{inbox, state, threads as table, tokens};
use crate::directory::{Directory, ThreadRow};
use crate::error::Result;
use crate::host::{Sql, Transactions};
use crate::json;
use crate::request::Reply;

/// Characters of the newest message that a list shows.
const PREVIEW_CHARS: usize = 200;

impl Directory {
    /// Stores the row of a thread, unless a newer one is known or the thread was deleted.
    pub(super) fn upsert(self: &Rc<Self>, row: &ThreadRow) -> Result<Reply> {
        let changed = self.host.transaction(|sql| {
            let known = self.known(sql, &row.id, row.life)?;
            if known.life > row.life || known.deleted || known.version > row.version {
                return Ok(false);
            }
            table::write_row(sql, row)?;
            if known.listed {
                return Ok(false);
            }
            let top = i64::from(row.parent.is_none());
            state::thread_came(sql, row.owner.as_deref(), top)?;
            self.root_is_behind(sql)?;
            Ok(true)
        })?;
        Ok(took(changed))
    }

    /// Stores the start or the end of a run, unless something newer is known.
    pub(super) fn activity(self: &Rc<Self>, activity: &Activity<'_>) -> Result<Reply> {
        self.host.transaction(|sql| {
            if activity.life > 1 {
                self.known(sql, activity.id, activity.life)?;
            }
            activity.write(sql)
        })?;
        Ok(took(true))
    }

    /// The known row of a thread in this generation. The row of an earlier generation is removed: that thread
    /// was deleted, even if its deletion has not been reported.
    pub(super) fn known(self: &Rc<Self>, sql: &dyn Sql, id: &str, life: i64) -> Result<KnownThread> {
        let known = KnownThread::read(sql, id)?;
        if known.life >= life {
            return Ok(known);
        }
        if known.life > 0 {
            table::clear(sql, id)?;
            inbox::forget_thread(sql, id)?;
        }
        if known.listed {
            state::thread_went(sql, i64::from(!known.child))?;
            self.root_is_behind(sql)?;
        }
        Ok(KnownThread { life, ..KnownThread::none() })
    }

    /// Deletes the row of a thread, except its id.
    pub(super) fn delete(self: &Rc<Self>, id: &str, life: i64) -> Result<Reply> {
        let changed = self.host.transaction(|sql| {
            let known = self.known(sql, id, life)?;
            if known.life > life || known.deleted {
                return Ok(false);
            }
            table::delete(sql, id, life)?;
            inbox::forget_thread(sql, id)?;
            tokens::forget_thread(sql, id)?;
            if known.listed {
                state::thread_went(sql, i64::from(!known.child))?;
                self.root_is_behind(sql)?;
            }
            Ok(known.listed)
        })?;
        Ok(took(changed))
    }
}

/// The beginning of a message, on one line.
pub(super) fn preview(text: &str) -> String {
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
