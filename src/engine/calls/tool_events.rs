//! Events of calls for listeners: start and end.

use crate::definitions::message::ToolStatus;
use crate::engine::calls::call::Call;
use crate::engine::features::Activity;
use crate::json;
use crate::limits;
use crate::protocols::responses::frames::live::{ToolCompletedFrame, ToolStartedFrame};
use crate::store::messages::message_id;

/// A call, as listeners see it.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct ToolCallEvent<'a> {
    /// The tool.
    pub(in crate::engine) name: &'a str,
    /// The model's id of the call; `None` if code makes it.
    pub(in crate::engine) id: Option<&'a str>,
    /// As the model wrote them.
    pub(in crate::engine) arguments: Option<&'a str>,
    /// Seq of its result's message.
    pub(in crate::engine) seq: Option<i64>,
}

impl<'a> ToolCallEvent<'a> {
    /// A call of a reply.
    pub(in crate::engine) fn of(call: &'a Call) -> ToolCallEvent<'a> {
        ToolCallEvent {
            name: &call.call.name,
            id: Some(&call.call.id),
            arguments: Some(&call.call.arguments),
            seq: Some(call.seq),
        }
    }
}

impl Activity<'_> {
    /// Announces the start of a tool.
    pub(in crate::engine) fn announce_tool_start(&self, call: &ToolCallEvent<'_>) {
        if self.has_listeners() {
            let shown = call.arguments.filter(|text| text.len() <= limits::FRAME_ARGUMENTS_BYTES);
            let frame = ToolStartedFrame {
                tool: call.name,
                call_id: call.id,
                arguments: shown.map(|text| self.variables().redact(text.to_owned())),
                message_id: self.result_of(call),
            };
            self.announce("tool_started", json!(frame));
        }
    }

    /// Announces the end of a tool.
    pub(in crate::engine) fn announce_tool_end(&self, call: &ToolCallEvent<'_>, status: ToolStatus) {
        if self.has_listeners() {
            let message_id = self.result_of(call);
            let frame = ToolCompletedFrame { tool: call.name, status, call_id: call.id, message_id };
            self.announce("tool_completed", json!(frame));
        }
    }

    /// Id of the message of a call's result.
    fn result_of(&self, call: &ToolCallEvent<'_>) -> Option<String> {
        let seq = call.seq?;
        self.read(|state, _| Ok(message_id(&state.meta.stem, seq))).ok()
    }
}
