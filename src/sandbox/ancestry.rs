//! From inside which runs code is called. A run that is started there must never wait for room that those runs hold.

use std::cell::RefCell;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::future::LocalBoxFuture;

thread_local! {
    static RUNS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Ids of the runs from inside which this code is called, outermost first.
pub(crate) fn runs() -> Vec<String> {
    RUNS.with_borrow(Vec::clone)
}

/// Work that is done for these runs, wherever it is polled.
pub(crate) struct WithAncestors<T> {
    pub(crate) runs: Vec<String>,
    pub(crate) work: LocalBoxFuture<'static, T>,
}

impl<T> Future for WithAncestors<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let this = self.get_mut();
        let _around = Around(RUNS.replace(this.runs.clone()));
        this.work.as_mut().poll(context)
    }
}

/// Puts back what was there before, also when the work panics.
struct Around(Vec<String>);

impl Drop for Around {
    fn drop(&mut self) {
        RUNS.set(std::mem::take(&mut self.0));
    }
}
