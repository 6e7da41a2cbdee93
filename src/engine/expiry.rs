//! Threads that delete themselves at a time that was set at their creation.

use crate::engine::subagents::delete::ParentNotice;
use crate::engine::thread::Thread;
use crate::error::{Code, Error, Result};
use crate::limits;
use crate::request::fields::Body;
use crate::store::meta;

impl Thread {
    /// Deletes the thread if its time has come, even during a run. If another object cannot be reached, tries
    /// later.
    pub(super) async fn expire(&self) {
        let Err(error) = self.delete_if_over().await else { return };
        if error.code == Code::ThreadNotFound {
            return;
        }
        self.variables().log(&format!("the thread could not delete itself: {error}"));
        if let Err(error) = self.expire_later()
            && error.code != Code::ThreadNotFound
        {
            self.variables().log(&format!("the thread could not put off that it deletes itself: {error}"));
        }
    }

    async fn delete_if_over(&self) -> Result<()> {
        let now = self.host.now_us();
        if self.read(|state, _| Ok(state.meta.expires_us.is_some_and(|at| at <= now)))? {
            self.control().delete_tree(ParentNotice::Owed).await?;
        }
        Ok(())
    }

    fn expire_later(&self) -> Result<()> {
        let at = self.host.now_us() + limits::EXPIRE_AGAIN_US;
        self.transition(|state, sql| {
            state.meta.expires_us = Some(at);
            meta::set_expires(sql, at)
        })
    }
}

/// The time at which a thread created `now` deletes itself.
pub(crate) fn expires(body: &mut Body, now: i64) -> Result<Option<i64>> {
    let Some(seconds) = body.whole("expires_in")? else { return Ok(None) };
    if !(1..=limits::EXPIRE_S).contains(&seconds) {
        let text = format!("`expires_in` is 1 to {} seconds, not {seconds}.", limits::EXPIRE_S);
        return Err(Error::field("expires_in", text).hint("Leave it out for a thread that stays."));
    }
    Ok(Some(now + seconds * limits::SECOND_US))
}
