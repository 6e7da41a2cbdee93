//! The files of a thread (spec §16). None yet: only the door that their bodies will pass through is there.

use std::rc::Rc;

use super::Thread;
use super::host::Host;
use crate::api::{Served, ThreadRequest};
use crate::error::{Code, Error, Result};
use crate::http;

impl<H: Host> Thread<H> {
    /// Answers a request of a file route.
    pub(super) async fn serve_file(
        self: &Rc<Self>,
        _request: &ThreadRequest,
        _body: impl http::Body,
    ) -> Result<Served> {
        Err(Error::new(Code::NotFound, "Threads have no files yet."))
    }
}
