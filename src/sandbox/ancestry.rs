//! The runs inside which code is called. A run that is started there must never wait for capacity that those
//! hold. Also, the call of a sandbox that is being answered.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use futures::future::LocalBoxFuture;

use crate::sandbox::backlog::CallRoom;

/// The caller of code.
#[derive(Clone, Default)]
pub(super) struct Caller {
    /// Ids of the runs inside which it is called, outermost first.
    pub(super) runs: Vec<String>,
    /// The call of a sandbox that it answers.
    pub(super) room: Option<Rc<CallRoom>>,
}

thread_local! {
    static CALLER: RefCell<Caller> = const { RefCell::new(Caller { runs: Vec::new(), room: None }) };
}

/// Ids of the runs inside which this code is called, outermost first.
pub(super) fn runs() -> Vec<String> {
    CALLER.with_borrow(|caller| caller.runs.clone())
}

/// Room for the answer to the current call.
pub(super) fn room() -> Option<Rc<CallRoom>> {
    CALLER.with_borrow(|caller| caller.room.clone())
}

/// Work for a caller, wherever it is polled.
pub(super) struct CalledBy<T> {
    pub(super) caller: Caller,
    pub(super) work: LocalBoxFuture<'static, T>,
}

impl<T> Future for CalledBy<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let this = self.get_mut();
        let _around = CallerGuard(CALLER.replace(this.caller.clone()));
        this.work.as_mut().poll(context)
    }
}

/// Restores the previous caller, also when the work panics.
struct CallerGuard(Caller);

impl Drop for CallerGuard {
    fn drop(&mut self) {
        CALLER.set(std::mem::take(&mut self.0));
    }
}
