//! Calls that code makes and waits for (spec §6.4).

use futures::future::LocalBoxFuture;
use serde_json::Value;

use crate::definitions::message::ToolResult;
use crate::error::Result;
use crate::sdk::ThreadState;
use crate::sdk::scope::Scope;

impl ThreadState {
    /// Makes a call now and returns its result (spec §6.4): a tool, or a prompt, which replies in one step.
    /// The definition need not be listed in any prompt, and every error is an error result. No message is
    /// stored. An exposed agent takes over the thread after the step in which this code runs. Outside a run
    /// it is refused with `would_wait`; queue it instead.
    ///
    /// When the calling code is run again after a crash, the same calls in the same order have the same keys.
    /// A finished call returns its stored result. A call with an unknown outcome is repeated only if its tool
    /// is `idempotent`.
    ///
    /// # Errors
    /// `terminated`.
    pub fn invoke_tool(&self, name: &str, args: Value) -> LocalBoxFuture<'static, Result<ToolResult>> {
        self.calls_api().invoke(name.to_owned(), args)
    }
}

/// The thread's side of the calls.
pub(crate) trait CallsApi {
    fn invoke(&self, name: String, args: Value) -> LocalBoxFuture<'static, Result<ToolResult>>;
    fn scope(&self) -> &Scope;
}
