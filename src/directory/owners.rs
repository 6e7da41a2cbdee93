//! The root: the number of threads of each owner. An owner's directory reports it at least once, after a
//! short delay, so that many new threads of one owner cause one message to the object that all owners share.

use std::rc::Rc;

use crate::directory::store::state::CountReport;
use crate::directory::store::{owners as table, state};
use crate::directory::{Directory, DirectoryCall};
use crate::error::{Error, Result};
use crate::host::{Sibling, Sql, Transactions};
use crate::json;
use crate::json_text::JsonText;
use crate::limits::{PAGE_DEFAULT, PAGE_MAX, SECOND_US};
use crate::page::Page;
use crate::protocols::responses::threads::{ListedOwner, OwnerPage};
use crate::request::directory_call::{OwnerOrder, ROOT, answer, name_of};
use crate::request::{Query, Reply};

/// Time during which changes are gathered before a report.
const GATHER_US: i64 = 2 * SECOND_US;
/// Longest pause between two attempts.
const PAUSE_MAX_US: i64 = 3600 * SECOND_US;

impl Directory {
    /// Ensures that an alarm will report a changed count. Call it inside the transaction of the change.
    pub(super) fn root_is_behind(&self, sql: &dyn Sql) -> Result<()> {
        // Only the first change since the last report sets the alarm; otherwise steady changes would delay it
        // forever.
        if state::untold(sql)? == 1 { self.schedule_report() } else { Ok(()) }
    }

    /// Sets the alarm again if the root is behind, whether or not an earlier one was lost.
    pub(super) fn catch_up(&self, sql: &dyn Sql) -> Result<()> {
        if state::untold(sql)? > 0 { self.schedule_report() } else { Ok(()) }
    }

    fn schedule_report(&self) -> Result<()> {
        self.host.set_alarm(Some(self.host.now_us() + GATHER_US))
    }

    /// Reports the count to the root if it is behind; schedules a retry after a failure.
    pub(super) async fn report_to_root(self: &Rc<Self>) {
        let Err(error) = self.report_counts().await else { return };
        self.host.log(&format!("directory: the root was not told: {error}"));
        let again = self.host.transaction(|sql| {
            let tries = state::count_try(sql)?.clamp(1, 20);
            let pause = (SECOND_US << tries).min(PAUSE_MAX_US);
            self.host.set_alarm(Some(self.host.now_us() + pause))
        });
        if let Err(error) = again {
            // `catch_up` repairs this when the object wakes again.
            self.host.log(&format!("directory: no alarm for the next try: {error}"));
        }
    }

    async fn report_counts(&self) -> Result<()> {
        let Some(CountReport { owner, threads, changes: version }) = state::news(self.host.sql())? else {
            return Ok(());
        };
        let call = DirectoryCall::Owner { owner, threads, version };
        let json = call.to_json()?;
        let reply = answer(&self.host.sibling(Sibling::Directory(ROOT.into()), json).await?)?;
        if reply.status != 200 {
            return Err(Error::internal(format!("status {}", reply.status)));
        }
        self.host.transaction(|sql| {
            state::mark_reported(sql, version)?;
            // Changes during the report set no alarm, because they were not the first.
            self.catch_up(sql)
        })
    }

    /// Stores an owner's count in the root.
    pub(super) fn owner(&self, owner: Option<&str>, threads: i64, version: i64) -> Result<Reply> {
        let now = self.host.now_us();
        self.host.transaction(|sql| table::put(sql, &name_of(owner), owner, threads, (version, now)))?;
        Ok(Reply::json(200, &json!({})))
    }

    /// `GET /threads/owners`.
    pub(super) fn owners(&self, query: &Query, order: OwnerOrder) -> Result<Reply> {
        let limit = query.number("limit", PAGE_DEFAULT, PAGE_MAX)?;
        let offset = query.number("offset", 0, u32::MAX)?;
        let sql = self.host.sql();
        let total = table::count(sql)?;
        let mut page = Page::new(limit);
        table::page(sql, order, limit, offset, &mut |owner, threads| {
            page.add_text(|| JsonText::new(&ListedOwner { user_id: owner, thread_count: threads }))
        })?;
        let has_more = i64::from(offset) + (page.len() as i64) < total;
        Ok(Reply::json(200, &OwnerPage { owners: page.into_rows(), total, has_more }))
    }
}
