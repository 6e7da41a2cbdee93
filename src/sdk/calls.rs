//! Calls that code makes and waits for (spec §6.4).

use futures::future::LocalBoxFuture;
use serde_json::Value;

use crate::error::Result;
use crate::sdk::ThreadState;
use crate::sdk::scope::Scope;
use crate::spec::message::ToolResult;

impl ThreadState {
    /// Calls something now and gives its result (spec §6.4): a tool, or a prompt, which answers in one step. What is
    /// called need not be listed in any prompt; whatever is wrong with the call is an error result. No message is stored.
    /// An exposed agent takes the thread over after the step that this code works in; apart from a run it is refused
    /// with `would_wait`: queue it instead.
    ///
    /// When the code that calls is run again after the process was lost, the same calls in the same order have the same
    /// keys: one that has ended gives its stored result, and one whose outcome is unknown is made again only if its tool
    /// is `idempotent`.
    ///
    /// # Errors
    /// `terminated`.
    pub fn invoke_tool(&self, name: &str, args: Value) -> LocalBoxFuture<'static, Result<ToolResult>> {
        self.calls_api().invoke(name.to_owned(), args)
    }
}

/// The thread behind it.
pub(crate) trait CallsApi {
    fn invoke(&self, name: String, args: Value) -> LocalBoxFuture<'static, Result<ToolResult>>;
    fn scope(&self) -> &Scope;
}
