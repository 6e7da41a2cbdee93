//! Input of a native hook.

use serde_json::{Map, Value};

use crate::definitions::hook::HookName;
use crate::error::Result;
use crate::host::Sleep;
use crate::sdk::ThreadState;
use crate::sdk::relations::RemoteThread;

/// A call of a native hook (spec §9.1).
#[derive(Clone)]
pub struct HookCall {
    /// The registered name.
    pub native: String,
    /// Id of the definition.
    pub id: String,
    /// The kind of hook, one of twelve.
    pub hook: HookName,
    /// Its arguments (docs/hooks.md).
    pub args: Vec<Value>,
    /// The thread.
    pub thread_id: String,
    /// The agent that the thread runs.
    pub agent_id: String,
    /// `<thread>/h<place>.<id>`: the same when the event is repeated.
    pub hook_call_id: String,
    /// Values of the variables that it declares.
    pub env: Map<String, Value>,
    /// Microseconds since 1970.
    pub now_us: i64,
    /// Random bytes of this call.
    pub random: [u8; 16],
    /// Waits for some microseconds.
    pub sleep: Sleep,
    /// The thread. Messages that a hook injects or changes run no hooks before they are stored.
    pub state: ThreadState,
}

impl HookCall {
    /// Remote access to the new subagent in `after_subagent_created`; `None` in every other hook.
    ///
    /// # Errors
    /// `thread_not_found` when the thread was deleted.
    pub fn child(&self) -> Result<Option<RemoteThread>> {
        let reference = self.args.first().and_then(|child| child.get("reference")).and_then(Value::as_str);
        match reference.filter(|_| self.hook == HookName::AfterSubagentCreated) {
            Some(reference) => self.state.get_child_thread(reference),
            None => Ok(None),
        }
    }
}
