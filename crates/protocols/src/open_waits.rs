//! The waits of a thread, by the keys that clients answer with: their own ids, or the ids of their calls.

use std::collections::HashMap;

use serde_json::Value;

use crate::run_events::text_of;

/// Waits in maps, because a client may send as many answers as fit into a body.
#[derive(Debug, Default)]
pub struct WaitIndex<'w> {
    by_id: HashMap<&'w str, &'w Value>,
    /// Waits that a call's result answers.
    by_call: HashMap<&'w str, &'w Value>,
}

impl<'w> WaitIndex<'w> {
    /// Indexes these waits. If several belong to one call, the first is used.
    pub fn of(waits: &'w [Value]) -> WaitIndex<'w> {
        let mut asked = WaitIndex::default();
        for wait in waits {
            asked.by_id.entry(text_of(wait, "id")).or_insert(wait);
            let call = wait.pointer("/call/id").and_then(Value::as_str);
            if let Some(call) = call.filter(|_| matches!(text_of(wait, "kind"), "client_tool" | "question")) {
                asked.by_call.entry(call).or_insert(wait);
            }
        }
        asked
    }

    /// The wait with this id.
    pub fn wait(&self, id: &str) -> Option<&'w Value> {
        self.by_id.get(id).copied()
    }

    /// The wait that the result of this call answers.
    pub fn of_call(&self, call: &str) -> Option<&'w Value> {
        self.by_call.get(call).copied()
    }
}
