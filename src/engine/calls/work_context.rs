//! The parts of a thread that are available to the work that it runs.

use std::rc::Rc;

use futures::future::LocalBoxFuture;

use crate::definitions::{Catalog, Http};
use crate::engine::thread::Thread;
use crate::env::redact::Redacted;
use crate::host::{Host, Sleep};
use crate::work::native::Natives;
use crate::work::{Failure, WorkContext};

/// A thread that runs work.
struct ThreadWorkContext(pub(crate) Thread);

impl WorkContext for ThreadWorkContext {
    fn host(&self) -> &Rc<dyn Host> {
        &self.0.host
    }

    fn natives(&self) -> &dyn Natives {
        &*self.0.natives
    }

    fn catalog(&self) -> &Catalog {
        &self.0.catalog
    }

    fn deployment_variable(&self, variable: &str) -> Option<String> {
        self.0.variables().deployment(variable)
    }

    fn without_secrets(&self, text: String) -> Redacted {
        self.0.variables().shown(text)
    }

    fn ready<'a>(&'a self, http: &'a Http) -> LocalBoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            self.0.variables().ready_http(http).await.map_err(|error| Failure::Failed(error.into_message()))
        })
    }

    fn counts_request(&self) {
        let outgoing = &self.0.ephemeral.outgoing;
        outgoing.set(outgoing.get() + 1);
    }

    fn sleep(&self) -> Sleep {
        self.0.sleep()
    }

    fn log(&self, line: &str) {
        self.0.variables().log(line);
    }
}

impl Thread {
    /// The context of work that this thread does.
    pub(crate) fn work_context(&self) -> Rc<dyn WorkContext> {
        Rc::new(ThreadWorkContext(self.clone()))
    }

    /// A timer: waits for a number of microseconds.
    pub(crate) fn sleep(&self) -> Sleep {
        let thread = self.clone();
        Rc::new(move |us| {
            let until = thread.host.now_us() + us.max(0);
            Box::pin(thread.host.sleep_until(until))
        })
    }
}
