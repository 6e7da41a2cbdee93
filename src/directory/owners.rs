//! The root: how many threads each owner has. An owner's directory reports to it at least once, after a short delay, so
//! that many new threads of one owner are one message to an object that all owners share.

use std::ops::ControlFlow;
use std::rc::Rc;

use serde_json::json;

use crate::directory::{Directory, DirectoryCall, int, int_at, text_at};
use crate::error::{Error, Result};
use crate::host::{Sibling, Sql, Transactions};
use crate::limits::{PAGE_DEFAULT, PAGE_MAX, SECOND_US};
use crate::page::Page;
use crate::request::directory_call::{ROOT, answer, name_of};
use crate::request::{Query, Reply};

/// How long changes are gathered before the root is told.
const GATHER_US: i64 = 2 * SECOND_US;
/// The longest pause between two tries.
const PAUSE_MAX_US: i64 = 3600 * SECOND_US;

impl Directory {
    /// The count has changed: sees to it that an alarm will tell the root. Inside the transaction that changed it.
    pub(crate) fn root_is_behind(&self, sql: &dyn Sql) -> Result<()> {
        // Only the first change since the last telling sets the alarm, or steady changes would put it off for ever.
        if self.untold(sql)? == 1 { self.tell_soon() } else { Ok(()) }
    }

    /// Sets the alarm again if the root is behind: whatever became of the one that was set.
    pub(crate) fn catch_up(&self, sql: &dyn Sql) -> Result<()> {
        if self.untold(sql)? > 0 { self.tell_soon() } else { Ok(()) }
    }

    fn untold(&self, sql: &dyn Sql) -> Result<i64> {
        Ok(int(sql, "SELECT changes - told FROM state", &[])?.unwrap_or(0))
    }

    fn tell_soon(&self) -> Result<()> {
        self.host.set_alarm(Some(self.host.now_us() + GATHER_US))
    }

    /// Tells the root the count, if it does not know it; what fails is tried again later.
    pub(crate) async fn tell_root(self: &Rc<Self>) {
        let Err(error) = self.try_to_tell().await else { return };
        self.host.log(&format!("directory: the root was not told: {error}"));
        let again = self.host.transaction(|sql| {
            sql.run("UPDATE state SET tries = tries + 1", &[])?;
            let tries = int(sql, "SELECT tries FROM state", &[])?.unwrap_or(1).clamp(1, 20);
            let pause = (SECOND_US << tries).min(PAUSE_MAX_US);
            self.host.set_alarm(Some(self.host.now_us() + pause))
        });
        if let Err(error) = again {
            // `catch_up` repairs this when the object wakes next.
            self.host.log(&format!("directory: no alarm for the next try: {error}"));
        }
    }

    async fn try_to_tell(&self) -> Result<()> {
        let mut news = None;
        self.host.sql().each("SELECT owner, threads, changes, told FROM state", &[], &mut |row| {
            if int_at(row, 2)? > int_at(row, 3)? {
                news = Some((text_at(row, 0).map(str::to_owned), int_at(row, 1)?, int_at(row, 2)?));
            }
            Ok(ControlFlow::Break(()))
        })?;
        let Some((owner, threads, version)) = news else { return Ok(()) };
        let call = DirectoryCall::Owner { owner, threads, version };
        let json = serde_json::to_string(&call).map_err(Error::internal)?;
        let reply = answer(&self.host.sibling(Sibling::Directory(ROOT.into()), json).await?)?;
        if reply.status != 200 {
            return Err(Error::internal(format!("status {}", reply.status)));
        }
        self.host.transaction(|sql| {
            sql.run("UPDATE state SET told = ?, tries = 0", &[version.into()])?;
            // Changes that came while the root answered set no alarm: they were not the first.
            self.catch_up(sql)
        })
    }

    /// The root is told how many threads an owner has.
    pub(crate) fn owner(&self, owner: Option<&str>, threads: i64, version: i64) -> Result<Reply> {
        self.host.transaction(|sql| {
            sql.run(
                "INSERT INTO owners (name, owner, threads, version) VALUES (?, ?, ?, ?)
                 ON CONFLICT (name) DO UPDATE SET threads = excluded.threads, version = excluded.version
                 WHERE version <= excluded.version",
                &[(&name_of(owner)).into(), owner.into(), threads.into(), version.into()],
            )
        })?;
        Ok(Reply::json(200, &json!({})))
    }

    /// `GET /threads/owners`: `{owners: [{user_id, threadCount}], total, hasMore}`, by name, ownerless threads first.
    pub(crate) fn owners(&self, query: &Query) -> Result<Reply> {
        let limit = query.number("limit", PAGE_DEFAULT, PAGE_MAX)?;
        let offset = query.number("offset", 0, u32::MAX)?;
        let sql = self.host.sql();
        let total = int(sql, "SELECT count(*) FROM owners WHERE threads > 0", &[])?.unwrap_or(0);
        let mut page = Page::new(limit);
        sql.each(
            "SELECT owner, threads FROM owners WHERE threads > 0 ORDER BY name LIMIT ? OFFSET ?",
            &[i64::from(limit).into(), i64::from(offset).into()],
            &mut |row| page.add(|| Ok(json!({ "user_id": text_at(row, 0), "threadCount": int_at(row, 1)? }))),
        )?;
        let more = i64::from(offset) + (page.len() as i64) < total;
        Ok(Reply::json(200, &json!({ "owners": page.into_rows(), "total": total, "hasMore": more })))
    }
}
